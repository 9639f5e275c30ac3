"""A card: how a value shows itself in a notebook. Open to all rooms, like `errors` and `lazy`; it knows none of them.

In:   a title, facts, a small table, notes, all of them text that anybody may read.
Out:  HTML without script, id or address, in the notebook's own colours, every name escaped.
Not here: what a value says of itself (each class has a `_card`), plots (study/plots.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.wording import page

__all__ = ["Card", "Haze", "Shown", "cell"]

_MOST_ROWS = 40


@dataclass(frozen=True)
class Haze:
    """A number's interval as a soft bar on a scale: the middle and both ends, in hundredths of the scale's width."""

    left: float
    width: float
    words: str = ""

    @classmethod
    def between(cls, low: float, high: float, start: float, end: float, words: str = "") -> Haze | None:
        """The interval from `low` to `high` on a scale from `start` to `end`; None of one without ends."""
        span = end - start
        if not all(map(math.isfinite, (low, high, start, end))) or span <= 0:
            return None
        left = min(max(100 * (low - start) / span, 0.0), 100.0)
        right = min(max(100 * (high - start) / span, 0.0), 100.0)
        return cls(round(left, 1), max(round(right - left, 1), 0.6), words)


@dataclass(frozen=True)
class Card:
    """What a notebook shows of a value.

    >>> print(Card("ages", {"promise": "1-DP"}).to_html().count("<script"))
    0
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    notes: Sequence[str] = ()
    kind: str = ""
    text: str = ""  # shown folded, as it is

    def to_html(self) -> str:
        rows = [[part if isinstance(part, Haze) else cell(part) for part in row] for row in self.rows[:_MOST_ROWS]]
        more = len(self.rows) - len(rows)
        return page("card.html", card=self, rows=rows, more=more, numeric=self._numeric())

    def _numeric(self) -> list[bool]:
        """Which columns are numbers, to be put to the right."""
        columns = zip(*self.rows, strict=True) if self.rows else ()
        return [all(isinstance(one, int | float) for one in column) for column in columns]


class Shown:
    """Mixin of a value with a `_card`: it shows itself in a notebook. Text stays what `print` gives."""

    __slots__ = ()

    def _card(self) -> Card:
        raise NotImplementedError  # a class that says it can be shown says how

    def _repr_html_(self) -> str:
        return self._card().to_html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def cell(value: Any) -> str:
    """One cell as text: four digits of a number, nothing of nothing.

    >>> cell(1234.5678), cell(None), cell(3), cell("a")
    ('1235', '', '3', 'a')
    """
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "unbounded"
    return "" if value is None else str(value)
