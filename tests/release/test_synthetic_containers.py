"""Synthetic rows are made of a table in whatever form it is, also where one of its columns says whose a row is."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import Categories, Interval, Schema
from sfumato.errors import SfumatoError
from sfumato.release import SyntheticRelease


def _structured(table: pa.Table) -> np.ndarray:
    made = np.empty(table.num_rows, [(name, "U4" if name == "1" else float) for name in table.column_names])
    for name, column in _of(table):
        made[name] = column.to_numpy()
    return made


def _of(table: pa.Table):
    return zip(table.column_names, table.columns, strict=True)


def _numbered(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas()
    frame.columns = [int(name) for name in frame.columns]
    return frame


FORMS = {
    "dict": lambda table: {name: column.to_numpy() for name, column in _of(table)},
    "dict of numbers": lambda table: {int(name): column.to_numpy() for name, column in _of(table)},
    "pandas": lambda table: table.to_pandas(),
    "pandas of numbers": _numbered,
    "polars": pl.from_arrow,
    "batch": lambda table: table.to_batches()[0],
    "stream": lambda table: table.to_reader(),
    "relation": duckdb.from_arrow,
    "structured": _structured,
}


def _names(table) -> list[str]:
    if isinstance(table, np.ndarray):
        return list(table.dtype.names)
    if isinstance(table, pa.Table | pa.RecordBatch):
        return table.schema.names
    return list(table if isinstance(table, dict) else table.columns)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("people", [None, "7"])
def test_the_same_rows_in_every_form_are_counted_alike(form, people):
    """With the same noise every form gives the counts that an Arrow table gives."""
    generator = np.random.default_rng(len(form))
    table = pa.table({"0": generator.uniform(0, 10, 60), "1": generator.choice(["a", "b"], 60)})
    if people:
        table = table.append_column(people, pa.array(generator.integers(0, 25, 60)))
    schema = Schema({"0": Interval(0, 10), "1": Categories(["a", "b"])})
    wanted = SyntheticRelease(
        schema, 2.0, 1e-6, buy_edges=False, people=people, rows_per_person=2 if people else 1, random_state=1
    )
    known, made = wanted.release(table), wanted.release(FORMS[form](table))
    for one, other in zip(known.measured, made.measured, strict=True):
        assert one.columns == other.columns
        assert np.array_equal(one.counts, other.counts)
    assert _names(made.table) == ["0", "1"]


@pytest.mark.parametrize("form", FORMS)
def test_a_table_without_the_column_of_people_is_refused_in_words(form):
    table = FORMS[form](pa.table({"0": [1.0, 2.0]}))
    with pytest.raises(SfumatoError, match="whose a row is"):
        SyntheticRelease(Schema({"0": Interval(0, 10)}), 2.0, 1e-6, people="7").release(table)
