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
from sfumato.network.network import Network, Node

__all__ = ["RowShare", "column_parts", "row_shares"]


@dataclass(frozen=True)
class RowShare:
    """Cells of one part of a person, or of none; `without` are the columns that hold the other parts' cells."""

    nodes: tuple[Node, ...]
    without: frozenset[str] = frozenset()


def column_parts(network: Network, table: str) -> dict[str, str]:
    """The part that each column of `table` belongs to, for those that belong to one.

    A column of several parts (a value for each kind of test) is refused: its rows cannot be chosen without it.
    """
    divided = {part.name for part in network.spec.divisions if not part.condition}
    listed = {(cell.partition("(")[0], part) for part, cell in network.instances if part in divided}
    found: dict[str, str] = {}
    for column in network.spec.columns:
        for functor, part in sorted(listed) if column.table == table else ():
            if functor == column.atom.functor and found.setdefault(column.name, part) != part:
                raise PlanError(
                    f"The column {column.name} of {table} holds cells of {found[column.name]} and of {part}: which of "
                    "a person's rows are used would tell one by the other. Put them into two columns or two tables, "
                    "or use one dataset for both. Nothing was planned and nothing was spent."
                )
    return found


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
