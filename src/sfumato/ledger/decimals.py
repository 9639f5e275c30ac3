"""Numbers of a ledger: exact, or rounded against us.

In:   floats, read as the decimals they are written as.
Out:  decimals, and floats rounded up, down or to a few digits.
Not here: what is added up (ledger/balance.py).
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal, localcontext

__all__ = ["PRECISION", "exact", "floored", "root_up", "rounded", "rounded_down", "rounded_up"]

#: Digits of a sum: enough for every sum and square of floats to be exact.
PRECISION = 400


def exact(value: float) -> Decimal:
    """The decimal that a float is written as."""
    return Decimal(repr(float(value)))


def rounded_up(value: Decimal) -> float:
    """The least float that is not below."""
    near = float(value)
    return math.nextafter(near, math.inf) if exact(near) < value else near


def rounded_down(value: Decimal) -> float:
    """The largest float that is not above."""
    near = float(value)
    return math.nextafter(near, -math.inf) if exact(near) > value else near


def root_up(square: Decimal) -> float:
    """√square rounded up: the root of a square is what was squared."""
    with localcontext() as context:
        context.prec = PRECISION
        near = float(context.sqrt(square))
        while exact(near) ** 2 < square:
            near = math.nextafter(near, math.inf)
    return near


def rounded(value: float, digits: int, rounding: str) -> Decimal:
    """A few digits of a number."""
    return Context(prec=digits, rounding=rounding).create_decimal(repr(value))


def floored(value: Decimal, digits: int) -> float:
    """A few digits of a number, rounded down."""
    return float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(value))
