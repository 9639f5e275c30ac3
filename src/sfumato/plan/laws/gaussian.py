"""Draws of Gaussian noise.

In:   shares of a budget, promises.
Out:  GaussianDraws.
Not here: the noise itself (mechanisms/gaussian.py).
Proof: docs/proofs/gaussian.md
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.core import GaussianDP, Guarantee
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.norms import L2
from sfumato.core.special import ndtri
from sfumato.mechanisms.gaussian import Gaussian, largest_mu
from sfumato.mechanisms.gaussian_shares import GaussianShares
from sfumato.plan.laws.law import DrawLaw
from sfumato.questions.intervals import NoiseLaw

__all__ = ["GaussianDraws"]


@final
class GaussianDraws(DrawLaw):
    """Told apart in L2, counted in μ², which adds."""

    name = "gaussian"
    mechanism = Gaussian
    shares = GaussianShares
    norm = L2
    degree = 1
    variance = 1.0
    currency = "μ²"
    pure = False
    together = True
    correlates = True
    closed = True

    def whole(self, guarantee: Guarantee) -> float:
        return largest_mu(guarantee) ** 2

    def guarantee(self, share: float) -> Guarantee:
        return GaussianDP(math.sqrt(share) * (1 - 1e-15))

    def spent(self, guarantee: Guarantee) -> float:
        assert isinstance(guarantee, GaussianDP)
        return guarantee.mu**2

    def composed(self, cost: Guarantee) -> Guarantee:
        return cost

    def noise(self, scale: float, variance: float) -> NoiseLaw:
        return NoiseLaw(variance)

    def summed(self, scale: float, variance: float, times: float) -> NoiseLaw:
        return NoiseLaw(variance * times)

    def quantile(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(ndtri(uniform))

    def ratio(self, epsilon: float, delta: float, multiple: float) -> float:
        if delta == 0 or epsilon <= 0:
            return multiple
        return gaussian_mu(epsilon * multiple, delta) / gaussian_mu(epsilon, delta)
