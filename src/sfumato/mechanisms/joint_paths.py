"""Draws places for several quantiles at once, with probability ∝ exp(-Σ|rows in a gap - wanted|/scale), exactly.

In:   sorted points of rows in [0, total), the wanted shares of rows in each gap, the scale.
Out:  JointPaths: `draw` gives non-decreasing whole numbers in [0, total), one for each quantile.
Not here: what the points stand for (quantile_grid.py), what the draw costs (core/events/quantiles.py).
Proof: docs/proofs/quantiles.md

The rows cut [0, total) into stretches; a tuple is a path through them, and several quantiles in one stretch are a run.
Sums over all paths are taken backwards in logarithms, one pass over the rows for each quantile, since the kernel
exp(-|d - t|/scale) is a geometric sequence to either side of t. They only propose: a path is drawn from whole-number
weights above the computed ones and kept with a probability that is decided exactly. So rounding errors cost a redraw
now and then, and never touch the law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.exact import Enclosure, LazyUniform, bernoulli, exp_enclosure

__all__ = ["JointPaths"]

#: Proposals this much below the computed sums are kept always; errors of rounding are far smaller (proof note).
_MARGIN = 1e-3
_FARTHEST = Fraction(100_000)
_WORD = 1 << 64


class _Run(NamedTuple):
    """`length` quantiles in the stretch `at`."""

    at: int
    length: int


class _Weights(NamedTuple):
    """Whole-number weights of proposals: ends of the cumulated sums."""

    ends: np.ndarray

    @property
    def total(self) -> int:
        return int(self.ends[-1])

    def of(self, place: int) -> int:
        return int(self.ends[place]) - (int(self.ends[place - 1]) if place else 0)

    def draw(self, size: int, bits: Bits) -> np.ndarray:
        return np.searchsorted(self.ends, bits.below(self.total, size), side="right")


def _proposals(logs: np.ndarray) -> _Weights:
    """Whole numbers just above exp(logs) in a common unit; 0 only where the log is -∞."""
    room = 61 - int(logs.size).bit_length()
    scaled = np.exp(logs - logs.max()) * 2.0**room
    return _Weights(np.cumsum(np.where(np.isneginf(logs), 0, scaled.astype(np.int64) + 1)))


class JointPaths:
    """The exponential mechanism over non-decreasing tuples; see the module text.

    >>> paths = JointPaths(np.array([2, 5, 5]), 10, (Fraction(1, 2), Fraction(1, 2)), 0.05)
    >>> 2 < int(paths.draw(1, Bits(seed=1))[0, 0]) <= 5
    True
    """

    def __init__(self, points: np.ndarray, total: int, shares: Sequence[Fraction], scale: float) -> None:
        self._starts = np.concatenate([[0], np.asarray(points, dtype=np.int64) + 1])
        self.lengths = np.diff(np.concatenate([self._starts, [total]]))
        self.rows, self.count = len(points), len(shares) - 1
        self.scale = Fraction(scale)
        self.wanted = [share * self.rows for share in shares]
        with np.errstate(divide="ignore"):
            self._log_lengths = np.log(self.lengths.astype(np.float64))
        self._near = [float(one / self.scale) for one in self.wanted]
        self._backward()

    # ── sums over all paths ──────────────────────────────────────────────────────────────────────────────────────────

    def _backward(self) -> None:
        """`rest[j][i]`: log of the sum over ways on, when j quantiles are placed and the last lies in stretch i."""
        count, rows, rate = self.count, self.rows, float(1 / self.scale)
        stretches = np.arange(rows + 1)
        rest: list[np.ndarray] = [np.empty(0)] * count
        rest.append(-np.abs((rows - stretches) * rate - self._near[count]))
        self.rest, self.next = rest, [np.empty(0)] * count
        runs = [self._log_lengths]
        for length in range(2, count + 1):
            with np.errstate(invalid="ignore"):
                more = runs[-1] + np.log((self.lengths + (length - 1.0)) / length)
            runs.append(np.where(self.lengths > 0, more, -np.inf))
        self._runs = runs
        for placed in range(count - 1, -1, -1):
            total = self._log_lengths + rest[placed + 1]
            for length, term in self._ways(placed):
                if length > 1:
                    _add(total, term + rest[placed + length])
            self.next[placed] = total
            if placed:
                rest[placed] = _after(total, float(self.wanted[placed]), rate)
        start = self.next[0] - np.abs(stretches * rate - self._near[0])
        self.log_total = float(np.logaddexp.reduce(start))
        self._start = _proposals(start)
        largest = max(float(np.abs(one[np.isfinite(one)]).max(initial=1.0)) for one in [*rest[1:], *self.next, start])
        steps = 8.0 * (count + 1) * (rows + count + 8)
        self.margin = _MARGIN + steps * float(np.spacing(largest + rate * rows + 64 * count))

    def _ways(self, placed: int) -> Iterator[tuple[int, np.ndarray]]:
        """For every length of the next run: the log of its tuples, and what its empty gaps cost."""
        empty = 0.0
        for length in range(1, self.count - placed + 1):
            if length > 1:
                empty += self._near[placed + length - 1]
            yield length, self._runs[length - 1] - empty

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, trials: int, bits: Bits) -> np.ndarray:
        """`trials` independent tuples, one a row."""
        found = np.empty((trials, self.count), dtype=np.int64)
        waiting = np.arange(trials)
        while waiting.size:
            refused = [self._place(found, path, odds, own, bits) for path, odds, own in self._paths(waiting, bits)]
            waiting = np.concatenate(refused)
        return found

    def _paths(self, trials: np.ndarray, bits: Bits) -> Iterator[tuple[tuple[_Run, ...], Fraction, np.ndarray]]:
        """Proposed paths, one over the probability of proposing each, and the trials for which it was proposed."""
        stack: list[tuple[tuple[_Run, ...], Fraction, np.ndarray, int]] = [((), Fraction(1), trials, 0)]
        while stack:
            path, odds, own, placed = stack.pop()
            if placed == self.count:
                yield path, odds, own
                continue
            last = path[-1].at if path else None
            weights = self._start if last is None else self._onward(placed, last)
            first = 0 if last is None else last + 1
            for at, chosen in _groups(weights.draw(own.size, bits), own):
                lengths = self._lengths(placed, first + at)
                for place, mine in _groups(lengths.draw(chosen.size, bits), chosen):
                    run = _Run(first + at, place + 1)
                    factor = Fraction(weights.total, weights.of(at)) * Fraction(lengths.total, lengths.of(place))
                    stack.append(((*path, run), odds * factor, mine, placed + run.length))

    def _onward(self, placed: int, last: int) -> _Weights:
        ahead = np.arange(1, self.rows - last + 1) * float(1 / self.scale)
        return _proposals(self.next[placed][last + 1 :] - np.abs(ahead - self._near[placed]))

    def _lengths(self, placed: int, at: int) -> _Weights:
        ways = self._ways(placed)
        return _proposals(np.array([term[at] + self.rest[placed + length][at] for length, term in ways]))

    def _place(
        self, found: np.ndarray, path: tuple[_Run, ...], odds: Fraction, trials: np.ndarray, bits: Bits
    ) -> np.ndarray:
        """Keep the path for some of the trials and place its quantiles; the trials for which it was refused."""
        exponent = self.cost(path) + Fraction(self.log_total + self.margin)
        factor = odds * math.prod(math.comb(int(self.lengths[at]) + size - 1, size) for at, size in path)

        def chance(length: int) -> Enclosure:
            digits = length // 3 + 30
            low, high = exp_enclosure(-min(exponent, _FARTHEST), -min(exponent, _FARTHEST), digits)
            return (low if exponent < _FARTHEST else Fraction(0)) * factor, high * factor

        kept = _flips(chance, trials.size, bits)
        column = 0
        for run in path:
            found[trials[kept], column : column + run.length] = self._inside(run, int(kept.sum()), bits)
            column += run.length
        return trials[~kept]

    def cost(self, path: Sequence[_Run]) -> Fraction:
        """Σ|rows in a gap - wanted|/scale, exactly."""
        ranks = [0, *(run.at for run in path for _ in range(run.length)), self.rows]
        return sum(abs(ranks[k + 1] - ranks[k] - wanted) for k, wanted in enumerate(self.wanted)) / self.scale

    def _inside(self, run: _Run, trials: int, bits: Bits) -> np.ndarray:
        """Non-decreasing tuples in one stretch, all alike likely."""
        start, length = int(self._starts[run.at]), int(self.lengths[run.at])
        if run.length == 1:
            return start + bits.below(length, trials)[:, None]
        return start + np.array([_tuple(length, run.length, bits) for _ in range(trials)], dtype=np.int64).reshape(
            trials, run.length
        )

    # ── the law, for audits ──────────────────────────────────────────────────────────────────────────────────────────

    def log_likelihood(self, tuples: np.ndarray) -> np.ndarray:
        """Log probability of each row of `tuples`, within rounding."""
        ranks = np.searchsorted(self._starts, tuples, side="right") - 1
        ends = np.hstack([np.zeros((len(ranks), 1)), ranks, np.full((len(ranks), 1), self.rows)])
        wanted = np.array([float(one) for one in self.wanted])
        return -np.abs(np.diff(ends, axis=1) - wanted).sum(axis=1) / float(self.scale) - self.log_total


def _add(total: np.ndarray, term: np.ndarray) -> None:
    """Adds in place where it can be seen: what is e^-50 of the whole is left to the margin."""
    seen = np.flatnonzero(term > total - 50.0)
    total[seen] = np.logaddexp(total[seen], term[seen])


def _tuple(length: int, size: int, bits: Bits) -> list[int]:
    """One of the C(length + size - 1, size) non-decreasing tuples below `length`: a subset (Floyd), drawn in."""
    room = length + size - 1
    chosen: set[int] = set()
    for top in range(room - size, room):
        one = int(bits.below(top + 1, 1)[0])
        chosen.add(top if one in chosen else one)
    return [place - rank for rank, place in enumerate(sorted(chosen))]


def _groups(drawn: np.ndarray, trials: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    order = np.argsort(drawn, kind="stable")
    values, firsts = np.unique(drawn[order], return_index=True)
    yield from zip(values.tolist(), np.split(trials[order], firsts[1:]), strict=True)


def _flips(chance: Callable[[int], Enclosure], size: int, bits: Bits) -> np.ndarray:
    """Independent coins of one exact probability: 64 bits decide nearly all, further bits the rest."""
    low, high = chance(64)
    words = bits.words(size)
    kept = words < np.uint64(min(_WORD - 1, math.floor(low * _WORD)))  # a word stands for [word, word + 1)/2^64
    for place in np.flatnonzero(~kept & (words <= np.uint64(min(_WORD - 1, math.ceil(high * _WORD))))):
        kept[place] = bernoulli(LazyUniform(bits, int(words[place]), 64), chance)
    return kept


def _after(logs: np.ndarray, wanted: float, rate: float) -> np.ndarray:
    """log Σ_{i > i'} exp(logs[i] - rate·|i - i' - wanted|) for every i'.

    What lies at least `wanted` ahead decays, what lies nearer grows; the nearer ones are a moving window, summed from
    blocks of its own width without ever subtracting.
    """
    size = logs.size
    places = np.arange(size)
    far_from = max(1, math.ceil(wanted))
    decaying = np.logaddexp.accumulate((logs - rate * places)[::-1])[::-1]
    result = np.full(size, -np.inf)
    if far_from < size:
        result[: size - far_from] = decaying[far_from:] + rate * (places[: size - far_from] + wanted)
    width = min(far_from - 1, size)
    if width > 0:
        near = _window(logs + rate * places, width) - rate * (places + wanted)
        np.logaddexp(result, near, out=result)
    return result


def _window(logs: np.ndarray, width: int) -> np.ndarray:
    """log Σ_{i' < i <= i' + width} exp(logs[i]) for every i'."""
    size = logs.size
    blocks = -(-(size + width + 1) // width)
    padded = np.full(blocks * width, -np.inf)
    padded[: size - 1] = logs[1:]  # the window of i' is padded[i' : i' + width]
    shaped = padded.reshape(blocks, width)
    tails = np.logaddexp.accumulate(shaped[:, ::-1], axis=1)[:, ::-1].reshape(-1)
    heads = np.logaddexp.accumulate(shaped, axis=1).reshape(-1)
    first = np.arange(size)
    beyond = np.where(first % width == 0, -np.inf, heads[first + width - 1])
    return np.logaddexp(tails[first], beyond)
