"""The parts of private regression: moments of the target, how the budget is divided, how the ridge is chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, GaussianDP, compose
from sfumato.evidence import verify
from sfumato.learn import PrivateLinearRegression
from sfumato.learn.ridge_choice import chosen_ridge
from sfumato.learn.seeds import Seeds
from sfumato.learn.target_moments import FIRST_SHARE, TargetBudget, TargetLook, look, share_of_mean, together

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-0.5, 0.5, (4000, 3))
Y = 3 + X @ [1.0, 2.0, -1.0]


def farthest(weight: float, norm: float) -> float:
    """The largest distance of (t, weight·t²) for two targets in [-1, 1], over a fine grid."""
    t = np.linspace(-1, 1, 2001)
    first, second = np.abs(t[:, None] - t), weight * np.abs(t[:, None] ** 2 - t**2)
    return float((first**norm + second**norm).max() ** (1 / norm))


def test_the_second_moment_is_free_and_no_heavier_one_is():
    purse = TargetBudget(1.0, 1e-6, REPLACE_ONE)
    assert farthest(purse.weight, 2) <= 2 + 1e-12
    assert purse.noise(1.0, 0.0).sensitivity >= farthest(purse.weight, 2)
    assert farthest(1.68, 2) > 2.003  # planted: a heavier weight at the same sensitivity
    pure = TargetBudget(1.0, 0.0, REPLACE_ONE)
    assert pure.noise(1.0, 0.0).sensitivity >= farthest(pure.weight, 1) >= 2.25 - 1e-5
    t = np.linspace(-1, 1, 2001)
    for delta, norm in ((1e-6, 2), (0.0, 1)):
        added = (np.abs(t) ** norm + 1 + t ** (2 * norm)) ** (1 / norm)
        assert TargetBudget(1.0, delta, ADD_REMOVE).noise(1.0, 0.0).sensitivity >= added.max()


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-6), (0.3, 1e-6), (3.0, 1e-6), (0.01, 0.0), (3.0, 0.0)])
@pytest.mark.by_day(4)
def test_every_way_of_dividing_costs_the_same(adjacency, epsilon, delta):
    """Whatever the first look said, the events add up to the promise and nearly all of it; and they verify."""
    for seed in range(6):
        model = PrivateLinearRegression(epsilon, delta, target=(0, 6), adjacency=adjacency, random_state=seed).fit(X, Y)
        total = compose(model.certificate_.events)
        assert total.epsilon(delta) <= epsilon
        assert total.epsilon(delta) >= 0.98 * epsilon
        assert verify(model.certificate_).ok
        assert FIRST_SHARE <= model.share_ <= 1
        assert len(model.certificate_.events) == 2 + (FIRST_SHARE < model.share_ < 1)


def test_shares_follow_what_was_published():
    purse = TargetBudget(1.0, 1e-6, REPLACE_ONE)
    assert share_of_mean(purse, TargetLook(0.0, 0.3, 1e-4, 1e6), 0.0) == FIRST_SHARE
    assert share_of_mean(purse, TargetLook(0.0, 0.3, 1e-4, 30.0), 0.0) == 1.0
    assert FIRST_SHARE < share_of_mean(purse, TargetLook(0.0, 0.01, 1e-4, 1500.0), 0.0) < 1.0
    assert share_of_mean(purse, TargetLook(0.9, 0.0, 0.1, 1e6), 0.0) == FIRST_SHARE  # unseen, and many records
    assert share_of_mean(purse, TargetLook(0.9, 0.0, 0.1, 1e3), 0.0) == 1.0


def test_two_looks_are_as_good_as_one_with_the_budget_of_both():
    purse = TargetBudget(1.0, 1e-6, REPLACE_ONE)
    sums = (10.0, 30.0, 100.0)
    parts = [look(purse, sums, share, 0.0, Seeds(1)) for share in (0.1, 0.9)]
    whole = look(purse, sums, 1.0, 0.0, Seeds(1))
    joint = math.sqrt(1 / sum(one.deviation**-2.0 for one in parts))
    assert joint == pytest.approx(whole.deviation, rel=1e-3)
    assert isinstance(purse.part(0.25), GaussianDP)
    exact = together(purse, [one._replace(sums=np.array(sums)) for one in parts])
    assert (exact.mean, exact.variance) == (pytest.approx(0.1), pytest.approx(0.29))


@pytest.mark.slow
def test_the_estimated_gain_is_the_true_one_on_average():
    """Stein's identity, at one strength: means agree within four standard errors; without the last term they do not."""
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(300, 4))
    gram, product, sigma, strength = rows.T @ rows, rows.T @ (rows @ [1.0, 0, 0, -1.0]), 12.0, 60.0
    estimates, truths, without = [], [], []
    for _ in range(20_000):
        noise = generator.normal(size=(4, 4)) * sigma
        upper = np.triu(noise, 1) / math.sqrt(2)
        noisy, moved = gram + upper + upper.T + np.diag(np.diag(noise)), product + sigma * generator.normal(size=4)
        inverse = np.linalg.inv(noisy + strength * np.eye(4))
        b = inverse @ moved
        plain = 2 * b @ moved - b @ noisy @ b - 2 * sigma**2 * np.trace(inverse)
        estimates.append(plain - sigma**2 * (np.trace(inverse) * (b @ b) + b @ inverse @ b))
        without.append(plain)
        truths.append(2 * b @ product - b @ gram @ b)
    gaps, planted = np.subtract(estimates, truths), np.subtract(without, truths)
    error = gaps.std() / math.sqrt(len(gaps))
    assert abs(gaps.mean()) < 4 * error
    assert abs(planted.mean()) > 8 * error


def test_noise_alone_hardly_ever_gets_coefficients():
    generator, taken = np.random.default_rng(2), 0
    for _ in range(400):
        noise = generator.normal(size=(8, 8)) * 5
        upper = np.triu(noise, 1) / math.sqrt(2)
        noisy = 400 * np.eye(8) + upper + upper.T + np.diag(np.diag(noise))
        taken += bool(chosen_ridge(noisy, 5 * generator.normal(size=8), 5.0)[0].any())
    assert taken <= 12
    assert chosen_ridge(400 * np.eye(8), np.full(8, 100.0), 5.0)[0].all()


def _sums(rows, target, sigma, generator):
    """Σxxᵀ and Σxy with noise of this deviation on entries and, off the diagonal, √½ of it."""
    noise = generator.normal(size=(rows.shape[1],) * 2) * sigma
    upper = np.triu(noise, 1) / math.sqrt(2)
    moved = sigma * generator.normal(size=rows.shape[1])
    return rows.T @ rows + upper + upper.T + np.diag(np.diag(noise)), rows.T @ target + moved


def test_chance_in_the_records_is_no_signal():
    """A target that has nothing to do with the features: little noise, and still hardly any coefficients.

    Without the variance of the target more than half of such fits take some, and what they take loses more.
    """
    generator, taken, lost = np.random.default_rng(3), [0, 0], [0.0, 0.0]
    for _ in range(300):
        rows, target = generator.normal(size=(1000, 6)) / 3, 0.25 * generator.normal(size=1000)
        gram, product = _sums(rows, target, 1.0, generator)
        for place, facts in enumerate([(0.0625, 1000.0), (0.0, math.inf)]):
            weights, _ = chosen_ridge(gram, product, 1.0, *facts)
            taken[place] += bool(weights.any())
            lost[place] += float(weights @ weights)
    assert taken[0] <= 60
    assert taken[1] >= 150
    assert lost[0] < lost[1] / 4
    rows = generator.normal(size=(1000, 6)) / 3
    gram, product = _sums(rows, rows @ np.full(6, 0.2), 1.0, generator)
    with_variance, without = (chosen_ridge(gram, product, 1.0, *facts)[0] for facts in ((0.03, 1000.0), ()))
    np.testing.assert_allclose(with_variance, without, atol=0.01)  # a signal costs nothing


def test_words_and_given_strengths():
    little = PrivateLinearRegression(0.001, 1e-6, target=(0, 6), random_state=0).fit(X, Y)
    assert "mean wants all of it" in little.explain()
    assert (little.predict(X) == little.mean_).all()
    assert not little.coef_.any()
    given = PrivateLinearRegression(3.0, 1e-6, target=(0, 6), regularization=50.0, random_state=0).fit(X, Y)
    assert given.regularization_ == 50.0
    assert "Ridge strength 50" in given.explain()
    nothing = PrivateLinearRegression(1.0, 1e-6, target=(0, 6), random_state=0).fit(X, GENERATOR.uniform(0, 6, 4000))
    assert "beyond doubt" in nothing.explain()
