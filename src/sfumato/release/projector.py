"""Gaussian noise that a support vector machine cannot see: the projector behind exact-classifier obfuscation.

In:   v = ω∘y and α of the trained machine, the variance m.
Out:  `project`: a matrix G projected onto {W: vᵀW = 0, Wα = 0};  NoiseStream: such noise, block after block.
Not here: the machine (release/svm.py), what this hides and what it does not (release/obfuscated.py).

Thm 2.10 asks for N(0, m) on the null space of Ω. With unit vectors v and α the orthogonal projector onto it is
G ↦ (I - vvᵀ) G (I - ααᵀ), of rank (q-1)(p-1): O(qp) work where a basis of the null space would cost (qp)³.

The stream needs one pass and the memory of one block. Along the rows the sums S = Σ vᵢwᵢ of projected noise are a
Brownian bridge in the time Σ vᵢ², so a block needs to know S and the time that is left, not the other rows. With block
energy e, time left T and g = vᵀG over the block, W = G + v(c - g)/e with c = -S e/T + √(1 - e/T) g has exactly the
projected law, and the last block (e = T) closes the sum to zero.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.errors import DataError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.sampling import draw

__all__ = ["NoiseStream", "plain_noise", "project", "unit_vector"]

#: Standard deviation of the noise in half cells of its grid: fine, and still one 64-bit word for each draw.
_HALF_CELLS = 2.0**30
#: Weights below this share of |v| cannot be told from the rounding error of vᵀW, and are taken as zero.
_NEGLIGIBLE = 1e-14


def project(noise: np.ndarray, weights: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(I - vvᵀ/|v|²) G (I - ααᵀ/|α|²), applied twice so that rounding leaves 1e-16 of vᵀW and Wα.

    Where α = 0 or v = 0 that factor is the identity.

    >>> free = project(np.eye(3, 2), weights=np.array([1.0, -1.0, 0.0]), alpha=np.array([0.0, 2.0]))
    >>> free
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 0. ]])
    """
    left, right = unit_vector(weights), unit_vector(alpha)
    result = np.array(noise, dtype=np.float64)
    for _ in range(2):
        result -= np.outer(result @ right, right)
        result -= np.outer(left, left @ result)
    return result


class NoiseStream:
    """Noise with the law of `project(G)`, G iid N(0, variance), for consecutive blocks of rows.

    >>> weights, alpha = np.array([1.0, -2.0, 0.0, 1.0]), np.array([3.0, 4.0])
    >>> stream = NoiseStream(weights, alpha, variance=100.0, bits=Bits(seed=1))
    >>> noise = np.vstack([stream.take(3), stream.take(1)])
    >>> bool(np.abs(weights @ noise).max() < 1e-13), bool(np.abs(noise @ alpha).max() < 1e-13)
    (True, True)
    """

    def __init__(self, weights: np.ndarray, alpha: np.ndarray, variance: float, bits: Bits) -> None:
        unit = unit_vector(weights)
        self._weights = unit_vector(np.where(np.abs(unit) < _NEGLIGIBLE, 0.0, unit))
        self._direction = unit_vector(alpha)
        self._deviation, self._bits = math.sqrt(variance), bits
        # Summed from the end, so that the last block with any weight finds exactly its own energy left.
        self._left = np.append(np.cumsum(self._weights[::-1] ** 2)[::-1], 0.0)
        self._sum = np.zeros(len(self._direction))
        self._row = 0

    def take(self, rows: int) -> np.ndarray:
        """The noise of the next `rows` rows."""
        if not 0 <= rows <= len(self._weights) - self._row:
            raise DataError("The noise stream has one row for each weight, and more were asked for.")
        return self.shape(plain_noise(rows, len(self._direction), self._deviation, self._bits))

    def shape(self, noise: np.ndarray) -> np.ndarray:
        """Turn independent noise for the next rows (float64, C order) into theirs, in place."""
        start, end = self._row, self._row + len(noise)
        weights, before, after = self._weights[start:end], float(self._left[start]), float(self._left[end])
        self._row = end
        if before > after:
            own = _weighted_sum(weights, noise)
            wanted = math.sqrt(after / before) * own - self._sum * (1 - after / before)
            noise += weights[:, None] * ((wanted - own) / float(np.sum(weights**2)))
        _remove(noise, self._direction)
        if before > after:
            # The true sum, rounding errors included: the last block repairs those of all blocks, and then its own.
            self._sum += _weighted_sum(weights, noise)
            if after == 0:
                noise -= weights[:, None] * (self._sum / float(np.sum(weights**2)))
                _remove(noise, self._direction)
        return noise


def plain_noise(rows: int, columns: int, deviation: float, bits: Bits) -> np.ndarray:
    """iid N(0, deviation²) on a grid of 2^-29 deviations."""
    cells = draw("gaussian", _HALF_CELLS, rows * columns, bits)
    noise = cells.astype(np.float64)
    noise *= 2 * deviation / _HALF_CELLS
    return noise.reshape(rows, columns)


# einsum and not BLAS: its threads wait for each other at every small block, which cost 8 times the noise itself.


def _remove(noise: np.ndarray, direction: np.ndarray) -> None:
    """Subtract each row's part along a unit vector."""
    noise -= np.einsum("ij,j->i", noise, direction)[:, None] * direction


def _weighted_sum(weights: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.einsum("i,ij->j", weights, noise)


def unit_vector(vector: np.ndarray) -> np.ndarray:
    """The vector at length 1, zero stays zero; scaled first, so that squares neither overflow nor vanish."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    if largest == 0:
        return np.zeros(len(vector))
    scaled = np.asarray(vector, dtype=np.float64) / largest
    return scaled / np.linalg.norm(scaled)
