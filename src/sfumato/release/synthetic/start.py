"""The first look at a table: every column beside the label, or alone, and the law that these tables alone suggest.

In:   noisy counts of (column, label) for every column, or of single columns.
Out:  StartModel: columns independent given the label, and the counts it expects.
Not here: drawing (release/synthetic/measure.py), better models (release/synthetic/junction_tree.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.release.synthetic.junction_tree import CountTable, Scope, cells_of

__all__ = [
    "StartModel",
    "by_size",
    "first_shares",
    "is_told",
    "merged",
    "noisy_total",
    "on_simplex",
    "sampling_floor",
    "start_scopes",
]

Numbers = NDArray[np.float64]
#: Of the first tables' share: for columns alone, where a label stands beside them. On two development tables
#: (1,848 × 20 and 34,028 × 19, ε from 1 to 8) single columns were a tenth nearer, pairs and models as near as without.
ALONE = 0.15
#: So many times its own standard error a noisy number of rows is no mere noise.
_TOLD = 10.0


def start_scopes(columns: int, label: int | None, counted: Collection[Scope]) -> list[Scope]:
    """Which tables are measured first: every column beside the label, alone where that pair is too large."""
    if label is None or columns == 1:
        return [(column,) for column in range(columns)]
    beside = [(column, tuple(sorted((column, label)))) for column in range(columns) if column != label]
    scopes = [pair if pair in counted else (column,) for column, pair in beside]
    return scopes if any(len(scope) == 2 for scope in scopes) else [*scopes, (label,)]


def first_shares(sizes: Sequence[int], label: int | None, scopes: Sequence[Scope]) -> dict[Scope, float]:
    """Of what the first tables cost, the share of each: of these scopes, and beside a label of columns alone.

    Added up over the label, counts of a pair err by √(its levels) more. A column whose pair is too large to be counted
    gets what the pair would have had; the label alone no more than all others alone. Of a column and a label the pair
    is all there is.

    >>> {scope: round(share, 3) for scope, share in first_shares([8, 8, 2], 2, [(0, 2), (1, 2)]).items()}
    {(0, 2): 0.425, (1, 2): 0.425, (0,): 0.063, (1,): 0.063, (2,): 0.025}
    """
    paired = label is not None and any(len(scope) == 2 and label in scope for scope in scopes)
    beside = sizes[label] if label is not None and paired else 1
    cells = {scope: cells_of(sizes, scope) * (beside if len(scope) == 1 else 1) for scope in scopes}
    singles = {(column,): float(size) for column, size in enumerate(sizes) if (column,) not in scopes}
    if label is None or not paired or len(sizes) < 3:
        return by_size(cells, 1.0)
    if (label,) in singles:
        singles[label,] = min(singles[label,], math.fsum(size for scope, size in singles.items() if scope != (label,)))
    return {**by_size(cells, 1 - ALONE), **by_size(singles, ALONE)}


def by_size(cells: Mapping[Scope, float], share: float) -> dict[Scope, float]:
    """In proportion to cells^(2/3), which minimises the sum of the tables' L1 errors."""
    weights = {scope: count ** (2 / 3) for scope, count in cells.items()}
    whole = math.fsum(weights.values())
    return {scope: share * weight / whole for scope, weight in weights.items()}


def on_simplex(counts: Numbers, total: float) -> Numbers:
    """The nearest counts that are not negative and add up to `total`.

    >>> on_simplex(np.array([3.0, -1.0]), 2.0).tolist()
    [2.0, 0.0]
    """
    flat = counts.ravel()
    ordered = np.sort(flat)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, flat.size + 1)
    last = int(np.flatnonzero(ordered > excess)[-1]) if total > 0 else 0
    return np.maximum(flat - excess[last], 0.0).reshape(counts.shape)


def noisy_total(tables: Sequence[CountTable]) -> int:
    """The number of rows as the tables tell it, where it is not public; at least one."""
    weights = _weights(tables)
    total = math.fsum(weight * float(table.counts.sum()) for weight, table in zip(weights, tables, strict=True))
    return max(1, round(total / math.fsum(weights)))


def is_told(total: float, tables: Sequence[CountTable]) -> bool:
    """Whether a noisy number of rows is more than its own noise."""
    return total > _TOLD / math.sqrt(math.fsum(_weights(tables)))


def _weights(tables: Sequence[CountTable]) -> list[float]:
    """The precision of each table's sum."""
    return [1 / (table.deviation**2 * table.counts.size) for table in tables]


def merged(tables: Sequence[CountTable]) -> list[CountTable]:
    """One table for each scope: what was measured several times, each weighed by its precision."""
    found: dict[Scope, CountTable] = {}
    for one in tables:
        other = found.get(one.scope)
        if other is None:
            found[one.scope] = one
            continue
        mine, theirs = one.deviation**-2, other.deviation**-2
        counts = (mine * one.counts + theirs * other.counts) / (mine + theirs)
        found[one.scope] = CountTable(one.scope, counts, (mine + theirs) ** -0.5)
    return list(found.values())


def sampling_floor(expected: Numbers) -> float:
    """How far counts with these expectations lie from them by chance alone, in L1."""
    held = np.maximum(expected, 0.0)
    return float(np.sum(np.sqrt(2 / np.pi * held) * (1 - np.exp(-2 * held))))


def _label_counts(turned: Sequence[tuple[CountTable, Numbers]]) -> Numbers:
    """Counts of the label by all tables that hold it, each as far as its noise lets one believe it."""
    weights = [1 / (table.deviation**2 * len(counts)) for table, counts in turned]
    sums = sum(weight * counts.sum(axis=0) for weight, (_, counts) in zip(weights, turned, strict=True))
    return np.asarray(sums) / math.fsum(weights)


@dataclass(frozen=True, eq=False)
class StartModel:
    """Counts of the label, and of every other column for each value of the label (one row each for none)."""

    label: int | None
    of_label: Numbers
    beside: Mapping[int, Numbers]  # column -> (levels of the column, levels of the label)
    total: float

    @classmethod
    def of(cls, measured: Sequence[CountTable], label: int | None, total: float) -> StartModel:
        tables = merged(measured)
        if label is None:
            alone = {table.scope[0]: on_simplex(table.counts, total)[:, None] for table in tables}
            return cls(None, np.array([total]), alone, total)
        return cls._beside_label(tables, label, total)

    @classmethod
    def _beside_label(cls, tables: Sequence[CountTable], label: int, total: float) -> StartModel:
        turned = [(table, _beside(table, label)) for table in tables if label in table.scope]
        of_label = on_simplex(_label_counts(turned), total)
        beside: dict[int, Numbers] = {
            table.scope[0]: np.outer(on_simplex(table.counts, total), of_label / max(total, 1e-9))
            for table in tables
            if label not in table.scope
        }
        for table, counts in turned:
            for column in (one for one in table.scope if one != label):
                levels = [on_simplex(counts[:, level], held) for level, held in enumerate(of_label)]
                beside[column] = np.stack(levels, axis=1)
        return cls(label, of_label, beside, total)

    def expected(self, scope: Scope) -> Numbers:
        """Counts of a pair of columns if they are independent given the label."""
        first, second = (self.beside[column] for column in scope)
        return np.einsum("ay,by->ab", first, second / np.maximum(self.of_label, 1e-9))

    def potentials(self, scopes: Sequence[Scope]) -> dict[Scope, Numbers]:
        """Potentials of these tables whose product is this model, up to counts so small that they are noise."""
        floor = 1e-3
        if self.label is None:
            return {scope: np.log(np.maximum(self.beside[scope[0]][:, 0], floor)) for scope in scopes}
        label = np.log(np.maximum(self.of_label, floor))
        count = sum(self.label in scope for scope in scopes)
        found: dict[Scope, Numbers] = {}
        for scope in scopes:
            if scope == (self.label,):
                found[scope] = label
                continue
            (column,) = (one for one in scope if one != self.label)
            if self.label not in scope:
                found[scope] = np.log(np.maximum(self.beside[column].sum(axis=1), floor))
                continue
            given = np.log(np.maximum(self.beside[column], floor)) - label * (1 - 1 / count)
            found[scope] = given if scope[1] == self.label else given.T
        return found

    def share(self, column: int) -> Numbers:
        """The column's own distribution."""
        counts = self.of_label if column == self.label else self.beside[column].sum(axis=1)
        return counts / max(float(counts.sum()), 1e-9)


def _beside(table: CountTable, label: int) -> Numbers:
    """Levels of the other column by those of the label; one row where the label stands alone."""
    if len(table.scope) == 1:
        return table.counts[None, :]
    return table.counts if table.scope[1] == label else table.counts.T
