"""Pólya noise: whole numbers of which `parts` independent draws sum to two-sided geometric noise, exactly.

In:   the scale of the sum in cells, how many draws make it up.
Out:  int64 draws. Their sum over `parts` draws has P(n) ∝ exp(-|n|/scale).
Not here: bits (bits.py), the exact slow path (exact.py), who draws which share (shares.py).
Proof: docs/proofs/distributed_noise.md

The difference of two negative binomials of shape 1/parts is a Poisson number of jumps: size j, either sign, intensity
exp(-j/scale)/(parts·j). Sizes in [2^m, 2^(m+1)) are proposed at the rate 1/(parts·2^m) each and kept with probability
(2^m/j)·exp(-j/scale), so that proposals come at a rational rate and every decision is a comparison with exp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.errors import InputError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.exact import Enclosure, LazyUniform, bernoulli, exp_enclosure, exponential
from sfumato.mechanisms.sampling import GUARD

__all__ = ["draw_polya"]

#: Sizes beyond this many scales are drawn by the slow path: about one in 10^27 draws.
_REACH = 60.0
_LARGEST = 2.0**50
_WORD = 1 << 64


def draw_polya(scale: float, parts: int, size: int, bits: Bits, *, reach: float = _REACH) -> np.ndarray:
    """`size` independent shares; see the module text. `reach` moves the border to the slow path, never the law.

    >>> total = sum(draw_polya(50.0, 4, 20_000, Bits(seed=s)) for s in range(4))
    >>> bool(abs(total.var() / (2 * 50.0**2) - 1) < 0.1)
    True
    """
    if not 0 < scale <= _LARGEST or parts < 1:
        raise InputError(f"Shares need a scale of at most {_LARGEST:g} cells and at least one part.")
    blocks = max(1, math.ceil(math.log2(reach * scale)) if reach * scale > 1 else 1)
    noise = np.zeros(size, dtype=np.int64)
    owner = np.repeat(np.arange(size), _poisson(Fraction(2 * blocks, parts), size, bits))
    jumps = _jumps(scale, blocks, owner.size, bits)
    np.add.at(noise, owner, jumps)
    _add_tail(noise, Fraction(scale), parts, 1 << blocks, bits)
    return noise


@lru_cache(maxsize=64)
def _thresholds(rate: Fraction) -> np.ndarray:
    """floor(2^64 P(N <= n)) for Poisson N, until it stands still."""
    found: list[int] = []
    while not found or found[-1] < _WORD - 1:
        low, high = _poisson_cdf(rate, rate, len(found), 160)
        digits = 160
        while math.floor(low * _WORD) != math.floor(high * _WORD):
            digits *= 2
            low, high = _poisson_cdf(rate, rate, len(found), digits)
        found.append(min(_WORD - 1, math.floor(low * _WORD)))
    return np.array(found, dtype=np.uint64)


def _poisson_cdf(below: Fraction, above: Fraction, n: int, digits: int) -> Enclosure:
    """Bounds of P(N <= n) over rates in [below, above]; the probability falls with the rate."""

    def partial(rate: Fraction) -> Fraction:
        term = total = Fraction(1)
        for k in range(1, n + 1):
            term = term * rate / k
            total += term
        return total

    return (
        exp_enclosure(-above, -above, digits)[0] * partial(above),
        min(Fraction(1), exp_enclosure(-below, -below, digits)[1] * partial(below)),
    )


def _poisson(rate: Fraction, size: int, bits: Bits) -> np.ndarray:
    """Exact Poisson counts by inversion; where 64 bits leave it open, further bits decide."""
    thresholds, words = _thresholds(rate), bits.words(size)
    counts = np.searchsorted(thresholds, words, side="right")
    at = np.minimum(np.searchsorted(thresholds, words, side="left"), thresholds.size - 1)
    for index in np.flatnonzero(thresholds[at] == words):
        counts[index] = _poisson_exactly(LazyUniform(bits, int(words[index]), 64), lambda _: (rate, rate))
    return counts


def _poisson_exactly(uniform: LazyUniform, rate: Callable[[int], Enclosure]) -> int:
    n = 0
    while not bernoulli(uniform, lambda length, n=n: _poisson_cdf(*rate(length), n, length // 3 + 20)):
        n += 1
    return n


def _jumps(scale: float, blocks: int, size: int, bits: Bits) -> np.ndarray:
    """Signed jumps below 2^blocks, zero where the proposal was not kept."""
    block = bits.below(blocks, size) if blocks > 1 else np.zeros(size, dtype=np.int64)
    words, uniform = bits.words(size), bits.words(size)
    start = np.int64(1) << block
    jump = start | (words.view(np.int64) & (start - 1))
    chance = start / jump * np.exp(-(jump / scale))
    guess = uniform * 2.0**-64
    kept = guess < chance
    for index in np.flatnonzero(np.abs(guess - chance) <= GUARD * chance + 2.0**-60):
        kept[index] = _kept_exactly(int(start[index]), int(jump[index]), Fraction(scale), int(uniform[index]), bits)
    return np.where(kept, np.where(words >> np.uint64(63) == 1, jump, -jump), 0)


def _kept_exactly(start: int, jump: int, scale: Fraction, known: int, bits: Bits) -> bool:
    def chance(length: int) -> Enclosure:
        low, high = exp_enclosure(-jump / scale, -jump / scale, length // 3 + 20)
        return low * start / jump, high * start / jump

    return bernoulli(LazyUniform(bits, known, 64), chance)


def _add_tail(noise: np.ndarray, scale: Fraction, parts: int, start: int, bits: Bits) -> None:
    """Jumps of `start` and more: start + a geometric number, proposed for all draws together and thinned by start/j."""

    def rate(length: int) -> Enclosure:
        digits = length // 3 + 20
        top_low, top_high = exp_enclosure(-start / scale, -start / scale, digits)
        step_low, step_high = exp_enclosure(-1 / scale, -1 / scale, digits + 20)
        share = Fraction(2 * noise.size, parts * start)
        return share * top_low / (1 - step_low), share * top_high / (1 - step_high)

    for _ in range(_poisson_exactly(LazyUniform(bits), rate)):
        jump = start + _geometric(scale, bits)
        place = int(bits.below(noise.size, 1)[0]) if noise.size > 1 else 0
        sign = 1 if bits.integer(1) else -1
        if bernoulli(LazyUniform(bits), lambda _, jump=jump: (Fraction(start, jump), Fraction(start, jump))):
            noise[place] += sign * jump


def _geometric(scale: Fraction, bits: Bits) -> int:
    """P(G >= g) = exp(-g/scale): the whole part of an exponential variable times the scale."""
    whole, rest = exponential(bits)
    length = 64
    while True:
        low, high = rest.enclosure(length)
        below, above = math.floor(scale * (whole + low)), math.ceil(scale * (whole + high)) - 1
        if below == above:
            return below
        length *= 2
