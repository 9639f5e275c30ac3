"""The point of least norm in a reduced convex hull, with a certificate of how far it can be off.

In:   rows φ_i of norm 1, a cap u on their weights, a public tolerance.
Out:  HullPoint: a = Σβ_i φ_i with 0 ≤ β ≤ u, Σβ = 1, and a gap with ‖a - a*‖² ≤ gap ≤ tolerance.
Not here: privacy (learn/svdd.py), features (learn/features.py).
Proof: docs/proofs/svdd.md, "The gap"

Interior point steps in feature space: the n×n kernel matrix is never formed, a step costs n·width². Should rounding
stop them early, exchanges of weight between two rows go on until the gap is certified: giving up would tell something
about the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

__all__ = ["LEAST_TOLERANCE", "HullPoint", "certified_gap", "exchange", "nearest_to_origin"]

#: Below this, rounding of sums over rows would blur the certificate.
LEAST_TOLERANCE = 1e-11
_MOST_STEPS = 100
#: Rounding of scores and norms of unit vectors, added to every gap.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class HullPoint:
    """`centre` and the `weights` it is made of; the true nearest point lies within √gap."""

    centre: np.ndarray
    weights: np.ndarray
    gap: float
    steps: int


def certified_gap(features: np.ndarray, weights: np.ndarray, cap: float) -> float:
    """‖a‖² - min ⟨a, s⟩ over the reduced hull: an upper bound of ‖a - a*‖².

    >>> certified_gap(np.eye(2), np.array([0.5, 0.5]), cap=1.0) < 1e-12
    True
    >>> round(certified_gap(np.eye(2), np.array([1.0, 0.0]), cap=1.0), 6)
    1.0
    """
    centre = weights @ features
    scores = features @ centre
    full = min(len(scores), int(1 / cap))
    least = np.partition(scores, min(full, len(scores) - 1))
    lowest = cap * float(least[:full].sum())
    if full < len(scores):
        lowest += max(0.0, 1 - cap * full) * float(least[full])
    return max(0.0, float(centre @ centre) - lowest) + _ROUNDING


def nearest_to_origin(features: np.ndarray, cap: float, tolerance: float) -> HullPoint:
    """The reduced hull's point of least norm, certified to `tolerance` (at least LEAST_TOLERANCE).

    >>> found = nearest_to_origin(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), cap=0.6, tolerance=1e-10)
    >>> found.centre.round(4)
    array([0.5, 0.5])
    """
    tolerance = max(tolerance, LEAST_TOLERANCE)
    count = len(features)
    weights = np.full(count, 1 / count)
    if cap * count <= 1 + 1e-9:  # the only point of the hull is the mean
        return HullPoint(weights @ features, weights, _ROUNDING, 0)
    steps = 0
    for candidate in _interior_points(features, cap):
        steps += 1
        weights = _feasible(candidate, cap)
        gap = certified_gap(features, weights, cap)
        if gap <= tolerance:
            return HullPoint(weights @ features, weights, gap, steps)
    return exchange(features, weights, cap, tolerance, steps)


def _feasible(weights: np.ndarray, cap: float) -> np.ndarray:
    """The nearest weights in [0, cap] that sum to 1, up to a shift: clipping and sharing what is missing."""
    weights = np.clip(weights, 0.0, cap)
    missing = 1.0 - weights.sum()
    room = cap - weights if missing > 0 else weights
    return weights + missing * room / max(float(room.sum()), 1e-300)


class _Newton:
    """Solves (ΦΦᵀ + diag(scale))·x - shift·1 = right, Σx = total, through a width×width matrix (Woodbury)."""

    def __init__(self, features: np.ndarray, scale: np.ndarray) -> None:
        self.features, self.scale = features, scale
        inside = np.eye(features.shape[1]) + (features / scale[:, None]).T @ features
        self.inside = cho_factor(inside, check_finite=False)
        self.ones = self._solve(np.ones(len(features)))

    def _solve(self, right: np.ndarray) -> np.ndarray:
        plain = right / self.scale
        return plain - (self.features @ cho_solve(self.inside, plain @ self.features)) / self.scale

    def __call__(self, right: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        base = self._solve(right)
        shift = (total - float(base.sum())) / float(self.ones.sum())
        return base + shift * self.ones, shift


def _interior_points(features: np.ndarray, cap: float) -> Iterator[np.ndarray]:
    """Mehrotra's predictor and corrector for ½‖Σβφ‖², 0 ≤ β ≤ cap, Σβ = 1; yields β after each step.

    `low` and `high` are the multipliers of the two bounds, `level` that of the sum.
    """
    count = len(features)
    beta = np.full(count, 1 / count)
    slack, level = cap - beta, 0.0
    low, high = np.ones(count), np.ones(count)
    for _ in range(_MOST_STEPS):
        dual = level + low - high - features @ (beta @ features)
        barrier = float(low @ beta + high @ slack) / (2 * count)
        try:
            newton = _Newton(features, low / beta + high / slack)
        except np.linalg.LinAlgError:
            return
        lows, highs, total = -low * beta, -high * slack, 1.0 - float(beta.sum())
        step, _ = newton(dual + lows / beta - highs / slack, total)
        length = _longest(beta, step, slack, -step)
        low_step, high_step = (lows - low * step) / beta, (highs + high * step) / slack
        after = (low + length * low_step) @ (beta + length * step)
        after += (high + length * high_step) @ (slack - length * step)
        target = barrier * min(1.0, max(float(after), 0.0) / (2 * count * barrier)) ** 3
        lows, highs = target + lows - step * low_step, target + highs + step * high_step
        step, shift = newton(dual + lows / beta - highs / slack, total)
        low_step, high_step = (lows - low * step) / beta, (highs + high * step) / slack
        length = min(_longest(beta, step, slack, -step), _longest(low, low_step, high, high_step)) * 0.995
        if not math.isfinite(length) or length < 1e-10:
            return
        beta, slack = beta + length * step, slack - length * step
        low, high, level = low + length * low_step, high + length * high_step, level + length * shift
        if min(beta.min(), slack.min(), low.min(), high.min()) <= 0:
            return
        yield beta


def _longest(*pairs: np.ndarray) -> float:
    """The largest step ≤ 1 that keeps every value (even arguments) moved by its direction (odd ones) above 0."""
    most = 1.0
    for value, move in zip(pairs[::2], pairs[1::2], strict=True):
        falling = move < 0
        if falling.any():
            most = min(most, float((value[falling] / -move[falling]).min()))
    return most


def exchange(features: np.ndarray, weights: np.ndarray, cap: float, tolerance: float, steps: int = 0) -> HullPoint:
    """Moves weight from the row of highest score to the one of lowest, exactly, until the gap is certified."""
    weights = weights.copy()
    while True:
        scores = features @ (weights @ features)
        for _ in range(100):
            giver = int(np.argmax(np.where(weights > 0, scores, -np.inf)))
            taker = int(np.argmin(np.where(weights < cap, scores, np.inf)))
            apart = features[taker] - features[giver]
            curvature = float(apart @ apart)
            if scores[giver] <= scores[taker] or curvature == 0:
                break
            moved = (scores[giver] - scores[taker]) / curvature
            moved = min(moved, weights[giver], cap - weights[taker])
            weights[giver] = 0.0 if moved == weights[giver] else weights[giver] - moved
            weights[taker] = cap if moved == cap - weights[taker] else weights[taker] + moved
            scores += moved * (features @ apart)
            steps += 1
        gap = certified_gap(features, weights, cap)
        if gap <= tolerance:
            return HullPoint(weights @ features, weights, gap, steps)
