"""Draws of Laplace noise.

In:   shares of a budget, promises.
Out:  LaplaceDraws.
Not here: the noise itself (mechanisms/laplace.py).
Proof: docs/proofs/laplace.md
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.laplace_shares import LaplaceShares
from sfumato.plan.laws.pure import PureDraws
from sfumato.questions.intervals import NoiseLaw

__all__ = ["LaplaceDraws"]

#: Of more Laplace variables than these the sum is normal enough for an interval (docs/proofs/centre_sums.md).
_NEARLY_NORMAL = 500


@final
class LaplaceDraws(PureDraws):
    """Told apart in L1, counted in ε, which adds."""

    name = "laplace"
    mechanism = Laplace
    shares = LaplaceShares
    variance = 2.0
    together = True
    caution = (
        "Laplace noise has heavier tails than Gaussian noise: a 95 % interval is ±2.12 standard deviations wide, "
        "not ±1.96, and 99.7 % needs ±4.11 instead of ±3."
    )

    def noise(self, scale: float, variance: float) -> NoiseLaw:
        return NoiseLaw(laplace=(scale,))

    def summed(self, scale: float, variance: float, times: float) -> NoiseLaw:
        if times > _NEARLY_NORMAL:
            return NoiseLaw(variance * (times + 1))
        # Adding independent symmetric noise makes no interval narrower (docs/proofs/centre_sums.md).
        return NoiseLaw(laplace=(scale,) * math.ceil(times * (1 - 1e-12)))

    def quantile(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(uniform < 0.5, np.log(2 * uniform), -np.log(2 * (1 - uniform)))
