"""Where a number lies inside its bin: so that means and quantiles of the rows are right and not only their counts.

In:   edges with how many values lie between them, as far as that is public; finer ones where they were bought.
Out:  Inside: numbers drawn between two ends.
Not here: which bin (release/synthetic/junction_tree.py). All of this is post-processing.
Reference: Fritsch & Carlson 1980 (monotone cubic interpolation of the distribution function).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Inside"]

Numbers = NDArray[np.float64]
#: Points of the distribution function inside each bin.
_STEPS = 32


@dataclass(frozen=True, eq=False)
class Inside:
    """A distribution function, rising from 0 to 1 along `places`. Only its shape between two ends is used."""

    places: Numbers
    below: Numbers

    @classmethod
    def smooth(cls, ends: Numbers, counts: Numbers) -> Inside:
        """The monotone cubic through the shares of the bins; bins of no width take no part."""
        from scipy.interpolate import PchipInterpolator

        wide = np.diff(ends) > 0
        if not wide.any():
            return cls(np.array([ends[0], ends[0] + 1.0]), np.array([0.0, 1.0]))
        knots = np.append(ends[:-1][wide], ends[1:][wide][-1])
        held = np.maximum(counts[wide], 0.0)
        total = float(held.sum())
        shares = held / total if total > 0 else np.full(len(held), 1 / len(held))
        below = np.concatenate([[0.0], np.cumsum(shares)])
        part = np.linspace(0.0, 1.0, _STEPS, endpoint=False)
        places = np.append((knots[:-1, None] + part * np.diff(knots)[:, None]).ravel(), knots[-1])
        # Along shares of the whole width: slopes over a very narrow one leave the floats.
        whole = (knots - knots[0]) / (knots[-1] - knots[0])
        there = (places - knots[0]) / (knots[-1] - knots[0])
        rising = PchipInterpolator(whole, below)(there) if len(knots) > 2 else np.interp(there, whole, below)
        return cls(places, np.maximum.accumulate(np.asarray(rising)))

    @classmethod
    def stepwise(cls, ends: Numbers, counts: Numbers) -> Inside:
        """Even between any two ends: for fine counts."""
        wide = np.diff(ends) > 0
        knots = np.append(ends[:-1][wide], ends[1:][wide][-1])
        held = np.maximum(counts[wide], 0.0) + 1e-12
        return cls(knots, np.concatenate([[0.0], np.cumsum(held) / held.sum()]))

    def draw(self, low: Numbers, high: Numbers, generator: np.random.Generator) -> Numbers:
        """One number in each [low, high), by the shape of the distribution between the two.

        >>> even = Inside.smooth(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0]))
        >>> found = even.draw(np.full(1000, 1.0), np.full(1000, 2.0), np.random.default_rng(0))
        >>> bool((found >= 1).all() and (found < 2).all()), round(float(found.mean()), 1)
        (True, 1.5)
        """
        share = generator.random(len(low))
        even = low + share * (high - low)
        first, last = np.interp(low, self.places, self.below), np.interp(high, self.places, self.below)
        shaped = np.interp(first + share * (last - first), self.below, self.places)
        numbers = np.where(last - first > 1e-9, shaped, even)
        return np.where(high > low, np.clip(numbers, low, np.nextafter(high, low)), low)
