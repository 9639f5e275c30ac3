"""What differs between draws of one law of noise and another: one final class a law, and nobody else asks for its name.

In:   a name as plans and studies write it.
Out:  DrawLaw: its norm, its currency, how far a share of a budget goes, its mechanism.
Not here: one draw (plan/draw.py), what its noise promises (its Event), the noise itself (mechanisms/).
Proof: docs/proofs/gaussian.md, docs/proofs/laplace.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from sfumato.core import ApproxDP, GaussianDP, Guarantee, PureDP
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.norms import L1, L2, Norm
from sfumato.core.special import ndtri
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.gaussian import Gaussian, largest_mu
from sfumato.mechanisms.gaussian_shares import GaussianShares
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.laplace_shares import LaplaceShares
from sfumato.questions.intervals import NoiseLaw
from sfumato.questions.moves import Moves

__all__ = ["LAWS", "DrawLaw", "GaussianDraws", "LaplaceDraws", "NoiseName", "draw_law"]

NoiseName = Literal["gaussian", "laplace"]
#: Of more Laplace variables than these the sum is normal enough for an interval (docs/proofs/centre_sums.md).
_NEARLY_NORMAL = 500


class DrawLaw(ABC):
    """Draws of one law: a share s of the budget buys an expected squared error of difficulty/s^degree. Abstract."""

    name: ClassVar[NoiseName]
    #: As a sentence writes it.
    title: ClassVar[str]
    mechanism: ClassVar[type[Gaussian] | type[Laplace]]
    #: What several institutions draw instead, each a share of it.
    shares: ClassVar[type[GaussianShares] | type[LaplaceShares]]
    #: In which neighbours are told apart.
    norm: ClassVar[Norm]
    degree: ClassVar[int]
    #: The variance of noise of scale 1.
    variance: ClassVar[float]
    #: What budgets are counted in.
    currency: ClassVar[str]
    #: Whether it keeps a promise without δ.
    pure: ClassVar[bool]
    #: Whether its noise may be correlated over several answers.
    correlates: ClassVar[bool]
    #: Whether a precision-weighted mean of such noise has the same law.
    closed: ClassVar[bool]
    #: What a reader who knows normal noise has to be told.
    caution: ClassVar[str] = ""

    @property
    def power(self) -> int:
        """Under the best split of a budget shares go by this root of the difficulties."""
        return self.degree + 1

    def sensitivity(self, moves: Moves) -> L1 | L2:
        """How far a question's moves are in the norm that this noise is measured by."""
        return moves.by(self.norm)

    def scale(self, sensitivity: float, share: float) -> float:
        """Of noise that costs this share; for predictions (draws are calibrated by the mechanism)."""
        return sensitivity / share ** (self.degree / 2)

    @abstractmethod
    def whole(self, guarantee: Guarantee) -> float:
        """The largest cost that keeps a promise, in the law's currency."""

    @abstractmethod
    def guarantee(self, share: float) -> Guarantee:
        """What a share of the budget promises, rounded against us."""

    @abstractmethod
    def spent(self, guarantee: Guarantee) -> float:
        """What an act of this law costs, in its currency."""

    @abstractmethod
    def composed(self, cost: Guarantee) -> Guarantee:
        """The cost of several such acts in the form in which it is compared with a promise."""

    @abstractmethod
    def noise(self, scale: float, variance: float) -> NoiseLaw:
        """Of the noise in one number."""

    @abstractmethod
    def summed(self, scale: float, variance: float, times: float) -> NoiseLaw:
        """Of the sum of `times` such noises, or a law that no interval is narrower for."""

    @abstractmethod
    def quantile(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of noise of scale 1."""

    @abstractmethod
    def ratio(self, epsilon: float, delta: float, multiple: float) -> float:
        """How many times smaller a scale may be where ε is multiplied and δ kept."""


@final
class GaussianDraws(DrawLaw):
    """Told apart in L2, counted in μ², which adds."""

    name = "gaussian"
    title = "Gaussian"
    mechanism = Gaussian
    shares = GaussianShares
    norm = L2
    degree = 1
    variance = 1.0
    currency = "μ²"
    pure = False
    correlates = True
    closed = True

    def whole(self, guarantee: Guarantee) -> float:
        return largest_mu(guarantee) ** 2

    def guarantee(self, share: float) -> Guarantee:
        return GaussianDP(math.sqrt(share) * (1 - 1e-15))

    def spent(self, guarantee: Guarantee) -> float:
        assert isinstance(guarantee, GaussianDP)
        return guarantee.mu**2

    def composed(self, cost: Guarantee) -> Guarantee:
        return cost

    def noise(self, scale: float, variance: float) -> NoiseLaw:
        return NoiseLaw(variance)

    def summed(self, scale: float, variance: float, times: float) -> NoiseLaw:
        return NoiseLaw(variance * times)

    def quantile(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(ndtri(uniform))

    def ratio(self, epsilon: float, delta: float, multiple: float) -> float:
        if delta == 0 or epsilon <= 0:
            return multiple
        return gaussian_mu(epsilon * multiple, delta) / gaussian_mu(epsilon, delta)


@final
class LaplaceDraws(DrawLaw):
    """Told apart in L1, counted in ε, which adds."""

    name = "laplace"
    title = "Laplace"
    mechanism = Laplace
    shares = LaplaceShares
    norm = L1
    degree = 2
    variance = 2.0
    currency = "ε"
    pure = True
    correlates = False
    closed = False
    caution = (
        "Laplace noise has heavier tails than Gaussian noise: a 95 % interval is ±2.12 standard deviations wide, "
        "not ±1.96, and 99.7 % needs ±4.11 instead of ±3."
    )

    def whole(self, guarantee: Guarantee) -> float:
        # A δ would allow a hair more than ε; whoever checks a sum of Laplace acts should only have to add.
        stated = isinstance(guarantee, PureDP | ApproxDP)
        return guarantee.eps if stated else largest_pure_epsilon(guarantee)

    def guarantee(self, share: float) -> Guarantee:
        return PureDP(share)

    def spent(self, guarantee: Guarantee) -> float:
        return guarantee.epsilon(0.0)

    def composed(self, cost: Guarantee) -> Guarantee:
        # A sum of ε decides at once; the exact profile of many Laplace acts would take a second to compute.
        return PureDP(cost.epsilon(0.0), adjacency=cost.adjacency)

    def noise(self, scale: float, variance: float) -> NoiseLaw:
        return NoiseLaw(laplace=(scale,))

    def summed(self, scale: float, variance: float, times: float) -> NoiseLaw:
        if times > _NEARLY_NORMAL:
            return NoiseLaw(variance * (times + 1))
        # Adding independent symmetric noise makes no interval narrower (docs/proofs/centre_sums.md).
        return NoiseLaw(laplace=(scale,) * math.ceil(times * (1 - 1e-12)))

    def quantile(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(uniform < 0.5, np.log(2 * uniform), -np.log(2 * (1 - uniform)))

    def ratio(self, epsilon: float, delta: float, multiple: float) -> float:
        return multiple


LAWS: dict[str, DrawLaw] = {law.name: law for law in (GaussianDraws(), LaplaceDraws())}


def draw_law(name: str) -> DrawLaw:
    """The law of a name.

    >>> draw_law("gaussian").currency, draw_law("laplace").pure
    ('μ²', True)
    """
    return LAWS[name]
