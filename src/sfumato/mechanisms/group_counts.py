"""Which groups there are, and how large: a group is named with the best probability that hides each of its people.

In:   how many people are in each group that occurs.
Out:  for every group its noisy count, or 0 where it is not named; GroupCountsEvent for the ledger.
Not here: who is in which group and how many groups one person counts in (run/publish_groups.py).
Proof: docs/proofs/partition_selection.md
Reference: Desfontaines, Voss, Gipson & Mandayam 2022, Thm 1: no (ε, δ) rule names a group more often. Its steps are
the weights of a noise, so the counts come with it at no further cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive, round_down
from sfumato.core.events.channel import exp_below
from sfumato.core.events.groups import GroupCountsEvent
from sfumato.core.guarantee import ApproxDP, Guarantee
from sfumato.errors import DataError, PrivacyParameterError
from sfumato.mechanisms.mechanism import Mechanism, finite_array, kept, unreachable

__all__ = ["GroupCounts", "naming_weights"]

_TOTAL = 1 << 61
#: At most so many people until a group is named for certain.
_MOST = 1 << 16
_LEVEL = 0.025


def naming_weights(epsilon: float, delta: float) -> tuple[int, ...]:
    """Steps of the best probabilities to name a group of 1, 2, … people, as whole numbers.

    π(n+1) = min(e^ε π(n) + δ, 1 - e^-ε (1 - π(n) - δ), 1); roundings are kept within δ.

    >>> weights = naming_weights(1.0, 1e-6)
    >>> chances = np.cumsum(weights) / sum(weights)
    >>> int(np.argmax(chances >= 0.5)) + 1, bool(abs(chances[0] / 1e-6 - 1) < 1e-9)
    (14, True)
    """
    if not 0 < delta < 1 or epsilon <= 0:
        raise PrivacyParameterError("Naming groups needs an ε above 0 and a δ between 0 and 1. Nothing was spent.")
    length = 2 * math.ceil(math.log1p(-math.expm1(-epsilon) / delta) / epsilon + 2)
    if length > _MOST:
        raise PrivacyParameterError(f"Naming groups at ε = {epsilon:g} and δ = {delta:g} needs a larger ε or δ.")
    # A rounding of one unit counts e^ε times: beyond this ε whole numbers are too coarse, and nothing is gained.
    room = delta * _TOTAL / (200 * length)
    if room < math.e:
        raise PrivacyParameterError(f"A δ of {delta:g} is too small to name groups with. Nothing was spent.")
    growth = exp_below(min(epsilon, math.log(room)))
    step = math.floor(Fraction(delta) * _TOTAL) - 4 * length * math.ceil(growth)
    named, found = 0, []
    while named < _TOTAL:
        rising = math.floor(growth * named) + step
        falling = _TOTAL - math.ceil((_TOTAL - named - step) / growth)
        following = min(max(rising, named + 1), max(falling, named + 1), _TOTAL)
        found.append(following - named)
        named = following
    return tuple(found)


@dataclass(frozen=True)
class GroupCounts(Mechanism):
    """Names groups and counts them; made by `for_guarantee`. One individual counts once in each of `groups` groups.

    >>> from sfumato.core import ADD_REMOVE, ApproxDP
    >>> count = GroupCounts.for_guarantee(ApproxDP(1.0, 1e-6), 1, ADD_REMOVE)
    >>> named = count([5000, 0, 1])
    >>> abs(int(named[0]) - 5000) < 20, int(named[1])
    (True, 0)
    """

    proof: ClassVar[str] = "partition_selection"

    weights: tuple[int, ...]
    at: float
    groups: int = 1
    adjacency: Adjacency | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        self.event()
        if sum(self.weights) > 1 << 62:
            raise PrivacyParameterError("The weights of group counts must add up to at most 2^62.")

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, groups: float, adjacency: Adjacency, *, random_state: int | None = None
    ) -> GroupCounts:
        """The weights that name most groups within (ε, δ), when one individual is in at most `groups` groups."""
        most = positive(groups, "groups (the most groups of one individual)")
        if not most.is_integer():
            raise PrivacyParameterError("groups must be a whole number. Nothing was spent.")
        if not isinstance(guarantee, ApproxDP) or guarantee.delta_ <= 0:
            raise unreachable(guarantee, "Naming groups", "State dp(ε, δ): whoever is alone in a group is named never.")
        relation = adjacency.relation if isinstance(adjacency, Adjacency) else "replace-one"
        moved = int(most) * (2 if relation == "replace-one" else 1)
        epsilon = round_down(guarantee.eps / moved, 1e-14) if moved > 1 else guarantee.eps
        alone = guarantee.delta_ / moved  # beyond 64 groups the event adds up
        delta = round_down(alone if moved > 64 else -math.expm1(math.log1p(-guarantee.delta_) / moved), 1e-12)
        made = cls(naming_weights(epsilon, delta), epsilon, int(most), adjacency, random_state)
        return kept(made, guarantee)

    def event(self) -> GroupCountsEvent:
        return GroupCountsEvent(
            self.weights,
            self.at,
            self.groups,
            adjacency=self.adjacency,  # type: ignore[arg-type]  # the event refuses None with the way out
        )

    @cached_property
    def _steps(self) -> np.ndarray:
        return np.array(self.weights, dtype=np.float64) / sum(self.weights)

    @cached_property
    def centre(self) -> int:
        """What is added back, so that counts are right on average (within half a person)."""
        return round(float(np.dot(self._steps, np.arange(1, len(self.weights) + 1))))

    @cached_property
    def chances(self) -> np.ndarray:
        """The probability to be named, of groups of 0, 1, 2, … people; 1 beyond."""
        return np.concatenate([[0.0], np.minimum(1.0, np.cumsum(self._steps))])

    def error(self) -> float:
        """Expected squared error of the count of a group so large that it is always named."""
        off = self.centre - np.arange(1, len(self.weights) + 1)
        return float(np.dot(self._steps, off**2))

    def __call__(self, values: Any) -> np.ndarray:
        counts = finite_array(values, "counts")
        if np.any(counts < 0) or np.any(counts != np.rint(counts)):
            raise DataError("counts must be whole numbers of people. Nothing was drawn and nothing was spent.")
        return self._named(counts.astype(np.int64))

    def sample(self, value: Any, trials: int) -> np.ndarray:
        counts = finite_array(value, "counts").astype(np.int64)
        return self._named(np.broadcast_to(counts, (trials, *counts.shape)))

    def _named(self, counts: np.ndarray) -> np.ndarray:
        ends = np.cumsum(np.array(self.weights, dtype=np.int64))
        words = self._bits().below(int(ends[-1]), counts.size)
        drawn = np.searchsorted(ends, words, side="right").reshape(counts.shape)
        return np.where(drawn < counts, counts - 1 - drawn + self.centre, 0)

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        counts = finite_array(value, "counts").astype(np.int64)
        drawn = counts + self.centre - outputs  # 1, 2, …
        inside = (outputs > 0) & (drawn >= 1) & (drawn <= len(self.weights)) & (drawn <= counts)
        with np.errstate(divide="ignore"):
            steps = np.log(np.where(inside, self._steps[np.clip(drawn - 1, 0, len(self.weights) - 1)], 0.0))
            dropped = np.log1p(-self.chances[np.minimum(counts, len(self.weights))])
        each = np.where(outputs == 0, dropped, steps)
        return each.reshape(len(outputs), -1).sum(axis=1)

    def interval(self, published: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For counts of named groups: the sizes that 95 % of named groups with this count have, at least.

        A size n is left out if a named group of n people would have a count as high, or as low, in 2.5 % of cases.
        """
        low, high = np.empty(len(published), dtype=np.int64), np.empty(len(published), dtype=np.int64)
        for count in np.unique(published):
            sizes = np.arange(max(1, int(count) - self.centre + 1), int(count) - self.centre + len(self.weights) + 1)
            drawn = sizes + self.centre - int(count)
            named = self.chances[np.minimum(sizes, len(self.weights))]
            at_least, at_most = self.chances[drawn], named - self.chances[drawn - 1]
            likely = sizes[(at_least > _LEVEL * named) & (at_most > _LEVEL * named) & (drawn <= sizes)]
            here = published == count
            low[here], high[here] = likely.min(), likely.max()
        return low, high
