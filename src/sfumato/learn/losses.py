"""Losses of one margin that private training is proved for.

In:   margins y·⟨x, f⟩.
Out:  value, slope and curvature of the loss at each margin; their public bounds. Slopes and curvatures also of margins
      on a device.
Not here: minimising (learn/newton.py), privacy (learn/calibration.py).
Proof: docs/proofs/objective_perturbation.md

Every loss here is convex and falls with the margin: its slope lies in [-1, 0] and its curvature in
[0, `largest_curvature`]. The slope's one sign is what saves a factor 2 in δ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.core.checks import moderate
from sfumato.learn.arrays import expit, namespace

__all__ = ["HuberLoss", "LogisticLoss", "Loss", "SmoothedHinge"]


class Loss(ABC):
    """A falling convex loss of the margin with slope in [-1, 0]. Abstract."""

    #: Numbers of coefficients for each feature, the largest size of a slope, units in the last place by which it errs.
    outputs: ClassVar[int] = 1
    slope_bound: ClassVar[float] = 1.0
    own_error: ClassVar[float] = 12.0

    @property
    @abstractmethod
    def largest_curvature(self) -> float:
        """An upper bound of the second derivative."""

    @property
    def at_zero(self) -> float:
        """The loss of the margin 0: what a model without coefficients pays for every record."""
        return float(self.value(np.zeros(1))[0])

    @abstractmethod
    def value(self, margins: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def slope(self, margins: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def curvature(self, margins: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """ln(1 + e^{m - z}) for a margin m.

    With m = 0 a small model pulls with half of the slope that noise must hide; with m = 2 with 0.88 of it. Where m is
    not 0 the best score is not the log odds: `chance` is what turns it back.

    >>> float(LogisticLoss().slope(np.array([0.0]))[0])
    -0.5
    """

    margin: float = 0.0

    @property
    def largest_curvature(self) -> float:
        return 0.25

    def value(self, margins: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, self.margin - margins)

    def slope(self, margins: np.ndarray) -> np.ndarray:
        return -expit(self.margin - margins)

    def curvature(self, margins: np.ndarray) -> np.ndarray:
        chance = expit(margins - self.margin)
        return chance * (1 - chance)

    def chance(self, scores: np.ndarray) -> np.ndarray:
        """The chance p at which a score is best: p·slope(s) = (1 - p)·slope(-s)."""
        ours, theirs = expit(self.margin + scores), expit(self.margin - scores)
        return ours / (ours + theirs)


@dataclass(frozen=True)
class HuberLoss(Loss):
    """The hinge with its corner rounded by a parabola of half width h (Chaudhuri et al. 2011, eq. 41 of the draft).

    >>> HuberLoss(0.5).value(np.array([0.0, 1.0, 2.0])).tolist()
    [1.0, 0.125, 0.0]
    """

    h: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "h", moderate(self.h, "h"))

    @property
    def largest_curvature(self) -> float:
        return 1 / (2 * self.h)

    def value(self, margins: np.ndarray) -> np.ndarray:
        gap = np.clip(1 + self.h - margins, 0.0, 2 * self.h)
        return gap * gap / (4 * self.h) + np.maximum(1 - self.h - margins, 0.0)

    def slope(self, margins: np.ndarray) -> np.ndarray:
        return -namespace(margins).clip((1 + self.h - margins) / (2 * self.h), 0.0, 1.0)

    def curvature(self, margins: np.ndarray) -> np.ndarray:
        library, inside = namespace(margins), abs(1 - margins) <= self.h
        return library.where(inside, library.full_like(margins, self.largest_curvature), library.zeros_like(margins))


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge with its corner rounded by a quartic of half width h, twice differentiable.

    >>> SmoothedHinge(0.5).value(np.array([0.0, 1.0, 2.0])).tolist()
    [1.0, 0.09375, 0.0]
    """

    h: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "h", moderate(self.h, "h"))

    @property
    def largest_curvature(self) -> float:
        return 3 / (4 * self.h)

    def _place(self, margins: np.ndarray) -> np.ndarray:
        """(1 - z)/h inside the rounded corner, -1 and 1 outside."""
        return namespace(margins).clip((1 - margins) / self.h, -1.0, 1.0)

    def value(self, margins: np.ndarray) -> np.ndarray:
        t = self._place(margins)
        return self.h * (-(t**4) / 16 + 3 * t * t / 8 + t / 2 + 3 / 16) + np.maximum(1 - self.h - margins, 0.0)

    def slope(self, margins: np.ndarray) -> np.ndarray:
        t = self._place(margins)
        return -namespace(margins).clip((2 + 3 * t - t**3) / 4, 0.0, 1.0)

    def curvature(self, margins: np.ndarray) -> np.ndarray:
        t = self._place(margins)
        return self.largest_curvature * (1 - t * t)
