"""A linear classifier by noisy gradients: how far one record moves its sums, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core import REPLACE_ONE, Categories, Interval, Schema, compose
from sfumato.learn.rows import UnitRows
from sfumato.learn.stepped import SteppedClassifier
from sfumato.mechanisms.elsewhere import Elsewhere, PublishedSum, Unanswered

SCHEMA = Schema({"a": Interval(0, 1), "b": Interval(-3, 5), "c": Categories(["x", "y", "z"])})


def made(classes=2, loss="logistic", state=None, norm=2.0):
    names = [f"label {place}" for place in range(classes)]
    return SteppedClassifier(1.0, 1e-6, SCHEMA, REPLACE_ONE, names, norm, loss, random_state=state)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("classes", [2, 4])
def test_one_record_moves_a_gradient_by_no_more_than_its_noise_is_made_for(classes, loss):
    """At any weights, as far as infinite scores: two records' gradients against the sensitivity of the step's noise."""
    model, generator, furthest = made(classes, loss), np.random.default_rng(classes), 0.0
    width = SCHEMA.width + (model.constant > 0)
    for trial in range(300):
        rows = generator.normal(size=(2, SCHEMA.width)) * 10.0 ** generator.uniform(-3, 3)
        largest = 10.0 ** generator.uniform(-2, 300 if trial % 9 == 0 else 3)
        weights = generator.normal(size=(model.outputs, width)) * largest
        wanted = np.eye(classes)[generator.integers(classes, size=2)]
        pulled = [model._pulled(UnitRows(rows[[one]], 2.0, model.constant), wanted[[one]], weights) for one in (0, 1)]
        furthest = max(furthest, float(np.linalg.norm(pulled[0] - pulled[1])))
    noise = model.step_noise(width)
    assert furthest <= noise.sensitivity
    assert furthest > 0.5 * noise.sensitivity


@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_are_those_of_the_loss(classes):
    """Before clipping, against differences of the negative log likelihood, computed otherwise."""
    model, generator = made(classes), np.random.default_rng(1)
    rows = UnitRows(generator.normal(size=(40, SCHEMA.width)), 50.0, model.constant)
    weights = generator.normal(size=(model.outputs, rows.width))
    wanted = np.eye(classes)[generator.integers(classes, size=40)]

    def loss(at):
        scores = np.stack([rows.times(one) for one in at], axis=1)
        scores = np.hstack([np.zeros((40, 1)), scores]) if classes == 2 else scores
        return float(np.sum(np.log(np.exp(scores).sum(axis=1)) - (scores * wanted).sum(axis=1)))

    object.__setattr__(model, "norm", 50.0)
    type(model).longest, kept = property(lambda self: 10.0), type(model).longest
    try:
        found = model._pulled(rows, wanted, weights).reshape(weights.shape)
    finally:
        type(model).longest = kept
    step = 1e-5
    for place in np.ndindex(weights.shape):
        ahead, behind = weights.copy(), weights.copy()
        ahead[place] += step
        behind[place] -= step
        assert found[place] == pytest.approx((loss(ahead) - loss(behind)) / (2 * step), abs=1e-6)


def test_all_that_is_drawn_keeps_the_promise_and_no_more_is_left_than_rounding():
    generator = np.random.default_rng(2)
    table = {
        "a": generator.random(300),
        "b": generator.uniform(-3, 5, 300),
        "c": generator.choice(["x", "y", "z"], 300),
    }
    model = made(3, state=0).fit(table, np.array([f"label {one}" for one in generator.integers(3, size=300)]))
    cost = compose([noise.event() for noise in model.noises_])
    assert cost.implies(model.guarantee_) is True
    assert cost.epsilon(1e-6) > 0.999


def test_several_classes_are_learned():
    generator = np.random.default_rng(3)
    age = generator.random(6000)
    model = SteppedClassifier(
        2.0, 1e-6, Schema({"age": Interval(0, 1)}), REPLACE_ONE, ["low", "middle", "high"], 1.8, random_state=0
    )
    labels = np.array(["low", "middle", "high"])[np.digitize(age, [0.3, 0.6])]
    scores = model.fit({"age": age}, labels).decision_function({"age": age})
    assert np.mean(model.classes_[scores.argmax(axis=1)] == labels) > 0.6


def test_sums_that_are_answered_are_not_added_up_again():
    model = made(state=Elsewhere(0, [], 10))
    table = {"a": np.array([0.5]), "b": np.array([1.0]), "c": np.array(["x"])}
    with pytest.raises(Unanswered) as first:
        model.fit(table, np.array(["label 0"]))
    seen = [PublishedSum(np.zeros(one.size), 1.0, 10) for one in first.value.exact]
    with pytest.raises(Unanswered) as second:
        made(state=Elsewhere(0, seen, 10)).fit(table, np.array(["label 0"]))
    assert second.value.noises[0].sensitivity != first.value.noises[0].sensitivity
