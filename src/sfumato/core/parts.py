"""The worst pair of outputs of one act, in the few forms that composition knows.

In:   nothing but numbers.
Out:  Part, with its Rényi curve and the zCDP and Gaussian parameters it implies; WorstPair, one final class a form.
Not here: adding parts up (core/compose.py), their privacy loss distributions (core/loss_distribution.py).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import round_up
from sfumato.core.events.learning import ObjectiveDP, objective_curve
from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, RenyiDP, mu_of_pure
from sfumato.core.renyi import laplace_curve, three_point_curve, two_point_curve
from sfumato.errors import PrivacyParameterError

__all__ = [
    "MANY",
    "BoxPair",
    "ConcentratedPair",
    "GaussianPair",
    "LaplacePair",
    "ObjectivePair",
    "Part",
    "RenyiPair",
    "ThreePointPair",
    "TwoPointPair",
    "WorstPair",
]


#: More Laplace acts or training runs than this are added up in a window (core/window.py).
MANY = 4096


@dataclass(frozen=True, order=True)
class Part:
    """The worst pair of outputs of one act, and how often it happened.

    `value` is μ, ε, ε, ε, the shift, μ, ρ or ε by kind; `extra` is δ for "two-point", the chance of an answer for
    "three-point", the strength for "box", the shift for "objective" and the order for "renyi".
    """

    kind: str
    value: float
    extra: float = 0.0
    count: int = 1

    def __post_init__(self) -> None:
        if not _valid(self):
            raise PrivacyParameterError("This is not the cost of any act.")

    @property
    def pair(self) -> WorstPair:
        """What parts of this kind have in common."""
        return _PAIRS[self.kind]

    def rho(self) -> float:
        """The zCDP of all `count` acts; ε-DP has ε²/2 (Bun & Steinke 2016, Prop. 3.3)."""
        degree = self.pair.degree_of_rho(self)
        if degree is None:
            return math.inf
        return self.count * (self.value if degree == 1 else self.value**2 / 2)

    def mu(self) -> float:
        """The μ of one of the acts; ε-DP has the μ whose curve meets the kink of its own."""
        return self.pair.mu(self)

    def square_of_mu(self) -> float:
        """μ² of all `count` acts (squares of μ add)."""
        return self.count * self.mu() ** 2

    def curve(self, alpha: np.ndarray) -> np.ndarray:
        """Rényi ε of all `count` acts at these orders."""
        return self.count * self.pair.curve(self, alpha)


class WorstPair(ABC):
    """One form of the worst pair of outputs: all that composition asks of it. Abstract."""

    kind: ClassVar[str]
    #: Whether its privacy loss has a law that can be added to others, and into how many steps of it.
    has_law: ClassVar[bool] = True
    steps: ClassVar[int] = 50
    #: Whether it is an (ε, δ) by itself.
    has_epsilon: ClassVar[bool] = False
    #: Whether one value stands for any number of acts.
    repeats_itself: ClassVar[bool] = False

    def allows(self, extra: float) -> bool:
        """Whether its second number may be this one."""
        return True

    def has_curve(self, part: Part) -> bool:
        """Whether it has a finite Rényi curve."""
        return True

    @abstractmethod
    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        """Rényi ε of one act at these orders."""

    def degree_of_rho(self, part: Part) -> Literal[1, 2] | None:
        """1 where ρ is the value, 2 where it is half its square, None where there is none."""
        return None

    def mu(self, part: Part) -> float:
        """The μ of one act; infinite where there is none."""
        return math.inf

    def failure(self, part: Part) -> float:
        """The chance of an act to fail, where failing has a chance of its own."""
        return 0.0

    def stated_delta(self, part: Part) -> float:
        """The δ beside the ε of one act, where it has an ε."""
        return part.extra

    def reach(self, part: Part) -> tuple[float, float]:
        """How far the losses of one act spread, and how far their mean lies beyond."""
        return part.value, 0.0

    def span(self, part: Part) -> float:
        """How far the losses of all acts together are added up."""
        return math.fsum(self.reach(part)) * part.count

    def alone(self, part: Part, adjacency: Adjacency | None) -> Guarantee | None:
        """The plain guarantee it is where nothing is added to it; None where there is none."""
        return None

    def several(self, part: Part, units: float) -> Guarantee | None:
        """One of the acts when so many units change at once (docs/proofs/pufferfish.md); None where unknown."""
        return None

    def twice(self, part: Part) -> Part | None:
        """Two changes of the same act: group privacy for two (docs/proofs/composition.md); None where unknown."""
        return None


@final
class GaussianPair(WorstPair):
    """Two normal laws, μ standard deviations apart."""

    kind = "gaussian"

    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        return alpha * (part.value**2 / 2)

    def degree_of_rho(self, part: Part) -> Literal[1, 2] | None:
        return 2 if part.extra == 0 else None

    def mu(self, part: Part) -> float:
        return part.value

    def reach(self, part: Part) -> tuple[float, float]:
        return part.value, part.value**2 / 2  # losses have mean μ²/2 and deviation μ

    def alone(self, part: Part, adjacency: Adjacency | None) -> Guarantee | None:
        return GaussianDP(part.value, adjacency=adjacency)

    def several(self, part: Part, units: float) -> Guarantee | None:
        return GaussianDP(round_up(part.value * units, 1e-15))

    def twice(self, part: Part) -> Part | None:
        return Part(part.kind, 2 * part.value, part.extra, part.count)


@final
class LaplacePair(WorstPair):
    """Two Laplace laws, ε scales apart."""

    kind = "laplace"
    has_epsilon = True

    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        return laplace_curve(part.value, alpha)

    def span(self, part: Part) -> float:
        """Very many are added up where they almost surely lie: 8.6 deviations of at most ε on either side."""
        return part.value * (part.count if part.count <= MANY else 18 * math.sqrt(part.count))

    def degree_of_rho(self, part: Part) -> Literal[1, 2] | None:
        return 2 if part.extra == 0 else None

    def mu(self, part: Part) -> float:
        return mu_of_pure(part.value) if part.extra == 0 else math.inf

    def alone(self, part: Part, adjacency: Adjacency | None) -> Guarantee | None:
        return _stated(part, adjacency)

    def several(self, part: Part, units: float) -> Guarantee | None:
        return PureDP(part.value * units)  # several numbers may share the move: of them only the ε is known

    def twice(self, part: Part) -> Part | None:
        return Part(part.kind, 2 * part.value, part.extra, part.count)


@final
class TwoPointPair(WorstPair):
    """Randomised response that fails with probability δ: the worst that (ε, δ)-DP can be."""

    kind = "two-point"
    has_epsilon = True
    steps = 400

    def has_curve(self, part: Part) -> bool:
        return part.extra == 0

    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        return two_point_curve(part.value, alpha) if part.extra == 0 else np.full_like(alpha, math.inf)

    def degree_of_rho(self, part: Part) -> Literal[1, 2] | None:
        return 2 if part.extra == 0 else None

    def mu(self, part: Part) -> float:
        return mu_of_pure(part.value) if part.extra == 0 else math.inf

    def failure(self, part: Part) -> float:
        return part.extra

    def alone(self, part: Part, adjacency: Adjacency | None) -> Guarantee | None:
        return _stated(part, adjacency)

    def several(self, part: Part, units: float) -> Guarantee | None:
        return PureDP(part.value * units) if part.extra == 0 else None

    def twice(self, part: Part) -> Part | None:
        failing = round_up((1 + math.exp(min(part.value, 700.0))) * part.extra)
        return Part(part.kind, 2 * part.value, failing, part.count) if failing < 1 else None


@final
class ThreePointPair(WorstPair):
    """Randomised response that answers with a chance and says nothing otherwise.

    The worst an act can be that keeps ε and a distance in total variation (docs/proofs/composition.md).
    """

    kind = "three-point"
    has_epsilon = True
    steps = 400

    def allows(self, extra: float) -> bool:
        return 0 < extra <= 1

    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        return three_point_curve(part.value, part.extra, alpha)

    def degree_of_rho(self, part: Part) -> Literal[1, 2] | None:
        return 2

    def mu(self, part: Part) -> float:
        return mu_of_pure(part.value)

    def stated_delta(self, part: Part) -> float:
        return 0.0

    def alone(self, part: Part, adjacency: Adjacency | None) -> Guarantee | None:
        return PureDP(part.value, adjacency=adjacency)

    def several(self, part: Part, units: float) -> Guarantee | None:
        return PureDP(part.value * units)

    def twice(self, part: Part) -> Part | None:
        return Part("two-point", 2 * part.value, 0.0, part.count)


@final
class BoxPair(WorstPair):
    """Two copies of box noise, drawn by whole-number weights, a shift apart."""

    kind = "box"

    def has_curve(self, part: Part) -> bool:
        return False

    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        return np.full_like(alpha, math.inf)

    def failure(self, part: Part) -> float:
        """All but what lies within 2 - shift half widths of one wall: there alone its moved copy has anything.

        For a box without stiffness; with it less lies there.
        """
        left = max(0.0, 2 - part.value)
        return 1 - (left / 2 - math.sin(math.pi * left) / (2 * math.pi)) if left < 1 else 0.0

    def reach(self, part: Part) -> tuple[float, float]:
        return 40.0, 0.0  # near a wall box noise loses tens of ε

    def twice(self, part: Part) -> Part | None:
        return Part(part.kind, 2 * part.value, part.extra, part.count)


@final
class ObjectivePair(WorstPair):
    """One training run by Gaussian objective perturbation."""

    kind = "objective"
    repeats_itself = True

    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        return objective_curve(part.value, part.extra, alpha)

    def reach(self, part: Part) -> tuple[float, float]:
        return part.value, part.value**2 / 2  # those of a normal loss that is cut below 0

    def span(self, part: Part) -> float:
        return super().span(part) if part.count <= MANY else 20 * part.value * math.sqrt(part.count)

    def alone(self, part: Part, adjacency: Adjacency | None) -> Guarantee | None:
        return ObjectiveDP(part.value, part.extra, part.count, adjacency=adjacency)


@final
class ConcentratedPair(WorstPair):
    """Nothing but ρ of zCDP is known of it."""

    kind = "concentrated"
    has_law = False

    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        return alpha * part.value

    def degree_of_rho(self, part: Part) -> Literal[1, 2] | None:
        return 1

    def alone(self, part: Part, adjacency: Adjacency | None) -> Guarantee | None:
        return ZCDP(part.value, adjacency=adjacency)

    def several(self, part: Part, units: float) -> Guarantee | None:
        return ZCDP(round_up(part.value * units**2, 1e-15))

    def twice(self, part: Part) -> Part | None:
        return Part(part.kind, 4 * part.value, 0.0, part.count)


@final
class RenyiPair(WorstPair):
    """Nothing but one point of its Rényi curve is known of it."""

    kind = "renyi"
    has_law = False

    def curve(self, part: Part, alpha: np.ndarray) -> np.ndarray:
        return np.where(alpha <= part.extra, part.value, math.inf)

    def alone(self, part: Part, adjacency: Adjacency | None) -> Guarantee | None:
        return RenyiDP(part.extra, part.value, adjacency=adjacency)


_PAIRS: dict[str, WorstPair] = {
    pair.kind: pair
    for pair in (
        GaussianPair(),
        LaplacePair(),
        TwoPointPair(),
        ThreePointPair(),
        BoxPair(),
        ObjectivePair(),
        ConcentratedPair(),
        RenyiPair(),
    )
}


def _stated(part: Part, adjacency: Adjacency | None) -> Guarantee:
    if part.extra:
        return ApproxDP(part.value, part.extra, adjacency=adjacency)
    return PureDP(part.value, adjacency=adjacency)


def _valid(part: Part) -> bool:
    return (
        part.kind in _PAIRS
        and all(isinstance(number, float | int) and math.isfinite(number) for number in (part.value, part.extra))
        and part.value > 0
        and part.extra >= 0
        and _PAIRS[part.kind].allows(part.extra)
        and type(part.count) is int
        and part.count >= 1
    )
