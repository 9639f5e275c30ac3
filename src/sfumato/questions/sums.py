"""What is added up over individuals, and the exact sums.

In:   a question's entries; the whole numbers found in the data.
Out:  Entry (a public description), Sums (private).
Not here: adding up (network/totals.py, network/expected.py), noise (plan/draw.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.questions.grid import Grid

__all__ = ["Entry", "Sums"]

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Entry:
    """In every cell of some axes the sum, over the rows there, of a product of values; of no values: how many rows.

    `factors` and `axes` are places among the question's values and axes; from each factor its number of `centres` is
    taken off, where there are some, before it is multiplied. Without a `grid` a value has no bounds: the
    sum is then a plain float, and nothing of it can be published.
    """

    grid: Grid | None
    factors: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    centres: tuple[float, ...] = ()

    @property
    def centred(self) -> tuple[tuple[int, float], ...]:
        """Every factor with what is taken off it."""
        return tuple(zip(self.factors, self.centres or (0.0,) * len(self.factors), strict=True))


@dataclass(frozen=True)
class Sums:
    """The sums behind a question, before noise: private. One array an entry, one number a cell of its axes.

    `units` counts steps of an entry's public grid (floats where it has none), `counts` the rows in each of its cells
    (fractions where rows count by a probability), `count` all of them.
    """

    entries: tuple[Entry, ...]
    units: tuple[NDArray[Any], ...] = field(repr=False)
    counts: tuple[NDArray[Any], ...] = field(repr=False)
    count: int | Fraction = field(default=0, repr=False)
    #: What the cells are called, where no list of them is public: private too.
    texts: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def total(cls, entries: tuple[Entry, ...], sizes: Sequence[int], parts: Sequence[Sums]) -> Sums:
        """The sums of several groups of rows together; of none: of nobody."""
        units, counts = [], []
        for place, (entry, size) in enumerate(zip(entries, sizes, strict=True)):
            kind = object if entry.grid is not None else np.float64
            units.append(sum((part.units[place] for part in parts), np.zeros(size, dtype=kind)))
            counts.append(sum((part.counts[place] for part in parts), np.zeros(size, dtype=object)))
        return cls(entries, tuple(units), tuple(counts), sum(part.count for part in parts))

    def moved(self, place: int) -> Numbers:
        """Of one entry Σ (x - offset) in every cell: whole numbers of steps, each rounded to a float once."""
        grid = self.entries[place].grid
        if grid is None:
            return np.asarray(self.units[place], dtype=np.float64)
        step = Fraction(grid.step)
        return np.array([float(int(unit) * step) for unit in self.units[place]])

    def exact(self, place: int) -> tuple[Fraction, ...]:
        """Of one entry Σ x in every cell, in rational numbers."""
        grid = self.entries[place].grid
        if grid is None:
            return tuple(Fraction(float(unit)) for unit in self.units[place])
        step, offset = Fraction(grid.step), Fraction(grid.offset)
        pairs = zip(self.units[place], self.counts[place], strict=True)
        return tuple(int(unit) * step + (Fraction(count) * offset if offset else 0) for unit, count in pairs)

    @property
    def vector(self) -> Numbers:
        """Σ x of every entry and cell, one after the other, as floats."""
        parts = []
        for place, entry in enumerate(self.entries):
            exact = self.units[place] if entry.grid is None else [float(one) for one in self.exact(place)]
            parts.append(np.asarray(exact, dtype=np.float64))
        return np.concatenate(parts) if parts else np.zeros(0)

    def same(self, other: Sums) -> bool:
        """Whether these are the same whole numbers."""
        alike = all(np.array_equal(a, b) for a, b in zip(self.units, other.units, strict=True))
        return alike and self.texts == other.texts
