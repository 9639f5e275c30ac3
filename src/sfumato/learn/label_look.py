"""How many have the label, privately: where the constant of a linear classifier starts from.

In:   a budget, a loss of two classes; the numbers of records with either label.
Out:  what the look costs and its noise; the constant score that is best for the share of the label that was seen.
Not here: accounting (learn/calibration.py), training (learn/base.py).
Proof: docs/proofs/objective_perturbation.md, "A centre that was bought"

The penalty ½Λ‖f‖² holds the constant near 0. Where few have the label, the constant wants to be far below: if that is
dear, columns that are mostly of one sign take its part, and where they are few the order of people turns round (an area
under the curve of .24 for .76: one column, a label that 5 % have). So the penalty is ½Λ‖f - f₀‖², and f₀ is the
constant alone that is best for the noisy share of the label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.guarantee import GaussianDP, PureDP
from sfumato.learn.losses import Loss
from sfumato.mechanisms import Gaussian, Laplace

__all__ = ["best_score", "farthest_score", "look_noise", "look_share", "seen_share"]

#: What a look may cost, of μ² or of a pure ε: so much that the share is off by half a percent, within these.
_PRECISION = 0.005
_LEAST_SHARE, _LARGEST_SHARE = 0.001, 0.03
#: Deviations within which a share is not told from one half.
_DOUBT = 2.0
#: No score is farther from 0 than this.
_FARTHEST = 64.0


def look_share(precision: float, size: int, *, pure: bool) -> float:
    """The look's share of a budget whose whole μ or ε is `precision`: a rule of public facts.

    >>> look_share(0.2, 2000, pure=False), round(look_share(0.2, 50_000, pure=False), 4)
    (0.03, 0.001)
    """
    wanted = 1 / (precision * size * _PRECISION)
    wanted = math.sqrt(2) * wanted if pure else wanted * wanted
    return min(_LARGEST_SHARE, max(_LEAST_SHARE, wanted))


def look_noise(cost: float, adjacency: Adjacency, *, pure: bool) -> Gaussian | Laplace:
    """Noise at μ or ε = `cost` for the number of records with the label; for both numbers where records are added.

    Replacing a record moves the one number by 1, adding or removing one moves one of the two by 1.
    """
    dimension = 1 if adjacency.relation == "replace-one" else 2
    if pure:
        return Laplace.for_guarantee(PureDP(cost), 1.0, adjacency, dimension=dimension)
    return Gaussian.for_guarantee(GaussianDP(cost), 1.0, adjacency, dimension=dimension)


def seen_share(counts: Sequence[float] | np.ndarray, size: int, deviation: float) -> float:
    """The share of the label by noisy counts: (with it,) of `size` records, or (with it, without it).

    What lies within two deviations of one half is one half, and what lies beyond is drawn to it as Stein's rule does:
    a centre that is noise would mislead the other coefficients, and labels that half of all have need none.

    >>> seen_share([520.0], 1000, 15.0), round(seen_share([50.0], 1000, 15.0), 3)
    (0.5, 0.052)
    """
    least, whole = _least(size), float(size) if len(counts) == 1 else max(1.0, float(counts[0]) + float(counts[1]))
    beyond = min(1.0, max(0.0, float(counts[0]) / whole)) - 0.5
    doubt = (_DOUBT * deviation / whole) ** 2
    share = 0.5 + (beyond * (1 - doubt / beyond**2) if beyond**2 > doubt else 0.0)
    return min(1 - least, max(least, share))


def _least(size: int) -> float:
    """The smallest share that is told from none."""
    return min(0.5, 1 / (8 * math.sqrt(size)))


def best_score(loss: Loss, share: float) -> float:
    """The one score for all that has the least loss if this share has the label; the nearest to 0 of several.

    >>> from sfumato.learn.losses import HuberLoss, LogisticLoss
    >>> round(best_score(LogisticLoss(), 0.05), 3), round(math.log(0.05 / 0.95), 3)
    (-2.944, -2.944)
    >>> round(best_score(HuberLoss(0.5), 0.95), 3)
    1.447
    """
    if share > 0.5:
        return -best_score(loss, 1 - share)
    low, high = -_FARTHEST, 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        ours, theirs = loss.slope(np.array([middle, -middle]))
        low, high = (low, middle) if share * ours > (1 - share) * theirs else (middle, high)
    return high


def farthest_score(loss: Loss, size: int) -> float:
    """No centre that a look can find is farther from 0: a function of public facts."""
    return abs(best_score(loss, _least(size)))
