"""Objective perturbation: the record of one private training run, and its proved privacy profile.

In:   bounds of one record's gradient and curvature, the strong convexity, the noise.
Out:  ObjectivePerturbationEvent; ObjectiveDP, the guarantee of Gaussian objective perturbation.
Not here: training (learn/), other acts (core/events/event.py), how events add up (core/compose.py).
Proof: docs/proofs/objective_perturbation.md

The privacy loss is at most T = shift + max(0, L) with L ~ N(μ²/2, μ²), in the sense that

    δ(ε) ≤ E (1 - e^{ε-T})₊        for every real ε,

and that order is kept by sums of independent losses, so several runs add their T. For one run and ε ≥ shift this is
the Gaussian profile at ε - shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from sfumato.core.checks import at_least_zero, positive, probability, round_up
from sfumato.core.events.event import Event
from sfumato.core.events.objective_noise import ObjectiveNoiseName, objective_noise
from sfumato.core.gaussian import gaussian_delta, gaussian_epsilon
from sfumato.core.guarantee import Guarantee, PureDP, checked_order
from sfumato.core.special import log_ndtr, ndtr
from sfumato.core.window import added_up
from sfumato.errors import PrivacyParameterError

__all__ = [
    "LossGrid",
    "ObjectiveDP",
    "ObjectivePerturbationEvent",
    "masked_delta",
    "masked_epsilon",
    "objective_curve",
    "objective_loss",
]

#: Cells per μ of the grid on which several losses are added; the error is quadratic in their width.
_CELLS = 256
#: So many runs are added up on cells that fine.
_FINE_RUNS = 10_000
#: Where the grid ends, in standard deviations; what lies beyond counts as infinite loss.
_END = 13.0
#: Beyond this loss e^loss and what it is multiplied with leave the floats: there a loss counts as the end of its cell.
_FAR = 600.0
#: What the Fourier transforms may cost δ: at all, and for each run.
_ARITHMETIC, _EACH_RUN = 1e-13, 1e-15


class LossGrid(NamedTuple):
    """A law of privacy losses on lowest, lowest + width, …; `infinite` is the mass without a bound."""

    lowest: float
    width: float
    masses: np.ndarray
    infinite: float

    def delta(self, epsilon: float) -> float:
        losses = self.lowest + self.width * np.arange(self.masses.size)
        excess = -np.expm1(np.minimum(epsilon - losses, 0.0))
        return float(np.dot(self.masses, excess)) + self.infinite


def objective_loss(mu: float, shift: float, width: float) -> LossGrid:
    """A law on the grid that is worse than T = shift + max(0, L), alone and in every sum.

    The mass of each cell is split between its two ends so that Σp and Σp e^{-loss} are kept. (1 - e^{ε-loss})₊ is
    convex in e^{-loss}, so this can only raise δ.
    """
    cells = math.ceil((mu * mu / 2 + _END * mu) / width)
    edges = width * np.arange(cells + 1)
    z = (edges - mu * mu / 2) / mu
    upper, tilted = ndtr(-z), ndtr(-z - mu)  # P(L > edge) and E(e^{-L}; L > edge)
    mass = np.maximum(upper[:-1] - upper[1:], 0.0)
    other = np.maximum(tilted[:-1] - tilted[1:], 0.0)
    near = int(np.searchsorted(edges[:-1], _FAR))
    right = mass.copy()
    right[:near] = (mass[:near] - other[:near] * np.exp(edges[:near])) / -math.expm1(-width)
    right = np.clip(right, 0.0, mass)
    masses = np.zeros(cells + 1)
    masses[:-1] += mass - right
    masses[1:] += right
    masses[0] += ndtr(-mu / 2)  # L < 0 costs nothing
    return LossGrid(shift, width, masses, float(upper[-1]))


def objective_curve(mu: float, shift: float, alpha: np.ndarray) -> np.ndarray:
    """Rényi ε of orders α of one run: ln(E e^{(α-1)T})/(α-1), which the order of the module text keeps."""
    some = alpha * (alpha - 1) * mu**2 / 2 + log_ndtr((alpha - 0.5) * mu)
    return shift + np.logaddexp(log_ndtr(-mu / 2), some) / (alpha - 1)


@lru_cache(maxsize=256)
def _several(mu: float, count: int) -> LossGrid:
    """The sum of `count` independent losses without their shifts."""
    # Of very many runs one cell is a smaller part of the whole, so it may be wider: the memory does not grow.
    cells = max(4.0, min(1.0, math.sqrt(_FINE_RUNS / count)) * _CELLS)
    one = objective_loss(mu, 0.0, mu / cells)
    found = added_up(one.masses, count)
    infinite = count * (one.infinite + _EACH_RUN) + found.outside + _ARITHMETIC
    return LossGrid(found.lowest * one.width, one.width, found.masses, infinite)


def masked_delta(mu: float, shift: float, mask: float, epsilon: float) -> float:
    """δ(ε) of one run together with Gaussian acts of total parameter `mask`: proof note, section 4.

    HS(√(μ² + mask²), ε - shift) + P(N(mask²/2, mask²) > ε - shift), for ε ≥ shift; below, nothing is claimed.

    >>> from sfumato.core.gaussian import gaussian_delta
    >>> abs(masked_delta(0.4, 0.1, 0.003, 1.1) / gaussian_delta((0.4**2 + 0.003**2) ** 0.5, 1.0) - 1) < 1e-8
    True
    """
    rest = epsilon - shift
    if rest < 0:
        return 1.0
    beyond = round_up(float(ndtr(-(rest / mask - mask / 2))), 1e-12) if mask else 0.0
    together = round_up(math.hypot(mu, mask), 1e-15)
    # A Gaussian loss has no end: a δ that underflows to 0 would claim a pure ε.
    return min(1.0, max(math.ulp(0.0), round_up(gaussian_delta(together, rest) + beyond)))


def masked_epsilon(mu: float, shift: float, mask: float, delta: float) -> float:
    """The smallest ε at which `masked_delta` is at most δ, rounded up; infinite for δ = 0."""
    if not delta:
        return math.inf
    low = high = shift
    while masked_delta(mu, shift, mask, high) > delta:
        if high > 1e6:
            return math.inf
        low, high = high, 2 * high + 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if masked_delta(mu, shift, mask, middle) <= delta else (middle, high)
    return high


@dataclass(frozen=True)
class ObjectiveDP(Guarantee):
    """What `count` runs of Gaussian objective perturbation promise together: losses `shift` + max(0, N(μ²/2, μ²)) each.

    Needs a loss whose slope has one sign for each label (logistic, Huber, smoothed hinge).

    >>> one = ObjectiveDP(0.2, 0.01)
    >>> from sfumato.core.guarantee import GaussianDP
    >>> one.delta(0.51) == GaussianDP(0.2).delta(0.5)
    True
    >>> ObjectiveDP(0.2, 0.01, 2).delta(0.5) > one.delta(0.5)
    True
    """

    mu: float
    shift: float
    count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive(self.mu, "mu"))
        object.__setattr__(self, "shift", at_least_zero(self.shift, "shift"))
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 1:
            raise PrivacyParameterError("count must be a whole number of at least 1.")

    def delta(self, epsilon: float) -> float:
        rest = at_least_zero(epsilon, "epsilon") - self.count * self.shift
        if self.count > 1:
            return min(1.0, round_up(_several(self.mu, self.count).delta(rest), 1e-9))
        if rest >= 0:
            return gaussian_delta(self.mu, rest)
        return min(1.0, round_up(1 - 2 * math.exp(rest) * float(ndtr(-self.mu / 2))))

    def epsilon(self, delta: float) -> float:
        delta = probability(delta)
        if self.count == 1 and delta <= gaussian_delta(self.mu, 0.0):
            return round_up(self.shift + gaussian_epsilon(self.mu, delta), 1e-15)
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, self.count * self.shift + 1.0
        while self.delta(high) > delta:
            if high > 1e6:
                return math.inf
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def rdp(self, alpha: float) -> float:
        alpha = checked_order(alpha)
        if math.isinf(alpha):
            return math.inf
        return round_up(self.count * float(objective_curve(self.mu, self.shift, np.array(alpha))))

    def describe(self) -> str:
        runs = "" if self.count == 1 else f" in each of {self.count} runs"
        return f"{self.mu:.6g}-Gaussian DP with losses raised by {self.shift:.6g}{runs} (objective perturbation)"


@dataclass(frozen=True)
class ObjectivePerturbationEvent(Event):
    """One exact minimiser of Σ loss + ½·strength·‖f‖² + ⟨b, f⟩ with random b.

    `slope` bounds the norm of one record's gradient, `curvature` the largest eigenvalue of its Hessian (of rank one);
    the slope has one sign for each label. b is N(0, scale²) in every coordinate ("gaussian"), or has density
    ∝ exp(-‖b‖₂/scale) ("norm-gamma") or ∝ exp(-‖b‖₁/scale) ("laplace", where `slope` bounds the L1 norm).
    `strength` and `scale` do not depend on the data; under add-remove they do not depend on the number of records.
    """

    proof: ClassVar[str] = "objective_perturbation"

    noise: ObjectiveNoiseName
    slope: float
    curvature: float
    strength: float
    scale: float

    def _check(self) -> None:
        objective_noise(self.noise)
        for name in ("slope", "curvature", "strength", "scale"):
            positive(getattr(self, name), name)

    @property
    def is_gaussian(self) -> bool:
        """Whether its noise is normal, so that its cost is a curve and not a pure ε."""
        return objective_noise(self.noise).is_gaussian

    @property
    def moved(self) -> float:
        """How far one change of the data moves b, in scales."""
        records = 2 if self.adjacency.relation == "replace-one" else 1
        return round_up(records * self.slope / self.scale, 1e-15)

    @property
    def shift(self) -> float:
        """ln(1 + curvature/strength): what the change of variables from f to b can add to the loss."""
        return round_up(math.log1p(self.curvature / self.strength), 1e-15)

    def guarantee(self) -> ObjectiveDP | PureDP:
        if self.is_gaussian:
            return ObjectiveDP(self.moved, self.shift, adjacency=self.adjacency)
        return PureDP(round_up(self.moved + self.shift, 1e-15), adjacency=self.adjacency)
