"""Who takes part in rounds with which ledger: one process at a time says so, by a lock that ends with the process.

In:   a centre's ledger.
Out:  a block in which this process takes part; before it, what a killed one reserved and never sent is given back.
Not here: why that is safe even beside a living process (centres/unsent.py): the lock only spares the living one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from sfumato.centres.unsent import give_back_unsent
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # without such locks nobody is spared: a second call ends the first one's part in its round
    fcntl = None

__all__ = ["given_back", "taking_part"]


@contextmanager
def taking_part(ledger: Ledger, tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, nobody else gives back what this process reserved."""
    with _alone(ledger.path) as alone:
        for reservation in give_back_unsent(ledger) if alone else ():
            tell(f"{reservation}: given back. An earlier call ended before anything was sent, so nothing was spent.")
        yield


def given_back(ledger: Ledger) -> list[Reservation]:
    """What rounds reserved and never sent, given back now; nothing while somebody takes part with this ledger."""
    with _alone(ledger.path) as alone:
        return give_back_unsent(ledger) if alone else []


@contextmanager
def _alone(ledger: Path) -> Iterator[bool]:
    """Whether nobody else is in such a block with the same ledger; so it is held until the block ends."""
    if fcntl is None:
        yield True
        return
    try:
        file = os.open(ledger.with_name(f"{ledger.name}.joining"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:  # nobody can tell: then nothing is given back
        yield False
        return
    try:
        yield _is_taken(file)
    finally:
        os.close(file)


def _is_taken(file: int) -> bool:
    assert fcntl is not None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
