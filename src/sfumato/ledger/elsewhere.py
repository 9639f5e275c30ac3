"""Data has one budget, in one ledger of this user: asked by whoever binds data to an account or spends on it.

In:   a ledger, the sources of some data.
Out:  a block in which nobody else of this user binds data or spends; a refusal that names the ledger that counts.
Not here: the list of ledgers (ledger/known_ledgers.py), what a source is (run/accounts.py).

Two ways lead to a second budget. Data without an account here may have one in another ledger. And a folder may be
copied with the ledger in it: then both copies know the data, and each would spend what is left. So of the copies of one
ledger only the one goes on that counts all that any of them has charged to the account. That a ledger is a copy shows
in its first entry, what it has charged in the hashes of its entries: no two are alike.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import LedgerError, LedgerLockedError, UnknownDatasetError
from sfumato.ledger.commands import history_command, show_command
from sfumato.ledger.known_ledgers import known_ledgers, one_at_a_time, remember_ledger

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger

__all__ = ["alone", "check_copies", "check_elsewhere", "committing"]

Account = tuple[str, str]


@contextmanager
def alone(ledger: Ledger, sources: Sequence[str], account: Account, *, spends: bool) -> Iterator[None]:
    """A block that binds data or spends on it, in which nobody else of this user does.

    Between an earlier look and this one a person may have been asked, and another run may have opened the account.
    Who spends without saying on which data is counted too; a grant that binds none decides about this ledger alone.
    """
    if not sources and not spends:
        yield
        return
    if ledger.beside is None:
        remember_ledger(ledger.path)  # before anything is reserved in it: whoever is stopped later has still charged it
    with _in_turn(ledger):
        _check(ledger, sources, account)
        yield


@contextmanager
def committing(ledger: Ledger, dataset: str, reservation: str) -> Iterator[None]:
    """A block that records that noise was drawn for a reservation: of the copies of a ledger one does so, and once.

    Copies made between reserving and drawing share the reservation, and both may have gone on with it until now.
    """
    with _in_turn(ledger):
        for path, other in _copies(ledger):
            if any(one.action == "commit" and one.reservation == reservation for one in other.history()):
                raise LedgerError(
                    f"{path} and {ledger.path.resolve()} are copies of one ledger, and the run that this was reserved "
                    "for has been paid for with the first. Nothing was published here, and nothing was spent a second "
                    f"time. Use what was published there: `{history_command(dataset, path)}` says when and what for."
                )
        yield


def _in_turn(ledger: Ledger) -> AbstractContextManager[None]:
    """Who asks named ledgers alone waits for nobody else."""
    return one_at_a_time() if ledger.beside is None else nullcontext()


def _check(ledger: Ledger, sources: Sequence[str], account: Account) -> None:
    check_elsewhere(ledger, [source for source in sources if not ledger.owners([source])])
    check_copies(ledger, [*ledger.owners(sources), account])


def check_elsewhere(ledger: Ledger, sources: Sequence[str]) -> None:
    """Refuse data that has its budget in another ledger: a copy in another folder, or another working folder."""
    for path, other in _others(ledger) if sources else ():
        owners = other.owners(sources) or other.neighbours(sources)
        if owners:
            raise UnknownDatasetError(
                f"This data has its budget in {path} under the name {owners[0][0]!r}, and none in "
                f"{ledger.path.resolve()}. Nothing was run and nothing was spent. Run the same again with --ledger "
                f"{shlex.quote(str(path.resolve()))} (from Python: ledger={str(path.resolve())!r}). What is left there "
                f"tells `{show_command(owners[0][0], path)}`."
            )


def check_copies(ledger: Ledger, accounts: Sequence[Account]) -> None:
    """Refuse to go on in one of several copies of a ledger where another has charged what is not counted in it."""
    for path, other in _copies(ledger):
        unknown = _charged(other, accounts) - _charged(ledger, accounts)
        if not unknown:
            continue
        place, name = str(path.resolve()), sorted(unknown)[0][0]
        told = (
            f"{path} and {ledger.path.resolve()} are copies of one ledger, and the first has charged {name!r} with "
            "what is not counted in the second: data has one budget, wherever it is copied. Nothing was run and "
            "nothing was spent."
        )
        if _charged(ledger, accounts) - _charged(other, accounts):
            raise LedgerError(
                f"{told} Nor does the first count all of the second. Keep the one whose grant is to hold, lower that "
                f"grant by what the other has spent (`{history_command(name, path)}`), and move the other file away."
            )
        raise LedgerError(
            f"{told} Run the same again with --ledger {shlex.quote(place)} (from Python: ledger={place!r}). What is "
            f"left there tells `{show_command(name, path)}`."
        )


def _charged(ledger: Ledger, accounts: Sequence[Account]) -> set[tuple[str, str]]:
    """(dataset, hash) of what counts in these accounts: whatever was reserved and not given back, and what was drawn.

    A reservation that was open when the ledger was copied is in both: only one of them may go on to draw for it.
    """
    records = ledger.history()
    given_back = {record.reservation for record in records if record.action == "release"}
    return {
        (record.dataset, record.hash)
        for record in records
        if record.action in ("reserve", "commit") and (record.dataset, record.unit) in accounts
        if record.reservation not in given_back
    }


def _copies(ledger: Ledger) -> Iterator[tuple[Path, Ledger]]:
    first = ledger.history()[:1]
    return _others(ledger, first[0].hash) if first else iter(())


def _others(ledger: Ledger, first: str | None = None) -> Iterator[tuple[Path, Ledger]]:
    """The other ledgers that are asked, all of them or those that begin with the same entry."""
    for path in known_ledgers() if ledger.beside is None else ledger.beside:
        # os.path, and not Path: a folder that may not be entered or a disk that is away is no reason to stop either.
        if not os.path.isfile(path) or path.resolve() == ledger.path.resolve():
            continue
        try:
            other = type(ledger).opened_beside(path, first)
        except LedgerLockedError:  # whoever holds it may be spending this budget now
            raise
        except LedgerError:  # a ledger that cannot be read is no reason to stop all others
            continue
        if other is not None:
            yield path, other
