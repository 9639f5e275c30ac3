"""A·x published with a promise of its own for every coordinate: (ε_k, δ_k) of Program (3.34).

In:   the matrix A, a Guarantee and a range for each coordinate, weights of the outputs.
Out:  BudgetedPlacement: the noise, what it costs each coordinate, an event for each.
Not here: one promise for everybody (plan/linear/query.py), studies (lang/divisions.py).
Proof: docs/proofs/linear_placement.md, "A budget for each coordinate"
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.events.event import GaussianEvent
from sfumato.core.events.linear import person_sensitivity
from sfumato.core.guarantee import GaussianDP, Guarantee
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.mechanisms.gaussian import largest_mu
from sfumato.plan.linear.query import Placement, PlacementKind, place_noise
from sfumato.plan.linear.question import read_question

__all__ = ["BudgetedPlacement", "place_noise_by_coordinate"]

#: Widening a strict coordinate by what the grid costs it changes the grid: it settles at once.
_ROUNDS = 6


@dataclass(frozen=True, eq=False)
class BudgetedPlacement:
    """The noise to publish A·x with, each coordinate under its own requirement.

    `placement` is planned for ranges that are wider where a promise is stricter; values stay in their own ranges.
    """

    placement: Placement
    requirements: tuple[Guarantee, ...]
    low: np.ndarray = field(repr=False)
    width: np.ndarray = field(repr=False)

    @property
    def error(self) -> float:
        """Expected weighted squared error."""
        return self.placement.error

    def events(self) -> tuple[GaussianEvent, ...]:
        """What one publication costs each coordinate: another value of it in its own range, all others kept."""
        event, strategy = self.placement.event, self.placement.strategy
        return tuple(
            GaussianEvent(
                _moved(strategy[:, place], float(self.width[place])) + event.arithmetic,
                event.scale,
                event.grid,
                event.dimension,
                adjacency=Adjacency(f"value of coordinate {place}", "replace-one"),
            )
            for place in range(len(self.width))
        )

    def mus(self) -> tuple[float, ...]:
        """What each coordinate pays."""
        return tuple(event.guarantee().mu for event in self.events())

    def publish(self, values: Any, random_state: int | None = None) -> np.ndarray:
        """A·x with noise. Values outside their range are clipped."""
        inside = np.clip(np.asarray(values, dtype=np.float64), self.low, self.low + self.width)
        return self.placement.publish(inside, random_state)


def place_noise_by_coordinate(
    A: Any,
    requirements: Sequence[Guarantee],
    ranges: Any,
    weights: Any = None,
    placements: tuple[PlacementKind, ...] = ("input", "output", "correlated"),
) -> BudgetedPlacement:
    """The least noise of `place_noise` that lets A·x be published with `requirements[k]` for coordinate k.

    >>> from sfumato.core import ApproxDP
    >>> placed = place_noise_by_coordinate(np.eye(2), [ApproxDP(1.0, 1e-6), ApproxDP(0.3, 1e-6)], ranges=1.0)
    >>> [round(float(deviation), 2) for deviation in np.sqrt(np.diag(placed.placement.covariance))]
    [4.22, 12.99]
    """
    question = read_question(A, ranges, None, weights)
    allowed = tuple(requirements)
    if len(allowed) != len(question.width):
        raise InputError(f"Give one requirement for each of the {len(question.width)} coordinates. Nothing was spent.")
    wanted = np.array([largest_mu(one) for one in allowed])
    largest = float(wanted.max())
    wide = question.width * (largest / wanted)
    for _ in range(_ROUNDS):
        pairs = np.column_stack([question.low, question.low + wide])
        placement = place_noise(A, GaussianDP(largest), pairs, None, weights, placements)
        found = BudgetedPlacement(placement, allowed, question.low, question.width)
        ratio = np.array(found.mus()) / wanted
        if (ratio <= 1).all():
            return found
        wide = wide * np.maximum(ratio, 1.0) * (1 + 1e-9)
    raise PrivacyParameterError(
        "These budgets are too far apart for one noise. Publish in two parts. Nothing was spent."
    )


def _moved(column: np.ndarray, width: float) -> float:
    rows = column[column != 0]
    return person_sensitivity([width], [rows.tolist()]) if rows.size and width > 0 else math.ulp(0.0)
