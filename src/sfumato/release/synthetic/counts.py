"""Exact counts of single columns and pairs, in one pass.

In:   parts of a table as level codes.
Out:  PairCounts, private: a sum over rows, so that parts of a table can be counted anywhere and added.
Not here: noise (release/synthetic/measure.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.release.synthetic.junction_tree import Scope

__all__ = ["MOST_CELLS", "PairCounts", "pairs_within"]

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
#: A pair with more cells than this is never counted, nor more cells than that in all pairs together.
MOST_CELLS = 1 << 16
_MOST_IN_ALL = 1 << 24
#: Rows whose codes are held as wide numbers at a time.
_BATCH = 1 << 18


def pairs_within(sizes: Sequence[int], first: Collection[int] = (), wanted: Collection[Scope] = ()) -> list[Scope]:
    """The pairs of columns that are counted: none too large, the wanted ones and then those with a column of `first`
    before others."""
    pairs = [pair for pair in itertools.combinations(range(len(sizes)), 2) if _cells(sizes, pair) <= MOST_CELLS]
    ordered = sorted(
        pairs, key=lambda pair: (pair not in wanted, not set(pair) & set(first), _cells(sizes, pair), pair)
    )
    totals = itertools.accumulate(_cells(sizes, pair) for pair in ordered)
    return sorted(pair for pair, total in zip(ordered, totals, strict=True) if total <= _MOST_IN_ALL)


def _cells(sizes: Sequence[int], scope: Scope) -> int:
    return math.prod(int(sizes[column]) for column in scope)


@dataclass(eq=False)
class PairCounts:
    """Counts of rows by the levels of every listed scope.

    >>> counted = PairCounts.empty((2, 2), [(0, 1)])
    >>> counted.add([np.array([0, 1, 1], np.int32), np.array([0, 1, 1], np.int32)])
    >>> counted[(0, 1)].tolist(), counted.rows
    ([[1, 0], [0, 2]], 3)
    """

    sizes: tuple[int, ...]
    tables: dict[Scope, Counts] = field(repr=False)
    rows: int = 0

    @classmethod
    def empty(cls, sizes: Sequence[int], pairs: Sequence[Scope]) -> PairCounts:
        scopes: list[Scope] = [*((column,) for column in range(len(sizes))), *pairs]
        shapes = {scope: tuple(sizes[column] for column in scope) for scope in scopes}
        return cls(tuple(sizes), {scope: np.zeros(shape, np.int64) for scope, shape in shapes.items()})

    def add(self, codes: Sequence[Codes]) -> None:
        """Count a part; `codes` holds one array for each column."""
        rows = len(codes[0]) if len(codes) else 0
        for start in range(0, rows, _BATCH):
            self._add([np.asarray(column[start : start + _BATCH], np.int64) for column in codes])
        self.rows += rows

    def _add(self, wide: Sequence[NDArray[np.int64]]) -> None:
        place = np.empty_like(wide[0])
        for scope, table in self.tables.items():
            here = wide[scope[0]]
            if len(scope) == 2:
                np.multiply(here, self.sizes[scope[1]], out=place)
                place += wide[scope[1]]
                here = place
            np.add(table, np.bincount(here, minlength=table.size).reshape(table.shape), out=table)

    def plus(self, other: PairCounts) -> PairCounts:
        added = {scope: table + other.tables[scope] for scope, table in self.tables.items()}
        return PairCounts(self.sizes, added, self.rows + other.rows)

    def __getitem__(self, scope: Scope) -> Counts:
        return self.tables[scope]
