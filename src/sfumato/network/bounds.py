"""Interval arithmetic that never rounds inwards.

In:   the public ranges of variables.
Out:  Bounds that hold the true value of an expression and the one a computer computes for it.
Not here: expressions (network/expression.py), which functions there are (network/functions.py).

Sums, products and quotients are bounded in exact rational arithmetic and then rounded outwards by at most one step.
exp, log, tan and tanh of the usual C libraries are wrong by at most two units in the last place, those of numpy by
four: their bounds are moved outwards by eight. What cannot be bounded is infinite and keeps the reason for a later
error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.text import AnyText

__all__ = ["Bounds", "as_bounds", "hull"]

#: Multiplying by these rounds nothing; sums below this overflow nowhere on the way.
_EXACT_FACTORS = (0.0, 1.0, -1.0)
_FAR_FROM_OVERFLOW = 1e300
_LARGEST = math.nextafter(math.inf, 0.0)
_LIBRARY_STEPS = 8
#: Beyond this the reduction of an angle modulo π loses the digits that tell on which side of a pole it lies.
_LARGEST_ANGLE = 1e6


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """All numbers from `low` to `high`; either may be infinite, and then `reason` says why.

    >>> Bounds(1, 2) * Bounds(-3, 4)
    Bounds(low=-6.0, high=8.0)
    >>> (Bounds.point(0.1) + Bounds.point(0.2)).high > 0.3
    True
    """

    low: float
    high: float
    reason: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", float(self.low) + 0.0)
        object.__setattr__(self, "high", float(self.high) + 0.0)
        if not self.low <= self.high:
            raise ValueError("Bounds: low must not exceed high.")
        if self.bounded:
            object.__setattr__(self, "reason", None)
        elif self.reason is None:
            object.__setattr__(self, "reason", "a value can be too large for a number")

    @classmethod
    def point(cls, value: float) -> Bounds:
        """One number; an integer too large for a float is enclosed."""
        exact = Fraction(value)
        return cls(_down(exact), _up(exact))

    @classmethod
    def unbounded(cls, reason: str) -> Bounds:
        """Any number."""
        return cls(-math.inf, math.inf, reason)

    @property
    def bounded(self) -> bool:
        """Both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def width(self) -> float:
        """high - low, rounded up: how far a value can move."""
        return (self + -Bounds(self.low, self.low)).high if self.bounded else math.inf

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_zero(self) -> bool:
        """Nothing but zero."""
        return self.low == 0.0 == self.high

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def interval(self) -> Interval | None:
        """As a public domain, or None when unbounded. One number becomes the smallest interval that holds it."""
        if not self.bounded or not math.isfinite(self.high - self.low):
            return None
        return Interval(self.low, self.high if self.low < self.high else math.nextafter(self.high, math.inf))

    def __neg__(self) -> Bounds:
        return self._lost() or Bounds(-self.high, -self.low)

    def __add__(self, other: Bounds) -> Bounds:
        if lost := self._lost() or other._lost():
            return lost
        return Bounds(_sum_below(self.low, other.low), -_sum_below(-self.high, -other.high))

    def __sub__(self, other: Bounds) -> Bounds:
        return self + -other

    def __mul__(self, other: Bounds) -> Bounds:
        if lost := self._lost() or other._lost():
            return lost
        if self.low >= 0 <= other.low:
            return Bounds(_product_below(self.low, other.low), -_product_below(-self.high, other.high))
        return self._over_ends(other, lambda a, b: a * b, _product_below)

    def reciprocal(self) -> Bounds:
        """1/x; unbounded when x can be zero."""
        return Bounds(1.0, 1.0) / self

    def __truediv__(self, other: Bounds) -> Bounds:
        if lost := self._lost() or other._lost():
            return lost
        if 0.0 in other:
            return Bounds.unbounded("a denominator can be zero")
        return self._over_ends(other, lambda a, b: a / b, _quotient_below)

    def _over_ends(
        self, other: Bounds, near: Callable[[float, float], float], below: Callable[[float, float], float]
    ) -> Bounds:
        """The least and the largest over the ends. Rounding to nearest keeps the order: only what is nearest to the
        least or the largest is computed exactly, which takes ten times as long."""
        ends = [(near(a, b), a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        least, largest = min(ends)[0], max(ends)[0]
        return Bounds(
            min(below(a, b) for value, a, b in ends if value == least),
            max(-below(-a, b) for value, a, b in ends if value == largest),
        )

    def power(self, exponent: int) -> Bounds:
        """x multiplied with itself `exponent` times; negative exponents through 1/x."""
        if exponent < 0:
            return self.power(-exponent).reciprocal()
        if lost := self._lost():
            return lost
        base = self.absolute() if exponent % 2 == 0 else self
        return Bounds(_down(Fraction(base.low) ** exponent), _up(Fraction(base.high) ** exponent))

    def absolute(self) -> Bounds:
        """|x|"""
        low = 0.0 if 0.0 in self else min(abs(self.low), abs(self.high))
        return self._lost() or Bounds(low, self.magnitude)

    def exp(self) -> Bounds:
        """e^x"""
        found = self._lost() or self._increasing(_exp, floor=0.0)
        return found if found.bounded else Bounds.unbounded(self.reason or "an exponential can be too large")

    def log(self) -> Bounds:
        """The natural logarithm; unbounded when x can be zero or less."""
        if self.low <= 0.0 and self.bounded:
            return Bounds.unbounded("a logarithm of a value that can be zero or less")
        return self._lost() or self._increasing(math.log)

    def sqrt(self) -> Bounds:
        """The square root; unbounded when x can be negative."""
        if self.low < 0.0 and self.bounded:
            return Bounds.unbounded("a square root of a value that can be negative")
        return self._lost() or self._increasing(math.sqrt, floor=0.0)

    def tanh(self) -> Bounds:
        """The hyperbolic tangent."""
        return self._lost() or self._increasing(math.tanh, floor=-1.0, ceiling=1.0)

    def tan(self) -> Bounds:
        """The tangent; unbounded when a pole can be reached."""
        if self.bounded and (self.magnitude > _LARGEST_ANGLE or _may_hold_a_pole(self.low, self.high)):
            return Bounds.unbounded("a tangent whose argument can reach a pole (π/2 + kπ)")
        return self._lost() or self._increasing(math.tan)

    def _lost(self) -> Bounds | None:
        """What is unbounded may be no number at all (0/0, a logarithm of -1): what is computed from it is lost too."""
        return None if self.bounded else Bounds.unbounded(self.reason or "a value can be too large for a number")

    def intersect(self, low: float, high: float) -> Bounds:
        """What of these bounds lies between `low` and `high`; the nearer end when nothing does."""
        return Bounds(min(max(self.low, low), high), max(min(self.high, high), low), self.reason)

    def _increasing(
        self, function: Callable[[float], float], floor: float = -math.inf, ceiling: float = math.inf
    ) -> Bounds:
        low = max(_outwards(function(self.low), -math.inf), floor)
        return Bounds(low, min(_outwards(function(self.high), math.inf), ceiling))


def hull(parts: Iterable[Bounds]) -> Bounds:
    """The smallest bounds that hold all of `parts`.

    >>> hull([Bounds(0, 1), Bounds(3, 4)])
    Bounds(low=0.0, high=4.0)
    """
    found = list(parts)
    reason = next((part.reason for part in found if part.reason), None)
    return Bounds(min(part.low for part in found), max(part.high for part in found), reason)


def as_bounds(domain: Domain | AnyText | Bounds | None) -> Bounds:
    """A public domain as numbers; categories that are words have none.

    >>> as_bounds(Categories((0, 1, 3)))
    Bounds(low=0.0, high=3.0)
    """
    match domain:
        case Bounds():
            return domain
        case Interval(low=low, high=high):
            return Bounds(low, high)
        case Categories(values=values) if not isinstance(values[0], str):
            return hull(Bounds.point(int(value)) for value in values)
        case Categories():
            return Bounds.unbounded("a category is not a number")
        case AnyText():
            return Bounds.unbounded("a text is not a number")
    return Bounds.unbounded("no range is declared")


def _down(exact: Fraction) -> float:
    """The largest float that is not above."""
    try:
        near = float(exact)
    except OverflowError:
        return -math.inf if exact < 0 else _LARGEST
    return math.nextafter(near, -math.inf) if Fraction(near) > exact else near


def _sum_below(a: float, b: float) -> float:
    """The largest float that is not above a + b."""
    near = a + b
    if abs(near) < _FAR_FROM_OVERFLOW:  # Knuth's TwoSum: what rounding took is itself a float
        taken = near - a
        lost = (a - (near - taken)) + (b - taken)
        return math.nextafter(near, -math.inf) if lost < 0 else near
    (over_a, under_a), (over_b, under_b) = a.as_integer_ratio(), b.as_integer_ratio()
    return _below(near, over_a * under_b + over_b * under_a, under_a * under_b)


def _product_below(a: float, b: float) -> float:
    if a in _EXACT_FACTORS or b in _EXACT_FACTORS:
        return a * b
    (over_a, under_a), (over_b, under_b) = a.as_integer_ratio(), b.as_integer_ratio()
    return _below(a * b, over_a * over_b, under_a * under_b)


def _quotient_below(a: float, b: float) -> float:
    (over_a, under_a), (over_b, under_b) = a.as_integer_ratio(), abs(b).as_integer_ratio()
    return _below(a / b, (over_a if b > 0 else -over_a) * under_b, under_a * over_b)


def _below(near: float, over: int, under: int) -> float:
    """The largest float that is not above over/under, which `near` is to the nearest float; whole numbers, exact."""
    if math.isinf(near):
        return _LARGEST if near > 0 else near
    over_near, under_near = near.as_integer_ratio()
    return math.nextafter(near, -math.inf) if over_near * under > over * under_near else near


def _up(exact: Fraction) -> float:
    return -_down(-exact)


def _outwards(value: float, towards: float) -> float:
    for _ in range(_LIBRARY_STEPS):
        value = math.nextafter(value, towards)
    return value


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _may_hold_a_pole(low: float, high: float) -> bool:
    # The margin is far above the error of the division for angles below _LARGEST_ANGLE.
    margin = 1e-9
    return math.floor((low - margin) / math.pi - 0.5) != math.floor((high + margin) / math.pi - 0.5)
