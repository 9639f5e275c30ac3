"""More rows or more budget never make a worse linear model, beyond noise; by streams, so that rows may be many.

Rows are normal, labels a noisy linear rule; blocks are made anew from their seeds in every pass. The noise that hides
the solver's residual is looked at as well, up to a thousand million rows, where nothing can be trained.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.core.gaussian import gaussian_mu
from sfumato.learn import NothingLearnedWarning, PrivateLogisticRegression, PrivateSVC, calibration
from sfumato.learn.calibration import plan_training
from sfumato.learn.losses import HuberLoss, LogisticLoss, SmoothedHinge
from sfumato.learn.stream import fit_by_sums
from sfumato.learn.training_budget import TrainingBudget
from sfumato.run.engine.engine import Total

BLOCK = 16384
#: Accuracy lost from one size or budget to the next that counts as noise: two models, twenty thousand test rows.
NOISE = 0.008


class SeededPasses:
    """Rows that exist only while they are summed: block k is drawn from the seed (seed, k)."""

    def __init__(self, rows: int, width: int, seed: int) -> None:
        self.rows, self.columns, self._seed = rows, width, seed
        direction = np.random.default_rng(width).normal(size=width)
        self._direction = direction / np.linalg.norm(direction)

    def block(self, number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng([self._seed, number])
        matrix = generator.standard_normal((rows, self.columns))
        return matrix, (matrix @ self._direction + 0.3 * generator.standard_normal(rows) > 0).astype(int)

    def total(self, statistic):
        result = None
        for number, start in enumerate(range(0, self.rows, BLOCK)):
            piece = Total.of(statistic(*self.block(number, min(BLOCK, self.rows - start))))
            result = piece if result is None else result.plus(piece)
        return result.values

    def check_unchanged(self) -> None:
        """Seeds do not change."""


def accuracies(kind, sizes, epsilons, width, seeds=2, **options):
    """Mean accuracy for every size and ε on common test rows."""
    table, labels = SeededPasses(1, width, 10**6).block(0, 20_000)
    scores = np.zeros((len(sizes), len(epsilons)))
    for (row, size), (column, epsilon) in itertools.product(enumerate(sizes), enumerate(epsilons)):
        for seed in range(seeds):
            model = kind(epsilon, 1e-6, norm=math.sqrt(width), classes=[0, 1], random_state=seed, **options)
            fitted = fit_by_sums(model, SeededPasses(size, width, seed))
            scores[row, column] += fitted.score(table, labels) / seeds
    return scores


def losses_of_growth(scores: np.ndarray) -> float:
    """The largest fall of accuracy from one size to a larger one, or from one ε to a larger one."""
    falls = [np.maximum.accumulate(scores, axis=axis) - scores for axis in (0, 1)]
    return max(float(fall.max()) for fall in falls)


@pytest.mark.filterwarnings("ignore::sfumato.learn.NothingLearnedWarning")
@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (PrivateLogisticRegression, 10**5),
        pytest.param(PrivateLogisticRegression, 10**6, marks=pytest.mark.slow),
        (PrivateSVC, 10**5),
    ],
)
@pytest.mark.by_day(1)
def test_more_rows_and_more_budget_never_make_it_worse(kind, most):
    sizes = [10**power for power in (3, 4, 5, 6) if 10**power <= most]
    scores = accuracies(kind, sizes, (0.1, 1.0, 10.0), 6, seeds=1)
    # At a thousand rows and ε = 0.1 the direction is chance: two draws of it differ by more than anything else here.
    assert losses_of_growth(scores[1:]) <= NOISE
    assert losses_of_growth(scores[:, 1:]) <= NOISE
    assert scores[-1].min() > 0.9  # of 0.907 without noise


def wide_mask(budget: TrainingBudget, rows: float) -> float:
    """What was once added: flat sums of ten times the rows, solutions of any length, a two hundredth of the budget."""
    strength = max(0.1 / rows, 0.25 / (rows * math.expm1(0.1 * budget.epsilon)))
    reach = math.sqrt(40 / strength)
    error = 4.4 * 2.0**-53 * 10 * (2048 + 10 * rows / 2048 + 24 + 0.25 * (budget.width + 12) * (1 + reach))
    return 2 * error / strength / gaussian_mu(budget.epsilon / 200, budget.delta / 100)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.by_day(1)
def test_the_laws_see_a_mask_that_grows_with_the_rows(monkeypatch, epsilon):
    """The old mask is wide at a million rows. Planted: the old mask of a hundred times as many rows."""
    budget = TrainingBudget(epsilon, 1e-6, REPLACE_ONE, 10**6, 120)
    assert wide_mask(budget, 10**6) > 0.3
    assert wide_mask(budget, 5 * 10**7) > 100
    narrow = calibration._mask

    def planted(budget, sensitivity, reach, cost):
        wide = wide_mask(replace(budget, width=120), 100 * budget.size)
        return replace(narrow(budget, sensitivity, reach, cost), scale=wide)

    monkeypatch.setattr(calibration, "_mask", planted)
    monkeypatch.setattr(calibration, "_WIDEST_MASK", math.inf)
    with pytest.warns(NothingLearnedWarning, match="so little"):
        scores = accuracies(PrivateLogisticRegression, (10_000, 100_000), (epsilon,), 6, seeds=2)
    assert losses_of_growth(scores) > 2 * NOISE


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.5), HuberLoss(20.0), SmoothedHinge(0.1)], ids=repr)
@pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-6, 1e-2])
@pytest.mark.by_day(6)
def test_the_mask_stays_narrow_up_to_a_thousand_million_rows(loss, adjacency, delta):
    for epsilon, width in itertools.product((0.01, 0.1, 1.0, 10.0), (1, 120, 3000)):
        sizes = [10**power for power in range(1, 10)]
        looks = 0.2 if width == 120 else 0.0  # a constant that starts from a look at the labels
        budgets = [TrainingBudget(epsilon, delta, adjacency, size, width, constant=looks) for size in sizes]
        plans = [plan_training(budget, loss, "objective") for budget in budgets]
        assert max(math.sqrt(plan.mask.error()) for plan in plans) <= 0.0201
        # What noise and strength do to the coefficients in a direction of little curvature falls with the rows.
        noise = [plan.noise_length * plan.regularization for plan in plans]
        assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(noise))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sfumato.learn.NothingLearnedWarning")
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateSVC])
@pytest.mark.parametrize(("width", "most"), [(8, 7), (40, 6), (119, 5)])
def test_more_rows_at_night(kind, width, most):
    """From a thousand rows on; ε = 0.1 from where it can be told from chance."""
    scores = accuracies(kind, [10**power for power in range(3, most + 1)], (0.1, 1.0, 10.0), width, seeds=1)
    assert losses_of_growth(scores[:, 1:]) <= NOISE
    assert losses_of_growth(scores[1:]) <= NOISE
    assert scores[-1, 1:].min() > 0.9
