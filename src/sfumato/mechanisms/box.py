"""Noise that never leaves a box: the ground state of an oscillator between two walls.

In:   a number, its sensitivity, the half width of the box, a stiffness.
Out:  the noisy number; BoxEvent for the ledger.
Not here: the law itself (core/noise.py), whole tables (release/box.py).
Proof: docs/proofs/box.md
Reference: Farokhi 2020, Cor. 2.7, with the eigenvalue condition put right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import at_least_zero, positive
from sfumato.core.events.event import BoxEvent
from sfumato.core.guarantee import ApproxDP, Guarantee
from sfumato.core.noise import BoxNoise
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.grid import add_cells
from sfumato.mechanisms.mechanism import NO_INFLUENCE, Mechanism, exact_array, finite_array, unreachable

__all__ = ["Box"]

#: The box holds between 2^15 and 2^16 cells of the grid.
_CELL_BITS = 15
_WEIGHT_BITS = 62


@dataclass(frozen=True)
class Box(Mechanism):
    """Adds noise of the least Fisher information within ±half_width to every number; each is a unit's only one.

    Never ε-DP: values near the edge of the box give the unit away, so δ(ε) stays above the mass within one sensitivity
    of the walls. Gaussian noise of the same variance nearly always promises more.

    >>> from sfumato.core import REPLACE_ONE
    >>> noise = Box(10.0, 1.0, REPLACE_ONE)
    >>> bool(abs(noise(3.0) - 3.0) <= 10.0)
    True
    >>> noise.guarantee().delta(1.0) < 0.01
    True
    """

    proof: ClassVar[str] = "box"

    half_width: float
    sensitivity: float = math.nan
    adjacency: Adjacency | None = None
    stiffness: float = 0.0
    random_state: int | None = None

    def __post_init__(self) -> None:
        positive(self.half_width, "half_width")
        positive(self.sensitivity, "sensitivity", NO_INFLUENCE)
        at_least_zero(self.stiffness, "stiffness")
        self.event()

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, sensitivity: float, adjacency: Adjacency, *, random_state: int | None = None
    ) -> Self:
        """The narrowest box without stiffness that keeps an (ε, δ) guarantee; often very wide."""
        if not isinstance(guarantee, ApproxDP) or guarantee.delta_ == 0:
            raise unreachable(guarantee, "Box noise", "Ask for ApproxDP with a delta greater than 0.")
        sensitivity = positive(sensitivity, "sensitivity", NO_INFLUENCE)
        low, high = 0.0, 2.0
        while cls(high * sensitivity, sensitivity, adjacency).guarantee().implies(guarantee) is not True:
            low, high = high, 2 * high
            if high > 1e5:
                raise unreachable(guarantee, "Box noise", "Allow a larger delta, or use Gaussian noise.")
        for _ in range(14):
            middle = (low + high) / 2
            kept = cls(middle * sensitivity, sensitivity, adjacency).guarantee().implies(guarantee) is True
            low, high = (low, middle) if kept else (middle, high)
        return cls(high * sensitivity, sensitivity, adjacency, 0.0, random_state)

    @property
    def noise(self) -> BoxNoise:
        """The continuous law whose rounding to the grid is drawn."""
        return BoxNoise(self.half_width, self.stiffness)

    @property
    def grid(self) -> float:
        return math.ldexp(1.0, math.frexp(self.half_width)[1] - 1 - _CELL_BITS)

    def event(self) -> BoxEvent:
        return BoxEvent(
            self.sensitivity,
            self.half_width,
            self.stiffness,
            self.grid,
            adjacency=self.adjacency,  # type: ignore[arg-type]  # the event refuses None with the way out
        )

    def error(self) -> float:
        return self.noise.variance() + self.grid**2 / 6

    def __call__(self, values: Any) -> Any:
        noisy = self._add(exact_array(values))
        return float(noisy) if np.ndim(values) == 0 else noisy

    def sample(self, value: Any, trials: int) -> np.ndarray:
        return self._add(np.broadcast_to(exact_array(value), (trials, *np.shape(value))))

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        density = self.noise.density(outputs - finite_array(value)).reshape(len(outputs), -1)
        return np.log(np.maximum(density, 1e-300)).sum(axis=1)

    def _add(self, values: np.ndarray) -> np.ndarray:
        noise = _draw(self.half_width, self.stiffness, self.grid, values.size, self._bits())
        return add_cells(values, noise.reshape(values.shape), self.grid)


@lru_cache(maxsize=256)
def _cumulative(half_width: float, stiffness: float, grid: float) -> tuple[np.ndarray, int]:
    """Whole-number weights of the cells -m … m, summed up: P[noise <= k cells]·2^62, increasing to 2^62 exactly.

    Each weight is its cell's mass to the nearest whole number; what is left over goes to the middle cell. In all that
    is less than the 2^-44 that is charged for it (docs/proofs/box.md).
    """
    reach = math.floor(half_width / grid)
    edges = (np.arange(-reach, reach + 2) - 0.5) * grid
    masses = BoxNoise(half_width, stiffness).masses(np.clip(edges, -half_width, half_width))
    weights = np.rint(masses / math.fsum(masses) * 2.0**_WEIGHT_BITS).astype(np.int64)
    weights[reach] += (1 << _WEIGHT_BITS) - int(weights.sum())
    return np.cumsum(weights), reach


def _draw(half_width: float, stiffness: float, grid: float, size: int, bits: Bits) -> np.ndarray:
    """Inverse of the cumulative weights at uniform whole numbers: exact for the weights."""
    cumulative, reach = _cumulative(half_width, stiffness, grid)
    uniform = (bits.words(size) >> np.uint64(64 - _WEIGHT_BITS)).astype(np.int64)
    return np.searchsorted(cumulative, uniform, side="right") - reach
