"""Cells of one table that belong to different parts of a person: rows are chosen for each without the others' cells.

In:   a Network whose study divides people by their variables (lang/divisions.py), a table.
Out:  the cells that are read together, and the columns that choosing their rows must not look at.
Not here: how rows are chosen (network/rows.py), whether a publication keeps to its part (plan/units.py).

Of a person with more rows than are kept some are chosen by their content. Were it the whole content, another age would
choose another income, and what is promised about ages alone would not hold for incomes that are shown.
Proof: docs/proofs/units.md
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.errors import PlanError
from sfumato.lang.spec import Column
from sfumato.network.network import Network, Node

__all__ = ["RowShare", "column_parts", "row_shares"]


@dataclass(frozen=True)
class RowShare:
    """Cells of one part of a person, or of none; `without` are the columns that hold the other parts' cells."""

    nodes: tuple[Node, ...]
    without: frozenset[str] = frozenset()


def column_parts(network: Network, table: str) -> dict[str, str]:
    """The part that each column of `table` belongs to, for those that belong to one.

    Refused are a column of several parts (a value for each kind of test), for its rows cannot be chosen without it, and
    cells of several parts in a table of which several rows of a person are added up: which rows these are would be
    chosen by the cells of all parts.
    """
    found: dict[str, str] = {}
    for part, cell in _divided_cells(network):
        for column in _columns_of(network, cell):
            if column.table == table and found.setdefault(column.name, part) != part:
                raise _refused(f"The column {column.name} of {table} holds cells", found[column.name], part)
    limit = next((one for one in network.spec.row_limits if one.table == table), None)
    if limit is not None and limit.maximum > 1 and len(parts := sorted(set(found.values()))) > 1:
        raise _refused(f"The table {table}, of which {limit.maximum} rows of a person count, holds cells", *parts[:2])
    return found


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


def row_shares(network: Network, table: str, nodes: Iterable[Node]) -> list[RowShare]:
    """The cells of `table`, those of each part by themselves."""
    parts = column_parts(network, table)
    shares: dict[str | None, list[Node]] = {}
    for node in nodes:
        shares.setdefault(parts.get(node.source.name) if node.source is not None else None, []).append(node)
    return [
        RowShare(tuple(own), frozenset(column for column, other in parts.items() if part and other != part))
        for part, own in shares.items()
    ] or [RowShare(())]
