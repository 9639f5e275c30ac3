"""Gaussian noise on vectors with bounded L2 sensitivity.

In:   a value, its sensitivity, a wanted Guarantee.
Out:  the noisy value; GaussianEvent for the ledger.
Not here: how events compose (core/compose.py), how bits are drawn (mechanisms/sampling.py).
Proof: docs/proofs/gaussian.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.events.event import GaussianEvent
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, RenyiDP
from sfumato.core.pufferfish import Pufferfish
from sfumato.mechanisms.additive import IndependentNoise
from sfumato.mechanisms.grid_law import Law
from sfumato.mechanisms.mechanism import finite_array, unreachable

__all__ = ["Gaussian", "largest_mu"]


def largest_mu(guarantee: Guarantee) -> float:
    """The largest sensitivity/scale of Gaussian noise that keeps the guarantee.

    >>> from sfumato.core import GaussianDP
    >>> largest_mu(GaussianDP(0.5))
    0.5
    """
    match guarantee:
        case ApproxDP(eps=eps, delta_=delta) if delta > 0:
            return gaussian_mu(eps, delta)
        case GaussianDP(mu=mu):
            return mu
        case Pufferfish(delta_=delta) if delta > 0:
            return guarantee.largest_mu()
        case ZCDP(rho=rho):
            return math.sqrt(2 * rho) * (1 - 1e-15)
        case RenyiDP(alpha=alpha, eps=eps):
            return math.sqrt(2 * eps / alpha) * (1 - 1e-15)
    raise unreachable(guarantee, "Gaussian noise", "Allow a small delta, or use Laplace or NormGamma.")


@dataclass(frozen=True)
class Gaussian(IndependentNoise):
    """Adds N(0, scale²) to every number of a value whose L2 distance between neighbours is at most `sensitivity`.

    Calibration is exact (Balle & Wang 2018, Thm 8).

    >>> from sfumato.core import ADD_REMOVE, ApproxDP
    >>> noise = Gaussian.for_guarantee(ApproxDP(1.0, 1e-5), 1.0, ADD_REMOVE)
    >>> round(noise.scale, 2)
    3.73
    >>> noise([10.0, 20.0]).shape
    (2,)
    """

    proof: ClassVar[str] = "gaussian"
    event_class: ClassVar[type] = GaussianEvent
    law: ClassVar[Law] = "gaussian"

    @staticmethod
    def _largest_ratio(guarantee: Guarantee) -> float:
        return largest_mu(guarantee)

    @staticmethod
    def _spread(dimension: int) -> float:
        return math.sqrt(dimension)

    def error(self) -> float:
        return self.scale**2 + self.grid**2 / 6

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        residual = (outputs - finite_array(value)).reshape(len(outputs), -1)
        return -np.einsum("ij,ij->i", residual, residual) / (2 * self.scale**2)
