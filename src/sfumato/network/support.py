"""Where the value of a random variable can lie, whatever is drawn.

In:   a law, the public ranges of its parameters.
Out:  Bounds: of the values themselves, not of their mean.
Not here: bounds of expectations (network/inference.py).
"""

from __future__ import annotations

import math

from sfumato.network.bounds import Bounds, hull
from sfumato.network.expression import Distribution, Expression, Lookup, Ranges

__all__ = ["support_of"]

_WAY_OUT = "has no largest value: write clip(X, Low, High) of it, or declare its range"


def support_of(law: Expression, ranges: Ranges) -> Bounds:
    """The values a draw can have.

    >>> from sfumato.network.expression import Constant
    >>> support_of(Distribution("bernoulli", (Constant(0.3),)), {})
    Bounds(low=0.0, high=1.0)
    """
    if isinstance(law, Lookup):
        return hull(support_of(part, ranges) for _, part in law.rows)
    if not isinstance(law, Distribution):
        return law.interval(ranges)
    return _support_of_kind(law, ranges)


def _support_of_kind(law: Distribution, ranges: Ranges) -> Bounds:
    match law.kind:
        case "bernoulli":
            return Bounds(0.0, 1.0)
        case "poisson" | "exponential":
            return Bounds(0.0, math.inf, f"a {law.kind} variable {_WAY_OUT}")
        case "normal":
            return Bounds.unbounded(f"a normal variable {_WAY_OUT}")
        case "uniform":
            return hull(part.interval(ranges) for part in law.arguments)
    if law.categorical:
        return Bounds.unbounded("a category is not a number")
    return hull(Bounds.point(float(level)) for level in law.levels)
