"""Who is planned as one reader: observers with one promise who ask for the same, or who put together what they see.

In:   the requests of one dataset, who colludes, who knows what exactly.
Out:  for every observer the one whose tables, models, drawn answers and shares of sums it has.
Not here: versions of one sum for observers with other promises (plan/draw.py).
Proof: docs/proofs/portions.md, docs/proofs/allocation.md

What one observer may learn another one with the same promise may learn too. So where both ask for the same, one act is
shown to both, in place of one for each, which would cost twice. Colluders with one promise see everything of each other
and are promised what one of them alone is: what any of them asks for is drawn once, for all. Values of single
individuals are shared by those alone who ask for exactly the same and know the same of everybody: where their noise
goes follows from all that an observer is shown, and from what it knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.lang.spec import EVERYONE
from sfumato.lang.term import Compound, show
from sfumato.network.network import Network

if TYPE_CHECKING:
    from sfumato.plan.request import Request

__all__ = ["are_apart", "read_as_one"]

#: The requests of one observer by name.
_Own = Mapping[str, "Request"]


def read_as_one(network: Network, requests: Sequence[Request]) -> dict[str, str]:
    """Of every observer of these requests the first one that sees the same acts; itself where there is nobody else."""
    asked = _by_observer(requests)
    found = {observer: observer for observer in asked}
    if EVERYONE in asked:  # what everyone sees counts for each of the others
        return found
    same: list[list[str]] = []  # those found so far to be one reader each
    for observer in asked:
        members = next((others for others in same if _is_one(network, asked, observer, others)), None)
        if members is None:
            same.append([observer])
        else:
            found[observer] = members[0]
            members.append(observer)
    return found


def _by_observer(requests: Sequence[Request]) -> dict[str, dict[str, Request]]:
    asked: dict[str, dict[str, Request]] = {}
    for request in requests:
        asked.setdefault(request.observer, {})[request.name] = request
    return asked


def are_apart(network: Network, requests: Sequence[Request]) -> bool:
    """Whether nobody puts together what several readers see: one of them, or several of whom none colludes."""
    readers = read_as_one(network, requests)
    if EVERYONE in readers:
        return len(readers) == 1
    return all(len({readers[one] for one in group & readers.keys()}) <= 1 for group in _groups(network))


def _is_one(network: Network, asked: Mapping[str, _Own], observer: str, others: Sequence[str]) -> bool:
    """Whether an observer shares what these see, who are one reader already."""
    mine, groups = asked[observer], _groups_of(network, observer)
    promised = _promised(network, mine, observer)
    for other in others:
        theirs = asked[other]
        if _groups_of(network, other) != groups or _promised(network, theirs, other) != promised:
            return False
        if not _agree(mine, theirs) or not (_may_pool(mine, theirs, groups) or mine.keys() == theirs.keys()):
            return False
    return True


def _may_pool(one: _Own, other: _Own, groups: Sequence[frozenset[str]]) -> bool:
    """Whether each may be planned with what the other asks for: colluders see it anyway, of the others nobody is shown
    more than it asks for. A cut for more values of an individual than are shown is no cut for fewer of them."""
    return bool(groups) and not any(request.of_individuals for own in (one, other) for request in own.values())


def _groups(network: Network) -> list[frozenset[str]]:
    return [frozenset(one.observers) for one in network.spec.collusions]


def _groups_of(network: Network, observer: str) -> list[frozenset[str]]:
    return [group for group in _groups(network) if observer in group]


def _promised(network: Network, own: _Own, observer: str) -> tuple[Any, ...]:
    """All that is promised to an observer, by whatever name, and what it knows exactly of whom."""
    named = {show(one.requirement.name): one.requirement for one in own.values()}
    distinct = [replace(one, name=Compound(""), observer="") for one in named.values()]
    known = {variable for whose, variable in network.exact if whose == observer}
    return distinct, known, [group.known_to(observer) for group in network.groups]


def _agree(one: _Own, other: _Own) -> bool:
    """Whether what both ask for under one name is the same."""
    return all(_asked(one[name]) == _asked(other[name]) for name in one.keys() & other.keys())


def _asked(request: Request) -> tuple[Any, ...]:
    return request.term, request.nodes, request.sampled, request.weight, request.preferred, request.forbidden
