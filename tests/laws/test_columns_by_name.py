"""A model is told its columns by name: whatever library a frame is of, another order is no other answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.core import Interval, Schema
from sfumato.learn import (
    KernelMeanClassifier,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSVDD,
    load,
)

#: Frames with names, made of columns.
FRAMES: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
GENERATOR = np.random.default_rng(3)
COLUMNS = {"a": GENERATOR.uniform(-0.7, 0.7, 300), "b": GENERATOR.uniform(-0.7, 0.7, 300)}
KINDS: dict[str, Any] = {
    "logistic": lambda **more: PrivateLogisticRegression(9.0, 1e-6, classes=[False, True], **more),
    "mean": lambda **more: KernelMeanClassifier(9.0, 1e-6, n_components=20, classes=[False, True], **more),
    "regression": lambda **more: PrivateLinearRegression(9.0, 1e-6, **more),
    "typical": lambda **more: PrivateSVDD(9.0, 1e-6, n_components=20, **more),
}


def ordered(names: str) -> dict[str, np.ndarray]:
    return {name: COLUMNS[name] for name in names}


def scores(model: Any, frame: Any) -> np.ndarray:
    return np.asarray((model.decision_function if hasattr(model, "decision_function") else model.predict)(frame))


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_in_another_order_are_refused(kind, library, tmp_path):
    made, target = FRAMES[library], COLUMNS["a"] > 0
    fitted = KINDS[kind]().fit(made(ordered("ab")), target)
    fitted.save(tmp_path / "model.json")
    for model in (fitted, load(tmp_path / "model.json")):
        assert list(model.feature_names_in_) == ["a", "b"]
        for other in FRAMES.values():
            assert (scores(model, other(ordered("ab"))) == scores(model, made(ordered("ab")))).all()
            for wrong in (ordered("ba"), {"a": COLUMNS["a"], "c": COLUMNS["b"]}):
                with pytest.raises(ValueError, match="feature names should match"):
                    scores(model, other(wrong))


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_with_a_schema_the_order_means_nothing(kind, library):
    schema = Schema({"a": Interval(-1, 1), "b": Interval(-1, 1)}, norm=2.0)
    made = FRAMES[library]
    model = KINDS[kind](schema=schema).fit(made(ordered("ab")), COLUMNS["a"] > 0)
    assert (scores(model, made(ordered("ba"))) == scores(model, made(ordered("ab")))).all()


def test_no_warning_tells_of_large_cells():
    """What looks for NaN adds the cells up: two cells at the ends of all floats are nobody's business."""
    far = np.random.default_rng(0).uniform(-1, 1, (40, 1))
    far[:2, 0] = 1.7e308, -1.7e308
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the guess about scalers is for the curator alone
        warnings.simplefilter("error", RuntimeWarning)
        PrivateLogisticRegression(1.0, 1e-6, classes=[0, 1]).fit(far, np.arange(40) % 2)


@pytest.mark.parametrize("cells", [["no", "yes"] * 150, [0, 1] * 150, [False, True] * 150])
def test_labels_of_arrow_are_labels(cells):
    X = np.column_stack(list(COLUMNS.values()))
    model = PrivateLogisticRegression(9.0, 1e-6).fit(X, pa.array(cells))
    assert model.classes_.tolist() == sorted(set(cells))
