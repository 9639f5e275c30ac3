"""Laplace noise as the sampler knows it.

In:   a place in scales from 0.
Out:  LaplaceOnGrid, for the sampler.
Not here: drawing (mechanisms/sampling.py), the mechanism (mechanisms/laplace.py).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

import numpy as np

from sfumato.core.norms import L1
from sfumato.mechanisms.exact import Enclosure
from sfumato.mechanisms.laws.law import GridLaw

__all__ = ["LaplaceOnGrid"]


@final
class LaplaceOnGrid(GridLaw):
    """Density ∝ exp(-|x|)."""

    name = "laplace"
    title = "Laplace"
    norm = L1
    tail_at = 14.0
    unit_deviation = math.sqrt(2)

    def log_density(self, ratio: np.ndarray) -> np.ndarray:
        return -ratio

    def exponent(self, low: Fraction, high: Fraction) -> Enclosure:
        return -high, -low

    def tail_decay(self, scale: Fraction, start: int) -> Fraction:
        return scale
