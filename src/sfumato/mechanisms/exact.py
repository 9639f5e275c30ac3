"""Decisions about random reals that must be exact: the slow path behind every floating-point shortcut.

In:   random reals known to some bits, more on demand; exponentials of rationals.
Out:  comparisons that are certain.
Not here: the fast path (mechanisms/sampling.py).
Proof: docs/proofs/sampling.md

Python's decimal `exp` is correctly rounded, so one unit in the last place either side is a rigorous enclosure.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from sfumato.mechanisms.bits import Bits

__all__ = ["Enclosure", "LazyUniform", "bernoulli", "exp_enclosure", "exponential"]

Enclosure = tuple[Fraction, Fraction]


class LazyUniform:
    """A uniform real in [0, 1) of which only the bits asked for have been drawn."""

    def __init__(self, bits: Bits, known: int = 0, length: int = 0) -> None:
        self._bits, self._known, self._length = bits, known, length

    def enclosure(self, length: int) -> Enclosure:
        """The real to within 2^-length, drawing what is missing."""
        if length > self._length:
            missing = -(-(length - self._length) // 64) * 64
            self._known = (self._known << missing) | self._bits.integer(missing)
            self._length += missing
        low = Fraction(self._known, 1 << self._length)
        return low, low + Fraction(1, 1 << self._length)


def _to_decimal(value: Fraction, rounding: str, digits: int) -> Decimal:
    context = Context(prec=digits, rounding=rounding)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp_enclosure(low: Fraction, high: Fraction, digits: int) -> Enclosure:
    """Rationals below exp(low) and above exp(high)."""
    context = Context(prec=digits)
    below = context.exp(_to_decimal(low, ROUND_FLOOR, digits)).next_minus(context)
    above = context.exp(_to_decimal(high, ROUND_CEILING, digits)).next_plus(context)
    return max(Fraction(0), Fraction(below)), Fraction(above)


def bernoulli(uniform: LazyUniform, probability: Callable[[int], Enclosure]) -> bool:
    """Whether `uniform` lies below a probability that `probability(bits)` encloses ever more tightly.

    Ends with probability 1, since each round leaves an undecided sliver of at most 2^-bits or so.
    """
    length = 64
    while True:
        low, high = uniform.enclosure(length)
        below, above = probability(length)
        if high <= below:
            return True
        if low >= above:
            return False
        length *= 2


def exponential(bits: Bits) -> tuple[int, LazyUniform]:
    """A standard exponential variable as its whole and its fractional part, exactly.

    The whole part counts successes of probability 1/e; the fractional part has density ∝ exp(-f) on [0, 1).
    """

    def inverse_e(length: int) -> Enclosure:
        return exp_enclosure(Fraction(-1), Fraction(-1), length // 3 + 10)

    whole = 0
    while bernoulli(LazyUniform(bits), inverse_e):
        whole += 1
    while True:
        fraction = LazyUniform(bits)

        def accept(length: int, fraction: LazyUniform = fraction) -> Enclosure:
            low, high = fraction.enclosure(length)
            return exp_enclosure(-high, -low, length // 3 + 10)

        if bernoulli(LazyUniform(bits), accept):
            return whole, fraction
