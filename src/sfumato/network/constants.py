"""A cell of a public table as a constant of the study: the one by which a goal of the study would find it.

In:   a Spec, the room with its public tables.
Out:  for each column that says something, its cells as terms.
Not here: what is asserted of whom (network/structure.py), how a goal compares a cell (network/cells.py).

A goal compares a cell with a number by value and with a word by text, whatever the type of its column is: 7, 7.0, the
text 7 and the text 7.0 are one ward. Clauses compare constants. So a cell becomes the constant that the study writes
where the two can meet (lang/constants.py), and where it writes none, the plain number or the word that stands there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sfumato.core.cell import DAY, name_of
from sfumato.lang.constants import Constants
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, Number, Position, Term, Text, show
from sfumato.network.refusal import refusal
from sfumato.network.tables import TableRoom

__all__ = ["PublicCells", "cell_terms"]

#: A number as one writes it: codes such as 007 or 1e3 are words, but where the study says a number that they are.
_PLAIN = re.compile(r"-?(0|[1-9][0-9]*)([.][0-9]+)?")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
#: Whole numbers beyond this are compared as text (network/cells.py).
_EXACT = 2**53


@dataclass(frozen=True)
class PublicCells:
    """Turns the cells of public tables into terms; made once for a study."""

    spec: Spec
    room: TableRoom

    @cached_property
    def _constants(self) -> Constants:
        return Constants(self.spec.clauses)

    def terms(
        self, cells: Sequence[tuple[str, float | None]], table: str, column: str, place: tuple[str, int]
    ) -> list[Term]:
        """Of each (text, number) of a column the constant; `place` is where the predicate has it."""
        met = self._constants.met_by(*place)
        numbers = self.room.numbers_in(table, column)
        return [_term(text, number, met, numbers, self._where(table, column)) for text, number in cells]

    def _where(self, table: str, column: str) -> tuple[str, Position | None]:
        declared = (one.position for one in self.spec.columns if (one.table, one.name) == (table, column))
        return f"{column} of {table}", next(declared, None)


def cell_terms(text: str, number: float | None, met: Sequence[Term]) -> list[Term]:
    """The constants among these by which a goal finds such a cell.

    >>> [show(one) for one in cell_terms("07", 7.0, (Number(7), Compound("7"), Compound("07")))]
    ['7', "'07'"]
    """
    return [one for one in met if _is_found(one, text, number)]


def _is_found(constant: Term, text: str, number: float | None) -> bool:
    match constant:
        case Number(value=int() as value) if abs(value) > _EXACT:
            return text == str(value)
        case Number(value=value):
            return number is not None and number == float(value)
        case Text(value=word) | Compound(functor=word):
            return text == word or (DAY.fullmatch(word) is not None and name_of(text) == name_of(word))
    return False


def _term(
    text: str, number: float | None, met: Sequence[Term], numbers: bool, where: tuple[str, Position | None]
) -> Term:
    found = cell_terms(text, number, met)
    if len(found) > 1:
        ways = " and ".join(sorted(map(show, found)))
        raise refusal(
            where[1],
            f"{where[0]} holds {text}, which the study writes in several ways: {ways}. To its clauses these are "
            "different things, and a cell would be one of them.",
            "Write it in one way.",
        )
    return found[0] if found else _plain(text, number, numbers)


def _plain(text: str, number: float | None, numbers: bool) -> Term:
    """The number that stands there; the word where none does."""
    if _WHOLE.fullmatch(text) and len(text) <= 20:
        return Number(int(text))
    if number is None or not abs(number) <= _EXACT or not (numbers or _PLAIN.fullmatch(text)):
        return Compound(text)
    return Number(int(number) if number.is_integer() else number)
