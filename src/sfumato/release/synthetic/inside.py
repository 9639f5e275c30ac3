"""Where a number lies inside its bin: so that means and quantiles of the rows are right and not only their counts.

In:   edges with how many values lie between them, as far as that is public; finer ones where they were bought.
Out:  Inside: numbers drawn between two ends.
Not here: which bin (release/synthetic/junction_tree.py). All of this is post-processing.
Reference: Fritsch & Carlson 1980 (monotone cubic interpolation of the distribution function). The two outer bins have
nothing beyond them that would say how they end; there the density goes on as its neighbour's does, exponentially.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.roots import root_between

__all__ = ["Inside"]

Numbers = NDArray[np.float64]
#: Points of the distribution function inside each bin.
_STEPS = 32
#: By how many powers of e a density changes at most along the narrower of two bins.
_STEEPEST = 40.0
#: Beyond so many powers of e along one bin its density stands at one end of it.
_FARTHEST = 500.0


@dataclass(frozen=True, eq=False)
class Inside:
    """A distribution function, rising from 0 to 1 along `places`. Only its shape between two ends is used."""

    places: Numbers
    below: Numbers

    @classmethod
    def smooth(cls, ends: Numbers, counts: Numbers) -> Inside:
        """The monotone cubic through the shares of the bins, exponential in the outer two; bins of no width take no
        part."""
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
        if len(knots) == 2:
            return cls(places, np.interp(there, whole, below))
        rising = np.array(PchipInterpolator(whole, below)(there))
        widths = np.diff(whole)
        first, last = _rate(shares[:2], widths[:2]), _rate(shares[-2:], widths[-2:])
        rising[:_STEPS] = shares[0] * _exponential(first * widths[0], part)
        rising[-_STEPS - 1 : -1] = below[-2] + shares[-1] * _exponential(last * widths[-1], part)
        return cls(places, np.maximum.accumulate(rising))

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


def _rate(shares: Numbers, widths: Numbers) -> float:
    """By which rate one exponential density falls that gives two neighbours their shares; 0 where one has none.

    >>> held = -np.diff(np.exp([0.0, -2.0, -6.0]))  # of e^(-x) between 0, 2 and 6
    >>> round(_rate(held, np.array([2.0, 4.0])), 9)
    1.0
    """
    if min(shares) <= 0:
        return 0.0
    (left, right), wanted = widths.tolist(), math.log(shares[0] / widths[0]) - math.log(shares[1] / widths[1])
    steepest = _STEEPEST / min(left, right)

    def beyond(rate: float) -> float:
        return _log_mean(rate * left) - _log_mean(-rate * right) - wanted

    if beyond(steepest) <= 0 or beyond(-steepest) >= 0:
        return math.copysign(steepest, wanted)
    return root_between(beyond, -steepest, steepest)


def _log_mean(power: float) -> float:
    """The logarithm of the mean of e^(power·t) for t from 0 to 1."""
    size = abs(power)
    return power / 2 if size < 1e-6 else max(power, 0.0) + math.log(-math.expm1(-size) / size)


def _exponential(fall: float, part: Numbers) -> Numbers:
    """The share of a bin that lies before each part of it, where the density falls by e^fall along the bin."""
    fall = min(max(fall, -_FARTHEST), _FARTHEST)
    return part if abs(fall) < 1e-6 else np.expm1(-fall * part) / math.expm1(-fall)
