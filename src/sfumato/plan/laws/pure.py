"""What draws of all laws that cost a pure ε share.

In:   shares of a budget, promises.
Out:  PureDraws.
Not here: the laws (beside this file).
"""

from __future__ import annotations

from sfumato.core import ApproxDP, Guarantee, PureDP
from sfumato.core.norms import L1
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.plan.laws.law import DrawLaw

__all__ = ["PureDraws"]


class PureDraws(DrawLaw):
    """Told apart in L1, counted in ε, which adds: ε is the sensitivity over the scale. Abstract."""

    norm = L1
    degree = 2
    currency = "ε"
    pure = True
    correlates = False
    closed = False

    def whole(self, guarantee: Guarantee) -> float:
        # A δ would allow a hair more than ε; whoever checks a sum of Laplace acts should only have to add.
        stated = isinstance(guarantee, PureDP | ApproxDP)
        return guarantee.eps if stated else largest_pure_epsilon(guarantee)

    def guarantee(self, share: float) -> Guarantee:
        return PureDP(share)

    def spent(self, guarantee: Guarantee) -> float:
        return guarantee.epsilon(0.0)

    def composed(self, cost: Guarantee) -> Guarantee:
        # A sum of ε decides at once; the exact profile of many Laplace acts would take a second to compute.
        return PureDP(cost.epsilon(0.0), adjacency=cost.adjacency)

    def ratio(self, epsilon: float, delta: float, multiple: float) -> float:
        return multiple
