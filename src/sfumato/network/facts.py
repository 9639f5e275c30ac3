"""What is known of a column before any cell is read, so that it need not be asked of every cell again.

In:   a node that reads a column, the type of that column in its table's schema.
Out:  KnownColumn: ends between which every placed cell lies; Key: a column of words in which absent ones are still
      absent.
Not here: placing a cell (network/cells.py), what is added up (network/totals.py).

Nothing here is believed of a file: a cell lies between the ends because this program put it there in the same query,
and it is whole because its type has no fractions. What a footer claims of least and greatest values is never asked.
Proof: docs/proofs/pushed_down.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.core.domain import Categories, Interval
from sfumato.network.expression import Level
from sfumato.network.network import Node
from sfumato.network.tables import plain_type
from sfumato.questions.grid import Grid

__all__ = ["Key", "KnownColumn", "TableFacts", "absent_word", "known_of"]

#: Types without fractions that are exact as floats between any ends of ours.
_WHOLE = frozenset(
    ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "BOOLEAN")
)
#: Whole numbers up to this are exact as floats, their sums too.
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """Every value is a number from `low` to `high`, none is absent or NaN; with `whole` every one is a whole number."""

    low: float
    high: float
    whole: bool

    def inside(self, grid: Grid) -> bool:
        """Whether every value is a contribution on the grid, so that none has to be clipped to it."""
        low, high = (Fraction(end) - Fraction(grid.offset) for end in (self.low, self.high))
        return grid.ends[0] <= low and high <= grid.ends[1] and max(-grid.low, grid.high) <= _EXACT

    def adds_up(self, grid: Grid) -> bool:
        """Whether (Σ x - n · offset) / step is the sum of the contributions: none of them is rounded.

        >>> [KnownColumn(0.0, 100.0, whole).adds_up(Grid.of(0.0, 100.0)) for whole in (True, False)]
        [True, False]
        """
        steps = Fraction(1, 1) / Fraction(grid.step), Fraction(grid.offset) / Fraction(grid.step)
        return self.whole and self.inside(grid) and all(one.denominator == 1 for one in steps)

    def most_rows(self) -> int:
        """So many values can be added up as floats, in any order, without rounding."""
        return int(_EXACT // max(abs(self.low), abs(self.high), 1.0))


@dataclass(frozen=True, slots=True)
class Key:
    """A column to group by in which an absent cell is NULL, and the word that stands for it."""

    column: str
    absent: Level


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What is known of some variables' columns; `filled` hears which keys a pass over all rows found without a NULL."""

    known: Mapping[str, KnownColumn] = field(default_factory=dict)
    keys: Mapping[str, Key] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)


def known_of(node: Node, kind: str) -> KnownColumn | None:
    """What holds of a node's placed cells once absent ones are replaced; None where they are not, or have no ends."""
    domain, missing = node.domain, node.missing
    if not isinstance(domain, Interval) or node.skip or missing is None or isinstance(missing, str):
        return None
    if not domain.low <= float(missing) <= domain.high:
        return None
    ends = (domain.low, domain.high, float(missing))
    whole = plain_type(kind) in _WHOLE and not domain.calendar and all(end.is_integer() for end in ends)
    return KnownColumn(domain.low, domain.high, whole and max(map(abs, ends)) <= _EXACT)


def absent_word(node: Node) -> Level | None:
    """The listed word that stands for an absent cell, where a node's values are listed words."""
    if not isinstance(node.domain, Categories) or node.domain.scalar != "str" or node.skip:
        return None
    return node.missing if node.missing in node.domain.values else node.domain.values[0]
