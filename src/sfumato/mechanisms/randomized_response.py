"""Publish a category as it is or another one at random, record by record.

In:   category codes 0 … k-1.
Out:  codes; RandomizedResponseEvent for the ledger.
Not here: which columns get which share of a budget (release/).
Proof: docs/proofs/randomized_response.md
Reference: Warner 1965; Kairouz, Bonawitz & Ramage 2016 (k answers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive
from sfumato.core.events.event import RandomizedResponseEvent
from sfumato.core.guarantee import Guarantee
from sfumato.errors import DataError, PrivacyParameterError
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.mechanism import Mechanism, codes_array

__all__ = ["RandomizedResponse"]

_LARGEST_TOTAL = 1 << 62
_LARGEST_EPSILON = 40.0


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Keeps a category with weight `keep`, turns it into each other one with weight `move`; both whole numbers.

    ε = ln(keep/move) exactly, since the drawing is done in whole numbers too.

    >>> from sfumato.core import REPLACE_ONE, PureDP
    >>> response = RandomizedResponse.for_guarantee(PureDP(1.0), 1.0, REPLACE_ONE, categories=4)
    >>> response.guarantee().eps <= 1.0
    True
    >>> response([0, 3, 1]).shape
    (3,)
    """

    proof: ClassVar[str] = "randomized_response"

    keep: int
    move: int = 0
    adjacency: Adjacency | None = None
    categories: int = 2
    random_state: int | None = None

    def __post_init__(self) -> None:
        self.event()
        if self.total > _LARGEST_TOTAL:
            raise PrivacyParameterError("The weights of a randomised response must add up to at most 2^62.")

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        sensitivity: float = 1.0,
        adjacency: Adjacency | None = None,
        *,
        categories: int = 2,
        random_state: int | None = None,
    ) -> Self:
        """The least random k-answer response that keeps `guarantee`. A category has no other sensitivity than 1."""
        if positive(sensitivity, "sensitivity") != 1:
            raise PrivacyParameterError("A category either changes or not: its sensitivity is 1.")
        if not isinstance(categories, int) or categories < 2:
            raise PrivacyParameterError("Randomised response needs at least two categories.")
        # Beyond ε = 40 the answer is wrong less than once in 10^17 times; the weights would no longer fit a word.
        eps = min(largest_pure_epsilon(guarantee) * (1 - 1e-14), _LARGEST_EPSILON)
        context = Context(prec=60)  # of our own: the application's may be coarse
        ratio = Fraction(context.exp(Decimal(eps)).next_minus(context))
        move = max(1, math.floor(_LARGEST_TOTAL / (ratio + categories)))
        keep = math.floor(ratio * move)
        return cls(keep, move, adjacency, categories, random_state)

    @property
    def total(self) -> int:
        return self.keep + (self.categories - 1) * self.move

    def event(self) -> RandomizedResponseEvent:
        return RandomizedResponseEvent(
            self.categories,
            self.keep,
            self.move,
            adjacency=self.adjacency,  # type: ignore[arg-type]  # the event refuses None with the way out
        )

    def error(self) -> float:
        """Probability of a wrong category."""
        return 1 - self.keep / self.total

    def __call__(self, values: Any) -> Any:
        codes = self._codes(values)
        noisy = self._respond(codes)
        return int(noisy) if np.ndim(values) == 0 else noisy

    def sample(self, value: Any, trials: int) -> np.ndarray:
        return self._respond(np.broadcast_to(self._codes(value), (trials, *np.shape(value))))

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        same = (outputs == self._codes(value)).reshape(len(outputs), -1).sum(axis=1)
        return same * math.log(self.keep / self.move)

    def _codes(self, values: Any) -> np.ndarray:
        codes = codes_array(values, "Category codes", "Randomised response takes category codes as whole numbers")
        if codes.min() < 0 or codes.max() >= self.categories:
            raise DataError(
                f"A code lies outside 0 … {self.categories - 1}: encode with a Schema first. Nothing was drawn."
            )
        return codes.astype(np.int64)

    def _respond(self, codes: np.ndarray) -> np.ndarray:
        drawn = self._bits().below(self.total, codes.size).reshape(codes.shape)
        others = np.maximum(drawn - self.keep, 0) // self.move
        others += others >= codes  # the k-1 other codes, in order, without the true one
        return np.where(drawn < self.keep, codes, others)
