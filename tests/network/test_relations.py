"""Rows of a table as assertions: a row without a thing it relates, or with one that is not listed, asserts nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.errors import SfumatoError
from sfumato.evidence.trace import trace_result, trace_text
from sfumato.run.checking import examine_study
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

STUDY = """
source(people, 'people.parquet').
column(people, id, person(P)). rows_per_person(people, 1).
column(people, age, age(P)). random(age(P)) :- person(P). range(age(P), 0, 110). missing(age(P), never).
source(diagnoses, 'diagnoses.parquet').
column(diagnoses, id, person(P)).
column(diagnoses, code, code(D)).
relation(diagnoses, diagnosed(P, D)).
rows_per_person(diagnoses, 4).
dataset(everybody, domain(P, person(P))).
privacy_requirement(openness(public), everybody, dp(1000000)).
publish(counted, c, openness(public)).
"""
LISTED = "code('I10'). code('E11').\n"
PEOPLE = pa.table({"id": ["a", "b", "c", "d", "e"], "age": [70.0, 70.0, 70.0, 70.0, 20.0]})
ROWS = [("a", "I10"), ("a", None), ("b", None), ("c", "Z99"), ("d", "Z99"), ("d", "E11"), ("e", "E11"), ("e", None)]
ANY = "count(c, (person(P), diagnosed(P, D))).\n"


def tables(rows=ROWS):
    ids, codes = zip(*rows, strict=True)
    return {"people": PEOPLE, "diagnoses": pa.table({"id": list(ids), "code": list(codes)})}


def counted(text, given=None):
    errors = [problem for problem in examine_study(text)[1] if problem.severity == "error"]
    assert errors == []
    return round(run_plan(make_plan(text), given or tables(), None)["counted", "public"].to_pylist()[0]["value"])


def test_an_absent_thing_is_related_to_nobody():
    assert counted(STUDY + ANY) == 4  # b has nothing but an empty code
    assert counted(STUDY + ANY.replace("diagnosed", "age(P) > 65, diagnosed")) == 3
    assert counted(STUDY + "count(c, (person(P), \\+ diagnosed(P, _))).\n") == 1


def test_a_thing_that_is_no_number_is_absent():
    numbers = [("a", 1.5), ("b", float("nan")), ("c", None)]
    ids, codes = zip(*numbers, strict=True)
    column = pa.array(codes, type=pa.float64(), from_pandas=False)
    assert counted(STUDY + ANY, {"people": PEOPLE, "diagnoses": pa.table({"id": list(ids), "code": column})}) == 1


@pytest.mark.parametrize(
    ("goal", "number"),
    [
        ("diagnosed(P, D)", 3),
        ("diagnosed(P, D), code(D)", 3),
        ("code(D), diagnosed(P, D)", 3),
        ("\\+ diagnosed(P, D)", 2),
        ("\\+ (diagnosed(P, D), code(D))", 2),
        ("diagnosed(P, D), chronic(D)", 2),
        ("diagnosed(P, D), code(D), chronic(D)", 2),
        ("diagnosed(P, 'I10')", 1),
        ("diagnosed(P, 'I10'), code('I10')", 1),
        ("(diagnosed(P, D), chronic(D) ; age(P) > 65)", 5),
    ],
)
@pytest.mark.by_day(2)
def test_what_the_study_lists_is_all_there_is(goal, number):
    chronic = "chronic('E11').\n" if "chronic" in goal else ""
    assert counted(f"{STUDY}{LISTED}{chronic}count(c, (person(P), {goal})).\n") == number


def test_a_list_beside_a_column_is_used():
    _, problems = examine_study(STUDY + LISTED + ANY)
    assert [problem.code for problem in problems if problem.code == "unused-predicate"] == []


def test_listed_numbers_are_told_by_their_value():
    rows = tables([("a", "1"), ("b", "2"), ("c", "01"), ("d", None)])
    assert counted(STUDY + "code(1).\n" + ANY, rows) == 2


def test_rows_of_a_public_table_with_other_things_are_left_out():
    study = (
        STUDY.replace("rows_per_person(diagnoses, 4).", "public(diagnoses).")
        + LISTED
        + "random(severe(P, D)) :- diagnosed(P, D), person(P).\n"
        + "depends(severe(P, D), [age(P)], age(P) / 2) :- diagnosed(P, D), person(P).\n"
        + "sum(c, severe(P, D), person(P)) :- code(D), D \\= 'I10'.\n"
    )
    plan = make_plan(study, tables={"diagnoses": tables()["diagnoses"]})
    names = {node.name for node in plan.network.nodes}
    assert "severe(P, 'E11')" in names
    assert not any("Z99" in name for name in names)


@pytest.mark.parametrize(
    ("more", "goal", "word"),
    [
        (LISTED, "diagnosed(P, 'Z99')", "none of the things"),
        (LISTED, "diagnosed(P, D), treated(P, D)", "joins two conditions"),
        (LISTED, "\\+ diagnosed(P, D), code(D)", "joins two conditions|no relation beside it"),
        (LISTED, "code(D)", "no relation beside it"),
        ("code(D) :- D = 'I10'.\n", "diagnosed(P, D)", "clauses with conditions"),
    ],
)
def test_what_cannot_be_answered_row_by_row_is_refused(more, goal, word):
    other = "relation(diagnoses, treated(P, D)).\n" if "treated" in goal else ""
    with pytest.raises(SfumatoError, match=word):
        make_plan(f"{STUDY}{more}{other}count(c, (person(P), {goal})).\n")


@pytest.mark.parametrize(("more", "words"), [("", "a row without one"), (LISTED, "a row without a listed one")])
def test_readers_learn_which_rows_say_nothing(more, words):
    plan = make_plan(STUDY + more + ANY)
    (planned,) = plan.publications
    said = " ".join(planned.about)
    assert "of each person at most 4 rows of diagnoses count" in said
    assert f"code of diagnoses: {words} says nothing about its person" in said
    (found,) = trace_result(plan, "counted")
    assert "table diagnoses (diagnoses.parquet), private: id, code" in trace_text(found)
