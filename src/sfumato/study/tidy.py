"""Tidy: a small published or predicted table, in whichever kind of frame its reader works with.

In:   columns; the names of those that say what a number is about.
Out:  pandas, polars, Arrow, a dict, text, a picture with intervals.
Not here: which columns a table has (study/naming.py), drawing (study/plots.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.card import Card, Haze, Shown

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

__all__ = ["Tidy"]

_SHOWN = 60


class Tidy(Shown):
    """A table: one column a variable, then numbers. It never changes.

    >>> table = Tidy({"age": ["young", "old"], "value": [3.25, 5.5]}, title="mean days by age")
    >>> print(table)
    age    value
    young  3.25
    old    5.5
    >>> table.to_dict()["value"], len(table)
    ([3.25, 5.5], 2)
    """

    def __init__(
        self,
        columns: pa.Table | Mapping[str, Sequence[Any]],
        title: str = "",
        note: str = "",
        *,
        caution: str = "",
    ) -> None:
        self._table: Any = pa.table(dict(columns)) if isinstance(columns, Mapping) else columns
        self.title = title
        self.note = note
        self.caution = caution  # what stands with the numbers wherever they are shown, printed too

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self._table.column_names)

    def to_arrow(self) -> pa.Table:
        """As an Arrow table."""
        return self._table

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas data frame; days are pandas' own, as in the frames that studies are given."""
        return _with_moments(self._table).to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As a polars data frame."""
        import polars

        found = polars.from_arrow(self._table)
        assert isinstance(found, polars.DataFrame)
        return found

    def to_dict(self) -> dict[str, list[Any]]:
        """As lists by column."""
        return self._table.to_pydict()

    def rows(self) -> list[dict[str, Any]]:
        """One dict a row."""
        return self._table.to_pylist()

    def plot(self) -> Figure:
        """Every number with its interval, as a matplotlib figure."""
        from sfumato.study.plots import interval_figure

        return interval_figure(self)

    def to_card(self) -> Card:
        """How a notebook shows it: every interval as a soft bar on one scale."""
        return self._card()

    def _card(self) -> Card:
        rows = self.rows()
        head = list(self.columns)
        shown = [list(row.values()) for row in rows]
        if {"low", "high"} <= set(head) and rows:
            head.append("95 % interval")
            for cells, interval in zip(shown, _intervals([(row["low"], row["high"]) for row in rows]), strict=True):
                cells.append(interval)
        return Card(self.title, head=head, rows=shown, notes=[*filter(None, (self.note, self.caution))])

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, column: str) -> list[Any]:
        return self._table[column].to_pylist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tidy) and self._table.equals(other._table)

    __hash__ = None  # type: ignore[assignment]  # a table is no key

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        cells = [self.columns, *(tuple(_shown(one) for one in row.values()) for row in self.rows()[:_SHOWN])]
        widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        more = len(self) - _SHOWN
        return "\n".join([*lines, *([f"… and {more} more rows"] if more > 0 else []), *filter(None, [self.caution])])


def _with_moments(table: pa.Table) -> pa.Table:
    """Dates as timestamps: what pandas makes of dates are Python objects, which do not mix with its own."""
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_date(kind):
            table = table.set_column(place, table.column_names[place], table.column(place).cast(pa.timestamp("us")))
    return table


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.5g}"  # a count is no power of ten
    return "" if value is None else str(value)


def _intervals(ends: Sequence[tuple[Any, Any]]) -> list[Haze | str]:
    """A haze for each interval, all on one scale; a word where an end is open."""
    finite = [end for pair in ends for end in pair if end is not None and math.isfinite(end)]
    start, end = (min(finite), max(finite)) if finite else (0.0, 0.0)
    words = [f"between {low:.4g} and {high:.4g}" for low, high in ends]
    return [
        Haze.between(low, high, start, end, said) or "unbounded" for (low, high), said in zip(ends, words, strict=True)
    ]
