"""The bound on how far noise moves a machine: never exceeded, within a factor of the truth, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from sfumato.core import Interval, Schema
from sfumato.errors import InputError
from sfumato.release import GaussianRelease, machine_bound

LOSSES = {
    "logistic": (lambda m: np.logaddexp(0, -m), lambda m: -1 / (1 + np.exp(m))),
    "huber": (
        lambda m: np.where(m > 1.5, 0, np.where(m < 0.5, 1 - m, (1.5 - m) ** 2 / 2)),
        lambda m: -np.clip(1.5 - m, 0, 1),
    ),
}


def trained(rows, labels, strength, loss):
    """By another solver: L-BFGS on the plain sum."""
    value, slope = LOSSES[loss]

    def objective(w):
        margins = labels * (rows @ w)
        gradient = rows.T @ (labels * slope(margins)) / len(rows) + strength * w
        return value(margins).mean() + strength / 2 * w @ w, gradient

    return minimize(objective, np.zeros(rows.shape[1]), jac=True, tol=1e-12).x


@pytest.mark.paper("000", "Prop 2.3", "release/utility.py")
@pytest.mark.paper("000", "Prop 2.11", "release/utility.py")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_no_fit_moves_further_than_the_bound(loss, seed):
    """For any records: the deterministic part always, the confident part in all of these draws."""
    generator = np.random.default_rng(seed)
    q, p, strength = int(generator.integers(20, 200)), int(generator.integers(1, 5)), 10 ** generator.uniform(-2, 0)
    rows = generator.normal(size=(q, p))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    labels = np.sign(rows[:, 0] + 0.3 * generator.normal(size=q))
    for scale in (1e-4, 0.05, 1.0):
        noise = generator.normal(scale=scale, size=rows.shape)
        bound = machine_bound(np.eye(p) * scale**2, regularization=strength, norm=1.0, records=q, loss=loss)
        true, moved = trained(rows, labels, strength, loss), trained(rows + noise, labels, strength, loss)
        distance = np.linalg.norm(true - moved)
        assert distance <= bound.factor * np.linalg.norm(noise, axis=1).mean() + 1e-6
        assert distance <= bound.within + 1e-6
        assert np.linalg.norm(true) <= bound.longest + 1e-6


def test_the_bound_is_not_idle():
    """One record, one feature, little curvature: a third of the bound is reached."""
    strength, x, n = 5.0, np.array([[1.0]]), 0.01
    moved = trained(x + n, np.array([1.0]), strength, "logistic") - trained(x, np.array([1.0]), strength, "logistic")
    bound = machine_bound(np.array([[n**2]]), regularization=strength, norm=1.0, records=1, loss="logistic")
    assert abs(float(moved[0])) > 0.3 * bound.expected


def test_it_reads_a_released_table_and_speaks():
    schema = Schema({"a": Interval(0, 1), "b": Interval(0, 2)})
    release = GaussianRelease(schema, epsilon=1.0, delta=1e-6).release({"a": [0.5] * 50, "b": [1.0] * 50})
    bound = machine_bound(release.noise, regularization=0.1, norm=3.0, records=50)
    assert "says nothing" in str(bound)
    assert bound.within > bound.expected > 0


@pytest.mark.parametrize("wrong", [{"loss": "hinge"}, {"failure": 1.0}, {"records": 0}, {"regularization": 0.0}])
def test_what_means_nothing_is_refused(wrong):
    given = {"regularization": 1.0, "norm": 1.0, "records": 5} | wrong
    with pytest.raises((InputError, ValueError)):
        machine_bound(np.eye(2), **given)
