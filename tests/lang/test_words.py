"""No word without effect: what a study says is followed, or is an error that names what is known."""

from __future__ import annotations

import pytest

from sfumato.lang.load import examine
from sfumato.questions.registry import WAYS

BASE = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). missing(patients, never).
rows_per_person(patients, 1).
column(patients, age, age(P)).
column(patients, sex, sex(P)).
random(age(P)) :- patient(P).
random(sex(P)) :- patient(P).
random(risk(P)) :- patient(P).
range(age(P), 0, 110).
range(sex(P), [f, m]).
depends(risk(P), [age(P)], age(P) / 110).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(1, 0.000001)).
mean(meanAge, age(P), patient(P)).
publish(average, meanAge, openness(public)).
publish(each, risk(P), openness(public)) :- patient(P).
"""
CLASSIFIER = "publish(triage, classifier(sex(P), [age(P)]), openness(public)).\n"


def errors(more: str) -> dict[str, str]:
    return {one.code: one.describe() for one in examine(BASE + more)[1] if one.severity == "error"}


def test_the_base_is_fine():
    assert errors("") == {}


WISHES = [
    ("prefer(average, [nonsense]).", "no strategy"),
    ("forbid(average, gausian).", "did you mean: gaussian"),
    ("prefer(average, [svm]).", "a way to publish a classifier, not a number about many individuals"),
    ("prefer(average, [input]).", "a way to publish one value per individual"),
    ("forbid(average, local).", "There are central"),
    ("forbid(each, central).", "input (noise on what is read from tables)"),
    (CLASSIFIER + "prefer(triage, [kernal]).", "did you mean: kernel"),
]


@pytest.mark.parametrize(("line", "piece"), WISHES)
def test_a_strategy_is_a_known_name(line, piece):
    found = errors(line + "\n")
    assert set(found) == {"unknown-strategy"}
    assert piece in found["unknown-strategy"]


@pytest.mark.parametrize(
    "line",
    [
        "prefer(average, [central, laplace]).",
        "forbid(each, [input, output]).",
        "prefer(each, [correlated]).",
        CLASSIFIER + "prefer(triage, [kernel]).",
    ],
)
def test_known_names_pass(line):
    assert errors(line + "\n") == {}


def test_the_words_are_the_strategies_there_are():
    from sfumato.plan.wishes import _STRATEGY_NAMES
    from sfumato.run.publish import STRATEGIES

    registered: dict[str, set[str]] = {}
    for strategy in STRATEGIES:
        registered.setdefault(strategy.kind, set()).add(strategy.name)
    noise = {"gaussian", "laplace"}
    registered["quantile"] |= noise  # read off noisy sums they share a budget with other statistics
    assert registered == {kind: set(ways.words) for kind, ways in WAYS.items() if kind in registered}
    assert set(WAYS) - set(registered) == {"variable", "aggregate", "sample"}
    assert set(WAYS["variable"].words) == set(_STRATEGY_NAMES) | noise


def test_contradictions_and_second_weights_are_errors():
    assert set(errors("prefer(average, [laplace]).\nforbid(average, laplace).\n")) == {"contradiction"}
    assert set(errors("weight(average, 2).\nweight(average, 3).\n")) == {"twice"}


SHAPES = [
    ("histogram(h, [], patient(P)).", "several-values", "lists no variable"),
    ("histogram(h, [age(P), risk(P)], patient(P), [0, 50, 110]).", "several-values", "Write them beside each variable"),
    ("mean(h, [age(P), risk(P)], patient(P)).", "several-values", "a mean is about one variable"),
    ("sum(h, [age(P), risk(P)], patient(P)).", "several-values", "moment2 gives the sums of their products"),
    ("sum(h, [], patient(P)).", "several-values", "0 are listed"),
    ("moment2(h, [age(P), age(P)], patient(P)).", "several-values", "listed twice"),
    ("histogram(h, age(P), patient(P), 5).", "declaration", "must be a list of numbers"),
]


@pytest.mark.parametrize(("line", "code", "piece"), SHAPES)
def test_no_argument_is_left_out_in_silence(line, code, piece):
    found = errors(line + " publish(q, h, openness(public)).\n")
    assert set(found) == {code}
    assert piece in found[code]


def test_lists_of_one_and_of_several_where_several_are_meant():
    assert errors("mean(h, [age(P)], patient(P)). publish(q, h, openness(public)).\n") == {}
    assert errors("moment2(h, [age(P), risk(P)], patient(P)). publish(q, h, openness(public)).\n") == {}


INSTANCE = "dataset_instance(people, one(P)) :- patient(P).\n"
STATEMENTS = [
    ("dataset_instance(poeple, one(P)) :- patient(P).", "unknown-dataset", "did you mean: people"),
    ("instance_rv(others, one(P), age(P)) :- patient(P).", "unknown-dataset", "the dataset others is not declared"),
    ("dataset_instance(people, everybody).", "instance", "does not name one individual of people"),
    (INSTANCE + "dataset_instance(people, again(P)) :- patient(P).", "instance", "has two instances"),
    ("instance_rv(people, one(P), age(P)) :- patient(P).", "instance", "one(patient) is no instance of people"),
    (INSTANCE + "instance_rv(people, one(P), risk(P)) :- patient(P).", "instance", "is computed"),
    (INSTANCE + "instance_rv(people, one(P), meanAge) :- patient(P).", "instance", "does not belong to"),
    (INSTANCE + "instance_rv(people, one(P), age(P)) :- patient(P), fail.", "instance", "holds for nobody"),
    ("personal_rv(P, meanAge) :- patient(P).", "instance", "not a variable of patient alone"),
    ("nurse(n). personal_rv(N, age(P)) :- nurse(N), patient(P).", "instance", "not a variable of n alone"),
    ("personal_rv(P, mood(P)) :- patient(P).", "unknown-variable", "mood/1"),
]


@pytest.mark.parametrize(("line", "code", "piece"), STATEMENTS)
def test_statements_about_instances_are_true_or_errors(line, code, piece):
    found = errors(line + "\n")
    assert code in found
    assert piece in found[code]


def test_true_statements_reach_the_explanation():
    from sfumato.evidence.explain import explain
    from sfumato.plan.make import make_plan
    from sfumato.plan.plan import Plan

    text = (
        BASE + INSTANCE + "instance_rv(people, one(P), age(P)) :- patient(P).\npersonal_rv(P, risk(P)) :- patient(P).\n"
    )
    plan = Plan.from_json(make_plan(text).to_json())
    assert "You know risk(P) of yourself exactly" in explain(plan, "subject")
    assert "the study names age(P)" in " ".join(explain(plan, "lawyer").split())
    silent = make_plan(BASE)
    assert "You know" not in explain(silent, "subject")
    assert "the study names" not in explain(silent, "lawyer")


def test_what_rests_on_another_dataset_is_not_protected_by_this_one():
    more = """
    hospital(a). hospital(b).
    dataset(centres, domain(H, hospital(H))).
    privacy_requirement(openness(city), centres, dp(1, 0.00001)).
    publish(forCity, meanAge, openness(city)).
    """
    found = errors(more)
    assert set(found) == {"unprotected"}
    assert "Publish it under a requirement on people" in found["unprotected"]
