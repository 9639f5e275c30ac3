"""PrivateSearch over kernel classifiers: the total is what was asked, and the better bandwidth is found."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from sfumato.core import ADD_REMOVE, ApproxDP, PureDP
from sfumato.errors import PrivacyParameterError
from sfumato.evidence.verify import verify
from sfumato.learn import KernelClassifier, KernelMeanClassifier, PrivateSearch

GRID = {"gamma": [0.001, 6.0]}


def data(rows=3000):
    X = np.random.default_rng(0).uniform(-1, 1, (rows, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("kind", [KernelMeanClassifier, KernelClassifier])
@pytest.mark.parametrize("scheme", ["split", "random_stopping"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.by_day(4)
def test_a_useful_bandwidth_is_found_within_the_total(kind, scheme, delta):
    X, y = data()
    epsilon = 8.0 if delta else 400.0
    estimator = kind(1.0, delta, n_components=30)
    search = PrivateSearch(estimator, GRID, epsilon, delta, scheme, expected_runs=8, random_state=3).fit(X, y)
    assert search.guarantee_.under(None) == (ApproxDP(epsilon, delta) if delta else PureDP(epsilon))
    assert search.best_params_ == {"gamma": 6.0}
    assert search.score(X, y) > 0.85
    if scheme == "split":
        verify(search.certificate_)
    else:
        assert search.run_epsilon_ < 0.7 * epsilon


def test_the_plan_of_a_run_is_what_the_run_draws():
    """Random stopping prices runs by plan_for: it must name the very events of fit, spread included."""
    X, y = data(600)
    for model in (
        KernelClassifier(4.0, 1e-6, random_state=0),
        KernelMeanClassifier(4.0, 1e-6, "spread", n_components=20),
        KernelMeanClassifier(4.0, 1e-6, n_components=20, priors="divided"),
    ):
        planned = model.plan_for(X, [0, 1])
        fitted = model.fit(X, y)
        assert planned.events == fitted.events()
        assert planned.budget.size == 600


def test_a_private_number_of_records_does_not_set_the_price():
    X, y = data(600)
    search = PrivateSearch(
        KernelMeanClassifier(1.0, 1e-6, adjacency=ADD_REMOVE, n_components=20), GRID, 4.0, 1e-6, "random_stopping"
    )
    with pytest.raises(PrivacyParameterError, match="number of records"):
        search.fit(X, y)


def test_a_model_that_learned_nothing_looks_at_no_value():
    X, _ = data(600)
    model = KernelClassifier(4.0, 1e-6, n_components=20, random_state=0)
    first, second = (clone(model).learn_nothing(table, [0, 1]) for table in (X, X * 0))
    np.testing.assert_array_equal(first.weights_, second.weights_)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
