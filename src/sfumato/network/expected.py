"""Aggregates over random variables: every individual contributes what it is expected to.

In:   an aggregate, the inference of one group, the group's evaluated table.
Out:  the expected contribution to each entry as an expression; their sum in whole numbers of public grid steps.
Not here: aggregates over what is known of everybody (network/totals.py), what one person moves (network/aggregate.py).
Proof: docs/proofs/expectations.md

A condition on random variables counts by its probability. The contribution (E[v·c], E[c]) of a condition c and a value
v is a mean of (0, 0) and points (v, 1), so it lies in their convex hull and one person moves a sum of such
contributions no further than a sum of certain ones. Rounding to the grid keeps them in that hull exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.network.aggregate import AggregateNode, Grid
from sfumato.network.condition import Comparison, Condition, Every, LevelIs
from sfumato.network.expression import Constant, Expression, Reference
from sfumato.network.indicator import Indicator
from sfumato.network.inference import Inference
from sfumato.network.totals import AggregateValue

__all__ = ["expected_entries", "expected_total"]

Units = NDArray[np.int64]
#: A little less than one: a limit computed in floating point then lies inside the exact one.
_INSIDE = 1 - 2.0**-50


def expected_entries(node: AggregateNode, inference: Inference) -> tuple[Expression, ...]:
    """What one individual is expected to add to each entry; of a mean: to Σ (v - offset) and to the count."""
    counted = Indicator(node.condition)
    values = [Reference(name) for name in node.values]
    match node.kind:
        case "count":
            bodies: list[Expression] = [counted]
        case "sum":
            bodies = [values[0] * counted]
        case "mean":
            offset = node.grids[0].offset if node.grids else 0.0
            bodies = [(values[0] - Constant(offset)) * counted, counted]
        case "moment2":
            bodies = [a * b * counted for a, b in combinations_with_replacement(values, 2)]
        case _:
            bodies = [Indicator(Every((node.condition, part))) for part in _bins(node)]
    return tuple(inference.expected(body) for body in bodies)


def _bins(node: AggregateNode) -> list[Condition]:
    name = node.values[0]
    if node.levels:
        return [LevelIs(name, (level,)) for level in node.levels]
    value = Reference(name)
    cuts = [Constant(cut) for cut in node.cuts]
    if not cuts:
        return [Every(())]
    inner: list[Condition] = [Every((Comparison(">=", value, a), Comparison("<", value, b))) for a, b in pairwise(cuts)]
    return [Comparison("<", value, cuts[0]), *inner, Comparison(">=", value, cuts[-1])]


def expected_total(
    node: AggregateNode, entries: Sequence[Expression], table: pa.Table, columns: Mapping[str, str]
) -> AggregateValue:
    """The expected contributions of all rows, rounded to the grid and added up."""
    names = frozenset().union(*(part.references() for part in entries))
    values = {name: table[columns[name]].to_numpy(zero_copy_only=False) for name in names}
    found = [_column(part, values, table.num_rows) for part in entries]
    if node.grids is None:
        return AggregateValue(np.array([float(np.sum(column)) for column in found]))
    units = tuple(_exact_sum(column) for column in _units(node, node.grids, found))
    weight = units[-1] * Fraction(node.grids[-1].step) if node.kind in ("count", "mean") else Fraction(0)
    return AggregateValue.of(node, units, weight)


def _column(part: Expression, values: Mapping[str, Any], rows: int) -> NDArray[np.float64]:
    found = np.broadcast_to(np.asarray(part.evaluate(values), dtype=np.float64), (rows,))
    return np.nan_to_num(found, nan=0.0, posinf=np.finfo(float).max, neginf=np.finfo(float).min)


def _units(node: AggregateNode, grids: Sequence[Grid], found: Sequence[NDArray[np.float64]]) -> list[Units]:
    """Contributions as whole numbers of grid steps, inside the hull of what a counted row could add."""
    match node.kind:
        case "count":
            return [_rounded(found[0], grids[0], 0, grids[0].high)]
        case "mean":
            counts = _rounded(found[1], grids[1], 0, grids[1].high)
            share = counts * grids[1].step * _INSIDE
            ends = [np.trunc(end * share) for end in (grids[0].low, grids[0].high)]
            return [np.clip(_rounded(found[0], grids[0], grids[0].low, grids[0].high), *ends).astype(np.int64), counts]
        case "histogram":
            return _cumulative(found, grids[0])
    return [_rounded(x, grid, min(grid.low, 0), max(grid.high, 0)) for x, grid in zip(found, grids, strict=True)]


def _rounded(column: NDArray[np.float64], grid: Grid, low: int, high: int) -> Units:
    return np.clip(np.rint(column / grid.step), low, high).astype(np.int64)


def _cumulative(found: Sequence[NDArray[np.float64]], grid: Grid) -> list[Units]:
    """Cells rounded by their running sums: nobody's cells add up to more than one."""
    reached = np.cumsum(np.maximum(np.stack(found), 0.0), axis=0)
    steps = np.stack([_rounded(row, grid, 0, grid.high) for row in reached])
    return list(np.diff(steps, axis=0, prepend=0))


def _exact_sum(column: Units) -> int:
    """The sum in unlimited whole numbers: halves of 26 bits cannot overflow."""
    return (int(np.sum(column >> 26)) << 26) + int(np.sum(column & ((1 << 26) - 1)))
