"""The largest pure ε that keeps a wanted guarantee.

In:   a Guarantee.
Out:  ε such that every ε-DP mechanism has it.
"""

from __future__ import annotations

from functools import lru_cache

from sfumato.core.guarantee import ApproxDP, Guarantee, NoGuarantee, PureDP
from sfumato.core.pufferfish import Pufferfish
from sfumato.mechanisms.mechanism import unreachable

__all__ = ["largest_pure_epsilon"]


def largest_pure_epsilon(guarantee: Guarantee) -> float:
    """By bisection on `PureDP(ε).implies(guarantee)`, which is monotone in ε.

    >>> from sfumato.core.guarantee import ZCDP
    >>> largest_pure_epsilon(PureDP(0.7))
    0.7
    >>> round(largest_pure_epsilon(ZCDP(0.02)), 3)
    0.2
    """
    match guarantee:
        case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
            return eps
        case Pufferfish():
            return guarantee.largest_pure()
        case NoGuarantee():
            raise unreachable(guarantee, "Pure noise", "Ask for PureDP(eps).")
    if (found := _bisected(guarantee)) == 0:
        raise unreachable(guarantee, "Pure noise", "Ask for PureDP(eps).")
    return found


@lru_cache(maxsize=256)  # a plan asks for the promise of every publication, and again for every kind of noise
def _bisected(guarantee: Guarantee) -> float:
    low, high = 0.0, 1.0
    while PureDP(high).implies(guarantee) is True and high < 1e3:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if PureDP(middle).implies(guarantee) is True else (low, middle)
    return low
