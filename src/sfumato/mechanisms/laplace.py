"""Laplace noise on vectors with bounded L1 sensitivity.

In:   a value, its sensitivity, a wanted Guarantee.
Out:  the noisy value; LaplaceEvent for the ledger.
Not here: how events compose (core/compose.py), how bits are drawn (mechanisms/sampling.py).
Proof: docs/proofs/laplace.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.events.event import LaplaceEvent
from sfumato.core.guarantee import Guarantee
from sfumato.mechanisms.additive import IndependentNoise
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.grid_law import Law
from sfumato.mechanisms.mechanism import finite_array

__all__ = ["Laplace"]


@dataclass(frozen=True)
class Laplace(IndependentNoise):
    """Adds density ∝ exp(-|z|/scale) to every number of a value whose neighbours differ by ≤ `sensitivity` in L1.

    `scale` is the parameter b; the standard deviation is √2·b. With `dimension=1` compositions use the exact
    one-dimensional profile.

    >>> from sfumato.core import ADD_REMOVE, PureDP
    >>> round(Laplace.for_guarantee(PureDP(0.5), 1.0, ADD_REMOVE, dimension=1).scale, 2)
    2.0
    """

    proof: ClassVar[str] = "laplace"
    event_class: ClassVar[type] = LaplaceEvent
    law: ClassVar[Law] = "laplace"

    @staticmethod
    def _largest_ratio(guarantee: Guarantee) -> float:
        return largest_pure_epsilon(guarantee)

    @staticmethod
    def _spread(dimension: int) -> float:
        return float(dimension)

    def error(self) -> float:
        return 2 * self.scale**2 + self.grid**2 / 6

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        return -np.abs((outputs - finite_array(value)).reshape(len(outputs), -1)).sum(axis=1) / self.scale
