"""Words of a study, cells and identifiers that were read in another way than they are written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import make_plan, run_plan
from sfumato.core.domain import Categories, Interval
from sfumato.errors import SchemaError
from sfumato.evidence.explain import explain
from sfumato.lang import load
from sfumato.network.network import Network
from sfumato.run.files import _read
from sfumato.run.forget import without_forgotten

HEAD = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10). missing(x(P), 7).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)).
sum(s, x(P), p(P)).
"""
SECOND = """
source(v, 'v.parquet'). column(v, who, p(P)). rows_per_person(v, 1).
column(v, y, y(P)). random(y(P)) :- p(P). range(y(P), 0, 10). missing(y(P), 0).
sum(sy, y(P), p(P)). publish(b, sy, o(pub)).
"""


def test_one_variable_can_be_forgotten_alone():
    network = Network.from_spec(load(HEAD + "publish(a, s, o(pub)).\nforget(uma, x(uma)).\n"))
    table = {"t": pa.table({"id": ["uma", "eve"], "x": [1.0, 2.0]})}
    values = network.evaluate(without_forgotten(network.spec, table))
    assert values.column("x(P)").tolist() == [2.0, 7.0]  # eve, and what missing/2 says for uma


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        *((word, 1.0) for word in ("true", "TRUE", "True", "1", "1.0")),
        *((word, 0.0) for word in ("false", "False", "0")),
        *((word, 7.0) for word in ("yes", "y", "t", "no", "n", "f", "on", "off", "")),
    ],
)
@pytest.mark.by_day(6)
def test_of_words_only_true_and_false_are_numbers(tmp_path, cell, value):
    (tmp_path / "t.csv").write_text(f"id,x\na,{cell}\n", encoding="utf-8")
    network = Network.from_spec(load(HEAD + "publish(a, s, o(pub))."))
    assert network.evaluate({"t": tmp_path / "t.csv"}).column("x(P)").tolist() == [value]


def test_a_file_of_a_schema_is_read_in_the_same_way():
    duckdb = pytest.importorskip("duckdb")
    for cell, number, flag in (("true", 1.0, True), ("yes", None, None), ("0", 0.0, False), ("2", 2.0, None)):
        for domain, expected in ((Interval(0, 10), number), (Categories([False, True]), flag)):
            read = _read("c", domain)
            assert duckdb.execute(f"SELECT {read} FROM (SELECT ? AS c)", [cell]).fetchone() == (expected,)


def test_identifiers_that_could_never_meet_are_refused():
    network = Network.from_spec(load(HEAD + SECOND))
    ids = [pa.array([1, 2, 3]).cast(kind) for kind in (pa.int64(), pa.decimal128(22, 1))]
    tables = {"t": pa.table({"id": ids[0], "x": [1.0] * 3}), "v": pa.table({"who": ids[1], "y": [5.0] * 3})}
    with pytest.raises(SchemaError, match=r"who of v.*Convert both"):
        network.evaluate(tables)


IDENTIFIERS = [pa.int64(), pa.int32(), pa.float64(), pa.float32(), pa.string()]


@pytest.mark.parametrize("first", IDENTIFIERS)
@pytest.mark.parametrize("second", IDENTIFIERS)
@pytest.mark.by_day(5)
def test_one_number_is_one_identifier_whatever_its_column_is_stored_as(first, second):
    """One absent cell makes a column of whole numbers one of floats: nobody else gets another name by it."""
    kinds = first, second
    network = Network.from_spec(load(HEAD + SECOND))
    ids = [pa.array([1, 2, 3]).cast(kind) for kind in kinds]
    tables = {"t": pa.table({"id": ids[0], "x": [1.0] * 3}), "v": pa.table({"who": ids[1], "y": [5.0] * 3})}
    assert network.evaluate(tables).aggregates["sy"].vector == pytest.approx([15.0])


def test_a_constant_of_each_individual_is_exact():
    plan = make_plan(HEAD + "random(k(P)) :- p(P). depends(k(P), [], 3).\npublish(a, k(P), o(pub)) :- p(P).\n")
    assert plan.publication("a").strategy == "exact: nobody can change it"
    assert "its value is public" in explain(plan)
    assert plan.draws == ()
    table = pa.table({"id": ["a", "b"], "x": [1.0, 2.0]})
    assert run_plan(plan, {"t": table}, None)["a"]["k(P)"].to_pylist() == [3.0, 3.0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(1.0, 1e9, allow_nan=False), min_size=2, max_size=6, unique=True))
def test_bins_never_share_a_label(cuts):
    listed = ", ".join(repr(cut) for cut in sorted(cuts))
    text = HEAD.replace("0, 10", "0, 2000000000") + f"histogram(h, x(P), p(P), [{listed}]). publish(a, h, o(pub))."
    node = Network.from_spec(load(text)).node("h")
    labels = node.question.parts()
    assert len(set(labels)) == len(labels) == len(node.question.axes[0].cuts) + 1
    ends = [label.split("[")[1].rstrip(")").split(", ") for label in labels]
    assert [float(low) for low, _ in ends[1:]] == list(node.question.axes[0].cuts)


def test_dates_as_numbers_are_shown_whole():
    text = HEAD.replace("0, 10", "20200101, 20261231").replace("(P), 7", "(P), 20200101")
    text += "histogram(h, x(P), p(P), [20240101, 20240115]). publish(a, h, o(pub))."
    assert Network.from_spec(load(text)).node("h").question.parts()[1] == "x(P) in [20240101, 20240115)"
