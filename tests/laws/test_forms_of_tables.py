"""A table is the same table in every form: what is planned, chosen and measured does not depend on its library."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from sfumato.core import Categories, Interval, Schema
from sfumato.learn import (
    FairClassifier,
    KernelMeanClassifier,
    PrivateAdditiveClassifier,
    PrivateClassifier,
    PrivateLogisticRegression,
    PrivateSearch,
    SchemaEncoder,
    make_pipeline,
)
from sfumato.learn.row_parts import row_count, rows_at

GENERATOR = np.random.default_rng(8)
CELLS = {"age": GENERATOR.uniform(0, 90, 240).tolist(), "job": GENERATOR.choice(["a", "b"], 240).tolist()}
LABELS = np.where(np.array(CELLS["age"]) > 40, "yes", "no")
SEX = GENERATOR.choice(["f", "m"], 240)
SCHEMA = Schema({"age": Interval(0, 90), "job": Categories(["a", "b"])}, norm=2.0)
FORMS: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "batch": pa.record_batch,
    "lists by name": dict,
    "arrays by name": lambda cells: {name: np.array(column) for name, column in cells.items()},
    "arrow by name": lambda cells: {name: pa.array(column) for name, column in cells.items()},
    "series by name": lambda cells: {name: pd.Series(column) for name, column in cells.items()},
}


def logistic(**options: Any) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(4.0, 1e-6, norm=None, random_state=0, classes=["no", "yes"], **options)


def search(estimator: Any, name: str) -> PrivateSearch:
    return PrivateSearch(estimator, {f"{name}regularization": [0.01, 1.0]}, 8.0, 1e-6, random_state=0)


FITS: dict[str, Any] = {
    "search": lambda table: search(PrivateAdditiveClassifier(1.0, schema=SCHEMA), "").fit(table, LABELS),
    "pipeline": lambda table: search(
        make_pipeline(SchemaEncoder(SCHEMA), PrivateLogisticRegression(1.0)), "privatelogisticregression__"
    ).fit(table, LABELS),
    "fair": lambda table: FairClassifier(
        logistic(schema=SCHEMA), measure="demographic_parity", gap=0.1, groups=["f", "m"], on="rows", confidence=0.9
    ).fit(table, LABELS, who=SEX),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit", FITS)
def test_fits_that_divide_rows_are_alike(fit, form):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known, model = (FITS[fit](made(CELLS)) for made in (pd.DataFrame, FORMS[form]))
    ask = "chances" if fit == "fair" else "decision_function"
    np.testing.assert_array_equal(getattr(model, ask)(FORMS[form](CELLS)), getattr(known, ask)(pd.DataFrame(CELLS)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kind", [PrivateLogisticRegression, PrivateAdditiveClassifier, PrivateClassifier, KernelMeanClassifier]
)
def test_plans_are_for_the_rows_that_there_are(kind, form):
    plan = kind(1.0, 1e-6, schema=SCHEMA).plan_for(FORMS[form](CELLS), ["no", "yes"])
    assert plan.budget.size == len(LABELS)


@pytest.mark.parametrize("form", FORMS)
def test_some_rows_are_those_rows(form):
    places = np.array([7, 0, 239])
    part = rows_at(FORMS[form](CELLS), places)
    assert row_count(part) == 3
    expected = pd.DataFrame(CELLS).iloc[places]
    encoded = [SCHEMA.encode(one) for one in (part, expected)]
    np.testing.assert_array_equal(*encoded)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "bsr", "dia", "dok"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_tables_are_divided_as_full_ones_are(form, kind):
    """However their cells are stored: some can be asked for no row, and some are dicts."""
    cells = np.where(GENERATOR.random((240, 3)) < 0.5, GENERATOR.uniform(-0.5, 0.5, (240, 3)), 0.0)
    places = np.array([7, 0, 239])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparse.SparseEfficiencyWarning)
        stored = getattr(sparse, f"{form}_{kind}")(cells)
    assert row_count(stored) == 240
    np.testing.assert_array_equal(rows_at(stored, places).toarray(), cells[places])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"classes": ["no", "yes"], "random_state": 0}
        models = [
            search(PrivateLogisticRegression(1.0, **options), "").fit(table, LABELS)
            for table in (sparse.csr_array(cells), stored)
        ]
    np.testing.assert_array_equal(*(model.decision_function(cells) for model in models))
