"""Rare labels are ordered the right way round, also where columns are few; a look at the labels is paid for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from sfumato import verify
from sfumato.core import ADD_REMOVE, REPLACE_ONE, Categories, Interval, Schema
from sfumato.learn import PrivateLogisticRegression, PrivateSVC, base
from sfumato.learn.label_look import best_score, farthest_score, seen_share
from sfumato.learn.losses import HuberLoss, LogisticLoss, SmoothedHinge

KINDS = [PrivateLogisticRegression, PrivateSVC]
ROWS, TEST = 3000, 6000


def made(columns: int, rate: float, sign: int, shape: str):
    """A table of amounts from 0 to 100 that all push the label up (sign 1) or down; about `rate` have it."""
    generator = np.random.default_rng(5)
    unit = (
        generator.uniform(0, 1, (ROWS + TEST, columns))
        if shape == "even"
        else generator.beta(4, 4, (ROWS + TEST, columns))
    )
    signal = sign * ((unit - unit.mean(axis=0)) / unit.std(axis=0)).mean(axis=1) * math.sqrt(columns)
    labels = (generator.uniform(size=len(signal)) < expit(signal + math.log(rate / (1 - rate)) - 0.4)).astype(int)
    schema = Schema({f"c{place}": Interval(0, 100) for place in range(columns)})
    table = {name: 100 * unit[:, place] for place, name in enumerate(schema.columns)}
    return schema, table, labels, signal


def lost(kind, columns, rate, sign, shape, epsilon, **options):
    """How much area under the curve the private order has less than the true one."""
    schema, table, labels, signal = made(columns, rate, sign, shape)
    train = {name: column[:ROWS] for name, column in table.items()}
    test = {name: column[ROWS:] for name, column in table.items()}
    model = kind(epsilon, 1e-6, schema=schema, norm=1.8 * math.sqrt(columns), classes=[0, 1], random_state=3, **options)
    scores = model.fit(train, labels[:ROWS]).decision_function(test)
    return roc_auc_score(labels[ROWS:], signal[ROWS:]) - roc_auc_score(labels[ROWS:], scores)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.by_day(4)
def test_a_rare_label_is_ordered_the_right_way_round(kind, columns, sign):
    for rate in (0.05, 0.3):
        for shape in ("even", "heaped"):
            assert lost(kind, columns, rate, sign, shape, 8.0) < 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_look_the_order_turns_round(kind, monkeypatch):
    """The law above can fail: a centre at 0, the short constant and stretched rows are how it was."""
    monkeypatch.setattr(base, "seen_share", lambda *_: 0.5)
    assert lost(kind, 1, 0.05, 1, "heaped", 8.0, fit_intercept=0.2, rows="stretch") > 0.3


@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticLoss(2.0), HuberLoss(0.5), SmoothedHinge(0.3)], ids=repr)
def test_the_centre_is_the_best_constant(loss):
    grid = np.linspace(-12, 12, 24001)
    for share in (0.01, 0.2, 0.45, 0.5, 0.7, 0.97):
        found = best_score(loss, share)
        values = share * loss.value(grid) + (1 - share) * loss.value(-grid)
        at = np.array([found])
        assert float((share * loss.value(at) + (1 - share) * loss.value(-at))[0]) <= values.min() + 1e-9
        assert abs(found) <= farthest_score(loss, 10**6)


def test_no_share_that_is_seen_leaves_its_bounds():
    generator = np.random.default_rng(0)
    for _ in range(150):
        size = int(10 ** generator.uniform(0, 7))
        counts = generator.normal(size / 2, size * 10 ** generator.uniform(-3, 3), generator.integers(1, 3))
        share = seen_share(counts, size, float(10 ** generator.uniform(-1, 5)))
        for loss in (LogisticLoss(2.0), HuberLoss()):
            assert abs(best_score(loss, share)) <= farthest_score(loss, size)


@pytest.mark.filterwarnings("ignore::sfumato.learn.NothingLearnedWarning")
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 12.0])
@pytest.mark.by_day(4)
def test_the_look_is_part_of_the_promise(adjacency, delta, epsilon):
    """The verifier, by its own road, finds that look, tilt and mask together cost what was promised."""
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (400, 2))
    for kind in KINDS:
        model = kind(epsilon, delta, adjacency=adjacency, public_size=500, classes=[0, 1])
        certificate = model.fit(X, (X[:, 0] > 0).astype(int)).certificate_
        assert len(certificate.events) == 3
        assert verify(certificate).ok


def test_where_categories_carry_the_constant_nothing_is_looked_at():
    schema = Schema({"sex": Categories(["f", "m"]), "age": Interval(0, 100)})
    plan = PrivateLogisticRegression(1.0, 1e-6, schema=schema).plan_for(np.zeros((1000, 3)), [0, 1])
    assert plan.look is None
    assert len(plan.events) == 2
