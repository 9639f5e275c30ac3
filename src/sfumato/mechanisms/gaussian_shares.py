"""Gaussian noise drawn as shares by several institutions.

In:   a value, its L2 sensitivity, a wanted Guarantee, how many honest shares must suffice.
Out:  one centre's share, or the noisy value; SharedGaussianEvent for the ledger.
Not here: what the shares hide behind on their way (centres/).
Proof: docs/proofs/distributed_noise.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.events.centre import SharedGaussianEvent
from sfumato.core.guarantee import Guarantee
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.grid_law import Law
from sfumato.mechanisms.mechanism import finite_array
from sfumato.mechanisms.shares import Shares

__all__ = ["GaussianShares"]


@dataclass(frozen=True)
class GaussianShares(Shares):
    """Each centre adds round(N(0, scale²/honest)); `honest` of them protect like N(0, scale²).

    >>> from sfumato.core import ADD_REMOVE, ApproxDP
    >>> noise = GaussianShares.for_guarantee(ApproxDP(1.0, 1e-5), 1.0, ADD_REMOVE, dimension=3)
    >>> round(noise.scale, 2)
    3.73
    >>> noise.share(3).shape
    (3,)
    """

    proof: ClassVar[str] = "distributed_noise"
    event_class: ClassVar[type] = SharedGaussianEvent
    law: ClassVar[Law] = "gaussian"

    @staticmethod
    def _largest_ratio(guarantee: Guarantee) -> float:
        return Gaussian._largest_ratio(guarantee) * (1 - 3e-12)  # the event charges 1e-12 for the shares' own rounding

    @staticmethod
    def _spread(dimension: int) -> float:
        return Gaussian._spread(dimension)

    def error(self) -> float:
        return self.scale**2 + (self.honest + 1) * self.grid**2 / 12

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        residual = (outputs - finite_array(value)).reshape(len(outputs), -1)
        return -np.einsum("ij,ij->i", residual, residual) / (2 * self.scale**2)
