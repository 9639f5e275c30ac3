"""A promise to people who depend on each other: what is learned of one, whatever the others tell of them.

In:   (ε, δ) and a declared class of dependences.
Out:  Pufferfish, a Guarantee; `together`, what a mechanism costs that was measured for one unit when k change at once.
Not here: the classes (core/dependence.py), how acts add up (core/compose.py).
Proof: docs/proofs/pufferfish.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive, probability, round_down, round_up
from sfumato.core.compose import ComposedDP, compose
from sfumato.core.dependence import Dependence, dependence_from_dict
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from sfumato.errors import PrivacyParameterError

__all__ = ["Pufferfish", "together"]

#: Room for the last digits of another road to the same number; how ε grows where only a chain of units is known.
_ROOM, _GROWN, _TRIED = 1e-9, 1.05, 150


@dataclass(frozen=True)
class Pufferfish(Guarantee):
    """(ε, δ)-Pufferfish privacy (Kifer & Machanavajjhala 2014) for a declared class of dependences.

    For every unit, every two values of its data, every law of the class and every event S:
    Pr(S | one value) ≤ e^ε Pr(S | the other) + δ. `adjacency` says what one unit is; events are stated for it alone.

    >>> from sfumato.core.dependence import Groups
    >>> promise = Pufferfish(1.0, 1e-6, Groups(4))
    >>> print(promise)
    (1, 1e-06)-Pufferfish for groups of at most 4 that depend on each other in any way, adjacency not stated
    >>> GaussianDP(0.0591).implies(promise), GaussianDP(0.2).implies(promise)
    (True, None)
    """

    eps: float
    delta_: float
    dependence: Dependence

    def __init__(
        self,
        eps: float,
        delta: float,
        dependence: Dependence | Mapping[str, Any],
        *,
        adjacency: Adjacency | None = None,
    ) -> None:
        known = dependence if isinstance(dependence, Dependence) else dependence_from_dict(dependence)
        object.__setattr__(self, "eps", positive(eps, "epsilon"))
        object.__setattr__(self, "delta_", probability(delta))
        object.__setattr__(self, "dependence", known)
        object.__setattr__(self, "adjacency", adjacency)
        if known.flat >= self.eps:
            raise PrivacyParameterError(
                f"What lies beyond the window may tell {known.flat:.4g} of ε, and the promise has {self.eps:g}. Take a "
                "longer window or a larger ε. Nothing was spent."
            )

    def under(self, adjacency: Adjacency | None) -> Pufferfish:
        return Pufferfish(self.eps, self.delta_, self.dependence, adjacency=adjacency)

    def at(self, epsilon: float) -> Pufferfish:
        """The same promise with another ε."""
        chosen = self.dependence.for_point(epsilon, self.delta_)
        return Pufferfish(epsilon, self.delta_, chosen, adjacency=self.adjacency)

    def share(self, part: float) -> Pufferfish:
        """A part of what acts may use, the flat part being paid: so many of them together keep the whole."""
        flat = self.dependence.flat
        return Pufferfish(flat + self.left * part, self.delta_ * part, self.dependence, adjacency=self.adjacency)

    @property
    def units(self) -> float:
        """How many single changes lead from one window to another; where presence is hidden a unit leaves and comes."""
        hidden = self.adjacency is not None and self.adjacency.relation == "add-remove"
        return self.dependence.together * (2 if hidden else 1)

    @property
    def left(self) -> float:
        """The ε that acts may use, the flat part being paid."""
        return round_down(self.eps - self.dependence.flat) if self.dependence.flat else self.eps

    @property
    def point(self) -> PureDP | ApproxDP:
        """The same statement about two laws of what is seen, as (ε, δ)."""
        if self.delta_ > 0:
            return ApproxDP(self.eps, self.delta_, adjacency=self.adjacency)
        return PureDP(self.eps, adjacency=self.adjacency)

    @property
    def stated(self) -> tuple[float, float]:
        return self.eps, self.delta_

    def delta(self, epsilon: float) -> float:
        return self.point.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        return self.point.epsilon(delta)

    def rdp(self, alpha: float) -> float:
        return self.point.rdp(alpha)

    def tradeoff(self, alpha: Any) -> Any:
        return self.point.tradeoff(alpha)

    def describe(self) -> str:
        stated = f"({self.eps:.6g}, {self.delta_:.6g})" if self.delta_ else f"{self.eps:.6g}"
        return f"{stated}-{self.dependence.title} for {self.dependence.words}"

    def implied_by(self, cost: Guarantee) -> bool | None:
        """The window theorem: what is (ε-e, δ)-DP for all units of a window keeps the promise for one of them."""
        if isinstance(cost, Pufferfish):
            same = cost.dependence == self.dependence
            return True if same and cost.point.under(None).implies(self.point.under(None)) is True else None
        units = self.units
        if self.dependence.single and not isinstance(cost, GaussianDP | PureDP):
            return None  # the distance is that of one number with one noise
        if self.delta_ == 0:
            return True if cost.epsilon(0.0) * units <= self.left else None
        moved = together(cost, units)
        delta = _chained_delta(cost, units, self.left) if moved is None else moved.delta(self.left)
        return True if delta <= self.delta_ else None

    def _implies(self, other: Guarantee) -> bool | None:
        return None  # nothing is claimed beyond what it says; what is drawn has a cost of its own

    @classmethod
    def kept_by(cls, cost: Guarantee, dependence: Dependence, delta: float) -> Pufferfish | None:
        """About the smallest promise for these dependences that a cost for one unit keeps; None: none was found.

        >>> from sfumato.core.dependence import Reach
        >>> print(Pufferfish.kept_by(PureDP(0.1), Reach(4), 1e-6))
        0.4-DP for one whose data are part of at most 4 rows, adjacency not stated
        """
        units, pure = dependence.together, math.isfinite(cost.epsilon(0.0))
        moved = cost if pure else together(cost, units) or cost
        least = moved.epsilon(0.0 if pure else delta) * (units if pure or moved is cost else 1)
        for step in range(_TRIED):
            epsilon = dependence.flat + max(least, 1e-12) * (1 + _ROOM) * _GROWN**step
            promise = cls(epsilon, 0.0 if pure else delta, dependence, adjacency=cost.adjacency)
            if promise.implied_by(cost) is True:
                return promise
        return None

    def largest_mu(self) -> float:
        """The largest μ of one unit that keeps it."""
        return round_down(gaussian_mu(self.left, self.delta_) / self.units, 1e-14)

    def largest_pure(self) -> float:
        """The largest ε of one unit that keeps it without a δ."""
        return round_down(self.left / self.units, 1e-14)

    def for_one(self) -> PureDP | ApproxDP:
        """(ε, δ) of one unit that keeps it, whatever the mechanism: the k-th part of ε, and less than that of δ."""
        if self.delta_ == 0:
            return PureDP(self.largest_pure(), adjacency=self.adjacency)
        if self.units == 1:
            return ApproxDP(self.left, self.delta_, adjacency=self.adjacency)
        eps = self.largest_pure()
        factor = _raised(eps, self.units)
        return ApproxDP(eps, round_down(self.delta_ / factor, 1e-9), adjacency=self.adjacency)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "Pufferfish",
            "adjacency": self.adjacency.to_dict() if self.adjacency else None,
            "eps": self.eps,
            "delta": self.delta_,
            "dependence": self.dependence.to_dict(),
        }


def _raised(eps: float, units: float) -> float:
    """1 + e^ε + … + e^(k-1)ε: by what δ grows when k units change one after the other."""
    return round_up(math.expm1(units * eps) / math.expm1(eps), 1e-11)


def together(cost: Guarantee, units: float) -> Guarantee | None:
    """What a mechanism whose cost for one unit is known costs when `units` of them change at once; None: no such form.

    μ, ε and √ρ grow by the factor (Dong, Roth & Su 2022, Thm 2.14; Bun & Steinke 2016, Prop. 1.9), never by its root:
    all may move in the same direction.

    >>> together(GaussianDP(0.1), 4)
    GaussianDP(adjacency=None, mu=0.4...)
    >>> together(PureDP(0.25), 4).eps
    1.0
    """
    if units == 1:
        return cost
    match cost:
        case GaussianDP(mu=mu):
            return GaussianDP(round_up(mu * units, 1e-15), adjacency=cost.adjacency)
        case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
            return PureDP(eps * units, adjacency=cost.adjacency)
        case ZCDP(rho=rho):
            return ZCDP(round_up(rho * units**2, 1e-15), adjacency=cost.adjacency)
        case ComposedDP():
            return _acts_together(cost, units)
    return None


def _acts_together(cost: ComposedDP, units: float) -> Guarantee | None:
    found = [(part.pair.several(part, units), part.count) for part in cost.parts]
    known = [one for one, count in found if one is not None for _ in range(count)]
    whole = all(one is not None for one, _ in found)
    return compose(known).under(cost.adjacency) if whole else None


def _chained_delta(cost: Guarantee, units: float, epsilon: float) -> float:
    """Of any cost, one unit after the other: δ(ε) ≤ δ₁(ε/k)·(1 + e^(ε/k) + … + e^((k-1)ε/k))."""
    each = round_down(epsilon / units, 1e-14)
    return min(1.0, round_up(cost.delta(each) * _raised(each, units)))
