"""Train and test, many times: the trials behind the tables and figures of Chaudhuri, Monteleoni & Sarwate 2011.

In:   Records, a Recipe (loss, method, ε, δ, Λ), seeds of the noise.
Out:  test errors; their mean and 95 % interval; who beats whom.
Not here: which recipes a table or figure compares (chaudhuri.py, chaudhuri_curves.py), preparing data.

A recipe is trained as the estimators of learn/ train it: their plan, their noise, their rows. To be quick, rows are
encoded once, equal records are counted instead of repeated, one solution serves all draws of output perturbation, and
the solver stops within 1e-9 of the minimum instead of certifying a gradient. A test holds the two together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import t as student

from papers.chaudhuri_data import Records
from sfumato.core.adjacency import REPLACE_ONE
from sfumato.core.schema import Schema
from sfumato.learn.calibration import Method, TrainingPlan, logistic_margin, plan_training
from sfumato.learn.losses import HuberLoss, LogisticLoss, Loss
from sfumato.learn.rows import UnitRows
from sfumato.learn.seeds import seed_from
from sfumato.learn.training_budget import TrainingBudget

__all__ = ["DELTA", "LOSSES", "LossName", "Recipe", "Split", "Training", "beats", "interval"]

LossName = Literal["logistic", "huber"]
#: The paper's two, with its Huber constant.
LOSSES: dict[LossName, Loss] = {"logistic": LogisticLoss(), "huber": HuberLoss(0.5)}
#: Of this project's defaults with δ > 0.
DELTA = 1e-6
_SUBOPTIMAL, _MOST_STEPS = 1e-9, 200
#: Below this Λ a Hessian in single precision may not be positive.
_SINGLE_PRECISION = 1e-4


@dataclass(frozen=True)
class Recipe:
    """How to train. `strength` is Λ; None means all defaults of this project: a public rule for Λ, its own coding."""

    loss: LossName
    method: Method
    epsilon: float
    delta: float = 0.0
    strength: float | None = None

    @property
    def is_default(self) -> bool:
        return self.strength is None

    def plan(self, size: int, schema: Schema) -> TrainingPlan:
        # The paper's noise has density exp(-length); only the defaults make use of rows being sparse.
        nonzeros = len(schema.columns) if self.is_default else None
        budget = TrainingBudget(self.epsilon, self.delta, REPLACE_ONE, size, schema.width, 1, nonzeros)
        loss = LOSSES[self.loss]
        if self.loss == "logistic" and self.method == "objective" and not self.strength:
            loss = LogisticLoss(logistic_margin(budget))  # as the estimator's default
        return plan_training(budget, loss, self.method, self.strength or "auto")


class Training:
    """Some of the records, to learn from."""

    def __init__(self, records: Records, places: np.ndarray) -> None:
        self.schema, self.places, self.size = records.schema, places, len(places)
        _, first, self.counts = np.unique(records.twins[places], return_index=True, return_counts=True)
        self._distinct, self._records = places[first], records
        self.signs = records.signs[self._distinct]

    @cached_property
    def _plain(self) -> UnitRows:
        return UnitRows(self._records.plain[self._distinct], 1.0)

    @cached_property
    def _centred(self) -> np.ndarray:
        return self._records.centred[self._distinct]

    def non_private(self, loss: LossName, strengths: Iterable[float]) -> dict[float, np.ndarray]:
        """The minimisers for every Λ, from the largest down, each from where the last one ended."""
        point, found = np.zeros(self.schema.width), {}
        for strength in sorted(set(strengths), reverse=True):
            point = found[strength] = self._minimise(self._plain, LOSSES[loss], strength, 0 * point, point)
        return found

    def private(self, recipe: Recipe, seeds: Sequence[int], solution: np.ndarray | None = None) -> np.ndarray:
        """Coefficients for each seed. `solution`: what `non_private` found, to save the work in output perturbation."""
        plan, rows = recipe.plan(self.size, self.schema), self._plain
        loss = plan.loss
        if recipe.is_default:
            nonzeros = plan.budget.nonzeros if plan.budget.law == "laplace" else None
            rows = UnitRows(self._centred, 1.0, stretch=True, nonzeros=nonzeros)
        start = np.zeros(rows.width)
        found = []
        for seed in seeds:
            stream, tilt = seed_from(seed), np.zeros(rows.width)
            if plan.tilt is not None:
                tilt = stream.seeded(plan.tilt)(tilt) / self.size
            if plan.tilt is not None or solution is None:
                solution = self._minimise(rows, loss, plan.regularization, tilt, start)
            found.append(stream.seeded(plan.mask)(solution[None])[0])
        return np.array(found)

    def _minimise(self, rows: UnitRows, loss: Loss, strength: float, tilt: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Newton's method with a line search on the objective."""
        signs, weights = self.signs, self.counts / self.size
        precision = np.float32 if strength > _SINGLE_PRECISION else np.float64

        def value(margins: np.ndarray, point: np.ndarray) -> float:
            return float(weights @ loss.value(margins) + strength / 2 * (point @ point) + tilt @ point)

        margins = signs * rows.times(point)
        here = value(margins, point)
        for _ in range(_MOST_STEPS):
            gradient = rows.pull(signs * weights * loss.slope(margins)) + strength * point + tilt
            hessian = rows.gram(weights * loss.curvature(margins), precision)
            hessian[np.diag_indices_from(hessian)] += strength
            direction = -cho_solve(cho_factor(hessian, overwrite_a=True), gradient)
            slope, length = float(gradient @ direction), 1.0
            if -slope / 2 <= _SUBOPTIMAL:
                break
            change = signs * rows.times(direction)
            while (there := value(margins + length * change, point + length * direction)) > here + 0.1 * length * slope:
                length /= 2
                if length < 1e-8:  # as good as arithmetic allows
                    return point
            point, margins, here = point + length * direction, margins + length * change, there
        return point


@dataclass(frozen=True)
class Split:
    """Records to learn from and places of records to test on."""

    records: Records
    training: Training
    test: np.ndarray

    @staticmethod
    def folds(records: Records, count: int, used: int) -> list[Split]:
        """The first `used` of `count` folds; the records are in random order already."""
        places = np.arange(len(records.signs))
        parts = np.array_split(places, count)[:used]
        return [Split(records, Training(records, np.setdiff1d(places, part)), part) for part in parts]

    def error(self, weights: np.ndarray, *, centred: bool = False) -> np.ndarray:
        """Share of test records on the wrong side, for each row of `weights`. The lengths of records do not matter."""
        return np.mean(wrong(self.records, self.test, weights, centred=centred), axis=0)

    def private_errors(self, recipe: Recipe, seeds: Sequence[int], solution: np.ndarray | None = None) -> np.ndarray:
        return self.error(self.training.private(recipe, seeds, solution), centred=recipe.is_default)


def wrong(records: Records, places: np.ndarray, weights: np.ndarray, *, centred: bool = False) -> np.ndarray:
    """Which of these records (down) each row of `weights` (across) puts on the wrong side."""
    matrix = (records.centred if centred else records.plain)[places]
    return (matrix @ np.atleast_2d(weights).T > 0) != (records.signs[places] > 0)[:, None]


# Judging.


def interval(errors: np.ndarray) -> tuple[float, float, float]:
    """Mean error and a 95 % interval of it, from the means of the splits (rows); draws of noise are columns.

    >>> interval(np.array([[0.1, 0.3], [0.2, 0.2]]))
    (0.2, 0.2, 0.2)
    """
    means = np.atleast_2d(errors).mean(axis=1)
    centre, half = float(means.mean()), _half(means)
    return centre, max(0.0, centre - half), min(1.0, centre + half)


def beats(first: np.ndarray, second: np.ndarray, questions: int = 1) -> bool | None:
    """Whether the first error is smaller: True, False if it is larger, None if 95 % confidence does not tell.

    By the differences on the same splits. With several `questions` the confidence is for all together (Bonferroni).

    >>> beats(np.array([[0.1], [0.2]]), np.array([[0.2], [0.3]]))
    True
    """
    difference = np.atleast_2d(first).mean(axis=1) - np.atleast_2d(second).mean(axis=1)
    centre, half = float(difference.mean()), _half(difference, 0.05 / questions)
    return True if centre < -half else False if centre > half else None


def _half(values: np.ndarray, missing: float = 0.05) -> float:
    """Half the width of an interval that misses the mean so often."""
    if len(values) < 2 or np.ptp(values) < 1e-12:
        return 0.0
    return float(student.ppf(1 - missing / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
