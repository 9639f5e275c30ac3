"""Sums, products and powers of expressions, with numbers folded.

In:   expressions.
Out:  expressions of the same value, smaller where a zero, a one or two constants meet.
Not here: what they are used for (network/moments.py, network/discrete.py, network/inference.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.network.bounds import Bounds
from sfumato.network.expression import Call, Constant, Expression, Power, Ranges

__all__ = [
    "MINUS_ONE",
    "ONE",
    "ZERO",
    "folded",
    "minus",
    "plus",
    "power",
    "quotient",
    "size_of",
    "times",
    "total",
    "within",
]

#: Far above the outward rounding of an enclosure, far below anything that matters.
_SLACK = 1e-13
ZERO, ONE, MINUS_ONE = Constant(0.0), Constant(1.0), Constant(-1.0)


def folded(expression: Expression) -> Expression:
    """A number where nothing is referred to."""
    if isinstance(expression, Constant) or expression.references():
        return expression
    return Constant(float(expression.evaluate({})))


def plus(a: Expression, b: Expression) -> Expression:
    """a + b, constants added up."""
    if isinstance(a, Constant) and isinstance(b, Constant):
        return Constant(a.value + b.value)
    return b if a == ZERO else a if b == ZERO else a + b


def minus(a: Expression, b: Expression) -> Expression:
    """a - b, constants subtracted."""
    return plus(a, times(MINUS_ONE, b))


def times(a: Expression, b: Expression) -> Expression:
    """>>> print(times(Constant(1.0), times(Constant(2.0), Constant(3.0))))
    6
    """
    if isinstance(a, Constant) and isinstance(b, Constant):
        return Constant(a.value * b.value)
    if ZERO in (a, b):
        return ZERO
    return b if a == ONE else a if b == ONE else a * b


def quotient(a: Expression, b: Expression) -> Expression:
    """a / b, constants divided."""
    if isinstance(a, Constant) and isinstance(b, Constant) and b.value != 0.0:
        return Constant(a.value / b.value)
    return a if b == ONE else a / b


def power(base: Expression, exponent: int) -> Expression:
    """A whole power of an expression."""
    if exponent == 0:
        return ONE
    return folded(Power(base, exponent)) if exponent > 1 else base


def total(parts: Iterable[Expression]) -> Expression:
    """The sum of all; flat, however many they are."""
    constant, others = 0.0, []
    for part in parts:
        if isinstance(part, Constant):
            constant += part.value
        else:
            others.append(part)
    if not others:
        return Constant(constant)
    listed = others if constant == 0.0 else [*others, Constant(constant)]
    return listed[0] if len(listed) == 1 else Call("sum", tuple(listed))


def within(expression: Expression, bounds: Bounds, ranges: Ranges) -> Expression:
    """The expression, clipped to bounds its true value keeps, where its own enclosure does not show that it does.

    An enclosure that exceeds the bounds by nothing but its outward rounding is as good: it is then what bounds the
    value.
    """
    if not bounds.bounded:
        return expression
    own, slack = expression.interval(ranges), _SLACK * max(bounds.magnitude, bounds.width)
    if own.bounded and bounds.low - slack <= own.low and own.high <= bounds.high + slack:
        return expression
    return Call("clip", (expression, Constant(bounds.low), Constant(bounds.high)))


def size_of(expression: Expression, known: dict[int, int] | None = None) -> int:
    """How many parts an evaluation walks through; a part that is shared counts each time."""
    seen: dict[int, int] = {} if known is None else known
    if id(expression) not in seen:
        seen[id(expression)] = 1 + sum(size_of(part, seen) for part in expression.parts())
    return seen[id(expression)]
