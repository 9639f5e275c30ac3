"""Observers with promises of different kinds, each served by the noise that suits it.

In:   requests of one dataset of which some promise a pure ε and others allow a δ.
Out:  Settled with Laplace draws for the ones and Gaussian draws for the others; None where that cannot be.
Not here: one kind of noise for all (plan/settle.py), choosing between these (plan/make.py).
Proof: docs/proofs/allocation.md

The two kinds are settled apart, with draws of their own. Where observers of both kinds collude, what they see together
is the composition of Gaussian and Laplace acts, whose loss is computed exactly (core/compose.py); the budgets of these
observers are made smaller until it stays within the promise to one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sfumato.core import GaussianDP, Guarantee, PureDP, compose
from sfumato.errors import PlanError, PrivacyParameterError
from sfumato.lang.spec import EVERYONE
from sfumato.network.network import Network
from sfumato.plan.draw import events_of
from sfumato.plan.draw_law import LAWS, NoiseName
from sfumato.plan.laws.law import DrawLaw
from sfumato.plan.plan import Promise
from sfumato.plan.request import Request, is_pure
from sfumato.plan.settle import Settled

__all__ = ["settle_side_by_side"]

#: Settles requests with one kind of noise, the budgets of some observers multiplied.
Settle = Callable[[tuple[Request, ...], NoiseName, Mapping[str, float]], Settled]
_STEPS = 7


def settle_side_by_side(
    network: Network, dataset: str, requests: tuple[Request, ...], settle: Settle
) -> Settled | None:
    """The two classes of observers apart; None where there is one class only, or what they see cannot be told apart."""
    classes = _classes(requests)
    # What everyone sees counts for all; of people in several public groups the worst would be sought in two currencies.
    alone = all(request.of_sums and request.observer != EVERYONE for request in requests)
    if not alone or not all(classes.values()) or _are_banned(classes):
        return None
    try:
        return _settled(network, dataset, requests, classes, settle)
    except (PlanError, PrivacyParameterError):
        return None


def _classes(requests: tuple[Request, ...]) -> dict[NoiseName, tuple[Request, ...]]:
    pure = {request.observer for request in requests if is_pure(request.requirement.guarantee)}
    return {
        _shortest(is_without_delta).name: tuple(one for one in requests if (one.observer in pure) == is_without_delta)
        for is_without_delta in (True, False)
    }


def _shortest(pure: bool) -> DrawLaw:
    """Of the laws that keep a promise without δ, or of the others, the one of least noise."""
    return min((law for law in LAWS.values() if law.pure == pure), key=lambda law: law.variance)


def _are_banned(classes: Mapping[NoiseName, tuple[Request, ...]]) -> bool:
    return any(noise in request.forbidden for noise, own in classes.items() for request in own)


def _last_of_each(promises: Sequence[Promise | None]) -> list[Promise]:
    """Of promises to the same observers the last, in their order."""
    known = [promise for promise in promises if promise is not None]
    return list({frozenset(one.observers): one for one in reversed(known)}.values())[::-1]


def _settled_apart(
    crossing: Sequence[frozenset[str]],
    classes: Mapping[NoiseName, tuple[Request, ...]],
    asked: Mapping[str, Guarantee],
    settle: Settle,
) -> dict[NoiseName, Settled] | None:
    """Each class by itself; with less for those who put together what they see with somebody of the other class."""
    found: dict[NoiseName, Settled] = {noise: settle(own, noise, {}) for noise, own in classes.items()}
    scales: dict[str, float] = {}
    for group in crossing:
        scale = _scale(group, found, asked)
        if scale is None:
            return None
        scales |= {observer: min(scale, scales.get(observer, 1.0)) for observer in group}
    if any(scale < 1.0 for scale in scales.values()):
        found = {noise: settle(own, noise, scales) for noise, own in classes.items()}
    return found


def _settled(
    network: Network,
    dataset: str,
    requests: tuple[Request, ...],
    classes: Mapping[NoiseName, tuple[Request, ...]],
    settle: Settle,
) -> Settled | None:
    noises: dict[str, NoiseName] = {request.observer: noise for noise, own in classes.items() for request in own}
    asked = {request.observer: request.requirement.guarantee for request in requests}
    groups = [frozenset(noises.keys() & set(one.observers)) for one in network.spec.collusions]
    crossing = _crossing(groups, noises)
    found = _settled_apart(crossing, classes, asked, settle)
    if found is None:
        return None
    together = [_together(dataset, group, found, asked) for group in crossing]
    if None in together:
        return None
    settled = _as_one(found.values(), requests, noises)
    own = [promise for promise in settled.promises if not _is_part(promise, crossing, groups)]
    return replace(settled, promises=tuple(_last_of_each([*own, *together])))


def _crossing(groups: Sequence[frozenset[str]], noises: Mapping[str, NoiseName]) -> list[frozenset[str]]:
    """Those who collude and see different kinds of noise."""
    return [group for group in dict.fromkeys(groups) if len(set(map(noises.get, group))) > 1]


def _as_one(found: Collection[Settled], requests: Sequence[Request], noises: Mapping[str, NoiseName]) -> Settled:
    planned = {(one.observer, one.name): one for settled in found for one in settled.planned}
    return Settled(
        None,
        tuple(draw for one in found for draw in one.draws),
        tuple(planned[request.observer, request.name] for request in requests),
        tuple(promise for one in found for promise in one.promises),
        math.fsum(one.loss for one in found),
        noises,
    )


def _is_part(promise: Promise, crossing: Sequence[frozenset[str]], declared: Sequence[frozenset[str]]) -> bool:
    """A promise to colluders of one kind of noise is part of the promise to all of them, unless it was asked for."""
    observers = frozenset(promise.observers)
    return len(observers) > 1 and observers not in declared and any(observers <= group for group in crossing)


def _costs(group: frozenset[str], found: Mapping[NoiseName, Settled]) -> list[Guarantee]:
    """What a group sees, one guarantee for each kind of noise."""
    seen = [events_of(d for d in one.draws if set(d.observers) & group) for one in found.values()]
    return [compose(events) for events in seen if events]


def _scale(group: frozenset[str], found: Mapping[NoiseName, Settled], asked: Mapping[str, Guarantee]) -> float | None:
    """By what the colluders' budgets of μ² (and the square of those of ε) are multiplied so that both fit together."""
    costs = _costs(group, found)

    def fits(scale: float) -> bool:
        together = compose([_scaled(cost, math.sqrt(scale)) for cost in costs])
        return any(together.implies(asked[observer]) is True for observer in sorted(group))

    if fits(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low or None


def _scaled(cost: Guarantee, factor: float) -> Guarantee:
    if isinstance(cost, GaussianDP):
        return GaussianDP(cost.mu * factor, adjacency=cost.adjacency)
    return PureDP(cost.epsilon(0.0) * factor, adjacency=cost.adjacency)


def _together(
    dataset: str, group: frozenset[str], found: Mapping[NoiseName, Settled], asked: Mapping[str, Guarantee]
) -> Promise | None:
    """The promise to colluders of both kinds, derived from all that they see."""
    kept = compose(events_of(d for one in found.values() for d in one.draws if set(d.observers) & group))
    for observer in sorted(group):
        if kept.implies(asked[observer]) is True:
            name = f"collude: no more than {observer} alone"
            return Promise(tuple(sorted(group)), dataset, name, asked[observer], kept)
    return None
