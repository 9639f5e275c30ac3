"""Budgets over publications of several kinds add up, strategies are chosen as the study says, refusals say why."""

from __future__ import annotations

import dataclasses
import random
from fractions import Fraction

import pytest

from plan.studies import HEAD, MEAN, RISK
from sfumato.core import REPLACE_ONE, ApproxDP, GaussianDP, GaussianEvent, PureDP, RenyiDP, compose
from sfumato.errors import PlanError
from sfumato.network.expression import Reference
from sfumato.plan import mixed
from sfumato.plan.act import Act
from sfumato.plan.make import make_plan, network_of
from sfumato.plan.plan import Plan, Seen
from sfumato.plan.portions import STATISTICS, add_up, as_point, collude, even_floors, portion_of, split_portions
from sfumato.plan.request import requests_of
from sfumato.plan.strategy import Prediction, Strategy
from sfumato.plan.wanted import follows_study, wanted_of
from sfumato.run.planning import make_plan as plan_all

TABLE = "publish(open, table([age(P), bmi(P)]), openness(public)).\n"


def study(metric: str, body: str, more: str = "") -> str:
    return f"{HEAD}{RISK}privacy_requirement(openness(public), people, {metric}).\n{more}{body}"


class Toy(Strategy):
    """Loses factor/ε² and draws one Gaussian number, or says nothing about its events."""

    kind = "table"

    def __init__(self, name: str, factor: float, refusal: str | None = None, greed: float = 0.0) -> None:
        self.name, self.factor, self.refusal, self.greed = name, factor, refusal, greed

    def accepts(self, wanted, guarantee):
        return self.refusal

    def predict(self, wanted, guarantee, size):
        loss = self.factor / guarantee.eps**2
        return Prediction(loss, (Seen("age(P)", loss, 1.0),), 0.1)

    def settle(self, wanted, guarantee, size):
        adjacency, request = guarantee.adjacency, wanted.request
        events = ()
        if self.greed:
            events = (GaussianEvent(self.greed * guarantee.eps, 1.0, adjacency=adjacency),)
        dataset = request.requirement.dataset
        return Act(request.name, "table", self.name, request.observer, dataset, guarantee, dict(wanted.stated), events)


@pytest.mark.parametrize("seed", range(40))
def test_portions_add_up_exactly(seed):
    generator = random.Random(seed)
    losses = {f"p{i}": 10 ** generator.uniform(-9, 9) for i in range(generator.randint(1, 30))}
    weights = {name: 10 ** generator.uniform(-2, 2) for name in losses}
    numbers = [10 ** generator.uniform(-2, 2) for _ in range(generator.randint(0, 5))]
    floors = even_floors(weights, numbers)
    if numbers:
        losses[STATISTICS] = 10 ** generator.uniform(-9, 9)
    found = split_portions(losses, floors)
    assert sum(found.values()) <= 1
    assert all(found[name] >= floor * Fraction(255, 256) for name, floor in floors.items())
    assert floors.keys() == losses.keys()
    whole = ApproxDP(10 ** generator.uniform(-3, 2), 10 ** generator.uniform(-9, -3))
    parts = [portion_of(whole, portion) for portion in found.values()]
    assert add_up(parts, whole)
    assert not add_up([*parts, parts[0], whole], whole)


def test_portions_are_best_for_quadratic_losses():
    """No other split on a grid loses less than 1 % less."""
    losses = {"a": 7.0, "b": 0.5, "c": 2.0}
    found = {name: float(portion) * 256 / 255 for name, portion in split_portions(losses, {}).items()}
    own = sum(loss / found[name] ** 2 for name, loss in losses.items())
    best = min(
        7.0 / a**2 + 0.5 / b**2 + 2.0 / (1 - a - b) ** 2
        for a in (i / 60 for i in range(3, 55))
        for b in (j / 60 for j in range(3, 55))
        if a + b < 0.96
    )
    assert own <= best * 1.001


def test_colluders_share_the_loosest_budget():
    points = {"doctor": ApproxDP(2.0, 1e-6), "public": ApproxDP(1.0, 1e-6)}
    portions = {
        "doctor": {STATISTICS: Fraction(1, 2), "triage": Fraction(1, 2)},
        "public": {STATISTICS: Fraction(1, 2), "open": Fraction(1, 2)},
    }
    shrunk = collude(portions, points, frozenset(points), "doctor")
    acts = [
        portion_of(points["doctor"], shrunk["doctor"]["triage"]),
        portion_of(points["public"], shrunk["public"]["open"]),
    ]
    most = portion_of(points["doctor"], shrunk["doctor"][STATISTICS])
    assert add_up([*acts, most], points["doctor"])
    assert shrunk["public"]["open"] < Fraction(1, 2)
    with pytest.raises(PlanError, match="one currency"):
        collude(portions, {**points, "doctor": PureDP(2.0)}, frozenset(points), "doctor")


@pytest.mark.parametrize("curve", [GaussianDP(0.7), RenyiDP(4.0, 0.5)])
def test_curves_become_a_pure_epsilon_that_implies_them(curve):
    point = as_point(curve)
    assert isinstance(point, PureDP)
    parts = [portion_of(point, portion) for portion in split_portions({"a": 1.0, "b": 3.0, "c": 0.1}, {}).values()]
    assert compose(parts).implies(curve) is True


def test_the_cheapest_strategy_is_chosen_and_the_others_are_kept():
    strategies = (Toy("dear", 9.0), Toy("cheap", 1.0), Toy("shy", 0.1, "it does not want to"))
    plan = make_plan(study("dp(1, 0.000001)", MEAN + TABLE), sizes={"people": 500}, strategies=strategies)
    planned = plan.publication("open")
    assert planned.strategy == "cheap (table)"
    assert [other.strategy for other in planned.alternatives] == ["cheap", "dear", "shy"]
    assert planned.alternatives[2].reason == "it does not want to"
    assert Plan.from_json(plan.to_json()) == plan
    (promise,) = plan.promises
    assert promise.kept.implies(promise.asked) is True
    assert compose(plan.events("people")).implies(promise.asked) is True


def test_prefer_and_forbid_are_honoured():
    strategies = (Toy("laplace", 9.0), Toy("gaussian", 1.0))

    def chosen(more: str) -> str:
        text = study("dp(1, 0.000001)", TABLE + more)
        return make_plan(text, strategies=strategies).publication("open").strategy

    assert chosen("") == "gaussian (table)"
    assert chosen("prefer(open, [laplace]).\n") == "laplace (table)"
    assert chosen("forbid(open, gaussian).\n") == "laplace (table)"
    with pytest.raises(PlanError, match="forbidden by the study"):
        chosen("forbid(open, gaussian).\nforbid(open, laplace).\n")


def test_weights_move_the_budget():
    def share(weight: float) -> float:
        text = study("dp(1, 0.000001)", MEAN + TABLE + f"weight(average, {weight}).\n")
        plan = make_plan(text, sizes={"people": 500}, strategies=(Toy("cheap", 0.001),))
        return plan.acts[0].guarantee.eps

    assert share(0.001) > share(1) > share(1000)


def test_the_frontier_has_every_publication_and_marks_the_settled_point():
    plan = make_plan(study("dp(1, 0.000001)", MEAN + TABLE), sizes={"people": 500}, strategies=(Toy("cheap", 1.0),))
    assert {curve.publication for curve in plan.frontier} == {"average", "open"}
    for curve in plan.frontier:
        losses = [loss for _, loss in curve.points]
        assert losses == sorted(losses, reverse=True)
        assert curve.points[curve.chosen][0] == pytest.approx(1.0)
    table = next(curve for curve in plan.frontier if curve.publication == "open")
    assert table.points[table.chosen][1] == pytest.approx(1 / plan.acts[0].guarantee.eps ** 2)


def test_a_planted_larger_portion_is_caught(monkeypatch):
    """The planner adds up again what it handed out."""
    monkeypatch.setattr(mixed, "split_portions", lambda losses, floors: dict.fromkeys(losses, Fraction(6, 10)))
    with pytest.raises(PlanError, match="mistake of the planner"):
        make_plan(study("dp(1, 0.000001)", MEAN + TABLE), strategies=(Toy("cheap", 1.0),))


def test_a_strategy_whose_events_exceed_its_share_is_caught():
    with pytest.raises(PlanError, match="mistake of the strategy"):
        make_plan(study("dp(1, 0.000001)", TABLE), strategies=(Toy("greedy", 1.0, greed=2.0),))
    plan = make_plan(study("dp(1, 0.000001)", TABLE), strategies=(Toy("modest", 1.0, greed=0.05),))
    assert plan.acts[0].events


def test_colluding_observers_with_tables_keep_the_loosest_promise():
    body = (
        "privacy_requirement(openness(doctor), people, dp(2, 0.000001)).\n"
        + MEAN
        + TABLE
        + "publish(inner, table([age(P)]), openness(doctor)).\ncollude([doctor, public]).\n"
    )
    plan = make_plan(study("dp(1, 0.000001)", body), sizes={"people": 500}, strategies=(Toy("cheap", 1.0),))
    group = next(promise for promise in plan.promises if len(promise.observers) == 2)
    assert group.asked.eps == 2
    parts = [act.guarantee for act in plan.acts]
    assert add_up(parts, group.asked)
    assert compose(plan.events("people")).implies(group.asked) is True


REFUSED = {
    "no strategy at all": (study("dp(1)", TABLE), "nobody registered"),
    "add/remove": (study("dp(1)", TABLE, "adjacency(people, add_remove).\n"), "keeps secret"),
    "twice": (study("dp(1)", "publish(open, table([age(P), age(P)]), openness(public)).\n"), "twice"),
    "label outside": (
        study("dp(1)", "publish(open, table([age(P)], for(svm(bmi(P)))), openness(public)).\n"),
        "no column of it",
    ),
    "an aggregate in a table": (
        study("dp(1)", "mean(m, age(P), patient(P)).\npublish(open, table([age(P), m]), openness(public)).\n"),
        "no individual",
    ),
    "several answers under one name": (
        study("dp(1)", "publish(open, table([V]), openness(public)) :- shown(V).\nshown(age(P)). shown(bmi(P)).\n"),
        "several",
    ),
    "two requirements": (
        study(
            "dp(1)",
            TABLE + "publish(other, table([age(P)]), second(public)).\n",
            "privacy_requirement(second(public), people, dp(1)).\n",
        ),
        "two requirements",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_planned_says_why(name):
    text, words = REFUSED[name]
    given = () if name == "no strategy at all" else (Toy("cheap", 1.0),)
    with pytest.raises(PlanError, match=words):
        make_plan(text, strategies=given)


def test_a_value_that_rests_on_everybody_is_no_row_of_a_table():
    """What rests on a mean changes with every other person: noise for one row would not cover that."""
    network = network_of(study("dp(1)", "mean(m, bmi(P), patient(P)).\n" + TABLE))
    requests = requests_of(network)
    (request,) = [one for one in requests if one.name == "open"]
    assert wanted_of(request, network).columns == ("age(P)", "bmi(P)")
    (group,) = network.groups
    planted = {"source": None, "parents": ("m",), "expression": Reference("m")}
    nodes = tuple(dataclasses.replace(node, **planted) if node.name == "age(P)" else node for node in group.nodes)
    changed = dataclasses.replace(network, groups=(dataclasses.replace(group, nodes=nodes),))
    with pytest.raises(PlanError, match="not one individual's own"):
        wanted_of(request, changed)


def test_an_act_is_held_against_its_study():
    network = network_of(study("dp(1, 0.000001)", TABLE))
    plan = plan_all(network)
    (act,) = plan.acts
    assert follows_study(act, network)
    wider = {**act.parameters, "schema": act.parameters["schema"].replace("110", "220")}
    for forged in (
        dataclasses.replace(act, parameters=wider),
        dataclasses.replace(act, observers=("doctor",)),
        dataclasses.replace(act, guarantee=act.guarantee.under(REPLACE_ONE)),
    ):
        assert not follows_study(forged, network)


def test_an_act_reads_back():
    plan = make_plan(study("dp(1, 0.000001)", TABLE), strategies=(Toy("modest", 1.0, greed=0.05),))
    (act,) = plan.acts
    assert Act.from_dict(act.to_dict()) == act
    assert dataclasses.replace(act, strategy="other") != act
