"""Days and times of day: read from every kind of column as Python reads them, and invented in the type they came in."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato import Dates, Schema, Times
from sfumato.core.calendar_columns import calendar_numbers, calendar_values
from sfumato.core.domain import Categories, Interval
from sfumato.errors import SchemaError
from sfumato.release import SyntheticRelease
from sfumato.run.fingerprint import fingerprint

START = dt.datetime(1970, 1, 1)
DAYS = [pa.date32(), pa.date64(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")), pa.string()]
TIMES = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.string()]


def moments(rows: int, seed: int = 0) -> list[dt.datetime | None]:
    """Around 1970 on both sides, some missing."""
    generator = np.random.default_rng(seed)
    seconds = generator.integers(-40 * 365 * 86_400, 60 * 365 * 86_400, rows)
    missing = generator.random(rows) < 0.1
    return [None if gone else START + dt.timedelta(seconds=int(s)) for s, gone in zip(seconds, missing, strict=True)]


def column(kind: pa.DataType, given: list[dt.datetime | None], unit: str) -> pa.ChunkedArray:
    if pa.types.is_timestamp(kind):
        cells = [None if one is None else one.replace(tzinfo=dt.UTC) if kind.tz else one for one in given]
    elif unit == "date":
        cells = [None if one is None else one.date() for one in given]
    else:
        cells = [None if one is None else one.time() for one in given]
    if kind == pa.string():
        return pa.chunked_array([[None if one is None else one.isoformat() for one in cells]], kind)
    return pa.chunked_array([pa.array(cells, kind)])


@pytest.mark.parametrize("kind", [*DAYS, pa.timestamp("ms", "Asia/Tokyo")], ids=str)
def test_days_of_every_kind_are_read_as_python_reads_them_and_given_back(kind):
    given = moments(300)
    domain = Dates("1930-01-01", "2030-01-01")
    read = domain.read(column(kind, given, "date"), "day").to_pylist()
    assert read == [None if one is None else float((one.date() - START.date()).days) for one in given]
    back = calendar_values(pa.array(read), "date", kind)
    assert back.type == kind
    assert calendar_numbers(pa.chunked_array([back]), "date").to_pylist() == read


@pytest.mark.parametrize("kind", [*TIMES, pa.timestamp("us")], ids=str)
def test_times_of_every_kind_are_read_as_python_reads_them_and_given_back(kind):
    given = moments(300, 1)
    read = Times().read(column(kind, given, "time"), "hour").to_pylist()
    expected = [None if one is None else (one - START).total_seconds() % 86_400 for one in given]
    assert read == pytest.approx(expected, nan_ok=True)
    back = calendar_values(pa.array(read), "time", kind)
    assert back.type == (pa.time32("s") if pa.types.is_timestamp(kind) else kind)
    assert calendar_numbers(pa.chunked_array([back]), "time").to_pylist() == pytest.approx(read)


def test_python_objects_are_read_one_by_one_and_no_cell_fails():
    cells = [dt.date(1970, 1, 3), "1970-01-03", dt.datetime(1970, 1, 3, 9), pd.NaT, None, "soon", np.datetime64("NaT"),
             np.datetime64("1970-01-03"), 2, True, "9999999-01-01", object()]  # fmt: skip
    read = Dates("1960-01-01", "1980-01-01").read(cells, "day").to_pylist()
    assert read == [2.0, 2.0, 2.0, None, None, None, None, 2.0, 2.0, None, None, None]


@pytest.mark.parametrize("kind", TIMES[:4], ids=str)
def test_a_table_with_times_of_day_can_be_known_again(kind, tmp_path):
    table = pa.table({"hour": column(kind, moments(50, 2), "time")})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert fingerprint(tmp_path / "t.parquet") == fingerprint(table)


def visits(rows: int = 4000) -> pa.Table:
    generator = np.random.default_rng(5)
    ill = generator.random(rows) < 0.4
    days = np.datetime64("2021-01-01") + np.where(ill, 500, 0) + generator.integers(0, 400, rows)
    hours = generator.normal(12, 3, rows).clip(0, 23.9) * 3600
    return pa.table(
        {
            "admitted on": pa.array(days.astype("datetime64[D]"), mask=generator.random(rows) < 0.05),
            "hour": pa.array(hours.astype(np.int32), pa.time32("s")),
            "ill?": pa.array(ill),
        }
    )


SCHEMA = """
[columns."admitted on"]
kind = "interval"
low = 2021-01-01
high = 2023-12-31
edges = [2021-01-01, 2021-07-01, 2022-01-01, 2022-07-01, 2023-01-01, 2023-07-01, 2023-12-31]
[columns.hour]
kind = "interval"
low = 00:00:00
high = 23:59:59
[columns."ill?"]
kind = "categories"
values = [false, true]
"""


def test_a_schema_says_days_as_days_and_survives_its_own_text():
    schema = Schema.from_toml(SCHEMA)
    assert schema.columns["hour"] == Times()
    assert schema.columns["admitted on"].edges[1] == 18809.0
    assert Schema.from_toml(schema.to_toml()) == schema
    assert "calendar" not in Schema({"age": Interval(0, 110)}).to_toml()
    with pytest.raises(SchemaError, match="calendar"):
        Interval(0, 1, calendar="week")


def test_invented_days_keep_their_type_their_law_and_their_link_to_the_label():
    table = visits()
    made = SyntheticRelease(
        Schema.from_toml(SCHEMA), 3.0, 1e-6, label="ill?", absent=["admitted on"], random_state=1
    ).release(table)
    assert made.table.schema == table.schema
    frames = [one.to_pandas() for one in (table, made.table)]
    assert frames[1]["admitted on"].isna().mean() == pytest.approx(0.05, abs=0.02)
    middles = [
        [np.median([day.toordinal() for day in part["admitted on"].dropna()]) for _, part in frame.groupby("ill?")]
        for frame in frames
    ]
    assert middles[1] == pytest.approx(middles[0], abs=184)  # the width of a bin; the two groups are 500 days apart
    names = next(one for one in made.measured if "admitted on" in one.columns)
    assert "2021-07-01 to 2021-12-31" in names.levels[names.columns.index("admitted on")]


@pytest.mark.parametrize("kind", ["pandas", "objects", "stated", "text"])
def test_types_of_days_follow_what_the_container_states_and_no_cell(kind):
    table = visits(500)
    schema = Schema.from_toml(SCHEMA).select(["admitted on", "ill?"])
    frame = table.drop_columns(["hour"]).to_pandas()
    if kind == "pandas":
        frame["admitted on"] = pd.to_datetime(frame["admitted on"])
    elif kind == "stated":
        frame["admitted on"] = frame["admitted on"].astype(pd.ArrowDtype(pa.date32()))
    given = frame if kind != "text" else table.drop_columns(["hour"]).set_column(
        0, "admitted on", table["admitted on"].cast(pa.string())
    )  # fmt: skip
    made = SyntheticRelease(schema, 5.0, 1e-6, absent=["admitted on"], random_state=2).release(given).table
    first = made["admitted on"]
    if kind in ("pandas", "objects"):  # pandas makes objects of a column of dates for one cell that is none
        assert first.dtype == "datetime64[us]"
    elif kind == "stated":
        assert isinstance(first.dropna().iloc[0], dt.date)
    else:
        assert first.type == pa.string()
        assert dt.date.fromisoformat(first.drop_null()[0].as_py()) >= dt.date(2021, 1, 1)


def test_declared_missing_cells_are_not_told_as_undeclared(recwarn):
    table = visits(300).append_column("who", pa.array([str(n // 2) for n in range(300)]))
    schema = Schema.from_toml(SCHEMA)
    SyntheticRelease(schema, 5.0, 1e-6, absent=["admitted on"], people="who", random_state=3).release(table)
    assert not [one for one in recwarn if "admitted" in str(one.message)]


def test_impossible_days_are_named_as_days():
    columns = {"day": Dates("2021-01-01", "2021-12-31"), "kind": Categories(["a", "b"])}
    schema = Schema(columns, impossible=[{"day": [dt.date(2021, 1, 1), dt.date(2021, 2, 1)], "kind": ["b"]}])
    assert schema.impossible[0]["day"] == (18628.0, 18659.0)
