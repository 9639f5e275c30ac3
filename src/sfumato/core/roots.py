"""Where a function of one number changes its sign.

In:   a continuous function and two ends at which its signs differ.
Out:  a root, to a relative 1e-14.
Not here: on which side of the root a promise is kept (core/gaussian.py moves outwards from it).

Brent's method (Brent 1973, ch. 4), step by step as SciPy's `brentq` takes it, which tests hold it against. Loading
scipy.optimize takes 0.16 s of processor time, more than a small study takes to plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["root_between"]

_RELATIVE = 1e-14
Point = tuple[float, float]  # a number, and the function there

_STEPS = 400  # halving alone crosses the range of floating-point numbers several times in fewer


def root_between(function: Callable[[float], float], low: float, high: float) -> float:
    """A root of `function` between `low` and `high`, where its signs differ.

    >>> round(root_between(lambda x: x * x - 2, 0.0, 2.0), 12)
    1.414213562373
    """
    f_low, f_high = function(low), function(high)
    if f_low == 0:
        return low
    if f_high == 0:
        return high
    if (f_low < 0) == (f_high < 0):
        raise ValueError("the function has the same sign at both ends")
    return _closing_in(function, (low, f_low), (high, f_high))


def _closing_in(function: Callable[[float], float], low: Point, high: Point) -> float:
    (before, f_before), (here, f_here) = low, high
    across, f_across = before, f_before  # the end on the other side of the root
    last = step = here - before
    for _ in range(_STEPS):
        if f_before != 0 and (f_before < 0) != (f_here < 0):
            across, f_across = before, f_before
            last = step = here - before
        if abs(f_across) < abs(f_here):
            before, here, across = here, across, here
            f_before, f_here, f_across = f_here, f_across, f_here
        near = _RELATIVE * abs(here) / 2
        half = (across - here) / 2
        if f_here == 0 or abs(half) <= near:
            return here
        last, step = _step((before, f_before), (here, f_here), (across, f_across), last, step, near)
        before, f_before = here, f_here
        here += step if abs(step) > near else math.copysign(near, half)
        f_here = function(here)
    return here


def _step(
    before: tuple[float, float],
    here: tuple[float, float],
    across: tuple[float, float],
    last: float,
    step: float,
    near: float,
) -> tuple[float, float]:
    """The last step and the next: by interpolation while it converges faster than halving, else half the way."""
    (x, f), (x_before, f_before), (x_across, f_across) = here, before, across
    half = (x_across - x) / 2
    if not (abs(last) > near and abs(f) < abs(f_before)):
        return half, half
    if x_before == x_across:
        tried = -f * (x - x_before) / (f - f_before)
    else:
        slope = (f_before - f) / (x_before - x)
        slope_across = (f_across - f) / (x_across - x)
        scale = slope_across * slope * (f_across - f_before)
        tried = -f * (f_across * slope_across - f_before * slope) / scale if scale else math.inf
    if 2 * abs(tried) < min(abs(last), 3 * abs(half) - near):
        return step, tried
    return half, half
