"""What another weight of a publication would do: to its own error, and to those of the others.

In:   a plan with its network.
Out:  AtWeight: for every publication its widest interval at other weights, each found by planning again. No data.
Not here: the least weight that meets an aim (run/aims.py), loss against ε (evidence/frontier.py).

The curve over ε keeps the shares of the budget; a weight changes them, so every point is a plan of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sfumato.errors import InputError
from sfumato.plan.plan import Plan, Planned
from sfumato.run.aims import half_width_of, planned_with

__all__ = ["MULTIPLES", "AtWeight", "other_weights"]

MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class AtWeight:
    """One publication towards one observer at one weight, beside how it is planned.

    `others_wider` is how many times as wide the interval of another publication becomes, of the one that suffers most
    (or gains least).
    """

    publication: str
    observer: str
    weight: float
    half_width: float
    others_wider: float


def other_weights(
    plan: Plan, sizes: Mapping[str, float], weights: Sequence[float] | None = None
) -> Iterator[tuple[AtWeight, ...]]:
    """Of every publication that shares a budget: what it would be at `weights`, or at multiples of its own.

    >>> from sfumato.run.planning import make_plan
    >>> plan = make_plan('''
    ...     table(people, 'people.csv', person(P) = id, [age: 0..100, pay: 0..9000]). missing(people, never).
    ...     rows_per_person(people, 1). dataset(d, domain(P, person(P))).
    ...     privacy_requirement(o(public), d, dp(1, 0.000001)).
    ...     mean(a, age(P), person(P)). mean(b, pay(P), person(P)).
    ...     publish(ages, a, o(public)). publish(pays, b, o(public)).
    ... ''', sizes={"d": 1000})
    >>> curve = next(other_weights(plan, {"d": 1000}, [1, 4]))
    >>> [round(one.half_width / curve[0].half_width, 2) for one in curve], round(curve[1].others_wider, 2)
    ([1.0, 0.81], 1.3)
    """
    _check_weights(weights or ())
    drawn = [one for one in plan.publications if _is_drawn(one)]
    for name in dict.fromkeys(one.name for one in drawn):
        others = [one for one in drawn if one.name != name]
        if others:
            yield from _curves(plan, name, others, sizes, weights)


def _check_weights(weights: Sequence[float]) -> None:
    if not all(0 < one < math.inf for one in weights):
        raise InputError("A weight is a number above 0, such as 2. Nothing was planned.")


def _curves(
    plan: Plan, name: str, others: Sequence[Planned], sizes: Mapping[str, float], weights: Sequence[float] | None
) -> Iterator[tuple[AtWeight, ...]]:
    own = [one for one in plan.publications if one.name == name]
    tried = weights if weights is not None else [own[0].weight * one for one in MULTIPLES]
    # At the weight it has the plan is there already.
    plans = {
        value: plan if value == own[0].weight else planned_with(plan, sizes, weights={name: value}) for value in tried
    }
    yield from (_curve(one, others, plans) for one in own)


def _curve(planned: Planned, others: Sequence[Planned], plans: Mapping[float, Plan]) -> tuple[AtWeight, ...]:
    return tuple(_at_weight(planned, others, value, changed) for value, changed in plans.items())


def _is_drawn(planned: Planned) -> bool:
    """Whether it has noise, and a width that can be told."""
    return 0 < half_width_of(planned) < math.inf


def _at_weight(planned: Planned, others: Sequence[Planned], weight: float, changed: Plan) -> AtWeight:
    def width(one: Planned) -> float:
        return half_width_of(changed.publication(one.name, one.observer))

    wider = max(width(one) / half_width_of(one) for one in others)
    return AtWeight(planned.name, planned.observer, float(weight), width(planned), wider)
