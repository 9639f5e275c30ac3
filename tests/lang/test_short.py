"""One line a table says what many lines say: the same study, the same plan, the same sums."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.lang import load
from sfumato.lang.load import examine
from sfumato.lang.reader import read
from sfumato.network.network import Network
from sfumato.plan.make import make_plan

REST = """
missing(stays, never). {limit}
dataset(people, domain(P, patient(P))). privacy_requirement(o(public), people, dp(1)).
mean(m, days(P), patient(P), by([ward(P)])). count(c, (patient(P), readmitted(P) = true)).
publish(a, m, o(public)). publish(b, c, o(public)).
"""
LIMIT = "rows_per_person(stays, 1)."
SHORT = (
    "table(stays, 'stays.parquet', {who}, [days: -1..14, cost: 0.5..2.5, ward: [north, south], readmitted: boolean])."
)
LONG = """
source(stays, 'stays.parquet'). {who}
column(stays, days, days(P)). random(days(P)) :- patient(P). range(days(P), -1, 14).
column(stays, cost, cost(P)). random(cost(P)) :- patient(P). range(cost(P), 0.5, 2.5).
column(stays, ward, ward(P)). random(ward(P)) :- patient(P). range(ward(P), [north, south]).
column(stays, readmitted, readmitted(P)). random(readmitted(P)) :- patient(P). range(readmitted(P), [false, true]).
"""


@pytest.mark.parametrize(
    ("short", "long", "limit"),
    [
        ("patient(P) = nbr", "column(stays, nbr, patient(P)).", LIMIT),
        ("patient(P)", "each_row(stays, patient(P)).", ""),
    ],
)
def test_the_short_form_says_the_same(short, long, limit):
    studies = [text + REST.format(limit=limit) for text in (SHORT.format(who=short), LONG.format(who=long))]
    one, two = (load(text) for text in studies)
    for name in ("sources", "columns", "ranges", "datasets", "requirements"):
        assert getattr(one, name) == getattr(two, name), name
    table = pa.table(
        {
            "nbr": [1, 2, 3],
            "days": [3.0, 20.0, 5.0],
            "cost": [1.0, 1.0, 2.0],
            "ward": ["north", "south", "south"],
            "readmitted": [True, False, True],
        }
    )
    sums = [Network.from_spec(spec).evaluate({"stays": table}).aggregates for spec in (one, two)]
    assert sums[0]["m"].same(sums[1]["m"])
    assert sums[0]["m"].vector.tolist() == [3.0, 19.0, 1.0, 2.0]
    assert sums[0]["c"].vector.tolist() == [2.0]
    plans = [make_plan(text) for text in studies]
    assert plans[0].questions == plans[1].questions
    assert [draw.scale for draw in plans[0].draws] == [draw.scale for draw in plans[1].draws]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("table(t, 'f', patient, [x: 0..1]).", "person(P) = column"),
        ("table(t, 'f', patient(P) = id, []).", "a list of column"),
        ("table(t, 'f', patient(P) = id, [x]).", "name: low..high"),
        ("table(t, 'f', patient(P) = id, x: 0..1).", "a list of column"),
        ("table(t, 'f.csv', patient(P) = id, [x: 5..1]).", "low must be below high"),
    ],
)
def test_what_cannot_be_read_is_said_once(line, words):
    found = [problem for problem in examine(line)[1] if problem.severity == "error"]
    assert [words in problem.describe() for problem in found].count(True) == 1


def test_dots_in_quotes_and_other_places_stay():
    (source,) = load("source(t, 'data/1..14.csv'). column(t, id, p(P)). rows_per_person(t, 1).").sources
    assert source.path == "data/1..14.csv"


def test_what_stands_in_a_comment_changes_nothing():
    text = "range(x(P), 0, 1).  random(x(P)) % it's 1..2 \n ← p(P). /* don't */ random(y(P)) /* isn't */ ← p(P)."
    clauses, problems = read(text)
    assert not problems
    assert [clause.body is not None for clause in clauses] == [False, True, True]


def test_booleans_are_read_however_a_file_writes_them(tmp_path):
    study = load(SHORT.format(who="patient(P) = nbr") + REST.format(limit=LIMIT))
    lines = ["nbr,days,cost,ward,readmitted", "1,3,1,north,True", "2,4,1,south,FALSE", "3,5,2,south,true"]
    (tmp_path / "stays.csv").write_text("\n".join(lines) + "\n")
    sums = Network.from_spec(study).evaluate({"stays": tmp_path / "stays.csv"}).aggregates
    assert sums["c"].vector.tolist() == [2.0]


def test_a_variable_may_have_another_word_than_its_column():
    text = "table(t, 't.csv', p(P) = 'the id', [bloodPressure = 'Blood Pressure': 60..200, age: 0..110])."
    spec, _ = examine(text)
    assert [(one.name, one.atom.functor) for one in spec.columns] == [
        ("the id", "p"), ("Blood Pressure", "bloodPressure"), ("age", "age")]  # fmt: skip


def test_what_is_wrong_with_a_column_is_told_at_its_line():
    text = (
        "table(t, 't.csv', p(P) = id, [\n  a: 0..1,\n  b: 5..1,\n  c: fill_in(low)..fill_in(high),\n  d: nonsense\n])."
    )
    wrong = [problem for problem in examine(text)[1] if problem.code == "declaration"]
    assert [problem.position.line for problem in wrong] == [3, 4, 5]
