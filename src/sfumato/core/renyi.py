"""From a Rényi curve to (ε, δ), and the curves of the elementary guarantees.

In:   a function α ↦ ε(α) valid on (1, largest order].
Out:  the smallest δ or ε any order proves. Every order gives a true bound, so the search may be coarse.
Reference: Canonne, Kamath & Steinke 2020, Prop. 12 (the conversion of Balle et al. 2020, Thm 21).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sfumato.core.checks import round_up

__all__ = [
    "Curve",
    "delta_from_curve",
    "epsilon_from_curve",
    "laplace_curve",
    "three_point_curve",
    "two_point_curve",
    "two_point_rdp",
]

Curve = Callable[[np.ndarray], np.ndarray]

_ORDERS = 1 + np.geomspace(1e-4, 1e7, 1200)


def _orders(largest: float) -> np.ndarray:
    if math.isinf(largest):
        return _ORDERS
    return np.append(_ORDERS[largest > _ORDERS], largest)


def delta_from_curve(curve: Curve, epsilon: float, largest_order: float = math.inf) -> float:
    """Smallest δ with ln δ = (α-1)(ε(α) - ε) + α ln(1-1/α) - ln(α-1) over the orders α."""
    alpha = _orders(largest_order)
    exponents = (alpha - 1) * (curve(alpha) - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(alpha - 1)
    return min(1.0, round_up(math.exp(min(0.0, float(exponents.min())))))


def epsilon_from_curve(curve: Curve, delta: float, largest_order: float = math.inf) -> float:
    """Smallest ε = ε(α) + ln(1-1/α) - (ln δ + ln α)/(α-1) over the orders α; infinite for δ = 0."""
    if delta == 0:
        return math.inf
    alpha = _orders(largest_order)
    values = curve(alpha) + np.log1p(-1 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1)
    return max(0.0, round_up(float(values.min())))


def two_point_curve(epsilon: float, alpha: np.ndarray) -> np.ndarray:
    """Rényi divergence of orders α between the two answers of ε-DP randomised response: the worst ε-DP pair.

    ln(p^α q^{1-α} + q^α p^{1-α}) / (α-1) with p = e^ε/(1+e^ε), q = 1-p.
    """
    log_p, log_q = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    log_sum = np.logaddexp(alpha * log_p + (1 - alpha) * log_q, alpha * log_q + (1 - alpha) * log_p)
    return _bounded(epsilon, alpha, log_sum)


def three_point_curve(epsilon: float, answers: float, alpha: np.ndarray) -> np.ndarray:
    """The same where an answer comes with the chance `answers` and nothing is said otherwise.

    Where nothing is said both laws agree, so the sum p^α q^{1-α} is a mixture of 1 and that of the two answers.
    """
    two_points = two_point_curve(epsilon, alpha)
    if answers >= 1:
        return two_points
    log_sum = np.logaddexp(math.log1p(-answers), math.log(answers) + (alpha - 1) * two_points)
    return np.minimum(two_points, _bounded(epsilon, alpha, log_sum))


def _bounded(epsilon: float, alpha: np.ndarray, log_sum: np.ndarray) -> np.ndarray:
    """ln(sum)/(α-1) with the rounding error of the logarithm added; never above ε or αε²/2 (Bun & Steinke 2016)."""
    error = 1e-15 * (2 + alpha * epsilon + np.abs(log_sum))
    value = (np.maximum(0.0, log_sum) + error) / (alpha - 1)
    return np.minimum(np.minimum(epsilon, alpha * (epsilon * epsilon / 2) * (1 + 1e-12)), value)


def two_point_rdp(epsilon: float, alpha: float) -> float:
    """The same at one order, infinity included."""
    return epsilon if math.isinf(alpha) else float(two_point_curve(epsilon, np.array(alpha)))


def laplace_curve(epsilon: float, alpha: np.ndarray) -> np.ndarray:
    """Laplace noise on one number of sensitivity/scale = ε (Mironov 2017, Prop. 6)."""
    log_sum = np.logaddexp(
        np.log(alpha / (2 * alpha - 1)) + (alpha - 1) * epsilon, np.log((alpha - 1) / (2 * alpha - 1)) - alpha * epsilon
    )
    return _bounded(epsilon, alpha, log_sum)
