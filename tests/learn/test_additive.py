"""Additive models as people use them: functions to look at, bins to choose, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from sfumato.core import Categories, Interval, Schema
from sfumato.errors import InputError, SchemaError
from sfumato.learn import (
    PrivateAdditiveClassifier,
    PrivateAdditiveRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
)

SCHEMA = Schema({"age": Interval(20, 100), "income": Interval(0, 1000), "job": Categories(["a", "b", "c"])})


def data(rows=12_000, seed=0):
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": draw.uniform(20, 100, rows),
            "income": np.minimum(draw.exponential(120, rows), 1000),
            "job": draw.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
        }
    )
    score = 3 * np.sin(table["age"] / 12) + 2 * (table["income"] > 100) + 1.5 * (table["job"] == "c") - 1.5
    return table, score.to_numpy(), draw


def test_it_sees_what_a_line_cannot():
    table, score, draw = data()
    label = (draw.random(len(score)) < 1 / (1 + np.exp(-score))).astype(int)
    new, truth, _ = data(4000, 1)
    linear = PrivateLogisticRegression(1.0, 1e-6, schema=SCHEMA, random_state=0).fit(table, label)
    additive = PrivateAdditiveClassifier(1.0, 1e-6, SCHEMA, random_state=0).fit(table, label)
    lines, curves = (roc_auc_score(truth > 0, model.decision_function(new)) for model in (linear, additive))
    assert curves > 0.97 > lines + 0.1
    shape = additive.shapes_["age"]
    centres = (shape.edges[1:] + shape.edges[:-1]) / 2
    assert np.corrcoef(shape.values[:, 0], np.sin(centres / 12))[0, 1] > 0.95
    np.testing.assert_allclose(additive.predict_proba(new).sum(axis=1), 1.0)


def test_a_regression_sees_it_too():
    table, score, draw = data()
    target = np.clip(score + 0.3 * draw.normal(size=len(score)), -6, 8)
    linear = PrivateLinearRegression(4.0, 1e-6, target=(-6, 8), schema=SCHEMA, random_state=0).fit(table, target)
    additive = PrivateAdditiveRegressor(4.0, 1e-6, SCHEMA, target=(-6, 8), random_state=0).fit(table, target)
    assert additive.score(table, target) > linear.score(table, target) + 0.1


def test_edges_may_be_written_down():
    table, score, _ = data(3000)
    model = PrivateAdditiveClassifier(2.0, 1e-6, SCHEMA, edges={"age": [30, 65]}, random_state=0)
    shape = model.fit(table, score > 0).shapes_["age"]
    assert shape.edges.tolist() == [20, 30, 65, 100]
    assert shape.names() == ["20 to 30", "30 to 65", "65 to 100"]
    assert model.shapes_["income"].edges[1] == pytest.approx(1000 / 64**2)  # finer towards 0
    for wrong in ({"age": [10]}, {"age": [60, 40]}, {"job": [1]}, {"other": [1]}, [30, 65]):
        with pytest.raises(SchemaError):
            PrivateAdditiveClassifier(2.0, 1e-6, SCHEMA, edges=wrong).fit(table, score > 0)
    for wrong in (0, -1, 2.5, True, "many", 10**9):
        with pytest.raises(InputError, match="bins must be"):
            PrivateAdditiveClassifier(2.0, 1e-6, SCHEMA, bins=wrong).fit(table, score > 0)
    with pytest.raises(SchemaError, match="needs schema="):
        PrivateAdditiveClassifier(2.0, 1e-6).fit(table, score > 0)


def test_the_functions_are_drawn(tmp_path):
    table, score, _ = data(2000)
    two = PrivateAdditiveClassifier(2.0, 1e-6, SCHEMA, random_state=0).fit(table, score > 0)
    three = PrivateAdditiveClassifier(2.0, 1e-6, SCHEMA, random_state=0).fit(table, np.digitize(score, [-1, 1]))
    for model, columns in ((two, None), (three, ["job", "age"])):
        figure = model.plot_shapes(columns)
        drawn = [panel for panel in figure.axes if panel.get_title()]
        assert [panel.get_title() for panel in drawn] == (columns or list(SCHEMA.columns))
        figure.savefig(tmp_path / "shapes.png")
    assert (tmp_path / "shapes.png").stat().st_size > 5000
    with pytest.raises(InputError, match="columns of the schema"):
        two.plot_shapes(["weight"])


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_noise_leaves_as_much_in_every_coefficient_whatever_the_table(delta):
    """The public strength: where the data says nothing, noise of deviation 1 in each coefficient."""
    for rows, epsilon in ((5_000, 0.5), (50_000, 1.0)):
        wide = Schema({f"x{place}": Interval(0, 1) for place in range(9)})
        for schema in (SCHEMA, wide):
            plan = PrivateAdditiveClassifier(epsilon, delta, schema).plan_for(pd.DataFrame(index=range(rows)), [0, 1])
            deviation = plan.noise_length / plan.budget.width**0.5
            assert 0.9 < deviation < 1.2
            features = np.broadcast_to(0.0, (rows, plan.budget.width - 1))
            usual = PrivateLogisticRegression(epsilon, delta).plan_for(features, [0, 1, 2])
            three = PrivateAdditiveClassifier(epsilon, delta, schema).plan_for(
                pd.DataFrame(index=range(rows)), [0, 1, 2]
            )
            assert three.regularization == usual.regularization  # of three classes, the rule for rows of any make
