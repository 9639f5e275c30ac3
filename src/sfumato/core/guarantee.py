"""What is promised: privacy profiles and their views.

In:   privacy parameters.
Out:  Guarantee values: (ε, δ) for any δ, the attacker's trade-off curve and advantage, the Rényi curve, an order.
Not here: how guarantees add up (core/compose.py), what an act costs (core/events/event.py).

The views of a guarantee describe the worst mechanism that has it. `implies` answers True or False where that is
decided, and None where the adjacencies differ or the known conversions do not settle it.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import at_least_zero, number, positive, probability, round_up
from sfumato.core.gaussian import gaussian_delta, gaussian_epsilon
from sfumato.core.renyi import delta_from_curve, epsilon_from_curve, two_point_rdp
from sfumato.core.special import erfinv, ndtr, ndtri
from sfumato.errors import PrivacyParameterError

__all__ = ["ZCDP", "ApproxDP", "GaussianDP", "Guarantee", "NoGuarantee", "PureDP", "RenyiDP", "checked_order"]

#: Where an ε is named for a promise that has no δ of its own: at the first of these at which it is finite.
_USUAL_DELTAS = (1e-6, 1e-3, 0.01, 0.1)
_TRADEOFF_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 60.0, 240)])


def checked_order(alpha: float) -> float:
    """An order of a Rényi divergence: greater than 1, possibly infinite."""
    if isinstance(alpha, float) and math.isinf(alpha) and alpha > 0:
        return alpha
    alpha = number(alpha, "alpha")
    if alpha <= 1:
        raise PrivacyParameterError(f"A Rényi order must be greater than 1, not {alpha}.")
    return alpha


@dataclass(frozen=True)
class Guarantee(ABC):
    """A privacy profile under an adjacency. Abstract; the final classes below are the only ones.

    `adjacency` is None while nobody has said who is protected: the text then says so.
    """

    adjacency: Adjacency | None = field(default=None, kw_only=True)

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Smallest known δ for this ε, rounded up."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Smallest known ε ≥ 0 for this δ, rounded up; infinite if there is none."""

    @property
    def stated(self) -> tuple[float, float]:
        """(ε, δ) as it was promised; of a curve, which promises many, at a usual δ.

        >>> PureDP(1.0).stated, ApproxDP(0.5, 1e-5).stated, GaussianDP(1.0).stated[1]
        ((1.0, 0.0), (0.5, 1e-05), 1e-06)
        """
        points = ((self.epsilon(delta), delta) for delta in _USUAL_DELTAS)
        return next((point for point in points if math.isfinite(point[0])), (math.inf, _USUAL_DELTAS[-1]))

    @abstractmethod
    def rdp(self, alpha: float) -> float:
        """Smallest known Rényi ε of order α, rounded up; infinite if there is none."""

    @abstractmethod
    def describe(self) -> str:
        """The promise in a few characters, without the adjacency."""

    def tradeoff(self, alpha: Any) -> Any:
        """Least type II error of any attacker whose type I error is `alpha` (number or array).

        Each point (ε, δ(ε)) of the profile gives two lines below the curve (Dong, Roth & Su 2022, Prop. 2.5);
        their maximum is a lower bound whatever points are used.
        """
        errors = _type_one_errors(alpha)
        curve = np.zeros_like(errors)
        for epsilon in _TRADEOFF_EPSILONS:
            left = 1 - self.delta(float(epsilon))
            curve = np.maximum(curve, left - np.exp(epsilon) * errors)
            curve = np.maximum(curve, np.exp(-epsilon) * (left - errors))
        return _like_input(np.clip(curve, 0.0, 1.0 - errors), alpha)

    def advantage(self) -> float:
        """The best attacker's gain over guessing: the largest (true positive - false positive) rate, in [0, 1].

        On a fair coin an attacker is right with probability ½ + advantage/2.
        """
        return self.delta(0.0)

    def implies(self, other: Guarantee) -> bool | None:
        """Does every mechanism with this guarantee have the `other`? None: not decided.

        >>> GaussianDP(0.2).implies(ApproxDP(1.0, 1e-6))
        True
        >>> PureDP(1.0).implies(GaussianDP(0.1))
        False
        """
        if isinstance(other, NoGuarantee):
            return True
        if isinstance(self, NoGuarantee):
            return False
        if self.adjacency is not None and other.adjacency is not None and self.adjacency != other.adjacency:
            return None
        if self.under(None) == other.under(None):
            return True
        decided = other.implied_by(self)
        return self._implies(other) if decided is None else decided

    def implied_by(self, cost: Guarantee) -> bool | None:
        """Whether this promise follows from a cost by a rule of its own; None where there is none."""
        return None

    def _implies(self, other: Guarantee) -> bool | None:
        match other:
            case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
                # Not by δ(ε) <= 0: a tiny δ underflows to 0.
                return self._decided(self.epsilon(0.0) <= eps)
            case ApproxDP(eps=eps, delta_=delta):
                return self._decided(self.delta(eps) <= delta)
            case RenyiDP(alpha=alpha, eps=eps):
                return self._decided(self.rdp(alpha) <= eps)
        return None

    @property
    def _tight(self) -> bool:
        """Whether some mechanism attains every point of the profile and of the Rényi curve at once."""
        return False

    def _decided(self, holds: bool) -> bool | None:
        return True if holds else (False if self._tight else None)

    def under(self, adjacency: Adjacency | None) -> Self:
        """The same numbers under another stated adjacency."""
        return dataclasses.replace(self, adjacency=adjacency)

    def __str__(self) -> str:
        who = f"under {self.adjacency}" if self.adjacency else "adjacency not stated"
        return f"{self.describe()}, {who}"

    def to_dict(self) -> dict[str, Any]:
        """A plain record; `guarantee_from_dict` of core/records.py reads it back."""
        record: dict[str, Any] = {"kind": type(self).__name__}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.name == "adjacency":
                record["adjacency"] = value.to_dict() if value else None
            else:
                record[item.name.rstrip("_")] = value
        return record


def _type_one_errors(alpha: Any) -> np.ndarray:
    errors = np.asarray(alpha, dtype=float)
    if errors.size and not (np.all(errors >= 0) and np.all(errors <= 1)):
        raise PrivacyParameterError("A type I error lies in [0, 1].")
    return errors


def _like_input(values: np.ndarray, given: Any) -> Any:
    return float(values) if np.ndim(given) == 0 else values


def mu_of_pure(eps: float) -> float:
    """The least μ that every ε-DP act has, Φ(μ/2) = 1/(1+e^-ε): where the two curves meet the diagonal. Rounded up.

    Small ε by the inverse error function, since Φ⁻¹ near ½ has lost their digits; large ε from the small tail.
    """
    if eps < 1:
        return round_up(2 * math.sqrt(2) * float(erfinv(math.tanh(eps / 2))))
    return round_up(-2 * float(ndtri(math.exp(-eps) / (1 + math.exp(-eps)))))


def _two_point_delta(eps: float, delta: float, epsilon: float) -> float:
    """δ(ε) of the worst (eps, delta)-DP mechanism (Kairouz, Oh & Viswanath 2015, Thm 3.1)."""
    if epsilon >= eps:
        return delta
    # (e^eps - e^ε)/(1 + e^eps), written without overflow.
    spread = -math.expm1(epsilon - eps) / (1 + math.exp(-eps))
    return min(1.0, round_up(delta + (1 - delta) * spread))


def _two_point_epsilon(eps: float, delta: float, wanted: float) -> float:
    if wanted < delta:
        return math.inf
    if wanted == delta:
        return eps
    share = (wanted - delta) / (1 - delta) * (1 + math.exp(-eps))
    return 0.0 if share >= 1 else max(0.0, min(eps, round_up(eps + math.log1p(-share))))


def _two_point_tradeoff(eps: float, delta: float, alpha: Any) -> Any:
    errors = _type_one_errors(alpha)
    lines = np.maximum(1 - delta - np.exp(eps) * errors, np.exp(-eps) * (1 - delta - errors))
    return _like_input(np.maximum(lines, 0.0), alpha)


@dataclass(frozen=True)
class PureDP(Guarantee):
    """ε-differential privacy: no event becomes more than e^ε times likelier by one change.

    >>> print(PureDP(0.5))
    0.5-DP, adjacency not stated
    >>> round(PureDP(1.0).advantage(), 4)
    0.4621
    """

    eps: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", positive(self.eps, "epsilon"))

    @property
    def stated(self) -> tuple[float, float]:
        return self.eps, 0.0

    def delta(self, epsilon: float) -> float:
        return _two_point_delta(self.eps, 0.0, at_least_zero(epsilon, "epsilon"))

    def epsilon(self, delta: float) -> float:
        return _two_point_epsilon(self.eps, 0.0, probability(delta))

    def rdp(self, alpha: float) -> float:
        return two_point_rdp(self.eps, checked_order(alpha))

    def tradeoff(self, alpha: Any) -> Any:
        return _two_point_tradeoff(self.eps, 0.0, alpha)

    def describe(self) -> str:
        return f"{self.eps:.6g}-DP"

    @property
    def _tight(self) -> bool:
        return True

    def _implies(self, other: Guarantee) -> bool | None:
        match other:
            case GaussianDP(mu=mu):
                # f_ε is piecewise linear with its kink on the diagonal and G_μ is convex: compare at the kink.
                return mu_of_pure(self.eps) <= mu
            case ZCDP(rho=rho):
                if self.eps**2 / 2 <= rho:  # Bun & Steinke 2016, Prop. 3.3
                    return True
                return False if self.eps * math.tanh(self.eps / 2) > rho else None  # limit of ε(α)/α at α = 1
        return super()._implies(other)


@dataclass(frozen=True)
class ApproxDP(Guarantee):
    """(ε, δ)-differential privacy.

    >>> print(ApproxDP(1.0, 1e-6))
    (1, 1e-06)-DP, adjacency not stated
    """

    eps: float
    delta_: float

    def __init__(self, eps: float, delta: float, *, adjacency: Adjacency | None = None) -> None:
        object.__setattr__(self, "eps", positive(eps, "epsilon"))
        object.__setattr__(self, "delta_", probability(delta))
        object.__setattr__(self, "adjacency", adjacency)

    def under(self, adjacency: Adjacency | None) -> ApproxDP:
        return ApproxDP(self.eps, self.delta_, adjacency=adjacency)

    @property
    def stated(self) -> tuple[float, float]:
        return self.eps, self.delta_

    def delta(self, epsilon: float) -> float:
        return _two_point_delta(self.eps, self.delta_, at_least_zero(epsilon, "epsilon"))

    def epsilon(self, delta: float) -> float:
        return _two_point_epsilon(self.eps, self.delta_, probability(delta))

    def rdp(self, alpha: float) -> float:
        checked_order(alpha)
        return math.inf if self.delta_ > 0 else two_point_rdp(self.eps, alpha)

    def tradeoff(self, alpha: Any) -> Any:
        return _two_point_tradeoff(self.eps, self.delta_, alpha)

    def describe(self) -> str:
        return f"({self.eps:.6g}, {self.delta_:.6g})-DP"

    @property
    def _tight(self) -> bool:
        return True

    def _implies(self, other: Guarantee) -> bool | None:
        if self.delta_ == 0:
            return PureDP(self.eps)._implies(other)
        if isinstance(other, GaussianDP | ZCDP):
            return False  # with probability δ anything may happen, which neither allows
        return super()._implies(other)


@dataclass(frozen=True)
class GaussianDP(Guarantee):
    """μ-Gaussian privacy: as hard to tell apart as N(0,1) from N(μ,1) (Dong, Roth & Su 2022).

    >>> GaussianDP(1.0).delta(1.0) < 0.127
    True
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive(self.mu, "mu"))

    def delta(self, epsilon: float) -> float:
        return gaussian_delta(self.mu, at_least_zero(epsilon, "epsilon"))

    def epsilon(self, delta: float) -> float:
        return gaussian_epsilon(self.mu, delta)

    def rdp(self, alpha: float) -> float:
        return round_up(checked_order(alpha) * self.mu**2 / 2)

    def tradeoff(self, alpha: Any) -> Any:
        errors = _type_one_errors(alpha)
        return _like_input(np.asarray(ndtr(ndtri(1 - errors) - self.mu)), alpha)

    def describe(self) -> str:
        return f"{self.mu:.6g}-Gaussian DP"

    @property
    def _tight(self) -> bool:
        return True

    def _implies(self, other: Guarantee) -> bool | None:
        match other:
            case GaussianDP(mu=mu):
                return self.mu <= mu
            case ZCDP(rho=rho):
                return self.mu**2 / 2 <= rho
            case RenyiDP(alpha=alpha, eps=eps):
                return alpha * self.mu**2 / 2 <= eps
        return super()._implies(other)


@dataclass(frozen=True)
class ZCDP(Guarantee):
    """ρ-zero-concentrated privacy: Rényi ε(α) ≤ ρα at every order (Bun & Steinke 2016)."""

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive(self.rho, "rho"))

    def delta(self, epsilon: float) -> float:
        return delta_from_curve(self._curve, at_least_zero(epsilon, "epsilon"))

    def epsilon(self, delta: float) -> float:
        return epsilon_from_curve(self._curve, probability(delta))

    def rdp(self, alpha: float) -> float:
        return round_up(checked_order(alpha) * self.rho)

    def _curve(self, alpha: np.ndarray) -> np.ndarray:
        return alpha * self.rho * (1 + 1e-12)

    def describe(self) -> str:
        return f"{self.rho:.6g}-zCDP"

    def _implies(self, other: Guarantee) -> bool | None:
        match other:
            case ZCDP(rho=rho):
                return self.rho <= rho
            case RenyiDP(alpha=alpha, eps=eps):
                return alpha * self.rho <= eps  # Gaussian noise attains the curve
            case PureDP() | ApproxDP(delta_=0.0):
                return False  # Gaussian noise has no pure ε
        return super()._implies(other)


@dataclass(frozen=True)
class RenyiDP(Guarantee):
    """Rényi privacy of one order: D_α ≤ ε, hence also at every smaller order (Mironov 2017)."""

    alpha: float
    eps: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checked_order(self.alpha))
        object.__setattr__(self, "eps", positive(self.eps, "epsilon"))
        if math.isinf(self.alpha):
            raise PrivacyParameterError("Rényi privacy of infinite order is pure privacy: use PureDP(eps).")

    def delta(self, epsilon: float) -> float:
        return delta_from_curve(self._curve, at_least_zero(epsilon, "epsilon"), self.alpha)

    def epsilon(self, delta: float) -> float:
        return epsilon_from_curve(self._curve, probability(delta), self.alpha)

    def rdp(self, alpha: float) -> float:
        return self.eps if checked_order(alpha) <= self.alpha else math.inf

    def _curve(self, alpha: np.ndarray) -> np.ndarray:
        return np.where(alpha <= self.alpha, self.eps, math.inf)

    def describe(self) -> str:
        return f"({self.alpha:.6g}, {self.eps:.6g})-Rényi DP"

    def _implies(self, other: Guarantee) -> bool | None:
        match other:
            case GaussianDP() | ZCDP() | PureDP() | ApproxDP(delta_=0.0):
                return False  # moments beyond the order may be infinite
            case RenyiDP(alpha=alpha, eps=eps):
                return False if alpha > self.alpha else (True if self.eps <= eps else None)
        return super()._implies(other)


@dataclass(frozen=True)
class NoGuarantee(Guarantee):
    """Nothing is promised, and why.

    >>> print(NoGuarantee("every margin is published exactly"))
    NO PRIVACY GUARANTEE (every margin is published exactly), adjacency not stated
    """

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise PrivacyParameterError("NoGuarantee needs a reason in words.")

    def delta(self, epsilon: float) -> float:
        at_least_zero(epsilon, "epsilon")
        return 1.0

    def epsilon(self, delta: float) -> float:
        probability(delta)
        return math.inf

    def rdp(self, alpha: float) -> float:
        checked_order(alpha)
        return math.inf

    def describe(self) -> str:
        return f"NO PRIVACY GUARANTEE ({self.reason})"
