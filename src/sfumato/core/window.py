"""Many independent losses alike, added up where they almost surely lie.

In:   the chances of one loss on the steps of a grid, how many losses there are.
Out:  Stretch: the chances of their sum on a stretch of the grid, and a bound on what lies outside of it.
Not here: which losses (core/events/learning.py, core/loss_distribution.py).
Proof: docs/proofs/composition.md

The sum of k losses reaches k times as far as one, but is √k times as wide: all steps would fill the memory, or be so
few that one loss is lost between two of them. A Fourier transform of n places gives the sum modulo n. Whatever lies
outside of a stretch of n places then lies somewhere inside of it, where it only adds; and that it is little is known
by Chernoff's bound. It is charged as an infinite loss.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Stretch", "added_up"]

#: What may lie beyond either end.
_BEYOND = 1e-16
#: Exponents of Chernoff's bound around the one that is best for a normal sum: every one gives a true bound.
_AROUND = np.geomspace(0.25, 4.0, 33)


class Stretch(NamedTuple):
    """Chances of the sum at `lowest`, `lowest` + 1, … steps; `outside` bounds what lies beyond."""

    lowest: int
    masses: np.ndarray
    outside: float


def added_up(masses: np.ndarray, count: int) -> Stretch:
    """The sum of `count` independent losses of 0, 1, 2, … steps with these chances; they need not add up to one.

    Transforms err; who calls knows by how much (docs/proofs/composition.md).

    >>> two = added_up(np.array([0.5, 0.5]), 2)
    >>> two.lowest, [round(float(mass), 9) for mass in two.masses[:3]]
    (0, [0.25, 0.5, 0.25])
    """
    total = float(masses.sum())
    chances = masses / total
    mean = float(np.dot(chances, np.arange(masses.size)))
    lowest = max(0, math.floor(count * mean - _reach(chances, mean, count, -1)))
    highest = min(count * (masses.size - 1), math.ceil(count * mean + _reach(chances, mean, count, 1)))
    from scipy import fft  # needed for compositions only

    length: Any = fft.next_fast_len(highest - lowest + 1, real=True)
    folded = np.bincount(np.arange(masses.size) % length, chances, length)
    found = np.asarray(fft.irfft(np.asarray(fft.rfft(folded)) ** count, length))
    kept = np.roll(found, -(lowest % length))[: highest - lowest + 1]
    return Stretch(lowest, np.maximum(kept, 0.0) * total**count, 2 * _BEYOND)


def _reach(chances: np.ndarray, mean: float, count: int, side: int) -> float:
    """How far on one side of its mean the sum lies, but for the chance `_BEYOND`: (k·ln E e^{λ(X-mean)} + ln 1/p)/λ."""
    met = np.flatnonzero(chances)
    apart, logs = side * (met - mean), np.log(chances[met])
    spread = math.sqrt(max(float(np.dot(chances[met], apart**2)), 1e-12))
    needed = -math.log(_BEYOND)
    best = math.inf
    for exponent in _AROUND * math.sqrt(2 * needed / count) / spread:
        grown = float(np.logaddexp.reduce(logs + exponent * apart))
        best = min(best, (count * max(grown, 0.0) + needed) / exponent)
    # The sum of logarithms errs by less than 1e-12 of itself, and `count` times that is far below one step of a reach.
    return best * (1 + 1e-9) + 1.0
