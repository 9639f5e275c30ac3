"""Contributions in whole numbers of public steps, and numbers rounded against us.

In:   the public range of what is added up.
Out:  Grid: step, offset, the least and the greatest whole number; `up`, `root_up`: exact numbers as floats not below.
Not here: what is added up (questions/entry.py), how far one individual moves it (questions/moves.py).

Floating-point sums depend on the order of the rows and their true sensitivity exceeds the textbook's (Casacuberta et
al. 2022); sums of whole numbers do neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["CELL", "CHANCE", "ONE", "Grid", "root_up", "up", "width"]

#: Whole numbers up to 2^52 are exact as floats, so a contribution loses nothing but its last bits.
_DIGITS = 52
_LARGEST = math.nextafter(math.inf, 0.0)


def up(exact: Fraction) -> float:
    """The least float that is not below.

    >>> up(Fraction(1, 10)) >= Fraction(1, 10), up(Fraction(3)) == 3.0
    (True, True)
    """
    try:
        near = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -_LARGEST
    return math.nextafter(near, math.inf) if near < exact else near


def root_up(exact: Fraction) -> float:
    """The least float whose square is not below `exact`, or one step more.

    >>> Fraction(root_up(Fraction(2))) ** 2 >= 2
    True
    """
    root = math.sqrt(up(exact))
    while Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root


def width(low: float, high: float) -> float:
    """high - low, rounded up; infinite where an end is."""
    return up(Fraction(high) - Fraction(low)) if math.isfinite(low) and math.isfinite(high) else math.inf


@dataclass(frozen=True, slots=True)
class Grid:
    """Contributions x in whole numbers: `low` <= (x - offset) / step <= `high`, and `step` is a power of two.

    The step is small beside the largest |x - offset|. Where the width of a range is what one individual moves, the
    offset is therefore its middle: a step small beside 10^15 would be large beside a range of width 1 that lies there.

    >>> grid = Grid.of(1e15, 1e15 + 1, centred=True)
    >>> grid.offset == 1e15 + 0.5, grid.step < 1e-15, up(grid.ends[1] - grid.ends[0])
    (True, True, 1.0)
    """

    offset: float
    step: float
    low: int
    high: int

    @classmethod
    def of(cls, low: float, high: float, centred: bool = False) -> Grid:
        """The grid of contributions between two finite numbers."""
        least, greatest = Fraction(low), Fraction(high)
        offset = float((least + greatest) / 2) if centred else 0.0
        least, greatest = least - Fraction(offset), greatest - Fraction(offset)
        step = _step(up(max(abs(least), abs(greatest))))
        return cls(offset, step, math.floor(least / Fraction(step)), math.ceil(greatest / Fraction(step)))

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest x - offset on the grid, exactly."""
        return self.low * Fraction(self.step), self.high * Fraction(self.step)


def _step(magnitude: float) -> float:
    if magnitude == 0.0:
        return 1.0
    exponent = math.frexp(magnitude)[1]  # magnitude <= 2^exponent
    return math.ldexp(1.0, max(exponent - _DIGITS, -1000))


#: Of a row that counts, counts one; of one that may be in a cell or not; of one that counts by a probability.
ONE = Grid(0.0, 1.0, 1, 1)
CELL = Grid(0.0, 1.0, 0, 1)
CHANCE = Grid.of(0.0, 1.0)
