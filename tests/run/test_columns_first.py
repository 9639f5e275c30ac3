"""Columns that are not there are told first, all of them at once: before money is asked for, and before a cell is read.

Whatever a table is (a file, a folder, a frame), the names of its columns are no secret and are there without its rows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sfumato import Ledger, make_plan, run_plan
from sfumato.errors import OverspendError, SchemaError

COLUMNS = {"patients": ("id", "age", "weight"), "visits": ("patient", "cost")}
STUDY = """
source(patients, 'patients.parquet').
source(visits, 'visits.parquet').
column(patients, {id}, patient(P)). missing(patients, never).
column(patients, {age}, age(P)).
column(patients, {weight}, weight(P)).
column(visits, {patient}, patient(P)). missing(visits, never).
column(visits, {cost}, cost(P)).
random(age(P)) :- patient(P).
random(weight(P)) :- patient(P).
random(cost(P)) :- patient(P).
range(age(P), 0, 110).
range(weight(P), 0, 200).
range(cost(P), 0, 1000).
rows_per_person(patients, 1).
rows_per_person(visits, 1).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(0.5)).
sum(total, age(P), patient(P)).
sum(costs, cost(P), patient(P)).
publish(total, total, openness(public)).
publish(costs, costs, openness(public)).
"""
SECRET = 73.125


def tables():
    number = list(range(20))
    patients = pa.table({"id": number, "age": [SECRET] * 20, "weight": [SECRET] * 20})
    return {"patients": patients, "visits": pa.table({"patient": number, "cost": [SECRET] * 20})}


def study(mistyped=()):
    names = {name: f"{name}s" if name in mistyped else name for own in COLUMNS.values() for name in own}
    return STUDY.format(**names)


def as_given(form, folder):
    """The same tables in one of the forms that a run takes."""
    folder.mkdir(exist_ok=True)
    given = {}
    for name, table in tables().items():
        match form:
            case "arrow":
                given[name] = table
            case "pandas":
                given[name] = table.to_pandas()
            case "columns":
                given[name] = table.to_pydict()
            case "parquet":
                given[name] = folder / f"{name}.parquet"
                parquet.write_table(table, given[name])
            case "csv":
                given[name] = folder / f"{name}.csv"
                csv.write_csv(table, given[name])
            case "parts":
                given[name] = folder / name
                given[name].mkdir(exist_ok=True)
                parquet.write_table(table, given[name] / "a.parquet")
    return given


@pytest.fixture(scope="module")
def spent(tmp_path_factory):
    """A ledger in which nothing is left for these tables."""
    folder = tmp_path_factory.mktemp("spent")
    run_plan(make_plan(study()), tables(), folder / "ledger.db", grant=True)
    with pytest.raises(OverspendError):
        run_plan(make_plan(study()), tables(), folder / "ledger.db", grant=True)
    return Ledger(folder / "ledger.db")


@pytest.mark.parametrize("form", ["arrow", "pandas", "columns", "parquet", "csv", "parts"])
def test_all_columns_that_are_not_there_are_named_before_money_is_asked_for(form, spent, tmp_path):
    random = np.random.default_rng(len(form))
    given = as_given(form, tmp_path / form)
    everything = [(table, name) for table, names in COLUMNS.items() for name in names]
    before = len(spent.history())
    for _ in range(4):
        chosen = [everything[place] for place in random.permutation(5)[: random.integers(1, 5)]]
        with pytest.raises(SchemaError) as refused:
            run_plan(make_plan(study({name for _, name in chosen})), given, spent, grant=True)
        said = str(refused.value)
        for table, name in chosen:
            assert f"{table} has no column {name}s" in said, said
        assert said.endswith("Nothing was spent.")
        assert str(SECRET) not in said
    assert len(spent.history()) == before


def test_a_column_is_told_before_a_first_grant_is_asked_for(tmp_path):
    def asked(question):
        raise AssertionError("money was asked for")

    with pytest.raises(SchemaError, match="no column ages"):
        run_plan(make_plan(study({"age"})), tables(), tmp_path / "ledger.db", grant=asked)


def test_what_cannot_be_read_at_all_is_told_by_who_reads_it(spent, tmp_path):
    given = as_given("parquet", tmp_path / "broken")
    given["visits"].write_bytes(b"no parquet")
    with pytest.raises(Exception, match=r"visits|Parquet") as refused:
        run_plan(make_plan(study()), given, spent, grant=True)
    assert "Nothing was" in str(refused.value)


def test_a_frame_with_numbers_for_names_is_read_by_their_texts(spent):
    frame = pd.DataFrame({0: range(20), "age": 1.0, "weight": 2.0})
    with pytest.raises(SchemaError, match="no column id"):
        run_plan(make_plan(study()), {**tables(), "patients": frame}, spent, grant=True)
