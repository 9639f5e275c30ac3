"""A private regression is never worse than a private mean, on ten shapes of targets.

The mean is made here with numpy's own noise and the whole budget. What counts is the paired difference of test errors
over seeds: beyond two standard errors and the half percent of variance that the mean may cede by rule, it is a loss.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.core.gaussian import gaussian_mu
from sfumato.learn import PrivateLinearRegression, linear
from sfumato.learn.target_moments import TargetLook

WIDTH = 6
DIRECTION = np.random.default_rng(5).normal(size=WIDTH)
DIRECTION /= np.linalg.norm(DIRECTION)

#: Target of signal, noise and generator; and its public interval.
SHAPES = {
    "lognormal": (lambda s, e, g: np.exp(0.5 * s + 0.87 * e), (0, 100)),
    "income": (lambda s, e, g: np.exp(10.3 + 0.5 * s + 0.5 * e), (0, 1e6)),
    "mostly zero": (lambda s, e, g: np.where(g.random(len(s)) < 0.9, 0, g.gamma(2, 10 * np.exp(0.4 * s))), (0, 200)),
    "symmetric": (lambda s, e, g: 0.8 * s + 0.45 * e, (-2, 2)),
    "weak": (lambda s, e, g: 0.1 * s + e, (-4, 4)),
    "no signal": (lambda s, e, g: e, (-4, 4)),
    "yes or no": (lambda s, e, g: (s + e > 0).astype(float), (0, 1)),
    "far from the middle": (lambda s, e, g: 10 + s + 0.3 * e, (-100, 20)),
    "bounded": (lambda s, e, g: np.clip(0.5 + 0.2 * s + 0.2 * g.uniform(-1, 1, len(s)), 0, 1), (0, 1)),
    "counts": (lambda s, e, g: g.poisson(np.exp(0.5 + 0.4 * s)).astype(float), (0, 50)),
}


def rows_of(name: str, rows: int, generator: np.random.Generator):
    matrix, (target, interval) = generator.normal(size=(rows, WIDTH)), SHAPES[name]
    values = target(matrix @ DIRECTION, generator.normal(size=rows), generator)
    return matrix, np.clip(values, *interval), interval


def worst_loss(name: str, rows: int, epsilons, seeds: int) -> float:
    """The largest mean loss against the private mean in shares of the variance, less two standard errors."""
    worst = -math.inf
    for epsilon in epsilons:
        differences = []
        for seed in range(seeds):
            generator = np.random.default_rng([seed, rows])
            matrix, target, (low, high) = rows_of(name, rows, generator)
            table, truth, _ = rows_of(name, 4000, generator)
            moved = (high - low) / (rows * gaussian_mu(epsilon, 1e-6))
            plain = np.clip(target.mean() + moved * generator.normal(), low, high)
            model = PrivateLinearRegression(epsilon, 1e-6, (low, high), norm=3.0, random_state=seed).fit(matrix, target)
            ours = np.mean((model.predict(table) - truth) ** 2)
            differences.append((ours - np.mean((plain - truth) ** 2)) / truth.var())
        loss = np.mean(differences) - 2 * np.std(differences) / math.sqrt(seeds - 1)
        worst = max(worst, float(loss))
    return worst


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.by_day(2)
def test_never_worse_than_a_private_mean(name):
    assert worst_loss(name, 3000, (0.1, 1.0, 3.0), seeds=16) <= 0.005


def test_the_law_sees_a_target_centred_on_the_middle_of_its_interval(monkeypatch):
    monkeypatch.setattr(linear, "together", lambda purse, releases: TargetLook(0.0, 1.0, 0.0, 3000.0))
    assert worst_loss("income", 3000, (0.1,), seeds=4) > 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sfumato.learn.linear.TargetAtEndWarning")  # most are 0, the end of their interval
@pytest.mark.parametrize("rows", [1000, 5000, 50_000])
@pytest.mark.parametrize("name", SHAPES)
def test_never_worse_at_night(name, rows):
    assert worst_loss(name, rows, (0.1, 1.0, 3.0, 10.0), seeds=30) <= 0.008
