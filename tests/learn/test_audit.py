"""Attacks on published coefficients of two features: the claim stands, a false one falls."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.core import PureDP
from sfumato.evidence.audit import audit
from sfumato.learn import PrivateLogisticRegression
from sfumato.learn.rows import UnitRows

COMMON = np.array([[0.6, 0.0], [0.0, -0.5], [-0.3, 0.3]])
LABELS = np.array([1, 0, 1])


class Training:
    """Repeated fits on the common records and one more; `value` is that record: (x1, x2, y)."""

    def __init__(self, epsilon, delta, method):
        self.make = lambda: PrivateLogisticRegression(
            epsilon, delta, method, regularization=0.5, fit_intercept=False, classes=[0, 1]
        )
        self.plan = self.make().plan_for(COMMON[:1].repeat(4, axis=0), [0, 1])
        self.promise = self.plan.budget.promise()

    def guarantee(self):
        return self.promise

    @staticmethod
    def data(value):
        return np.vstack([COMMON, value[:2]]), np.append(LABELS, int(value[2]))

    def sample(self, value, trials):
        X, y = self.data(value)
        return np.stack([self.make().fit(X, y)._weights[0] for _ in range(trials)])

    def log_likelihood(self, outputs, value):
        X, y = self.data(value)
        rows, signs = UnitRows(X, 1.0), 2.0 * y - 1
        z = np.stack([rows.times(axis) for axis in np.eye(2)], axis=1)
        margins = signs * (outputs @ z.T)
        chance = 1 / (1 + np.exp(-margins))
        strength = self.plan.budget.size * self.plan.regularization
        if self.plan.tilt is None:
            return np.zeros(len(outputs))
        b = ((1 - chance) * signs) @ z - strength * outputs
        weights = chance * (1 - chance)
        hessian = np.einsum("ti,ij,ik->tjk", weights, z, z) + strength * np.eye(2)
        scale = self.plan.tilt.scale
        noise = -(b**2).sum(axis=1) / (2 * scale**2) if self.plan.budget.delta else -np.linalg.norm(b, axis=1) / scale
        return noise + np.log(np.linalg.det(hessian))


#: As many fits a side find a claim of a tenth; the nightly run looks with ten times as many.
TRIALS = (400, pytest.param(4000, marks=pytest.mark.slow))


@pytest.mark.parametrize("trials", TRIALS)
@pytest.mark.parametrize("delta", [0.0, 1e-2])
@pytest.mark.slow
def test_no_attacker_beats_the_claim(delta, trials):
    training = Training(3.0, delta, "objective")
    neighbours = (np.array([1.0, 0.0, 1]), np.array([1.0, 0.0, 0]))
    # That this attack has any power is shown by the false claim below.
    assert not audit(training, neighbours, trials=trials, confidence=0.9999).refuted


@pytest.mark.slow
def test_a_false_claim_falls():
    """Releases claimed at a tenth of their ε, by as many trials as above."""
    training = Training(6.0, 0.0, "objective")
    neighbours = (np.array([1.0, 0.0, 1]), np.array([1.0, 0.0, 0]))
    assert audit(training, neighbours, trials=400, confidence=0.99, claim=PureDP(0.6)).refuted


@pytest.mark.slow
def test_the_published_noise_has_the_planned_length():
    """In a direction without data the coefficients are b/λ: their spread is the plan's."""
    training = Training(3.0, 1e-2, "objective")
    outputs = training.sample(np.array([0.0, 0.0, 1]), 400)
    expected = training.plan.tilt.scale / (training.plan.budget.size * training.plan.regularization)
    assert 0.7 < outputs.std(axis=0).mean() / expected < 1.2
    assert math.isfinite(outputs.sum())
