"""The recipe for a law of noise: its mechanism and its Event. Its proof note is huber.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from sfumato.mechanisms.laws.huber import VARIANCE  # type: ignore[import-not-found]

from sfumato.core.events.event import AdditiveEvent
from sfumato.core.guarantee import Guarantee, PureDP
from sfumato.core.norms import L1, Norm
from sfumato.mechanisms.additive import IndependentNoise
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.grid_law import grid_law
from sfumato.mechanisms.mechanism import finite_array


@final
@dataclass(frozen=True)
class HuberEvent(AdditiveEvent):
    """Huber noise of this scale on each of `dimension` numbers of joint L1 `sensitivity`, rounded to `grid`."""

    proof: ClassVar[str] = "huber"
    norm: ClassVar[Norm] = L1
    law: ClassVar[str] = "Huber noise"

    def guarantee(self) -> PureDP:
        return PureDP(self._ratio(self.dimension), adjacency=self.adjacency)


@final
@dataclass(frozen=True)
class Huber(IndependentNoise):
    """Adds noise that is normal up to one scale and exponential beyond, to numbers of bounded L1 sensitivity.

    >>> from sfumato.core import ADD_REMOVE, PureDP
    >>> round(Huber.for_guarantee(PureDP(0.5), 1.0, ADD_REMOVE, dimension=1).scale, 2)
    2.0
    """

    proof: ClassVar[str] = "huber"
    event_class: ClassVar[type] = HuberEvent
    law: ClassVar[str] = "huber"

    @staticmethod
    def _largest_ratio(guarantee: Guarantee) -> float:
        return largest_pure_epsilon(guarantee)

    @staticmethod
    def _spread(dimension: int) -> float:
        return float(dimension)

    def error(self) -> float:
        return VARIANCE * self.scale**2 + self.grid**2 / 6

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        far = np.abs((outputs - finite_array(value)).reshape(len(outputs), -1)) / self.scale
        return grid_law(self.law).log_density(far).sum(axis=1)
