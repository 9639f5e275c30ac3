"""The sentences about what a number is say what evaluation does."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from evidence.pages import Page
from sfumato.evidence.explain import explain
from sfumato.evidence.recipient import recipient_text
from sfumato.evidence.report import report_html
from sfumato.lang import load
from sfumato.network import Network
from sfumato.network.meaning import meaning_of
from sfumato.plan.make import make_plan
from sfumato.plan.plan import Plan

STUDY = """
source(stays, 'stays.parquet').
column(stays, id, person(P)).
column(stays, days, days(P)).
column(stays, ward, ward(P)).
random(days(P)) :- person(P). range(days(P), 0, 60). missing(days(P), skip).
random(ward(P)) :- person(P). range(ward(P), [icu, gp | other]).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(1, 0.000001)).
mean(stay, days(P), (person(P), ward(P) = icu)).
count(long, (person(P), days(P) > 10)).
histogram(wards, ward(P), person(P)).
histogram(spans, days(P), person(P), [7, 30]).
publish(length, stay, openness(public)).
publish(longer, long, openness(public)).
publish(shares, wards, openness(public)).
publish(classes, spans, openness(public)).
"""
ROWS = pa.table(
    {
        "id": ["a", "a", "b", "b", "c", "c"],
        "days": [100.0, 20.0, None, 12.0, None, None],
        "ward": ["icu", "icu", "icu", "gp", "gp", "gp"],
    }
)


def network_of(rule: str) -> Network:
    return Network.from_spec(load(STUDY + rule))


def about(rule: str, *names: str) -> str:
    return " ".join(meaning_of(network_of(rule), names))


def test_with_several_rows_a_row_is_left_out_and_rows_are_counted():
    said = about("rows_per_person(stays, 2).", "long")
    assert "long is the number of rows with days(P) > 10" in said
    assert "days(P): the row is left out, the person's other rows count" in said
    assert "person is left out" not in said
    values = network_of("rows_per_person(stays, 2).").evaluate({"stays": ROWS})
    assert values.aggregates["long"].vector[0] == 3  # two rows of a, one of b, whose other one has no cell


def test_with_a_mean_a_person_is_left_out_only_if_all_her_cells_are_absent():
    said = about("each_person(stays, mean).", "spans")
    assert "a person is left out only if all of hers are so" in said
    assert "with the mean of all her rows of stays" in said
    assert "days(P) from 0 to 60 (each row first, then the mean is taken)" in said
    assert "for each class of days(P) ([0, 7), [7, 30), [30, 60])" in said
    found = network_of("each_person(stays, mean).").evaluate({"stays": ROWS}).aggregates["spans"].vector
    assert list(found) == [0, 1, 1]  # a: (60 + 20) / 2 = 40, b: 12, c: left out


def test_of_categories_one_row_counts_also_with_each_person():
    said = about("each_person(stays, mean).", "wards")
    assert "with one row of stays drawn fairly from hers" in said
    assert "mean of all her rows" not in said
    assert "every other one is other" in said
    both = about("each_person(stays, mean).", "stay")
    assert "the mean of all her rows of stays and with one row of stays drawn fairly from hers for categories" in both


def test_with_one_row_the_cell_of_that_row_decides():
    assert "left out if the cell of the row that counts is so" in about("rows_per_person(stays, 1).", "long")


@pytest.mark.parametrize("text", ["lawyer", "analyst", "readme", "report"])
def test_every_text_says_the_question_the_range_and_the_rule_of_absent_cells(text):
    plan = Plan.from_json(make_plan(STUDY + "rows_per_person(stays, 5).").to_json())  # as read from a release
    if text == "report":
        said = Page(report_html(plan)).text
    else:
        said = recipient_text(plan) if text == "readme" else explain(plan, text)
    said = " ".join(said.split())
    assert "stay is the mean of days over rows with ward = icu." in said
    assert "Declared ranges: days from 0 to 60" in said
    assert "Numbers outside their range are moved to its nearer end." in said
    assert "of each person at most 5 rows of stays count" in said
    assert "the row is left out" in said


def test_the_best_case_counts_every_row_that_may_count():
    plan = make_plan(STUDY + "rows_per_person(stays, 5).", sizes={"people": 1000})
    note = plan.publication("length").seen[0].note
    assert note.startswith("For 1,118 contributions; ±")  # half of 1,000 individuals, √5 rows of at most 5 each
    many, few = map(
        float, re.findall(r"±([\d.]+) if (?:all 1,000 individuals have 5 rows that qualify|100 rows do)", note)
    )
    assert 10 * many < few  # 5,000 rows and 100
    single = make_plan(STUDY + "rows_per_person(stays, 1).", sizes={"people": 1000})
    assert "if all 1,000 qualify" in single.publication("length").seen[0].note


def test_a_condition_on_a_relation_says_which_rows_it_looks_at():
    relation = """
    source(codes, 'codes.parquet'). column(codes, id, person(P)). column(codes, code, code(D)).
    relation(codes, coded(P, D)).
    count(withX, (person(P), coded(P, x))). publish(xs, withX, openness(public)). rows_per_person(stays, 1).
    """
    said = about(relation + "rows_per_person(codes, 5).", "withX")
    assert "withX is the number of individuals in codes with code = x." in said
    assert "looks at the rows that count: of each person at most 5 rows of codes count" in said
