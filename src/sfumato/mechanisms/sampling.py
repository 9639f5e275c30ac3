"""Gaussian and Laplace noise on a grid: exact, from cryptographic bits, at table speed.

In:   a law, its scale in half cells of the grid, a number of draws.
Out:  whole numbers k: the nearest grid point to a real variable that has exactly the continuous law.
Not here: bits (bits.py), the exact slow path (exact.py), what the noise is added to (additive.py).
Proof: docs/proofs/sampling.md

One side of the density is cut into bins of 2^w half cells. A 16-bit slot picks a bin with probability count/2^16,
further bits pick the place in the bin, and the draw is accepted with probability density/(unit·count). All of that is
integer arithmetic except the density, which is only looked at when 16 bits of the acceptance number leave it open
(about 2 %), and then with a guard around the floating-point value inside which `exact.py` decides. The output is
therefore the rounding of an exact continuous variable: post-processing, so every guarantee of the continuous law holds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.errors import InputError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.exact import Enclosure, LazyUniform, bernoulli, exp_enclosure, exponential
from sfumato.mechanisms.grid_law import Law, grid_law
from sfumato.mechanisms.laws.law import GridLaw

__all__ = ["LARGEST_SCALE", "SMALLEST_SCALE", "RealDraws", "draw", "draw_reals"]

SLOTS = 1 << 16
CHUNK = 1 << 16
#: Relative width around a computed acceptance probability inside which the exact path decides.
#: The computed value is within 2^-44 (proof note); 2^-40 leaves a factor of 16.
GUARD = 2.0**-40
#: Scales are counted in half cells. Up to 2^35 one 64-bit word serves a draw, beyond it a second one.
SMALLEST_SCALE = 64.0
LARGEST_SCALE = 2.0**48


@dataclass(frozen=True)
class Table:
    """The bins of one law at one scale; see the module text."""

    law: GridLaw
    scale: float
    width_bits: int
    bins: int
    unit: float
    bin_of_slot: np.ndarray = field(repr=False)
    count: np.ndarray = field(repr=False)
    fast: np.ndarray = field(repr=False)
    tail_limit: int = 0

    @property
    def start_of_tail(self) -> int:
        return self.bins << self.width_bits

    @property
    def tail_decay(self) -> Fraction:
        return self.law.tail_decay(Fraction(self.scale), self.start_of_tail)

    @property
    def tail_room(self) -> Fraction:
        """Area of the one slot that stands for the tail."""
        return Fraction(self.unit) * (1 << self.width_bits)

    def exponent(self, low: Fraction, high: Fraction) -> Enclosure:
        """Bounds of ln density on [low, high] half cells."""
        scale = Fraction(self.scale)
        return self.law.exponent(low / scale, high / scale)


@lru_cache(maxsize=64)
def table_for(name: Law, scale: float) -> Table:
    """The table of a law. `scale` is in half cells; only its value matters, never the data."""
    law = grid_law(name)
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise InputError(
            f"The noise must span between {SMALLEST_SCALE:g} and {LARGEST_SCALE:g} half cells of its grid."
        )
    width_bits = math.floor(math.log2(scale)) - 5
    width = float(1 << width_bits)
    bins = math.ceil(law.tail_at * scale / width)
    edges = np.exp(law.log_density(np.arange(bins + 1) * (width / scale)))
    # Slightly above the density at the left edge, so that no bin is too low; every count is rounded up.
    heights = edges[:-1] * (1 + GUARD)
    unit = float(heights.sum()) / (SLOTS - bins - 2)
    count = np.ceil(heights / unit).astype(np.int64)
    spare = SLOTS - 1 - int(count.sum())
    if spare < 0:  # cannot happen: Σ ceil(h/unit) <= Σ h/unit + bins = SLOTS - 2
        raise InputError("The sampling table does not fit.")
    order = np.concatenate([np.repeat(np.arange(bins), count), [bins], np.full(spare, bins + 1)])
    sure = np.floor(SLOTS * edges[1:] * (1 - GUARD) / (unit * count))
    fast = np.concatenate([np.minimum(sure, SLOTS), [0, 0]]).astype(np.uint32)
    table = Table(law, scale, width_bits, bins, unit, order.astype(np.uint16), count, fast)
    share = edges[-1] * float(table.tail_decay / table.tail_room) * (1 + GUARD)
    if share >= 1:
        raise InputError("The sampling table does not cover its tail.")
    return dataclasses.replace(table, tail_limit=math.ceil(SLOTS * share))


@dataclass
class RealDraws:
    """Reals of the exact law, in half cells: known to 2^-64 in the arrays and to any precision by `enclosure`."""

    whole: np.ndarray
    fraction: np.ndarray
    negative: np.ndarray
    _bits: Bits
    _lazy: dict[int, LazyReal]

    def approximate(self) -> np.ndarray:
        """The reals as float64, each within a relative 2^-51."""
        magnitude = self.whole.astype(np.float64) + self.fraction.astype(np.float64) * 2.0**-64
        return np.where(self.negative, -magnitude, magnitude)

    def enclosure(self, index: int, length: int) -> Enclosure:
        """The magnitude to within 2^-length half cells, drawing further bits if need be."""
        if index not in self._lazy:
            start = int(self.whole[index])
            uniform = LazyUniform(self._bits, int(self.fraction[index]), 64)
            self._lazy[index] = _shifted(start, uniform)
        return self._lazy[index](length)


LazyReal = Callable[[int], Enclosure]


def _shifted(start: int, uniform: LazyUniform) -> LazyReal:
    def enclosure(length: int) -> Enclosure:
        low, high = uniform.enclosure(length)
        return start + low, start + high

    return enclosure


def draw(law: Law, scale: float, size: int, bits: Bits) -> np.ndarray:
    """`size` grid points (int64): each the nearest grid point to a real variable of the exact law.

    >>> noise = draw("gaussian", 2.0**20, 10_000, Bits(seed=1))
    >>> bool(abs(noise.std() / 2**19 - 1) < 0.03)
    True
    """
    table = table_for(law, scale)
    result = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        piece = result[start : start + CHUNK]
        chunk = _Chunk(table, piece.size, bits)
        _nearest_cells(chunk.whole, chunk.sign, piece)
    return result


def draw_reals(law: Law, scale: float, size: int, bits: Bits) -> RealDraws:
    """The reals behind `draw`, magnitudes with 64 bits below the half cell."""
    chunk = _Chunk(table_for(law, scale), size, bits, fraction=bits.words(size))
    assert chunk.fraction is not None
    return RealDraws(chunk.whole, chunk.fraction, chunk.sign < 0, bits, chunk.lazy)


def _nearest_cells(whole: np.ndarray, sign: np.ndarray, out: np.ndarray) -> None:
    """Nearest grid point of ±(whole + fraction) half cells, for a fraction in (0, 1); `sign` is 0 or -1."""
    np.add(whole, 1, out=out)
    np.right_shift(out, 1, out=out)
    np.bitwise_xor(out, sign, out=out)
    np.subtract(out, sign, out=out)


class _Chunk:
    """One batch of draws, all accepted: whole half cells, signs, and what the slow path had to look at."""

    def __init__(self, table: Table, size: int, bits: Bits, fraction: np.ndarray | None = None) -> None:
        self.table, self.bits, self.fraction = table, bits, fraction
        self.lazy: dict[int, LazyReal] = {}
        words = bits.words(size)
        quarters = words.view(np.uint16).reshape(size, 4)
        signed = words.view(np.int32).reshape(size, 2)[:, 1]
        self.bin = table.bin_of_slot.take(quarters[:, 0])
        self.uniform = quarters[:, 1]
        self.sign = signed >> np.int32(31)
        self.whole = self.bin.astype(np.int64)
        self.whole <<= table.width_bits
        if table.width_bits <= 30:
            self.whole |= signed & np.int32((1 << table.width_bits) - 1)
        else:
            self.whole |= (bits.words(size) >> np.uint64(64 - table.width_bits)).astype(np.int64)
        open_cases = np.flatnonzero(self.uniform >= table.fast.take(self.bin))
        if open_cases.size:
            self._replace(open_cases[~self._accept(open_cases)])

    def _accept(self, index: np.ndarray) -> np.ndarray:
        """Settle the cases that the first 16 bits left open; True where the draw stands."""
        table, inside = self.table, self.bin[index] < self.table.bins
        accepted = np.zeros(index.size, dtype=bool)
        accepted[inside] = self._accept_in_bins(index[inside])
        in_tail = (self.bin[index] == table.bins) & (self.uniform[index] <= table.tail_limit)
        for position in np.flatnonzero(in_tail):
            accepted[position] = self._accept_in_tail(int(index[position]))
        return accepted

    def _accept_in_bins(self, index: np.ndarray) -> np.ndarray:
        table = self.table
        lower = self.bits.words(index.size)
        fraction = self.bits.words(index.size) if self.fraction is None else self.fraction[index]
        uniform = (self.uniform[index].astype(np.float64) + lower.astype(np.float64) * 2.0**-64) / SLOTS
        place = (self.whole[index].astype(np.float64) + fraction.astype(np.float64) * 2.0**-64) / table.scale
        height = np.exp(table.law.log_density(place)) / (table.unit * table.count[self.bin[index]])
        accepted = uniform < height
        for position in np.flatnonzero(np.abs(uniform - height) <= GUARD * height):
            number = int(index[position])
            accepted[position] = self._accept_exactly(number, int(lower[position]), int(fraction[position]))
        return accepted

    def _accept_exactly(self, number: int, lower: int, fraction: int) -> bool:
        """The same question for one draw, answered for certain."""
        table = self.table
        real = _shifted(int(self.whole[number]), LazyUniform(self.bits, fraction, 64))
        room = Fraction(table.unit) * int(table.count[int(self.bin[number])])

        def probability(length: int) -> Enclosure:
            low, high = exp_enclosure(*table.exponent(*real(length)), length // 3 + 12)
            return low / room, high / room

        self.lazy[number] = real
        return bernoulli(LazyUniform(self.bits, (int(self.uniform[number]) << 64) | lower, 80), probability)

    def _accept_in_tail(self, number: int) -> bool:
        """Beyond the bins: T plus an exponential variable, thinned to the density (Marsaglia 1964)."""
        table, start, decay = self.table, self.table.start_of_tail, self.table.tail_decay
        steps, rest = exponential(self.bits)

        def real(length: int) -> Enclosure:
            low, high = rest.enclosure(length + decay.numerator.bit_length())
            return start + (steps + low) * decay, start + (steps + high) * decay

        def probability(length: int) -> Enclosure:
            low, high = real(length)
            below, above = table.exponent(low, high)
            # density / (exp(-(x-T)/decay) · room/decay): what is left of it after the exponential proposal.
            low, high = exp_enclosure(below + (low - start) / decay, above + (high - start) / decay, length // 3 + 12)
            return low * decay / table.tail_room, high * decay / table.tail_room

        if not bernoulli(LazyUniform(self.bits, int(self.uniform[number]), 16), probability):
            return False
        self._store(number, real)
        return True

    def _store(self, number: int, real: LazyReal) -> None:
        length = 80
        while (low := real(length)[0].__floor__()) != real(length)[1].__floor__():
            length *= 2
        self.whole[number] = low
        self.lazy[number] = real
        if self.fraction is not None:
            self.fraction[number] = ((real(length)[0] - low) * (1 << 64)).__floor__()

    def _replace(self, rejected: np.ndarray) -> None:
        """Draw afresh where the proposal fell: a rejected draw leaves no trace."""
        if not rejected.size:
            return
        if self.lazy:
            for number in rejected.tolist():
                self.lazy.pop(number, None)
        fraction = None if self.fraction is None else self.bits.words(rejected.size)
        fresh = _Chunk(self.table, rejected.size, self.bits, fraction)
        self.whole[rejected], self.sign[rejected] = fresh.whole, fresh.sign
        if self.fraction is not None:
            self.fraction[rejected] = fresh.fraction
        self.lazy.update({int(rejected[number]): real for number, real in fresh.lazy.items()})
