"""The laws of noise that are drawn on a grid: everything in which one differs from another.

In:   a law's name.
Out:  GridLaw: its norm, its shape for the sampler, its deviation.
Not here: drawing (sampling.py), what the noise promises (core/events/event.py).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar, Literal, final

import numpy as np

from sfumato.core.norms import L1, L2, Norm
from sfumato.errors import InputError
from sfumato.mechanisms.exact import Enclosure

__all__ = ["GridLaw", "Law", "grid_law"]

Law = Literal["gaussian", "laplace"]


class GridLaw(ABC):
    """A symmetric law of a given scale. Abstract."""

    name: ClassVar[Law]
    #: What a sensitivity is measured in.
    norm: ClassVar[Norm]
    #: Where the sampler's bins end, in scales. Beyond it a slow exact method takes over, a few times in 10^7 draws.
    tail_at: ClassVar[float]
    #: The standard deviation at scale 1.
    unit_deviation: ClassVar[float]

    @abstractmethod
    def log_density(self, ratio: np.ndarray) -> np.ndarray:
        """ln density at `ratio` scales from 0, but for a constant."""

    @abstractmethod
    def exponent(self, low: Fraction, high: Fraction) -> Enclosure:
        """Bounds of the same on [low, high], exactly."""

    @abstractmethod
    def tail_decay(self, scale: Fraction, start: int) -> Fraction:
        """Scale of the exponential that covers the tail: the density beyond T is at most p(T) exp(-(x-T)/decay)."""

    def deviation(self, scale: float) -> float:
        """The standard deviation."""
        return scale * self.unit_deviation


@final
class GaussianOnGrid(GridLaw):
    """Density ∝ exp(-x²/2)."""

    name = "gaussian"
    norm = L2
    tail_at = 6.0
    unit_deviation = 1.0

    def log_density(self, ratio: np.ndarray) -> np.ndarray:
        return -0.5 * ratio * ratio

    def exponent(self, low: Fraction, high: Fraction) -> Enclosure:
        return -(high**2) / 2, -(low**2) / 2

    def tail_decay(self, scale: Fraction, start: int) -> Fraction:
        return scale * scale / start


@final
class LaplaceOnGrid(GridLaw):
    """Density ∝ exp(-|x|)."""

    name = "laplace"
    norm = L1
    tail_at = 14.0
    unit_deviation = math.sqrt(2)

    def log_density(self, ratio: np.ndarray) -> np.ndarray:
        return -ratio

    def exponent(self, low: Fraction, high: Fraction) -> Enclosure:
        return -high, -low

    def tail_decay(self, scale: Fraction, start: int) -> Fraction:
        return scale


_LAWS: dict[str, GridLaw] = {law.name: law for law in (GaussianOnGrid(), LaplaceOnGrid())}


def grid_law(name: str) -> GridLaw:
    """The law of a name; InputError where there is none.

    >>> grid_law("laplace").deviation(2.0) / math.sqrt(2), grid_law("gaussian").norm.__name__
    (2.0, 'L2')
    """
    if not isinstance(name, str) or name not in _LAWS:
        raise InputError(f"The law is {' or '.join(_LAWS)}. Nothing was run.")
    return _LAWS[name]
