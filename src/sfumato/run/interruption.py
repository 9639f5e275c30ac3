"""A run that is interrupted between its reservation and its end: what is given back, and what is said.

In:   the ledger, the command that goes on, and from the run: what it reserved, when it begins to draw, when it is done.
Out:  KeyboardInterrupt with a note; at the command line UnfinishedError with the same words.
Not here: hidden folders (run/staging.py), what is charged (ledger/ledger.py).

A reservation is given back only if the run had not begun to draw. Afterwards nobody can know what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sfumato.errors import UnfinishedError
from sfumato.ledger.commands import raise_command, settle_command
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation

__all__ = ["Payment", "noting_interruption", "paying", "told_when_interrupted"]

_NOTHING = "Interrupted before anything was reserved: nothing was drawn and nothing was spent."


@dataclass
class Payment:
    """How far a run has come."""

    ledger: Ledger | None
    again: str
    reservations: list[Reservation] = field(default_factory=list)
    drawing: bool = False
    complete: bool = False

    def begin(self) -> None:
        """The next step draws noise."""
        self.drawing = True

    def end(self) -> None:
        """Everything is drawn and lies complete in its hidden folder."""
        self.complete = True

    def interrupted(self) -> str:
        """Give back what certainly paid for nothing, and say where everything stands."""
        if self.ledger is None or not self.reservations:
            return _NOTHING
        if self.complete:
            return (
                f"Interrupted when the results were complete. They are paid for and kept. To publish them, {self.again}"
            )
        if not self.drawing:
            for reservation in self.reservations:
                self.ledger.release(reservation)
            return "Interrupted before any noise was drawn: what was reserved is given back and nothing was spent."
        return _drawn(self.ledger, self.reservations)


def _drawn(ledger: Ledger, reservations: Sequence[Reservation]) -> str:
    book = ledger.path.resolve()
    kept = "; ".join(f"{one.cost} of {one.dataset}" for one in reservations)
    raises = [
        f"`{raise_command(one.dataset, total, book, one.unit)}`"
        for one in reservations
        if (total := ledger.needed_for(one)) is not None
    ]
    again = (
        f"To run again, raise the grant by as much: {' and '.join(raises)}." if raises else "The grant holds it again."
    )
    settle = [f"`{settle_command(one.dataset, one.unit, book)}`" for one in reservations]
    return (
        "Interrupted after drawing had begun. Nothing was published and there is nothing to resume, but noise may have "
        f"been drawn and seen, so this stays reserved in {book}: {kept}. {again} To record it as spent: "
        f"{' and '.join(settle)}."
    )


@contextmanager
def paying(ledger: Ledger | None, again: str) -> Iterator[Payment]:
    """The part of a run that reserves and draws; an interruption leaves it with a note."""
    payment = Payment(ledger, again)
    try:
        yield payment
    except KeyboardInterrupt as interruption:
        interruption.add_note(payment.interrupted())
        raise


@contextmanager
def noting_interruption() -> Iterator[None]:
    """The part of a run that reads and computes, before anything is reserved."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        interruption.add_note(_NOTHING)
        raise


@contextmanager
def told_when_interrupted(otherwise: str | Callable[[], str] = _NOTHING) -> Iterator[None]:
    """At the command line: the words of an interruption as an error, because Ctrl-C alone prints nothing.

    `otherwise` is said where the work left no note of its own.
    """
    try:
        yield
    except KeyboardInterrupt as interruption:
        said = getattr(interruption, "__notes__", None) or [otherwise if isinstance(otherwise, str) else otherwise()]
        raise UnfinishedError(" ".join(said)) from interruption
