"""The special functions `core` needs, scipy's where they are many, imported when the first one is called.

In:   numbers or arrays.
Out:  what scipy.special returns, up to the last digits.
Not here: more of our own than a check needs. Importing scipy.special takes a quarter of a
second, as long as reading a study does, and a check needs two: exp(x²) erfc(x) of a few numbers, from the C library's
erfc, and Φ⁻¹, by Wichura's rational functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["erfcx", "erfinv", "gammaln", "legendre_rule", "log_ndtr", "ndtr", "ndtri"]

_CHUNK = 4096
_FEW = 64

# Wichura 1988, AS 241 (PPND16): numerator and denominator, the highest power first, for the middle, for tails up to
# exp(-25) and beyond. Relative error about 1e-16; tests/core/test_special.py compares it with fifty digits.
_MIDDLE = (
    (
        2.5090809287301226727e3,
        3.3430575583588128105e4,
        6.7265770927008700853e4,
        4.5921953931549871457e4,
        1.3731693765509461125e4,
        1.9715909503065514427e3,
        1.3314166789178437745e2,
        3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3,
        2.8729085735721942674e4,
        3.9307895800092710610e4,
        2.1213794301586595867e4,
        5.3941960214247511077e3,
        6.8718700749205790830e2,
        4.2313330701600911252e1,
        1.0,
    ),
)
_TAIL = (
    (
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258e0,
        3.64784832476320460504e0,
        5.76949722146069140550e0,
        4.63033784615654529590e0,
        1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940e0,
        2.05319162663775882187e0,
        1.0,
    ),
)
_FAR = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580e0,
        5.46378491116411436990e0,
        6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ),
)


def erfcx(x: Any) -> Any:
    """exp(x²) erfc(x).

    >>> erfcx(0.0), round(erfcx(1e8) * 1e8, 6)
    (1.0, 0.56419)
    """
    if isinstance(x, float | int):
        return _scaled_erfc(float(x))
    if np.size(x) <= _FEW:
        points = np.asarray(x, dtype=float)
        found = np.array([_scaled_erfc(point) for point in points.ravel().tolist()]).reshape(points.shape)
        return found if isinstance(x, np.ndarray) else found[()]
    from scipy import special

    return special.erfcx(x)


def _scaled_erfc(x: float) -> float:
    """The square is split into an exact part and a small one, so that no digit of it is lost in the exponent."""
    if x < -26.64:  # twice the largest number there is
        return math.inf
    if x > 26.0:  # seven terms of the asymptotic series: the next is below 1e-18
        small, series = 0.5 / x / x, 1.0
        for odd in (13, 11, 9, 7, 5, 3, 1):
            series = 1.0 - odd * small * series
        return series / (x * math.sqrt(math.pi))
    if math.isnan(x):
        return x
    whole = int(x * 16) / 16
    return math.exp(whole * whole) * (math.exp((x - whole) * (x + whole)) * math.erfc(x))


def erfinv(x: Any) -> Any:
    """The inverse of erf."""
    from scipy import special

    return special.erfinv(x)


def gammaln(x: Any) -> Any:
    """ln |Γ(x)|."""
    from scipy import special

    return special.gammaln(x)


def ndtr(x: Any) -> Any:
    """Φ(x)."""
    from scipy import special

    return special.ndtr(x)


def log_ndtr(x: Any) -> Any:
    """ln Φ(x)."""
    from scipy import special

    return special.log_ndtr(x)


def legendre_rule(count: int) -> tuple[Any, Any]:
    """Nodes and weights of Gauss and Legendre on [-1, 1], by Newton's method from Tricomi's guess.

    numpy's come by way of LAPACK, with last digits that change from one processor to the next.

    >>> nodes, weights = legendre_rule(3)
    >>> bool(abs(nodes[2] - math.sqrt(0.6)) < 1e-15), [round(float(one), 12) for one in 9 * weights]
    (True, [5.0, 8.0, 5.0])
    """
    nodes = np.array([-math.cos(math.pi * (number + 0.75) / (count + 0.5)) for number in range(count)])
    slope = nodes
    for _ in range(6):  # the guess has three digits, and each step doubles them
        before, value = np.zeros(count), np.ones(count)
        for degree in range(1, count + 1):
            before, value = value, ((2 * degree - 1) * nodes * value - (degree - 1) * before) / degree
        slope = count * (before - nodes * value) / (1 - nodes**2)
        nodes = nodes - value / slope
    return nodes, 2 / ((1 - nodes**2) * slope**2)


def ndtri(x: Any) -> Any:
    """Φ⁻¹(x): infinite at 0 and 1, not a number outside of them.

    >>> round(float(ndtri(0.975)), 6)
    1.959964
    """
    probability = np.asarray(x, dtype=float)
    flat = probability.reshape(-1)
    found = np.empty_like(flat)
    for start in range(0, len(flat), _CHUNK):  # what fits the processor's cache is three times as fast
        found[start : start + _CHUNK] = _quantiles(flat[start : start + _CHUNK])
    found = found.reshape(probability.shape)
    return found if isinstance(x, np.ndarray) else found[()]


def _quantiles(probability: Any) -> Any:
    centred = probability - 0.5
    found = centred * _ratio(_MIDDLE, 0.180625 - centred * centred)
    outside = np.flatnonzero(~(np.abs(centred) <= 0.425))
    if len(outside):
        found[outside] = _beyond(probability[outside], centred[outside])
    return found


def _beyond(probability: Any, centred: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(-np.log(np.where(centred < 0, probability, 1.0 - probability)))
    size = _ratio(_TAIL, np.minimum(root, 5.0) - 1.6)
    far = np.flatnonzero(root > 5.0)
    size[far] = _ratio(_FAR, np.minimum(root[far], 1e3) - 5.0)
    size[np.isinf(root)] = np.inf
    return np.copysign(size, centred)


def _ratio(pair: tuple[tuple[float, ...], tuple[float, ...]], x: Any) -> Any:
    return _horner(pair[0], x) / _horner(pair[1], x)


def _horner(coefficients: tuple[float, ...], x: Any) -> Any:
    found = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        found *= x
        found += coefficient
    return found
