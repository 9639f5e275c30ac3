"""Sums that no individual is part of all at once, priced together.

In:   families of aggregates that exclude each other (network/apart.py), their questions.
Out:  Bundle: one block of the budget for several sums.
Not here: their event (plan/draw.py), which sums exclude each other (network/apart.py, and again plan/reached.py).
Proof: docs/proofs/disjoint_groups.md

In a bundle every sum has noise in proportion to its own move: of sums that exclude each other none can be made better
by making another one worse. `price` is what all together cost in units of what one of them costs alone: 2 or less for
groups that do not overlap, as many as there are where one individual can be part of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sfumato.core.events.together import farthest
from sfumato.core.norms import L1
from sfumato.network.aggregate import AggregateNode
from sfumato.network.apart import Exclusive, families_apart
from sfumato.network.network import Group
from sfumato.plan.draw import Apart
from sfumato.plan.draw_law import NoiseName, draw_law
from sfumato.questions.question import Question

__all__ = ["Bundle", "bundles_of"]

#: Less than this is no reason to price sums together.
_WORTH = 0.999
#: What rounding to a grid costs at most, in parts of a sensitivity (mechanisms/grid.py).
_GRID = 1 / 4096


@dataclass(frozen=True)
class Bundle:
    """Sums priced together: `moves` are what each is moved by alone, `met` (alone, inside) of each."""

    name: str
    family: Exclusive
    moves: Mapping[str, float]
    met: Mapping[str, tuple[float, float]]
    price: float

    def apart(self, node: str, arithmetic: float) -> Apart:
        alone, inside = self.met[node]
        cells = tuple(place for place, one in enumerate(self.family.sets) if node in one)
        return Apart(self.name, alone * arithmetic, inside * arithmetic, cells)


def bundles_of(
    nodes: Iterable[AggregateNode],
    groups: Sequence[Group],
    questions: Mapping[str, Question],
    observers: Mapping[str, frozenset[str]],
    noise: NoiseName,
    replaces: bool,
) -> dict[str, Bundle]:
    """For every sum that is priced together with others its bundle; each bundle's sums are seen by the same people."""
    found: dict[str, Bundle] = {}
    if not draw_law(noise).together:
        return found
    seen: dict[frozenset[str], list[AggregateNode]] = {}
    for node in nodes:
        # With Laplace noise one individual's rows in several sums would pay the rounding of each: not put together.
        rounded = draw_law(noise).norm is L1 and node.question.rows > 1
        if node.name in questions and not questions[node.name].is_public and not rounded:
            seen.setdefault(observers[node.name], []).append(node)
    for own in seen.values():
        for family in families_apart(own, groups):
            bundle = _bundle(family, questions, noise, replaces)
            if bundle.price < _WORTH * len(family.names):
                found |= dict.fromkeys(family.names, bundle)
    return found


def _bundle(family: Exclusive, questions: Mapping[str, Question], noise: NoiseName, replaces: bool) -> Bundle:
    law = draw_law(noise)
    moves = {name: law.sensitivity(questions[name].moves()) for name in family.names}
    met = {}
    for name in family.names:
        one, both = questions[name].met()
        met[name] = law.sensitivity(one), law.sensitivity(both)
    power = law.norm.order
    alone, inside = ([_part(met[name][which] / moves[name]) ** power for name in family.names] for which in (0, 1))
    places = {name: place for place, name in enumerate(family.names)}
    sets = [sorted(places[name] for name in one) for one in family.sets]
    return Bundle(f"{family.names[0]} …", family, moves, met, farthest(alone, inside, sets, replaces))


def _part(ratio: float) -> float:
    """A move in parts of the one that noise was measured by; rounding to a grid adds up to 1/4096 to both."""
    return ratio + max(1 - ratio, 0.0) * _GRID if ratio else 0.0
