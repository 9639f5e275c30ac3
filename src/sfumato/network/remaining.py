"""What expectations by points still lack: an estimate, from public ranges alone.

In:   a Network.
Out:  for every variable or aggregate that is integrated by points the largest estimated error over its inputs' ranges.
Not here: the points (network/quadrature.py), what has a closed form (network/moments.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Categories
from sfumato.network.aggregate import AggregateNode
from sfumato.network.bounds import as_bounds
from sfumato.network.expected import expected_entries
from sfumato.network.expression import Expression
from sfumato.network.indicator import flag_keys
from sfumato.network.network import Group, Network, Node
from sfumato.network.quadrature import Expectation

__all__ = ["PLACES", "remaining_errors"]

#: Places of the inputs' ranges at which the error is estimated.
PLACES = 16


def remaining_errors(network: Network, names: Iterable[str]) -> dict[str, float]:
    """The largest estimated error of those of the named nodes that are integrated by points."""
    found: dict[str, float] = {}
    for name in names:
        node = network.node(name)
        errors = [error for group in _forms(network, node) for error in _errors(network, node, group)]
        if errors and max(errors) > 0.0:
            found[name] = max(errors)
    return found


def _forms(network: Network, node: Node | AggregateNode) -> list[Group]:
    groups = [group for group in network.groups if isinstance(node, Node) or group.dataset == node.dataset]
    own = [group for group in groups if isinstance(node, AggregateNode) or group.node(node.name)]
    return own or [Group(None, (), None, ())]


def _errors(network: Network, node: Node | AggregateNode, group: Group) -> Iterator[float]:
    nodes = {other.name: other for other in (*network.shared, *group.nodes)}
    if isinstance(node, AggregateNode):
        known = node.question.expected and set(node.parents) <= nodes.keys()
        parts: tuple[Expression | None, ...] = expected_entries(node, group.inference(network.shared)) if known else ()
    else:
        parts = (nodes[node.name].expression, *nodes[node.name].probabilities)
    flags = flag_keys(node.condition) if isinstance(node, AggregateNode) else frozenset()
    for part in parts:
        for integral in _integrals(part):
            if integral.references() <= nodes.keys() | flags:
                yield float(np.max(integral.error(_places(integral.references(), nodes))))


def _integrals(part: Expression | None) -> Iterator[Expectation]:
    if isinstance(part, Expectation):
        yield part
    elif part is not None:
        for inner in part.parts():
            yield from _integrals(inner)


def _places(names: Iterable[str], nodes: Mapping[str, Node]) -> dict[str, NDArray]:
    """Values spread over the inputs' public ranges, their ends among them."""
    generator = np.random.Generator(np.random.PCG64(11))
    placed = {}
    for name in sorted(names):
        if name not in nodes:  # whether a table relates the individual to something
            placed[name] = generator.random(PLACES) < 0.5
            continue
        domain = nodes[name].domain
        if isinstance(domain, Categories):
            placed[name] = generator.choice(np.array(domain.values), PLACES)
            continue
        bounds = as_bounds(domain or nodes[name].bounds)
        low, high = (bounds.low, bounds.high) if bounds.bounded else (-1.0, 1.0)
        spread = np.concatenate([generator.permutation([0.0, 1.0]), generator.random(PLACES - 2)])
        placed[name] = low + (high - low) * spread
    return placed
