"""Random answers: the network's own randomness is credited, and the loss is exact."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core import compose
from sfumato.errors import PlanError
from sfumato.evidence import verify
from sfumato.lang import load
from sfumato.plan.discrete import SampleDraw
from sfumato.plan.make import make_plan
from sfumato.plan.plan import Plan
from sfumato.run.study import run_plan

SURVEY = """
source(people, 'people.parquet').
column(people, id, person(P)). rows_per_person(people, 1). missing(people, never).
column(people, smoker, smoker(P)).
column(people, sex, sex(P)).
random(smoker(P)) :- person(P).
random(sex(P)) :- person(P).
random(answer(P)) :- person(P).
range(smoker(P), [0, 1]).
range(sex(P), [f, m]).
depends(answer(P), [smoker(P)], bernoulli(0.3 + 0.4 * smoker(P))) :- person(P).
dataset(survey, domain(P, person(P))).
"""


def study(metric: str, what: str) -> str:
    promise = f"privacy_requirement(open(public), survey, {metric}).\n"
    return f"{SURVEY}{promise}publish(out, {what}, open(public)) :- person(P).\n"


def draw_of(plan: Plan) -> SampleDraw:
    (draw,) = plan.draws
    assert isinstance(draw, SampleDraw)
    return draw


def people(size: int) -> dict[str, pa.Table]:
    return {
        "people": pa.table(
            {"id": [f"{i:06d}" for i in range(size)], "smoker": [0, 1] * (size // 2), "sex": ["f", "m"] * (size // 2)}
        )
    }


def test_the_networks_own_randomness_is_credited():
    """Answers with chances 0.3 and 0.7 already have ε = ln(7/3): a promise above it needs no further noise."""
    draw = draw_of(make_plan(study("dp(2)", "sample(answer(P))")))
    assert draw.candidate.own_loss == pytest.approx(math.log(7 / 3))
    np.testing.assert_allclose(draw.mechanism().probabilities, [[0.7, 0.3], [0.3, 0.7]], atol=1e-6)
    assert draw.event().eps == pytest.approx(math.log(7 / 3), rel=1e-5)


def test_what_is_missing_is_added_and_no_more():
    plan = make_plan(study("dp(0.5)", "sample(answer(P))"))
    cost = compose(plan.events("survey"))
    assert cost.implies(plan.promises[0].asked) is True
    assert cost.epsilon(0.0) == pytest.approx(0.5, rel=1e-6)
    for certificate in run_plan(plan, people(100), None).certificates.values():
        assert verify(certificate, plan=plan.to_dict()).ok


def test_a_category_is_answered_at_random():
    """A cell itself has no randomness: randomised response, with chance e^ε/(1 + e^ε) of the truth."""
    plan = make_plan(study("dp(1)", "sex(P)"))
    release = run_plan(plan, people(20_000), None)
    answers = release["out"]["sex(P)"].to_numpy(zero_copy_only=False)
    kept = np.mean(answers == np.array(["f", "m"] * 10_000))
    assert kept == pytest.approx(math.e / (1 + math.e), abs=0.02)


def test_the_answers_have_the_planned_law():
    plan = make_plan(study("dp(0.5)", "sample(answer(P))"))
    draw = draw_of(plan)
    answers = run_plan(plan, people(40_000), None)["out"]["answer(P)"].to_numpy(zero_copy_only=False).astype(int)
    for smoker in (0, 1):
        assert np.mean(answers[smoker::2]) == pytest.approx(draw.mechanism().probabilities[smoker, 1], abs=0.02)


def test_a_plan_with_answers_reads_back():
    plan = make_plan(study("dp(1)", "sample(answer(P))"))
    assert Plan.from_json(plan.to_json()) == plan


def test_a_range_of_numbers_is_rounded_to_public_values():
    text = study("dp(2)", "sample(answer(P))").replace("range(smoker(P), [0, 1]).", "range(smoker(P), 0, 1).")
    plan = make_plan(text)
    candidate = draw_of(plan).candidate
    assert len(candidate.states) == 65
    np.testing.assert_allclose([row[1] for row in candidate.probabilities], np.linspace(0.3, 0.7, 65), atol=1e-12)
    cells = np.array([0.0, 1.0, 0.4999, np.nan, 7.0, -7.0])
    assert candidate.rows({"smoker(P)": cells}, 6).tolist() == [0, 64, 32, 0, 64, 0]


LAWS = {
    "normal(smoker(P), 0.5)": lambda rng, smoker: rng.normal(smoker, 0.5),
    "poisson(1 + smoker(P))": lambda rng, smoker: rng.poisson(1 + smoker),
    "exponential(1 + smoker(P))": lambda rng, smoker: rng.exponential(1 / (1 + smoker)),
    "uniform(0, 1 + smoker(P))": lambda rng, smoker: rng.uniform(0, 1 + smoker),
    "clip(poisson(2 * smoker(P)), 0, 3)": lambda rng, smoker: np.minimum(rng.poisson(2 * smoker), 3),
    "discrete([0: 0.5, 4: 0.5 - 0.25 * smoker(P), 9: 0.25 * smoker(P)])": lambda rng, smoker: np.select(
        [(u := rng.random(smoker.shape)) < 0.5, u < 1 - 0.25 * smoker], [0, 4], 9
    ),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.by_day(1)
def test_every_law_can_be_sampled(law):
    """At an ε that needs no noise beyond their own the answers are the law's, up to the rounding of the answers."""
    text = study("dp(60)", "sample(answer(P))").replace("bernoulli(0.3 + 0.4 * smoker(P))", law)
    plan = make_plan(text)
    draw = draw_of(plan)
    assert draw.event().eps <= 60
    answers = np.asarray(run_plan(plan, people(20_000), None)["out"]["answer(P)"].to_numpy(zero_copy_only=False), float)
    step = np.max(np.diff(draw.candidate.answers)) if "discrete" not in law else 0.0
    rng = np.random.default_rng(3)
    for smoker in (0, 1):
        drawn = LAWS[law](rng, np.full(200_000, float(smoker)))
        mine = answers[smoker::2]
        assert abs(mine.mean() - drawn.mean()) < 4.5 * drawn.std() / 100 + 0.15 * step**2 + 0.01
        assert abs(mine.std() - drawn.std()) < 0.05 + 0.5 * step
    small = make_plan(text.replace("dp(60)", "dp(0.5)"))
    assert compose(small.events("survey")).epsilon(0.0) <= 0.5 * (1 + 1e-9)


def test_what_cannot_be_sampled_is_refused_with_a_way_out():
    for cpf, word in (("2 * smoker(P)", "nothing about it is random"), ("exp(normal(smoker(P), 1))", "clip")):
        text = study("dp(1)", "sample(answer(P))").replace("bernoulli(0.3 + 0.4 * smoker(P))", cpf)
        with pytest.raises(PlanError, match=word):
            make_plan(text)


CLASSES = """
source(t, 't.csv'). column(t, id, p(P)). column(t, y, y(P)). rows_per_person(t, 1). missing(t, never).
random(y(P)) :- p(P). range(y(P), 0, 1).
source(m, 'm.csv'). public(m). column(m, id, p(P)). column(m, cls, cls(C)). relation(m, in(P, C)).
dataset(d, domain(P, p(P))). random(k(P)) :- in(P, C).
privacy_requirement(o(pub), d, dp({all})). privacy_requirement(n(near), d, dp({near})).
publish(k, sample(k(P)), o(pub)) :- in(P, C). publish(j, sample(k(P)), n(near)) :- in(P, C).
"""


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.by_day(1)
def test_each_class_is_planned_with_the_answer_of_its_own(seed):
    """What is planned for a class is what is planned where it is alone, for each reader."""
    chance = random.Random(seed)
    shares = {"all": chance.choice([0.3, 1, 4]), "near": chance.choice([0.5, 2])}
    names = list("abcd")[: chance.randint(2, 4)]
    low = {name: chance.choice([0.0, 0.1, 0.3, 0.4]) for name in names}
    laws = [
        f"depends(k(P), [y(P)], discrete([u: {low[name]} + {1 - 2 * low[name]} * y(P), "
        f"v: {1 - low[name]} - {1 - 2 * low[name]} * y(P)])) :- in(P, {name})."
        for name in names
    ]

    def planned(classes: list[str]) -> dict[str, list[tuple[str, float]]]:
        members = pa.table({"id": classes, "cls": classes})
        text = CLASSES.format(**shares) + " ".join(laws[names.index(name)] for name in classes)
        seen = {one.name: one.seen for one in make_plan(load(text), {"m": members}).publications}
        return {who: [(one.note, one.error) for one in found] for who, found in seen.items()}

    order = chance.sample(names, len(names))
    together = planned(order)
    for who in ("k", "j"):
        alone = {name: planned([name])[who][0][1] for name in names}
        assert dict(together[who]) == pytest.approx({f"For individuals with in(P, {n}).": alone[n] for n in names})
