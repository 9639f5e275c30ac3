"""Laws of Domain, Schema and tables: what may enter, where it lands, and what a refusal may say."""

from __future__ import annotations

import copy
import datetime
import itertools
import math
import pickle
import subprocess
import sys
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.schema import Schema
from sfumato.core.tables import as_arrow, as_column, like
from sfumato.errors import DataError, SchemaError, UndeclaredCellWarning

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Everything UTF-8 can hold: quotes, dots, control characters, line separators, emoji, the empty name.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
bounds = st.floats(-1e300, 1e300, allow_nan=False)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = sorted((draw(bounds), draw(bounds)))
    assume(low < high)
    return Interval(low, high, null=draw(st.none() | st.floats(low, high)))


@st.composite
def categories(draw: st.DrawFn) -> Categories:
    scalars = draw(st.sampled_from([text, st.integers(-(2**63), 2**63 - 1), st.booleans()]))
    values = draw(st.lists(scalars, min_size=1, max_size=5, unique=True))
    member = st.none() | st.sampled_from(values)
    return Categories(values, unknown=draw(member), null=draw(member))


domains = intervals() | categories()
norms = st.none() | st.floats(1e-100, 1e100)
schemas = st.builds(Schema, st.dictionaries(text, domains, min_size=1, max_size=5), norms)

PEOPLE = Schema(
    {
        "age": Interval(0, 100, null=50),
        "sex": Categories(["f", "m"], unknown="f", null="m"),
        "ward": Categories([1, 2, 3]),
    }
)
ROWS = {"age": [25.0, 200.0, None], "sex": ["m", "x", None], "ward": [3, 1, 2]}
ENCODED = np.array([[0.25, 0, 1, 0, 0, 1], [1, 1, 0, 1, 0, 0], [0.5, 0, 1, 0, 1, 0]])


# --- Interval -------------------------------------------------------------------------------------------------------


@quick
@given(intervals(), st.lists(st.floats(), max_size=20))
def test_interval_holds_whatever_it_is_given(interval: Interval, values: list[float]):
    """NaN, ±inf and huge values all land inside, and values inside stay where they are."""
    interval = Interval(interval.low, interval.high, null=interval.low)
    placed = interval.place(np.array(values, dtype=float), "x")
    assert placed.dtype == np.float64
    assert ((placed >= interval.low) & (placed <= interval.high)).all()
    for before, after in zip(values, placed, strict=True):
        if interval.low <= before <= interval.high:
            assert before == after


@pytest.mark.parametrize(
    ("low", "high", "null"),
    [
        (1, 1, None),
        (2, 1, None),
        (0, math.inf, None),
        (math.nan, 1, None),
        (-1.7e308, 1.7e308, None),
        (0, 1, 2),
        (0, 1, math.nan),
        (False, True, None),
        (0, 1, True),
        ("0", 1, None),
        (0, 10**400, None),
        (None, 1, None),
    ],
)
def test_interval_refuses_bounds_that_bound_nothing(low, high, null):
    with pytest.raises(SchemaError):
        Interval(low, high, null=null)


def test_interval_knows_its_width_and_takes_numpy_numbers():
    interval = Interval(np.int64(-5), np.float32(10))
    assert interval.width == 15
    assert type(interval.low) is float
    assert interval == Interval(-5.0, 10.0)
    assert hash(interval) == hash(Interval(-5, 10))


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([pa.array([1, 3], pa.int8()), pa.array([5], pa.int8())]),
        pa.array([Decimal("1.00"), Decimal("3.00"), Decimal("5.00")], pa.decimal128(9, 2)),
        pa.array([Decimal(1), Decimal(3), Decimal(5)], pa.decimal32(5, 0)),
        pa.array([1, 3, 5]).dictionary_encode(),
        np.array([1, 3, 5], dtype=">i4"),
        np.array([1, 3, 5], dtype=np.float16),
        np.array([1, 0, 3, 0, 5, 0], dtype=np.uint64)[::2],
        pd.Series([1, 3, 5], dtype="Int64"),
        pd.Series([1, 3, 5], dtype="category", index=[7, 8, 9]),
        pl.Series([1, 3, 5]),
        [1, 3, 5],
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', getattr(column, 'type', ''))}",
)
def test_interval_reads_numbers_however_they_are_stored(column):
    assert Interval(2, 10).place(column, "x").tolist() == [2, 3, 5]


def test_interval_reads_booleans_and_huge_integers():
    assert Interval(0, 1).place(np.array([True, False]), "x").tolist() == [1, 0]
    assert Interval(0, 1e19).place(pa.array([2**53 + 1, 2**63 - 1]), "x").tolist() == [2.0**53, 2.0**63]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([datetime.date(1970, 1, 2)]), "Declare Dates"),
        (np.array(["1970-01-02"], dtype="datetime64[D]"), "Declare Dates"),
        (pd.Series(pd.period_range("1970-01-02", periods=1, freq="D")), "needs numbers"),
        (pa.array(["secret"]), "needs numbers"),
        (pa.array([b"secret"]), "needs numbers"),
        (pa.array([[1.0]]), "needs numbers"),
        (np.array([[1.0]]), "1 dimension"),
        (np.array(1.0), "1 dimension"),
        (np.array([1j]), "same type"),
        (7, "same type"),
        ("secret", "1-D array"),
    ],
    ids=str,
)
def test_interval_refuses_what_is_not_a_column_of_numbers(column, reason):
    with pytest.raises(DataError, match=reason) as caught:
        Interval(0, 1).place(column, "when")
    assert "'when'" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("column", [np.array([1.0, np.nan]), pa.array([1, None]), pa.array([1.0, math.nan]), [None]])
def test_missing_numbers_without_a_declared_place_go_to_the_middle_with_a_word(column):
    with pytest.warns(UndeclaredCellWarning, match=r"'age' has a missing cell.*Declare null = "):
        assert Interval(0, 9).place(column, "age")[-1] == 4.5
    assert Interval(0, 9, null=4).place(column, "age")[-1] == 4


def test_masked_values_are_missing_values():
    """The number under a mask was withdrawn by its owner and must not be used."""
    masked = np.ma.array([1.0, 7.0], mask=[False, True])
    assert Interval(0, 9, null=0).place(masked, "x").tolist() == [1, 0]


# --- Categories -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "roles"),
    [
        ([], {}),
        (["a", "a"], {}),
        ([1, True], {}),
        ([1, "a"], {}),
        ([1.0, 2.0], {}),
        ([None], {}),
        ("ab", {}),
        ({"a", "b"}, {}),
        (7, {}),
        ([2**63], {}),
        (["\ud800"], {}),
        (["a"], {"unknown": "b"}),
        (["1"], {"null": 1}),
        ([0, 1], {"unknown": True}),
        ([False, True], {"null": 1}),
    ],
)
def test_categories_refuse_a_list_that_is_not_one(values, roles):
    with pytest.raises(SchemaError):
        Categories(values, **roles)


def test_booleans_are_not_integers():
    """Python says (True, False) == (1, 0); two different domains must not be taken for each other."""
    assert Categories([False, True]) != Categories([0, 1])
    with pytest.raises(DataError, match="type bool"):
        Categories([0, 1]).place(np.array([True]), "x")
    with pytest.raises(DataError, match="type int64"):
        Categories([False, True]).place(np.array([1]), "x")
    assert Categories([True, False]).place([True, False, True], "x").tolist() == [0, 1, 0]


@quick
@given(categories(), st.data())
def test_a_listed_value_gets_its_own_position(domain: Categories, data: st.DataObject):
    positions = data.draw(st.lists(st.integers(0, len(domain.values) - 1), max_size=10))
    codes = domain.place([domain.values[position] for position in positions], "x")
    assert codes.dtype == np.int64
    assert codes.tolist() == positions


@pytest.mark.parametrize(
    "column",
    [
        np.array(["b", "a", "z"]),
        np.array(["b", "a", "z"], dtype=object),
        pa.array(["b", "a", "z"], pa.large_string()),
        pa.array(["b", "a", "z"], pa.string_view()),
        pa.array(["b", "a", "z"]).dictionary_encode(),
        pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array(["z"]).dictionary_encode()]),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["b", "a", "z"]),
        pd.Series(["b", "a", "z"]),
        pd.Series(["b", "a", "z"], dtype="category"),
        pl.Series(["b", "a", "z"], dtype=pl.Categorical),
        pl.Series(["b", "a", "z"], dtype=pl.Enum(["z", "a", "b"])),
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', getattr(column, 'type', ''))}",
)
def test_strings_match_however_they_are_stored(column):
    assert Categories(["a", "b"], unknown="a").place(column, "x").tolist() == [1, 0, 0]
    with pytest.warns(
        UndeclaredCellWarning, match="'x' has a cell that is not among its categories.*Declare unknown = "
    ):
        assert Categories(["b", "a"]).place(column, "x").tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "column",
    [
        np.array([5, 0, 9], dtype=np.int8),
        np.array([5, 0, 2**63 + 5], dtype=np.uint64),
        np.array([5.0, -0.0, 0.5]),
        np.array([5.0, 0.0, np.inf], dtype=np.float32),
        pa.array([Decimal("5.00"), Decimal("0.00"), Decimal("5.01")]),
        pa.array([Decimal(5), Decimal(0), Decimal(9)], pa.decimal64(12, 0)),
        pd.Series([5, 0, 9], dtype="Int16"),
        pl.Series([5, 0, 9], dtype=pl.UInt32),
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', getattr(column, 'type', ''))}",
)
def test_integers_match_however_they_are_stored(column):
    """300 and -1 cannot occur in an int8 or an unsigned column; that must not be an error."""
    domain = Categories([0, 5, 300, -1, 2**54, 2**62 + 1], unknown=300)
    assert domain.place(column, "x").tolist() == [1, 0, 2]


def test_integers_beyond_the_floats_match_exactly():
    domain = Categories([2**53, 2**53 + 1, 2**54], unknown=2**54)
    assert domain.place(pa.array([2**53 + 1, 2**53, 2**53 + 2]), "x").tolist() == [1, 0, 2]
    assert domain.place(np.array([2.0**53, 2.0**54]), "x").tolist() == [0, 2]


@pytest.mark.parametrize(
    "column", [["a", None], np.array(["a", None]), pd.Series(["a", np.nan]), pl.Series(["a", None])]
)
def test_missing_categories_without_a_declared_place_are_the_first_with_a_word(column):
    with pytest.warns(UndeclaredCellWarning, match=r"'sex' has a missing cell.*Declare null = "):
        assert Categories(["b", "a"], unknown="a").place(column, "sex").tolist() == [1, 0]
    assert Categories(["a", "b"], null="b").place(column, "sex").tolist() == [0, 1]


def test_nan_is_missing_and_not_unknown():
    domain = Categories([1, 2, 3], unknown=2, null=3)
    assert domain.place(pa.array([1.0, math.nan, 7.5, None]), "x").tolist() == [0, 2, 1, 2]


def test_a_column_without_one_value_is_judged_by_its_type_like_any_other():
    """Otherwise one value more or less would decide whether the column is refused."""
    with pytest.raises(DataError, match="type double"):
        Categories(["a", "b"], null="b").place(np.array([np.nan, np.nan]), "x")
    with pytest.raises(DataError, match="type string"):
        Interval(0, 1, null=1).place(pa.array([None, None], pa.string()), "x")
    for nothing in (pa.nulls(2), [None, None], np.array([None, None], dtype=object)):
        assert Categories(["a", "b"], null="b").place(nothing, "x").tolist() == [1, 1]
        assert Interval(0, 1, null=1).place(nothing, "x").tolist() == [1, 1]


OBJECTS = (
    *(1, 2.5, "x", "2", b"x", b"\xff", "\ud800", None, {}, [1], 2**70, -(10**5000), True, "true", float("nan"), 1j),
    *(np.float32(1), np.datetime64("NaT"), pd.NaT, pd.NA, Exception("no"), "9" * 4000, np.ones(2), np.ma.masked),
    *(Decimal("0.1"), Decimal("sNaN"), Decimal("1e999"), Fraction(1, 3), Fraction(10**400), float("inf"), np.int8(2)),
)


@pytest.mark.parametrize("domain", [
    Interval(0, 3, null=1), Interval(-5, 5), Categories([2, 0, 1], unknown=2, null=0), Categories([1, 2]),
    Categories(["x", "2", "true"], unknown="2"), Categories([True, False]), Categories([False], null=False),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize(
    "kind",
    [list, tuple, lambda cells: pd.Series(cells, dtype=object), "array"],
    ids=["list", "tuple", "series", "array"],
)
@pytest.mark.by_day(6)
def test_every_object_has_a_place_of_its_own(domain: Domain, kind):
    """No cell makes a column fail or changes how another is read."""

    def column(cells):
        array = np.empty(len(cells), dtype=object)
        array[:] = cells
        return array if kind == "array" else kind(cells)

    with warnings.catch_warnings(action="ignore", category=UndeclaredCellWarning):
        alone = [domain.place(column([cell]), "x")[0] for cell in OBJECTS]
        for one, other in itertools.product(range(len(OBJECTS)), repeat=2):
            pair = domain.place(column([OBJECTS[one], OBJECTS[other]]), "x")
            assert pair.tolist() == [alone[one], alone[other]]


@pytest.mark.parametrize("column", [
    pa.array([Decimal("1e70"), Decimal(1)], pa.decimal256(76, 2)), pa.array([2**64 - 1, 1], pa.uint64()),
    pa.array([np.float16(np.inf), np.float16(1)], pa.float16()), np.array([1e308, 1]), [10**400, 1],
], ids=str)  # fmt: skip
def test_numbers_of_any_size_are_clipped(column):
    assert Interval(0, 9).place(column, "x").tolist() == [9, 1]
    assert Categories([0, 1], unknown=0).place(column, "x").tolist() == [0, 1]


def test_bytes_that_are_no_text_are_no_category():
    careless = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    assert Categories(["b", "a"], unknown="b").place(careless, "x").tolist() == [1, 0]
    assert Categories(["b", "a"], unknown="b").place(np.array(["a", "\ud800"]), "x").tolist() == [1, 0]


def test_an_unused_word_in_a_dictionary_is_no_data():
    column = pd.Series(["a", "z"], dtype="category")[:1]
    assert Categories(["a"]).place(column, "x").tolist() == [0]


@pytest.mark.parametrize(
    ("domain", "column"),
    [
        (Categories(["a"]), ["a", "hunter2"]),
        (Categories([1]), ["hunter2"]),
        (Categories([1]), np.array([1, 8675309])),
        (Interval(0, 1), np.array([1.0, "hunter2", 8675309], dtype=object)),
        (Interval(0, 1), pd.Series([8675309, "hunter2"], dtype=object)),
    ],
)
def test_a_warning_never_holds_a_value_or_a_count(domain: Domain, column):
    said = []
    for rows in (column, list(column) * 3):
        with pytest.warns(UndeclaredCellWarning) as caught:
            domain.place(rows, "x")
        said.append([str(one.message) for one in caught])
    assert said[0] == said[1]
    assert "hunter2" not in "".join(said[0])
    assert "8675309" not in "".join(said[0])


@pytest.mark.parametrize(
    ("domain", "column"),
    [
        (Categories([1]), pa.array(["hunter2"])),
        (Interval(0, 1), pa.array(["hunter2", "8675309"])),
        (Interval(0, 1), np.array([b"hunter2"])),
        (Categories(["a"]), pa.array([{"hunter2": 8675309}])),
    ],
)
def test_a_refusal_never_holds_a_value(domain: Domain, column):
    """Not in the message, and not in an exception chained behind it that a logger would print."""
    with pytest.raises(DataError) as caught:
        domain.place(column, "x")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "hunter2" not in str(caught.value)
    assert "8675309" not in str(caught.value)


# --- Schema as a value ----------------------------------------------------------------------------------------------


@quick
@given(schemas)
def test_toml_round_trip(schema: Schema):
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert list(again.columns) == list(schema.columns)
    assert hash(again) == hash(schema)
    assert again.to_toml() == schema.to_toml()


@quick
@given(schemas)
def test_a_schema_is_a_plain_value(schema: Schema):
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert copy.deepcopy(schema) == schema
    assert schema.width == len(schema.feature_names)
    covered = [at for place in schema.slices.values() for at in range(schema.width)[place]]
    assert covered == list(range(schema.width))


def test_equality_sees_order_norm_and_domain():
    first, second = Interval(0, 1), Interval(0, 2)
    assert Schema({"a": first, "b": second}) == Schema({"a": first, "b": second})
    assert Schema({"a": first, "b": second}) != Schema({"b": second, "a": first})
    assert Schema({"a": first}) != Schema({"a": first}, norm=1)
    assert Schema({"a": first}) != Schema({"a": second})
    assert Schema({"a": first}) != {"a": first}
    assert repr(Schema({"a": first}, 1)) == "Schema({'a': Interval(low=0.0, high=1.0, null=None)}, norm=1.0)"


def test_a_schema_cannot_be_changed():
    given_columns = {"a": Interval(0, 1)}
    schema = Schema(given_columns)
    given_columns["b"] = Interval(0, 1)
    assert list(schema.columns) == ["a"]
    with pytest.raises(TypeError):
        schema.columns["b"] = Interval(0, 1)  # type: ignore[index]
    with pytest.raises(AttributeError):
        schema.norm = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    "columns", [{}, None, [("a", Interval(0, 1))], {1: Interval(0, 1)}, {"a": 1}, {"\ud800": Interval(0, 1)}]
)
def test_schema_refuses_columns_that_are_none(columns):
    with pytest.raises(SchemaError):
        Schema(columns)


@pytest.mark.parametrize("norm", [0, -1, math.nan, math.inf, True, "1", 1e-320, 1e200])
def test_schema_refuses_a_norm_no_float_could_confirm(norm):
    with pytest.raises(SchemaError, match="norm"):
        Schema({"a": Interval(0, 1)}, norm)


def test_select_and_without():
    assert list(PEOPLE.select(["ward", "age"]).columns) == ["ward", "age"]
    assert PEOPLE.without(["sex"]) == PEOPLE.select(["age", "ward"])
    assert PEOPLE.without("sex") == PEOPLE.without(["sex"])
    assert PEOPLE.feature_names == ("age", "sex=f", "sex=m", "ward=1", "ward=2", "ward=3")
    assert PEOPLE.slices["ward"] == slice(3, 6)
    for names, reason in [(["agee"], "did you mean 'age'"), (["age", "age"], "more than once"), ([], "at least one")]:
        with pytest.raises(SchemaError, match=reason):
            PEOPLE.select(names)
    with pytest.raises(SchemaError, match="at least one"):
        PEOPLE.without(["age", "sex", "ward"])


# --- TOML -----------------------------------------------------------------------------------------------------------

INTERVAL = 'columns.a = {kind = "interval", low = 0, high = 1'


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "at least one name"),
        ("columns = 3", "must be a table"),
        ("columns.a = 3", "columns.a must be a table"),
        ("columns.a = {low = 0}", "kind is missing"),
        ('columns.a = {kind = "intervall"}', "did you mean 'interval'"),
        ("columns.a = {kind = []}", "is not known"),
        ('columns."a.b" = {kind = "interval", low = 0}', 'columns."a.b": high is missing'),
        (INTERVAL + ", nul = 0}", "'nul' is not known.*did you mean 'null'.*Remove it"),
        (INTERVAL + ", null = 2}", "columns.a: Interval: null"),
        (INTERVAL + ", null = true}", "columns.a: Interval: null"),
        ('columns.a = {kind = "categories", values = ["x"], scalar = "str"}', "'scalar' is not known"),
        ('columns.a = {kind = "categories", values = [1, 2.0]}', "columns.a: Categories"),
        ("norms = 1.0", "did you mean 'norm'"),
        (INTERVAL + "}\n[columns.a]", "not valid TOML"),
        ("people.toml", "Schema.read"),
        ("norm = " + "9" * 5000, "not valid TOML"),
        ("norm = " + "[" * 5000, "not valid TOML"),
        (None, "TOML text or a Path"),
    ],
)
def test_malformed_toml_says_where_and_what_to_do(source, reason):
    with pytest.raises(SchemaError, match=reason):
        Schema.from_toml(source)


# fmt: off
fragments = st.sampled_from([
    "[columns.a]\n", "[columns]\n", "norm = ", "kind = ", '"interval"\n', '"categories"\n', "low = 0\n", "high = 1\n",
    "values = ", "[1, 2]\n", '["x"]\n', "null = ", "1979-05-27\n", "true\n", "inf\n", "{a = 1}\n", "columns.b = ", '"',
])
# fmt: on


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.lists(fragments | st.text(max_size=3), max_size=12).map("".join))
def test_any_text_is_a_schema_or_a_schema_error(source: str):
    try:
        schema = Schema.from_toml(source)
    except SchemaError:
        return
    assert Schema.from_toml(schema.to_toml()) == schema


def test_files_are_written_whole(tmp_path: Path):
    path = tmp_path / "people.toml"
    path.write_text("old")
    PEOPLE.write(path)
    assert Schema.read(path) == Schema.read(str(path)) == Schema.from_toml(path) == PEOPLE
    assert [entry.name for entry in tmp_path.iterdir()] == ["people.toml"]


def test_files_that_cannot_be_used_are_schema_errors(tmp_path: Path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "wrong.toml").write_text("norms = 1")
    for name in ("absent.toml", "binary.toml", "wrong.toml", "", "\0"):
        with pytest.raises(SchemaError):
            Schema.read(tmp_path / name)
    for target in (tmp_path / "no" / "such" / "folder.toml", tmp_path, "", "\0"):
        with pytest.raises(SchemaError):
            PEOPLE.write(target)
    assert sorted(entry.name for entry in tmp_path.parent.iterdir() if entry.name.endswith(".tmp")) == []


# --- encode ---------------------------------------------------------------------------------------------------------

RECORDS = np.array(
    [(25.0, "m", 3), (200.0, "x", 1), (np.nan, "m", 2)], dtype=[("age", "f8"), ("sex", "U1"), ("ward", "i4")]
)
TABLES = {
    "pandas": pd.DataFrame(ROWS, index=["p", "q", "r"]),
    "polars": pl.DataFrame(ROWS),
    "arrow": pa.table(ROWS),
    "batch": pa.RecordBatch.from_pydict(ROWS),
    "dict": ROWS,
    "structured": RECORDS,
    "objects": pd.DataFrame(ROWS).to_numpy(),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_every_kind_of_table_encodes_alike(table):
    encoded = PEOPLE.encode(table)
    assert encoded.dtype == np.float64
    assert encoded.flags.c_contiguous
    assert encoded.tolist() == ENCODED.tolist()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_zero_rows_are_a_table_too(table):
    empty = {name: [] for name in table} if isinstance(table, dict) else table[:0]
    assert PEOPLE.encode(empty).shape == (0, 6)


def test_zero_rows_without_types():
    assert PEOPLE.encode(pd.DataFrame(columns=["age", "sex", "ward"])).shape == (0, 6)
    assert PEOPLE.encode({name: [] for name in PEOPLE.columns}).shape == (0, 6)
    assert PEOPLE.encode(pa.table(ROWS).schema.empty_table()).shape == (0, 6)
    assert PEOPLE.encode(pa.Table.from_batches([], schema=pa.table(ROWS).schema)).shape == (0, 6)


def test_a_stream_and_a_plain_matrix_are_read():
    assert PEOPLE.encode(pa.table(ROWS).to_reader()).tolist() == ENCODED.tolist()
    numbers = Schema({"a": Interval(0, 4), "b": Categories([0, 1])})
    for order in "CF":
        matrix = np.array([[1.0, 1.0], [2.0, 0.0]], order=order)
        assert numbers.encode(matrix).tolist() == [[0.25, 0, 1], [0.5, 1, 0]]


@pytest.mark.parametrize(
    ("table", "error", "reason"),
    [
        (np.zeros((2, 2)), SchemaError, "2 columns and the schema declares 3"),
        (np.zeros(3), DataError, "2 dimensions"),
        (np.zeros((1, 2, 3)), DataError, "2 dimensions"),
        (RECORDS.reshape(1, 3), DataError, "1 dimension"),
        ([[1, 2, 3]], DataError, "list is not a table"),
        (None, DataError, "NoneType is not a table"),
        (pl.LazyFrame(ROWS), DataError, "LazyFrame is not a table"),
        ({**ROWS, "age": [1]}, DataError, "differ in length"),
        ({"aeg": [1], "sex": ["f"], "ward": [1]}, SchemaError, "lacks the declared column 'age' .did you mean 'aeg'"),
        ({**ROWS, "name": ["A", "B", "C"]}, SchemaError, "does not declare: 'name'"),
        (pa.table([[1], [1]], names=["age", "age"]), SchemaError, "more than one column named 'age'"),
        (pd.DataFrame([[1, 1]], columns=["age", "age"]), SchemaError, "more than one column named 'age'"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_tables_that_do_not_fit_are_refused(table, error, reason):
    with pytest.raises(error, match=reason):
        PEOPLE.encode(table)


def test_extra_columns_are_left_unread_on_request():
    """Also those that Arrow could not read, and whatever stands in a pandas index."""
    odd = {"odd": [object(), 1, "x"]}
    for table in ({**ROWS, **odd}, pd.DataFrame({**ROWS, **odd}), pl.DataFrame(ROWS).with_columns(odd=1)):
        assert PEOPLE.encode(table, extra="ignore").tolist() == ENCODED.tolist()
    with pytest.raises(SchemaError, match="extra"):
        PEOPLE.encode(ROWS, extra="drop")  # type: ignore[arg-type]


@quick
@given(
    st.lists(domains, min_size=1, max_size=6),
    st.floats(1e-100, 1e100),
    st.lists(st.floats(), min_size=1, max_size=8),
    st.data(),
)
def test_no_record_leaves_the_ball(parts: list[Domain], norm: float, numbers: list[float], data: st.DataObject):
    """Whatever the data, np.linalg.norm(row) <= norm, and the encoding is within the box times a public number."""
    columns, table = {}, {}
    for at, domain in enumerate(parts):
        if isinstance(domain, Interval):
            columns[f"c{at}"] = Interval(domain.low, domain.high, null=domain.high)
            table[f"c{at}"] = np.array(numbers)
        else:
            columns[f"c{at}"] = domain
            table[f"c{at}"] = [data.draw(st.sampled_from(domain.values)) for _ in numbers]
    ball = Schema(columns, norm).encode(table)
    box = Schema(columns).encode(table)
    assert all(np.linalg.norm(row) <= norm for row in ball)
    assert (np.linalg.norm(ball, axis=1) <= norm).all()
    assert ((box >= 0) & (box <= 1)).all()
    np.testing.assert_allclose(ball, box * (norm / math.sqrt(len(columns))), rtol=1e-14, atol=0)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 10, 100, 1000])
@pytest.mark.by_day(3)
def test_the_farthest_record_stays_in_the_ball(count: int):
    """All intervals at their upper end is the largest norm there is; rounding must not push it over, nor waste it."""
    generator = np.random.default_rng(count)
    for norm in (1.0, 3.0, 0.1, *generator.uniform(0.1, 10, 12)):
        row = Schema({str(at): Interval(-1, 1) for at in range(count)}, norm).encode(np.ones((1, count)))[0]
        assert np.linalg.norm(row) <= norm
        assert math.fsum(entry * entry for entry in row) <= norm * norm
        assert np.linalg.norm(row) >= norm * (1 - 1e-11)


@quick
@given(st.lists(st.floats(-10, 10), min_size=2, max_size=10), st.floats(-1e6, 1e6))
def test_a_record_does_not_depend_on_its_company(values: list[float], other: float):
    """The encoding holds no statistic of the data: replacing one record changes one row."""
    schema = Schema({"x": Interval(-3, 5)}, norm=1.0)
    changed = [other, *values[1:]]
    assert (schema.encode({"x": values})[1:] == schema.encode({"x": changed})[1:]).all()


def test_encode_leaves_its_input_alone():
    matrix = np.array([[5.0], [np.nan]])
    before = matrix.copy()
    Schema({"x": Interval(0, 1, null=0)}).encode(matrix)
    np.testing.assert_array_equal(matrix, before)


# --- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_like_gives_back_the_kind_that_came(table):
    arrow = as_arrow(table, PEOPLE)
    back = like(table, arrow)
    assert type(back) is type(table)
    again = as_arrow(back, PEOPLE)
    assert [again.column(name).to_pylist() for name in ("age", "sex", "ward")] == [
        arrow.column(name).to_pylist() for name in ("age", "sex", "ward")
    ]
    assert len(like(table, arrow[:0])["age"] if isinstance(table, dict) else like(table, arrow[:0])) == 0


def test_like_does_not_carry_a_pandas_index_over():
    back = like(TABLES["pandas"], pa.table({"age": [1, 2, 3]}))
    assert back.index.tolist() == [0, 1, 2]


def test_like_gives_back_arrays():
    arrow = pa.table({"a": pa.chunked_array([[1], [2]]), "b": [0.5, 1.5]})
    matrix = like(np.zeros((5, 2)), arrow)
    assert matrix.tolist() == [[1, 0.5], [2, 1.5]]
    records = like(RECORDS, pa.table({"age": [1.5], "sex": ["long"], "ward": [2]}))
    assert records.dtype.names == ("age", "sex", "ward")
    assert records["sex"][0] == "long"
    assert records["sex"].dtype.kind == "U"
    assert like(pa.RecordBatch.from_pydict({"z": [1]}), arrow).num_rows == 2
    for odd in (np.zeros(3), [1], None):
        with pytest.raises(DataError, match="not a table"):
            like(odd, arrow)


def test_as_arrow_keeps_values_and_orders_columns():
    arrow = as_arrow({"ward": [9], "sex": ["x"], "age": [500]}, PEOPLE)
    assert arrow.column_names == ["age", "sex", "ward"]
    assert arrow.to_pylist() == [{"age": 500, "sex": "x", "ward": 9}]
    assert as_column(pl.Series([1, None]), "x").null_count == 1


def test_neither_pandas_nor_polars_is_needed():
    """A finder in front of all others makes every import of these names fail, as on a machine without them."""
    program = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('pandas', 'polars'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent)\n"
        "import numpy as np, pyarrow as pa\n"
        "from sfumato.core.domain import Interval\n"
        "from sfumato.core.schema import Schema\n"
        "from sfumato.core.tables import like\n"
        "schema = Schema({'x': Interval(0, 1, null=1)})\n"
        "for table in (np.zeros((2, 1)), {'x': [0.5, None]}, pa.table({'x': [1, 2]})):\n"
        "    assert schema.encode(table).shape == (2, 1)\n"
        "    like(table, pa.table({'x': [1]}))\n"
        "print('done')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "done"
