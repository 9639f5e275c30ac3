"""The exact privacy profile of Gaussian noise, and its inverses.

In:   μ = sensitivity / σ, ε, δ.
Out:  δ(ε), ε(δ), the largest μ for (ε, δ). All are rounded against us by a relative 1e-12.
Not here: drawing noise (mechanisms/gaussian.py), composition (core/compose.py).
Proof: docs/proofs/gaussian.md

With z = ε/μ - μ/2, φ the normal density and R its Mills ratio (1-Φ)/φ,

    δ(ε) = Φ(-z) - e^ε Φ(-z-μ) = φ(z) (R(z) - R(z+μ)) = φ(z) ∫_z^{z+μ} (1 - t R(t)) dt        (Balle & Wang 2018, Thm 8)

because e^ε φ(z+μ) = φ(z). The difference of Mills ratios avoids overflow of e^ε, and the integral avoids the
cancellation that is left when μ is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.core.checks import at_least_zero, positive, probability, round_down, round_up
from sfumato.core.roots import root_between
from sfumato.core.special import erfcx, legendre_rule, ndtr
from sfumato.errors import PrivacyParameterError

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_mu", "gaussian_scale"]

_NODES, _WEIGHTS = legendre_rule(24)
_LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)


def _mills(z: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(z / math.sqrt(2)))


def _one_minus_t_mills(t: np.ndarray) -> np.ndarray:
    """1 - t R(t), the slope of the Mills ratio with its sign turned; positive and decreasing in t."""
    direct = 1 - t * math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))
    # From t = 50 on the difference has lost half its digits; the asymptotic series has not.
    inverse = (1 / np.maximum(t, 50.0)) ** 2
    series = inverse * (1 - 3 * inverse * (1 - 5 * inverse * (1 - 7 * inverse * (1 - 9 * inverse))))
    return np.where(t < 50, direct, series)


def _log_delta(mu: float, epsilon: float) -> float:
    """ln δ(ε) without rounding; accurate in relative terms even where δ underflows."""
    z = _distance(mu, epsilon)
    if mu < 1 and z > -5:
        points = z + mu * (_NODES + 1) / 2
        difference = float(mu / 2 * np.dot(_WEIGHTS, _one_minus_t_mills(points)))
    elif z > -5:
        difference = _mills(z) - _mills(z + mu)
    else:
        # Φ(-z) is near 1 here and nothing cancels.
        return math.log(float(ndtr(-z)) - math.exp(-z * z / 2 - _LOG_SQRT_TWO_PI) * _mills(z + mu))
    if difference <= 0:  # z is so large that the ratios agree to the last digit; the slope falls, so this is a bound
        difference = mu * float(_one_minus_t_mills(np.array(z)))
    return math.log(difference) - z * z / 2 - _LOG_SQRT_TWO_PI if difference > 0 else -math.inf


def _distance(mu: float, epsilon: float) -> float:
    """z = ε/μ - μ/2. For large μ the two are large and nearly equal: as fractions, rounded once."""
    if mu < 8 or not math.isfinite(epsilon):
        return epsilon / mu - mu / 2
    exact = Fraction(mu)
    return float((Fraction(epsilon) - exact * exact / 2) / exact)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest δ for which noise with sensitivity/σ = `mu` is (`epsilon`, δ)-DP; any real ε is allowed.

    Balle & Wang 2018, Thm 8.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    mu = at_least_zero(mu, "mu")
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    if math.isinf(epsilon):
        return 0.0 if epsilon > 0 else 1.0
    if epsilon < 0:
        # δ(ε) = 1 - e^ε + e^ε δ(-ε): the curve is symmetric because the two noise laws are mirror images.
        return min(1.0, round_up(-math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(mu, -epsilon)))
    return min(1.0, round_up(math.exp(_log_delta(mu, epsilon))))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest ε ≥ 0 for which noise with sensitivity/σ = `mu` is (ε, `delta`)-DP; infinite for `delta` = 0.

    >>> round(gaussian_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    mu, delta = at_least_zero(mu, "mu"), probability(delta)
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if delta == 0:
        return math.inf
    target = math.log(delta)
    # δ(ε) <= Φ(-z) <= exp(-z²/2), so this z is large enough; z decreases to -μ/2 at ε = 0.
    high = round_up(mu * (math.sqrt(-2 * target) + mu / 2 + 1))
    if math.isinf(high):
        return math.inf
    root = root_between(lambda epsilon: _log_delta(mu, epsilon) - target, 0.0, high)
    return _until(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, root, grow=True)


def gaussian_mu(eps: float, delta: float) -> float:
    """Largest μ = sensitivity/σ for which Gaussian noise is (`eps`, `delta`)-DP. Exact, not the classical bound.

    Balle & Wang 2018, Thm 8; stable for ε from 1e-4 to 100 and δ from 1e-15 to 0.5, and beyond.

    >>> round(1 / gaussian_mu(1.0, 1e-5), 2)
    3.73
    """
    eps, delta = at_least_zero(eps, "epsilon"), probability(delta)
    if delta == 0:
        raise PrivacyParameterError(
            "Gaussian noise never gives delta = 0. Ask for a small delta such as 1e-6, or use Laplace or NormGamma."
        )
    return _largest_mu(float(eps), float(delta))


@lru_cache(maxsize=1024)
def _largest_mu(eps: float, delta: float) -> float:
    """A plan asks for the same few promises again and again."""
    target = math.log(delta)
    low, high = 1e-3, 1e-3
    while _log_delta(low, eps) > target:
        low, high = low / 4, low
    while _log_delta(high, eps) < target:
        low, high = high, high * 4
    root = root_between(lambda mu: _log_delta(mu, eps) - target, low, high)
    return _until(lambda mu: gaussian_delta(mu, eps) <= delta, root, grow=False)


def gaussian_scale(eps: float, delta: float, sensitivity: float) -> float:
    """Smallest σ for which adding N(0, σ²) to a value of L2 `sensitivity` is (`eps`, `delta`)-DP.

    >>> round(gaussian_scale(1.0, 1e-5, sensitivity=1.0), 2)
    3.73
    """
    return round_up(positive(sensitivity, "sensitivity") / gaussian_mu(eps, delta), 1e-13)


def _until(holds: Callable[[float], bool], value: float, *, grow: bool) -> float:
    """Move `value` outwards in tiny relative steps until the privacy condition `holds` as computed."""
    step = 1e-13
    while not holds(value):
        value = round_up(value, step) if grow else round_down(value, step)
        step *= 2
    return value
