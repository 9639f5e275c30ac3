"""Cells of one table that belong to different parts of a person: rows are chosen for each without the others' cells.

In:   a Network whose study divides people by their variables (lang/divisions.py), a table.
Out:  the cells that are read together, and the columns that may choose their rows.
Not here: how rows are chosen (network/rows.py), whether a publication keeps to its part (plan/units.py).

Of a person with more rows than are kept some are chosen by their content. Were it the whole content, another age would
choose another income, and what is promised about ages alone would not hold for incomes that are shown. What a column is
that no cell of the part stands in cannot be known: a file may be declared under two names, a database may show a table
as a view. So rows are chosen for a part by its own cells, and by nothing else but who and what a row is about.
Proof: docs/proofs/units.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sfumato.errors import PlanError
from sfumato.lang.reader import goals
from sfumato.lang.spec import Column
from sfumato.lang.term import indicator, show
from sfumato.network.network import Network, Node
from sfumato.network.tables import TableLayout, layout_of

__all__ = ["RowShare", "check_parts", "chosen_by", "column_parts", "row_shares"]


@dataclass(frozen=True)
class RowShare:
    """Cells of one part of a person, or of none; `only` are the columns that choose the rows of a part."""

    nodes: tuple[Node, ...]
    only: frozenset[str] | None = None


def column_parts(network: Network, table: str) -> dict[str, str]:
    """The part that each column of `table` belongs to, for those that belong to one.

    Refused are a column of several parts (a value for each kind of test), for its rows cannot be chosen without it, and
    cells of several parts, or of one and of none, in a table of which several rows of a person are added up: which rows
    these are would be chosen by all these cells.
    """
    found: dict[str, str] = {}
    for part, cell in _divided_cells(network):
        for column in _columns_of(network, cell):
            if column.table == table and found.setdefault(column.name, part) != part:
                raise _refused(f"The column {column.name} of {table} holds cells", found[column.name], part)
    _check_several(network, table, found)
    return found


def _check_several(network: Network, table: str, found: Mapping[str, str]) -> None:
    """Rows that are added up hold cells of one part and of nothing else."""
    limit = next((one for one in network.spec.row_limits if one.table == table), None)
    if not found or limit is None or limit.maximum == 1:
        return
    what = f"The table {table}, of which {limit.maximum} rows of a person count, holds cells"
    if len(parts := sorted(set(found.values()))) > 1:
        raise _refused(what, *parts[:2])
    layout = layout_of(network.spec, table)
    known = {*found, *(column.name for _, column in layout.identities)}
    other = next((one for one in network.spec.columns if one.table == table and one.name not in known), None)
    if other is not None:
        raise PlanError(
            f"{what} of {parts[0]}, and {show(other.atom)} of none: which rows count would be chosen by both. Say "
            f"whose it is, instance_rv({parts[0]}, Instance, {show(other.atom)}), or take its column out of {table}. "
            "Nothing was planned and nothing was spent."
        )


def _divided_cells(network: Network) -> list[tuple[str, str]]:
    """The parts of a person, each with its cells."""
    divided = {part.name for part in network.spec.divisions if not part.condition}
    return [(part, cell) for part, cell in network.instances if part in divided]


def _columns_of(network: Network, cell: str) -> list[Column]:
    """Where a cell is read; of one that nothing asks for, wherever it may be."""
    read = [node.source for node in network.variants(cell) if node.source is not None]
    return read or [one for one in network.spec.columns if one.atom.functor == cell.partition("(")[0]]


def _refused(what: str, one: str, other: str) -> PlanError:
    return PlanError(
        f"{what} of {one} and of {other}: which of a person's rows are used would tell one by the other. Put them into "
        "tables of their own, use one row of each person (rows_per_person(…, 1)) with a column for each, or use one "
        "dataset for both. Nothing was planned and nothing was spent."
    )


def check_parts(network: Network) -> None:
    """What would let cells of one part choose the rows of another is refused."""
    tables = dict.fromkeys(column.table for column in network.spec.columns)
    parts = {table: column_parts(network, table) for table in tables}
    for table, own in parts.items():
        for part in dict.fromkeys(own.values()):
            _check_choosing(network, table, part, parts)


def _check_choosing(network: Network, table: str, part: str, parts: Mapping[str, Mapping[str, str]]) -> None:
    """Columns that say what a row is about, or in which order rows come, hold no cells of another part anywhere.

    The engine folds the case of names. What a view calls otherwise is the author's word.
    """
    layout = layout_of(network.spec, table)
    people = {indicator(goal) for dataset in network.spec.datasets for goal in goals(dataset.goal)[:1]}
    choosing = {column.name for _, column in layout.identities if indicator(column.atom) not in people}
    choosing |= _order(layout)
    for other, own in parts.items():
        for name, another in own.items():
            if another != part and name.casefold() in {column.casefold() for column in choosing}:
                raise PlanError(
                    f"The column {name} tells which rows of {table} count for {part}, and in {other} it holds cells of "
                    f"{another}: they would choose what is shown of {part}. Keep a sample of the rows "
                    f"(rows_per_person({table}, …) without first or last), give a column that is something else "
                    "another name, or use one dataset for both. Nothing was planned and nothing was spent."
                )


def _order(layout: TableLayout) -> set[str]:
    """The column that puts the rows of a person in order, if one does."""
    limit = layout.row_limit
    return {limit.column} if limit is not None and limit.column is not None else set()


def row_shares(network: Network, table: str, nodes: Iterable[Node]) -> list[RowShare]:
    """The cells of `table`, those of each part by themselves."""
    parts = column_parts(network, table)
    shares: dict[str | None, list[Node]] = {}
    for node in nodes:
        shares.setdefault(parts.get(node.source.name) if node.source is not None else None, []).append(node)
    layout = layout_of(network.spec, table)
    return [RowShare(tuple(own), None if part is None else _choosing(layout, own)) for part, own in shares.items()] or [
        RowShare(())
    ]


def _choosing(layout: TableLayout, nodes: Iterable[Node]) -> frozenset[str]:
    """The columns of these cells, of who and what a row is about, and of the order of rows."""
    cells = {node.source.name for node in nodes if node.source is not None}
    return frozenset(cells | {column.name for _, column in layout.identities} | _order(layout))


def chosen_by(network: Network, table: str, nodes: Sequence[Node]) -> frozenset[str] | None:
    """The columns that choose the rows of a table of which several of a person count; None where all do.

    Its cells belong to one part (`column_parts`), or to none.
    """
    return _choosing(layout_of(network.spec, table), nodes) if column_parts(network, table) else None
