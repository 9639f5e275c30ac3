"""Aggregates across centres: both designs stand beside the central plan with their prices."""

from __future__ import annotations

import pytest

from run.publish_studies import CLASSIFIER, MEAN, study
from sfumato.evidence.explain import explain
from sfumato.plan.plan import Plan
from sfumato.run.planning import make_plan

THREE = "centre(north). centre(east). centre(south).\n"
SPREAD = "histogram(ages, age(P), patient(P), [0, 30, 60, 110]).\npublish(spread, ages, openness(public)).\n"


def designs(plan: Plan, name: str) -> dict[str, object]:
    return {other.strategy: other for other in plan.publication(name).alternatives if "centres" in other.strategy}


@pytest.mark.parametrize("metric", ["dp(1, 0.000001)", "dp(1)", "gdp(0.5)"])
def test_noise_adds_up_without_masks_and_does_not_with_them(metric):
    plan = make_plan(study(metric, THREE + MEAN + SPREAD), sizes={"people": 900})
    for name in ("average", "spread"):
        found, error = designs(plan, name), plan.publication(name).error
        noisy, masked = found["noisy sharing across 3 centres"], found["secure aggregation across 3 centres"]
        assert noisy.error == pytest.approx(3 * error, rel=0.01)
        assert masked.error == pytest.approx(error, rel=0.01)
        assert masked.bytes_sent > noisy.bytes_sent > 0
        assert masked.seconds > noisy.seconds > 0
        assert "trust nobody" in noisy.reason
        assert "collude" in masked.reason


def test_models_stay_central_and_the_plan_reads_back():
    plan = make_plan(study("dp(2, 0.000001)", THREE + MEAN + CLASSIFIER), sizes={"people": 900})
    assert designs(plan, "average")
    assert not designs(plan, "triage")
    assert Plan.from_json(plan.to_json()) == plan
    assert "secure aggregation across 3 centres" in explain(plan)


def test_one_centre_or_none_changes_nothing():
    for head in ("", "centre(north).\n"):
        plan = make_plan(study("dp(2, 0.000001)", head + MEAN), sizes={"people": 900})
        assert not designs(plan, "average")


def test_only_centres_that_hold_rows_count():
    head = THREE + "holds(north, patients). holds(east, patients).\n"
    plan = make_plan(study("dp(2, 0.000001)", head + MEAN), sizes={"people": 900})
    assert "noisy sharing across 2 centres" in designs(plan, "average")
