"""within(Name, HalfWidth): who meets it, and the least ε or weight that would."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato import make_plan
from sfumato.lang import examine
from sfumato.run import aims
from sfumato.run.aims import aims_of, half_width_of, planned_with

STUDY = """
source(t, 't.parquet'). column(t, id, person(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- person(P). range(x(P), 0, 100).
column(t, c, c(P)). random(c(P)) :- person(P). range(c(P), [a, b, c]).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, {promise}).
mean(m, x(P), person(P)). publish(average, m, openness(public)).
histogram(h, c(P), person(P)). publish(table, h, openness(public)).
{aims}
"""
SIZES = {"people": 2000.0}


def planned(aims: str, promise: str = "dp(0.5, 0.000001)"):
    return make_plan(STUDY.format(aims=aims, promise=promise), sizes=SIZES)


@pytest.mark.parametrize("promise", ["dp(0.5, 0.000001)", "dp(0.5)", "gdp(0.2)", "zcdp(0.02)"])
@pytest.mark.parametrize("factor", [0.4, 0.9, 1.7])
@pytest.mark.by_day(2)
def test_what_is_named_meets_the_aim_and_a_little_less_does_not(promise, factor):
    now = half_width_of(planned("", promise).publication("average"))
    plan = planned(f"within(average, {factor * now!r}).", promise)
    (found,) = aims_of(plan, SIZES)
    assert found.met == (factor >= 1)
    assert found.half_width == now
    at = half_width_of(planned_with(plan, SIZES, amounts={"public": found.least_amount}).publication("average"))
    below = planned_with(plan, SIZES, amounts={"public": found.least_amount / 1.03}).publication("average")
    assert at <= factor * now < half_width_of(below)
    assert ("is within" in found.sentence) == found.met
    if found.least_weight is not None:
        heavier = planned_with(plan, SIZES, weights={"average": found.least_weight})
        assert half_width_of(heavier.publication("average")) <= factor * now
        ratio = half_width_of(heavier.publication("table")) / half_width_of(plan.publication("table"))
        assert found.others_wider == pytest.approx(ratio)


def test_an_aim_that_no_weight_can_reach_is_said():
    now = half_width_of(planned("").publication("average"))
    (found,) = aims_of(planned(f"within(average, {now / 20!r})."), SIZES)
    assert found.least_weight is None
    assert "It needs ε" in found.sentence


def test_an_aim_changes_no_plan():
    with_aim, without = planned("within(average, 0.1)."), planned("")
    assert with_aim.publications == without.publications
    assert with_aim.draws == without.draws


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("within(averag, 1).", "nothing is published under the name averag"),
        ("within(average, 0).", "must be above zero"),
        ("within(average, wide).", "must be a number"),
        ("within(average, 1). within(average, 2).", "two errors"),
        ("publish(model, classifier(c(P), [x(P)]), openness(public)). within(model, 1).", "has no interval"),
    ],
)
def test_aims_that_mean_nothing_are_refused(line, words):
    _, problems = examine(STUDY.format(aims=line, promise="dp(1, 0.000001)"))
    assert any(words in problem.message for problem in problems), [problem.message for problem in problems]


def test_the_search_finds_the_least_of_any_falling_curve():
    generator = np.random.default_rng(0)
    for _ in range(50):
        power, start = generator.uniform(0.3, 2), generator.uniform(0.05, 5)
        true = start * generator.uniform(0.1, 8)

        def width(value: float, true: float = true, power: float = power) -> float:
            return (true / value) ** power

        found = aims._least(width, start, width(start), 1.0, 1e4)
        assert found is not None
        assert true <= found <= 1.02 * true
    assert aims._least(lambda value: 2.0, 1.0, 2.0, 1.0, 100.0) is None
