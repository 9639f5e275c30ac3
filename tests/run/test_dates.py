"""Days and times of day: the same numbers from every kind of column, and answers that are days."""

from __future__ import annotations

import datetime as dt
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sfumato import Dates, Study, Times
from sfumato.core.calendar import number_of_day, shown
from sfumato.errors import InputError, SchemaError, StudyError
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan, tables_in

STUDY = """
table(t, '{file}', person(P)=id, [admitted: date(2020, 1, 1)..date(2020, 12, 31), hour: time(0, 0)..time(23, 59, 59)]).
rows_per_person(t, 1). missing(t, never).
dataset(d, domain(P, person(P))). privacy_requirement(r(pub), d, dp(100000)).
mean(m, admitted(P), person(P)). publish(a, m, r(pub)).
median(q, admitted(P), (person(P), admitted(P) >= date(2020, 6, 1))). publish(b, q, r(pub)).
histogram(h, [admitted(P): [date(2020, 4, 1), date(2020, 10, 1)]], person(P)). publish(c, h, r(pub)).
mean(w, hour(P), person(P)). publish(e, w, r(pub)).
"""
SIZE = 400


@pytest.fixture(scope="module")
def truth() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + generator.integers(0, 366, SIZE)
    return days, generator.integers(0, 86_400, SIZE)


def clock(seconds: int) -> dt.time:
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60)


def columns(kind: str, days: np.ndarray, seconds: np.ndarray) -> dict:
    late = days.astype("datetime64[s]") + seconds
    texts = {"id": range(SIZE), "admitted": [str(day) for day in days], "hour": [str(clock(int(s))) for s in seconds]}
    return {
        "dates": {**texts, "admitted": pa.array(days.astype("datetime64[D]")),
                  "hour": pa.array([clock(int(s)) for s in seconds])},
        "moments": {**texts, "admitted": pa.array(late.astype("datetime64[us]")),
                    "hour": pa.array(late.astype("datetime64[ns]"))},
        "zoned": {**texts, "admitted": pa.array(late.astype("datetime64[ms]"), pa.timestamp("ms", "Asia/Tokyo")),
                  "hour": pa.array(late.astype("datetime64[ms]"), pa.timestamp("ms", "Asia/Tokyo"))},
        "texts": texts,
        "long texts": {**texts, "admitted": [str(one) for one in late]},
    }[kind]  # fmt: skip


def checked(release, days: np.ndarray, seconds: np.ndarray) -> None:
    rows = {one.name: one.values.to_pylist() for one in release.published}
    number = days.astype("datetime64[D]").astype(int)
    assert rows["a"][0]["value"] == pytest.approx(number.mean(), abs=0.01)
    assert rows["a"][0]["date"] == shown(number.mean(), "date")
    assert rows["a"][0]["date_low"] <= rows["a"][0]["date"] <= rows["a"][0]["date_high"]
    later = np.sort(number[days >= np.datetime64("2020-06-01")])
    assert abs(rows["b"][0]["value"] - np.median(later)) <= 1.5
    assert rows["b"][0]["date"] == shown(rows["b"][0]["value"], "date")
    cuts = np.array(["2020-04-01", "2020-10-01"], dtype="datetime64[D]").astype(int)
    counts = np.bincount(np.searchsorted(cuts, number, side="right"), minlength=3)
    assert [round(row["value"]) for row in rows["c"]] == counts.tolist()
    classes = ["[2020-01-01, 2020-04-01)", "[2020-04-01, 2020-10-01)", "[2020-10-01, 2020-12-31]"]
    assert [row["admitted"] for row in rows["c"]] == classes
    assert rows["e"][0]["value"] == pytest.approx(seconds.mean(), abs=0.5)
    assert rows["e"][0]["time"] == shown(rows["e"][0]["value"], "time")


@pytest.mark.parametrize("kind", ["dates", "moments", "zoned", "texts", "long texts"])
@pytest.mark.by_day(2)
def test_every_kind_of_column_gives_the_same_days(kind, truth):
    plan = make_plan(STUDY.format(file="t.parquet"), sizes={"d": SIZE})
    checked(run_plan(plan, {"t": pa.table(columns(kind, *truth))}, None, random_state=1), *truth)


@pytest.mark.parametrize("file", ["t.parquet", "t.csv", "t.duckdb", "t.sqlite"])
@pytest.mark.by_day(1)
def test_every_kind_of_file_gives_the_same_days(file, truth, tmp_path):
    table = pa.table(columns("dates" if file in ("t.parquet", "t.duckdb") else "texts", *truth))
    where = file
    if file == "t.parquet":
        pq.write_table(table, tmp_path / file)
    elif file == "t.csv":
        pa.csv.write_csv(table, tmp_path / file)
    elif file == "t.duckdb":
        with duckdb.connect(tmp_path / file) as store:
            store.register("given", table)
            store.execute("CREATE TABLE stays AS SELECT * FROM given")
    else:
        with sqlite3.connect(tmp_path / file) as store:
            table.to_pandas().to_sql("stays", store, index=False)
    text = STUDY.format(file=where)
    if file.endswith(("duckdb", "sqlite")):  # one line more: the table inside
        text = text.replace(f"table(t, '{file}', person(P)=id, [", "").replace("]).", "", 1)
        head, rest = text.strip().split("\n", 1)
        first, second = head.split(", hour: ")
        text = f"source(t, '{file}', stays). column(t, id, person(P)).\n"
        for name, span in (("admitted", first.partition(": ")[2]), ("hour", second)):
            low, high = span.split("..")
            text += f"column(t, {name}, {name}(P)). random({name}(P)) :- person(P). range({name}(P), {low}, {high}).\n"
        text += rest
    plan = make_plan(text, sizes={"d": SIZE})
    checked(run_plan(plan, tables_in(plan, tmp_path), None, random_state=1), *truth)


def test_cells_that_are_no_days_are_absent_and_nothing_fails():
    cells = ["2020-05-05", "yesterday", "", None, "2020-02-30", "infinity", "99999999-01-01", "2020-05-05T10:00:00Z"]
    table = pa.table({"id": range(8), "admitted": cells, "hour": ["12:00:00"] * 8})
    text = STUDY.format(file="t.parquet").replace(
        "missing(t, never).", "missing(admitted(P), date(2020, 5, 5)). missing(hour(P), 0)."
    )
    release = run_plan(make_plan(text), {"t": table}, None, random_state=1)
    # What lies outside the range is moved to its end, as numbers are.
    (row,) = release.publication("a").values.to_pylist()
    assert row["date"] in ("2020-05-05", "2020-06-04")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("date(2020, 12, 31)", "date(2020, 12, 32)", "is no date"),
        ("date(2020, 12, 31)", "366", "two days, two times or two numbers"),
        ("time(23, 59, 59)", "time(24, 0)", "is no time"),
        ("date(2020, 1, 1)..", "date(2021, 1, 1)..", "low must be below high"),
        ("date(2020, 6, 1)", "date(2020, 6.5, 1)", "is no date"),
    ],
)  # fmt: skip
def test_days_that_are_none_are_told(old, new, said):
    with pytest.raises(StudyError, match=said) as told:
        make_plan(STUDY.format(file="t.parquet").replace(old, new, 1))
    assert "Nothing was run and nothing was spent" in str(told.value)


def test_in_python(truth):
    days, seconds = truth
    frame = pd.DataFrame(
        {"id": range(SIZE), "admitted": days.astype("datetime64[ns]"), "hour": [str(clock(int(s))) for s in seconds]}
    )
    columns = {"admitted": ("2020-01-01", "2020-12-31"), "hour": Times()}
    study = (
        Study("Stays").table("stays", frame, person="id", columns=columns).promise("public", epsilon=1000, delta=1e-6)
        .mean("admitted", where="admitted >= '2020-06-01'", to="public", name="late")
        .histogram("admitted", edges=["2020-01-01", "2020-04-01", "2020-12-31"], to="public", name="parts")
        .median("hour", to="public", name="noon")
    )  # fmt: skip
    assert "range(admitted(P), date(2020, 1, 1), date(2020, 12, 31))" in study.to_text()
    assert Study.from_text(study.to_text()).to_text() == study.to_text()
    release = study.plan(size=SIZE).run(ledger=None)
    late = days[days >= np.datetime64("2020-06-01")].astype("datetime64[D]").astype(int).mean()
    assert abs(number_of_day(release["late"]["date"][0]) - late) <= 2
    assert release["parts"]["admitted"] == ["[2020-01-01, 2020-04-01)", "[2020-04-01, 2020-12-31]"]
    assert release["noon"]["time"][0].count(":") == 2
    with pytest.raises(SchemaError, match="is no date"):
        Dates("2020-01-01", "soon")
    with pytest.raises(InputError, match="is no date"):
        study.mean("admitted", where="admitted >= 'June'", to="public").plan()
