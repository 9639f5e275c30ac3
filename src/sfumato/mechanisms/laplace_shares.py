"""Two-sided geometric (discrete Laplace) noise drawn as shares by several institutions.

In:   a value, its L1 sensitivity, a wanted Guarantee, how many honest shares must suffice.
Out:  one centre's share, or the noisy value; SharedLaplaceEvent for the ledger.
Not here: how a share is drawn (polya.py), what the shares hide behind on their way (centres/).
Proof: docs/proofs/distributed_noise.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.events.centre import SharedLaplaceEvent
from sfumato.core.guarantee import Guarantee
from sfumato.mechanisms.grid_law import Law
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.mechanism import finite_array
from sfumato.mechanisms.shares import Shares

__all__ = ["LaplaceShares"]


@dataclass(frozen=True)
class LaplaceShares(Shares):
    """Each centre adds a Pólya share; `honest` of them sum exactly to P(n) ∝ exp(-|n|·grid/scale).

    >>> from sfumato.core import ADD_REMOVE, PureDP
    >>> noise = LaplaceShares.for_guarantee(PureDP(0.5), 1.0, ADD_REMOVE, dimension=1)
    >>> round(noise.scale, 2)
    2.0
    """

    proof: ClassVar[str] = "distributed_noise"
    event_class: ClassVar[type] = SharedLaplaceEvent
    law: ClassVar[Law] = "laplace"

    @staticmethod
    def _largest_ratio(guarantee: Guarantee) -> float:
        return Laplace._largest_ratio(guarantee)

    @staticmethod
    def _spread(dimension: int) -> float:
        return Laplace._spread(dimension)

    def error(self) -> float:
        # The variance of two-sided geometric noise is 2b² - 1/6 + O(1/b²) cells; rounding the value adds 1/12.
        return 2 * self.scale**2 - self.grid**2 / 12

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        return -np.abs((outputs - finite_array(value)).reshape(len(outputs), -1)).sum(axis=1) / self.scale
