"""Sums in whole numbers, over all rows at once.

In:   the values of a group's individuals, the questions about them.
Out:  Sums: whole numbers of public grid steps, one array for each entry of a question.
Not here: what is added up and how far one person moves it (questions/).

Rows are sorted into the cells of a question's axes once, and added up by one grouped query for every set of axes:
thousands of cells cost what one costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.network.aggregate import AggregateNode
from sfumato.network.expression import sql_name
from sfumato.network.functions import sql_number
from sfumato.network.tables import TableRoom
from sfumato.questions.axis import Axis
from sfumato.questions.grid import Grid
from sfumato.questions.sums import Entry, Sums

__all__ = ["number_of", "totals"]

#: Rows that are in no cell of some axis, because a value is none of its levels.
_NOWHERE = -1


def number_of(node: AggregateNode, sums: Sums) -> float:
    """An aggregate where a number is needed; not a number where it is several."""
    return float(node.question.truth(sums)[0]) if node.question.is_number else float("nan")


def totals(room: TableRoom, table: pa.Table, nodes: Sequence[AggregateNode], columns: Mapping[str, str]) -> list[Sums]:
    """The sums of all questions over one table, one pass for each set of axes, or for many tables of counts."""
    asked: dict[tuple[Axis, ...], list[tuple[AggregateNode, int]]] = {}
    found: dict[tuple[str, int], tuple[NDArray[Any], NDArray[Any]]] = {}
    for node in (node for node in nodes if not node.question.of_texts):
        entries = node.question.entries()
        if len(entries) > 1 and all(_counts(entry) for entry in entries):
            found |= _tables(room, table, node, columns)
            continue
        for place, entry in enumerate(entries):
            asked.setdefault(tuple(node.question.axes[axis] for axis in entry.axes), []).append((node, place))
    for axes, entries in asked.items():
        found |= _grouped(room, table, axes, entries, columns)
    return [_texts(room, table, node, columns) if node.question.of_texts else _sums(node, found) for node in nodes]


def _texts(room: TableRoom, table: pa.Table, node: AggregateNode, columns: Mapping[str, str]) -> Sums:
    """How many people have each text that occurs, every one once."""
    text = sql_name(columns[node.question.axes[0].variable])
    room.connection.register("evaluated", table)
    try:
        counted = f"({node.condition.to_sql(columns)}) AND {text} IS NOT NULL"
        rows = room.run(f"SELECT {text}, count(DISTINCT id) FROM evaluated WHERE {counted} GROUP BY 1 ORDER BY 1")
    finally:
        room.connection.unregister("evaluated")
    counts = np.array([int(row[1]) for row in rows], dtype=object)
    return Sums(node.question.entries(), (counts,), (counts,), sum(counts), tuple(str(row[0]) for row in rows))


def _sums(node: AggregateNode, found: Mapping[tuple[str, int], tuple[NDArray[Any], NDArray[Any]]]) -> Sums:
    entries = node.question.entries()
    parts = [found[node.name, place] for place in range(len(entries))]
    units, counts = tuple(part[0] for part in parts), tuple(part[1] for part in parts)
    return Sums(entries, units, counts, int(sum(counts[0])) if counts else 0)


def _grouped(
    room: TableRoom,
    table: pa.Table,
    axes: tuple[Axis, ...],
    asked: Sequence[tuple[AggregateNode, int]],
    columns: Mapping[str, str],
) -> dict[tuple[str, int], tuple[NDArray[Any], NDArray[Any]]]:
    """One query: every entry over these axes, and how many rows there are of it, in every cell; alike ones once."""
    added: dict[str, int] = {}
    wanted: list[tuple[int, int]] = []
    for node, place in asked:
        counted = "" if node.condition.trivial else f" FILTER (WHERE {node.condition.to_sql(columns)})"
        texts = (f"{_added(node, node.question.entries()[place], columns)}{counted}", f"count(*){counted}")
        wanted.append(tuple(added.setdefault(text, len(added)) for text in texts))  # type: ignore[arg-type]
    keys, placed = _keys(table, axes, columns)
    room.connection.register("evaluated", placed)
    try:
        grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
        rows = room.run(f"SELECT {', '.join([*added, *keys])} FROM evaluated{grouping}")
    finally:
        room.connection.unregister("evaluated")
    cells = _cells(rows, len(added), table, axes, columns)
    size = int(np.prod([axis.size for axis in axes], dtype=np.int64))
    found: dict[tuple[str, int], tuple[NDArray[Any], NDArray[Any]]] = {}
    for (node, place), (sums, counts) in zip(asked, wanted, strict=True):
        grid = node.question.entries()[place].grid
        units, numbers = np.zeros(size, dtype=float if grid is None else object), np.zeros(size, dtype=object)
        for cell, row in zip(cells, rows, strict=True):
            if cell != _NOWHERE:
                units[cell] = float(row[sums] or 0.0) if grid is None else int(row[sums] or 0)
                numbers[cell] = int(row[counts])
        found[node.name, place] = units, numbers
    return found


def _keys(table: pa.Table, axes: Sequence[Axis], columns: Mapping[str, str]) -> tuple[list[str], pa.Table]:
    """What rows are grouped by: the values themselves where they are listed, otherwise the place among cut points."""
    keys, placed = [], table
    for number, axis in enumerate(axes):
        if axis.levels:
            keys.append(sql_name(columns[axis.variable]))
        else:
            keys.append(f"place{number}")
            placed = placed.append_column(keys[-1], pa.array(_places(table, axis, columns)))
    return keys, placed


def _cells(
    rows: Sequence[tuple[Any, ...]], first: int, table: pa.Table, axes: Sequence[Axis], columns: Mapping[str, str]
) -> list[int]:
    """The cell of each group, the last axis running fastest; the groups' keys begin at the place `first`."""
    known = [_levels(table[columns[axis.variable]], axis) if axis.levels else None for axis in axes]
    found = []
    for row in rows:
        cell = 0
        for axis, places, key in zip(axes, known, row[first:], strict=True):
            place = key if places is None else places.get(key, _NOWHERE)
            cell = _NOWHERE if _NOWHERE in (cell, place) else cell * axis.size + place
        found.append(cell)
    return found


def _levels(column: pa.ChunkedArray, axis: Axis) -> dict[Any, int]:
    """The place of each level, as the column's own type writes it."""
    levels = pa.array(axis.levels)
    levels = levels if column.type == pa.null() else levels.cast(column.type)
    return {level: place for place, level in enumerate(levels.to_pylist())}


def _tables(
    room: TableRoom, table: pa.Table, node: AggregateNode, columns: Mapping[str, str]
) -> dict[tuple[str, int], tuple[NDArray[Any], NDArray[Any]]]:
    """Many tables of counts: one query counts the rows that are alike along all axes, and those are added up."""
    axes, entries = node.question.axes, node.question.entries()
    names = [f"axis{place}" for place in range(len(axes))]
    placed = table
    for name, axis in zip(names, axes, strict=True):
        placed = placed.append_column(name, pa.array(_places(table, axis, columns)))
    room.connection.register("evaluated", placed)
    try:
        inside = " AND ".join(f"{name} <> {_NOWHERE}" for name in names)
        where, shown = f"WHERE {inside} AND ({node.condition.to_sql(columns)})", ", ".join(names)
        alike = room.arrow(f"SELECT {shown}, count(*) AS n FROM evaluated {where} GROUP BY {shown}")
    finally:
        room.connection.unregister("evaluated")
    codes = [alike[name].to_numpy() for name in names]
    weights = alike["n"].to_numpy()
    found: dict[tuple[str, int], tuple[NDArray[Any], NDArray[Any]]] = {}
    for place, entry in enumerate(entries):
        shape = [axes[axis].size for axis in entry.axes]
        cell = np.ravel_multi_index([codes[axis] for axis in entry.axes], shape)
        size = int(np.prod(shape, dtype=np.int64))
        counted = np.bincount(cell, weights, size).astype(np.int64).astype(object)  # exact up to 2^53 rows
        found[node.name, place] = counted, counted
    return found


def _counts(entry: Entry) -> bool:
    """Whether an entry is how many rows there are in each of its cells."""
    return bool(entry.axes) and not entry.factors and entry.grid is not None and entry.grid.step == 1.0


def _places(table: pa.Table, axis: Axis, columns: Mapping[str, str]) -> NDArray[np.int64]:
    """The place of each row's cell on one axis."""
    column = table[columns[axis.variable]]
    if axis.levels:
        levels = pa.array(axis.levels).cast(column.type) if column.type != pa.null() else pa.array(axis.levels)
        found = pc.index_in(column, value_set=levels)  # type: ignore[attr-defined]  # made when it is imported
        return found.fill_null(_NOWHERE).to_numpy().astype(np.int64)
    # NaN counts as larger than everything, so that every individual falls into exactly one cell.
    numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.searchsorted(np.array(axis.cuts, dtype=np.float64), numbers, side="right").astype(np.int64)


def _added(node: AggregateNode, entry: Entry, columns: Mapping[str, str]) -> str:
    """SQL for the sum of an entry's whole numbers."""
    if not entry.factors and entry.grid is not None and entry.grid.step == 1.0:
        return "count(*)"
    parts = []
    for factor, centre in entry.centred:
        value = f"{sql_name(columns[node.question.values[factor]])}::DOUBLE"
        parts.append(f"({value} - {sql_number(centre)})" if centre else value)
    return f"sum({_units(entry.grid, '(' + ' * '.join(parts or ['1.0e0']) + ')')})"


def _units(grid: Grid | None, value: str) -> str:
    """A contribution as a whole number of grid steps, clipped to its public bounds whatever the value is."""
    if grid is None:
        return value
    moved = f"({value} - {sql_number(grid.offset)})" if grid.offset else value
    inside = f"least(greatest({moved} / {sql_number(grid.step)}, {sql_number(grid.low)}), {sql_number(grid.high)})"
    return f"(CASE WHEN isnan({value}) THEN {grid.low} ELSE {inside}::BIGINT END)"
