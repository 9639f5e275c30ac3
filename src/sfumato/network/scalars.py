"""Values that are one number: of variables that belong to nobody, and of people whom a study writes down itself.

In:   the nodes, parents first; the tables some of them are read from.
Out:  their values, by name; `rests_on_aggregate`, for which of them sums have to be there first.
Not here: what every individual has (network/evaluate.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.lang.spec import Spec
from sfumato.network.cells import Cell, cell_of, final_value, placed, where
from sfumato.network.expression import sql_level
from sfumato.network.functions import sql_number
from sfumato.network.network import Network, Node
from sfumato.network.tables import TableRoom

__all__ = ["add_scalars", "literal", "plain_value", "rests_on_aggregate"]


def rests_on_aggregate(network: Network, node: Node) -> bool:
    """Whether a shared node rests on an aggregate."""
    names = {aggregate.name for aggregate in network.aggregates}
    by_name = {other.name: other for other in network.shared}
    waiting, met = [node.name], set()
    while waiting:
        name = waiting.pop()
        if name in names:
            return True
        if name in by_name and name not in met:
            met.add(name)
            waiting += by_name[name].parents
    return False


def add_scalars(
    room: TableRoom, spec: Spec, people: frozenset[str], nodes: Sequence[Node], values: dict[str, Any]
) -> None:
    """Put the values of nodes that are one number into `values`, parents first."""
    for node in nodes:
        if node.source is not None:
            values[node.name] = _single(room, cell_of(spec, node, people), node)
            continue
        for level, chance in zip(node.levels, node.probabilities, strict=False):
            values[f"{node.name}={level}"] = chance.evaluate(values)
        if node.expression is not None:
            values[node.name] = node.expression.evaluate(values)
        elif not node.probabilities:
            values[node.name] = np.nan if node.missing is None or isinstance(node.missing, str) else node.missing


def _single(room: TableRoom, cell: Cell, node: Node) -> Any:
    if cell.table not in room.names:
        return np.nan
    kinds = room.types(cell.table, [cell.column, *(column for column, _ in cell.matches)])
    inner = f"SELECT min({placed(node, cell.column, kinds[cell.column])}) AS v FROM {room.names[cell.table]}"
    return room.run(f"SELECT {final_value(node, 'v')} FROM ({inner} WHERE {where(cell.matches)})")[0][0]


def plain_value(value: Any) -> float | str:
    """A shared value as it is handed back."""
    return value if isinstance(value, str) else float(value)


def literal(value: Any) -> str:
    """SQL for a word or a number; not a number where there is none."""
    if isinstance(value, str):
        return sql_level(value)
    return sql_number(np.nan if value is None else float(value))
