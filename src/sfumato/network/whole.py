"""Which cells are whole numbers by their column's type, and stay whole wherever they are moved to.

In:   a Network, its tables.
Out:  names of nodes.
Not here: published numbers that are rounded (run/view.py).
"""

from __future__ import annotations

from sfumato.core.domain import Interval
from sfumato.lang.spec import Spec
from sfumato.network.network import Network, Node
from sfumato.network.tables import TableRoom, layout_of

__all__ = ["whole_nodes"]


def whole_nodes(network: Network, room: TableRoom) -> frozenset[str]:
    """Nodes that are a cell of a column of whole numbers, and stay whole wherever they are moved to."""
    nodes = (node for group in network.groups for node in group.nodes)
    return frozenset(node.name for node in nodes if _is_whole(node, network.spec, room))


def _is_whole(node: Node, spec: Spec, room: TableRoom) -> bool:
    source, domain = node.source, node.domain
    if source is None or not isinstance(domain, Interval) or domain.calendar or source.table not in room.names:
        return False
    stated = source.name in room.whole(source.table) and not layout_of(spec, source.table).each_person
    return stated and all(float(place).is_integer() for place in _ends(node, domain, spec))


def _ends(node: Node, domain: Interval, spec: Spec) -> list[float]:
    """Where a cell may be moved to: the ends of its range, and what stands for an absent one."""
    said = spec.missing_of(node.atom)
    if said is not None and said.rule != "never" and isinstance(node.missing, int | float):
        return [domain.low, domain.high, node.missing]
    return [domain.low, domain.high]
