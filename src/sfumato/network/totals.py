"""Aggregates summed up in whole numbers.

In:   the values of a group's individuals, the aggregates over them.
Out:  AggregateValue: whole numbers of public grid steps, and the same as floats.
Not here: what one person may contribute (network/aggregate.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.network.aggregate import AggregateNode
from sfumato.network.expression import sql_level, sql_name
from sfumato.network.functions import sql_number
from sfumato.network.tables import TableRoom

__all__ = ["AggregateValue", "number_of", "totals"]


@dataclass(frozen=True)
class AggregateValue:
    """An aggregate before noise: private. `units` counts steps of the public grid, `count` the rows that were counted
    (a fraction where rows count by a probability).

    `exact` is units · step + count · offset in rational numbers, `vector` the same rounded to floats: a mechanism
    takes `exact`, because what is centred afterwards must not have been rounded before. Without bounds there is no
    grid: `units`, `steps` and `exact` are None and the vector is a plain floating-point sum.
    """

    vector: NDArray[np.float64] = field(repr=False)
    units: tuple[int, ...] | None = field(default=None, repr=False)
    steps: tuple[float, ...] | None = None
    count: int | Fraction = field(default=0, repr=False)
    exact: tuple[Fraction, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, node: AggregateNode, units: tuple[int, ...], count: int | Fraction) -> AggregateValue:
        """The value of so many steps."""
        grids = node.grids or ()
        exact = tuple(
            unit * Fraction(grid.step) + count * Fraction(grid.offset) for unit, grid in zip(units, grids, strict=True)
        )
        return cls(np.array([float(entry) for entry in exact]), units, node.steps, count, exact)

    @classmethod
    def sum(cls, node: AggregateNode, parts: Sequence[AggregateValue]) -> AggregateValue:
        """The parts of all groups together."""
        if node.grids is None:
            return cls(np.sum([part.vector for part in parts] or [np.zeros(node.size)], axis=0))
        units = tuple(sum(part.units[place] for part in parts if part.units) for place in range(node.size))
        return cls.of(node, units, sum(part.count for part in parts))


def number_of(node: AggregateNode, value: AggregateValue) -> float:
    """An aggregate where a number is needed: the sum, the count, or their quotient (nobody: the lower bound)."""
    if node.kind == "mean":
        total, count = value.vector
        return float(total / count) if count else node.bounds[0].low
    return float(value.vector[0]) if node.size == 1 else float("nan")


def totals(
    room: TableRoom, table: pa.Table, nodes: Sequence[AggregateNode], columns: Mapping[str, str]
) -> list[AggregateValue]:
    """All aggregates over one table in one pass."""
    if not nodes:
        return []
    room.connection.register("evaluated", table)
    try:
        chosen = [entry for node in nodes for entry in (*_entries(node, columns), _counted(node, columns))]
        (row,) = room.run(f"SELECT {', '.join(chosen)} FROM evaluated")
    finally:
        room.connection.unregister("evaluated")
    found, start = [], 0
    for node in nodes:
        cells, start = row[start : start + node.size + 1], start + node.size + 1
        found.append(_value(node, cells))
    return found


def _value(node: AggregateNode, cells: Sequence) -> AggregateValue:
    *entries, count = cells
    if node.grids is None:
        return AggregateValue(np.array([0.0 if cell is None else float(cell) for cell in entries]))
    return AggregateValue.of(node, tuple(0 if cell is None else int(cell) for cell in entries), int(count))


def _counted(node: AggregateNode, columns: Mapping[str, str]) -> str:
    return f"count(*) FILTER (WHERE {node.condition.to_sql(columns)})"


def _entries(node: AggregateNode, columns: Mapping[str, str]) -> list[str]:
    counted = f"FILTER (WHERE {node.condition.to_sql(columns)})"
    names = [f"{sql_name(columns[name])}" for name in node.values]
    match node.kind:
        case "count":
            return [f"count(*) {counted}"]
        case "sum":
            return [f"sum({_units(node, 0, names[0])}) {counted}"]
        case "mean":
            return [f"sum({_units(node, 0, names[0])}) {counted}", f"sum({_units(node, 1, '1.0e0')}) {counted}"]
        case "moment2":
            pairs = combinations_with_replacement(names, 2)
            return [
                f"sum({_units(node, place, f'({a}::DOUBLE * {b}::DOUBLE)')}) {counted}"
                for place, (a, b) in enumerate(pairs)
            ]
    condition = node.condition.to_sql(columns)
    return [
        f"sum({_units(node, place, '1.0e0')}) FILTER (WHERE {condition} AND {test})"
        for place, test in enumerate(_bins(node, names[0]))
    ]


def _bins(node: AggregateNode, value: str) -> list[str]:
    if node.levels:
        return [f"{value} = {sql_level(level)}" for level in node.levels]
    cuts = [sql_number(cut) for cut in node.cuts]
    if not cuts:
        return ["TRUE"]
    # NaN counts as larger than everything, so that every individual falls into exactly one bin.
    inner = [f"({value} >= {a} AND {value} < {b})" for a, b in pairwise(cuts)]
    return [f"{value} < {cuts[0]}", *inner, f"{value} >= {cuts[-1]}"]


def _units(node: AggregateNode, place: int, value: str) -> str:
    """A contribution as a whole number of grid steps, clipped to its public bounds whatever the value is."""
    if node.grids is None:
        return f"{value}::DOUBLE"
    grid = node.grids[place]
    moved = f"({value}::DOUBLE - {sql_number(grid.offset)})" if grid.offset else f"{value}::DOUBLE"
    inside = f"least(greatest({moved} / {sql_number(grid.step)}, {sql_number(grid.low)}), {sql_number(grid.high)})"
    return f"(CASE WHEN isnan({value}::DOUBLE) THEN {grid.low} ELSE {inside}::BIGINT END)"
