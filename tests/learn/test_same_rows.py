"""The rows of a fit have one account: under another name for them a ledger refuses, in whatever form they come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.preprocessing import Normalizer

from sfumato.core import ApproxDP, Interval, Schema
from sfumato.errors import DataError, LedgerError
from sfumato.learn import PrivateLogisticRegression, make_pipeline
from sfumato.learn.same_rows import row_sources
from sfumato.ledger.ledger import Ledger
from sfumato.run.accounts import table_sources
from sfumato.run.engine.fit import fit_table


def forms(matrix: np.ndarray, generator: np.random.Generator) -> dict[str, object]:
    """The same rows in every form that a fit takes, in another order."""
    turned = matrix[generator.permutation(len(matrix))]
    names = [f"c{place}" for place in range(matrix.shape[1])]
    return {
        "array": turned,
        "columns": turned[:, generator.permutation(matrix.shape[1])],
        "lists": turned.tolist(),
        "fortran": np.asfortranarray(turned),
        "frame": pd.DataFrame(turned, columns=names),
        "arrow": pa.table(dict(zip(names, turned.T, strict=True))),
        "batch": pa.record_batch(dict(zip(names, turned.T, strict=True))),
        "stream": pa.table(dict(zip(names, turned.T, strict=True))).to_reader(),
        "polars": pl.DataFrame(turned, schema=names),
        "columns by name": dict(zip(names, turned.T, strict=True)),
        "lists by name": dict(zip(names, turned.T.tolist(), strict=True)),
        "structured": np.rec.fromarrays(turned.T, names=names).view(np.ndarray),
        "csr": sparse.csr_matrix(turned),
        "csc": sparse.csc_array(turned),
        "short": turned.astype(np.float32),
    }


@pytest.mark.parametrize("seed", range(12))
def test_the_same_rows_are_the_same_source_and_others_are_not(seed):
    generator = np.random.default_rng(seed)
    matrix = np.round(generator.normal(size=(generator.integers(1, 40), generator.integers(1, 5))), 3)
    matrix[generator.random(matrix.shape) < 0.3] = 0
    known = row_sources(matrix)
    found = {name: row_sources(one) for name, one in forms(matrix, generator).items()}
    assert {name: one for name, one in found.items() if one != known} == {}
    other = matrix.copy()
    other[int(generator.integers(len(matrix))), 0] += 0.5
    assert row_sources(other) != known
    assert row_sources(np.vstack([matrix, matrix[:1]])) != known


def test_words_and_absent_cells_are_rows_too():
    frame = pd.DataFrame({"sex": ["f", None, "M "], "age": [1.0, np.nan, 3.0]})
    assert row_sources(frame) == row_sources(frame[::-1].assign(sex=["m", None, "F"]))
    assert row_sources(frame) != row_sources(frame.assign(sex=["f", None, "f"]))


def test_words_are_known_in_every_form_of_a_table():
    cells = {"sex": ["f", None, "M ", "7"], "age": [1.0, None, 3.0, 4]}
    frame = pd.DataFrame(cells)
    known = row_sources(frame)
    for table in (
        cells,
        pa.table(cells),
        pl.DataFrame(cells, strict=False),
        frame.astype({"age": "Float64"}),
        frame[::-1],
    ):
        assert row_sources(table) == known, type(table)
    assert row_sources({"name": ["half \ud800", "a"]}) == row_sources({"name": np.array(["A", "half \ud800"])})


def test_rows_that_no_ledger_could_know_are_refused():
    with pytest.raises(DataError, match="Nothing was drawn"):
        row_sources([{"age": 1}, {"age": 2}])


def test_a_matrix_is_known_as_the_table_of_the_same_numbers(tmp_path):
    matrix = np.random.default_rng(0).integers(0, 90, (40, 2)).astype(float)
    table = pd.DataFrame(matrix, columns=["age", "weight"])
    assert set(row_sources(matrix)) & set(table_sources(table))


X = np.random.default_rng(1).uniform(-1, 1, (400, 2))
Y = X[:, 0] > 0


def classifier() -> PrivateLogisticRegression:
    return PrivateLogisticRegression(1.0, 1e-6, classes=[False, True])


@pytest.mark.parametrize("form", [dict, pa.table, pl.DataFrame, lambda cells: pa.table(cells).to_reader()])
def test_a_table_in_another_form_opens_no_second_account(form, tmp_path):
    cells = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}
    schema = Schema({"a": Interval(-1, 1), "b": Interval(-1, 1)}, norm=2.0)
    ledger = Ledger(tmp_path / "ledger.db")
    for name in ("survey", "others"):
        ledger.grant(name, ApproxDP(4.0, 1e-5))
    model = PrivateLogisticRegression(1.0, 1e-6, schema=schema, norm=None, classes=[False, True])
    model.fit(form(cells), Y, ledger=ledger, dataset="survey")
    with pytest.raises(LedgerError, match="under the name 'survey'"):
        model.fit(pd.DataFrame(cells)[::-1], Y[::-1], ledger=ledger, dataset="others")


@pytest.mark.parametrize("model", [classifier, lambda: make_pipeline(Normalizer(), classifier())])
def test_another_name_opens_no_second_account(model, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    for name in ("survey", "others"):
        ledger.grant(name, ApproxDP(4.0, 1e-5))
    model().fit(X, Y, ledger=ledger, dataset="survey")
    model().fit(X[::-1], Y[::-1], ledger=ledger, dataset="survey")
    with pytest.raises(LedgerError, match="under the name 'survey'"):
        model().fit(pd.DataFrame(X, columns=["a", "b"]).to_numpy(), Y, ledger=ledger, dataset="others")
    model().fit(X + 0.25, Y, ledger=ledger, dataset="others")


def test_a_table_that_is_fitted_has_one_account(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    for name in ("survey", "others"):
        ledger.grant(name, ApproxDP(4.0, 1e-5))
    for name in ("kept", "copy"):
        (tmp_path / name).mkdir()
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)
    frame.to_parquet(tmp_path / "kept" / "all.parquet")
    frame[200:].to_parquet(tmp_path / "copy" / "a.parquet")
    frame[:200].to_parquet(tmp_path / "copy" / "b.parquet")
    fit_table(classifier(), str(tmp_path / "kept"), "y", ledger=ledger, dataset="survey")
    with pytest.raises(LedgerError, match="under the name 'survey'"):
        fit_table(classifier(), str(tmp_path / "copy"), "y", ledger=ledger, dataset="others")
