"""Probabilities of a support vector machine: public, or paid for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.errors import InputError
from sfumato.evidence import verify
from sfumato.learn import PrivateSVC
from sfumato.learn.probabilities import counts_noise, score_counts


def data(rows=20_000, classes=2):
    draw = np.random.default_rng(3)
    X = draw.uniform(-0.5, 0.5, (rows, 3))
    if classes == 2:
        return X, (draw.random(rows) < expit(8 * X[:, 0] - 1.5)).astype(int)
    return X, X.argmax(axis=1)


def test_the_public_curve_costs_nothing_and_keeps_the_order():
    X, y = data()
    model = PrivateSVC(1.0, 1e-6, random_state=0).fit(X, y)
    chance = model.predict_proba(X)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert (np.argsort(chance[:, 1]) == np.argsort(model.decision_function(X))).all()
    assert ((chance[:, 1] > 0.5) == model.predict(X)).all()
    plain = PrivateSVC(1.0, 1e-6, random_state=0)
    assert len(model.certificate_.events) == len(plain.plan_for(X, [0, 1]).events) == 3


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.by_day(2)
def test_a_paid_curve_is_nearer_to_the_truth_and_is_certified(delta, classes):
    X, y = data(classes=classes)
    public = PrivateSVC(3.0, delta, random_state=0).fit(X, y)
    paid = PrivateSVC(3.0, delta, calibration=0.1, random_state=0).fit(X, y)
    assert log_loss(y, paid.predict_proba(X)) < log_loss(y, public.predict_proba(X))
    assert paid.guarantee_ == public.guarantee_
    assert len(paid.certificate_.events) == len(public.certificate_.events) + 1
    assert "calibration" in paid.certificate_.proofs
    assert verify(paid.certificate_).ok
    assert paid.calibration_.shape == (1 if classes == 2 else 3, 2)


def test_a_norm_that_is_bought_and_a_curve_share_one_budget():
    X, y = data(3000)
    model = PrivateSVC(2.0, 1e-6, norm=None, spend_on_bounds=0.2, calibration=0.2, random_state=0).fit(X, y)
    assert verify(model.certificate_).ok
    assert len(model.certificate_.events) == 5


@pytest.mark.parametrize("share", [0.0, 1.0, -1, "paid", None, True])
def test_other_shares_are_refused(share):
    X, y = data(200)
    with pytest.raises(InputError, match="calibration must be"):
        PrivateSVC(1.0, 1e-6, calibration=share).fit(X, y)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_counts_of_neighbours_are_as_far_apart_as_is_charged(adjacency):
    """Random neighbours: never farther than the event says, and some exactly so; half of it would be found out."""
    draw = np.random.default_rng(0)
    for models in (1, 3):
        gaussian = counts_noise(1.0, 1e-6, adjacency, models).sensitivity
        laplace = counts_noise(1.0, 0.0, adjacency, models).sensitivity
        worst = [0.0, 0.0]
        for _ in range(200):
            scores, labels = draw.normal(size=(6, models)) * 2, draw.random((6, models)) < 0.5
            other, opposite = scores.copy(), labels.copy()
            if adjacency is REPLACE_ONE:
                other[0], opposite[0] = draw.normal(size=models) * 2, draw.random(models) < 0.5
            else:
                other, opposite = other[1:], opposite[1:]
            apart = (score_counts(scores, labels) - score_counts(other, opposite)).ravel()
            worst = [max(worst[0], float(np.linalg.norm(apart))), max(worst[1], float(np.abs(apart).sum()))]
        assert math.isclose(worst[0], gaussian)
        assert math.isclose(worst[1], laplace)
