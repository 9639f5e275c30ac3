"""What Gaussian, Laplace and NormGamma share: calibration on the grid and checked input.

In:   a scale or a wanted Guarantee, a sensitivity, an adjacency.
Out:  mechanisms that add noise to numbers.
Not here: the laws themselves (gaussian.py, laplace.py, norm_gamma.py).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive
from sfumato.core.events.event import AdditiveEvent, Event
from sfumato.core.guarantee import Guarantee
from sfumato.core.norms import in_norm
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms.grid import ANY_DIMENSION, add_noise, check_dimension, public_grid
from sfumato.mechanisms.grid_law import Law
from sfumato.mechanisms.mechanism import NO_INFLUENCE, Mechanism, exact_array, kept

__all__ = ["Additive", "IndependentNoise"]


@dataclass(frozen=True)
class Additive(Mechanism):
    """Noise of a given `scale` on a value whose neighbours differ by at most `sensitivity`. Abstract.

    `dimension` is how many of the numbers one unit can change. Left out, the (tiny) cost of rounding is charged for
    16 million of them.
    """

    event_class: ClassVar[type]

    scale: float
    sensitivity: float = math.nan
    adjacency: Adjacency | None = None
    dimension: int | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        positive(self.scale, "scale")
        object.__setattr__(self, "sensitivity", self._measured(self.sensitivity))
        if self.dimension is not None and (not isinstance(self.dimension, int) or self.dimension < 1):
            raise PrivacyParameterError("dimension must be a whole number of at least 1, or None.")
        self.event()

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        sensitivity: float,
        adjacency: Adjacency,
        *,
        dimension: int | None = None,
        random_state: int | None = None,
    ) -> Self:
        """The least noise that keeps `guarantee`, the cost of rounding to the grid included."""
        ratio = cls._largest_ratio(guarantee)
        sensitivity = cls._measured(sensitivity)
        spread = cls._spread(dimension or ANY_DIMENSION)
        scale = sensitivity / ratio
        for _ in range(4):  # the grid depends on the scale and the scale on the grid; both settle at once
            scale = (sensitivity + public_grid(scale, sensitivity, spread) * spread) / ratio * (1 + 1e-13)
        made = cls(scale, sensitivity, adjacency, dimension, random_state)
        return kept(made, guarantee)

    @classmethod
    def _measured(cls, sensitivity: float) -> float:
        """The sensitivity, if it is not one of another norm."""
        event: type[AdditiveEvent] = cls.event_class
        return positive(in_norm(sensitivity, event.norm, event.law), "sensitivity", NO_INFLUENCE)

    @staticmethod
    @abstractmethod
    def _largest_ratio(guarantee: Guarantee) -> float:
        """The largest sensitivity/scale that keeps the guarantee."""

    @staticmethod
    @abstractmethod
    def _spread(dimension: int) -> float:
        """By how many cells rounding can move two neighbours apart, in the norm of the sensitivity."""

    @property
    def grid(self) -> float:
        """The power of two on whose multiples values and noise live."""
        return public_grid(self.scale, self.sensitivity, self._spread(self.dimension or ANY_DIMENSION))

    def event(self) -> Event:
        return self.event_class(
            self.sensitivity, self.scale, self.grid, self.dimension or ANY_DIMENSION, adjacency=self.adjacency
        )


@dataclass(frozen=True)
class IndependentNoise(Additive):
    """Additive noise drawn independently for every number. Abstract."""

    law: ClassVar[Law]

    def __call__(self, values: Any) -> Any:
        array = exact_array(values)
        check_dimension(self.dimension, array.size)
        noisy = add_noise(array, self.law, self.scale, self.grid, self._bits())
        return float(noisy) if np.ndim(values) == 0 else noisy

    def sample(self, value: Any, trials: int) -> np.ndarray:
        stacked = np.broadcast_to(exact_array(value), (trials, *np.shape(value)))
        return add_noise(stacked, self.law, self.scale, self.grid, self._bits())
