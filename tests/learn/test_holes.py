"""Holes that were found by attacking the estimators, each as the test that fails with it."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, ApproxDP, NoGuarantee, compose
from sfumato.core.events.event import GaussianEvent, SelectionEvent
from sfumato.errors import DataError, PrivacyParameterError, SchemaError, UnprovedError
from sfumato.evidence import verify
from sfumato.learn import (
    EquilibriumClassifier,
    KernelMeanClassifier,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSearch,
    PrivateSVC,
    kernel_base,
)
from sfumato.learn import search as searching
from sfumato.learn.stopping import RunCost, poisson_epsilon
from sfumato.learn.stream import fit_by_sums

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-0.5, 0.5, (2000, 2))
y = (X[:, 0] > 0).astype(int)


def buying(spend: float, epsilon: float = 3.0) -> PrivateSearch:
    grid = {"norm": [None], "spend_on_bounds": [spend]}
    return PrivateSearch(PrivateLogisticRegression(1.0), grid, epsilon, 1e-6, "random_stopping", expected_runs=10)


@pytest.mark.slow
def test_a_search_pays_for_the_norm_that_its_runs_buy():
    """The theorem with the events that the kept run really drew stays within the promise."""
    orders = 1 + np.geomspace(2, 100, 40)
    found = buying(0.1).set_params(random_state=1).fit(X, y)
    drawn = [*found.best_estimator_.certificate_.events, found._scoring]
    assert any(isinstance(event, SelectionEvent) for event in drawn)
    one = compose(drawn)
    curve = np.array([one.rdp(float(order)) for order in orders])
    near = np.array([one.delta(float(epsilon)) for epsilon in np.log1p(1 / (orders - 1))])
    total = curve + 10 * near + math.log(10) / (orders - 1)
    assert 2.9 < (total + np.log1p(-1 / orders) - np.log(1e-6 * orders) / (orders - 1)).min() <= 3.0
    with pytest.raises(PrivacyParameterError, match="for a norm"):
        buying(0.9).fit(X, y)


def test_the_price_of_a_run_counts_every_act():
    noise = GaussianEvent(1.0, 10.0, adjacency=PrivateLogisticRegression(1.0).adjacency)
    choice = SelectionEvent("permute-and-flip", 1.0, 4.0, adjacency=noise.adjacency)
    plain, buys = RunCost.of([noise], 0.01), RunCost.of([noise, choice], 0.01)
    assert poisson_epsilon(buys, 1e-6, 10) > poisson_epsilon(plain, 1e-6, 10) + 0.5
    both = compose([noise, choice, GaussianEvent(0.01, 1.0, adjacency=noise.adjacency)])
    for epsilon in (0.1, 0.5, 1.0):
        assert both.delta(epsilon) * (1 - 1e-3) <= buys.deltas(np.array([epsilon]))[0] <= both.delta(epsilon) * 1.05


def test_a_run_that_draws_what_was_not_priced_is_not_published(monkeypatch):
    honest = PrivateSearch._events
    monkeypatch.setattr(searching.PrivateSearch, "_events", lambda self, *given: honest(self, *given)[1:])
    with pytest.raises(UnprovedError, match="No model is published"):
        buying(0.02).fit(X, y)


def test_a_search_over_models_without_a_guarantee_states_none():
    grid = {"as_published": [True, False], "n_components": [40]}
    found = PrivateSearch(EquilibriumClassifier(1.0), grid, 1.0, 1e-6).fit(X[:300], y[:300])
    assert isinstance(found.guarantee_, NoGuarantee)
    assert isinstance(found.certificate_.guarantee, NoGuarantee)
    assert verify(found.certificate_).ok
    proper = PrivateSearch(EquilibriumClassifier(1.0), {"n_components": [40]}, 1.0, 1e-6).fit(X[:300], y[:300])
    assert proper.guarantee_ == ApproxDP(1.0, 1e-6, adjacency=proper.guarantee_.adjacency)
    with pytest.raises(PrivacyParameterError, match="does not say"):
        PrivateSearch(EquilibriumClassifier(1.0), grid, 1.0, 1e-6, "random_stopping").fit(X[:300], y[:300])


class Many:
    """A table of more rows than rounding is proved for."""

    rows, columns = kernel_base.MOST_ROWS + 1, 2

    def total(self, statistic):
        raise AssertionError("no pass may begin")

    def check_unchanged(self):
        pass


@pytest.mark.parametrize("kind", [PrivateLinearRegression, KernelMeanClassifier], ids=lambda kind: kind.__name__)
def test_fits_by_sums_keep_the_row_limit_of_the_proof(kind):
    declared = {} if kind is PrivateLinearRegression else {"classes": [0, 1]}
    with pytest.raises(DataError, match="More than"):
        fit_by_sums(kind(1.0, 1e-6, **declared), Many())


def test_every_fit_in_memory_keeps_it_too(monkeypatch):
    from laws.hostile import Hostile
    from laws.test_ends import every_estimator, made

    monkeypatch.setattr(kernel_base, "MOST_ROWS", 100)
    # Their rounding bound grows with the rows.
    limited = {"PrivateLogisticRegression", "PrivateSVC", "PrivateSearch", "PrivateAdditiveClassifier"}
    for kind in every_estimator():
        if kind.__name__ not in limited:
            estimator = made(kind, Hostile(X[:101], y[:101], PrivateLogisticRegression(1.0).adjacency, 101, 1.0))
            with pytest.raises(DataError, match="More than"):
                estimator.fit(X[:101], y[:101])


def test_a_public_size_that_does_not_describe_the_table_is_refused():
    for size in (1, 20, 199):
        model = PrivateLogisticRegression(1.0, 1e-6, adjacency=ADD_REMOVE, public_size=size, classes=[0, 1])
        with pytest.raises(DataError, match="Nothing was spent"):
            model.fit(X, y)
    PrivateLogisticRegression(1.0, 1e-6, adjacency=ADD_REMOVE, public_size=200, classes=[0, 1]).fit(X, y)


def test_norms_beyond_floating_point_are_refused():
    for norm in (1e-170, 1e170):
        with pytest.raises(SchemaError, match="Nothing was spent"):
            PrivateLogisticRegression(1.0, 1e-6, norm=norm).fit(X, y)


def test_a_strength_that_had_to_be_raised_is_said_to_be():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raised = PrivateSVC(1.0, 1e-6, regularization=1e-9).fit(X, y)
        kept = PrivateSVC(1.0, 1e-6, regularization=0.1).fit(X, y)
    assert raised.regularization_ > 1e-9
    assert "not the 1e-09 that was given" in raised.explain()
    assert f"{raised.regularization_:.3g}" in raised.explain()
    assert "0.1 as given." in kept.explain()
    kept.set_params(regularization="auto")  # what was done does not change by what is set later
    assert "0.1 as given." in kept.explain()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("estimator", [PrivateLogisticRegression, PrivateSVC, PrivateLinearRegression])
def test_an_absent_cell_is_refused_in_our_own_words(estimator, bad):
    holed = X.copy()
    holed[3, 1] = bad
    with pytest.raises(DataError, match="X contains NaN or infinity") as refusal:
        estimator(epsilon=1.0).fit(holed, y)
    assert "Declare a schema" in str(refusal.value)
    assert "sklearn" not in str(refusal.value)
    assert "HistGradient" not in str(refusal.value)
    assert "Nothing was spent" in str(refusal.value)
