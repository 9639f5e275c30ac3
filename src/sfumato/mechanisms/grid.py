"""The public grid on which noise is added.

In:   values, a law, its scale.
Out:  noisy values, multiples of a power of two that depends on public parameters alone.
Not here: the law's exactness (sampling.py), its privacy (gaussian.py, laplace.py, norm_gamma.py).
Proof: docs/proofs/sampling.md

Floating-point sums of value and noise betray the value by their low bits (Mironov 2012). Here both are whole
multiples of the grid, so the output says nothing but its cell.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.errors import DataError, PrivacyParameterError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.sampling import CHUNK, LARGEST_SCALE, Law, draw

__all__ = ["ANY_DIMENSION", "add_cells", "add_noise", "check_dimension", "on_grid", "public_grid"]

#: Used for the rounding term when nobody says how many numbers one unit can change: enough for 16 million.
ANY_DIMENSION = 1 << 24
#: Rounding may cost this share of the sensitivity.
_SLACK = 2.0**-12
#: Whole numbers up to here are exact as floats.
_EXACT = 2.0**53


def public_grid(scale: float, sensitivity: float, spread: float) -> float:
    """The coarsest power of two for which rounding costs at most 1/4096 of the sensitivity, and 2^-20 scales.

    `spread` is by how many cells rounding can move neighbours apart: √dimension in L2, dimension in L1.
    """
    wanted = min(scale * 2.0**-20, sensitivity * _SLACK / spread)
    finest = 2 * scale / LARGEST_SCALE  # the sampler counts half cells
    grid = max(_power_of_two_below(wanted), 2 * _power_of_two_below(finest))
    if not math.isfinite(scale / grid) or grid < 2.0**-960 or scale > 2.0**960:
        raise PrivacyParameterError(f"A noise scale of {scale:g} is outside what floating point can hold safely.")
    return grid


def _power_of_two_below(value: float) -> float:
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0 else 0.0


def check_dimension(declared: int | None, size: int) -> None:
    """Without a declared dimension every value may depend on the same unit, and the rounding term covers 2^24."""
    if declared is None and size > ANY_DIMENSION:
        raise DataError(
            f"More than {ANY_DIMENSION} values: say how many of them one unit can change (dimension=…). "
            "Nothing was drawn and nothing was spent."
        )


def on_grid(values: np.ndarray, grid: float) -> np.ndarray:
    """The nearest multiples of the grid. A float of 2^53 cells or more is one already."""
    with np.errstate(over="ignore"):
        cells = np.multiply(values, 1 / grid, out=np.empty(np.shape(values)))
    np.rint(cells, out=cells)
    cells *= grid
    return np.where(np.abs(values) < _EXACT * grid, cells, values)


def add_cells(values: np.ndarray, cells: np.ndarray, grid: float) -> np.ndarray:
    """`values` on the grid plus whole cells of noise, rounded once to a float: a function of their exact sum alone.

    >>> add_cells(np.array([0.3, 1e300]), np.array([2, -5]), 0.25).tolist()
    [0.75, 1e+300]
    """
    placed = on_grid(values, grid)
    noisy = np.asarray(placed + cells * grid)
    # Beyond 2^53 cells the noise itself is no float any more: one draw in 10^27, whatever the values.
    for place in map(tuple, np.argwhere(np.abs(cells) > _EXACT)):
        noisy[place] = float(Fraction(float(placed[place])) + int(cells[place]) * Fraction(grid))
    return noisy


def add_noise(values: np.ndarray, law: Law, scale: float, grid: float, bits: Bits) -> np.ndarray:
    """`values` on the grid plus independent noise on the grid, in cache-sized pieces."""
    flat = np.ascontiguousarray(values).reshape(-1)
    result = np.empty(flat.size, dtype=np.float64)
    half_cells = scale / (grid / 2)
    for start in range(0, flat.size, CHUNK):
        piece = flat[start : start + CHUNK]
        result[start : start + CHUNK] = add_cells(piece, draw(law, half_cells, piece.size, bits), grid)
    return result.reshape(values.shape)
