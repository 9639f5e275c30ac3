"""The middle and the spread of a target, privately: what a regression may lean on before it looks at features.

In:   Σt, Σt² and the number of records for targets t scaled to [-1, 1]; a budget.
Out:  Look: a noisy mean and variance with their uncertainty; which share of the budget the mean wants; the events.
Not here: the regression itself (learn/linear.py).
Proof: docs/proofs/sufficient_statistics.md, "The mean first"

Under replace-one the second moment rides free: (t, a·t²) moves no farther than t alone for a up to 1.66509.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import GaussianDP, Guarantee, PureDP
from sfumato.learn.seeds import Seeds
from sfumato.mechanisms import Gaussian, Laplace

__all__ = [
    "ALL_FOR_MEAN",
    "FIRST_SHARE",
    "NoisyTarget",
    "TargetBudget",
    "TargetLook",
    "look",
    "share_of_mean",
    "together",
]

#: What the first look costs, of the whole.
FIRST_SHARE = 0.1
#: √((11 + 5√5)/8), rounded down: the largest weight of t² that is free beside t.
_FREE_WEIGHT = 1.66509
#: How much of the target's variance the mean may lose, in expectation, by leaving budget to the features.
_ALLOWED_LOSS = 0.005
#: From this share on, all of the budget goes to the mean.
ALL_FOR_MEAN = 0.7
#: With a spread that cannot be seen, the mean is held to be good enough if its noise is one in so many of the range.
_UNSEEN = 500.0
#: Residuals beyond so many standard deviations are clipped.
_DEVIATIONS = 4.0


@dataclass(frozen=True)
class TargetBudget:
    """A budget that is spent in shares which are fixed by what was already published, and add up to one.

    Shares are of μ² for δ > 0 and of ε for δ = 0.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency

    def part(self, share: float) -> Guarantee:
        share = share * (1 - 1e-12)
        if self.delta:
            return GaussianDP(gaussian_mu(self.epsilon, self.delta) * math.sqrt(share))
        return PureDP(self.epsilon * share)

    def share_for(self, excess: float) -> float:
        """The share with which a mean's noise has 1 + `excess` times the variance it has with all of the budget."""
        return 1 / (1 + excess) if self.delta else 1 / math.sqrt(1 + excess)

    @property
    def replaces(self) -> bool:
        return self.adjacency.relation == "replace-one"

    @property
    def weight(self) -> float:
        """What t² is multiplied with before noise is added to (Σt, Σt²)."""
        return _FREE_WEIGHT if self.replaces and self.delta else 1.0

    def noise(self, share: float, slack: float) -> Gaussian | Laplace:
        """Noise for (Σt, weight·Σt²), and for the number of records where that is private."""
        kind, moved = (Gaussian, math.sqrt(3)) if self.delta else (Laplace, 3.0)
        dimension = 3
        if self.replaces:
            moved, dimension = (2.0 if self.delta else 2.25), 2
        return kind.for_guarantee(self.part(share), moved * (1 + slack), self.adjacency, dimension=dimension)


class NoisyTarget(NamedTuple):
    """Noisy (Σt, Σt², number of records) and the deviation of the noise on Σt."""

    sums: np.ndarray
    deviation: float
    noise: Gaussian | Laplace


@dataclass(frozen=True)
class TargetLook:
    """What is known of the target by now, in units of its half range: `error` is the deviation of `variance`."""

    mean: float
    variance: float
    error: float
    records: float

    @property
    def reach(self) -> float:
        """A bound of the residuals that keeps nearly all of them: a rule of published numbers."""
        widest = 1 + abs(self.mean)
        return min(widest, _DEVIATIONS * math.sqrt(self.variance + 2 * self.error))


def look(purse: TargetBudget, sums: Sequence[float], share: float, slack: float, seeds: Seeds) -> NoisyTarget:
    """Release the sums once, at a share of the purse; under replace-one the number of records is public."""
    noise = purse.noise(share, slack)
    exact = np.array([sums[0], purse.weight * sums[1], sums[2]])
    noisy = exact.copy()
    kept = slice(0, 2) if purse.replaces else slice(0, 3)
    noisy[kept] = seeds.released(noise, exact[kept])
    noisy[1] /= purse.weight
    if purse.replaces:
        noisy[2] = seeds.records_of(noise, sums[2])
    return NoisyTarget(noisy, seeds.deviation(noise), noise)


def together(purse: TargetBudget, releases: Sequence[NoisyTarget]) -> TargetLook:
    """All releases, each weighted by its precision."""
    weights = np.array([one.deviation**-2.0 for one in releases])
    sums = np.array([one.sums for one in releases]).T @ weights / weights.sum()
    deviation, records = float(weights.sum() ** -0.5), max(1.0, float(sums[2]))
    mean = min(1.0, max(-1.0, float(sums[0]) / records))
    variance = max(0.0, float(sums[1]) / records - mean * mean)
    counted = 0.0 if purse.replaces else 1.0
    error = deviation / records * math.hypot(1 / purse.weight, 2 * mean, counted)
    return TargetLook(mean, variance, error, records)


def share_of_mean(purse: TargetBudget, seen: TargetLook, slack: float) -> float:
    """The share that the mean takes altogether, between FIRST_SHARE and 1: a rule of published numbers.

    So much that the noise in the mean costs at most half a percent of the target's variance more than with all of the
    budget; where the variance drowns in its noise, by how small the noise is against the range.
    """
    whole = math.sqrt(purse.noise(1.0, slack).error()) / seen.records
    if seen.variance > 3 * seen.error:
        excess = _ALLOWED_LOSS * (seen.variance - seen.error) / whole**2
    else:
        excess = 1 / (_UNSEEN * whole) ** 2
    share = max(FIRST_SHARE, purse.share_for(excess))
    return 1.0 if share > ALL_FOR_MEAN else share
