"""Kernel classifiers: sensitivities that no neighbours exceed, an audit, learning, refusals."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from sfumato.core import ADD_REMOVE, ApproxDP, GaussianDP, Interval, PureDP, Schema
from sfumato.errors import DataError, InputError, PrivacyParameterError, SchemaError
from sfumato.evidence.audit import audit
from sfumato.evidence.verify import verify
from sfumato.learn.features import FourierFeatures
from sfumato.learn.kernel_classifier import KernelClassifier
from sfumato.learn.kernel_mean import KernelMeanClassifier
from sfumato.learn.kernel_moment import KernelMomentClassifier
from sfumato.learn.kernel_ridge import KernelRidgeClassifier
from sfumato.learn.kernel_steps import KernelStepsClassifier
from sfumato.learn.seeds import Seeds

ALL = [KernelMeanClassifier, KernelMomentClassifier, KernelRidgeClassifier, KernelStepsClassifier, KernelClassifier]
RELEASES = [
    KernelMeanClassifier(1.0),
    KernelMeanClassifier(1.0, priors="divided"),
    KernelMomentClassifier(1.0),
    KernelRidgeClassifier(1.0),
    KernelStepsClassifier(1.0),
]


def data(rows=2000, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (rows, 2))
    return X, (X > 0).sum(axis=1)


def statistics(model, pairs, labels, components):
    """One row of statistics for each single record, given the phases of its features."""
    features = np.concatenate([np.cos(pairs), np.sin(pairs)], axis=1) / math.sqrt(pairs.shape[1])
    return np.stack([model._statistics(row[None], label[None], 3) for row, label in zip(features, labels, strict=True)])


@pytest.mark.parametrize("model", RELEASES, ids=repr)
@pytest.mark.by_day(2)
def test_no_neighbours_are_farther_apart_than_the_sensitivity(model):
    """Phases are free (frequencies and records are arbitrary): random ones, then hill climbing on the worst."""
    generator = np.random.default_rng(0)
    worst = 0.0
    for pairs in (1, 2, 5):
        phases = generator.uniform(-np.pi, np.pi, (2, 500, pairs))
        labels = generator.integers(3, size=(2, 500))
        old, new = (statistics(model, phases[side], labels[side], 2 * pairs) for side in (0, 1))
        distances = np.linalg.norm(old - new, axis=1)
        top = int(distances.argmax())
        best, place, names = distances[top], phases[:, top].copy(), labels[:, top]
        for _ in range(200):
            trial = place + generator.normal(scale=0.1, size=place.shape)
            found = np.linalg.norm(
                statistics(model, trial[:1], names[:1], 2 * pairs) - statistics(model, trial[1:], names[1:], 2 * pairs)
            )
            if found > best:
                best, place = found, trial
        worst = max(worst, float(best))
        assert np.linalg.norm(old, axis=1).max() <= (math.sqrt(1.5) if "Ridge" in repr(model) else 1.0) + 1e-12
    assert worst <= model._sensitivity() + 1e-12
    if model.__class__ is not KernelMeanClassifier or model.priors == "included":
        assert worst > 0.97 * model._sensitivity()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.by_day(2)
def test_it_learns_and_certifies(kind):
    X, y = data()
    model = kind(20.0, 1e-6, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.guarantee_ == ApproxDP(20.0, 1e-6, adjacency=model.adjacency)
    verify(model.certificate_)
    assert "kernel_mean" in model.certificate_.proofs
    assert "replacing one record" in model.explain()
    pure = kind(2000.0, n_components=20, random_state=0).fit(X, y)
    assert pure.guarantee_ == PureDP(2000.0, adjacency=pure.adjacency)
    assert pure.score(X, y) > 0.7
    verify(pure.certificate_)


def test_add_remove_ignores_the_number_of_records():
    X, y = data()
    models = [
        KernelMomentClassifier(9.0, 1e-6, adjacency=ADD_REMOVE, random_state=0).fit(X[:n], y[:n]) for n in (900, 2000)
    ]
    assert models[0].gamma_ == models[1].gamma_
    assert models[0].noise_ == models[1].noise_
    assert models[0].noise_.sensitivity == pytest.approx(1.0, rel=1e-4)


@pytest.mark.slow
def test_divided_priors_help_the_rare_class():
    generator = np.random.default_rng(1)
    y = (generator.random(4000) < 0.05).astype(int)
    X = generator.normal(scale=0.2, size=(4000, 2)) + 0.5 * y[:, None]
    recall = {}
    for priors in ("included", "divided"):
        model = KernelMeanClassifier(8.0, 1e-6, priors=priors, random_state=0).fit(X, y)
        recall[priors] = (model.predict(X)[y == 1] == 1).mean()
    assert recall["divided"] > recall["included"]


def test_schema_and_density():
    X, y = data()
    schema = Schema({"a": Interval(-1, 1), "b": Interval(-1, 1)})
    table = {"a": X[:, 0], "b": X[:, 1]}
    assert KernelClassifier(20.0, 1e-6, schema=schema, random_state=0).fit(table, y).score(table, y) > 0.8
    dense = np.random.default_rng(0).normal(scale=0.1, size=(2000, 2))
    scores = (
        KernelMeanClassifier(5.0, 1e-6, random_state=0).fit(dense, dense[:, 0] > 0).score_samples([[0, 0], [0.9, 0.9]])
    )
    assert scores[0] > scores[1]


class Release:
    """The class sums of one pair of features, released again and again; `value` is the phase of the only record."""

    def __init__(self, epsilon):
        model = KernelMeanClassifier(epsilon, 1e-3, gamma=1.0, n_components=2, classes=[0, 1])
        model.fit(np.array([[0.5], [0.1]]), [0, 1])
        self.model, self.noise = model, model.noise_

    def guarantee(self):
        return self.noise.guarantee()

    def sums(self, phase):
        return statistics(self.model, np.array([[phase]]), np.array([0]), 2)[0][:4]

    def sample(self, value, trials):
        return self.noise.sample(self.sums(value), trials)

    def log_likelihood(self, outputs, value):
        return self.noise.log_likelihood(outputs, self.sums(value))


def test_the_claim_stands_and_half_of_it_falls():
    release = Release(2.0)
    result = audit(release, (0.0, math.pi), trials=60_000)
    assert not result.refuted
    assert result.mu_lower > 0.5 * result.mu_claimed
    assert audit(release, (0.0, math.pi), trials=60_000, claim=GaussianDP(result.mu_claimed / 2)).refuted


def test_noise_for_the_constant_of_the_literature_falls():
    """√2 holds for kernels that are never negative; random features of opposite phases are 2 apart."""
    release = Release(2.0)
    claim = release.guarantee()
    release.noise = dataclasses.replace(release.noise, scale=release.noise.scale / math.sqrt(2))
    assert audit(release, (0.0, math.pi), trials=60_000, claim=claim).refuted


@pytest.mark.parametrize("kind", ALL)
def test_odd_numbers_of_features_become_pairs(kind):
    X, y = data(60)
    model = kind(5.0, 1e-6, n_components=7, random_state=0).fit(X, y)
    assert model.n_components_ == 8
    assert model.features_(X).shape == (60, 8)


def test_a_class_without_records_is_declared_and_survives():
    """To refuse it would tell that it is empty."""
    X, y = data(300)
    for kind in ALL:
        model = kind(5.0, 1e-6, n_components=20, classes=[0, 1, 2, 3], random_state=0).fit(X, y)
        assert model._scores(X).shape == (300, 4)


BAD = [
    (lambda kind, X, y: kind(1.0, 1e-6, n_components=0).fit(X, y), InputError, "whole"),
    (lambda kind, X, y: kind(1.0, 1e-6, gamma=0).fit(X, y), PrivacyParameterError, "gamma"),
    (lambda kind, X, y: kind(1.0, 1e-6, gamma=-1.0).fit(X, y), PrivacyParameterError, "gamma"),
    (lambda kind, X, y: kind(1.0, 1e-6, box=(1, 1)).fit(X, y), SchemaError, "box"),
    (lambda kind, X, y: kind(1.0, 1e-6, box=([0, 0, 0], 1)).fit(X, y), SchemaError, "box"),
    (lambda kind, X, y: kind(1.0, 1e-6).fit(X, np.zeros(len(y))), DataError, "one class"),
    (lambda kind, X, y: kind(1.0, 1e-6).fit(X, y).predict(X[:, :1]), DataError, "features"),
    (lambda kind, X, y: kind(0.0, 1e-6).fit(X, y), PrivacyParameterError, "epsilon"),
    (lambda kind, X, y: kind(1.0, 1e-6, adjacency="mine").fit(X, y), PrivacyParameterError, "adjacency"),
    (lambda kind, X, y: kind(1.0, 1e-6).fit(X, y, sample_weight=y), DataError, "sample_weight"),
]


@pytest.mark.parametrize(("action", "error", "word"), BAD, ids=[f"{at}-{item[2]}" for at, item in enumerate(BAD)])
@pytest.mark.parametrize("kind", ALL)
def test_bad_input_is_refused(kind, action, error, word):
    with pytest.raises(error, match=word):
        action(kind, *data(60))


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.by_day(1)
def test_scikit_learn_conformance(kind):
    expected = {
        "check_parameters_default_constructible": "the default adjacency is an Adjacency, which says who is protected"
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(kind(5.0, 1e-5, n_components=20, random_state=0), expected_failed_checks=expected)


def test_features_have_norm_one():
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 4))
    features = FourierFeatures(0.7, 60, None, Seeds(1))(rows)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-14)
