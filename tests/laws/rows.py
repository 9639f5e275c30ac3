"""One row for every mechanism: worst neighbours, a broken twin, and how to measure its error.

Adding a mechanism without a row here makes discovery fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ApproxDP, Interval, PureDP
from sfumato.mechanisms import (
    Box,
    Exponential,
    FiniteChannel,
    Gaussian,
    GaussianShares,
    GroupCounts,
    JointQuantiles,
    Laplace,
    LaplaceShares,
    Mechanism,
    NormGamma,
    PermuteAndFlip,
    RandomizedResponse,
    TailoredNoise,
    TailoredPair,
)


@dataclass(frozen=True)
class Row:
    mechanism: Mechanism
    neighbours: tuple[Any, Any]
    #: The same mechanism with its noise scaled by a factor (for responses: ε divided by it).
    scaled: Callable[[float], Mechanism]
    #: Draws whose mean is `mechanism.error()`, or its square root for selections.
    error_draws: Callable[[Mechanism, int], np.ndarray]
    #: The δ at which the audit speaks of ε, where the mechanism has no finite ε at the usual ones.
    audit_delta: float | None = None


def squared(value: Any) -> Callable[[Mechanism, int], np.ndarray]:
    return lambda mechanism, trials: ((mechanism.sample(value, trials) - np.asarray(value)) ** 2).reshape(trials, -1)


def score_loss(worst_gap: float) -> Callable[[Mechanism, int], np.ndarray]:
    def draws(mechanism: Any, trials: int) -> np.ndarray:
        gap = worst_gap * ROWS[type(mechanism)].mechanism.scale  # type: ignore[attr-defined]
        return mechanism.sample([gap, 0.0], trials) * gap

    return draws


def squared_ranks(mechanism: Mechanism, trials: int) -> np.ndarray:
    """Of rows that cut the public weight of all places into parts alike."""
    grid, count = MEDIAN.grid, 96
    rows = grid.value_at(grid.cells_at(np.arange(count) * (grid.total // count)))
    below = np.searchsorted(grid.points_of(grid.cells_of(rows)), mechanism.sample(rows, trials))
    return (below - count / 2) ** 2


def two_rows(mechanism: JointQuantiles) -> tuple[Any, Any]:
    """One row with a twentieth of the weight above it, and a second at the top or bottom: all scores move at once."""
    grid = mechanism.grid
    high = float(grid.value_at(grid.cells_at(np.array(grid.total // 20 * 19))))
    return [high, mechanism.high], [high, mechanism.low]


PURE, APPROX = PureDP(1.0), ApproxDP(1.0, 1e-5)
MEDIAN = JointQuantiles.for_guarantee(PURE, 1, REPLACE_ONE, low=0.0, high=1.0)
PAIR = TailoredPair((Interval(0, 1), Interval(0, 1)), 1.0, bins=(3, 3))
CHANCES = ((0.9, 0.1, 0.0), (0.2, 0.7, 0.1), (0.0, 0.1, 0.9))

ROWS: dict[type[Mechanism], Row] = {
    Box: Row(
        Box(6.0, 1.0, REPLACE_ONE),
        (0.0, 1.0),
        lambda factor: Box(6.0 * factor, 1.0, REPLACE_ONE),
        squared([5.0, -3.0]),
        audit_delta=0.03,
    ),
    Gaussian: Row(
        Gaussian.for_guarantee(APPROX, 2.0, REPLACE_ONE),
        (np.zeros(4), np.ones(4)),
        lambda factor: Gaussian(ROWS[Gaussian].mechanism.scale * factor, 2.0, REPLACE_ONE),  # type: ignore[attr-defined]
        squared([5.0, -3.0]),
    ),
    Laplace: Row(
        Laplace.for_guarantee(PURE, 3.0, REPLACE_ONE),
        (0.0, 3.0),
        lambda factor: Laplace(ROWS[Laplace].mechanism.scale * factor, 3.0, REPLACE_ONE),  # type: ignore[attr-defined]
        squared([5.0, -3.0]),
    ),
    GaussianShares: Row(
        replace(GaussianShares.for_guarantee(APPROX, 2.0, REPLACE_ONE), honest=3, centres=5, colluders=1),
        (np.zeros(4), np.ones(4)),
        lambda factor: GaussianShares(
            ROWS[GaussianShares].mechanism.scale * factor,  # type: ignore[attr-defined]
            2.0,
            REPLACE_ONE,
            honest=3,
        ),
        squared([5.0, -3.0]),
    ),
    LaplaceShares: Row(
        replace(LaplaceShares.for_guarantee(PURE, 3.0, REPLACE_ONE, dimension=1), honest=3, centres=5, colluders=1),
        (0.0, 3.0),
        lambda factor: LaplaceShares(
            ROWS[LaplaceShares].mechanism.scale * factor,  # type: ignore[attr-defined]
            3.0,
            REPLACE_ONE,
            1,
            honest=3,
        ),
        squared([5.0, -3.0]),
    ),
    NormGamma: Row(
        NormGamma.for_guarantee(PURE, 0.5, REPLACE_ONE, dimension=3),
        (np.zeros(3), np.array([0.3, 0.0, 0.4])),
        lambda factor: NormGamma(ROWS[NormGamma].mechanism.scale * factor, 0.5, REPLACE_ONE, 3),  # type: ignore[attr-defined]
        squared([5.0, -3.0, 1.0]),
    ),
    PermuteAndFlip: Row(
        PermuteAndFlip.for_guarantee(PURE, 1.0, REPLACE_ONE),
        ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
        lambda factor: PermuteAndFlip(ROWS[PermuteAndFlip].mechanism.scale * factor, 1.0, REPLACE_ONE),  # type: ignore[attr-defined]
        score_loss(1.0),
    ),
    Exponential: Row(
        Exponential.for_guarantee(PURE, 1.0, REPLACE_ONE),
        ([0.0, 1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0]),
        lambda factor: Exponential(ROWS[Exponential].mechanism.scale * factor, 1.0, REPLACE_ONE),  # type: ignore[attr-defined]
        score_loss(1.2785),
    ),
    JointQuantiles: Row(
        MEDIAN,
        two_rows(MEDIAN),
        lambda factor: replace(MEDIAN, scale=MEDIAN.scale * factor),
        squared_ranks,
    ),
    GroupCounts: Row(
        GroupCounts.for_guarantee(APPROX, 1, ADD_REMOVE),
        ([60], [61]),
        lambda factor: GroupCounts.for_guarantee(ApproxDP(1.0 / factor, 1e-5), 1, ADD_REMOVE),
        squared([60, 70]),
    ),
    RandomizedResponse: Row(
        RandomizedResponse.for_guarantee(PURE, 1.0, REPLACE_ONE, categories=4),
        (0, 1),
        lambda factor: RandomizedResponse.for_guarantee(PureDP(1.0 / factor), 1.0, REPLACE_ONE, categories=4),
        lambda mechanism, trials: (mechanism.sample(2, trials) != 2).astype(float),
    ),
    FiniteChannel: Row(
        FiniteChannel.for_guarantee(PURE, 1.0, REPLACE_ONE, probabilities=CHANCES),
        (0, 2),
        lambda factor: FiniteChannel.for_guarantee(PureDP(1.0 / factor), 1.0, REPLACE_ONE, probabilities=CHANCES),
        lambda mechanism, trials: (
            (
                mechanism.sample(np.arange(3), trials) != mechanism.probabilities.argmax(axis=1)  # type: ignore[attr-defined]
            ).astype(float)
        ),
    ),
    TailoredNoise: Row(
        TailoredNoise(Interval(0, 1), 1.0, bins=8),
        (0.0, 1.0),
        lambda factor: TailoredNoise(Interval(0, 1), 1.0 / factor, bins=8),
        # The error of a channel is a mean over its inputs.
        squared(TailoredNoise(Interval(0, 1), 1.0, bins=8).inputs),
    ),
    TailoredPair: Row(
        PAIR,
        ([0.0, 0.0], [1.0, 1.0]),
        lambda factor: replace(PAIR, epsilon=1.0 / factor),
        squared(PAIR.inputs),
    ),
}
