"""Everything in which one law of noise that is drawn on a grid differs from another.

In:   nothing.
Out:  GridLaw: its norm, its shape for the sampler, its deviation.
Not here: the laws (beside this file), drawing (mechanisms/sampling.py), what the noise promises (its Event).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.norms import Norm
from sfumato.mechanisms.exact import Enclosure

__all__ = ["GridLaw"]


class GridLaw(ABC):
    """A symmetric law of a given scale. Abstract."""

    #: What a study, a plan and a round call it.
    name: ClassVar[str]
    #: As a sentence writes it.
    title: ClassVar[str]
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
