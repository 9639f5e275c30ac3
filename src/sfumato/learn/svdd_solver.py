"""The point of least norm in a reduced convex hull, with a certificate of how far it can be off.

In:   rows φ_i of norm 1, a cap u on their weights, a public tolerance.
Out:  HullPoint: a = Σβ_i φ_i with 0 ≤ β ≤ u, Σβ = 1, and a gap with ‖a - a*‖² ≤ gap ≤ tolerance.
Not here: privacy (learn/svdd.py), features (learn/features.py).
Proof: docs/proofs/svdd.md, "The gap"

Interior point steps in feature space: the n×n kernel matrix is never formed, a step costs n·width². Rows of high score
carry no weight, so the steps are taken on the rows of lowest score and the result is certified on all. Should rounding
stop them early, exchanges of weight between two rows go on until the gap is certified; after 100,000 of them, which was
never seen, the run ends and no centre is published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sfumato.learn.device_features import Features, weighted_gram
from sfumato.learn.newton import not_arrived
from sfumato.learn.rows import BLOCK

__all__ = ["LEAST_TOLERANCE", "HullPoint", "centre_of", "certified_gap", "exchange", "is_mean", "nearest_to_origin"]

#: Below this, rounding of sums over rows would blur the certificate.
LEAST_TOLERANCE = 1e-10
_MOST_STEPS = 100
#: Rounds of growing parts of the rows before all are taken.
_MOST_PARTS = 12
#: Hundreds of exchanges after which a run ends without a centre.
_MOST_ROUNDS = 1000
#: Where the multipliers begin.
_FIRST = 0.1
#: From so many numbers on, single precision is worth its copy.
_LARGE = 100_000
#: A shorter step says that the precision of its direction is used up.
_SHORT = 0.2
#: A step this short in double precision leads nowhere.
_STALLED = 1e-3


@dataclass(frozen=True)
class HullPoint:
    """`centre` and the `weights` it is made of; the true nearest point lies within √gap."""

    centre: np.ndarray
    weights: np.ndarray
    gap: float
    steps: int


def certified_gap(features: Features, weights: np.ndarray, cap: float) -> float:
    """‖a‖² - min ⟨a, s⟩ over the reduced hull: an upper bound of ‖a - a*‖².

    >>> certified_gap(np.eye(2), np.array([0.5, 0.5]), cap=1.0) < 1e-11
    True
    >>> round(certified_gap(np.eye(2), np.array([1.0, 0.0]), cap=1.0), 6)
    1.0
    """
    centre = centre_of(features, weights)
    scores = features @ centre
    full = min(len(scores), int(1 / cap))
    least = np.partition(scores, min(full, len(scores) - 1))
    lowest = cap * float(least[:full].sum())
    if full < len(scores):
        lowest += max(0.0, 1 - cap * full) * float(least[full])
    return max(0.0, float(centre @ centre) - lowest) + _rounding(features)


def centre_of(features: Features, weights: np.ndarray) -> np.ndarray:
    """Σβφ, added block by block: the rounding error grows with BLOCK + n/BLOCK, not with n."""
    total = np.zeros(features.shape[1])
    for start in range(0, len(features), BLOCK):
        total += weights[start : start + BLOCK] @ features[start : start + BLOCK]
    return total


def _rounding(features: Features) -> float:
    """Rounding of the centre, of scores and of the weights' sum for rows of norm 1; added to every gap."""
    count, width = features.shape
    return 16 * (BLOCK + count / BLOCK + width) * 2.0**-53


def is_mean(count: int, cap: float) -> bool:
    """Whether the cap leaves every record the same weight: then the mean itself is released, without a solver."""
    return cap * count <= 1 + 1e-9


def nearest_to_origin(features: Features, cap: float, tolerance: float) -> HullPoint:
    """The reduced hull's point of least norm, certified to `tolerance` (at least LEAST_TOLERANCE).

    >>> found = nearest_to_origin(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), cap=0.6, tolerance=1e-10)
    >>> found.centre.round(4)
    array([0.5, 0.5])
    """
    tolerance = max(tolerance, LEAST_TOLERANCE)
    count = len(features)
    if is_mean(count, cap):
        weights = np.full(count, 1 / count)
        return HullPoint(centre_of(features, weights), weights, _rounding(features), 0)
    if isinstance(features, np.ndarray) and _few(features, cap) < count // 2:
        found = _by_lowest_rows(features, cap, tolerance)
        if found is not None:
            return found
    return _by_all_rows(features, cap, tolerance)


def _few(features: np.ndarray, cap: float) -> int:
    """Rows to begin with: more than can carry weight, which are 1/cap at the cap and about width between."""
    return int(2 / cap) + 2 * features.shape[1]


def _by_lowest_rows(features: np.ndarray, cap: float, tolerance: float) -> HullPoint | None:
    """The point of a growing part of the rows, those of lowest score; certified on all rows, so that it is the point.

    How many rows carry weight does not grow with their number: a round costs one pass over all rows.
    """
    few, steps = _few(features, cap), 0
    scores = features @ centre_of(features, np.full(len(features), 1 / len(features)))
    part = np.argpartition(scores, few)[:few]
    for _ in range(_MOST_PARTS):
        found = _by_all_rows(features[part], cap, tolerance / 2)
        weights = np.zeros(len(features))
        weights[part] = found.weights
        steps += found.steps
        gap = certified_gap(features, weights, cap)
        if gap <= tolerance:
            return HullPoint(found.centre, weights, gap, steps)
        scores = features @ found.centre
        scores[part] = np.inf
        more = min(few // 2, len(features) - len(part) - 1)
        if more < 1:
            break
        part = np.concatenate([part, np.argpartition(scores, more)[:more]])
    return None


def _by_all_rows(features: Features, cap: float, tolerance: float) -> HullPoint:
    count, steps = len(features), 0
    weights = np.full(count, 1 / count)
    for candidate in _interior_points(features, cap):
        steps += 1
        weights = _feasible(candidate.beta, cap)
        if 2 * count * candidate.barrier > 100 * tolerance:  # the gap is of that size: no use to certify yet
            continue
        gap = certified_gap(features, weights, cap)
        if gap <= tolerance:
            return HullPoint(centre_of(features, weights), weights, gap, steps)
    return exchange(features, weights, cap, tolerance, steps)


def _feasible(weights: np.ndarray, cap: float) -> np.ndarray:
    """The nearest weights in [0, cap] that sum to 1, up to a shift: clipping and sharing what is missing."""
    weights = np.clip(weights, 0.0, cap)
    missing = 1.0 - weights.sum()
    room = cap - weights if missing > 0 else weights
    return weights + missing * room / max(float(room.sum()), 1e-300)


class _Newton:
    """Solves (ΦΦᵀ + diag(scale))·x - shift·1 = right, Σx = total, through a width×width matrix (Woodbury).

    Works in the precision of `features`; single precision is enough for a direction and twice as fast.
    """

    def __init__(self, features: Features, scale: np.ndarray) -> None:
        self.features = features
        self.inverse = (1 / scale).astype(features.dtype)
        inside = weighted_gram(features, self.inverse)
        inside[np.diag_indices(len(inside))] += 1
        self.inside = cho_factor(inside, check_finite=False, overwrite_a=True)
        self.ones = self._solve(np.ones(len(features)))

    def _solve(self, right: np.ndarray) -> np.ndarray:
        plain = (right * self.inverse).astype(self.inverse.dtype)
        pulled = cho_solve(self.inside, plain @ self.features, check_finite=False)
        return (plain - (self.features @ pulled) * self.inverse).astype(np.float64)

    def __call__(self, right: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        base = self._solve(right)
        shift = (total - float(base.sum())) / float(self.ones.sum())
        return base + shift * self.ones, shift


@dataclass(frozen=True)
class _Iterate:
    """Weights, their room below the cap, the multipliers of both bounds and of the sum."""

    beta: np.ndarray
    slack: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float

    @property
    def barrier(self) -> float:
        return float(self.low @ self.beta + self.high @ self.slack) / (2 * len(self.beta))

    def moved(self, length: float, step: np.ndarray, low: np.ndarray, high: np.ndarray, shift: float) -> _Iterate:
        return _Iterate(
            self.beta + length * step,
            self.slack - length * step,
            self.low + length * low,
            self.high + length * high,
            self.level + length * shift,
        )

    @property
    def inside(self) -> bool:
        return min(float(part.min()) for part in (self.beta, self.slack, self.low, self.high)) > 0


def _interior_points(features: Features, cap: float) -> Iterator[_Iterate]:
    """Mehrotra's predictor and corrector for ½‖Σβφ‖², 0 ≤ β ≤ cap, Σβ = 1; yields after each step.

    Directions are taken in single precision while they carry far enough, then in double; residuals always in double.
    """
    count = len(features)
    beta = np.full(count, 1 / count)
    # Multipliers are as large as scores differ from one another; scores lie in [-1, 1].
    now = _Iterate(beta, cap - beta, np.full(count, _FIRST), np.full(count, _FIRST), 0.0)
    matrices = [features]
    if features.size > _LARGE:
        matrices.append(features.astype(np.float32))
    for _ in range(_MOST_STEPS):
        following, length = _step(features, matrices[-1], now)
        if following is None or length < (_SHORT if len(matrices) > 1 else _STALLED):
            matrices.pop()
            if not matrices:
                return
        if following is not None:
            now = following
            yield now


def _step(features: Features, matrix: Features, now: _Iterate) -> tuple[_Iterate | None, float]:
    """One step with directions from `matrix`: where it leads and how far it went, or None."""
    beta, slack, low, high = now.beta, now.slack, now.low, now.high
    dual = now.level + low - high - features @ (beta @ features)
    barrier, total = now.barrier, 1.0 - float(beta.sum())
    scale = low / beta + high / slack
    if scale.max() * max(1.0, 1 / scale.min()) > np.finfo(matrix.dtype).max ** 0.5:
        return None, 0.0  # out of this precision's range
    try:
        newton = _Newton(matrix, scale)
    except np.linalg.LinAlgError:
        return None, 0.0
    lows, highs = -low * beta, -high * slack
    step, _ = newton(dual + lows / beta - highs / slack, total)
    length = _longest(beta, step, slack, -step)
    low_step, high_step = (lows - low * step) / beta, (highs + high * step) / slack
    after = (low + length * low_step) @ (beta + length * step)
    after += (high + length * high_step) @ (slack - length * step)
    target = barrier * min(1.0, max(float(after), 0.0) / (2 * len(beta) * barrier)) ** 3
    lows, highs = target + lows - step * low_step, target + highs + step * high_step
    step, shift = newton(dual + lows / beta - highs / slack, total)
    low_step, high_step = (lows - low * step) / beta, (highs + high * step) / slack
    length = min(_longest(beta, step, slack, -step), _longest(low, low_step, high, high_step)) * 0.995
    if not math.isfinite(length):
        return None, 0.0
    following = now.moved(length, step, low_step, high_step, shift)
    return (following, length) if following.inside else (None, 0.0)


def _longest(*pairs: np.ndarray) -> float:
    """The largest step ≤ 1 that keeps every value (even arguments) moved by its direction (odd ones) above 0."""
    most = 1.0
    for value, move in zip(pairs[::2], pairs[1::2], strict=True):
        falling = move < 0
        if falling.any():
            most = min(most, float((value[falling] / -move[falling]).min()))
    return most


def exchange(features: Features, weights: np.ndarray, cap: float, tolerance: float, steps: int = 0) -> HullPoint:
    """Moves weight from the row of highest score to the one of lowest, exactly, until the gap is certified."""
    weights = weights.copy()
    for _ in range(_MOST_ROUNDS):
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
            return HullPoint(centre_of(features, weights), weights, gap, steps)
    raise not_arrived()
