"""Noise of density ∝ exp(-‖z‖₂/scale): pure privacy for vectors with bounded L2 sensitivity.

In:   a vector, its sensitivity, a wanted Guarantee.
Out:  the noisy vector; NormGammaEvent for the ledger.
Not here: how bits are drawn (mechanisms/sampling.py).
Proof: docs/proofs/norm_gamma.md, also on how finite precision is handled
Reference: Chaudhuri, Monteleoni & Sarwate 2011, Alg. 1; Hardt & Talwar 2010 (the K-norm mechanism).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.events.event import NormGammaEvent
from sfumato.core.guarantee import Guarantee
from sfumato.errors import DataError
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.grid import add_cells
from sfumato.mechanisms.mechanism import exact_array, finite_array
from sfumato.mechanisms.sampling import RealDraws, draw_reals

__all__ = ["NormGamma"]

#: Scale, in half cells, at which the Gaussian directions and exponential summands are drawn.
_RESOLUTION = 2.0**30
#: Cells closer than this to a rounding boundary are decided exactly; the computed value is off by < 2^-20 (proof note).
_GUARD = 2.0**-12


@dataclass(frozen=True)
class NormGamma(Additive):
    """Adds one vector z of density ∝ exp(-‖z‖₂/scale) to a vector of `dimension` numbers and L2 `sensitivity`.

    The norm of z is Gamma(dimension, scale) and its direction is uniform.

    >>> from sfumato.core import REPLACE_ONE, PureDP
    >>> noise = NormGamma.for_guarantee(PureDP(1.0), 0.1, REPLACE_ONE, dimension=3)
    >>> noise([1.0, 2.0, 3.0]).shape
    (3,)
    """

    proof: ClassVar[str] = "norm_gamma"
    event_class: ClassVar[type] = NormGammaEvent

    def __post_init__(self) -> None:
        if self.dimension is None:  # unlike the other laws, this one is a different law in every dimension
            object.__setattr__(self, "dimension", 1)
        super().__post_init__()

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        sensitivity: float,
        adjacency: Adjacency,
        *,
        dimension: int | None = 1,
        random_state: int | None = None,
    ) -> Self:
        """The least noise of this kind whose pure ε keeps `guarantee`, the cost of rounding to the grid included."""
        return super().for_guarantee(
            guarantee, sensitivity, adjacency, dimension=dimension or 1, random_state=random_state
        )

    @staticmethod
    def _largest_ratio(guarantee: Guarantee) -> float:
        return largest_pure_epsilon(guarantee)

    @staticmethod
    def _spread(dimension: int) -> float:
        return math.sqrt(dimension)

    @property
    def _width(self) -> int:
        return self.dimension or 1

    def error(self) -> float:
        """Per number: E‖z‖²/dimension = (dimension + 1)·scale²."""
        return (self._width + 1) * self.scale**2 + self.grid**2 / 6

    def __call__(self, values: Any) -> Any:
        array = self._vector(values)
        noisy = add_cells(array, self._noise(1)[0].reshape(array.shape), self.grid)
        return float(noisy) if np.ndim(values) == 0 else noisy

    def sample(self, value: Any, trials: int) -> np.ndarray:
        array = self._vector(value)
        return add_cells(
            np.broadcast_to(array, (trials, *array.shape)), self._noise(trials).reshape(trials, *array.shape), self.grid
        )

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        return -np.linalg.norm((outputs - finite_array(value)).reshape(len(outputs), -1), axis=1) / self.scale

    def _vector(self, values: Any) -> np.ndarray:
        array = exact_array(values)
        if array.size != self._width:
            raise DataError(
                f"This mechanism was made for vectors of {self._width} numbers and got {array.size}: "
                "say dimension=… when making it. Nothing was drawn and nothing was spent."
            )
        return array

    def _noise(self, count: int) -> np.ndarray:
        """`count` vectors of whole cells: radius (a sum of exponentials) times a normal vector over its length."""
        bits, width = self._bits(), self._width
        normal = draw_reals("gaussian", _RESOLUTION, count * width, bits)
        summands = draw_reals("laplace", _RESOLUTION, count * width, bits)
        vectors = normal.approximate().reshape(count, width)
        radii = np.abs(summands.approximate()).reshape(count, width).sum(axis=1) / _RESOLUTION
        lengths = np.linalg.norm(vectors, axis=1)
        cells = vectors * (radii / lengths * (self.scale / self.grid))[:, None]
        rounded = np.rint(cells)
        # Distance to the nearest boundary between two cells, against a guard that grows with the value.
        unsure = 0.5 - np.abs(cells - rounded) <= _GUARD + np.abs(cells) * 2.0**-40 * width
        result = rounded.astype(np.int64)
        for row in np.flatnonzero(unsure.any(axis=1)):
            result[row] = _round_exactly(
                normal, summands, slice(row * width, (row + 1) * width), self.scale / self.grid
            )
        return result


def _round_exactly(normal: RealDraws, summands: RealDraws, part: slice, cells_per_scale: float) -> list[int]:
    """Nearest cells of one vector in as many digits as it takes."""
    length, indices = 128, range(part.start, part.stop)
    while True:
        context = Context(prec=length // 2)
        magnitudes = [_middle(normal, index, length, context) for index in indices]
        # The context is passed everywhere: Python's own operators would use whatever precision the application set.
        radius = reduce(context.add, (_middle(summands, index, length, context) for index in indices))
        norm = context.sqrt(reduce(context.add, (context.multiply(m, m) for m in magnitudes)))
        reach = context.divide(context.multiply(radius, Decimal(cells_per_scale)), Decimal(int(_RESOLUTION)))
        cells = [context.multiply(context.divide(m, norm), reach) for m in magnitudes]
        # |cell| <= reach; each magnitude and summand is off by 2^-length, each decimal operation by 10^-(prec-1).
        unknown = Fraction(2 * len(cells), 1 << length) * (1 / Fraction(radius) + 1 / Fraction(norm))
        error = Fraction(reach) * (unknown + Fraction(8 * len(cells), 10 ** (context.prec - 1)))
        bounds = [(Fraction(c) - error + Fraction(1, 2), Fraction(c) + error + Fraction(1, 2)) for c in cells]
        if all(low.__floor__() == high.__floor__() for low, high in bounds):
            signs = np.where(normal.negative[part], -1, 1)
            return [int(sign) * low.__floor__() for sign, (low, _) in zip(signs, bounds, strict=True)]
        length *= 2


def _middle(draws: RealDraws, index: int, length: int, context: Context) -> Decimal:
    low, high = draws.enclosure(index, length)
    middle = (low + high) / 2
    return context.divide(Decimal(middle.numerator), Decimal(middle.denominator))
