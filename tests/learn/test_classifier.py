"""PrivateClassifier: the form follows from public facts and one estimator spends the whole budget; PrivateSVC pays for
how far rows lie apart what one record can do to it."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ApproxDP, Categories, Interval, PureDP, Schema
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.evidence.verify import verify
from sfumato.learn import (
    KernelMeanClassifier,
    KernelMomentClassifier,
    KernelStepsClassifier,
    PrivateClassifier,
    PrivateSVC,
    classifier,
    load,
    plan_classifier,
)
from sfumato.learn.kernel_spread import PairSum
from sfumato.learn.stream import fit_by_sums

#: Where training is chosen: so much budget that steps only take longer.
PLENTY = (1500, 2, 3, 200.0, 1e-6)
#: Records, columns, classes, ε, δ of all forms, few and many features, with a spread that is worth its price and not.
FACTS = [
    (300, 3, 3, 1.0, 1e-6),
    (1500, 2, 5, 1.0, 1e-6),
    PLENTY,
    (700, 2, 2, 1.0, 1e-6),
    (800, 2, 3, 2.0, 0.0),
]


def table(records, columns, classes, seed, kind="even"):
    """Rows of one shape: spread evenly over the box, or all but equal with nearly everybody in one class."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (records, columns))
    y = np.floor((X[:, 0] + 1) / 2 * classes).clip(0, classes - 1).astype(int)
    if kind == "narrow":
        X, y = 0.9 + 0.01 * X, np.where(np.arange(records) < classes, np.arange(records) % classes, 0)
    return X, y


def fitted(facts, kind="even", seed=0, **options):
    records, columns, classes, epsilon, delta = facts
    X, y = table(records, columns, classes, seed, kind)
    return PrivateClassifier(epsilon, delta, random_state=seed, classes=[*range(classes)], **options).fit(X, y)


def chosen_alike(one, other):
    """The same form, the same estimator with the same settings, and the same random acts."""
    settings = [{**model._model.get_params(), "random_state": None} for model in (one, other)]
    same_acts = one.certificate_.events == other.certificate_.events
    return one.plan_ == other.plan_ and settings[0] == settings[1] and same_acts


@pytest.mark.parametrize("facts", FACTS, ids=str)
@pytest.mark.by_day(1)
def test_tables_with_the_same_public_facts_choose_alike(facts):
    first = fitted(facts)
    assert chosen_alike(first, fitted(facts, "narrow", 1))
    records, columns, classes, *_ = facts
    run = first.plan_for(np.broadcast_to(0.0, (records, columns)), range(classes))
    assert list(run.events) == list(first.certificate_.events)


@pytest.mark.slow
def test_a_rule_that_looks_at_rows_is_found(monkeypatch):
    def peeks(self, X, y):
        monkeypatch.setattr(classifier, "plan_classifier", plan_classifier if X.std() > 0.1 else other)
        return whole(self, X, y)

    def other(records, *rest):
        return plan_classifier(50, *rest)

    whole = PrivateClassifier._fit
    monkeypatch.setattr(PrivateClassifier, "_fit", peeks)
    facts = PLENTY
    assert not chosen_alike(fitted(facts), fitted(facts, "narrow", 1))


def test_the_forms_and_where_they_cross():
    assert isinstance(fitted((300, 3, 3, 1.0, 1e-6))._model, KernelMomentClassifier)
    assert isinstance(fitted((1500, 2, 3, 1.0, 1e-6))._model, KernelStepsClassifier)
    assert isinstance(fitted(PLENTY)._model, PrivateSVC)
    assert isinstance(fitted((300, 3, 3, 9.0, 0.0))._model, KernelMeanClassifier)
    forms = [plan_classifier(records, 9, 7, 1.0, 1e-6).form for records in range(200, 300_000, 100)]
    assert [form for form, _ in itertools.groupby(forms)] == ["sums", "stepped", "trained"]
    assert plan_classifier(None, 9, 7, 1.0, 1e-6).form == "sums"


@pytest.mark.parametrize("facts", FACTS, ids=str)
@pytest.mark.by_day(1)
def test_one_estimator_spends_the_whole_budget_and_certifies(facts):
    epsilon, delta = facts[3:]
    model = fitted(facts)
    promise = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    assert model.guarantee_ == promise.under(REPLACE_ONE)
    assert model._model.guarantee_ == model.guarantee_
    assert verify(model.certificate_).ok
    assert model.certificate_.events == model._model.certificate_.events
    assert "public rule" in model.explain()
    kept = model.certificate_.guarantee.epsilon(delta)
    assert kept <= epsilon


def test_the_price_of_the_spread_and_of_training_add_up_to_epsilon():
    """By hand: ε of Laplace noise on a sum that moves by 1 is 1/scale; training states its own (ε, δ)."""
    epsilon = PLENTY[3]
    spread, training = fitted(PLENTY).certificate_.events
    assert 1 / spread.scale == pytest.approx(0.04 * epsilon, rel=1e-4)
    assert training.at == pytest.approx(0.96 * epsilon)
    assert 1 / spread.scale + training.at <= epsilon
    assert training.delta == 1e-6


def test_the_prices_of_the_spread_and_of_all_steps_add_up_to_mu():
    """By hand: squares of sensitivity/scale, of which the spread has 4 %, against the largest μ that (ε, δ) allows."""
    model = fitted((1500, 2, 3, 3.0, 1e-6))
    spread, *steps = model.certificate_.events
    whole = gaussian_mu(3.0, 1e-6) ** 2
    assert len(steps) == model._model.steps_ > 8
    assert len(set(steps)) == 1
    parts = [(1 / spread.scale) ** 2, len(steps) / steps[0].scale ** 2]  # a gradient of one record is at most ½ long
    assert parts[0] == pytest.approx(0.04 * whole, rel=1e-3)
    assert parts[0] + parts[1] <= whole
    assert parts[0] + parts[1] == pytest.approx(whole, rel=1e-2)


@pytest.mark.slow
def test_it_learns_what_has_no_linear_border():
    generator = np.random.default_rng(3)
    X = generator.uniform(-1, 1, (4000, 2))
    y = np.digitize(np.linalg.norm(X, axis=1), [0.5, 0.9])
    test = generator.uniform(-1, 1, (2000, 2))
    truth = np.digitize(np.linalg.norm(test, axis=1), [0.5, 0.9])
    model = PrivateClassifier(1.0, 1e-6, random_state=0).fit(X, y)
    assert model.plan_.form == "stepped"
    assert model.score(test, truth) > 0.9
    few = PrivateClassifier(3.0, 1e-6, random_state=0).fit(X[:200], y[:200])
    assert few.plan_.form == "sums"
    assert few.score(test, truth) > 0.6


@pytest.mark.slow
def test_the_box_and_the_schema_bring_rows_to_scale():
    X, y = table(1500, 2, 3, 0)
    plain = PrivateClassifier(3.0, 1e-6, random_state=0).fit(X, y)
    low, high = np.array([10.0, -5.0]), np.array([20.0, -1.0])
    stretched = low + (X + 1) / 2 * (high - low)
    boxed = PrivateClassifier(3.0, 1e-6, box=(low, high), random_state=0).fit(stretched, y)
    np.testing.assert_allclose(boxed.decision_function(stretched), plain.decision_function(X), atol=1e-6)
    schema = Schema({"a": Interval(10, 20), "b": Interval(-5, -1)})
    named = {"a": stretched[:, 0], "b": stretched[:, 1]}
    assert PrivateClassifier(3.0, 1e-6, schema=schema, random_state=0).fit(named, y).score(named, y) > 0.9


@pytest.mark.parametrize("facts", [facts for facts in FACTS if facts != PLENTY], ids=str)
@pytest.mark.parametrize("begin", [0.0, 10.0])
@pytest.mark.by_day(1)
def test_intervals_of_a_schema_are_a_box(facts, begin):
    """To the last tenth: wherever the encoding puts the zero of an interval."""
    records, columns, classes, epsilon, delta = facts
    X, y = table(records, columns, classes, 0)
    cells = begin + (X + 1) * 50
    options = {"classes": [*range(classes)], "random_state": 0, "n_components": 20}
    boxed = PrivateClassifier(epsilon, delta, box=(begin, begin + 100), **options).fit(cells, y)
    schema = Schema({f"c{place}": Interval(begin, begin + 100) for place in range(columns)})
    named = {f"c{place}": cells[:, place] for place in range(columns)}
    told = PrivateClassifier(epsilon, delta, schema=schema, **options).fit(named, y)
    np.testing.assert_allclose(told.decision_function(named), boxed.decision_function(cells), atol=1e-6)


@pytest.mark.parametrize("facts", FACTS, ids=str)
@pytest.mark.by_day(2)
def test_no_two_places_in_an_interval_are_taken_for_one(facts):
    records, columns, classes, epsilon, delta = facts
    X, y = table(records, columns, classes, 0)
    domains = {"a": Interval(0, 100), "b": Interval(-5, 5), "c": Categories(["x", "y"])}
    schema = Schema({name: domains[name] for name in list(domains)[:columns]})
    cells = {"a": (X[:, 0] + 1) * 50, "b": X[:, 1] * 5, "c": np.where(X[:, -1] > 0, "x", "y")}
    model = PrivateClassifier(epsilon, delta, schema=schema, classes=[*range(classes)], random_state=0)
    model.set_params(n_components=20).fit({name: cells[name] for name in schema.columns}, y)
    for name, places in (("a", np.linspace(0, 100, 9)), ("b", np.linspace(-5, 5, 9))):
        rows = {"a": np.full(9, 95.0), "b": np.full(9, 4.9), "c": np.full(9, "x")} | {name: places}
        scores = model.decision_function({key: rows[key] for key in schema.columns})
        assert len(np.unique(scores.reshape(9, -1)[:, 0])) == 9


def test_add_remove_goes_by_a_public_size_and_tells_no_number():
    models = [
        PrivateClassifier(3.0, 1e-6, adjacency=ADD_REMOVE, public_size=1500, classes=range(3), random_state=0).fit(
            *table(records, 2, 3, 0)
        )
        for records in (1200, 1800)
    ]
    assert chosen_alike(*models)
    assert models[0].plan_.form == "stepped"
    assert verify(models[0].certificate_).ok
    unknown = PrivateClassifier(3.0, 1e-6, adjacency=ADD_REMOVE, random_state=0).fit(*table(1200, 2, 3, 0))
    assert unknown.plan_.form == "sums"


@pytest.mark.slow
def test_nothing_learned_is_made_from_the_shape():
    X, y = table(1500, 2, 3, 0)
    for epsilon in (0.3, 3.0, 200.0):
        nothing = clone(PrivateClassifier(epsilon, 1e-6, random_state=0, classes=range(3))).learn_nothing(X, range(3))
        learned = PrivateClassifier(epsilon, 1e-6, random_state=0, classes=range(3)).fit(X, y)
        assert nothing.certificate_.events == learned.certificate_.events
        assert nothing.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("facts", FACTS, ids=str)
@pytest.mark.by_day(1)
def test_a_saved_model_answers_alike(facts, tmp_path):
    """All forms: the laws of saved models fit so few rows that training is never chosen."""
    model = fitted(facts)
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    X, _ = table(*facts[:3], 5)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.explain() == model.explain()
    assert verify(again.certificate_).ok


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [5.0, 500.0, 1e6])  # sums, steps, and training
def test_scikit_learn_conformance(epsilon):
    expected = {
        "check_parameters_default_constructible": "the default adjacency is an Adjacency, which says who is protected"
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(PrivateClassifier(epsilon, 1e-5, random_state=0), expected_failed_checks=expected)


# How far rows lie apart, bought by PrivateSVC.


def test_one_record_moves_the_sum_of_pairs_by_at_most_one():
    """All replacements in small tables of ends, middles and numbers near overflow; the bound is nearly met."""
    values = [0.0, 1.0, -1.0, 0.3, 1e200, -1.7e308]
    worst = 0.0
    for norm in (None, 1.0):
        pairs = PairSum(1.0 if norm is None else norm, norm)
        for rows in itertools.product(values, repeat=3):
            total, count = pairs(np.array(rows)[:, None], None)
            assert count[0] == 1
            for place, value in itertools.product(range(3), values):
                other = np.array(rows)
                other[place] = value
                worst = max(worst, abs(float(total[0] - pairs(other[:, None], None)[0][0])))
    assert 0.99 < worst <= 1.0


def test_the_bandwidth_follows_the_rows_and_not_the_box():
    X, y = table(3000, 2, 3, 0)
    models = [
        PrivateSVC(3.0, 1e-6, kernel="rbf", gamma="spread", norm=norm, random_state=0).fit(X, y)
        for norm in (math.sqrt(2), 4 * math.sqrt(2))
    ]
    gammas = [model.features_.gamma for model in models]
    assert gammas[1] == pytest.approx(gammas[0], rel=0.3)  # sixteen times less by a public rule of the box alone
    assert "a noisy number paid for" in models[0].explain()
    assert verify(models[0].certificate_).ok


def test_where_a_spread_cannot_be_bought_it_is_refused():
    X, y = table(300, 2, 3, 0)
    model = PrivateSVC(1.0, 1e-6, kernel="rbf", gamma="spread", classes=[0, 1, 2])
    with pytest.raises(PrivacyParameterError, match="pairs rows by position"):
        clone(model).set_params(adjacency=ADD_REMOVE, public_size=300).fit(X, y)

    class Elsewhere:
        rows, columns = 300, 2

    with pytest.raises(InputError, match="in memory"):
        fit_by_sums(clone(model), Elsewhere())
    with pytest.raises(InputError, match="leaves nothing"):
        clone(model).set_params(calibration=0.97).fit(X, y)
