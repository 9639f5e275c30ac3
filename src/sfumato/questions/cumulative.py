"""What is drawn for the counts of bins, so that every cumulative count has little noise.

In:   a number of bins, whether noise costs a pure ε.
Out:  Toeplitz for Gaussian noise, CountTree for Laplace noise: encoding, cumulative counts, variances.
Not here: which bins there are, and what is read off (questions/quantile.py).
Proof: docs/proofs/quantiles.md, "Noisy cumulative counts"
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from sfumato.questions.question import Numbers

__all__ = ["CountTree", "Toeplitz", "strategy_of"]

_BRANCHES = 16
#: Coefficients of the strategy are multiples of this, so that what is drawn is exact.
_UNIT = 1 << 20


def _fast(whole: np.ndarray, largest: int) -> np.ndarray:
    """Whole numbers as floats, where no sum of products exceeds what floats hold exactly: five times as fast."""
    return whole.astype(np.float64) if largest < 2**53 else whole


@dataclass(frozen=True)
class Toeplitz:
    """For Gaussian noise: y = C·counts, C the lower Toeplitz matrix of the root of 1/(1 - z), in multiples of 2^-20."""

    bins: int

    @property
    def size(self) -> int:
        return self.bins

    @cached_property
    def steps(self) -> np.ndarray:
        """The first column of C, in units: f_k = C(2k, k)/4^k."""
        k = np.arange(1, self.bins)
        return np.rint(np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))]) * _UNIT).astype(np.int64)

    @cached_property
    def inverse(self) -> Numbers:
        """The first column of (lower ones)·C⁻¹, by which cumulative counts are read off."""
        steps, found = self.steps / _UNIT, np.empty(self.bins)
        for k in range(self.bins):
            found[k] = 1.0 - steps[1 : k + 1] @ found[:k][::-1]
        return found

    def moves(self, crossing: bool) -> tuple[Fraction, Fraction]:
        """Squared length of the longest column, and of the longest difference of two (`crossing`: in two groups)."""
        squares = np.cumsum(self.steps * self.steps)
        longest = int(squares[-1])
        steps = _fast(self.steps, longest)
        inner = np.correlate(steps, steps, "full")[self.bins - 1 :]  # Σ_k f_k f_{k+d}
        apart = 2 * longest if crossing else int((longest + squares[::-1] - 2 * inner).max())
        return Fraction(longest, _UNIT**2), Fraction(apart, _UNIT**2)

    def encode(self, counts: np.ndarray) -> Numbers:
        return np.convolve(self.steps, _fast(counts, _UNIT * int(np.abs(counts).sum())))[: self.bins] / _UNIT

    def cumulative(self, drawn: Numbers) -> Numbers:
        return np.convolve(self.inverse, drawn)[: self.bins]

    @cached_property
    def _squares(self) -> tuple[Numbers, Numbers]:
        inverse = self.inverse
        return np.cumsum(inverse**2), np.correlate(inverse, inverse, "full")[self.bins - 1 :]

    def variances(self, share: float) -> Numbers:
        """Of cumulative count - share · all, in units of the variance of one drawn number."""
        squares, lagged = self._squares
        return np.maximum(squares - 2 * share * lagged[::-1] + share**2 * squares[-1], 0.0)


@dataclass(frozen=True)
class CountTree:
    """For Laplace noise: the counts of a tree with 16 branches, all levels but the root."""

    bins: int

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """How many nodes each level has, the top one first."""
        found = [self.bins]
        while found[0] > _BRANCHES:
            found.insert(0, -(-found[0] // _BRANCHES))
        return tuple(found)

    @property
    def size(self) -> int:
        return sum(self.levels)

    def encode(self, counts: np.ndarray) -> Numbers:
        parts = [np.asarray(counts, dtype=np.int64)]
        for size in self.levels[-2::-1]:
            padded = np.zeros(size * _BRANCHES, dtype=np.int64)
            padded[: parts[0].size] = parts[0]
            parts.insert(0, padded.reshape(size, _BRANCHES).sum(axis=1))
        return np.concatenate(parts).astype(np.float64)

    @cached_property
    def _used(self) -> np.ndarray:
        """How many nodes of each level make up the rows in bins 0 … k."""
        ends, found = np.arange(1, self.bins + 1), []
        for depth in range(len(self.levels)):
            width = _BRANCHES ** (len(self.levels) - 1 - depth)
            own = ends // width
            found.append(own if depth == 0 else own % _BRANCHES)
        return np.array(found)

    def cumulative(self, drawn: Numbers) -> Numbers:
        total, start = np.zeros(self.bins), 0
        for depth, size in enumerate(self.levels):
            sums = np.concatenate([[0.0], np.cumsum(drawn[start : start + size])])
            ends = np.arange(1, self.bins + 1) // _BRANCHES ** (len(self.levels) - 1 - depth)
            total += sums[ends] - sums[ends - self._used[depth]]
            start += size
        total[-1] = drawn[: self.levels[0]].sum()
        return total

    def variances(self, share: float) -> Numbers:
        top, rest = self._used[0], self._used[1:].sum(axis=0)
        found = top * (1 - share) ** 2 + (self.levels[0] - top) * share**2 + rest
        found = np.asarray(found, dtype=np.float64)
        found[-1] = self.levels[0] * (1 - share) ** 2
        return found


@lru_cache(maxsize=64)
def strategy_of(bins: int, pure: bool) -> Toeplitz | CountTree:
    """What is drawn for the counts of so many bins."""
    return CountTree(bins) if pure else Toeplitz(bins)
