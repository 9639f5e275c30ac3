"""The price of keeping the best of a random number of private runs.

In:   the cost of one run as a law of privacy losses, how many runs are wanted on average.
Out:  RunCost with its Rényi curve and profile; the total of all runs; exact draws of their number.
Not here: the runs themselves (learn/search.py).
Proof: docs/proofs/private_search.md (cited: Liu & Talwar 2019; Papernot & Steinke 2022, Thms 2 and 6)

Pure privacy: the number of runs is geometric and ε-DP runs cost 3ε together, whatever their expected number.
Otherwise it is Poisson(m): if one run has the Rényi curve ε₁(α), the best of them has

    ε(α) ≤ ε₁(α) + m·δ₁ + ln(m)/(α-1),    δ₁ = one run's δ at ln(1 + 1/(α-1)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr

from sfumato.core.events.event import Event, GaussianEvent, Repeated
from sfumato.core.events.joint import JointObjectiveEvent
from sfumato.core.events.learning import ObjectiveDP, ObjectivePerturbationEvent, objective_loss
from sfumato.core.guarantee import PureDP
from sfumato.core.renyi import two_point_rdp
from sfumato.errors import UnprovedError
from sfumato.mechanisms.bits import Bits

__all__ = ["RunCost", "geometric", "poisson", "poisson_epsilon"]

_ORDERS = 1 + np.geomspace(0.02, 1000, 150)
_CELLS = 64
#: More ε-DP acts than this in a run are not added up one by one.
_MOST_PURE = 6
_ROUNDING = 3e-4


def _training(event: Event, count: int) -> ObjectiveDP | JointObjectiveEvent | None:
    """A training with Gaussian noise on its objective, as a run can have one; None for other events."""
    if isinstance(event, ObjectivePerturbationEvent) and event.is_gaussian:
        return ObjectiveDP(event.moved, event.shift, count)
    if isinstance(event, JointObjectiveEvent) and event.is_gaussian and count == 1:
        return event
    return None


@dataclass(frozen=True)
class RunCost:
    """One run: Gaussian acts of total `mu`, `objective` (Gaussian objective perturbation), `pure` acts by their ε."""

    mu: float
    objective: ObjectiveDP | JointObjectiveEvent | None = None
    pure: tuple[float, ...] = ()

    @classmethod
    def of(cls, events: Iterable[Event | Repeated], score_mu: float) -> RunCost:
        """The cost of these events and of a score with Gaussian noise."""
        squares, objective, pure = [score_mu**2], None, []
        for item in events:
            event, count = (item.event, item.count) if isinstance(item, Repeated) else (item, 1)
            if isinstance(event, GaussianEvent):
                squares.append(count * event.mu**2)
            elif objective is None and (trained := _training(event, count)) is not None:
                objective = trained
            elif isinstance(cost := event.guarantee(), PureDP) and len(pure) + count <= _MOST_PURE:
                pure += [cost.eps] * count
            else:
                raise UnprovedError(f"A {type(event).__name__} has no place in a run of random stopping yet.")
        return cls(math.sqrt(math.fsum(squares)), objective, tuple(pure))

    def rdp(self, alpha: float) -> float:
        others = self.objective.rdp(alpha) if self.objective else 0.0
        return alpha * self.mu**2 / 2 + others + math.fsum(two_point_rdp(epsilon, alpha) for epsilon in self.pure)

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """δ at each ε; several models are counted with their Rényi curve, which is looser and much faster."""
        if self.pure and not self._by_curve:
            # The worst ε-DP act loses ε with odds e^ε : 1, else gains it; losses are rounded up as core's grid rounds.
            first, rest, near = self.pure[0], RunCost(self.mu, self.objective, self.pure[1:]), epsilons - _ROUNDING
            lost = 1 / (1 + math.exp(-first))
            return lost * rest.deltas(near - first) + (1 - lost) * rest.deltas(near + first)
        if self.objective is None:
            return _gaussian(self.mu, epsilons)
        if self._by_curve or not isinstance(self.objective, ObjectiveDP):
            return np.array([self._delta_by_curve(float(epsilon)) for epsilon in epsilons])
        grid = objective_loss(self.objective.mu, self.objective.shift, self.objective.mu / _CELLS)
        losses = grid.lowest + grid.width * np.arange(grid.masses.size)
        return _gaussian(self.mu, epsilons[:, None] - losses[None, :]) @ grid.masses + grid.infinite

    @property
    def _by_curve(self) -> bool:
        """Whether several models, or several classes at once, leave nothing but the Rényi curve."""
        return self.objective is not None and not (
            isinstance(self.objective, ObjectiveDP) and self.objective.count == 1
        )

    @cached_property
    def curve(self) -> np.ndarray:
        """The Rényi ε at every order that is tried."""
        return np.array([self.rdp(float(order)) for order in _ORDERS])

    def _delta_by_curve(self, epsilon: float) -> float:
        logs = (_ORDERS - 1) * (self.curve - epsilon) + _ORDERS * np.log1p(-1 / _ORDERS) - np.log(_ORDERS - 1)
        return math.exp(min(0.0, float(logs.min())))


def _gaussian(mu: float, epsilon: np.ndarray) -> np.ndarray:
    z = epsilon / mu - mu / 2
    return np.maximum(ndtr(-z) - np.exp(np.minimum(epsilon + log_ndtr(-z - mu), 0.0)), 0.0)


def poisson_epsilon(one: RunCost, delta: float, expected: float) -> float:
    """ε at δ of the best of Poisson(`expected`) runs.

    >>> 1.0 < poisson_epsilon(RunCost(0.2), 1e-6, 10.0) < 3.0
    True
    """
    near = one.deltas(np.log1p(1 / (_ORDERS - 1)))
    curve = one.curve + expected * near + math.log(expected) / (_ORDERS - 1)
    # Canonne, Kamath & Steinke 2020, Prop. 12.
    epsilons = curve + np.log1p(-1 / _ORDERS) - np.log(delta * _ORDERS) / (_ORDERS - 1)
    known = epsilons[~np.isnan(epsilons)]  # an order of which nothing is known proves nothing, least of all 0
    return max(0.0, float(known.min(initial=math.inf))) * (1 + 1e-9)


def geometric(expected: int, bits: Bits) -> int:
    """At least 1, `expected` on average, exactly."""
    runs = 1
    while bits.below(expected, 1)[0] != 0:
        runs += 1
    return runs


def poisson(expected: int, bits: Bits) -> int:
    """Poisson of a whole mean, exactly, as a sum of Poisson(1) numbers.

    >>> draws = [poisson(3, Bits(seed)) for seed in range(2000)]
    >>> 2.85 < sum(draws) / 2000 < 3.15
    True
    """
    return sum(_poisson_of_one(bits) for _ in range(expected))


def _poisson_of_one(bits: Bits) -> int:
    """Duchon & Duvignau 2016: by comparing uniform integers only."""
    result, bound, past = 1, 1, 0
    while True:
        drawn = int(bits.below(bound + 1, 1)[0])
        if drawn < bound and drawn < past:
            return result
        if drawn == bound:
            result += 1
        else:
            result, past = result - 1, bound + 1
        bound += 1
