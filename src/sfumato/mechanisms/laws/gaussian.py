"""Normal noise as the sampler knows it.

In:   a place in scales from 0.
Out:  GaussianOnGrid, for the sampler.
Not here: drawing (mechanisms/sampling.py), the mechanism (mechanisms/gaussian.py).
"""

from __future__ import annotations

from fractions import Fraction
from typing import final

import numpy as np

from sfumato.core.norms import L2
from sfumato.mechanisms.exact import Enclosure
from sfumato.mechanisms.laws.law import GridLaw

__all__ = ["GaussianOnGrid"]


@final
class GaussianOnGrid(GridLaw):
    """Density ∝ exp(-x²/2)."""

    name = "gaussian"
    title = "Gaussian"
    norm = L2
    tail_at = 6.0
    unit_deviation = 1.0

    def log_density(self, ratio: np.ndarray) -> np.ndarray:
        return -0.5 * ratio * ratio

    def exponent(self, low: Fraction, high: Fraction) -> Enclosure:
        return -(high**2) / 2, -(low**2) / 2

    def tail_decay(self, scale: Fraction, start: int) -> Fraction:
        return scale * scale / start
