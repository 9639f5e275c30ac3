"""Strategies for classifier(…) where the rows are in several places: noisy gradients, one round after the other.

In:   what is wanted, (ε, δ), a public number of individuals.
Out:  a linear model as JSON; its weights as a table.
Not here: the estimator (learn/stepped.py), strategies for rows in one place (run/publish_learning.py).
Proof: docs/proofs/centre_learning.md, docs/proofs/centre_acts.md

A prediction is 8·v/n²·Σ λ/(c·λ + …)²/2.2 and what the steps leave of the way: v the variance of one step's gradient, λ
eigenvalues of the rows' second moments, c the largest curvature of the loss. The 8 was fixed by simulation with one to
six columns and 1,000 to 20,000 rows, where it is right within a factor of four unless noise is all there is.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, final

import numpy as np

from sfumato.core import Guarantee, Schema
from sfumato.learn.stepped import SteppedClassifier
from sfumato.mechanisms.noisy_sums import StepLoss, lost_to_noise
from sfumato.plan.act import Act
from sfumato.plan.wanted import Wanted
from sfumato.run.publish_learning import SPREAD_OF_SCORES, ClassifierPublisher, Svm, largest_norm, second_moments

__all__ = ["HingeSteps", "LogisticSteps"]

#: How many steps there may be, and what each leaves of the distance to the minimum.
_STEPS = {6: 8e-4, 14: 1e-4}
#: What the noise of all steps adds up to in the weights, in units of one step's.
_STEP_NOISE = 8.0


class StepsPublisher(ClassifierPublisher):
    """A linear classifier by noisy gradients, which are sums: for rows that are in several places. Abstract."""

    summed: ClassVar[bool] = True
    only_shared: ClassVar[bool] = True
    seconds: ClassVar[float] = 0.1
    loss: ClassVar[StepLoss]

    def _estimator(self, schema: Schema, act: Act, random_state: int | None) -> Any:
        model = super()._estimator(schema, act, random_state)
        return dataclasses.replace(model, steps=int(act.parameters["steps"]))

    def _made(
        self,
        schema: Schema,
        classes: list[Any],
        guarantee: Guarantee,
        given: dict[str, float],
        random_state: int | None,
    ) -> SteppedClassifier:
        assert guarantee.adjacency is not None
        epsilon, delta, norm = given["epsilon"], given["delta"], largest_norm(schema)
        return SteppedClassifier(
            epsilon, delta, schema, guarantee.adjacency, classes, norm, self.loss, random_state=random_state
        )

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        act = super().settle(wanted, guarantee, size)
        given = {"epsilon": act.parameters["epsilon"], "delta": act.parameters["delta"]}
        model = self._made(wanted.schema, list(range(wanted.classes)), guarantee, given, None)
        losses = self._losses(model, max(1, round(size)))
        steps = min(losses, key=lambda steps: losses[steps])
        return dataclasses.replace(act, parameters={**act.parameters, "steps": steps})

    def _loss(self, model: Any, shape: np.ndarray, classes: list[int]) -> float:
        return min(self._losses(model, len(shape)).values())

    @staticmethod
    def _losses(model: SteppedClassifier, records: int) -> dict[int, float]:
        """By how many steps are made: few are noisy less and end further from the minimum."""
        moments = second_moments(model.schema, model.norm, model.constant)
        spectrum = np.maximum(np.linalg.eigvalsh(moments), 0.0)
        width = model.schema.width + (model.constant > 0)
        lost = lost_to_noise(width, math.sqrt(model.products_noise(width).error())) / records
        amplified = float(np.sum(spectrum / (model.curvature * (spectrum + lost) + model.ridge / records) ** 2))
        found = {}
        for steps, left in _STEPS.items():
            variance = dataclasses.replace(model, steps=steps).step_noise(width).error() / records**2
            found[steps] = left + _STEP_NOISE * amplified * variance / SPREAD_OF_SCORES
        return found


@final
class LogisticSteps(StepsPublisher):
    """Logistic regression, of several classes at once where there are several."""

    name: ClassVar[str] = "logistic_steps"
    loss: ClassVar[StepLoss] = "logistic"


@final
class HingeSteps(StepsPublisher):
    """A support vector machine with a rounded hinge."""

    name: ClassVar[str] = "hinge_steps"
    risk: ClassVar[str] = Svm.risk
    loss: ClassVar[StepLoss] = "hinge"
