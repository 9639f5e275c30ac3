"""The functions an expression may call: how each is computed, bounded, differentiated and written in SQL.

In:   a name as it stands in a study file.
Out:  Function, one record per name, all that expressions know about it.
Not here: trees of calls (network/expression.py), interval arithmetic itself (network/bounds.py).

Both ways of computing are total (IEEE 754): where a number has no logarithm, numpy and DuckDB both give NaN and neither
stops, because a failure that depends on a private cell would publish it. NaN counts as larger than every number, in
DuckDB as here: a minimum and a clip of it give the other argument and the upper end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.network.bounds import Bounds, hull

__all__ = ["FUNCTIONS", "INFERRED", "Function", "sql_number"]

Numbers = NDArray[np.float64]
_ZERO, _ONE = Bounds(0.0, 0.0), Bounds(1.0, 1.0)
#: How far probabilities by a library may lie from the true ones, and the highest density of a standard normal variable.
_LAW_MARGIN = 1e-12
_PEAK = 0.39894228040143276
_FEW, _SMALL_RATE = 64, 500.0


@dataclass(frozen=True, slots=True)
class Function:
    """One function. `slopes` encloses the partial derivatives; `selects` marks those that return one of their
    arguments.

    For a selecting function `slopes` says with [0, 0] which arguments can never be the one returned; its derivative is
    then a convex combination of the others' (Clarke's generalised gradient), which is what a Lipschitz bound needs.
    `sql` is None for what the engine does not know.
    """

    name: str
    fewest: int
    most: int | None
    compute: Callable[[Sequence[Numbers]], Numbers]
    bounds: Callable[[Sequence[Bounds]], Bounds]
    slopes: Callable[[Sequence[Bounds]], tuple[Bounds, ...]]
    sql: Callable[[Sequence[str]], str] | None
    selects: bool = False

    def accepts(self, arguments: int) -> bool:
        """Whether it can be called with so many arguments."""
        return self.fewest <= arguments and (self.most is None or arguments <= self.most)


def sql_number(value: float) -> str:
    """A number as DuckDB reads it: always DOUBLE, never DECIMAL, whose arithmetic rounds differently.

    The exponent makes the literal a DOUBLE from the start: a cast from DECIMAL would round a second time.

    >>> sql_number(0.1), sql_number(-2), sql_number(float("inf"))
    ('0.1e0', '(-2.0e0)', "'inf'::DOUBLE")
    """
    number = float(value)
    if not np.isfinite(number):
        return f"'{number!r}'::DOUBLE"
    text = repr(number) if "e" in repr(number) else f"{number!r}e0"
    return f"({text})" if number < 0 else text


def _infix(sign: str) -> Callable[[Sequence[str]], str]:
    return lambda parts: f"({f' {sign} '.join(parts)})"


def _named(name: str) -> Callable[[Sequence[str]], str]:
    return lambda parts: f"{name}({', '.join(parts)})"


def _sum(parts: Sequence[Any]) -> Any:
    return reduce(lambda a, b: a + b, parts)


def _tan_slope(x: Bounds) -> Bounds:
    return _ONE + x.tan().power(2)


def _tanh_slope(x: Bounds) -> Bounds:
    return (_ONE - x.tanh().power(2)).intersect(0.0, 1.0)


def _sqrt_slope(x: Bounds) -> Bounds:
    if 0.0 in x:
        return Bounds.unbounded("a square root is infinitely steep at zero")
    return (Bounds(2.0, 2.0) * x.sqrt()).reciprocal()


def _sign(x: Bounds) -> Bounds:
    return Bounds(-1.0 if x.low < 0 else 1.0, 1.0 if x.high > 0 else -1.0) if not x.is_zero else Bounds(-1.0, 1.0)


def _larger(parts: Sequence[Bounds]) -> Bounds:
    return Bounds(max(p.low for p in parts), max(p.high for p in parts), hull(parts).reason)


def _smaller(parts: Sequence[Bounds]) -> Bounds:
    return Bounds(min(p.low for p in parts), min(p.high for p in parts), hull(parts).reason)


def _may_be_largest(parts: Sequence[Bounds]) -> tuple[Bounds, ...]:
    floor = max(part.low for part in parts)
    return tuple(_ZERO if part.high < floor else _ONE for part in parts)


def _may_be_smallest(parts: Sequence[Bounds]) -> tuple[Bounds, ...]:
    ceiling = min(part.high for part in parts)
    return tuple(_ZERO if part.low > ceiling else _ONE for part in parts)


def _clip(parts: Sequence[Bounds]) -> Bounds:
    value, low, high = parts
    return _smaller([_larger([value, low]), high])


def _clip_choices(parts: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """min(max(value, low), high): which of the three can come out."""
    value, low, high = parts
    raised = _larger([value, low])
    inner, outer = _may_be_largest([value, low]), _may_be_smallest([raised, high])
    return (*(_ZERO if outer[0].is_zero else choice for choice in inner), outer[1])


def _normal_below(values: Sequence[Numbers]) -> Numbers:
    from scipy.special import ndtr

    return ndtr(values[0])


def _normal_below_bounds(parts: Sequence[Bounds]) -> Bounds:
    """Φ rises; the margin is far above the error of its implementations."""
    if not parts[0].bounded:
        return parts[0]
    low, high = (float(_normal_below([np.asarray(end)])) for end in (parts[0].low, parts[0].high))
    return Bounds(max(low - _LAW_MARGIN, 0.0), min(high + _LAW_MARGIN, 1.0))


def _normal_below_slope(x: Bounds) -> Bounds:
    """The density of a standard normal variable: largest at the point nearest to zero, least at the farthest."""
    if not x.bounded:
        return x
    near = 0.0 if 0.0 in x else min(abs(x.low), abs(x.high))
    low, high = (_PEAK * np.exp(-end * end / 2) for end in (x.magnitude, near))
    return Bounds(max(low - _LAW_MARGIN, 0.0), min(high + _LAW_MARGIN, _PEAK))


def _poisson_at_least(values: Sequence[Numbers]) -> Numbers:
    """By a few terms where the count is one small whole number, else by the incomplete gamma function.

    Which one is taken for an individual follows from its own rate alone. Both are far more exact than is charged for
    them (network/rounding.py); the terms spare common studies a library that is slow to load.
    """
    count, rate = np.asarray(values[0], dtype=float), np.maximum(values[1], 0.0)
    if count.size == 1 and 0 <= count.item() <= _FEW and count.item() == int(count.item()):
        few, large = _by_terms(int(count.item()), np.minimum(rate, _SMALL_RATE)), rate > _SMALL_RATE
        return np.where(large, _by_gamma(count, rate), few) if np.any(large) else few
    return _by_gamma(count, rate)


def _by_terms(count: int, rate: Numbers) -> Numbers:
    """Rates up to the count: the terms from the count on, which only fall. Beyond: one minus those before it."""
    if not count:
        return np.ones_like(rate)
    nothing = np.exp(-rate)
    before = nothing * _polynomial(rate, [1 / math.factorial(number) for number in range(count)])
    exactly = nothing * rate**count / math.factorial(count)
    later = itertools.accumulate(  # to the first that is below the last digit
        (count / number for number in range(count + 1, count + 20 + 10 * math.isqrt(count))), mul, initial=1.0
    )
    from_here = exactly * _polynomial(np.minimum(rate, count) / count, list(later))
    return np.where(rate > count, 1.0 - before, from_here)


def _polynomial(at: Numbers, coefficients: Sequence[float]) -> Numbers:
    """Coefficients from the lowest power on. In place: planning spends its time here."""
    value = np.full_like(at, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value *= at
        value += coefficient
    return value


def _by_gamma(count: Numbers, rate: Numbers) -> Numbers:
    from scipy.special import gammainc

    return np.where(count <= 0, 1.0, gammainc(np.maximum(count, 1.0), rate))


def _poisson_bounds(parts: Sequence[Bounds]) -> Bounds:
    """Less likely for a larger count, likelier for a larger rate."""
    count, rate = parts
    if not (count.bounded and rate.bounded):
        return rate if count.bounded else count
    low = float(_poisson_at_least([np.asarray(count.high), np.asarray(rate.low)]))
    high = float(_poisson_at_least([np.asarray(count.low), np.asarray(rate.high)]))
    return Bounds(max(low - _LAW_MARGIN, 0.0), min(high + _LAW_MARGIN, 1.0))


def _poisson_slopes(parts: Sequence[Bounds]) -> tuple[Bounds, Bounds]:
    """Along the rate: the probability of exactly count - 1. Counts are whole numbers and have no slope."""
    jump = _ZERO if parts[0].low == parts[0].high else Bounds.unbounded("a count has no slope")
    return jump, Bounds(0.0, 1.0)


def _mean(parts: Sequence[Any]) -> Any:
    return _sum(parts) / len(parts)


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("+", 2, 2, _sum, _sum, lambda b: (_ONE, _ONE), _infix("+")),
        Function("-", 2, 2, lambda v: v[0] - v[1], lambda b: b[0] - b[1], lambda b: (_ONE, -_ONE), _infix("-")),
        Function("negate", 1, 1, lambda v: -v[0], lambda b: -b[0], lambda b: (-_ONE,), lambda s: f"(-({s[0]}))"),
        Function("*", 2, 2, lambda v: v[0] * v[1], lambda b: b[0] * b[1], lambda b: (b[1], b[0]), _infix("*")),
        Function(
            "/",
            2,
            2,
            lambda v: v[0] / v[1],
            lambda b: b[0] / b[1],
            lambda b: (b[1].reciprocal(), -(b[0] / b[1].power(2))),
            _infix("/"),
        ),
        Function("exp", 1, 1, lambda v: np.exp(v[0]), lambda b: b[0].exp(), lambda b: (b[0].exp(),), _named("exp")),
        Function(
            "log", 1, 1, lambda v: np.log(v[0]), lambda b: b[0].log(), lambda b: (b[0].reciprocal(),), _named("ln")
        ),
        Function(
            "sqrt", 1, 1, lambda v: np.sqrt(v[0]), lambda b: b[0].sqrt(), lambda b: (_sqrt_slope(b[0]),), _named("sqrt")
        ),
        Function(
            "tan", 1, 1, lambda v: np.tan(v[0]), lambda b: b[0].tan(), lambda b: (_tan_slope(b[0]),), _named("tan")
        ),
        Function(
            "tanh", 1, 1, lambda v: np.tanh(v[0]), lambda b: b[0].tanh(), lambda b: (_tanh_slope(b[0]),), _named("tanh")
        ),
        Function(
            "abs", 1, 1, lambda v: np.abs(v[0]), lambda b: b[0].absolute(), lambda b: (_sign(b[0]),), _named("abs")
        ),
        Function("sum", 1, None, _sum, _sum, lambda b: (_ONE,) * len(b), _infix("+")),
        Function(
            "mean",
            1,
            None,
            _mean,
            lambda b: _sum(b) / Bounds.point(len(b)),
            lambda b: (_ONE / Bounds.point(len(b)),) * len(b),
            lambda s: f"(({' + '.join(s)}) / {sql_number(len(s))})",
        ),
        Function(
            "max", 1, None, lambda v: reduce(np.maximum, v), _larger, _may_be_largest, _named("greatest"), selects=True
        ),
        Function(
            "min", 1, None, lambda v: reduce(np.fmin, v), _smaller, _may_be_smallest, _named("least"), selects=True
        ),
        Function(
            "clip",
            3,
            3,
            lambda v: np.fmin(np.maximum(v[0], v[1]), v[2]),
            _clip,
            _clip_choices,
            lambda s: f"least(greatest({s[0]}, {s[1]}), {s[2]})",
            selects=True,
        ),
        Function(
            "normal_below", 1, 1, _normal_below, _normal_below_bounds, lambda b: (_normal_below_slope(b[0]),), None
        ),
        Function("poisson_at_least", 2, 2, _poisson_at_least, _poisson_bounds, _poisson_slopes, None),
    )
}

#: What only inference writes; a study cannot call these.
INFERRED = frozenset(("negate", "normal_below", "poisson_at_least"))
