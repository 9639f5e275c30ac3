"""Exact counts of all single columns and pairs, in one pass.

In:   batches of level codes.
Out:  PairCounts, private: a sum over rows, so that parts of a table can be counted anywhere and added.
Not here: noise (release/synthetic/measure.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.release.synthetic.junction_tree import Scope

__all__ = ["PairCounts", "pairs_within"]

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]


def pairs_within(sizes: Sequence[int], most_cells: int) -> list[Scope]:
    """The pairs of columns whose table is not larger than `most_cells`."""
    pairs = itertools.combinations(range(len(sizes)), 2)
    return [(first, second) for first, second in pairs if sizes[first] * sizes[second] <= most_cells]


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
        """Count a batch; `codes` holds one array for each column."""
        wide = [np.asarray(column, np.int64) for column in codes]
        for scope, table in self.tables.items():
            place = wide[scope[0]]
            if len(scope) == 2:
                place = place * self.sizes[scope[1]] + wide[scope[1]]
            np.add(table, np.bincount(place, minlength=table.size).reshape(table.shape), out=table)
        self.rows += len(wide[0]) if wide else 0

    def plus(self, other: PairCounts) -> PairCounts:
        added = {scope: table + other.tables[scope] for scope, table in self.tables.items()}
        return PairCounts(self.sizes, added, self.rows + other.rows)

    def __getitem__(self, scope: Scope) -> Counts:
        return self.tables[scope]
