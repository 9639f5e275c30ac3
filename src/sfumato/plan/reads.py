"""All that a publication reads: what it shows, and what its making needs beside that.

In:   a Network, a Request.
Out:  names of nodes. What is held against promises, and what an act is given, are asked for here and nowhere else.
Not here: the cells behind these nodes (plan/units.py), their domains (plan/wanted.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.lang.fair import fair_wish
from sfumato.lang.term import match
from sfumato.network.network import Network

if TYPE_CHECKING:
    from sfumato.plan.request import Request

__all__ = ["fair_groups", "read_by"]


def read_by(network: Network, request: Request) -> tuple[str, ...]:
    """Every node that a publication reads: the term's own, and the groups between which it has to be fair."""
    return tuple(dict.fromkeys((*request.nodes, *fair_groups(network, request.name))))


def fair_groups(network: Network, publication: str) -> tuple[str, ...]:
    """The variable that says who is in which group, where the study wants a publication to be fair; one, if it fits."""
    wish = fair_wish(network.spec, publication)
    if wish is None:
        return ()
    return tuple(node.name for node in network.nodes if match(wish.requirement.group, node.atom) is not None)
