"""What choosing costs, and that it is paid."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, ApproxDP, PureDP
from sfumato.errors import PrivacyParameterError, UnprovedError
from sfumato.learn import PrivateLogisticRegression, PrivateSearch
from sfumato.learn.stopping import RunCost, geometric, poisson, poisson_epsilon
from sfumato.mechanisms.bits import Bits

GRID = {"regularization": [1e-3, 1e3], "fit_intercept": [True, False]}


def data(rows=3000):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (rows, 2))
    return X, X[:, 0] > 0.1


@pytest.mark.parametrize("scheme", ["split", "random_stopping"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.by_day(1)
def test_the_total_is_what_was_asked(scheme, delta):
    X, y = data()
    search = PrivateSearch(PrivateLogisticRegression(1.0), GRID, 6.0, delta, scheme, expected_runs=5, random_state=1)
    search.fit(X, y)
    assert search.guarantee_.under(None) == (ApproxDP(6.0, delta) if delta else PureDP(6.0))
    assert search.score(X, y) > 0.5
    assert search.best_params_ in [
        {"regularization": r, "fit_intercept": i} for r in (1e-3, 1e3) for i in (True, False)
    ]
    assert "the choice included" in search.explain()


@pytest.mark.paper("003", "§6", "learn/search.py")
def test_each_part_of_a_split_spends_the_whole_budget_on_its_own_rows():
    X, y = data()
    search = PrivateSearch(PrivateLogisticRegression(1.0), GRID, 2.0, 1e-6, random_state=0).fit(X, y)
    plan = search.best_estimator_.plan_
    assert plan.budget.epsilon == 2.0
    assert plan.budget.size == 600  # 3000 rows, four candidates and a scoring part


@pytest.mark.slow
def test_one_run_of_random_stopping_is_cheaper_than_the_total():
    X, y = data()
    prices = []
    for runs in (2, 20):
        search = PrivateSearch(
            PrivateLogisticRegression(1.0), GRID, 3.0, 1e-6, "random_stopping", expected_runs=runs, random_state=0
        ).fit(X, y)
        prices.append(search.run_epsilon_)
    assert 3.0 > prices[0] > prices[1] > 0
    pure = PrivateSearch(PrivateLogisticRegression(1.0), GRID, 3.0, 0.0, "random_stopping", random_state=0).fit(X, y)
    assert pure.run_epsilon_ < 1.0  # a third, less the score's share


def test_refusals():
    X, y = data(200)
    with pytest.raises(PrivacyParameterError, match="epsilon is not searched"):
        PrivateSearch(PrivateLogisticRegression(1.0), {"epsilon": [1, 2]}, 1.0).fit(X, y)
    estimator = PrivateLogisticRegression(1.0, adjacency=ADD_REMOVE, public_size=200)
    with pytest.raises(PrivacyParameterError, match="by position"):
        PrivateSearch(estimator, GRID, 1.0).fit(X, y)
    search = PrivateSearch(PrivateLogisticRegression(1.0), GRID, 9.0, 1e-6, "random_stopping", random_state=0)
    with pytest.raises(UnprovedError):
        search.fit(X, y).certificate_  # noqa: B018


def test_the_numbers_of_runs_have_their_laws():
    bits = Bits(seed=5)
    counts = np.array([poisson(2, bits) for _ in range(4000)])
    expected = [math.exp(-2) * 2**k / math.factorial(k) for k in range(6)]
    observed = [(counts == k).mean() for k in range(6)]
    np.testing.assert_allclose(observed, expected, atol=0.03)
    runs = np.array([geometric(4, bits) for _ in range(4000)])
    assert runs.min() == 1
    assert abs(runs.mean() - 4) < 0.3
    assert abs((runs == 1).mean() - 0.25) < 0.03


def test_keeping_the_best_costs_more_than_one_run():
    """A selection that is not paid for would be priced like one run; the price of two runs is well above it."""
    from sfumato.core import GaussianDP

    assert poisson_epsilon(RunCost(0.3), 1e-6, 2.0) > 1.1 * GaussianDP(0.3).epsilon(1e-6)


def test_the_best_of_many_runs_states_the_cost_of_all_and_is_not_saved(tmp_path):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (3000, 2))
    model = PrivateLogisticRegression(1.0, norm=1.0, classes=[False, True])
    search = PrivateSearch(
        model, {"regularization": [1e-3, 1e-2]}, epsilon=2.0, delta=1e-6, scheme="random_stopping", random_state=1
    )
    search.fit(X, X[:, 0] > 0)
    assert search.best_estimator_.guarantee_ == search.guarantee_
    with pytest.raises(UnprovedError, match="best of several runs"):
        search.best_estimator_.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
