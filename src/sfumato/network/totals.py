"""Sums in whole numbers, over all rows at once.

In:   the values of a group's individuals, the questions about them.
Out:  Sums: whole numbers of public grid steps, one array for each entry of a question.
Not here: what is added up and how far one person moves it (questions/).

Rows are told apart by the axes of many questions at once and added up by one grouped query; what that gives, a row for
each cell, is added up further for each question. So twenty questions cost about what one costs, and no row is held.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.network.aggregate import AggregateNode
from sfumato.network.expression import sql_name
from sfumato.network.facts import TableFacts
from sfumato.network.functions import sql_number
from sfumato.network.tables import TableRoom
from sfumato.questions.axis import Axis
from sfumato.questions.grid import Grid
from sfumato.questions.sums import Entry, Sums

__all__ = ["number_of", "totals"]

#: Rows that are in no cell of some axis, because a value is none of its levels.
_NOWHERE = -1
#: Questions share a pass over the rows while their axes together have at most so many cells: sums that do not fit into
#: a processor's cache cost more than a second pass over other columns.
_CELLS = 1 << 8

#: How many rows there are.
_EACH = "count(*)"
#: An entry of a question by its name and place; its sums and how many rows are in them; what one pass may answer.
_Asked = tuple[str, int]
#: More cut points than this are not written into a query: 80,000 of them are 12 MB of SQL and minutes of planning.
_MOST_CUTS = 256
_Found = tuple[NDArray[Any], NDArray[Any]]
_Key = tuple[frozenset[Axis], bool]


def number_of(node: AggregateNode, sums: Sums) -> float:
    """An aggregate where a number is needed; not a number where it is several."""
    return float(node.question.truth(sums)[0]) if node.question.is_number else float("nan")


def totals(
    room: TableRoom,
    table: str,
    nodes: Sequence[AggregateNode],
    columns: Mapping[str, str],
    facts: TableFacts | None = None,
) -> list[Sums]:
    """The sums of all questions over one table or view of ours; as few passes over the rows as cells allow.

    `facts` are what is known of the columns whatever they hold: they save work and change no sum.
    """
    known = facts or TableFacts()
    found: dict[_Asked, _Found] = {}
    by_name = {node.name: node for node in nodes}
    summed = []
    for node in (node for node in nodes if not node.question.of_texts):
        if _is_table(node.question.entries()):
            found |= _tables(room, table, node, columns, known)
        else:
            summed.append(node)
    for axes, entries in _passes(_by_axes(summed), by_name):
        found |= _OneScan(room, table, axes, columns, known).grouped(entries, by_name)
    return [_texts(room, table, node, columns) if node.question.of_texts else _sums(node, found) for node in nodes]


def _is_table(entries: Sequence[Entry]) -> bool:
    """Whether rows are counted, by several axes each for itself."""
    return len(entries) > 1 and all(map(_counts, entries))


def _by_axes(nodes: Sequence[AggregateNode]) -> dict[_Key, list[_Asked]]:
    """Entries by what tells their rows apart."""
    asked: dict[_Key, list[_Asked]] = {}
    for node in nodes:
        for place, entry in enumerate(node.question.entries()):
            key = frozenset(node.question.axes[axis] for axis in entry.axes), entry.grid is None
            asked.setdefault(key, []).append((node.name, place))
    return asked


@dataclass
class _Shared:
    """Questions that one query answers: what rows are told apart by, and which variables it reads anyway."""

    axes: frozenset[Axis]
    entries: list[_Asked]
    read: set[str]

    def fits(self, axes: frozenset[Axis]) -> bool:
        """Rows that are told apart in the same way anyway are gone through once, however many cells there are."""
        return axes == self.axes or _size(self.axes | axes) <= _CELLS

    def suits(self, axes: frozenset[Axis], parents: Collection[str]) -> tuple[bool, int]:
        """How little an entry would add: no axis best of all, then the fewest columns."""
        return axes <= self.axes, len(self.read & set(parents))


def _passes(
    asked: Mapping[_Key, Sequence[_Asked]], nodes: Mapping[str, AggregateNode]
) -> list[tuple[tuple[Axis, ...], list[_Asked]]]:
    """Which questions one query answers: rows are told apart by all of their axes while those have few cells.

    Whole numbers are added up further exactly; sums of floats stay on their own.
    """
    alone = [(axes, list(entries)) for (axes, floating), entries in asked.items() if floating]
    whole = {axes: entries for (axes, floating), entries in asked.items() if not floating}
    shared: list[_Shared] = []
    for axes in sorted(whole, key=_size, reverse=True):
        for entry in whole[axes]:
            parents = nodes[entry[0]].parents
            best = _best(shared, axes, parents)
            best.axes |= axes
            best.entries.append(entry)
            best.read |= set(parents)
    return [(_in_order(axes), entries) for axes, entries in (*alone, *((one.axes, one.entries) for one in shared))]


def _in_order(axes: frozenset[Axis]) -> tuple[Axis, ...]:
    """The same in every process. An axis may have thousands of ends: they are written out where names do not tell."""
    one_by_one = len({axis.variable for axis in axes}) == len(axes)
    return tuple(sorted(axes, key=(lambda axis: axis.variable) if one_by_one else repr))


def _best(shared: list[_Shared], axes: frozenset[Axis], parents: Collection[str]) -> _Shared:
    """Where an entry costs least; a pass of its own if it fits into none."""
    fitting = [one for one in shared if one.fits(axes)]
    if not fitting:
        shared.append(_Shared(axes, [], set()))
        return shared[-1]
    return max(fitting, key=lambda one: one.suits(axes, parents))


def _size(axes: Collection[Axis]) -> int:
    return math.prod(axis.size for axis in axes)


def _texts(room: TableRoom, table: str, node: AggregateNode, columns: Mapping[str, str]) -> Sums:
    """How many people have each text that occurs, every one once."""
    text = sql_name(columns[node.question.axes[0].variable])
    counted = f"({node.condition.to_sql(columns)}) AND {text} IS NOT NULL"
    rows = room.run(f"SELECT {text}, count(DISTINCT id) FROM {table} WHERE {counted} GROUP BY 1 ORDER BY 1")
    counts = np.array([int(row[1]) for row in rows], dtype=object)
    return Sums(node.question.entries(), (counts,), (counts,), sum(counts), tuple(str(row[0]) for row in rows))


def _sums(node: AggregateNode, found: Mapping[_Asked, _Found]) -> Sums:
    entries = node.question.entries()
    parts = [found[node.name, place] for place in range(len(entries))]
    units, counts = tuple(part[0] for part in parts), tuple(part[1] for part in parts)
    return Sums(entries, units, counts, int(sum(counts[0])) if counts else 0)


@dataclass(frozen=True)
class _OneScan:
    """One query over the rows: many entries, and how many rows there are of each, in every cell of some axes."""

    room: TableRoom
    table: str
    axes: tuple[Axis, ...]
    columns: Mapping[str, str]
    facts: TableFacts

    def grouped(self, asked: Sequence[_Asked], nodes: Mapping[str, AggregateNode]) -> dict[_Asked, _Found]:
        """What was asked for, alike sums once."""
        added: dict[str, int] = {}
        #: What is added up before it is rounded, by its SQL: computed once and not wherever it is compared.
        values: dict[str, str] = {}
        wanted: list[tuple[_Added, int, int]] = []
        for name, place in asked:
            node = nodes[name]
            one = _added(node, node.question.entries()[place], self.columns, values, self.facts)
            texts = (self._of_counted(node, one.text), self._of_counted(node, _EACH))
            wanted.append((one, *(added.setdefault(text, len(added)) for text in texts)))  # type: ignore[arg-type]
        rows = self._rows(list(added), values)
        places = {
            axis: _places(self._column(rows, at), axis, self.facts) for at, axis in enumerate(self.axes, len(added))
        }
        self.facts.filled.update(self._filled(rows, len(added)))
        given = [np.array([row[at] or 0 for row in rows], dtype=object) for at in range(len(added))]
        if any(max(given[counts], default=0) > one.most_rows for one, _, counts in wanted):
            return replace(self, facts=replace(self.facts, known={})).grouped(asked, nodes)
        return {
            (name, place): _in_cells(
                nodes[name].question, place, places, one.units(given[sums], given[counts]), given[counts]
            )
            for (name, place), (one, sums, counts) in zip(asked, wanted, strict=True)
        }

    def _filled(self, rows: Sequence[tuple[Any, ...]], first: int) -> Iterator[str]:
        """Variables of listed words of which no row has none."""
        for at, axis in enumerate(self.axes, first):
            if axis.levels and axis.variable in self.facts.keys and None not in self._column(rows, at):
                yield axis.variable

    def _of_counted(self, node: AggregateNode, text: str) -> str:
        """A sum over those rows that the node's condition counts. A count alone needs no filter, which costs more."""
        if node.condition.trivial:
            return text
        condition = node.condition.to_sql(self.columns)
        return f"count_if({condition})" if text == _EACH else f"{text} FILTER (WHERE {condition})"

    @staticmethod
    def _column(rows: Sequence[tuple[Any, ...]], at: int) -> list[Any]:
        return [row[at] for row in rows]

    def _rows(self, added: Sequence[str], values: Mapping[str, str]) -> list[tuple[Any, ...]]:
        keys = [_key(axis, self.columns, self.facts) for axis in self.axes]
        grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
        scaled = "".join(f", {value} AS {name}" for value, name in values.items())
        below = f"(SELECT *{scaled} FROM {self.table})" if scaled else self.table
        return self.room.run(f"SELECT {', '.join([*added, *keys])} FROM {below}{grouping}")


@dataclass(frozen=True)
class _Added:
    """SQL for a sum, and what makes it whole numbers of steps: `grid` where plain values were added up."""

    text: str
    grid: Grid | None = None
    most_rows: float = math.inf

    def units(self, sums: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        if self.grid is None:
            return sums
        steps, shift = 1 / Fraction(self.grid.step), Fraction(self.grid.offset) / Fraction(self.grid.step)
        pairs = zip(sums, counts, strict=True)
        return np.array([int(total) * int(steps) - int(count) * int(shift) for total, count in pairs], dtype=object)


def _in_cells(
    question: Any, place: int, places: Mapping[Axis, NDArray[np.int64]], units: NDArray[Any], counts: NDArray[Any]
) -> _Found:
    """The groups of a query added up into the cells of one entry."""
    entry = question.entries()[place]
    own = [question.axes[axis] for axis in entry.axes]
    cells = _cells([places[axis] for axis in own], own, len(counts))
    inside = np.flatnonzero(cells != _NOWHERE)
    totals_of = np.zeros(_size(own), dtype=float if entry.grid is None else object)
    numbers = np.zeros(_size(own), dtype=object)
    np.add.at(totals_of, cells[inside], units[inside])
    np.add.at(numbers, cells[inside], counts[inside])
    return totals_of, numbers


def _key(axis: Axis, columns: Mapping[str, str], facts: TableFacts) -> str:
    """What rows are grouped by: the place among cut points, or the value where values are listed or cuts are many."""
    if axis.levels and axis.variable in facts.keys:
        return facts.keys[axis.variable].column
    column = sql_name(columns[axis.variable])
    if axis.levels:
        return column
    if not axis.cuts:
        return "CAST(0 AS BIGINT)"  # one cell; a plain 0 would be a column's number
    value = column if axis.variable in facts.known else f"coalesce({column}::DOUBLE, 'nan')"
    return value if len(axis.cuts) > _MOST_CUTS else _between(value, axis.cuts, 0)


def _between(value: str, cuts: Sequence[float], first: int) -> str:
    """SQL for how many cuts are not above the value, halving them. NaN is larger than everything, so that every
    individual falls into exactly one cell."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    below, above = _between(value, cuts[:middle], first), _between(value, cuts[middle + 1 :], first + middle + 1)
    return f"(CASE WHEN {value} >= {sql_number(cuts[middle])} THEN {above} ELSE {below} END)"


def _places(keys: Sequence[Any], axis: Axis, facts: TableFacts) -> NDArray[np.int64]:
    """The place on one axis of every group."""
    if not axis.levels:
        return _between_cuts(np.array(keys), axis)
    known: dict[Any, int] = {level: place for place, level in enumerate(axis.levels)}
    if axis.variable in facts.keys:
        known[None] = known.get(facts.keys[axis.variable].absent, _NOWHERE)
    return np.array([known.get(key, _NOWHERE) for key in keys], dtype=np.int64)


def _between_cuts(keys: NDArray[Any], axis: Axis) -> NDArray[np.int64]:
    """Keys that are places already, or the values of an axis with many cuts; NaN is larger than everything."""
    many = len(axis.cuts) > _MOST_CUTS
    return (np.searchsorted(np.array(axis.cuts), keys.astype(float), side="right") if many else keys).astype(np.int64)


def _cells(places: Sequence[NDArray[np.int64]], axes: Sequence[Axis], rows: int) -> NDArray[np.int64]:
    """The cell of each group, the last axis running fastest."""
    cell, lost = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=bool)
    for place, axis in zip(places, axes, strict=True):
        cell, lost = cell * axis.size + place, lost | (place == _NOWHERE)
    return np.where(lost, _NOWHERE, cell)


def _tables(
    room: TableRoom, table: str, node: AggregateNode, columns: Mapping[str, str], facts: TableFacts
) -> dict[_Asked, _Found]:
    """Many tables of counts: one query counts the rows that are alike along all axes, and those are added up."""
    axes, entries = node.question.axes, node.question.entries()
    names = [f"axis{place}" for place in range(len(axes))]
    shown = ", ".join(f"{_key(axis, columns, facts)} AS {name}" for name, axis in zip(names, axes, strict=True))
    alike = room.arrow(
        f"SELECT {shown}, count(*) AS n FROM {table} WHERE {node.condition.to_sql(columns)} GROUP BY {', '.join(names)}"
    )
    codes = [_codes(alike[name], axis, facts) for name, axis in zip(names, axes, strict=True)]
    inside = np.all([code != _NOWHERE for code in codes], axis=0)
    codes = [code[inside] for code in codes]
    weights = alike["n"].to_numpy()[inside]
    found: dict[_Asked, _Found] = {}
    for place, entry in enumerate(entries):
        shape = [axes[axis].size for axis in entry.axes]
        cell = np.ravel_multi_index([codes[axis] for axis in entry.axes], shape)
        size = int(np.prod(shape, dtype=np.int64))
        counted = np.bincount(cell, weights, size).astype(np.int64).astype(object)  # exact up to 2^53 rows
        found[node.name, place] = counted, counted
    return found


def _codes(column: pa.ChunkedArray, axis: Axis, facts: TableFacts) -> NDArray[np.int64]:
    if not axis.levels:
        return _between_cuts(column.to_numpy(), axis)
    if axis.variable in facts.keys:
        column = column.fill_null(facts.keys[axis.variable].absent)
    levels = pa.array(axis.levels).cast(column.type) if column.type != pa.null() else pa.array(axis.levels)
    found = pc.index_in(column, value_set=levels)  # type: ignore[attr-defined]  # made when it is imported
    return found.fill_null(_NOWHERE).to_numpy().astype(np.int64)


def _counts(entry: Entry) -> bool:
    """Whether an entry is how many rows there are in each of its cells."""
    return bool(entry.axes) and not entry.factors and entry.grid is not None and entry.grid.step == 1.0


def _added(
    node: AggregateNode, entry: Entry, columns: Mapping[str, str], values: dict[str, str], facts: TableFacts
) -> _Added:
    """SQL for the sum of an entry's whole numbers; what they are rounded from gets a name among `values`."""
    if not entry.factors and entry.grid is not None and entry.grid.step == 1.0:
        return _Added(_EACH)
    product = _product(node, entry, columns)
    if entry.grid is None:
        return _Added(f"sum({product})")
    known = facts.known.get(node.question.values[entry.factors[0]]) if len(entry.factors) == 1 else None
    if known is None or any(entry.centres) or not known.inside(entry.grid):
        return _Added(f"sum({_units(entry.grid, product, values)})")
    if known.adds_up(entry.grid):
        return _Added(f"sum({product})", entry.grid, known.most_rows())
    return _Added(f"sum({_steps(entry.grid, product)}::BIGINT)")


def _product(node: AggregateNode, entry: Entry, columns: Mapping[str, str]) -> str:
    """SQL for what one row adds before it is rounded."""
    parts = []
    for factor, centre in entry.centred:
        value = f"{sql_name(columns[node.question.values[factor]])}::DOUBLE"
        parts.append(f"({value} - {sql_number(centre)})" if centre else value)
    return f"({' * '.join(parts or ['1.0e0'])})"


def _steps(grid: Grid, value: str) -> str:
    """A contribution in grid steps. A power of two: multiplying rounds as dividing does, and is quicker."""
    moved = f"({value} - {sql_number(grid.offset)})" if grid.offset else value
    return f"({moved} * {sql_number(1 / grid.step)})"


def _units(grid: Grid, value: str, values: dict[str, str]) -> str:
    """A contribution as a whole number of grid steps, clipped to its public bounds whatever the value is."""
    steps = values.setdefault(_steps(grid, value), f"steps{len(values)}")
    low, high = sql_number(grid.low), sql_number(grid.high)
    outside = f"CASE WHEN isnan({steps}) THEN {grid.low} ELSE least(greatest({steps}, {low}), {high})::BIGINT END"
    # Almost all are inside, and least and greatest cost three times the comparison; NaN is not inside.
    return f"(CASE WHEN {steps} BETWEEN {low} AND {high} THEN {steps}::BIGINT ELSE {outside} END)"
