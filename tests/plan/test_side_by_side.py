"""A pure promise to one observer costs the others nothing: each is served by the noise that suits it."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from sfumato import make_plan, run_plan
from sfumato.core import compose
from sfumato.evidence.verify import verify
from sfumato.plan import side_by_side
from sfumato.plan.derive import derive
from sfumato.plan.plan import Plan

HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 100).
column(t, y, y(P)). random(y(P)) :- p(P). range(y(P), 0, 1).
dataset(d, domain(P, p(P))).
mean(m, x(P), p(P)). moment2(q, [x(P), y(P)], p(P)). histogram(h, x(P), p(P), [20, 40, 60, 80]).
privacy_requirement(o(city), d, zcdp(0.1)). publish(average, m, o(city)). publish(squares, q, o(city)).
publish(ages, h, o(city)).
"""
PRESS = "privacy_requirement(o(press), d, dp(0.2)). publish(average, m, o(press)).\n"
COLLUDE = "collude([city, press]).\n"


def errors(plan: Plan, observer: str) -> dict[str, float]:
    return {one.name: one.seen[0].standard_error for one in plan.publications if one.observer == observer}


@pytest.mark.parametrize("more", ["", COLLUDE])
def test_a_pure_promise_costs_others_nothing(more):
    alone, beside = make_plan(HEAD), make_plan(HEAD + PRESS + more)
    assert {draw.noise for draw in beside.draws if "press" in draw.observers} == {"laplace"}
    assert {draw.noise for draw in beside.draws if "city" in draw.observers} == {"gaussian"}
    for name, error in errors(alone, "city").items():
        assert errors(beside, "city")[name] <= error * (1.02 if not more else 1.5)
    assert all(finding.ok for finding in derive(beside, beside.network))


def test_colluders_of_both_kinds_keep_one_promise():
    """Two who would each spend all of ε = 1 alone: together they keep what one of them was promised."""
    head = HEAD.replace("zcdp(0.1)", "dp(1, 0.000001)")
    plan = make_plan(head + PRESS.replace("dp(0.2)", "dp(0.9)") + COLLUDE)
    together = next(promise for promise in plan.promises if promise.observers == ("city", "press"))
    cost = compose(plan.events("d", ("city", "press")))
    assert cost.implies(together.asked) is True


def test_a_plan_that_forgot_the_colluders_is_found(monkeypatch):
    """Planted: colluders of both kinds are not made to share."""
    monkeypatch.setattr(side_by_side, "_scale", lambda *_: 1.0)
    monkeypatch.setattr(side_by_side, "_together", lambda dataset, group, found, asked: None)
    plan = make_plan(HEAD + PRESS + COLLUDE)
    assert len({draw.noise for draw in plan.draws}) == 1  # refused, and one kind of noise is taken for all


def test_what_is_drawn_verifies():
    generator = np.random.default_rng(1)
    table = pa.table({"id": np.arange(400), "x": generator.uniform(0, 100, 400), "y": generator.random(400)})
    plan = make_plan(HEAD + PRESS, sizes={"d": 400})
    release = run_plan(plan, {"t": table}, None)
    for certificate in release.certificates.values():
        assert verify(certificate.to_json()).ok
    found = {(one.name, one.observer): one.values.to_pylist()[0]["value"] for one in release.published}
    for observer in ("city", "press"):
        assert abs(found["average", observer] - 50) < 25


def test_a_promise_of_every_kind_beside_every_other():
    promises = ("dp(0.5)", "dp(1, 0.000001)", "zcdp(0.05)", "gdp(0.3)", "renyi_dp(8, 0.3)")
    for first, second in itertools.combinations(promises, 2):
        text = HEAD.replace("zcdp(0.1)", first) + PRESS.replace("dp(0.2)", second)
        plan = make_plan(text)
        assert all(finding.ok for finding in derive(plan, plan.network)), (first, second)


def test_a_collusion_inside_another_one_keeps_its_own_promise():
    """Those who may combine little are not held to what a larger group of others may."""
    counts = "".join(
        f"count(c{i}, (p(P), x(P) > {i})). publish(y{i}, c{i}, o(bob)). publish(w{i}, c{i}, o(dora)).\n"
        for i in range(1, 20)
    )
    asked = {"bob": "dp(1, 0.000001)", "carl": "dp(0.5, 0.000001)", "dora": "dp(8, 0.000001)"}
    stated = "".join(f"privacy_requirement(o({who}), d, {what}).\n" for who, what in asked.items())
    groups = (("bob", "carl"), ("bob", "carl", "dora"), ("bob", "carl", "dora", "press"))
    said = "".join(f"collude([{', '.join(group)}]).\n" for group in groups)
    declared = HEAD.partition("privacy_requirement")[0]
    text = declared + PRESS + stated + "publish(squares, q, o(carl)).\n" + counts + said
    plan = make_plan(text, sizes={"d": 5000})
    promised = {one.observers: one.asked for one in plan.promises}
    for group in groups:
        assert compose(plan.events("d", group)).implies(promised[group]) is True
    assert all(finding.ok for finding in derive(plan, plan.network))
