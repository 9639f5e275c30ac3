"""Counts of groups, each named only if enough people are in it: the record, and what it costs exactly.

In:   whole-number weights of a noise, the ε at which δ is stated, how many groups one individual is in.
Out:  GroupCountsEvent with its ε and its δ.
Not here: the best weights (mechanisms/group_counts.py), other acts (core/events/event.py).
Proof: docs/proofs/partition_selection.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar

from sfumato.core.checks import positive, round_up
from sfumato.core.events.channel import exp_below, float_above
from sfumato.core.events.event import Event
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.errors import PrivacyParameterError

__all__ = ["GroupCountsEvent", "delta_of_naming"]

_MOST_WEIGHTS = 1 << 20
_LARGEST = 1 << 128
_MOST_FACTORS = 64


def delta_of_naming(weights: Sequence[int], epsilon: float) -> Fraction:
    """δ(ε) between n and n + 1 people in one group, whatever n is: e^ε rounded down, all else exact.

    With I drawn by the weights 1, 2, …, a group of n people is named if I ≤ n, and then n - I is published.

    >>> float(delta_of_naming([1, 2, 1], 1.0))  # nobody could be alone and named: with a chance of 1/4 one person is
    0.25
    """
    bound = exp_below(epsilon)
    top, bottom = bound.numerator, bound.denominator
    total = sum(weights)
    named = [0, *accumulate(weights)]
    padded = [0, *weights, 0]
    worst = more = less = 0
    for n in range(len(weights) + 1):
        # One more person: what is published with I under n is published with I + 1 under n + 1.
        more += max(0, bottom * padded[n + 1] - top * padded[n])
        less += max(0, bottom * padded[n] - top * padded[n + 1])
        unnamed, fewer = total - named[n], total - named[min(n + 1, len(weights))]
        worst = max(worst, more + max(0, bottom * fewer - top * unnamed), less + max(0, bottom * unnamed - top * fewer))
    return Fraction(worst, bottom * total)


@dataclass(frozen=True)
class GroupCountsEvent(Event):
    """Every group of n people is named if I ≤ n, with n - I and a public number as its count; whole weights of I.

    One individual is counted once in each of at most `groups` groups; `at` is the ε of one group.

    >>> from sfumato.core.adjacency import ADD_REMOVE
    >>> print(GroupCountsEvent((1, 3, 9, 9, 3, 1), 1.1, 1, adjacency=ADD_REMOVE).guarantee())
    (1.1, 0.0384615)-DP, under adding or removing one record
    """

    proof: ClassVar[str] = "partition_selection"

    weights: tuple[int, ...] = field(repr=False)
    at: float
    groups: int = 1

    def _check(self) -> None:
        object.__setattr__(self, "weights", _checked(self.weights))
        positive(self.at, "at (the ε of one group)")
        if type(self.groups) is not int or not 1 <= self.groups <= 1 << 30:
            raise PrivacyParameterError("groups must be a whole number of at least 1: the most groups of one person.")
        if self.delta >= 1:
            raise PrivacyParameterError("These weights hide nothing: their δ is 1.")

    @property
    def moved(self) -> int:
        """How many groups gain or lose one person between neighbours."""
        return self.groups * (2 if self.adjacency.relation == "replace-one" else 1)

    @property
    def eps(self) -> float:
        return round_up(self.at * self.moved, 1e-15) if self.moved > 1 else self.at

    @property
    def delta(self) -> float:
        return _delta(self.weights, self.at, self.moved)

    def guarantee(self) -> PureDP | ApproxDP:
        return ApproxDP(self.eps, self.delta, adjacency=self.adjacency)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "weights": list(self.weights)}


@lru_cache(maxsize=64)
def _delta(weights: tuple[int, ...], at: float, moved: int) -> float:
    """Of all groups that move: 1 - (1 - δ)^moved, or the sum where that would be long to write down."""
    one = delta_of_naming(weights, at)
    return min(1.0, float_above(1 - (1 - one) ** moved if moved <= _MOST_FACTORS else moved * one))


def _checked(weights: Any) -> tuple[int, ...]:
    try:
        found = tuple(weights)
    except TypeError:
        found = ()
    if not 0 < len(found) <= _MOST_WEIGHTS:
        raise PrivacyParameterError("weights must be a list of whole numbers, not too long to be read.")
    if not all(type(one) is int and 0 < one <= _LARGEST for one in found):
        raise PrivacyParameterError("Every weight must be a whole number from 1 to 2^128.")
    return found
