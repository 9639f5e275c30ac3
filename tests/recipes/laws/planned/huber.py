"""The recipe for a law of noise: how a plan reckons with it."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray
from sfumato.mechanisms.huber import Huber  # type: ignore[import-not-found]
from sfumato.mechanisms.laws.huber import AREA, VARIANCE  # type: ignore[import-not-found]

from sfumato.core.special import ndtri
from sfumato.plan.laws.pure import PureDraws
from sfumato.questions.intervals import NoiseLaw


@final
class HuberDraws(PureDraws):
    """A rounder peak than that of Laplace noise; nobody needs it."""

    name = "huber"
    mechanism = Huber
    variance = VARIANCE

    def noise(self, scale: float, variance: float) -> NoiseLaw:
        # Laplace noise of the same variance leaves an interval more often: 1.128 e^(-t) < e^(-t/1.059) from t = 2.2 on.
        return NoiseLaw(laplace=(scale * math.sqrt(VARIANCE / 2),))

    def summed(self, scale: float, variance: float, times: float) -> NoiseLaw:
        raise AssertionError("no centres draw it")

    def quantile(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        beyond = np.minimum(uniform, 1 - uniform)
        far = 0.5 - np.log(2 * AREA * beyond)
        near = ndtri(0.5 + (0.5 - beyond) * 2 * AREA / math.sqrt(2 * math.pi))
        return np.sign(uniform - 0.5) * np.where(2 * AREA * beyond < math.exp(-0.5), far, near)
