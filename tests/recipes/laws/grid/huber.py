"""The recipe for a law of noise: how it is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

import numpy as np

from sfumato.core.norms import L1
from sfumato.mechanisms.exact import Enclosure
from sfumato.mechanisms.laws.law import GridLaw

#: Of scale 1: half of the area under exp of the exponent, and the second moment.
AREA = math.sqrt(math.pi / 2) * math.erf(math.sqrt(0.5)) + math.exp(-0.5)
VARIANCE = (AREA + 3 * math.exp(-0.5)) / AREA


@final
class HuberOnGrid(GridLaw):
    """Density ∝ exp(-x²/2) up to 1, exp(1/2 - |x|) beyond."""

    name = "huber"
    title = "Huber"
    norm = L1
    tail_at = 14.0
    unit_deviation = math.sqrt(VARIANCE)

    def log_density(self, ratio: np.ndarray) -> np.ndarray:
        return np.where(ratio < 1, -0.5 * ratio * ratio, 0.5 - ratio)

    def exponent(self, low: Fraction, high: Fraction) -> Enclosure:
        return _exponent(high), _exponent(low)

    def tail_decay(self, scale: Fraction, start: int) -> Fraction:
        return scale


def _exponent(ratio: Fraction) -> Fraction:
    return -(ratio**2) / 2 if ratio < 1 else Fraction(1, 2) - ratio
