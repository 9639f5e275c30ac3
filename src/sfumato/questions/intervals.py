"""How far a published number lies from the truth: its standard error and its 95 % interval, from the law of the noise.

In:   the numbers that were drawn, the law of the noise in each, the function by which the published value was read off.
Out:  Figure: value, standard error, low, high. The only place where the three are computed.
Not here: what is drawn for a question (questions/question.py), the law of a plan's draws (plan/draw.py).
Proof: docs/proofs/intervals.md

The noise e has a body K: the set whose width in every direction c is what |c·e| exceeds in 5 % of all draws. It exists
because Gaussian and Laplace noise are symmetric and log-concave. Of a function f of the exact numbers the interval is
the range of f over (drawn numbers) + K: exact for linear f, the test inversion of Fieller for a ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["COVERAGE", "NORMAL_95", "Figure", "NoiseLaw", "body", "figure_of", "ratio_figures", "support"]

Numbers = NDArray[np.float64]

#: The share of all draws in which an interval holds the truth.
COVERAGE = 0.95
NORMAL_95 = 1.959963984540054
#: The inversion integral in units of the standard deviation: the mass beyond 13 of them, which is below 1e-7, would be
#: counted at the wrong place; the frequencies left out move the quantile by less than 1e-5.
_STEP = 2 * math.pi / 30
_FREQUENCIES = _STEP * np.arange(1, 401)
_NEWTON = 5
_REFINEMENTS = 6
_RADII = (1.0, 0.66, 0.33)


@dataclass(frozen=True)
class NoiseLaw:
    """Gaussian noise of variance `gaussian` plus independent Laplace variables of the given scales.

    >>> round(NoiseLaw(4.0).half_width, 2), round(NoiseLaw(laplace=(1.0,)).half_width, 4) == round(math.log(20), 4)
    (3.92, True)
    """

    gaussian: float = 0.0
    laplace: tuple[float, ...] = ()

    @cached_property
    def variance(self) -> float:
        return self.gaussian + 2 * math.fsum(scale**2 for scale in self.laplace)

    @cached_property
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    @cached_property
    def half_width(self) -> float:
        """What the noise stays below in 95 of 100 draws."""
        if self.deviation == 0:
            return 0.0
        if not self.gaussian and len(self.laplace) == 1:
            return self.laplace[0] * -math.log1p(-COVERAGE)
        return _half_width(self) if self.laplace else NORMAL_95 * self.deviation

    def times(self, factor: float) -> NoiseLaw:
        """The law of the noise multiplied by a number."""
        return NoiseLaw(self.gaussian * factor**2, tuple(abs(factor) * scale for scale in self.laplace))

    def plus(self, other: NoiseLaw) -> NoiseLaw:
        """The law of the sum with independent noise."""
        return NoiseLaw(self.gaussian + other.gaussian, (*self.laplace, *other.laplace))


@dataclass(frozen=True)
class Figure:
    """A published number with its standard error and the ends of its 95 % interval; an end may be infinite."""

    value: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Figure:
        return cls(value, 0.0, value, value)

    @classmethod
    def around(cls, value: float, law: NoiseLaw) -> Figure:
        """Value = exact + noise of this law."""
        return cls(value, law.deviation, value - law.half_width, value + law.half_width)

    def placed(self, start: float, unit: float) -> Figure:
        """start + unit times it; the unit is positive."""
        ends = start + unit * self.low, start + unit * self.high
        return Figure(start + unit * self.value, unit * self.standard_error, *ends)

    def within(self, low: float, high: float) -> Figure:
        """Put into the range that the exact number is known to lie in.

        An interval that lies outside altogether is taken around the nearer end: one point would say too much.
        """
        value = min(max(self.value, low), high)
        start, end = self.low, self.high
        if start > high or end < low:
            start, end = value - (end - start) / 2, value + (end - start) / 2
        error = min(self.standard_error, (high - low) / 2)  # no law on the range has a larger deviation
        return Figure(value, error, min(max(start, low), high), min(max(end, low), high))


# ── the body of the noise ────────────────────────────────────────────────────────────────────────────────────────────


def support(laws: Sequence[NoiseLaw], directions: Numbers) -> Numbers:
    """For each direction c the point of the body that is farthest along c: its height c·x is what |c·e| stays below in
    95 of 100 draws."""
    spreads = np.array([law.deviation for law in laws])
    directions = np.asarray(directions, dtype=np.float64)
    length = np.sqrt(np.sum((directions * spreads) ** 2, axis=1, keepdims=True))
    turned = directions / np.where(length > 0, length, 1.0)
    if not any(law.laplace for law in laws):
        return NORMAL_95 * turned * spreads**2
    found = np.empty_like(turned)
    for start in range(0, len(turned), 256):
        found[start : start + 256] = _numeric_support(laws, turned[start : start + 256])
    return np.where(length > 0, found, 0.0)


def _quantiles(laws: Sequence[NoiseLaw], directions: Numbers) -> tuple[Numbers, Numbers]:
    """Directions in which the noise has deviation 1: what it stays below, and its characteristic function.

    P(|X| <= x) = 2/π ∫ sin(tx)/t φ(t) dt by the trapezoidal rule, whose error is the mass far outside.
    """
    t = _FREQUENCIES
    phi = np.ones((len(directions), t.size))
    for law, column in zip(laws, directions.T, strict=True):
        reach = np.outer(column, t)
        if law.gaussian:
            phi *= np.exp(-law.gaussian * reach**2 / 2)
        for scale in law.laplace:
            phi /= 1 + (scale * reach) ** 2
    height = np.full((len(directions), 1), NORMAL_95)
    falling = phi / t
    for _ in range(_NEWTON):
        angle = height * t
        inside = _STEP / math.pi * (height[:, 0] + 2 * np.einsum("ij,ij->i", np.sin(angle), falling))
        density = _STEP / math.pi * (1 + 2 * np.einsum("ij,ij->i", np.cos(angle), phi))
        height += ((COVERAGE - inside) / density)[:, None]
    return height, phi


@lru_cache(maxsize=1024)  # the numbers of a table have their law in common
def _half_width(law: NoiseLaw) -> float:
    height, _ = _quantiles((law,), np.array([[1 / law.deviation]]))
    return law.deviation * float(height[0, 0])


def _numeric_support(laws: Sequence[NoiseLaw], directions: Numbers) -> Numbers:
    """By the implicit function theorem the derivative of the quantile is the support point."""
    t = _FREQUENCIES
    height, phi = _quantiles(laws, directions)
    wave = np.sin(height * t) * phi
    slope = np.cos(height * t) * phi
    density = _STEP / math.pi + 2 * _STEP / math.pi * np.sum(slope, axis=1)
    points = np.empty_like(directions)
    for place, (law, column) in enumerate(zip(laws, directions.T, strict=True)):
        reach = np.outer(column, t)
        decay = law.gaussian * reach
        for scale in law.laplace:
            decay = decay + 2 * scale**2 * reach / (1 + (scale * reach) ** 2)
        points[:, place] = 2 * _STEP / math.pi * np.sum(wave * decay, axis=1) / density
    # Euler: c·x is the quantile itself; what the cut-off integral of the slope lost is given back along c.
    return points * (height[:, 0] / np.sum(points * directions, axis=1))[:, None]


def body(laws: Sequence[NoiseLaw]) -> Numbers:
    """Points on the surface of the body, spread over all directions: the same for everybody."""
    scale = max((law.deviation for law in laws), default=0.0)
    if scale == 0:
        return np.zeros((1, len(laws)))
    unit = tuple(NoiseLaw(law.gaussian / scale**2, tuple(b / scale for b in law.laplace)) for law in laws)
    return scale * _unit_body(unit)


@lru_cache(maxsize=64)
def _unit_body(laws: tuple[NoiseLaw, ...]) -> Numbers:
    count = len(laws)
    if count == 1:
        turned = np.array([[1.0], [-1.0]])
    elif count == 2:
        angles = 2 * math.pi * np.arange(65) / 256
        turned = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        spread = np.random.Generator(np.random.PCG64(11)).normal(size=(128 * count, count))
        turned = np.vstack([np.eye(count), -np.eye(count), spread / np.linalg.norm(spread, axis=1, keepdims=True)])
    spreads = np.array([law.deviation for law in laws])
    points = support(laws, turned / np.where(spreads > 0, spreads, 1.0))
    if count == 2:  # every law is symmetric, and so is the body: a quarter of it says the rest
        half = np.vstack([points, points[-2:0:-1] * np.array([-1.0, 1.0])])
        points = np.vstack([half, -half])
    points.setflags(write=False)
    return points


def figure_of(function: Callable[[Numbers], Numbers], drawn: Numbers, laws: Sequence[NoiseLaw]) -> Figure:
    """A number computed from drawn ones: its standard error to first order, its interval the range over the body.

    `function` takes one row of numbers per point. A sampled range is refined by climbing: the farthest point of the
    body along the function's slope at the best point so far.

    >>> ratio = figure_of(lambda rows: rows[:, 0] / rows[:, 1], np.array([50.0, 100.0]), [NoiseLaw(4.0), NoiseLaw(4.0)])
    >>> round(ratio.value, 2), round(ratio.standard_error, 4), round(ratio.low, 3), round(ratio.high, 3)
    (0.5, 0.0224, 0.457, 0.545)
    """
    moving = [place for place, law in enumerate(laws) if law.deviation > 0]
    own = [laws[place] for place in moving]
    value = float(function(drawn[None, :])[0])
    if not moving:
        return Figure.exact(value)

    def along(offsets: Numbers) -> Numbers:
        rows = np.repeat(drawn[None, :], len(offsets), axis=0)
        rows[:, moving] += offsets
        return np.asarray(function(rows), dtype=np.float64)

    steps = np.diag([law.deviation for law in own])
    surface = body(own)
    points = np.vstack([steps, -steps, *(radius * surface for radius in _RADII)])
    heights = along(points)
    if not math.isfinite(value) or not np.all(np.isfinite(heights)):
        return Figure(value, math.inf, -math.inf, math.inf)
    error = float(np.linalg.norm(heights[: len(own)] - heights[len(own) : 2 * len(own)]) / 2)
    low, high = value, value
    for sign in (1.0, -1.0):
        best = int(np.argmax(sign * heights))
        end = _climbed(along, own, points[best], float(heights[best]), sign)
        low, high = min(low, end), max(high, end)
    return Figure(value, error, low, high)


def ratio_figures(above: Numbers, below: Numbers, law: NoiseLaw) -> list[Figure]:
    """Quotients of drawn numbers, every one with noise of the same law; all denominators exceed the law's half width.

    The range of a quotient over the body is {r: |above - r·below| <= h(r)}, h(r) the body's width along (1, -r): the
    test inversion of Fieller. What `figure_of` finds by climbing, for thousands of quotients at once.

    >>> (one,) = ratio_figures(np.array([50.0]), np.array([100.0]), NoiseLaw(4.0))
    >>> round(one.value, 2), round(one.standard_error, 4), round(one.low, 3), round(one.high, 3)
    (0.5, 0.0224, 0.457, 0.545)
    """
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    values, spread = above / below, law.deviation
    errors = np.hypot(spread / below, above * spread / (below**2 - spread**2))
    if not law.laplace:
        reach = (NORMAL_95 * spread) ** 2
        root = NORMAL_95 * spread * np.sqrt(above**2 + below**2 - reach)
        ends = [(above * below + sign * root) / (below**2 - reach) for sign in (-1.0, 1.0)]
    else:
        ends = list(_inverted(above, below, law))
    rows = zip(values, errors, *ends, strict=True)
    return [Figure(float(v), float(e), float(low), float(high)) for v, e, low, high in rows]


def _inverted(above: Numbers, below: Numbers, law: NoiseLaw) -> Numbers:
    """Both ends of {r: |above - r·below| <= h(r)}, a row each, by bisection over the angle of (1, -r)."""
    angles, heights = _heights(NoiseLaw(law.gaussian / law.variance, tuple(b / law.deviation for b in law.laplace)))
    sign = np.array([[-1.0], [1.0]])
    near = np.broadcast_to(np.arctan2(above, below), (2, above.size))
    far = np.broadcast_to(sign * math.pi / 2, near.shape)
    for _ in range(60):
        middle = (near + far) / 2
        height = law.deviation * np.interp(middle, angles, heights)
        inside = sign * (np.sin(middle) * below - np.cos(middle) * above) <= height
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return np.tan(far)


@lru_cache(maxsize=64)
def _heights(law: NoiseLaw) -> tuple[Numbers, Numbers]:
    """The width of the body of two numbers of a law along (cos, -sin) of angles from -π/2 to π/2, closely spaced."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, 1025)
    some = angles[512:769]  # from 0 to π/4: the body of two numbers of one symmetric law has eight such parts
    directions = np.stack([np.cos(some), np.sin(some)], axis=1)
    eighth = np.sum(support((law, law), directions) * directions, axis=1)
    quarter = np.concatenate([eighth, eighth[-2::-1]])
    return angles, np.concatenate([quarter[:0:-1], quarter])


def _climbed(
    along: Callable[[Numbers], Numbers], laws: Sequence[NoiseLaw], start: Numbers, height: float, sign: float
) -> float:
    small = np.diag([1e-4 * law.deviation for law in laws])
    for _ in range(_REFINEMENTS):
        slope = (along(start + small) - along(start - small)) / (2 * np.diagonal(small))
        if not np.all(np.isfinite(slope)) or not np.any(slope):
            return height
        start = support(laws, sign * slope[None, :])[0]
        reached = float(along(start[None, :])[0])
        if not sign * (reached - height) > 0:
            return height
        better = reached
        if abs(better - height) <= 1e-6 * abs(better):
            return better
        height = better
    return height
