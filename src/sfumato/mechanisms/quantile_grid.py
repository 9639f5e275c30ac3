"""The public places a quantile may be published at, and how much weight each has before any row is read.

In:   a public range, optionally the step between places.
Out:  QuantileGrid: places, whole-number weights, the rows of a column as points between 0 and `total`.
Not here: choosing among the places (joint_quantiles.py).
Proof: docs/proofs/quantiles.md

Rows come in three sorts that an even spread over the range serves badly: many at 0, many at round numbers, and most
within a small part of a range that was stated generously. So four sevenths of the weight are spread evenly, and a
seventh each is given to round numbers (as much to the tens as to the hundreds …), spread evenly over the orders of
magnitude, and given to the place nearest to 0. It is public and moves no promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.errors import InputError

__all__ = ["QuantileGrid", "spread_points"]

#: At least so many places, where the step is not given; at most ten times as many.
_PLACES = 1 << 16
_MOST_PLACES = 1 << 22
#: The sum of all weights, nearly; the rest of 64 bits is for counting.
_TOTAL_BITS = 60
_REVERSED_BITS = 32
#: A power of ten with fewer multiples in the range would single out its ends.
_FEWEST_ROUND = 10


@dataclass(frozen=True)
class QuantileGrid:
    """Multiples of a decimal step within a range.

    >>> grid = QuantileGrid.between(0.0, 110.0)
    >>> grid.step, grid.count, grid.value_at(grid.cells_of([36.99961])).tolist()
    (0.001, 110001, [37.0])
    """

    first: int
    count: int
    #: The step is mantissa · 10^exponent, both whole, so that places are the decimals one would write.
    mantissa: int
    exponent: int

    @classmethod
    def between(cls, low: float, high: float, step: float | None = None, least: int = _PLACES) -> QuantileGrid:
        """The places of [low, high]; the step, if not given, is the largest power of ten for `least` of them."""
        if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
            raise InputError("A quantile needs a range of two different numbers, low and high. Nothing was spent.")
        if step is None:
            mantissa, exponent = 1, math.floor(math.log10((high - low) / least))
        else:
            if not (math.isfinite(step) and 0 < step <= high - low):
                raise InputError("The step between places must be positive and below the range. Nothing was spent.")
            _, digits, exponent = Decimal(repr(float(step))).as_tuple()
            mantissa = int("".join(map(str, digits)))
        unit = Decimal(mantissa).scaleb(int(exponent))
        first = math.ceil(Decimal(repr(float(low))) / unit)
        count = math.floor(Decimal(repr(float(high))) / unit) - first + 1
        if not 2 <= count <= _MOST_PLACES or max(abs(first), abs(first + count)) > 1 << 52:
            raise InputError(
                f"This range has no grid of between 2 and {_MOST_PLACES} places. Nothing was drawn or spent."
            )
        return cls(first, count, mantissa, int(exponent))

    @property
    def step(self) -> float:
        return float(Decimal(self.mantissa).scaleb(self.exponent))

    def value_at(self, cells: Any) -> np.ndarray:
        """The decimals at these places, correctly rounded."""
        multiples = (np.asarray(cells, dtype=np.int64) + self.first) * self.mantissa
        if -22 <= self.exponent <= 0:  # both are floats without rounding, so the quotient is rounded once
            return multiples / 10.0**-self.exponent
        flat = [float(Decimal(int(one)).scaleb(self.exponent)) for one in multiples.reshape(-1)]
        return np.array(flat).reshape(multiples.shape)

    def cells_of(self, values: Any) -> np.ndarray:
        """The nearest place of every number; beyond the ends, the ends."""
        with np.errstate(over="ignore"):
            nearest = np.rint(np.asarray(values, dtype=np.float64) / self.step)
        return (np.clip(nearest, self.first, self.first + self.count - 1) - self.first).astype(np.int64)

    @cached_property
    def weights(self) -> np.ndarray:
        """One whole number for every place, all positive."""
        places = self.first + np.arange(self.count)
        anchor = int(np.clip(0, self.first, self.first + self.count - 1))
        octaves = np.frexp(np.abs(places - anchor).astype(np.float64))[1]  # 0 at the anchor, then [1, 2), [2, 4) …
        sizes = np.bincount(octaves)
        share = 4.0 / self.count + (1.0 / np.count_nonzero(sizes) / np.maximum(sizes, 1))[octaves]
        share[anchor - self.first] += 1.0
        power, levels = 10, []
        while (round_ones := places[places % power == 0]).size >= _FEWEST_ROUND:
            levels.append(round_ones - self.first)
            power *= 10
        for level in levels:
            share[level] += 1.0 / len(levels) / level.size
        return np.maximum(1, np.floor(share * (2.0**_TOTAL_BITS / share.sum()))).astype(np.int64)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the weight of each place begins, and at the end `total`."""
        return np.concatenate([[0], np.cumsum(self.weights)])

    @property
    def total(self) -> int:
        return int(self.starts[-1])

    def points_of(self, cells: np.ndarray) -> np.ndarray:
        """Sorted points in [0, total): the rows of a place lie at fixed parts of its weight: at 0, ½, ¼, ¾ …

        Where a further row of the same place would lie depends on how many there are and on nothing else, so that one
        row more or less is one point more or less.
        """
        filled, counts = np.unique(cells, return_counts=True)
        rank = np.arange(cells.size) - np.repeat(np.cumsum(counts) - counts, counts)
        owner = np.repeat(filled, counts)
        return np.sort(self.starts[owner] + spread_points(rank, self.weights[owner]))

    def cells_at(self, points: np.ndarray) -> np.ndarray:
        """The places in whose weight these points lie."""
        return np.searchsorted(self.starts, points, side="right") - 1


def spread_points(ranks: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The van der Corput sequence: the bits of the rank mirrored at the point, times the width, rounded down.

    >>> spread_points(np.arange(5), np.full(5, 16)).tolist()
    [0, 8, 4, 12, 2]
    """
    words = np.asarray(ranks, dtype=np.uint64)
    mirrored = np.zeros_like(words)
    for _ in range(_REVERSED_BITS):
        mirrored = (mirrored << np.uint64(1)) | (words & np.uint64(1))
        words = words >> np.uint64(1)
    wide = np.asarray(widths, dtype=np.uint64)
    low = np.uint64((1 << _REVERSED_BITS) - 1)
    product = (wide >> np.uint64(32)) * mirrored + (((wide & low) * mirrored) >> np.uint64(32))
    return product.astype(np.int64)
