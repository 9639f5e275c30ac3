"""What differs between draws of one law of noise and another; nobody else asks for a law's name.

In:   nothing.
Out:  DrawLaw: its norm, its currency, how far a share of a budget goes, its mechanism.
Not here: the laws (beside this file), one draw (plan/draw.py), what its noise promises (its Event).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core import Guarantee
from sfumato.core.norms import L1, L2, Norm
from sfumato.mechanisms.additive import IndependentNoise
from sfumato.mechanisms.grid_law import grid_law
from sfumato.mechanisms.shares import Shares
from sfumato.questions.intervals import NoiseLaw
from sfumato.questions.moves import Moves

__all__ = ["DrawLaw"]


class DrawLaw(ABC):
    """Draws of one law: a share s of the budget buys an expected squared error of difficulty/s^degree. Abstract."""

    name: ClassVar[str]
    mechanism: ClassVar[type[IndependentNoise]]
    #: What several institutions draw instead, each a share of it; without, it is not drawn over centres.
    shares: ClassVar[type[Shares] | None] = None
    #: In which neighbours are told apart.
    norm: ClassVar[Norm]
    degree: ClassVar[int]
    #: The variance of noise of scale 1.
    variance: ClassVar[float]
    #: What budgets are counted in.
    currency: ClassVar[str]
    #: Whether it keeps a promise without δ.
    pure: ClassVar[bool]
    #: Whether sums with it that exclude each other are priced together (core/events/together.py).
    together: ClassVar[bool] = False
    #: Whether its noise may be correlated over several answers.
    correlates: ClassVar[bool]
    #: Whether a precision-weighted mean of such noise has the same law.
    closed: ClassVar[bool]
    #: What a reader who knows normal noise has to be told.
    caution: ClassVar[str] = ""

    @property
    def title(self) -> str:
        """As a sentence writes it."""
        return grid_law(self.name).title

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
