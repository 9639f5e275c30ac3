"""Several noisy sums of which one individual moves only some at once: the record, and what it costs exactly.

In:   for every sum how far one individual moves it, its noise; which sums one individual can be part of at once.
Out:  TogetherEvent with its μ or its ε.
Not here: which sums these are (network/apart.py), other acts (core/events/event.py).
Proof: docs/proofs/disjoint_groups.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import at_least_zero, positive, round_up
from sfumato.core.events.event import Event
from sfumato.core.guarantee import GaussianDP, PureDP
from sfumato.core.norms import L1, L2, Norm, in_norm
from sfumato.errors import PrivacyParameterError

__all__ = ["MOST_TOGETHER", "TogetherEvent", "farthest"]

#: So many sums, and so many sets of them, are priced together at most.
MOST_TOGETHER = 1000
#: What two floating-point sums of as many terms may differ by.
_NEAR = 1e-12

#: How far one individual moves a sum that counts in one of two neighbours only; in both; scale, grid, dimension.
Sum = tuple[float, float, float, float, int]


class _Law(ABC):
    """How the costs of sums with one law of noise are counted, so that they add. Abstract."""

    noise: ClassVar[str]
    norm: ClassVar[Norm]

    @abstractmethod
    def over(self, moved: float, scale: float, grid: float, dimension: int) -> float:
        """The cost of one sum that is moved so far, rounding to the grid included."""

    @abstractmethod
    def promise(self, cost: float, adjacency: Adjacency) -> GaussianDP | PureDP:
        """What a cost of all of them stands for."""


class _Gaussian(_Law):
    """In μ²."""

    noise = "Gaussian noise"
    norm = L2

    def over(self, moved: float, scale: float, grid: float, dimension: int) -> float:
        return ((moved + grid * math.sqrt(dimension)) / scale) ** 2

    def promise(self, cost: float, adjacency: Adjacency) -> GaussianDP:
        return GaussianDP(round_up(math.sqrt(cost), 1e-14), adjacency=adjacency)


class _Laplace(_Law):
    """In ε."""

    noise = "Laplace noise"
    norm = L1

    def over(self, moved: float, scale: float, grid: float, dimension: int) -> float:
        return (moved + grid * dimension) / scale

    def promise(self, cost: float, adjacency: Adjacency) -> PureDP:
        return PureDP(round_up(cost, 1e-14), adjacency=adjacency)


_LAWS: dict[str, _Law] = {"gaussian": _Gaussian(), "laplace": _Laplace()}


def farthest(alone: Sequence[float], inside: Sequence[float], sets: Sequence[Sequence[int]], replaces: bool) -> float:
    """The largest cost between two of the sets: `inside` for what both hold, `alone` for what one of them holds.

    Nobody's set, the empty one, is always among them. Where individuals are added or removed it is one of the two.

    >>> farthest([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [(0,), (1,), (2,)], True)
    2.0
    >>> farthest([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [(0,), (0, 1), (0, 1, 2)], True)
    3.0
    """
    if not replaces:
        return max(math.fsum(alone[place] for place in one) for one in sets)
    held = np.zeros((len(sets) + 1, len(alone)))
    for row, one in enumerate(sets):
        held[row, list(one)] = 1.0
    outer, both = held @ np.asarray(alone), np.asarray(inside) - 2 * np.asarray(alone)
    costs = outer[:, None] + outer[None, :] + (held * both) @ held.T
    slack = _NEAR * float(outer.max() + np.abs(held @ both).max() + costs.max())
    near = np.argwhere(costs >= costs.max() - slack)
    if len(near) > MOST_TOGETHER:  # many are alike: the products themselves, and what rounding may have lost
        return float(costs.max()) + slack
    return max(_between(held[a], held[b], alone, inside) for a, b in near)


def _between(one: Any, other: Any, alone: Sequence[float], inside: Sequence[float]) -> float:
    both, either = np.flatnonzero(one * other).tolist(), np.flatnonzero(one != other).tolist()
    return math.fsum([*(inside[place] for place in both), *(alone[place] for place in either)])


@dataclass(frozen=True)
class TogetherEvent(Event):
    """Independent noise on several sums; an individual is part of the sums of one of `sets`, or of none.

    Of each sum: how far an individual moves it who is part of it in one of two neighbours only (`alone`), and one who
    is part of it in both (`inside`), the scale of its noise, the grid, how many numbers it is. Distances are L2 for
    Gaussian noise and L1 for Laplace noise.

    >>> from sfumato.core.adjacency import REPLACE_ONE
    >>> counts = ((1.0, 0.0, 2.0, 0.0, 1),) * 3
    >>> print(TogetherEvent("laplace", counts, ((0,), (1,), (2,)), adjacency=REPLACE_ONE).guarantee())
    1-DP, under replacing one record
    """

    proof: ClassVar[str] = "disjoint_groups"

    noise: str
    sums: tuple[Sum, ...]
    sets: tuple[tuple[int, ...], ...]

    def _check(self) -> None:
        if not isinstance(self.noise, str) or self.noise not in _LAWS:
            raise PrivacyParameterError(f"noise must be {' or '.join(_LAWS)}.")
        law = _LAWS[self.noise]
        measured = tuple((*(in_norm(moved, law.norm, law.noise) for moved in one[:2]), *one[2:]) for one in self.sums)
        object.__setattr__(self, "sums", measured)
        object.__setattr__(self, "sets", tuple(tuple(one) for one in self.sets))
        if not (0 < len(self.sums) <= MOST_TOGETHER and 0 < len(self.sets) <= MOST_TOGETHER):
            raise PrivacyParameterError("Too few or too many sums are priced together.")
        for one in self.sums:
            _check_sum(*one)
        self._check_sets()

    def _check_sets(self) -> None:
        known = set(range(len(self.sums)))
        plain = all(type(place) is int for one in self.sets for place in one)
        if not plain or {place for one in self.sets for place in one} != known:
            raise PrivacyParameterError("Every sum needs a set it is in, and no set may name another one.")
        if any(list(one) != sorted(set(one)) for one in self.sets) or len(set(self.sets)) < len(self.sets):
            raise PrivacyParameterError("A set names a sum once, in order, and no set is named twice.")

    @cached_property
    def cost(self) -> float:
        """μ² for Gaussian noise, ε for Laplace noise: not yet rounded up."""
        alone, inside = (
            [self._over(moved, *rest) for moved, rest in pairs]
            for pairs in ([(one[0], one[2:]) for one in self.sums], [(one[1], one[2:]) for one in self.sums])
        )
        return farthest(alone, inside, self.sets, self.adjacency.relation == "replace-one")

    def _over(self, moved: float, scale: float, grid: float, dimension: int) -> float:
        if moved == 0:
            return 0.0  # rounding to the grid keeps equal numbers equal
        return _LAWS[self.noise].over(moved, scale, grid, dimension)

    def guarantee(self) -> GaussianDP | PureDP:
        return _LAWS[self.noise].promise(self.cost, self.adjacency)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "sums": [list(one) for one in self.sums], "sets": [list(one) for one in self.sets]}


def _check_sum(alone: float, inside: float, scale: float, grid: float, dimension: int) -> None:
    positive(alone, "alone", "A value nobody influences needs no noise. ")
    at_least_zero(inside, "inside")
    positive(scale, "scale")
    at_least_zero(grid, "grid")
    if type(dimension) is not int or dimension < 1:
        raise PrivacyParameterError("dimension must be a whole number of at least 1.")
