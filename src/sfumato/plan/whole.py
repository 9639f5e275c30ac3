"""What everything that is drawn from one dataset costs, as one (ε, δ): what a first grant is, and what all texts tell.

In:   a cost, the promises that are made about the same dataset.
Out:  a point of the cost's curve; the same in words.
Not here: what the cost is (plan/plan.py), what a ledger charges for it (ledger/balance.py), grants (run/accounts.py).

A composed cost is a curve. Promises add: whoever sees what all readers see knows no more than Σδ and Σε allow. So the
point is told at Σδ, where it never has more than Σε; at another δ nobody could hold it against what was promised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.core import ApproxDP, Guarantee, PureDP
from sfumato.core.compose import ComposedDP
from sfumato.plan.plan import Plan

__all__ = ["asked_together", "at_promises", "point_of", "whole_cost"]

#: From this ε on nothing is promised, and nothing granted.
_NOTHING = 1e6
_USUAL = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9)


def asked_together(plan: Plan, dataset: str) -> list[Guarantee]:
    """What is promised about a dataset: of promises to some readers and to more of them together the latter."""
    own = [one for one in plan.promises if one.dataset == dataset]
    return [one.asked for one in own if not any(set(one.observers) < set(other.observers) for other in own)]


def point_of(cost: Guarantee, asked: Sequence[Guarantee] = ()) -> PureDP | ApproxDP | None:
    """ε alone where there is one; else the least ε at the δ of all promises together, or at the first usual δ with one.

    >>> print(point_of(PureDP(3.0), [ApproxDP(1.0, 1e-6), ApproxDP(2.0, 1e-6)]))
    3-DP, adjacency not stated
    """
    stated = [one.stated for one in asked if isinstance(one, PureDP | ApproxDP)]
    most, delta = (math.fsum(column) for column in zip(*stated, strict=True)) if stated else (math.inf, 0.0)
    most = most if len(stated) == len(asked) else math.inf
    pure = cost.epsilon(0.0)
    if pure < _NOTHING:
        return PureDP(_no_crumb(pure, most, 1e-9), adjacency=cost.adjacency)
    for tried in (*([delta] if 0 < delta < 1 else []), *_USUAL):
        epsilon = cost.epsilon(tried)
        if epsilon < _NOTHING:
            fits = tried == delta and most < math.inf and cost.delta(most) <= delta
            return ApproxDP(
                _no_crumb(max(epsilon, 1e-9), most if fits else math.inf, 1e-6), tried, adjacency=cost.adjacency
            )
    return None


def _no_crumb(least: float, most: float, crumb: float) -> float:
    """A little more than the least, so that rounding refuses nothing; the sum of the promises where that is as near."""
    more = least * (1 + crumb)
    return most if least <= most <= more else more


def at_promises(cost: Guarantee, plan: Plan, dataset: str) -> str:
    """A cost in words: of a curve the point that the promises about this dataset can be held against."""
    if not isinstance(cost, ComposedDP) or (point := point_of(cost, asked_together(plan, dataset))) is None:
        return cost.describe()
    return f"{point.describe()} ({cost.acts} act{'s' if cost.acts > 1 else ''} composed)"


def whole_cost(plan: Plan, dataset: str) -> str:
    """What the plan costs one individual, as if every observer showed everything to everybody."""
    cost = plan.cost(dataset)
    return f"{at_promises(cost, plan, dataset)}, under {cost.adjacency}"
