"""A variable whose values are sorted into public cells.

In:   the variable's name, its list of values or its cut points.
Out:  Axis: how many cells, what each is called.
Not here: sorting rows into cells (network/totals.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sfumato.core.calendar import shown
from sfumato.core.domain import Interval

__all__ = ["Axis", "Level"]

Level = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Axis:
    """Cells by `levels`, or by `cuts` of a variable between `low` and `high`: [low, cut), [cut, cut), …, [cut, high].

    >>> Axis("age(P)", cuts=(20.0, 65.0), low=0, high=110).cells
    ('[0, 20)', '[20, 65)', '[65, 110]')
    >>> Axis("sex(P)", levels=("f", "m")).label(1)
    'sex(P) = m'
    """

    variable: str
    levels: tuple[Level, ...] = ()
    cuts: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 0.0
    #: Where its numbers stand for days or times of day (core/calendar.py).
    calendar: str = ""

    @property
    def size(self) -> int:
        return len(self.levels) or len(self.cuts) + 1

    @property
    def cells(self) -> tuple[str, ...]:
        """What each cell is called in a column of its own."""
        return tuple(map(str, self.classes))

    def label(self, cell: int) -> str:
        """What a cell is called among others."""
        return f"{self.variable} {'=' if self.levels else 'in'} {self.cells[cell]}"

    @property
    def words(self) -> str:
        """The cells in a sentence."""
        kind = "value" if self.levels else "class"
        return f"each {kind} of {self.variable} ({', '.join(map(str, self.classes))})"

    @property
    def classes(self) -> tuple[Level, ...]:
        """The values themselves, or the classes from the low end of the range to its high end."""
        if self.levels:
            return self.levels
        *parts, last = pairwise([self._written(end) for end in (self.low, *self.cuts, self.high)])
        return (*(f"[{low}, {high})" for low, high in parts), f"[{last[0]}, {last[1]}{']' if last[1] else ')'}")

    def _written(self, end: float) -> str:
        """An end of a class with all its digits, so that no two classes have one name; empty where there is none."""
        if not math.isfinite(end) or (end in (self.low, self.high) and self.high == -self.low == Interval.WIDEST):
            return ""
        return shown(end, self.calendar) if self.calendar else repr(float(end)).removesuffix(".0")

    def to_dict(self) -> dict[str, Any]:
        return {
            "variable": self.variable,
            "levels": list(self.levels),
            "cuts": list(self.cuts),
            "low": self.low,
            "high": self.high,
            **({"calendar": self.calendar} if self.calendar else {}),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Axis:
        return cls(
            record["variable"],
            tuple(record["levels"]),
            tuple(record["cuts"]),
            record["low"],
            record["high"],
            record.get("calendar", ""),
        )
