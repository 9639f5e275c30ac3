"""One fault is one problem, and its words say how to mend it."""

from __future__ import annotations

import pytest

from sfumato.lang.load import examine
from sfumato.lang.problem import Problem

STUDY = """source(t, 't.parquet').
column(t, id, person(P)). column(t, age, age(P)). rows_per_person(t, 1). missing(t, never).
random(age(P)) :- person(P).
range(age(P), 0, 110).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(0.5, 0.000001)).
privacy_requirement(openness(doctor), people, dp(1, 0.000001)).
count(old, (person(P), age(P) > 65)).
mean(average, age(P), person(P)).
publish(older, old, openness(public)).
publish(older, old, openness(doctor)).
publish(ages, average, openness(public)).
publish(ages, average, openness(doctor)).
collude([public, doctor]).
"""


def errors(old: str, new: str) -> list[Problem]:
    assert old in STUDY
    return [one for one in examine(STUDY.replace(old, new))[1] if one.severity == "error"]


def test_the_study_itself_is_sound():
    assert examine(STUDY)[1] == ()


@pytest.mark.parametrize("bad", ["dp(-1, 0.000001)", "dp(0,5, 0.000001)", "dp(0.5, 1)"])
def test_a_bad_promise_is_one_problem_that_counts_what_follows(bad):
    (problem,) = errors("dp(0.5, 0.000001)", bad)
    assert problem.code == "metric"
    assert "… and 3 problems that follow from it" in problem.message  # two publications, one collusion
    assert problem.position.line == 6


def test_a_misspelt_observer_is_reported_once():
    (problem,) = errors("publish(older, old, openness(doctor)).", "publish(older, old, openness(docter)).")
    assert problem.nearest == "openness(doctor)"
    assert problem.position.line == 11
    everywhere = examine(STUDY.replace("openness(doctor)).", "openness(docter))."))[1]
    (only,) = [one for one in everywhere if "docter" in one.message]
    assert "and in 1 more line" in only.message


def test_a_requirement_named_by_a_variable_is_still_checked():
    text = STUDY.replace(
        "publish(older, old, openness(doctor)).", "who(docter). publish(older, old, openness(W)) :- who(W)."
    )
    (problem,) = [one for one in examine(text)[1] if one.severity == "error"]
    assert "openness(docter) is not declared" in problem.message


@pytest.mark.parametrize(
    ("old", "new", "message", "way_out"),
    [
        ("age(P) > 65", "age(P) <= 65", "<= is not a comparison", "Write =<"),
        ("age(P) > 65", "age(P)<=65", "<= is not a comparison", "Write =<"),
        ("age(P) > 65", "age(P) => 65", "=> is not a comparison", "Write >="),
        ("(person(P), age(P) > 65)", "(person(P), Age(P) > 65)", "start with a small letter", "Write age(…)"),
        ("age(P) > 65", "Älter(P) > 65", "start with a small letter", "Write älter(…)"),
        ("age(P) > 65)).", "age(P) > 65))", "full stop missing after line 8?", "full stop"),
    ],
)
def test_a_frequent_slip_is_named_and_what_follows_is_counted(old, new, message, way_out):
    first, *others = errors(old, new)
    assert message in first.message
    assert way_out in first.way_out
    assert first.position.line == 8
    assert not [one for one in others if "old" in one.message]


def test_a_missing_full_stop_is_seen_through_remarks_and_quotes():
    text = "a('x(').\nb(1) % a remark, with (\nc(2).\n"
    (problem,) = [one for one in examine(text)[1] if one.severity == "error"]
    assert "missing after line 2?" in problem.message
    broken = "a(1) :-\n  b(1),\n  c(1) d(1).\n"
    assert "full stop" not in examine(broken)[1][0].message


@pytest.mark.parametrize(
    ("metric", "said"), [("dp(11, 0.000001)", "ε = 11"), ("dp(1, 0.01)", "δ = 0.01"), ("dp(1000)", "ε = 1000")]
)
def test_a_promise_that_says_little_is_warned_of(metric, said):
    found = [one for one in examine(STUDY.replace("dp(0.5, 0.000001)", metric))[1] if one.code == "weak-promise"]
    assert [one.severity for one in found] == ["warning"]
    assert said in found[0].message
    assert not [one for one in examine(STUDY)[1] if one.code == "weak-promise"]


NO_IDENTITY = """
source(bank, 'bank.csv').
{columns}
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(1)).
{asked}
"""


def without_identity(width: int) -> str:
    names = [f"v{place}" for place in range(width)]
    columns = "".join(
        f"column(bank, {n}, {n}(P)). random({n}(P)) :- person(P). range({n}(P), 0, 9). missing({n}(P), 0).\n"
        for n in names
    )
    asked = "".join(f"mean(m{n}, {n}(P), person(P)). publish(p{n}, m{n}, openness(public)).\n" for n in names)
    return NO_IDENTITY.format(columns=columns, asked=asked)


@pytest.mark.parametrize("width", [1, 3, 12])
def test_one_forgotten_identity_column_is_one_problem(width):
    """A table of a dozen columns gave dozens of errors: each cell, each rule, each question."""
    found = [problem for problem in examine(without_identity(width))[1] if problem.severity == "error"]
    assert len(found) == 1
    assert f"and {3 * width} problems that follow from it" in found[0].message
    assert "column(bank, id, person(P))" in found[0].way_out
    assert "each_row(bank, person(P))" in found[0].way_out


def test_a_predicate_that_is_nowhere_defined_is_one_problem():
    text = without_identity(3).replace(
        "source(bank", "column(bank, id, person(P)). rows_per_person(bank, 1). source(bank"
    )
    text = text.replace(":- person(P)", ":- persom(P)")
    found = [problem for problem in examine(text)[1] if problem.code == "unknown-predicate"]
    assert len(found) == 1
    assert "and 2 problems that follow from it" in found[0].message


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("correlated(people, group, at_most(0)). privacy_requirement(o(x), people, pufferfish(1)).", "whole number"),
        ("fairness_requirement('a rule', sex(P), parity(0.1)). fair_rv('a rule', older).", "no measure of fairness"),
    ],
)
def test_what_nobody_can_need_because_it_was_said_wrong_is_counted(lines, said):
    """A second sentence told to declare what the first had said was declared wrongly."""
    told = [one.message for one in examine(STUDY + lines)[1] if one.severity == "error"]
    (cause,) = [one for one in told if said in one]
    assert "from it" in cause
    assert not [one for one in told if "nothing says which units" in one or "is not declared" in one]
