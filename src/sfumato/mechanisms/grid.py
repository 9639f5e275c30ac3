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
from typing import Any

import numpy as np

from sfumato.errors import DataError, PrivacyParameterError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.grid_law import Law
from sfumato.mechanisms.sampling import CHUNK, LARGEST_SCALE, draw

__all__ = ["ANY_DIMENSION", "add_cells", "add_noise", "check_dimension", "nearest_cell", "on_grid", "public_grid"]

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
    >>> add_cells(np.array([2**60 + 1]), np.array([-(2**40)]), 2.0**20).tolist()
    [0.0]
    """
    if values.dtype.kind == "O":
        return _add_fractions(values, cells, grid)
    if values.dtype.kind == "f":
        placed, rest = on_grid(values, grid), np.zeros(())
        noisy = np.asarray(placed + cells * grid)
    else:
        placed, rest = _whole_on_grid(values, grid)
        noisy = _sum_of_three(placed, rest, cells * grid)
    # Beyond 2^53 cells the noise itself is no float any more: one draw in 10^27, whatever the values.
    rest = np.broadcast_to(rest, noisy.shape)
    for place in map(tuple, np.argwhere(np.abs(cells) > _EXACT)):
        value = Fraction(float(placed[place])) + Fraction(float(rest[place]))
        noisy[place] = float(value + int(cells[place]) * Fraction(grid))
    return noisy


def nearest_cell(value: Fraction, grid: float) -> int:
    """The number of the cell a value lies in, exactly; halfway between two it is the even one."""
    over, under = grid.as_integer_ratio()
    return _nearest_whole(int(value.numerator) * under, int(value.denominator) * over)


def _nearest_whole(numerator: int, denominator: int) -> int:
    """round(Fraction(numerator, denominator)) without reducing it."""
    whole, rest = divmod(numerator, denominator)
    beyond = 2 * rest - denominator
    return whole + (beyond > 0 or (beyond == 0 and whole & 1))


def _add_fractions(values: np.ndarray, cells: np.ndarray, grid: float) -> np.ndarray:
    """In whole numbers: a grid is a ratio of two, and their quotient is rounded once."""
    noisy = np.empty(values.shape)
    over, under = float(grid).as_integer_ratio()
    for place in np.ndindex(values.shape):
        value: Any = values[place]  # a Fraction
        total = nearest_cell(value, grid) + int(cells[place])
        try:
            noisy[place] = total * over / under
        except OverflowError:  # what float addition makes of it
            noisy[place] = math.inf if total > 0 else -math.inf
    return noisy


def _whole_on_grid(values: np.ndarray, grid: float) -> tuple[np.ndarray, np.ndarray]:
    """64-bit whole numbers on the grid, each as the exact sum of two floats: they need not fit into one."""
    power = math.frexp(grid)[1] - 1
    kind = values.dtype.type
    if power > 0:
        shift = min(power, 63)
        # Half a cell and more goes up. Beyond 2^63 the shift by 63 says all there is: the sign, and the half.
        cells = (values >> kind(shift)) + ((values >> kind(shift - 1)) & kind(1))
        values = cells if power <= 63 else _beyond(values, power)
    unit = max(grid, 1.0)
    high = (values >> kind(32)).astype(np.float64) * (2.0**32 * unit)
    return high, (values & kind(0xFFFFFFFF)).astype(np.float64) * unit


def _beyond(values: np.ndarray, power: int) -> np.ndarray:
    """Cells of 2^64 or more: only an unsigned number of 2^63 and more is half a cell of 2^64."""
    return (values >> values.dtype.type(63)) & values.dtype.type(1 if values.dtype.kind == "u" and power == 64 else 0)


def _sum_of_three(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """The exact sum, rounded once, by rounding the error terms to odd (Boldo & Melquiond 2008, Thm 5)."""
    high, low = _two_sum(second, third)
    high, middle = _two_sum(first, high)
    tail, lost = _two_sum(middle, low)
    even = (tail.view(np.int64) & 1) == 0
    odd = np.where((lost != 0) & even, np.nextafter(tail, np.copysign(np.inf, lost)), tail)
    return np.asarray(high + odd)


def _two_sum(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rounded sum and what rounding lost, exactly (Knuth 1969, 4.2.2 Thm B)."""
    total = np.asarray(one + other)
    part = total - one
    return total, np.asarray((one - (total - part)) + (other - part))


def add_noise(values: np.ndarray, law: Law, scale: float, grid: float, bits: Bits) -> np.ndarray:
    """`values` on the grid plus independent noise on the grid, in cache-sized pieces."""
    flat = np.ascontiguousarray(values).reshape(-1)
    result = np.empty(flat.size, dtype=np.float64)
    half_cells = scale / (grid / 2)
    for start in range(0, flat.size, CHUNK):
        piece = flat[start : start + CHUNK]
        result[start : start + CHUNK] = add_cells(piece, draw(law, half_cells, piece.size, bits), grid)
    return result.reshape(values.shape)
