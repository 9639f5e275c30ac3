"""Equilibrium points: learning, accounting, and the leak of the published variant."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, ApproxDP, NoGuarantee, PureDP
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.evidence.audit import audit
from sfumato.evidence.verify import verify
from sfumato.learn.equilibrium import EquilibriumClassifier


def data(rows=1500, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.integers(3, size=rows)
    centres = np.array([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.5]])
    return centres[y] + generator.normal(scale=0.12, size=(rows, 2)), y


@pytest.mark.parametrize("publish", ["support", "points"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_it_learns_and_certifies(publish, delta):
    X, y = data()
    epsilon, components = (2.0, 200) if delta else (60.0, 40)
    model = EquilibriumClassifier(epsilon, delta, publish, cells=128, n_components=components, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    promise = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    assert model.guarantee_ == promise.under(model.adjacency)
    verify(model.certificate_)
    assert {"svdd", "equilibrium"} <= set(model.certificate_.proofs)
    assert "public starting points" in model.explain()


def test_basins_without_records_are_published_too():
    """The list of points and the shape of the counts depend on the released support alone."""
    X, y = data(300)
    model = EquilibriumClassifier(1.0, 1e-6, cells=64, n_components=100, random_state=0).fit(X, y)
    assert model.counts_.shape == (len(model.points_), 3)
    assert model.point_labels_.shape == (len(model.points_),)


class FarRecord:
    """Publish points again and again and look for one near the far corner; `value` is the last record."""

    def __init__(self, as_published):
        self.as_published = as_published
        self.X, self.y = data(60)

    def guarantee(self):
        return ApproxDP(1.0, 1e-5)

    def sample(self, value, trials):
        X = np.vstack([self.X * 0.2 - 0.6, value])
        seen = []
        for seed in range(trials):
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
                random_state=seed + 1000 * int(value[0] > 0),
            )
            points = model.fit(X, np.append(self.y, 0)).points_
            seen.append(np.linalg.norm(points - model.support_._rows([[0.9, 0.9]], reset=True), axis=1).min())
        return np.asarray(seen)

    def log_likelihood(self, outputs, value):
        return np.where((outputs < 0.6) == (value[0] > 0), 0.0, -1.0)


@pytest.mark.parametrize("as_published", [True, False])
def test_one_far_record_is_betrayed_as_published_only(as_published):
    neighbours = (np.array([0.9, 0.9]), np.array([-0.6, -0.6]))
    result = audit(FarRecord(as_published), neighbours, trials=150, confidence=0.95)
    assert result.refuted == as_published


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
    (lambda X, y: EquilibriumClassifier(1.0, split=1.0).fit(X, y), InputError, "split"),
    (lambda X, y: EquilibriumClassifier(1.0, n_neighbors=0).fit(X, y), InputError, "n_neighbors"),
    (lambda X, y: EquilibriumClassifier(1.0, merge_radius=-1).fit(X, y), InputError, "merge_radius"),
    (lambda X, y: EquilibriumClassifier(1.0, gamma=-1).fit(X, y), PrivacyParameterError, "gamma"),
    (lambda X, y: EquilibriumClassifier(1.0, C=0.1).fit(X, y), DataError, "fewer points"),
    (lambda X, y: EquilibriumClassifier(1.0).fit(X, np.zeros(len(y))), DataError, "one class"),
    (lambda X, y: EquilibriumClassifier(1.0, adjacency=ADD_REMOVE).fit(X, y), PrivacyParameterError, "replacing one"),
]


@pytest.mark.parametrize(("action", "error", "word"), BAD, ids=[f"{at}-{item[2]}" for at, item in enumerate(BAD)])
def test_bad_input_is_refused(action, error, word):
    with pytest.raises(error, match=word):
        action(*data(60))
