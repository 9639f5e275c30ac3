"""The ledgers that this user charges: a list in the user's own folder, and whose turn it is to bind data to one.

In:   the path of a ledger.
Out:  the paths on the list; a block in which no other process of this user binds data.
Not here: whether one of them has the budget of some data (ledger/elsewhere.py), what a ledger holds (ledger/ledger.py).

A copy of a table, charged to another ledger, finds its account by this list. Two runs at once would both look before
either has bound its data, above all while a person is asked for a first grant: so whoever binds looks again, alone.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import LedgerLockedError

try:
    import fcntl
except ImportError:  # without POSIX locks one process at a time is up to the user
    fcntl = None

__all__ = ["known_ledgers", "one_at_a_time", "remember_ledger"]

#: How long a turn is waited for; nobody holds one for longer than a ledger takes to write.
_PATIENCE, _PAUSE = 60.0, 0.02


def known_ledgers() -> list[Path]:
    """The ledgers that this user has charged, by a list in the user's own folder (SFUMATO_STATE)."""
    try:
        lines = _list_of_ledgers().read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []
    return [path for path in map(_path, lines) if path is not None]


def remember_ledger(ledger: Path) -> None:
    """Put a ledger on that list. Without a folder to write to there is no list, and only this ledger is asked."""
    place = _list_of_ledgers()
    if ledger.resolve() in known_ledgers():
        return
    with suppress(OSError, ValueError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with place.open("a", encoding="utf-8") as file:
            file.write(f"{_line(ledger.resolve())}\n")


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """While the block runs, no other process or thread of this user is in one; LedgerLockedError after a minute."""
    held = _taken(_list_of_ledgers().with_name("binding.lock"))
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def _taken(lock: Path) -> int | None:
    """The lock; None where there is no folder for one."""
    if fcntl is None:
        return None
    try:
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(file)
                raise LedgerLockedError(
                    f"Another run of yours is opening an account or paying ({lock}). Nothing was published and "
                    "nothing more was spent. Wait until it has ended, and run again."
                ) from None
            time.sleep(_PAUSE)
        except OSError:  # a file system without locks
            os.close(file)
            return None


def _line(ledger: Path) -> str:
    """A path in one line, whatever signs are in it."""
    text = str(ledger)
    return text if text.isprintable() else json.dumps(text)


def _path(line: str) -> Path | None:
    """Absolute paths begin with no quotation mark. A line that cannot be read hides no other."""
    try:
        return Path(json.loads(line) if line.startswith('"') else line) if line else None
    except (ValueError, TypeError):
        return None


def _list_of_ledgers() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(os.environ.get("SFUMATO_STATE") or Path(state) / "sfumato") / "ledgers.txt"
