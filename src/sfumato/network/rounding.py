"""How far a computed value can lie from the exact one.

In:   an expression, the public ranges of what it refers to, how far those values are from exact themselves.
Out:  a bound on |computed - exact| over the whole ranges.
Not here: enclosures of the exact value and its slopes (network/expression.py).
Proof: docs/proofs/cut_placement.md

A bound by derivatives speaks about real numbers. A computer evaluates ((x + 8191.5) + 10^20) - 10^20 in steps of 16384,
so two values of x a tenth apart can come out 16384 apart. This is a running error analysis (Higham 2002, §3.3): every
operation adds the unit in the last place of the largest value it can have, library functions eight of them, and passes
on the errors of its arguments times its slopes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sfumato.network.bounds import Bounds
from sfumato.network.expression import Call, Constant, Distribution, Expression, Lookup, Power, Ranges, Reference
from sfumato.network.functions import FUNCTIONS

__all__ = ["rounding"]

#: Units in the last place; a call that is not listed is taken for a library function.
_LIBRARY = 8.0
#: The same for distribution functions, whose libraries promise less.
_LAWS = {"normal_below": 4096.0, "poisson_at_least": 4096.0}
_EXACT = frozenset(("negate", "abs", "max", "min", "clip"))
#: The bounds are added up in floating point themselves.
_OUTWARDS = 1 + 1e-9


def _power(expression: Power, ranges: Ranges, error: float) -> float:
    inner, exponent = expression.base.interval(ranges), expression.exponent
    steepness = Bounds.point(exponent) * inner.power(exponent - 1) if exponent else Bounds(0.0, 0.0)
    own = _LIBRARY * _unit(expression.interval(ranges))
    return _OUTWARDS * (own + _passed([steepness], [error]))


def rounding(expression: Expression, ranges: Ranges, errors: Mapping[str, float]) -> float:
    """A bound on |computed - exact|; references are off by at most `errors`, those not listed are exact.

    >>> x = Reference("x")
    >>> absorbed = (x + Constant(1e20)) - Constant(1e20)
    >>> rounding(x, {"x": Bounds(0, 1)}, {}), rounding(absorbed, {"x": Bounds(0, 1)}, {}) > 8192
    (0.0, True)
    >>> rounding(x * Constant(2.0), {"x": Bounds(0, 1)}, {}) < 1e-15
    True
    """
    match expression:
        case Constant():
            return 0.0
        case Reference(variable=name):
            return errors.get(name, 0.0)
        case Distribution():
            return rounding(expression.expectation(), ranges, errors)
        case Power(base=base):
            return _power(expression, ranges, rounding(base, ranges, errors))
        case Call(arguments=arguments):
            return _call(expression, ranges, [rounding(part, ranges, errors) for part in arguments])
        case Lookup(parents=parents, rows=rows):
            # A parent that is not exactly what it should be may choose another row.
            if any(map(errors.get, parents)):
                return math.inf
            return max((rounding(part, ranges, errors) for _, part in rows), default=0.0)
    return math.inf  # indicators jump, and points have no proved slope


def _call(call: Call, ranges: Ranges, errors: Sequence[float]) -> float:
    function = FUNCTIONS[call.function]
    bounds = [part.interval(ranges) for part in call.arguments]
    if function.selects:
        return max(errors)  # the largest of several numbers moves no further than one of them
    own = 0.0
    match call.function:
        case "+" | "-" | "*" | "/":
            own = _unit(function.bounds(bounds))
        case "sum" | "mean":
            # Partial sums are no larger than the sum of all magnitudes.
            own = (len(bounds) + 1) * _unit(_magnitudes(bounds))
        case name if name not in _EXACT:
            own = _LAWS.get(name, _LIBRARY) * _unit(function.bounds(bounds))
    return _OUTWARDS * (own + _passed(function.slopes(bounds), errors))


def _magnitudes(bounds: Sequence[Bounds]) -> Bounds:
    total = Bounds(0.0, 0.0)
    for part in bounds:
        total = total + (Bounds(0.0, part.magnitude) if part.bounded else part)
    return total


def _passed(slopes: Sequence[Bounds], errors: Sequence[float]) -> float:
    """What errors of the arguments do to the value; an exact argument adds nothing, however steep it is there."""
    return math.fsum(slope.magnitude * error for slope, error in zip(slopes, errors, strict=True) if error > 0)


def _unit(bounds: Bounds) -> float:
    return math.ulp(bounds.magnitude) if bounds.bounded else math.inf
