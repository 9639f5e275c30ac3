"""A whole release is checked against its study; a plan that understates a sensitivity is found out."""

from __future__ import annotations

import dataclasses
import math

import pyarrow as pa
import pytest

from plan.studies import COLLUDING, EACH, MEAN, TWO_OBSERVERS, one
from sfumato.evidence.verify_plan import verify_folder, verify_plan
from sfumato.plan.draw import Draw
from sfumato.plan.make import make_plan
from sfumato.run.study import run_plan

PEOPLE = {"patients": pa.table({"id": ["a", "b", "c"], "age": [30.0, 50.0, 70.0], "bmi": [20.0, 25.0, 30.0]})}


@pytest.fixture(scope="module")
def plan():
    return make_plan(TWO_OBSERVERS, sizes={"people": 3})


def failures(checks):
    return [check.field for check in checks if not check.ok]


def test_an_honest_release_holds(plan, tmp_path):
    study = tmp_path / "study.pl"
    study.write_text(TWO_OBSERVERS, encoding="utf-8")
    made = make_plan(study, sizes={"people": 3})
    run_plan(made, PEOPLE, None, out=tmp_path / "out")
    assert not failures(verify_folder(tmp_path / "out", study))
    assert not failures(verify_folder(tmp_path / "out"))


def test_a_release_with_an_interval_that_ends_nowhere_holds(tmp_path):
    """JSON has no infinite numbers: issuer and verifier read one in a plan alike."""
    made = make_plan(one("gdp(1)", MEAN))
    planned = made.publications[0]
    seen = (dataclasses.replace(planned.seen[0], half_width=math.inf), *planned.seen[1:])
    endless = dataclasses.replace(made, publications=(dataclasses.replace(planned, seen=seen),))
    run_plan(endless, PEOPLE, None, out=tmp_path / "out")
    assert not failures(verify_folder(tmp_path / "out"))


@pytest.mark.parametrize("other", ["doctor", "researcher"])
def test_what_is_told_of_a_promise_is_what_the_plan_promises(other):
    """To a group too: the strict promise to one member says nothing about what two see together."""
    made = make_plan(COLLUDING.replace("doctor", other))
    told = {check.field: check.sentence for check in verify_plan(made, made.network)}
    for promise in made.promises:
        assert told[f"promise to {' and '.join(promise.observers)}"] == f"{promise.asked}."


@pytest.mark.parametrize("node", ["meanAge", "ages"])
def test_an_understated_sensitivity_of_a_sum_is_found(plan, node):
    draws = tuple(
        dataclasses.replace(draw, sensitivity=draw.sensitivity / 2) if draw.node == node else draw
        for draw in plan.draws
    )
    forged = dataclasses.replace(plan, draws=draws)
    assert any(node in field for field in failures(verify_plan(forged, plan.network)))


def test_an_understated_sensitivity_of_a_cut_is_found(plan):
    place = next(i for i, draw in enumerate(plan.draws) if draw.group is not None)
    draw = plan.draws[place]
    assert isinstance(draw, Draw)
    smaller = dataclasses.replace(draw, sensitivity=draw.sensitivity * 0.9)
    forged = dataclasses.replace(plan, draws=(*plan.draws[:place], smaller, *plan.draws[place + 1 :]))
    assert failures(verify_plan(forged, plan.network))


def test_a_missing_draw_is_found():
    plan = make_plan(one("gdp(1)", EACH))
    forged = dataclasses.replace(plan, draws=plan.draws[1:])
    assert failures(verify_plan(forged, plan.network))


def test_less_noise_than_promised_is_found():
    plan = make_plan(one("gdp(1)", MEAN))
    louder = tuple(dataclasses.replace(draw, scale=draw.scale / 2) for draw in plan.draws)
    forged = dataclasses.replace(plan, draws=louder)
    assert any(field.startswith("promise") for field in failures(verify_plan(forged, plan.network)))


def test_another_study_is_named(plan):
    other = make_plan(one("gdp(1)", MEAN))
    assert failures(verify_plan(plan, other.network)) == ["study"]
