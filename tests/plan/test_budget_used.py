"""What several publications cost together is within the promise, nearly all of it, by two roads that share no code."""

from __future__ import annotations

import random

import pytest

from sfumato import make_plan
from sfumato.core import Guarantee
from sfumato.errors import PlanError
from sfumato.evidence.laws import law_of
from sfumato.evidence.losses import event_parts, guarantee_parts
from sfumato.plan.mixed import Mixing
from sfumato.plan.plan import Plan, Promise

HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 100).
column(t, a, a(P)). random(a(P)) :- p(P). range(a(P), [0, 1, 2, 3]).
column(t, w, w(P)). random(w(P)) :- p(P). range(w(P), text).
column(t, v, v(P)). random(v(P)) :- p(P). range(v(P), private(0.3)).
dataset(d, domain(P, p(P))).
"""
ACTS = {
    "rows": "publish({0}, synthetic([a(P), x(P)]), {1}) :- p(P).",
    "listed": "publish({0}, table([a(P), x(P)]), {1}) :- p(P). prefer({0}, [gaussian]).",
    "line": "publish({0}, regression(x(P), [a(P)]), {1}) :- p(P).",
    "half": "median(h, x(P), p(P)). publish({0}, h, {1}).",
    "words": "groups(g, w(P), p(P)). publish({0}, g, {1}).",
    "bought": "mean(b, v(P), p(P)). publish({0}, b, {1}).",
}
SUMS = {
    "average": "mean(m, x(P), p(P)). publish({0}, m, {1}).",
    "counts": "histogram(s, a(P), p(P)). publish({0}, s, {1}).",
    "spread": "moment2(q, [x(P), a(P)], p(P)). publish({0}, q, {1}).",
    "part": "mean(n, x(P), (p(P), a(P) = 1)). publish({0}, n, {1}).",
}


def family(seed: int) -> str:
    """One to three acts beside sums; every third study has two observers, who may collude."""
    chance = random.Random(seed)
    lines = []
    for observer in ("public", "doctor")[: 2 if seed % 3 == 2 else 1]:
        epsilon, delta = chance.choice([0.1, 1.0, 4.0]), chance.choice([1e-9, 1e-6, 1e-3])
        lines.append(f"privacy_requirement(o({observer}), d, dp({epsilon}, {delta:.9f})).")
        every = ACTS | SUMS if observer == "public" else {"models": ACTS["line"], "invented": ACTS["rows"]}
        chosen = chance.sample(sorted(every), chance.randint(2, min(5, len(every))))
        lines += [every[name].format(name, f"o({observer})") for name in chosen]
    if seed % 6 == 5:
        lines.append("collude([public, doctor]).")
    return HEAD + "\n".join(lines)


def cost_by_the_second_road(plan: Plan, promise: Promise) -> float:
    """δ at the promised ε, from the records of what is drawn, by the verifier's own laws."""
    costs = plan.events("d", promise.observers)
    stated = [part for cost in costs if isinstance(cost, Guarantee) for part in guarantee_parts(cost.to_dict())]
    parts = (*event_parts([cost.to_dict() for cost in costs if not isinstance(cost, Guarantee)]), *stated)
    return law_of(parts).delta(promise.asked.stated[0])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(2)
def test_nearly_all_of_a_promise_is_used_and_never_more(seed):
    plan = make_plan(family(seed), sizes={"d": 1000})
    used = []
    for promise in plan.promises:
        epsilon, delta = promise.asked.stated
        assert promise.kept.implies(promise.asked) is True
        assert cost_by_the_second_road(plan, promise) <= delta
        used.append(promise.kept.epsilon(delta) / epsilon)
        assert used[-1] <= 1
    # Who colludes shares one promise: theirs is the one that is used up.
    assert max(used) >= 0.98 if "collude" in family(seed) else min(used) >= 0.98


def test_a_planner_that_believes_too_much_is_left_costs_no_more(monkeypatch):
    """Wider portions are tried, and none that does not keep the promise is taken."""
    honest = Mixing._used
    monkeypatch.setattr(Mixing, "_used", lambda self, mixed: {k: v / 2 for k, v in honest(self, mixed).items()})
    for promise in (plan := make_plan(family(0), sizes={"d": 1000})).promises:
        assert promise.kept.implies(promise.asked) is True
        assert cost_by_the_second_road(plan, promise) <= promise.asked.stated[1]


def test_portions_that_are_too_wide_are_found_when_the_plan_is_derived(monkeypatch):
    honest = Mixing._used
    monkeypatch.setattr(Mixing, "_used", lambda self, mixed: {k: v / 2 for k, v in honest(self, mixed).items()})
    monkeypatch.setattr(Mixing, "_is_kept", lambda self, mixed: True)
    with pytest.raises(PlanError, match="derived again"):
        make_plan(family(0), sizes={"d": 1000})
