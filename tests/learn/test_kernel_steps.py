"""Noisy gradients on random features: how far one record moves them, what all of them cost, what they learn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ApproxDP, PureDP, compose
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.evidence.verify import verify
from sfumato.learn import KernelStepsClassifier, load
from sfumato.learn.kernel_steps import plan_steps


def table(records=1500, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (records, 2))
    return X, np.digitize(np.linalg.norm(X, axis=1), [0.5, 0.9])


def units(generator, count, width):
    rows = generator.normal(size=(count, width))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


@pytest.mark.parametrize("classes", [2, 3, 12])
@pytest.mark.parametrize("who", [REPLACE_ONE, ADD_REMOVE], ids=str)
def test_one_record_moves_a_gradient_by_no_more_than_its_noise_is_made_for(who, classes):
    """At any weights, as far as those whose scores overflow; opposite features reach the bound."""
    model, generator, furthest = KernelStepsClassifier(1.0, 1e-6, adjacency=who), np.random.default_rng(classes), 0.0
    for trial in range(300):
        size = 10.0 ** generator.uniform(-2, 308 if trial % 9 == 0 else 3)
        at = generator.normal(size=(classes, 4)) * size
        rows = units(generator, 2, 4)
        rows[1] = -rows[0] if trial % 2 else rows[1]
        labels = np.repeat(generator.integers(classes), 2) if trial % 2 else generator.integers(classes, size=2)
        one, other = (model._statistics(rows[[place]], labels[[place]], classes, at) for place in (0, 1))
        other = other if who is REPLACE_ONE else 0.0
        furthest = max(furthest, float(np.linalg.norm(one - other)))
    assert furthest <= model._sensitivity() * (1 + 1e-12)
    assert furthest > 0.99 * model._sensitivity()


def test_gradients_are_those_of_the_loss():
    """Of rows whose slopes are short, against differences of the loss, computed otherwise."""
    model, generator, classes = KernelStepsClassifier(1.0, 1e-6), np.random.default_rng(1), 3
    features, labels = units(generator, 30, 5), generator.integers(classes, size=30)
    at = np.linalg.lstsq(features, 9.0 * np.eye(classes)[labels], rcond=None)[0].T + generator.normal(size=(classes, 5))

    def losses(weights):
        scores = features @ weights.T + 1.5 * (1 - np.eye(classes)[labels])
        return np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(30), labels]

    each = np.stack([model._statistics(features[[row]], labels[[row]], classes, at) for row in range(30)])
    short = np.linalg.norm(each, axis=1) < 0.499
    assert 3 < short.sum() < 30
    step, found = 1e-5, np.empty((30, classes * 5))
    for place in range(classes * 5):
        move = np.zeros(classes * 5)
        move[place] = step
        ahead, behind = (losses(at + sign * move.reshape(classes, 5)) for sign in (1, -1))
        found[:, place] = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(each[short], found[short], atol=1e-7)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    np.testing.assert_allclose(each[~short], (found / lengths * 0.5)[~short], atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"gamma": "spread"}, {"steps": 3, "rate": 8.0}, {"delta": 0.0}], ids=str)
def test_all_steps_together_keep_the_promise_and_leave_no_more_than_rounding(options):
    X, y = table(400)
    given = {"delta": 1e-6, "n_components": 20, **options}
    model = KernelStepsClassifier(2.0, classes=[0, 1, 2], random_state=0, **given).fit(X, y)
    cost, delta = compose(list(model.certificate_.events)), given["delta"]
    promise = ApproxDP(2.0, delta) if delta else PureDP(2.0)
    assert model.guarantee_ == promise.under(REPLACE_ONE)
    assert cost.implies(model.guarantee_) is True
    assert cost.epsilon(delta) > 0.999 * 2.0
    assert verify(model.certificate_).ok
    assert f"{model.steps_} times" in model.explain()


def test_what_may_cost_more_than_it_says_is_caught():
    """A plan of one step more than is drawn for would not hold."""
    X, y = table(400)
    model = KernelStepsClassifier(2.0, 1e-6, n_components=20, steps=4, classes=[0, 1, 2], random_state=0).fit(X, y)
    events = list(model.certificate_.events)
    assert compose([*events, events[0]]).implies(model.guarantee_) is not True


def test_the_course_follows_from_public_numbers():
    signals = np.geomspace(0.01, 1e7, 60)
    for classes in (2, 6, 50):
        plans = [plan_steps(signal, classes) for signal in signals]
        for name in ("steps", "rate", "width"):
            values = [getattr(plan, name) for plan in plans]
            assert values == sorted(values)
    models = [
        KernelStepsClassifier(1.0, 1e-6, classes=[0, 1, 2], n_components=10, random_state=0).fit(*table(700, seed))
        for seed in (0, 1)
    ]
    assert models[0].rate_ == models[1].rate_
    assert models[0].certificate_.events == models[1].certificate_.events


def test_add_remove_goes_by_a_public_size_and_tells_no_number(monkeypatch):
    def fitted(records, **options):
        model = KernelStepsClassifier(1.0, 1e-6, adjacency=ADD_REMOVE, classes=[0, 1, 2], n_components=10, **options)
        return model.set_params(random_state=0).fit(*table(records))

    models = [fitted(records, public_size=1000) for records in (900, 1100)]
    assert models[0].rate_ == models[1].rate_
    assert models[0].gamma_ == models[1].gamma_
    assert models[0].certificate_.events == models[1].certificate_.events
    event = models[0].certificate_.events[0]
    parts = models[0].steps_ * (0.5 / event.scale) ** 2
    assert parts == pytest.approx(gaussian_mu(1.0, 1e-6) ** 2, rel=1e-2)
    with pytest.raises(PrivacyParameterError, match="public_size"):
        fitted(900)
    monkeypatch.setattr("sfumato.learn.kernel_steps._MOST_SHIFTED", 1500.0)
    with pytest.raises(DataError, match="nothing was spent"):
        fitted(900, public_size=1000)


def test_other_records_pull_alike_wherever_they_stand():
    """Under add-remove a record more shifts all behind it: their pulls are the same to the last bit."""
    model, generator = KernelStepsClassifier(1.0, 1e-6, adjacency=ADD_REMOVE), np.random.default_rng(3)
    at = 1e10 * generator.normal(size=40) + generator.normal(size=(5, 40))  # scores whose last bits decide
    rows, labels = units(generator, 23, 40), generator.integers(5, size=23)
    for count in range(1, 24):
        together = model._statistics(rows[:count], labels[:count], 5, at)
        alone = sum(model._statistics(rows[[row]], labels[[row]], 5, at) for row in range(count))
        np.testing.assert_allclose(together, alone, rtol=0, atol=count * 1e-15)


def test_what_means_nothing_is_refused():
    X, y = table(60)
    for options in ({"steps": 0}, {"steps": 2.5}, {"steps": True}, {"rate": 0.0}, {"rate": math.inf}):
        with pytest.raises((InputError, PrivacyParameterError), match=r"Nothing was spent\."):
            KernelStepsClassifier(1.0, 1e-6, **options).fit(X, y)


def test_rows_on_a_device_are_told_where_to_go():
    """Nothing about sums, of which who has a matrix knows nothing."""
    strict = pytest.importorskip("array_api_strict")
    X, y = table(60)
    with pytest.raises(InputError, match=r"pass them as a NumPy array.* Nothing was spent\."):
        KernelStepsClassifier(1.0, 1e-6).fit(strict.asarray(X), strict.asarray(y))
    model = KernelStepsClassifier(1.0, 1e-6, n_components=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(strict.asarray(X)), model.decision_function(X), atol=1e-9)


def test_features_that_are_not_kept_give_the_same_model(monkeypatch, tmp_path):
    X, y = table(2500)
    kept = KernelStepsClassifier(1.0, 1e-6, n_components=20, classes=[0, 1, 2], random_state=0).fit(X, y)
    monkeypatch.setattr("sfumato.learn.kernel_steps._KEPT_NUMBERS", 0)
    anew = KernelStepsClassifier(1.0, 1e-6, n_components=20, classes=[0, 1, 2], random_state=0).fit(X, y)
    np.testing.assert_allclose(anew.weights_, kept.weights_, rtol=1e-9)
    kept.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").predict(X), kept.predict(X))


def test_it_learns_what_has_no_linear_border():
    model = KernelStepsClassifier(1.0, 1e-6, classes=[0, 1, 2], random_state=0).fit(*table(3000))
    X, y = table(1000, seed=1)
    assert model.score(X, y) > 0.85
    assert KernelStepsClassifier(1.0, 1e-6, classes=[0, 1], random_state=0).fit(X, y > 0).score(X, y > 0) > 0.85
