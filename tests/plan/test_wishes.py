"""prefer and forbid where statistics are planned."""

from __future__ import annotations

import pytest

from sfumato.errors import PlanError
from sfumato.plan.make import make_plan

STUDY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). missing(patients, never).
rows_per_person(patients, 1).
column(patients, age, age(P)).
column(patients, kind, kind(P)).
random(age(P)) :- patient(P).
random(kind(P)) :- patient(P).
random(risk(P)) :- patient(P).
range(age(P), 0, 110).
range(kind(P), [a, b]).
depends(risk(P), [age(P)], exp(age(P) / 110)).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, METRIC).
"""
MEAN = "mean(meanAge, age(P), (patient(P), age(P) > 50)). publish(average, meanAge, openness(public)).\n"
EACH = "publish(each, risk(P), openness(public)) :- patient(P).\n"


def plan(more: str, metric: str = "dp(1, 0.000001)"):
    return make_plan(STUDY.replace("METRIC", metric) + more)


def test_central_noise_that_is_forbidden_is_not_planned():
    with pytest.raises(PlanError, match=r"forbid\(average, central\) leaves no way.*nothing was spent"):
        plan(MEAN + "forbid(average, central).\n")
    count = "count(all, patient(P)). publish(number, all, openness(public)).\n"
    assert "exact" in plan(count + "forbid(number, central).\n").publication("number").strategy  # no noise is drawn


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("what", [MEAN, EACH])
def test_a_preferred_kind_of_noise_is_taken_and_said(noise, what):
    name = "average" if what is MEAN else "each"
    planned = plan(what + f"prefer({name}, [{noise}]).\n").publication(name)
    assert f"({noise})" in planned.strategy
    assert f"the study prefers {noise} noise" in planned.reason


def test_a_preference_that_cannot_be_followed_is_said():
    planned = plan(MEAN + "prefer(average, [gaussian]).\n", "dp(1)").publication("average")
    assert "(laplace)" in planned.strategy
    assert "cannot be used here" in planned.reason
    planned = plan(EACH + "prefer(each, [correlated]).\n", "dp(1)").publication("each")
    assert "correlated noise, which cannot be used here" in planned.reason


@pytest.mark.parametrize("way", ["input", "output"])
def test_a_preferred_or_forbidden_place_binds(way):
    other = {"input": "output", "output": "input"}[way]
    assert plan(EACH + f"prefer(each, [{way}]).\n").publication("each").strategy.startswith(f"{way} noise")
    assert plan(EACH + f"forbid(each, [{way}, cut]).\n").publication("each").strategy.startswith(f"{other} noise")


def test_random_answers_have_one_way():
    answer = "publish(each, kind(P), openness(public)) :- patient(P).\n"
    assert plan(answer).publication("each").strategy.startswith("random answer")
    with pytest.raises(PlanError, match="one way to draw"):
        plan(answer + "forbid(each, gaussian).\n")


def test_the_use_of_a_table_is_a_known_one():
    with pytest.raises(PlanError, match="is not written as it should be"):
        plan("publish(open, table([age(P), kind(P)], for(nonsense(kind(P)))), openness(public)).\n")
