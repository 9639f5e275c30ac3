"""Private SVDD: certified solutions, a sensitivity that no neighbours exceed, an audit, refusals."""

from __future__ import annotations

import math
import warnings

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils.estimator_checks import check_estimator

from sfumato.core import ADD_REMOVE, GaussianDP
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.evidence.audit import audit
from sfumato.evidence.verify import verify
from sfumato.learn import svdd_solver
from sfumato.learn.features import FourierFeatures
from sfumato.learn.seeds import Seeds
from sfumato.learn.svdd import PrivateSVDD
from sfumato.learn.svdd_solver import certified_gap, exchange, nearest_to_origin


def unit_rows(generator, rows, width):
    X = generator.normal(size=(rows, width)) + generator.normal(size=width)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def reference(features, cap):
    """The same problem through Clarabel."""
    count = len(features)
    quadratic = sparse.csc_matrix(np.triu(features @ features.T))
    rows = sparse.csc_matrix(np.vstack([np.ones((1, count)), -np.eye(count), np.eye(count)]))
    right = np.concatenate([[1.0], np.zeros(count), np.full(count, cap)])
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * count)]
    answer = clarabel.DefaultSolver(quadratic, np.zeros(count), rows, right, cones, settings_).solve()
    return np.asarray(answer.x) @ features


@pytest.mark.paper("004", "Alg 1", "learn/svdd_solver.py")
@given(st.integers(0, 10**6), st.integers(3, 40), st.integers(2, 12), st.floats(1.0, 6.0))
@settings(max_examples=60, deadline=None)
def test_the_point_is_certified_and_agrees_with_another_solver(seed, count, width, factor):
    features = unit_rows(np.random.default_rng(seed), count, width)
    cap = min(1.0, factor / count)
    found = nearest_to_origin(features, cap, 1e-10)
    assert found.gap <= 1e-10
    assert found.weights.min() >= 0
    assert found.weights.max() <= cap + 1e-12
    assert abs(found.weights.sum() - 1) < 1e-12
    assert np.linalg.norm(found.centre - reference(features, cap)) < 1e-3


def test_exchanges_alone_arrive_at_the_same_point():
    features = unit_rows(np.random.default_rng(1), 30, 5)
    ours = nearest_to_origin(features, 0.1, 1e-10)
    other = exchange(features, np.full(30, 1 / 30), 0.1, 1e-9)
    assert np.linalg.norm(ours.centre - other.centre) <= math.sqrt(1e-10) + math.sqrt(1e-9)
    assert certified_gap(features, np.full(30, 1 / 30), 0.1) > 1e-4


def test_outliers_are_found_and_certified():
    generator = np.random.default_rng(0)
    X = generator.normal(scale=0.15, size=(3000, 2))
    model = PrivateSVDD(1.0, 1e-5, random_state=0).fit(X)
    far = np.array([[0.9, 0.9], [-0.9, 0.9], [0.9, -0.9]])
    assert (model.predict(X) == 1).mean() > 0.7
    assert (model.predict(far) == -1).all()
    assert np.linalg.norm(model.centre_) <= 1 + 1e-12
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_)
    verify(model.certificate_)
    assert set(model.certificate_.proofs) == {"gaussian", "svdd"}
    assert "carries at most" in model.explain()
    pure = PrivateSVDD(200.0, n_components=20, random_state=0).fit(X)
    assert set(pure.certificate_.proofs) == {"norm_gamma", "svdd"}


class Centre:
    """Repeated releases of the centre; `value` is the first of three records."""

    def __init__(self):
        self.model = PrivateSVDD(2.0, 1e-3, C=1.2, gamma=1.0, n_components=2, random_state=5).fit(np.zeros((3, 1)))
        self.noise = PrivateSVDD(2.0, 1e-3, C=1.2, gamma=1.0, n_components=2).fit(np.zeros((3, 1))).noise_

    def guarantee(self):
        return self.noise.guarantee()

    def centre(self, value):
        phases = np.array([value, 0.3, 0.4])
        rows = np.stack([np.cos(phases), np.sin(phases)], axis=1)
        return nearest_to_origin(rows, self.model.cap_, 1e-10).centre

    def sample(self, value, trials):
        return self.noise.sample(self.centre(value), trials)

    def log_likelihood(self, outputs, value):
        return self.noise.log_likelihood(outputs, self.centre(value))


@pytest.mark.slow
def test_the_claim_stands_and_a_smaller_one_falls():
    centre = Centre()
    result = audit(centre, (0.0, math.pi), trials=20_000)
    assert not result.refuted
    assert result.mu_lower > 0.5 * result.mu_claimed
    assert audit(centre, (0.0, math.pi), trials=20_000, claim=GaussianDP(result.mu_claimed / 3)).refuted


BAD = [
    (lambda X: PrivateSVDD(1.0, C=0.5).fit(X), DataError, "fewer points"),
    (lambda X: PrivateSVDD(1.0, gamma=0).fit(X), PrivacyParameterError, "gamma"),
    (lambda X: PrivateSVDD(1.0, n_components=0).fit(X), InputError, "whole"),
    (lambda X: PrivateSVDD(1.0, adjacency=ADD_REMOVE).fit(X), PrivacyParameterError, "replacing one record only"),
    (lambda X: PrivateSVDD(1.0, noise="gaussian").fit(X), PrivacyParameterError, "delta > 0"),
    (lambda X: PrivateSVDD(1.0, noise="loud").fit(X), InputError, "noise"),
    (lambda X: PrivateSVDD(1.0, 1e-6).fit(X).predict(X[:, :1]), DataError, "features"),
    (lambda X: PrivateSVDD(1.0, 1e-6).fit(np.where(X > 0.5, np.nan, X)), DataError, "NaN"),
]


@pytest.mark.parametrize(("action", "error", "word"), BAD, ids=[f"{at}-{item[2]}" for at, item in enumerate(BAD)])
def test_bad_input_is_refused(action, error, word):
    with pytest.raises(error, match=word):
        action(np.random.default_rng(0).uniform(-1, 1, (30, 2)))


def test_scikit_learn_conformance():
    expected = {
        "check_parameters_default_constructible": "the default adjacency is an Adjacency, which says who is protected"
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(PrivateSVDD(5.0, 1e-5, n_components=20, random_state=0), expected_failed_checks=expected)


@pytest.mark.paper("004", "Thm 4.4", "learn/svdd.py")
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_the_support_is_no_farther_off_than_the_bound(delta):
    """At random points and in the worst direction, over many draws; a twentieth of the bound is exceeded."""
    generator = np.random.default_rng(0)
    X = generator.normal(scale=0.2, size=(4000, 2))
    worst, bound = [], 4.0
    for seed in range(40):
        model = PrivateSVDD(4.0, delta, C=1, n_components=20, random_state=seed, gamma=2.0).fit(X)
        true = model.features_(X).mean(axis=0)  # with C = 1 the centre is the mean
        points = model.features_(generator.uniform(-1, 1, (200, 2)))
        toward = (model.centre_ - true) / np.linalg.norm(model.centre_ - true)
        points = np.vstack([points, toward, -toward])
        off = ((points - model.centre_) ** 2).sum(axis=1) - ((points - true) ** 2).sum(axis=1)
        worst.append(np.abs(off).max())
        bound = model.error_bound(0.1)
    assert bound < 4
    assert np.mean(np.array(worst) > bound) <= 0.1
    assert np.mean(np.array(worst) > bound / 20) > 0.5


def test_a_bound_that_says_nothing_is_four_and_said_so():
    X = np.random.default_rng(0).normal(scale=0.2, size=(100, 2))
    model = PrivateSVDD(1.0, C=5.0, n_components=400, random_state=0).fit(X)
    assert model.error_bound() == 4
    assert "No bound" in model.explain()
    with pytest.raises(InputError, match="failure"):
        model.error_bound(0.0)


def test_the_work_of_the_solver_does_not_grow_faster_than_the_rows(monkeypatch):
    """Rows that Newton's steps see, counted: with eight times the rows hardly more; the point is that of all rows."""
    seen = []
    newton = svdd_solver._Newton
    monkeypatch.setattr(svdd_solver, "_Newton", lambda rows, scale: seen.append(len(rows)) or newton(rows, scale))
    counts = []
    with calm_threads():
        for number in (2000, 16_000):
            X = np.random.default_rng(1).normal(scale=0.3, size=(number, 4))
            features = FourierFeatures(1.0, 20, None, Seeds(1))(X)
            seen.clear()
            found = nearest_to_origin(features, 0.01, 1e-8)
            counts.append(sum(seen))
            assert found.gap <= 1e-8
        whole = svdd_solver._by_all_rows(features, 0.01, 1e-8)
    assert np.linalg.norm(whole.centre - found.centre) <= 2e-4
    assert counts[1] <= 4 * counts[0]
