"""Networks on noisy tables: true rows are drawn by their law, curved rules are learned, refusals."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import check_grad
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.utils.estimator_checks import check_estimator

from sfumato.core import REPLACE_ONE, Categories, Interval, Schema
from sfumato.core.noise import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.errors import DataError, InputError
from sfumato.mechanisms import Box
from sfumato.release import (
    BoxRelease,
    GaussianRelease,
    NoiseAwareNetworkClassifier,
    NoiseAwareNetworkRegressor,
    TableNoise,
)
from sfumato.release.aware_network import _Layers, _loss, _Met, _Told
from sfumato.release.aware_truth import TrueRows
from sfumato.release.noise import ResponseNoise

SCHEMA = Schema({"a": Interval(-1, 1), "b": Interval(-1, 1)})
LAWS = {
    "gaussian": (GaussianNoise(0.4), lambda generator, size: generator.normal(scale=0.4, size=size)),
    "laplace": (LaplaceNoise(0.28), lambda generator, size: generator.laplace(scale=0.28, size=size)),
    "box": (
        BoxNoise(1.1),
        lambda generator, size: Box(1.1, 1.0, REPLACE_ONE, random_state=int(generator.integers(1e9)))(np.zeros(size)),
    ),
}


def ring(rows, generator):
    truth = generator.uniform(-1, 1, (rows, 2))
    return truth, np.linalg.norm(truth, axis=1) < 0.6


def columns(rows):
    return {"a": rows[:, 0], "b": rows[:, 1]}


def better(gains):
    """Student's test: without any gain 2 of 100 such comparisons would say so."""
    return np.mean(gains) > student.ppf(0.98, len(gains) - 1) * np.std(gains, ddof=1) / math.sqrt(len(gains))


@pytest.mark.paper("000", "§2.4, kernels", "release/aware_network.py")
@pytest.mark.parametrize(
    ("kind", "draws"),
    [
        ("gaussian", 8),
        pytest.param("laplace", 16, marks=pytest.mark.slow),
        pytest.param("box", 16, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_ring_is_learned_through_noise(kind, draws):
    """On clean rows, against the same network that takes noisy rows as they are; on eight tables.

    Draws for noise that is not normal have uneven weights: eight of them were too few to tell with Laplace noise.
    """
    law, drawn = LAWS[kind]
    noise, gains = TableNoise.independent(SCHEMA, {"a": law, "b": law}), []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        truth, labels = ring(1500, generator)
        clean, wanted = ring(4000, generator)
        noisy = truth + drawn(generator, truth.shape)
        aware = NoiseAwareNetworkClassifier(noise, hidden=8, draws=draws, max_iter=120).fit(columns(noisy), labels)
        naive = NoiseAwareNetworkClassifier(0.0, hidden=8, max_iter=120).fit(noisy, labels)
        gains.append(aware.score(columns(clean), wanted) - naive.score(clean, wanted))
    assert better(gains), gains


@pytest.mark.slow
def test_a_wave_is_learned_through_noise():
    """Squared distance to the true curve, against the same network without the law; noise halves the wave's height."""
    gains = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        truth = generator.uniform(-2, 2, (1500, 1))
        target = np.sin(3 * truth[:, 0]) + generator.normal(scale=0.2, size=1500)
        noisy = truth + generator.normal(scale=0.4, size=truth.shape)
        places = np.linspace(-1.8, 1.8, 400)[:, None]
        missed = [
            np.mean((model.fit(noisy, target).predict(places) - np.sin(3 * places[:, 0])) ** 2)
            for model in (
                NoiseAwareNetworkRegressor(0.16, hidden=8, draws=8, max_iter=150),
                NoiseAwareNetworkRegressor(hidden=8, max_iter=150),
            )
        ]
        gains.append(math.log(missed[1] / missed[0]))
    assert better(gains), gains
    assert np.median(gains) > math.log(2)


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.slow
def test_draws_of_true_rows_have_the_law_of_true_rows_given_the_published(kind):
    """A true law of two hills, and posterior means by quadrature; shrinking by variances alone is far from them."""
    law, drawn = LAWS[kind]
    generator = np.random.default_rng(3)
    truth = np.where(generator.random(20_000) < 0.3, -0.7, 0.5)[:, None] + generator.normal(
        scale=0.15, size=(20_000, 1)
    )
    noisy = truth + drawn(generator, truth.shape)

    def ratio(differences):
        normal = norm.logpdf(differences[..., 0], scale=math.sqrt(law.variance()))
        return np.log(np.maximum(law.density(differences[..., 0]), 1e-300)) - normal

    found = TrueRows.given(noisy, np.array([[law.variance()]]), 16, None if kind == "gaussian" else ratio, 0)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)

    def density(value):
        return 0.3 * norm.pdf(value, -0.7, 0.15) + 0.7 * norm.pdf(value, 0.5, 0.15)

    means, lines = (found.weights * found.draws[:, :, 0]).sum(axis=1), []
    share = truth.var() / noisy.var()
    for place in (-0.8, -0.2, 0.2, 0.7):
        near = np.abs(noisy[:, 0] - place) < 0.03
        total = quad(lambda x, at=place: density(x) * float(law.density(at - x)), -2, 2, points=[place], limit=200)[0]
        first = quad(lambda x, at=place: x * density(x) * float(law.density(at - x)), -2, 2, points=[place], limit=200)[
            0
        ]
        assert means[near].mean() == pytest.approx(first / total, abs=0.06)
        lines.append(abs(noisy.mean() + share * (place - noisy.mean()) - first / total))
    assert max(lines) > 0.12


def test_gradients_are_those_of_the_loss():
    generator = np.random.default_rng(0)
    weights = generator.random((30, 4))
    rows = TrueRows(generator.normal(size=(30, 4, 3)), weights / weights.sum(axis=1, keepdims=True))
    odds = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    for aim, outputs in ((_Told(generator.integers(0, 3, 30), odds), 2), (_Met(generator.normal(size=30)), 1)):
        start = _Layers.begin(3, 5, outputs, generator)

        def cost(numbers, aim=aim, start=start):
            return _loss(start.with_flat(numbers), rows, aim)

        off = check_grad(lambda x, cost=cost: cost(x)[0], lambda x, cost=cost: cost(x)[1], start.flat())
        assert off < 1e-5 * np.linalg.norm(cost(start.flat())[1])


@pytest.mark.slow
def test_randomised_labels_and_several_classes():
    """Chances are those of the true labels: told ones are right in 70 of 100 cases."""
    generator = np.random.default_rng(2)
    truth = generator.uniform(-1, 1, (3000, 2))
    labels = (np.abs(truth) > 0.5).sum(axis=1)
    noisy = truth + generator.normal(scale=0.15, size=truth.shape)
    told = np.where(generator.random(3000) < 0.7, labels, (labels + generator.integers(1, 3, 3000)) % 3)
    model = NoiseAwareNetworkClassifier(0.0225, label_noise=ResponseNoise((0, 1, 2), 0.7), draws=8, penalty=1e-3)
    model.fit(noisy, told)
    assert model.score(truth, labels) > 0.8
    chances = model.predict_proba(truth)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(chances.mean(axis=0), np.bincount(labels) / 3000, atol=0.05)


def test_columns_without_noise_stay_as_they_are():
    generator = np.random.default_rng(4)
    truth = generator.uniform(-1, 1, (800, 2))
    noisy = truth + generator.normal(size=truth.shape) * [0.0, 0.3]
    found = TrueRows.given(noisy, np.diag([0.0, 0.09]), 6, None, 0)
    np.testing.assert_allclose(found.draws[:, :, 0], np.repeat(truth[:, :1], 6, axis=1), atol=1e-6)
    assert np.median(found.draws[:, :, 1].std(axis=1)) > 0.1


@pytest.mark.slow
def test_a_released_table_is_learned_from():
    """From GaussianRelease to predictions for clean rows by name; the same seed gives the same network."""
    generator = np.random.default_rng(5)
    truth, labels = ring(1200, generator)
    told = {**columns(truth), "in": np.where(labels, "yes", "no")}
    schema = Schema({**SCHEMA.columns, "in": Categories(["no", "yes"])})
    out = GaussianRelease(schema, epsilon=100.0, delta=1e-4, label="in").release(told)
    table = {name: np.asarray(out.table[name]) for name in "ab"}
    models = [
        NoiseAwareNetworkClassifier(out.noise, hidden=6, max_iter=60).fit(table, out.table["in"]) for _ in range(2)
    ]
    assert models[0].score(columns(truth), told["in"]) > 0.85
    np.testing.assert_array_equal(models[0].predict_proba(columns(truth)), models[1].predict_proba(columns(truth)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [NoiseAwareNetworkClassifier, NoiseAwareNetworkRegressor])
@pytest.mark.slow
def test_scikit_learn_conformance(kind):
    check_estimator(kind(max_iter=100), on_skip=None)


@pytest.mark.parametrize("wrong", [{"hidden": 0}, {"draws": 0}, {"penalty": -1.0}, {"max_iter": 0}])
@pytest.mark.parametrize("kind", [NoiseAwareNetworkClassifier, NoiseAwareNetworkRegressor])
def test_parameters_that_mean_nothing_are_refused(kind, wrong):
    with pytest.raises((InputError, ValueError)):
        kind(0.1, **wrong).fit(*ring(50, np.random.default_rng(0)))


def test_noise_that_cannot_be_undone_is_refused():
    truth, labels = ring(60, np.random.default_rng(0))
    mixed = Schema({"a": Interval(-1, 1), "c": Categories(["x", "y"])})
    answers = TableNoise.independent(mixed, {"a": GaussianNoise(0.1)}, {"c": ResponseNoise(("x", "y"), 0.8)})
    with pytest.raises(InputError, match="numeric columns alone"):
        NoiseAwareNetworkClassifier(answers).fit({"a": truth[:, 0], "c": ["x", "y"] * 30}, labels)
    with warnings.catch_warnings(action="ignore"):
        tied = BoxRelease(SCHEMA, 1.0, constraints=[("a", "b")]).prepare().noise
    with pytest.raises(InputError, match="mean 0"):
        NoiseAwareNetworkClassifier(tied).fit(columns(truth), labels)
    centred = TableNoise(tied.schema, tied.columns, tied.laws, tied.covariance_rows)
    with pytest.raises(InputError, match="tied by constraints"):
        NoiseAwareNetworkClassifier(centred).fit(columns(truth), labels)
    rows = ((0.01, 0.005), (0.005, 0.01))
    shared = TableNoise(SCHEMA, ("a", "b"), (GaussianNoise(0.1), GaussianNoise(0.1)), rows, label="b")
    with pytest.raises(InputError, match="noise of its own"):
        NoiseAwareNetworkRegressor(shared).fit({"a": truth[:, 0]}, truth[:, 1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_beyond_all_squares_are_refused_in_words():
    """They gave a network whose every answer was NaN."""
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(DataError, match="too large"):
        NoiseAwareNetworkClassifier(0.1, hidden=2, draws=2, max_iter=3).fit(X * 1e200, y)
    with pytest.raises(DataError, match="too large"):
        NoiseAwareNetworkRegressor(0.1, hidden=2, draws=2, max_iter=3).fit(X, y * 1e200)
    with pytest.raises(InputError, match="whole number"):
        NoiseAwareNetworkClassifier(0.1, hidden=True).fit(X, y)
