"""How privacy adds up: the one place where costs are composed.

In:   events and guarantees, in any order, nested or repeated.
Out:  one Guarantee for all of them together; the cost of a public partition.
Not here: what one act costs (core/events/event.py), who spends (ledger/ledger.py).
Proof: docs/proofs/composition.md

Gaussian acts compose exactly (μ² adds). Mixtures are composed as privacy loss distributions by dp-accounting, behind
`core/loss_distribution.py` alone; counts are expanded here, because dp-accounting 0.6 forgets the count of a repeated
RandomizedResponseDpEvent. The Rényi sum and plain addition are computed beside it and the smallest true bound wins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import repeat
from typing import Any, Literal

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import at_least_zero, probability, round_up
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.events.event import BoxEvent, Event, GaussianEvent, LaplaceEvent, RandomizedResponseEvent, Repeated
from sfumato.core.events.learning import ObjectiveDP, masked_delta, masked_epsilon
from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, NoGuarantee, PureDP, RenyiDP, checked_order
from sfumato.core.loss_distribution import (
    can_be_added_up,
    drawn_delta,
    drawn_epsilon,
    law_delta,
    law_epsilon,
    transform_error,
)
from sfumato.core.parts import BoxPair, ConcentratedPair, GaussianPair, ObjectivePair, Part, RenyiPair, WorstPair
from sfumato.core.renyi import delta_from_curve, epsilon_from_curve
from sfumato.errors import PrivacyParameterError

__all__ = ["ComposedDP", "Part", "Partition", "WorstOf", "add_exactly", "compose", "parallel"]

#: By what δ of a privacy loss distribution is raised, relatively.
_RAISED = 1e-9


def add_exactly(values: Iterable[float], counts: Iterable[int] | None = None) -> float:
    """Sum of numbers (each `counts` times) read as the decimals they are written as, rounded up: five times 0.2 is 1.0.

    >>> add_exactly([0.1] * 3)
    0.3
    """
    with localcontext() as context:
        context.prec = 400
        terms = zip(values, repeat(1) if counts is None else counts, strict=False)
        total = sum((Decimal(repr(float(value))) * count for value, count in terms), Decimal(0))
        rounded = float(total)
        return math.nextafter(rounded, math.inf) if Decimal(repr(rounded)) < total else rounded


@dataclass(frozen=True)
class ComposedDP(Guarantee):
    """Several acts of different kinds together; made by `compose`, canonical in order and counts."""

    parts: tuple[Part, ...]

    def rdp(self, alpha: float) -> float:
        if math.isinf(checked_order(alpha)):
            return self.epsilon(0.0)  # the order of the largest loss itself
        return round_up(float(self._curve(np.array(float(alpha)))))

    def _curve(self, alpha: np.ndarray) -> np.ndarray:
        return np.sum([part.curve(alpha) for part in self.parts], axis=0) * (1 + 1e-12)

    @property
    def stated(self) -> tuple[float, float]:
        return self._plain() or super().stated

    def delta(self, epsilon: float) -> float:
        epsilon = at_least_zero(epsilon, "epsilon")
        bounds = [delta_from_curve(self._curve, epsilon)] if self._has_curve else [1.0]
        if self.has_loss_distribution:
            found = drawn_delta(self.parts, epsilon) if self._has_box else law_delta(self.parts, epsilon)
            bounds.append(round_up(found, _RAISED) + transform_error(self.parts))
        plain, run = self._plain(), self._one_run()
        if plain is not None and epsilon >= plain[0]:
            bounds.append(plain[1])
        if run is not None:
            bounds.append(masked_delta(*run, epsilon))
        return min(1.0, *bounds)

    def epsilon(self, delta: float) -> float:
        delta = probability(delta)
        bounds = [epsilon_from_curve(self._curve, delta)] if self._has_curve else [math.inf]
        plain, run = self._plain(), self._one_run()
        if plain is not None and delta >= plain[1]:
            bounds.append(plain[0])
        if run is not None:
            bounds.append(masked_epsilon(*run, delta))
        if self.has_loss_distribution and (left := (delta - transform_error(self.parts)) / (1 + 2 * _RAISED)) > 0:
            found = drawn_epsilon(self.parts, left) if self._has_box else law_epsilon(self.parts, left)
            bounds.append(round_up(found, _RAISED))
        return max(0.0, min(bounds))

    @property
    def has_loss_distribution(self) -> bool:
        """Whether every act has a law of its own, with losses small enough to be added up one by one."""
        return all(part.pair.has_law for part in self.parts) and can_be_added_up(self.parts)

    @property
    def _has_box(self) -> bool:
        return any(isinstance(part.pair, BoxPair) for part in self.parts)

    @property
    def _has_curve(self) -> bool:
        return all(part.pair.has_curve(part) for part in self.parts)

    def _plain(self) -> tuple[float, float] | None:
        """(Σε, Σδ) where every act has an ε of its own."""
        if not all(part.pair.has_epsilon for part in self.parts):
            return None
        counts = [part.count for part in self.parts]
        return (
            add_exactly((part.value for part in self.parts), counts),
            min(1.0, add_exactly((part.pair.stated_delta(part) for part in self.parts), counts)),
        )

    def _one_run(self) -> tuple[float, float, float] | None:
        """(μ, shift, μ of all Gaussian acts) of one training run, Gaussian acts and ε-DP acts, whose ε join the shift.

        A law on a grid rounds the shift up to a step; this bound has no grid (docs/proofs/objective_perturbation.md).
        """
        runs, normal = self._of(ObjectivePair), self._of(GaussianPair)
        pure = [part for part in self.parts if part.pair.has_epsilon]
        known = len(runs) + len(pure) + len(normal) == len(self.parts)
        if not known or len(runs) != 1 or runs[0].count != 1 or any(part.pair.stated_delta(part) for part in pure):
            return None
        raised = _sum_of_values(pure)
        return runs[0].value, round_up(runs[0].extra + raised, 1e-15), _root_of_sum(normal) if normal else 0.0

    def _of(self, pair: type[WorstPair]) -> list[Part]:
        return [part for part in self.parts if isinstance(part.pair, pair)]

    def _implies(self, other: Guarantee) -> bool | None:
        match other:
            case ZCDP(rho=rho):
                keeps = math.fsum(part.rho() for part in self.parts) <= rho
            case GaussianDP(mu=mu):
                keeps = math.sqrt(math.fsum(part.square_of_mu() for part in self.parts)) <= mu
            case RenyiDP(alpha=alpha, eps=eps) if len(self._of(RenyiPair)) == len(self.parts):
                keeps = all(alpha <= part.extra for part in self.parts) and _sum_of_values(self.parts) <= eps
            case _:
                return super()._implies(other)
        return True if keeps else None

    @property
    def acts(self) -> int:
        """How many acts were composed."""
        return sum(part.count for part in self.parts)

    def describe(self) -> str:
        epsilon, delta = self.stated
        total = f"({epsilon:.6g}, {delta:.6g})-DP" if delta else f"{epsilon:.6g}-DP"
        return f"{total} ({self.acts} act{'s' if self.acts > 1 else ''} composed)"

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "ComposedDP",
            "adjacency": self.adjacency.to_dict() if self.adjacency else None,
            "parts": [[part.kind, part.value, part.extra, part.count] for part in self.parts],
        }


@dataclass(frozen=True)
class WorstOf(Guarantee):
    """The worst of several guarantees at every point: what a public partition costs."""

    guarantees: tuple[Guarantee, ...]

    def delta(self, epsilon: float) -> float:
        return max(guarantee.delta(epsilon) for guarantee in self.guarantees)

    def epsilon(self, delta: float) -> float:
        return max(guarantee.epsilon(delta) for guarantee in self.guarantees)

    def rdp(self, alpha: float) -> float:
        return max(guarantee.rdp(alpha) for guarantee in self.guarantees)

    def describe(self) -> str:
        return "the worst of " + " and ".join(guarantee.describe() for guarantee in self.guarantees)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "WorstOf",
            "adjacency": self.adjacency.to_dict() if self.adjacency else None,
            "guarantees": [guarantee.to_dict() for guarantee in self.guarantees],
        }


Composable = Event | Guarantee | Repeated


def compose(items: Iterable[Composable]) -> Guarantee:
    """The guarantee of doing all of `items` on the same data; costs are fixed, acts may depend on earlier outputs.

    Costs that depend on earlier outputs add in fewer ways: see ledger/balance.py.

    >>> compose([GaussianDP(0.3), GaussianDP(0.4)])
    GaussianDP(adjacency=None, mu=0.5)
    >>> compose([PureDP(0.2)] * 5).epsilon(0.0)
    1.0
    """
    given = list(items)
    if not given:
        raise PrivacyParameterError("compose needs at least one event or guarantee.")
    adjacency = _common_adjacency(given)
    for item in given:
        if isinstance(item, NoGuarantee):
            return item.under(adjacency)
    if len(given) == 1 and isinstance(given[0], Guarantee):
        return given[0]
    return _from_parts([part for item in given for part in _parts(item)], adjacency)


def _common_adjacency(items: Sequence[Composable]) -> Adjacency | None:
    stated = set()
    for item in items:
        adjacency = item.event.adjacency if isinstance(item, Repeated) else item.adjacency
        if adjacency is not None:
            stated.add(adjacency)
    if len(stated) > 1:
        names = " and ".join(sorted(str(adjacency) for adjacency in stated))
        raise PrivacyParameterError(
            f"Costs under different adjacencies do not add: {names}. State all events under one adjacency. "
            "Nothing was spent."
        )
    return stated.pop() if stated else None


def _parts(item: Composable) -> list[Part]:
    match item:
        case Repeated(event=event, count=count):
            return [Part(p.kind, p.value, p.extra, p.count * count) for p in _parts(event)]
        case GaussianEvent(mu=mu) | GaussianDP(mu=mu):
            return [Part("gaussian", mu)]
        case LaplaceEvent(dimension=1):
            return [Part("laplace", item.eps)]
        case BoxEvent():
            return [Part("box", item.shift, item.strength)]
        case ChannelEvent() | RandomizedResponseEvent() if (answers := item.answers) is not None:
            return [Part("three-point", item.eps, answers)]
        case Event():
            return _parts(item.guarantee())
    return _parts_of_guarantee(item)


def _parts_of_guarantee(item: Guarantee) -> list[Part]:
    match item:
        case PureDP(eps=eps):
            return [Part("two-point", eps)]
        case ApproxDP(eps=eps, delta_=delta):
            return [Part("two-point", eps, delta)]
        case ObjectiveDP(mu=mu, shift=shift, count=count):
            return [Part("objective", mu, shift, count)]
        case ZCDP(rho=rho):
            return [Part("concentrated", rho)]
        case RenyiDP(alpha=alpha, eps=eps):
            return [Part("renyi", eps, alpha)]
        case ComposedDP(parts=parts):
            return list(parts)
    raise PrivacyParameterError(
        f"A {type(item).__name__} cannot be composed further. Compose inside each part of the partition first, "
        "then take `parallel` last."
    )


def _counted(parts: list[Part]) -> list[Part]:
    """Equal parts as one with their number, in order."""
    counts: Counter[Part] = Counter()
    for part in parts:
        counts[Part(part.kind, part.value, part.extra)] += part.count
    return [Part(key.kind, key.value, key.extra, count) for key, count in sorted(counts.items())]


def _from_parts(parts: list[Part], adjacency: Adjacency | None) -> Guarantee:
    counted = _counted(parts)
    gaussian = [part for part in counted if isinstance(part.pair, GaussianPair)]
    others = [part for part in counted if not isinstance(part.pair, GaussianPair)]
    if not others:
        return GaussianDP(_common_mu(gaussian, len(parts)), adjacency=adjacency)
    if gaussian:
        others.append(Part("gaussian", _root_of_sum(gaussian)))
    elif {type(part.pair) for part in others} == {ConcentratedPair}:
        return ZCDP(add_exactly([part.value * part.count for part in others]), adjacency=adjacency)
    return _plainest(others, adjacency)


def _common_mu(gaussian: list[Part], acts: int) -> float:
    """μ of all; that of a single act as it was stated."""
    return gaussian[0].value if acts == 1 and gaussian[0].count == 1 else _root_of_sum(gaussian)


def _plainest(parts: list[Part], adjacency: Adjacency | None) -> Guarantee:
    """The guarantee of one part by its own name where it has one."""
    if len(parts) == 1 and (parts[0].count == 1 or parts[0].pair.repeats_itself):
        return parts[0].pair.alone(parts[0], adjacency) or ComposedDP((parts[0],), adjacency=adjacency)
    return ComposedDP(tuple(sorted(parts)), adjacency=adjacency)


def _sum_of_values(parts: Sequence[Part]) -> float:
    return add_exactly([part.value for part in parts], [part.count for part in parts])


def _root_of_sum(parts: Sequence[Part]) -> float:
    """√Σ count·value², the values read as decimals, rounded up: 0.3 and 0.4 make 0.5. Decimals do not underflow."""
    with localcontext() as context:
        context.prec = 60
        total = sum((Decimal(repr(part.value)) ** 2 * part.count for part in parts), Decimal(0))
        rounded = float(f"{context.sqrt(total):.15g}")
        while Decimal(repr(rounded)) ** 2 < total:
            rounded = math.nextafter(rounded, math.inf)
        return rounded


@dataclass(frozen=True)
class Partition:
    """A split of the records fixed without looking at the data, and by what rule a record finds its part.

    rule "position": by row number or an outside list; a replaced record stays in its part. Adding or removing a row
    would shift all later ones, so there is no add-remove promise.
    rule "attribute": by a public function of the record itself; a changed record may move to another part.
    """

    rule: Literal["position", "attribute"]
    description: str

    def __post_init__(self) -> None:
        if self.rule not in ("position", "attribute"):
            raise PrivacyParameterError(
                f"Partition rule {self.rule!r} is not known: use 'position' or 'attribute'. A partition chosen by "
                "looking at the data has no parallel composition."
            )
        if not self.description.strip():
            raise PrivacyParameterError("Say in words how the partition was fixed without looking at the data.")


def parallel(
    items: Iterable[Composable],
    partition: Partition,
    adjacency: Adjacency | None = None,
    *,
    inside: Iterable[Composable] | None = None,
) -> Guarantee:
    """The cost of one act on each part of a public partition, the acts independent and fixed before any draw.

    rule "position", replace-one: the worst part. rule "attribute", add-remove: the worst part. rule "attribute" with
    `items` under add-remove and `adjacency` replace-one: a record may change inside one part or leave one and enter
    another, so the worst of all parts' `inside` costs (under replace-one, in the order of `items`) and of all pairs of
    parts together; without `inside` a change inside a part is charged as two changes of the same act.

    >>> from sfumato.core.adjacency import REPLACE_ONE
    >>> split = Partition("position", "first and second half by row number")
    >>> print(parallel([PureDP(1.0), PureDP(0.5)], split, REPLACE_ONE))
    1-DP, under replacing one record
    """
    if not isinstance(partition, Partition):
        raise PrivacyParameterError(
            "Parallel composition needs a Partition that was fixed without looking at the data. Nothing was spent."
        )
    given = list(items)
    wanted = _adjacency_of_parts(given, partition, adjacency)
    costs = [compose([item]).under(None) for item in given]
    if partition.rule == "attribute" and wanted.relation == "replace-one":
        costs = [*_inside(costs, inside, wanted), *_across(costs)]
    elif inside is not None:
        raise PrivacyParameterError("`inside` is for parts by attribute under replace-one only. Nothing was spent.")
    return _worst([cost.under(wanted) for cost in dict.fromkeys(costs)], wanted)


def _check_parallel(partition: Partition, stated: Adjacency, wanted: Adjacency) -> None:
    if partition.rule == "position" and not stated.relation == wanted.relation == "replace-one":
        raise PrivacyParameterError(
            "Parts by position have no cost under add-remove: a row that is added or removed moves every later row to "
            "another place, and with it through all parts. Use replace-one, or parts by attribute. Nothing was spent."
        )
    if partition.rule == "attribute" and stated.relation != "add-remove":
        raise PrivacyParameterError(
            "Where a record's own attribute decides its part, state the cost of each part under add-remove: a changed "
            "record may leave one part and enter another. Nothing was spent."
        )
    if stated.unit != wanted.unit:
        raise PrivacyParameterError(
            f"The parts' costs protect one {stated.unit}, and the promise is about one {wanted.unit}: state both for "
            "the same unit. Nothing was spent."
        )


def _worst(costs: list[Guarantee], adjacency: Adjacency) -> Guarantee:
    for cost in costs:
        if all(cost is other or other.implies(cost) for other in costs):
            return cost
    return WorstOf(tuple(costs), adjacency=adjacency)


def _across(costs: list[Guarantee]) -> list[Guarantee]:
    """Every two parts together; alike ones once."""
    kinds = list(Counter(costs).items())
    pairs = [(one, other) for i, (one, _) in enumerate(kinds) for other, _ in kinds[:i]]
    pairs += [(one, one) for one, count in kinds if count > 1]
    return [compose(pair) for pair in pairs]


def _adjacency_of_parts(given: list[Composable], partition: Partition, asked: Adjacency | None) -> Adjacency:
    """Under what the whole is stated; refuses where the parts' costs do not say enough for it."""
    stated = _common_adjacency(given) or (asked if partition.rule == "position" else None)
    wanted = asked or stated
    if stated is None or wanted is None:
        raise PrivacyParameterError(
            "Say under which adjacency the parts' costs are stated: replacing one record for parts by position, adding "
            "or removing one for parts by attribute. Nothing was spent."
        )
    _check_parallel(partition, stated, wanted)
    return wanted


def _inside(costs: list[Guarantee], inside: Iterable[Composable] | None, adjacency: Adjacency) -> list[Guarantee]:
    """What a change inside each part costs: as stated, or twice the part's own change."""
    if inside is None:
        return [_from_parts([_twice(part) for part in _parts(cost)], None) for cost in dict.fromkeys(costs)]
    given = list(inside)
    if len(given) != len(costs):
        raise PrivacyParameterError("`inside` needs one cost for each part, in the same order. Nothing was spent.")
    if _common_adjacency(given) != adjacency:
        raise PrivacyParameterError("State the `inside` costs under replacing one record. Nothing was spent.")
    return [compose([item]).under(None) for item in given]


def _twice(part: Part) -> Part:
    if (doubled := part.pair.twice(part)) is not None:
        return doubled
    raise PrivacyParameterError(
        "What replacing a record inside a part costs does not follow from this cost under add-remove: state it for "
        "every part with inside=[…] under replace-one. Nothing was spent."
    )
