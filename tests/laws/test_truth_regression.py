"""Noise-aware regressions find the truth: over many runs the mean coefficient is within its standard errors.

The truth is what the data were made with; nothing of the product is used to judge. Shapes: the README's example, noise
from a fraction to fifteen times the signal, Gaussian and Laplace noise, correlated features, randomised categories,
logistic labels. The stated standard errors cover. Where noise drowns the signal the model says so.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from sfumato import Interval, Schema
from sfumato.release import (
    GaussianRelease,
    NoiseAwareLinearRegression,
    NoiseAwareLogisticRegression,
    SwampedWarning,
)
from sfumato.release.aware_common import NoisyGram

RUNS = 25
TRUTH = np.array([1.5, -1.0, 0.5])
#: rows, features, noise to signal (standard deviations), correlation of the features, law of the noise
SHAPES = {
    "little noise": (1_000, 2, 0.3, 0.0, "normal"),
    "as much noise as signal": (2_000, 3, 1.0, 0.5, "normal"),
    "Laplace": (5_000, 2, 2.0, 0.0, "laplace"),
    "correlated": (10_000, 3, 2.0, 0.7, "normal"),
    "fifteen times the variance": (20_000, 2, 4.0, 0.2, "normal"),
}


def features(generator, rows, width, correlation):
    mixed = np.full((width, width), correlation) + (1 - correlation) * np.eye(width)
    return generator.normal(size=(rows, width)) @ np.linalg.cholesky(mixed).T


def noise_of(generator, law, size, level):
    return level * (generator.normal(size=size) if law == "normal" else generator.laplace(size=size) / math.sqrt(2))


def linear_runs(shape, runs=60, seed=1):
    """Coefficients and stated standard errors, run by run."""
    rows, width, level, correlation, law = shape
    found = []
    for run in range(runs):
        generator = np.random.default_rng([seed, run])
        true = features(generator, rows, width, correlation)
        target = true @ TRUTH[:width] + 0.1 * generator.normal(size=rows)
        noisy = true + noise_of(generator, law, true.shape, level)
        model = NoiseAwareLinearRegression(level**2, regularization="unbiased")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SwampedWarning)  # one run of many may look drowned
            model.fit(noisy, target)
        found.append((model.coef_, model.standard_error_))
    return np.array(found)


def distance(coefficients, truth):
    """How many standard errors of the mean over the runs lie between it and the truth, at most."""
    error = coefficients.std(axis=0, ddof=1) / math.sqrt(len(coefficients))
    return float((np.abs(coefficients.mean(axis=0) - truth) / error).max())


def readme_runs(runs):
    schema = Schema({"age": Interval(0, 100), "dose": Interval(0, 10), "response": Interval(0, 1)})
    found = []
    for seed in range(runs):
        generator = np.random.default_rng(seed)
        age, dose = generator.uniform(20, 90, 20_000), generator.uniform(0, 10, 20_000)
        table = {"age": age, "dose": dose, "response": 0.004 * age + 0.05 * dose}
        out = GaussianRelease(schema, epsilon=8.0, delta=1e-6, label="response", random_state=seed).release(table)
        noisy = np.column_stack([out.table["age"], out.table["dose"]])
        model = NoiseAwareLinearRegression(out.noise.covariance_of(["age", "dose"]))
        model.fit(noisy, out.table["response"])
        found.append((model.coef_, model.standard_error_))
    return np.array(found)


def test_the_example_of_the_readme():
    found = readme_runs(RUNS)
    truth = np.array([0.004, 0.05])
    assert distance(found[:, 0], truth) < 2
    covered = np.abs(found[:, 0] - truth) < 1.96 * found[:, 1]
    assert covered.mean() > 0.8


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.by_day(2)
def test_linear_coefficients(shape):
    found = linear_runs(shape)
    assert distance(found[:, 0], TRUTH[: shape[1]]) < 3  # the largest of several, each within two nineteen times in 20
    covered = np.abs(found[:, 0] - TRUTH[: shape[1]]) < 1.96 * found[:, 1]
    assert covered.mean() > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_linear_coefficients_at_length(shape):
    """200 runs: a bias of a fifth of one run's scatter would show."""
    found = linear_runs(shape, 200, seed=4)
    assert distance(found[:, 0], TRUTH[: shape[1]]) < 3
    covered = np.abs(found[:, 0] - TRUTH[: shape[1]]) < 1.96 * found[:, 1]
    assert 0.9 < covered.mean() < 0.99


def test_the_law_finds_a_shrinking_correction(monkeypatch):
    """The divisor raised by the sampling error of the signal: consistent, and a fifth too small in loud noise."""
    monkeypatch.setattr(NoisyGram, "resolved", lambda self, rows: (self.divisors(self.floor), np.full(99, 9.0)))
    assert distance(linear_runs(SHAPES["fifteen times the variance"])[:, 0], TRUTH[:2]) > 4


@pytest.mark.parametrize("shape", [(5_000, 2, 1.0, 0.0), (20_000, 2, 2.0, 0.0), (5_000, 3, 1.0, 0.5)], ids=str)
def test_logistic_coefficients(shape):
    rows, width, level, correlation = shape
    found = []
    for run in range(12):
        generator = np.random.default_rng([7, run])
        true = features(generator, rows, width, correlation)
        labels = generator.uniform(size=rows) < 1 / (1 + np.exp(-true @ TRUTH[:width]))
        noisy = true + level * generator.normal(size=true.shape)
        found.append(NoiseAwareLogisticRegression(level**2, C=1e6).fit(noisy, labels).coef_[0])
    assert distance(np.array(found), TRUTH[:width]) < 3


def test_where_noise_drowns_the_signal_the_model_says_so():
    generator = np.random.default_rng(3)
    true = generator.normal(size=(500, 2))
    noisy = true + 6 * generator.normal(size=true.shape)
    with pytest.warns(SwampedWarning, match="prediction at most"):
        model = NoiseAwareLinearRegression(36.0).fit(noisy, true @ [1.0, -1.0])
    assert model.resolution_ < 2
    assert model.shrinkage_ > 0


#: Few rows, or hardly more rows than features.
SMALL = [(3, 1), (4, 2), (6, 4), (10, 2), (10, 8), (30, 2), (30, 20), (100, 50)]


def covered(rows, width, runs=80, error=lambda model: model.standard_error_):
    """How often ±1.96 stated errors hold the truth, where the model does not say that it is drowned."""
    hits = []
    for run in range(runs):
        generator = np.random.default_rng([rows, width, run])
        true = generator.normal(size=(rows, width))
        target = true.sum(axis=1) + 0.3 * generator.normal(size=rows)
        with warnings.catch_warnings():
            warnings.simplefilter("error", SwampedWarning)
            try:
                model = NoiseAwareLinearRegression(0.01).fit(true + 0.1 * generator.normal(size=true.shape), target)
            except SwampedWarning:
                continue
        hits.append(np.abs(model.coef_ - 1) <= 1.96 * error(model))
    return float(np.mean(hits)) if hits else 1.0


@pytest.mark.parametrize(("rows", "width"), SMALL)
@pytest.mark.by_day(3)
def test_standard_errors_cover_with_few_rows(rows, width):
    assert covered(rows, width) >= 0.90


def test_the_law_finds_errors_without_leverage(monkeypatch):
    monkeypatch.setattr(
        NoiseAwareLinearRegression, "_error", lambda self, scatter, centred: scatter.std(axis=0) / len(scatter) ** 0.5
    )
    assert min(covered(rows, width) for rows, width in ((10, 2), (100, 50))) < 0.90


@pytest.mark.parametrize(("rows", "width"), [(2, 1), (2, 2), (3, 2), (5, 4), (3, 5)])
def test_rows_that_leave_nothing_over_give_no_error(rows, width):
    generator = np.random.default_rng(0)
    with pytest.warns(SwampedWarning, match="too few"):
        model = NoiseAwareLinearRegression(0.01).fit(generator.normal(size=(rows, width)), generator.normal(size=rows))
    assert np.isinf(model.standard_error_).all()
