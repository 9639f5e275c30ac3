"""From a solver's probabilities to whole-number weights whose privacy is certain.

In:   probabilities that are private up to a tolerance, ε; for δ > 0 those of the channel that is free then.
Out:  integer weights, every row with the sum 2^62, certified in rational arithmetic.
Not here: the solver (tailored_solver.py), drawing by the weights (tailored_sampling.py).
Proof: docs/proofs/tailored_noise.md

A tolerance is not a proof: an error of 1e-10 in a rare output can make its ratio, and so ε, as large as one likes
(optimal channels of a general solver asked for ε = 0.5, 1, 2 had 0.57, 1.47, 2.43). Here every output gets a whole
range [L, M] with M ≤ e^ε L, and every row is moved into it by a few units in 10^18. With δ > 0 that is done with all
units but ⌊δ·2^62⌋, and those go where the free channel puts them: whatever it does, δ is not exceeded.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.core.events.channel import delta_of_weights, exp_below, largest_ratio
from sfumato.errors import PrivacyParameterError

__all__ = ["LARGEST_EPSILON", "TOTAL", "TOTAL_BITS", "merged", "private_weights"]

TOTAL_BITS = 62
TOTAL = 1 << TOTAL_BITS
#: Beyond it a wrong output has a chance of less than 10^-17, and the weights would no longer fit a word.
LARGEST_EPSILON = 40.0
#: Outputs that are rarer than this for every input join their neighbour.
_RARE = 1e-6
#: What a row may have to be moved by, out of 2^62, before more mixing is tried instead.
_FARTHEST = 1 << 50
#: How much of the mean row is mixed in, until the certificate holds; all of it would hide everything.
_SHARES = (0.0, *(10.0**exponent for exponent in range(-13, 0)), 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1.0)
#: A stated ε is rounded up in its last digits; this leaves the room for it.
_SLACK = 1e-14


def merged(probabilities: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
    """The probabilities without rare outputs, the others with the same, and the outputs that stay.

    Outputs are in order of their values. A rare column is added to the nearest kept one: post-processing, so privacy is
    not touched.
    """
    often = probabilities.max(axis=0)
    kept = np.flatnonzero(often >= min(_RARE, float(often.max())))
    middle = (kept[1:] + kept[:-1]) / 2
    target = np.searchsorted(middle, np.arange(len(often)))
    results = []
    for table in (probabilities, *others):
        results.append(np.zeros((len(table), len(kept))))
        np.add.at(results[-1].T, target, table.T)
    return (*results, kept)


def private_weights(
    probabilities: np.ndarray, epsilon: float, delta: float = 0.0, free: np.ndarray | None = None
) -> np.ndarray:
    """Weights (int64, rows of sum 2^62) near the probabilities, with ε, or (ε, δ), proved in rational arithmetic.

    With δ they are near (1-δ)·probabilities + δ·free.

    Mixing with the mean row makes any channel more private: it is tried in ever larger amounts until the certificate
    holds, and without one nothing is returned.

    >>> weights = private_weights(np.array([[0.75, 0.25], [0.25, 0.75]]), math.log(3) - 1e-3)
    >>> bool(largest_ratio(weights.tolist()) <= exp_below(math.log(3) - 1e-3))
    True
    """
    clipped = _rows_of_one(probabilities)
    mean = clipped.mean(axis=0)
    least = min(epsilon * (1 - _SLACK), LARGEST_EPSILON)
    units = 0 if free is None else math.floor(Fraction(delta) * TOTAL)
    freely = 0 if free is None else _rounded(_rows_of_one(free), units)
    for share in _SHARES:
        weights = _within_ratio((1 - share) * clipped + share * mean, exp_below(least), TOTAL - units)
        if weights is not None and _certified(weights + freely, least, delta):
            return weights + freely
    raise PrivacyParameterError(
        f"The channel cannot be made private at ε = {epsilon:g} in whole numbers of 62 bits. Ask for a larger ε or "
        "fewer outputs. Nothing was drawn or spent."
    )


def _rows_of_one(probabilities: np.ndarray) -> np.ndarray:
    clipped = np.maximum(probabilities, 0.0)
    return clipped / clipped.sum(axis=1, keepdims=True)


def _certified(weights: np.ndarray, epsilon: float, delta: float) -> bool:
    rows = weights.tolist()  # Python's integers, which have no limit
    if any(sum(row) != TOTAL or min(row) < 0 for row in rows):
        return False
    if delta == 0:
        ratio = largest_ratio(rows)
        return ratio is not None and ratio <= exp_below(epsilon)
    return delta_of_weights(rows, epsilon) <= Fraction(delta)


def _within_ratio(probabilities: np.ndarray, ratio: Fraction, total: int) -> np.ndarray | None:
    """Every column in [L, M] with M ≤ ratio·L, every row of this sum; None where that needs more than rounding."""
    highest = [math.ceil(Fraction(top) * total) for top in probabilities.max(axis=0).tolist()]
    # Rows that are all alike have the sum one but for rounding, and may be short of it.
    short = max(0, total - sum(highest))
    highest = [top - -short // len(highest) for top in highest]
    lowest = [max(1, -(-top * ratio.denominator // ratio.numerator)) for top in highest]
    highest = [min(total, max(top, low)) for top, low in zip(highest, lowest, strict=True)]
    if sum(lowest) > total or sum(highest) < total:
        return None
    low, high = np.array(lowest, dtype=np.int64), np.array(highest, dtype=np.int64)
    return _filled(np.clip(_whole(probabilities, total), low, high), low, high, total)


def _rounded(probabilities: np.ndarray, total: int) -> np.ndarray:
    weights = _whole(probabilities, total)
    filled = _filled(weights, np.zeros_like(weights[0]), np.full_like(weights[0], total), total)
    assert filled is not None  # rows of sum one are moved by their rounding alone
    return filled


def _whole(probabilities: np.ndarray, total: int) -> np.ndarray:
    return np.minimum(np.rint(probabilities * float(total)), float(total)).astype(np.int64)


def _filled(weights: np.ndarray, low: np.ndarray, high: np.ndarray, total: int) -> np.ndarray | None:
    """Each row moved to the sum `total` inside its bounds."""
    for row in weights:
        missing = total - sum(row.tolist())
        if abs(missing) > _FARTHEST:
            return None
        room = np.minimum(high - row if missing > 0 else row - low, abs(missing))
        order = np.argsort(-room, kind="stable")
        before = np.cumsum(room[order]) - room[order]
        take = np.clip(abs(missing) - before, 0, room[order])
        row[order] += take if missing > 0 else -take
    return weights
