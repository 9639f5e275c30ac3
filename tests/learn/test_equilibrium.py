"""Equilibrium points: learning, accounting, and the leak of the published variant."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, ApproxDP, Interval, NoGuarantee, PureDP, Schema
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.evidence.audit import audit
from sfumato.evidence.verify import verify
from sfumato.learn import KernelMeanClassifier, load
from sfumato.learn.basins import follow, public_starts
from sfumato.learn.class_points import ClassScores, class_points
from sfumato.learn.equilibrium import EquilibriumClassifier, automatic_cells


def data(rows=1500, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.integers(3, size=rows)
    centres = np.array([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.5]])
    return centres[y] + generator.normal(scale=0.12, size=(rows, 2)), y


@pytest.mark.paper("004", "§6.1", "learn/equilibrium.py")
@pytest.mark.paper("004", "§5.1–5.3", "learn/equilibrium.py")
@pytest.mark.parametrize("publish", ["support", "points"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("support", ["classes", "all"])
@pytest.mark.by_day(3)
def test_it_learns_and_certifies(publish, delta, support):
    X, y = data()
    epsilon, components = (2.0, 200) if delta else (60.0, 40)
    given = {"cells": 128, "n_components": components, "random_state": 0, "support": support}
    model = EquilibriumClassifier(epsilon, delta, publish, **given).fit(X, y)
    assert model.score(X, y) > 0.85
    promise = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    assert model.guarantee_ == promise.under(model.adjacency)
    verify(model.certificate_)
    assert {"svdd" if support == "all" else "kernel_mean", "equilibrium"} <= set(model.certificate_.proofs)
    assert "public starting points" in model.explain()


def test_basins_without_records_are_published_too():
    """The list of points and the shape of the counts depend on the released support alone; noise labels empty ones."""
    X, y = data(40)
    model = EquilibriumClassifier(
        1.0, 1e-6, cells=200, gamma=30.0, n_components=100, random_state=0, support="all"
    ).fit(X, y)
    true = model._count(model._rows(X, reset=False), y)
    empty = true.sum(axis=1) == 0
    assert empty.any()
    assert true.sum() == 40
    assert model.counts_.shape == (len(model.points_), 3)
    assert (model.counts_[empty] != 0).all()
    assert model.point_labels_.shape == (len(model.points_),)
    assert set(model.predict(model.points_[empty])) <= {0, 1, 2}


@pytest.mark.paper("004", "§5.1–5.3", "learn/basins.py")
def test_points_come_from_public_numbers_and_the_release_alone():
    """With the same released support, other records find the same points; `cells` bounds them, by a public rule."""
    X, y = data(400)
    model = EquilibriumClassifier(1.0, 1e-6, n_components=60, random_state=0, support="all").fit(X, y)
    points = model.points_.copy()
    assert len(points) <= automatic_cells(400, 3, model.votes_.error() ** 0.5)
    model._find_basins(np.zeros_like(X))
    np.testing.assert_array_equal(points, model.points_)


def test_where_a_row_ends_does_not_depend_on_the_others():
    """One hard row among the others must not cost them a step or a bit: it would move more than one vote."""
    X, y = data(900)
    model = EquilibriumClassifier(1.0, 1e-6, n_components=60, random_state=0, support="all").fit(X, y)
    rows = model._rows(X, reset=False)
    other = rows.copy()
    other[450] = [1.0, -1.0]
    first, second = follow(model._basins, rows), follow(model._basins, other)
    same = np.delete(np.arange(900), 450)
    np.testing.assert_array_equal(first[same], second[same])


def test_a_schema_starts_where_its_encoding_lies():
    X, y = data()
    schema = Schema({"a": Interval(-1, 1), "b": Interval(-1, 1)})
    table = {"a": X[:, 0], "b": X[:, 1]}
    model = EquilibriumClassifier(3.0, 1e-6, schema=schema, n_components=200, random_state=0).fit(table, y)
    low, high = model._start_box(2)
    encoded = model._rows(table, reset=False)
    assert (encoded.min(axis=0) >= low - 1e-9).all()
    assert (encoded.max(axis=0) <= high + 1e-9).all()
    assert model.score(table, y) > 0.8


class Votes:
    """Noisy votes of a fitted model, drawn again and again; `value` is one record and its label."""

    def __init__(self, as_published):
        X, y = data(200)
        self.model = EquilibriumClassifier(
            2.0,
            cells=6,
            n_components=20,
            gamma=6.0,
            C=1.0,
            split=0.5,
            random_state=1,
            as_published=as_published,
            support="all",
        ).fit(X, y)
        self.rows, self.labels = X[1:12], y[1:12]
        self.noise = dataclasses.replace(self.model.votes_, random_state=None)

    def guarantee(self):
        return PureDP(2.0) if self.model.as_published else self.noise.guarantee()

    def counts(self, value):
        rows = np.vstack([self.rows, value[:2]])
        return self.model._count(rows, np.append(self.labels, int(value[2]))).ravel()

    def sample(self, value, trials):
        return self.noise.sample(self.counts(value), trials)

    def log_likelihood(self, outputs, value):
        return self.noise.log_likelihood(outputs, self.counts(value))


@pytest.mark.parametrize("as_published", [True, False])
def test_votes_with_half_the_noise_are_found_out(as_published):
    """Replacing a record moves two votes: Lap(1/ε), as published, costs 2ε; Lap(2/ε) keeps its word and is tight."""
    votes = Votes(as_published)
    neighbours = (np.array([-0.5, -0.5, 0.0]), np.array([0.0, 0.5, 2.0]))
    assert np.abs(votes.counts(neighbours[0]) - votes.counts(neighbours[1])).sum() == 2
    result = audit(votes, neighbours, trials=30_000)
    assert result.refuted == as_published
    if not as_published:
        assert result.epsilon_lower > 0.7 * result.epsilon_claimed


class FarRecord:
    """Publish points again and again and look for one near the far corner; `value` is the last record."""

    def __init__(self, as_published):
        self.as_published = as_published
        self.X, self.y = data(60)
        self.trial = 0  # a new seed for every trial: an audit draws in batches

    def guarantee(self):
        return ApproxDP(1.0, 1e-5)

    def sample(self, value, trials):
        X = np.vstack([self.X * 0.2 - 0.6, value])
        seen = []
        for _ in range(trials):
            self.trial += 1
            model = EquilibriumClassifier(
                1.0,
                1e-5,
                "points",
                cells=32,
                gamma=6.0,
                n_components=20,
                merge_radius=0.05,
                as_published=self.as_published,
                classes=[0, 1, 2],
                random_state=self.trial,
            )
            points = model.fit(X, np.append(self.y, 0)).points_
            seen.append(np.linalg.norm(points - [[0.9, 0.9]], axis=1).min())
        return np.asarray(seen)

    def log_likelihood(self, outputs, value):
        return np.where((outputs < 0.6) == (value[0] > 0), 0.0, -1.0)


NEAR_AND_FAR = (np.array([0.9, 0.9]), np.array([-0.6, -0.6]))


@pytest.mark.slow
def test_one_far_record_is_betrayed_as_published():
    """As few trials as these find the published leak; `test_the_default_…` looks for one in ours."""
    result = audit(FarRecord(True), NEAR_AND_FAR, trials=120, confidence=0.99)
    assert result.refuted
    assert result.epsilon_lower > 1.0


@pytest.mark.slow
def test_the_default_keeps_the_far_record_in_many_trials():
    published = audit(FarRecord(True), NEAR_AND_FAR, trials=500, confidence=0.999)
    assert published.refuted
    assert published.epsilon_lower > 2.0
    default = audit(FarRecord(False), NEAR_AND_FAR, trials=1000, confidence=0.999)
    assert not default.refuted
    assert default.epsilon_lower < 1.0


def test_as_published_has_no_guarantee():
    X, y = data(200)
    model = EquilibriumClassifier(1.0, 1e-6, as_published=True, n_components=40, random_state=0).fit(X, y)
    assert isinstance(model.guarantee_, NoGuarantee)
    assert isinstance(model.certificate_.guarantee, NoGuarantee)
    assert "betrays" in model.explain()


BAD = [
    (lambda X, y: EquilibriumClassifier(1.0, starts="records").fit(X, y), InputError, "starts"),
    (lambda X, y: EquilibriumClassifier(1.0, publish="all").fit(X, y), InputError, "publish"),
    (lambda X, y: EquilibriumClassifier(1.0, cells=0).fit(X, y), InputError, "cells"),
    (lambda X, y: EquilibriumClassifier(1.0, split=1.0, support="all").fit(X, y), InputError, "split"),
    (lambda X, y: EquilibriumClassifier(1.0, n_neighbors=0).fit(X, y), InputError, "n_neighbors"),
    (lambda X, y: EquilibriumClassifier(1.0, merge_radius=-1).fit(X, y), InputError, "merge_radius"),
    (lambda X, y: EquilibriumClassifier(1.0, gamma=-1).fit(X, y), PrivacyParameterError, "gamma"),
    (lambda X, y: EquilibriumClassifier(1.0, C=0.1, support="all").fit(X, y), DataError, "fewer points"),
    (lambda X, y: EquilibriumClassifier(1.0).fit(X, np.zeros(len(y))), DataError, "one class"),
    (lambda X, y: EquilibriumClassifier(1.0, gamma=0).fit(X, y), PrivacyParameterError, "gamma"),
    (lambda X, y: EquilibriumClassifier(1.0, cells="many").fit(X, y), InputError, "cells"),
    (lambda X, y: EquilibriumClassifier(1.0, n_components=0).fit(X, y), InputError, "whole"),
    (lambda X, y: EquilibriumClassifier(1.0, n_components=20).fit(X, y).predict(X[:, :1]), DataError, "features"),
    (
        lambda X, y: EquilibriumClassifier(1.0, adjacency=ADD_REMOVE, support="all").fit(X, y),
        PrivacyParameterError,
        "replacing one",
    ),
    (lambda X, y: EquilibriumClassifier(1.0, C=2.0).fit(X, y), InputError, "support='all'"),
    (lambda X, y: EquilibriumClassifier(1.0, support="one").fit(X, y), InputError, "support must"),
]


@pytest.mark.parametrize(("action", "error", "word"), BAD, ids=[f"{at}-{item[2]}" for at, item in enumerate(BAD)])
def test_bad_input_is_refused(action, error, word):
    with pytest.raises(error, match=word):
        action(*data(60))


@pytest.mark.paper("004", "§6.2", "learn/class_points.py")
@pytest.mark.parametrize("support", ["classes", "all"])
def test_points_alone_are_kept_and_written(support, tmp_path):
    """No support function in the object nor in its file, and the file predicts alike."""
    X, y = data()
    given = {"n_components": 100, "n_neighbors": 3, "support": support}
    model = EquilibriumClassifier(2.0, 1e-6, "points", **given).fit(X, y)
    model.save(tmp_path / "points.json")
    assert not {"support_", "_basins", "counts_"} & set(vars(model))
    text = (tmp_path / "points.json").read_text()
    assert "frequencies" not in text
    assert "weights" not in text
    again = load(tmp_path / "points.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert verify(again.certificate_).ok
    np.testing.assert_array_equal(again.points_, model.points_)


@pytest.mark.parametrize("order", [1, 2])
def test_slopes_are_those_of_the_values(order):
    generator = np.random.default_rng(order)
    frequencies, weights = generator.normal(size=(3, 5)), generator.normal(size=(2, 10, 10)[: 1 + order])
    scores, places, step = ClassScores(frequencies, weights), generator.normal(size=(7, 3)), 1e-6
    for column, label in itertools.product(range(3), range(2)):
        move = step * np.eye(3)[column]
        differences = (scores.values(places + move) - scores.values(places - move))[:, label] / (2 * step)
        np.testing.assert_allclose(scores.slopes(places, label)[:, column], differences, atol=1e-7)


@pytest.mark.slow
def test_points_of_classes_follow_from_the_release_alone():
    """The same weights and frequencies give the same points whatever the records are; each is a hill of its class."""
    X, y = data(900)
    model = EquilibriumClassifier(3.0, 1e-6, gamma=8.0, random_state=0).fit(X, y)
    starts = public_starts(341, np.full(2, -1.0), np.full(2, 1.0))
    support = model.support_
    points, labels = class_points(ClassScores(support.features_.frequencies, support.weights_), starts, 0.25, 1024)
    np.testing.assert_array_equal(points, model.points_)
    support = KernelMeanClassifier(3.0, 1e-6, gamma=8.0, random_state=0).fit(X, y)
    points, labels = class_points(ClassScores(support.features_.frequencies, support.weights_), starts, 0.25, 1024)
    np.testing.assert_array_equal(support.predict(points), labels)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert (distances[np.triu_indices(len(points), 1)] > 0.25).all()
    best = points[[np.flatnonzero(labels == one)[0] for one in range(3)]]  # the highest of each class
    np.testing.assert_allclose(best, [[-0.5, -0.5], [0.5, -0.5], [0.0, 0.5]], atol=0.15)


def test_scores_are_there_where_supports_are_published():
    X, y = data(600)
    model = EquilibriumClassifier(3.0, 1e-6, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))
    assert not hasattr(EquilibriumClassifier(3.0, 1e-6, "points"), "decision_function")
    assert not hasattr(EquilibriumClassifier(3.0, 1e-6, support="all"), "decision_function")


def test_supports_of_classes_cover_adding_and_removing():
    X, y = data(900)
    model = EquilibriumClassifier(3.0, 1e-6, classes=[0, 1, 2], adjacency=ADD_REMOVE, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.guarantee_.adjacency == ADD_REMOVE


@pytest.mark.slow
def test_many_classes_on_few_records_are_told_apart():
    """Eleven classes of 90 records in ten columns: the votes of one support function are lost there."""
    generator = np.random.default_rng(3)
    centres, y = generator.uniform(-0.8, 0.8, (11, 10)), generator.integers(11, size=990)
    X = np.clip(centres[y] + generator.normal(scale=0.25, size=(990, 10)), -1, 1)
    by_class, by_vote = (
        EquilibriumClassifier(5.0, 1e-5, random_state=0, support=support).fit(X[:700], y[:700]).score(X[700:], y[700:])
        for support in ("classes", "all")
    )
    assert by_class > 0.9
    assert by_vote < 0.8
