"""Ways over centres: each with its error, seconds and bytes; the best is taken, wishes bind, the plan says why."""

from __future__ import annotations

import dataclasses

import pytest

from run.centre_studies import CENTRES, study
from run.publish_studies import MEAN
from sfumato.errors import PlanError, StudyError
from sfumato.evidence.explain import explain
from sfumato.plan.derive import derive
from sfumato.plan.plan import Plan
from sfumato.plan.sharing import Masks, NoiseAtEach, NoiseAtEveryone
from sfumato.run.over_centres import sharing_of
from sfumato.run.planning import make_plan

SPREAD = "histogram(ages, age(P), patient(P), [0, 30, 60, 110]).\npublish(spread, ages, openness(public)).\n"
BOTH = MEAN + SPREAD
EACH, MASKS = "noise at each of 3 centres", "masked sums of 3 centres"
EVERYBODY = "noise at each individual of 3 centres"
PARTY = "noise at the trusted party"


def planned(more: str = "", metric: str = "dp(1, 0.000001)", body: str = BOTH) -> Plan:
    return make_plan(study(body, metric, CENTRES + more), sizes={"people": 900})


def ways(plan: Plan, name: str) -> dict:
    return {other.strategy: other for other in plan.publication(name).alternatives}


@pytest.mark.parametrize("metric", ["dp(1, 0.000001)", "dp(1)", "gdp(0.5)"])
def test_noise_adds_up_without_masks_and_does_not_with_them(metric):
    plan = planned("trusted(registry).\nforbid(average, central).\n", metric)
    central = planned("trusted(registry).\n", metric)
    assert sharing_of(central) is None
    assert isinstance(sharing_of(plan), Masks)
    for name in ("average", "spread"):
        found, error = ways(plan, name), central.publication(name).error
        assert found[EACH].error == pytest.approx(3 * error, rel=0.01)
        assert found[MASKS].error == pytest.approx(error, rel=0.01)
        assert plan.publication(name).error == found[MASKS].error
        assert found[MASKS].bytes_sent > found[EACH].bytes_sent > 0
        assert found[MASKS].seconds > found[EACH].seconds > 0
        assert "trust nobody" in found[EACH].reason
        assert found[EVERYBODY].error == pytest.approx(900 * error, rel=0.01)
        assert found[EVERYBODY].seconds > found[EACH].seconds
        assert found[EVERYBODY].bytes_sent >= found[EACH].bytes_sent
        assert "trust nobody beyond one's own centre" in found[EVERYBODY].reason
        assert "sfumato privatize" in found[EVERYBODY].reason
        assert found[PARTY].reason == "the study forbids it"


def test_wishes_bind_and_are_said():
    plan = planned("prefer(average, each_centre).\n")
    assert isinstance(sharing_of(plan), NoiseAtEach)
    assert "prefers each_centre" in plan.publication("spread").reason
    assert isinstance(sharing_of(planned("forbid(spread, masks).\n")), NoiseAtEach)
    with pytest.raises(PlanError, match=r"every way.*prefer\(Name, local\)"):
        planned("forbid(spread, masks). forbid(average, each_centre).\n")
    with pytest.raises(StudyError, match="masks"):
        make_plan(study(MEAN + "prefer(average, masks).\n", head=""))


def test_noise_at_each_individual_is_taken_where_it_is_preferred():
    plan = planned("prefer(average, [local]).\n")
    assert sharing_of(plan) == NoiseAtEveryone(3, individuals=900)
    assert "prefers local" in plan.publication("average").reason
    assert ways(plan, "spread")[MASKS].error < ways(plan, "spread")[EACH].error < plan.publication("spread").error
    assert Plan.from_json(plan.to_json()) == plan
    assert "sfumato privatize" in explain(plan)


def test_noise_at_each_individual_keeps_no_promise_where_their_number_is_protected():
    """With nobody at a centre there would be no noise, with one some: add/remove neighbours are told apart for sure."""
    for more in ("", "prefer(average, local).\n"):
        plan = planned(more + "adjacency(people, add_remove).\n")
        assert not isinstance(sharing_of(plan), NoiseAtEveryone)
        assert ways(plan, "average")[EVERYBODY].error is None
        assert "which add/remove protects" in ways(plan, "average")[EVERYBODY].reason
        assert ("cannot be used here: noise at each individual" in plan.publication("average").reason) == bool(more)
    everybody = NoiseAtEveryone(3, individuals=900)
    draws = tuple(dataclasses.replace(draw, sharing=everybody) for draw in plan.draws)
    findings = list(derive(dataclasses.replace(plan, draws=draws), plan.network))
    assert "sharing" in [finding.field for finding in findings if not finding.ok]


def test_colluders_and_absences_cost_what_they_cost():
    alone = planned().publication("spread").error
    dear = planned("colluders(1). absences(1).\n")
    assert dear.publication("spread").error == pytest.approx(3 * alone, rel=0.01)
    assert isinstance(sharing_of(dear), NoiseAtEach)  # with one honest share masks gain nothing
    refused = planned("colluders(2). absences(1).\n")
    assert ways(refused, "spread")[MASKS].error is None
    assert "too few honest" in ways(refused, "spread")[MASKS].reason


def test_the_plan_reads_back_and_explains_its_ways():
    plan = planned()
    assert Plan.from_json(plan.to_json()) == plan
    assert EACH in explain(plan)
    assert "bytes sent" in explain(plan)
    assert any("one of the centres alone" in text for text in plan.assumptions)


def test_a_plan_whose_noise_is_shared_otherwise_is_found_out():
    """Fewer honest shares than the study says, or all of the noise at a party that nobody trusts."""
    plan = planned("absences(1).\n")
    for changed in (None, Masks(3, 0, 0), Masks(4, 0, 1), NoiseAtEach(3)):
        draws = tuple(dataclasses.replace(draw, sharing=changed) for draw in plan.draws)
        findings = list(derive(dataclasses.replace(plan, draws=draws), plan.network))
        assert "sharing" in [finding.field for finding in findings if not finding.ok], changed
    mixed = (dataclasses.replace(plan.draws[0], sharing=NoiseAtEach(3, absences=1)), *plan.draws[1:])
    assert not all(finding.ok for finding in derive(dataclasses.replace(plan, draws=mixed), plan.network))


def test_one_centre_or_none_changes_nothing():
    for head in ("", "centre(north).\n"):
        plan = make_plan(study(MEAN, head=head), sizes={"people": 900})
        assert sharing_of(plan) is None


def test_only_centres_that_hold_rows_count():
    plan = planned("holds(north, patients). holds(east, patients).\n")
    assert "noise at each of 2 centres" in ways(plan, "average")
