"""Aggregates over random variables: every individual contributes what it is expected to.

In:   an aggregate, the inference of one group, the group's evaluated table.
Out:  the expected contribution to each entry as an expression; their sum in whole numbers of public grid steps.
Not here: aggregates over what is known of everybody (network/totals.py), what one person moves
(questions/).
Proof: docs/proofs/expectations.md

A condition on random variables counts by its probability. The contribution (E[v·c], E[c]) of a condition c and a value
v is a mean of (0, 0) and points (v, 1), so it lies in their convex hull and one person moves a sum of such
contributions no further than a sum of certain ones. Rounding to the grid keeps them in that hull exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.network.aggregate import AggregateNode
from sfumato.network.condition import Comparison, Condition, Every, LevelIs
from sfumato.network.expression import Constant, Expression, Reference
from sfumato.network.indicator import Indicator
from sfumato.network.inference import Inference
from sfumato.questions.axis import Axis
from sfumato.questions.grid import CHANCE, Grid
from sfumato.questions.sums import Entry, Sums

__all__ = ["expected_entries", "expected_total"]

Units = NDArray[np.int64]
#: A little less than one: a limit computed in floating point then lies inside the exact one.
_INSIDE = 1 - 2.0**-50


def expected_entries(node: AggregateNode, inference: Inference) -> tuple[Expression, ...]:
    """What one individual is expected to add to every cell of every entry; of what is centred to Σ (v - offset)."""
    question = node.question
    bodies: list[Expression] = []
    for entry in _with_chances(question.entries()):
        for cell in _cells([question.axes[axis] for axis in entry.axes]):
            counted: Expression = Indicator(Every((node.condition, *cell)) if cell else node.condition)
            bodies.append(_product(node, entry) * counted if entry.factors else counted)
    return tuple(inference.expected(body) for body in bodies)


def _with_chances(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries, and how likely a row is in each cell where something is multiplied there: a limit for it."""
    known = {entry.axes for entry in entries if not entry.factors}
    wanted = {entry.axes for entry in entries if entry.factors and entry.axes}
    return (*entries, *(Entry(CHANCE, (), axes) for axes in sorted(wanted - known)))


def _product(node: AggregateNode, entry: Entry) -> Expression:
    parts: list[Expression] = []
    for factor, centre in entry.centred:
        value = Reference(node.question.values[factor])
        parts.append(value - Constant(centre) if centre else value)
    offset = entry.grid.offset if entry.grid is not None else 0.0
    found = math.prod(parts[1:], start=parts[0])
    return found - Constant(offset) if offset else found


def _cells(axes: Sequence[Axis]) -> list[tuple[Condition, ...]]:
    return [tuple(cell) for cell in product(*(_tests(axis) for axis in axes))]


def _tests(axis: Axis) -> list[Condition]:
    if axis.levels:
        return [LevelIs(axis.variable, (level,)) for level in axis.levels]
    value = Reference(axis.variable)
    cuts = [Constant(cut) for cut in axis.cuts]
    if not cuts:
        return [Every(())]
    inner: list[Condition] = [Every((Comparison(">=", value, a), Comparison("<", value, b))) for a, b in pairwise(cuts)]
    return [Comparison("<", value, cuts[0]), *inner, Comparison(">=", value, cuts[-1])]


def expected_total(
    node: AggregateNode, parts: Sequence[Expression], table: pa.Table, columns: Mapping[str, str]
) -> Sums:
    """The expected contributions of all rows, rounded to the grid and added up."""
    names = frozenset().union(*(part.references() for part in parts))
    values = {name: table[columns[name]].to_numpy(zero_copy_only=False) for name in names}
    found = [_column(part, values, table.num_rows) for part in parts]
    question, columns_of, start = node.question, [], 0
    entries, asked = question.entries(), _with_chances(question.entries())
    for entry in asked:
        size = math.prod(question.axes[axis].size for axis in entry.axes)
        columns_of.append(found[start : start + size])
        start += size
    rounded = _rounded_entries(asked, columns_of)[: len(entries)]
    units = tuple(
        np.array([float(np.sum(one)) for one in own]) if entry.grid is None else _whole(map(_exact_sum, own))
        for entry, own in zip(entries, rounded, strict=True)
    )
    counts = tuple(_weights(entries, units, entry) for entry in entries)
    return Sums(entries, units, counts, sum(next(iter(counts), ()), Fraction(0)))


def _weights(entries: Sequence[Entry], units: Sequence[NDArray[Any]], entry: Entry) -> NDArray[Any]:
    """The expected number of rows in each cell of an entry, where it was added up too."""
    for other, own in zip(entries, units, strict=True):
        if not other.factors and other.axes == entry.axes and other.grid is not None:
            return _whole(int(unit) * Fraction(other.grid.step) for unit in own)
    size = len(units[list(entries).index(entry)])
    return _whole([Fraction(0)] * size)


def _whole(numbers: Iterable[Any]) -> NDArray[Any]:
    found = list(numbers)
    whole = np.empty(len(found), dtype=object)
    whole[:] = found
    return whole


def _column(part: Expression, values: Mapping[str, Any], rows: int) -> NDArray[np.float64]:
    found = np.broadcast_to(np.asarray(part.evaluate(values), dtype=np.float64), (rows,))
    return np.nan_to_num(found, nan=0.0, posinf=np.finfo(float).max, neginf=np.finfo(float).min)


def _rounded_entries(entries: Sequence[Entry], found: Sequence[Sequence[NDArray[np.float64]]]) -> list[list[Any]]:
    """Contributions as whole numbers of grid steps, inside the hull of what a counted row could add.

    Chances are rounded first, by their running sums over the cells: nobody's add up to more than one. What is
    multiplied stays within what a row with the rounded chance could add.
    """
    chances = {entry.axes: place for place, entry in enumerate(entries) if not entry.factors}
    done: dict[int, list[Any]] = {place: _cumulative(found[place], entries[place].grid) for place in chances.values()}
    for place, entry in enumerate(entries):
        if place in done:
            continue
        grid, counted = entry.grid, chances.get(entry.axes)
        if grid is None:
            done[place] = list(found[place])
            continue
        done[place] = [_rounded(x, grid, min(grid.low, 0), max(grid.high, 0)) for x in found[place]]
        if counted is not None:
            done[place] = _within(done[place], grid, done[counted], entries[counted].grid)
    return [done[place] for place in range(len(entries))]


def _within(whole: Sequence[Units], grid: Grid, counts: Sequence[Units], chance: Grid | None) -> list[Units]:
    """What rows with these chances could add."""
    assert chance is not None
    found = []
    for units, count in zip(whole, counts, strict=True):
        share = count * chance.step * _INSIDE
        found.append(np.clip(units, np.trunc(grid.low * share), np.trunc(grid.high * share)).astype(np.int64))
    return found


def _rounded(column: NDArray[np.float64], grid: Grid, low: int, high: int) -> Units:
    return np.clip(np.rint(column / grid.step), low, high).astype(np.int64)


def _cumulative(found: Sequence[NDArray[np.float64]], grid: Grid | None) -> list[Units]:
    """Cells rounded by their running sums: nobody's cells add up to more than one."""
    assert grid is not None
    reached = np.cumsum(np.maximum(np.stack(found), 0.0), axis=0)
    steps = np.stack([_rounded(row, grid, 0, grid.high) for row in reached])
    return list(np.diff(steps, axis=0, prepend=0))


def _exact_sum(column: Units) -> int:
    """The sum in unlimited whole numbers: halves of 26 bits cannot overflow."""
    return (int(np.sum(column >> 26)) << 26) + int(np.sum(column & ((1 << 26) - 1)))
