"""How often a promise's factor e^ε is exceeded: the tail of the privacy loss.

In:   the guarantee of the acts that were drawn, an ε.
Out:  a probability, rounded up: over the noise, that what is drawn raises the odds of what is true by more than e^ε.
Not here: δ(ε), which is another number (core/guarantee.py), sentences about it (evidence/odds.py).
Proof: docs/proofs/composition.md

The odds between two versions of one individual's data are multiplied by e^L, L = ln p(output)/q(output), p being the
true version's law. δ(ε) = E max(0, 1 - e^(ε-L)) weighs an excess by its size; the tail P(L > ε) counts it, and is
larger.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.checks import at_least_zero, round_up
from sfumato.core.compose import ComposedDP, WorstOf
from sfumato.core.guarantee import ApproxDP, GaussianDP, Guarantee, NoGuarantee, PureDP
from sfumato.core.loss_distribution import law_delta
from sfumato.core.parts import Part
from sfumato.core.special import ndtr

__all__ = ["loss_tail"]

#: Over such a stretch of ε the slope of a numerical δ(ε) is taken; to the left, which can only enlarge the tail.
_STRETCH = 2e-3
_NUMERICAL = 1e-9


def loss_tail(guarantee: Guarantee, epsilon: float) -> float:
    """The chance that acts with this guarantee multiply the odds of what is true by more than e^`epsilon`.

    Exact for Gaussian noise, Φ(μ/2 - ε/μ), and 0 for pure privacy within its ε; by the loss distribution for mixtures
    of known acts; otherwise a bound that every mechanism with the guarantee keeps.

    >>> f"{loss_tail(GaussianDP(0.2366), 1.0):.1e}", loss_tail(PureDP(1.0), 1.0)
    ('2.0e-05', 0.0)
    """
    epsilon = at_least_zero(epsilon, "epsilon")
    match guarantee:
        case NoGuarantee():
            return 1.0
        case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
            return 0.0 if epsilon >= eps else round_up(1 / (1 + math.exp(-eps)))
        case ApproxDP(eps=eps, delta_=delta) if epsilon > eps:
            return min(1.0, round_up(delta / -math.expm1(eps - epsilon)))
        case GaussianDP(mu=mu):
            return min(1.0, round_up(float(ndtr(mu / 2 - epsilon / mu)), 1e-10))
        case WorstOf(guarantees=guarantees):
            return max(loss_tail(one, epsilon) for one in guarantees)
        case ComposedDP() if guarantee.epsilon(0.0) <= epsilon:
            return 0.0
        case ComposedDP(parts=parts) if guarantee.has_loss_distribution:
            return min(_numerical(parts, epsilon), _by_profile(guarantee, epsilon))
    return _by_profile(guarantee, epsilon)


def _numerical(parts: tuple[Part, ...], epsilon: float) -> float:
    """P(L > ε) = δ(ε) - δ'(ε): the derivative of δ = E max(0, 1 - e^(ε-L)) is minus the part with the exponential."""
    left = epsilon - _STRETCH
    here, before = law_delta(parts, epsilon), law_delta(parts, left)
    # Convex in e^ε, so the slope to the left is the steeper one.
    slope = (before - here) / -math.expm1(-_STRETCH)
    return min(1.0, round_up(here + max(0.0, slope), 1e-6) + _NUMERICAL)


def _by_profile(guarantee: Guarantee, epsilon: float) -> float:
    """P(L > ε) ≤ δ(ε')/(1 - e^(ε'-ε)) for all ε' < ε, as δ(ε') ≥ E[1 - e^(ε'-L); L > ε]; true after any processing."""
    below = epsilon * np.linspace(0.0, 1.0, 60, endpoint=False)
    bounds = [guarantee.delta(float(one)) / -math.expm1(float(one) - epsilon) for one in below] if epsilon > 0 else []
    return min([1.0, *(round_up(bound) for bound in bounds)])
