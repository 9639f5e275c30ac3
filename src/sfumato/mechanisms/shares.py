"""Noise that several institutions draw together: each a share, the sum a stated law.

In:   the law and scale of the sum, how many honest shares must suffice, how many centres there are.
Out:  one centre's share in whole cells; for audits, the sum of all honest shares.
Not here: the laws (gaussian_shares.py, laplace_shares.py), masks and messages (centres/).
Proof: docs/proofs/distributed_noise.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.events.centre import SharedEvent
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.grid import ANY_DIMENSION, add_cells, check_dimension
from sfumato.mechanisms.grid_law import Law
from sfumato.mechanisms.mechanism import exact_array
from sfumato.mechanisms.polya import draw_polya
from sfumato.mechanisms.sampling import draw

__all__ = ["Shares", "draw_share", "draw_whole"]

#: Numbers drawn in one piece, for the memory they take.
_AT_ONCE = 1 << 20


def draw_share(law: Law, scale: float, grid: float, honest: int, size: int, bits: Bits) -> np.ndarray:
    """One centre's share (int64 cells): `honest` independent ones add up to `law` at `scale`.

    >>> int(draw_share("gaussian", 1.0, 2.0**-20, 4, 1000, Bits(seed=3)).std() / 2**19 * 10 + 0.5)
    10
    """
    return _SHARE[law](scale, grid, honest, size, bits)


def _gaussian_share(scale: float, grid: float, honest: int, size: int, bits: Bits) -> np.ndarray:
    # Rounded up, so that the variances of the honest shares add up to no less than scale².
    own = math.nextafter(scale / math.sqrt(honest) * (1 + 2.0**-51), math.inf)
    return draw("gaussian", own / (grid / 2), size, bits)


def _laplace_share(scale: float, grid: float, honest: int, size: int, bits: Bits) -> np.ndarray:
    return draw_polya(scale / grid, honest, size, bits)


_SHARE = {"gaussian": _gaussian_share, "laplace": _laplace_share}


def draw_whole(law: Law, scale: float, grid: float, size: int, bits: Bits, times: int = 1) -> np.ndarray:
    """All the noise of one institution that adds up with others without masks (int64 cells), `times` over."""
    total = np.zeros(size, dtype=np.int64)
    at_once = max(1, _AT_ONCE // max(size, 1))
    for start in range(0, times, at_once):
        drawn = draw(law, scale / (grid / 2), size * min(at_once, times - start), bits)
        total += drawn.reshape(-1, size).sum(axis=0)
    return total


@dataclass(frozen=True)
class Shares(Additive):
    """Noise drawn as shares by `centres`, any `honest` of which suffice against `colluders` and all readers. Abstract.

    Calling it adds the noise of `honest` shares: what is left when everybody else has gone or tells what he drew.
    """

    law: ClassVar[Law]

    honest: int = 1
    centres: int = 0
    colluders: int = 0

    def __post_init__(self) -> None:
        if not self.centres:
            object.__setattr__(self, "centres", self.honest)
        super().__post_init__()

    def event(self) -> SharedEvent:
        return self.event_class(
            self.sensitivity,
            self.scale,
            self.grid,
            self.dimension or ANY_DIMENSION,
            self.honest,
            self.centres,
            self.colluders,
            adjacency=self.adjacency,
        )

    def share(self, size: int) -> np.ndarray:
        """What one centre draws for `size` numbers, in cells of `grid`."""
        return draw_share(self.law, self.scale, self.grid, self.honest, size, self._bits())

    def _total(self, size: int, bits: Bits) -> np.ndarray:
        total = np.zeros(size, dtype=np.int64)
        for _ in range(self.honest):
            total += draw_share(self.law, self.scale, self.grid, self.honest, size, bits)
        return total

    def __call__(self, values: Any) -> Any:
        array = exact_array(values)
        check_dimension(self.dimension, array.size)
        noisy = self._noisy(array)
        return float(noisy) if np.ndim(values) == 0 else noisy

    def sample(self, value: Any, trials: int) -> np.ndarray:
        return self._noisy(np.broadcast_to(exact_array(value), (trials, *np.shape(value))))

    def _noisy(self, array: np.ndarray) -> np.ndarray:
        return add_cells(array, self._total(array.size, self._bits()).reshape(array.shape), self.grid)
