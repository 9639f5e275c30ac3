"""Tables of counts taken apart into residual tables, and put together again.

In:   how many levels each column has, which sets of columns are wanted as tables.
Out:  Workload: the residuals, what each adds to a table's variance, tables rebuilt from them, covariances of cells.
Not here: how much noise each residual gets (questions/residual_strategy.py), plain tables (questions/consistency.py).
Proof: docs/proofs/marginals.md

The residual of a set of columns is its table with the mean along every axis taken off: what the table knows that no
smaller one does. Residuals of different sets are orthogonal, and a table is the sum of the residuals of its subsets,
each spread evenly over the other columns. Nothing here is as large as the product of all columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Subset", "Workload", "all_tables", "project", "without_means"]

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]
#: Columns by their place, in ascending order.
Subset = tuple[int, ...]
#: One number per residual: its variance.
Spreads = Mapping[Subset, float]


def all_tables(columns: int, ways: int) -> tuple[Subset, ...]:
    """All sets of `ways` columns.

    >>> all_tables(3, 2)
    ((0, 1), (0, 2), (1, 2))
    """
    return tuple(combinations(range(columns), ways))


@dataclass(frozen=True)
class Workload:
    """The tables that are wanted of columns with `sizes` levels.

    >>> pairs = Workload((2, 3, 4), all_tables(3, 2))
    >>> pairs.parts
    ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    >>> pairs.numbers
    26
    """

    sizes: tuple[int, ...]
    tables: tuple[Subset, ...]

    @cached_property
    def parts(self) -> tuple[Subset, ...]:
        """The residuals behind the tables, small ones first. A column of one level has none: its residual is zero."""
        found = {part for table in self.tables for part in self.parts_of(table)}
        return tuple(sorted(found, key=lambda part: (len(part), part)))

    def parts_of(self, table: Subset) -> tuple[Subset, ...]:
        own = [column for column in table if self.sizes[column] > 1]
        return tuple(part for size in range(len(own) + 1) for part in combinations(own, size))

    def shape(self, columns: Subset) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in columns)

    def cells(self, columns: Sequence[int]) -> int:
        return math.prod(self.sizes[column] for column in columns)

    @property
    def numbers(self) -> int:
        """The cells of all tables."""
        return sum(self.cells(table) for table in self.tables)

    def norm(self, part: Subset) -> float:
        """|P e|²: the squared length of the residual of one row, ∏ (1 - 1/n)."""
        return math.prod(1 - 1 / self.sizes[column] for column in part)

    def left(self, table: Subset, part: Subset) -> int:
        """The cells over which a residual is spread in a table."""
        return self.cells([column for column in table if column not in part])

    # ── variances ────────────────────────────────────────────────────────────────────────────────────────────────────

    def weight(self, table: Subset, part: Subset) -> float:
        """Variance of one cell of the table for each unit of the residual's variance."""
        return self.norm(part) / self.left(table, part) ** 2

    def importance(self, weights: Sequence[float] | None = None) -> dict[Subset, float]:
        """What a unit of each residual's variance adds to the mean variance of all cells.

        Every cell counts once; `weights` multiply the cells of a table.
        """
        weights = [1.0] * len(self.tables) if weights is None else list(weights)
        cells = [self.cells(table) * weight for table, weight in zip(self.tables, weights, strict=True)]
        total = math.fsum(cells)
        found: dict[Subset, list[float]] = {part: [] for part in self.parts}
        for table, count in zip(self.tables, cells, strict=True):
            for part in self.parts_of(table):
                found[part].append(count / total * self.weight(table, part))
        return {part: math.fsum(values) for part, values in found.items()}

    def variance(self, table: Subset, spreads: Spreads) -> float:
        """Of every cell of a table; a residual without noise has none."""
        return math.fsum(self.weight(table, part) * spreads[part] for part in self.parts_of(table))

    def covariance(
        self, one: Subset, cell: Sequence[int], other: Subset, its_cell: Sequence[int], spreads: Spreads
    ) -> float:
        """Of a cell of one table with a cell of another, or of the same.

        >>> total_is_public = {(): 0.0, (0,): 1.0}
        >>> Workload((2,), ((0,),)).covariance((0,), [0], (0,), [1], total_is_public)
        -0.5
        """
        levels, its_levels = dict(zip(one, cell, strict=True)), dict(zip(other, its_cell, strict=True))
        shared = tuple(column for column in one if column in its_levels)
        terms = []
        for part in self.parts_of(shared):
            same = math.prod((levels[column] == its_levels[column]) - 1 / self.sizes[column] for column in part)
            terms.append(spreads[part] * same / (self.left(one, part) * self.left(other, part)))
        return math.fsum(terms)

    # ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def rebuild(self, table: Subset, residuals: Mapping[Subset, Numbers]) -> Numbers:
        """The table its residuals make: each spread evenly over the columns it does not know."""
        made = np.zeros(self.shape(table))
        for part in self.parts_of(table):
            shape = [self.sizes[column] if column in part else 1 for column in table]
            made += np.asarray(residuals[part], dtype=np.float64).reshape(shape) / self.left(table, part)
        return made

    def added_up(self, counts: Mapping[Subset, Whole], wanted: Sequence[Subset]) -> dict[Subset, Whole]:
        """Tables of other columns, each from the smallest given one that holds them. Whole numbers stay whole."""
        by_size = [(table, frozenset(table)) for table in sorted(counts, key=self.cells)]
        found: dict[Subset, Whole] = {}
        for columns in wanted:
            source = columns if columns in counts else next(table for table, own in by_size if own.issuperset(columns))
            others = tuple(axis for axis, column in enumerate(source) if column not in columns)
            found[columns] = np.asarray(counts[source].sum(axis=others)).reshape(self.shape(columns))
        return found


def project(table: Numbers) -> Numbers:
    """The mean along every axis taken off.

    >>> project(np.array([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    table = np.asarray(table, dtype=np.float64)
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def without_means(table: Whole) -> Whole:
    """`project` times the number of cells, in whole numbers: n·table - sum, along every axis.

    >>> without_means(np.array([[4, 0], [0, 0]])).tolist()
    [[4, -4], [-4, 4]]
    """
    for axis in range(table.ndim):
        table = table.shape[axis] * table - table.sum(axis=axis, keepdims=True)
    return table
