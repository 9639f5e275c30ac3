"""Zones: for every requirement what is sensitive, what lies between, what the observer sees.

In:   nodes, what each requirement's observer sees.
Out:  Zones (thesis §4.5, Fig. 4.5 and 4.6).
Not here: what the zones cost (plan/).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sfumato.lang.derivations import DpRv, Publication
from sfumato.lang.spec import PrivacyRequirement
from sfumato.lang.term import Compound, Term, match, show, walk
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Node, Zones, is_read
from sfumato.network.nodes import Draft

__all__ = ["observed_by", "seen", "zones_of"]


def seen(what: Term, nodes: Mapping[str, Node | AggregateNode] | Mapping[str, Draft]) -> frozenset[str]:
    """The nodes a published term shows: every part of it that is a node, or a pattern of nodes."""
    if show(what) in nodes:
        return frozenset((show(what),))  # of probability(o(P) >= 4) the probability, not o(P)
    found: set[str] = set()
    for part in walk(what):
        if isinstance(part, Compound):
            found |= {name for name, node in nodes.items() if match(part, node.atom) is not None}
    return frozenset(found)


def observed_by(
    requirement: PrivacyRequirement,
    observed: Iterable[DpRv],
    publications: Iterable[Publication],
    nodes: Mapping[str, Node | AggregateNode],
) -> frozenset[str]:
    """Everything a requirement's observer sees; terms are masked already."""
    terms = [entry.variable for entry in observed if entry.requirement == requirement.name]
    terms += [entry.what for entry in publications if entry.requirement == requirement.name]
    return frozenset().union(*(seen(term, nodes) for term in terms))


def zones_of(
    requirement: PrivacyRequirement, visible: frozenset[str], variants: Mapping[str, Sequence[Node | AggregateNode]]
) -> Zones:
    """Walk from the observed nodes towards the data; a node read from a column is where the data begin.

    `variants` holds a node's forms in all groups: an edge in one of them counts.
    """
    sensitive, public, between = set[str](), set[str](), set[str]()
    waiting, met = list(visible), set(visible)
    while waiting:
        name = waiting.pop()
        forms = variants.get(name, ())
        computed = [form for form in forms if not is_read(form)]
        above = variants.keys() & set().union(*(form.parents for form in computed))
        if len(computed) < len(forms) or not above:
            (public if forms and all(map(_is_public, forms)) else sensitive).add(name)
        elif name not in visible:
            between.add(name)
        new = above - met
        met |= new
        waiting += sorted(new)
    return Zones(
        requirement.name,
        requirement.observer,
        requirement.dataset,
        frozenset(sensitive),
        frozenset(between),
        visible,
        frozenset(public),
    )


def _is_public(form: Node | AggregateNode) -> bool:
    """Read from a public table, or given by the study itself: a law without parents says nothing about the data."""
    return isinstance(form, Node) and (form.public or (form.source is None and form.law is not None))
