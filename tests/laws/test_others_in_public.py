"""What public tables say of others: a clause knows it, or is refused in words; never is it silently false.

Conditions are drawn at random from two public relations, through a predicate of the study or not, negated or not, about
the clause's individual and about others. Who fulfils one is found by trying everybody in every place. A study that is
planned publishes that number; one that asks about nobody but its individual is never refused.
"""

from __future__ import annotations

import itertools
import random
from contextlib import suppress
from dataclasses import dataclass

import pandas as pd
import pytest

from sfumato.errors import StudyError
from sfumato.lang import load
from sfumato.lang.load import examine
from sfumato.network import Network

IDS = [f"u{number}" for number in range(5)]
T = pd.DataFrame({"id": IDS, "x": [1.0, 2.0, 4.0, 8.0, 16.0]})
G = pd.DataFrame({"id": IDS, "w": ["vip", "plain", "vip", "plain", "plain"]})
F = pd.DataFrame({"a": ["u0", "u0", "u1", "u2", "u3", "u4"], "b": ["u1", "u2", "u2", "u3", "u3", "u0"]})
TABLES = {"t": T, "g": G, "f": F}
HEAD = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 20).
source(g, 'g.csv'). public(g). column(g, id, p(P)). column(g, w, ward(W)). relation(g, in(P, W)).
source(f, 'f.csv'). public(f). column(f, a, p(P)). column(f, b, p(Q)). relation(f, friend(P, Q)).
dataset(d, domain(P, p(P))). privacy_requirement(r(pub), d, dp(1)).
sum(s, y(P), p(P)). publish(o, s, r(pub)). random(y(P)) :- p(P).
"""
DOUBLED = "depends(y(P), [x(P)], 2 * x(P)) :- m(P). depends(y(P), [x(P)], x(P)) :- p(P), \\+ m(P).\n"
FACTS = {("in", *row) for row in G.itertuples(index=False)} | {("friend", *row) for row in F.itertuples(index=False)}


@dataclass(frozen=True)
class Goal:
    """name(arguments), negated or not; `helper` stands for a conjunction of its own."""

    name: str
    arguments: tuple[str, ...]
    negated: bool = False

    def __str__(self) -> str:
        return ("\\+ " if self.negated else "") + f"{self.name}({', '.join(self.arguments)})"

    def holds(self, who: dict[str, str], helper: list[Goal]) -> bool:
        given = tuple(who.get(one, one) for one in self.arguments)
        true = given[0] in fulfilling(helper, []) if self.name == "h" else (self.name, *given) in FACTS
        return true != self.negated


def fulfilling(goals: list[Goal], helper: list[Goal]) -> set[str]:
    """Who can stand for P, by trying everybody in every place."""
    everybody = (dict(zip("PQR", three, strict=True)) for three in itertools.product(IDS, repeat=3))
    return {who["P"] for who in everybody if all(goal.holds(who, helper) for goal in goals)}


def goals_of(rng: random.Random, names: tuple[str, ...]) -> list[Goal]:
    """A condition in which every variable is bound before it is asked about."""
    first = rng.choice([Goal("in", ("P", "plain")), Goal("friend", ("P", "Q")), Goal("friend", ("Q", "P"))])
    bound, found = [one for one in first.arguments if one in "PQ"], [first]
    for _ in range(rng.randint(0, 2)):
        name, who = rng.choice(names), rng.choice(bound)
        if name == "friend":
            other = rng.choice([*bound, "R"])
            bound += ["R"] if other == "R" else []
            found.append(Goal(name, (who, other) if rng.random() < 0.5 else (other, who)))
        else:
            more = (rng.choice(("vip", "plain")),) if name == "in" else ()
            found.append(Goal(name, (who, *more), rng.random() < 0.4))
    return found


def own(goals: list[Goal]) -> bool:
    return all("P" in goal.arguments for goal in goals)


def written(goals: list[Goal]) -> str:
    return ", ".join(map(str, goals))


def published(text: str) -> float:
    network = Network.from_spec(load(text), TABLES)
    found = network.evaluate(TABLES).aggregates["s"]
    return float(network.aggregates[0].question.truth(found)[0])


@pytest.mark.parametrize("seed", range(60))
def test_what_is_planned_is_what_everybody_in_every_place_gives(seed):
    rng = random.Random(seed)
    helper, goals = goals_of(rng, ("in", "friend")), goals_of(rng, ("in", "friend", "h"))
    asks = any(goal.name == "h" for goal in goals)
    text = HEAD + f"m(P) :- {written(goals)}.\n" + DOUBLED + (f"h(P) :- {written(helper)}.\n" if asks else "")
    want = float((T.x * T.id.isin(fulfilling(goals, helper)).map({True: 2, False: 1})).sum())
    if own(goals) and (own(helper) or not asks):
        assert published(text) == want, text
        return
    with suppress(StudyError):  # what asks of others may be refused, and is never false
        assert published(text) == want, text
    refused = [one.message for one in examine(text)[1] if one.severity == "error"]
    assert all("false for everybody" in one for one in refused), text


#: What speaks of others in ways of its own, and what speaks of nobody but the individual.
REFUSED = {
    "collected": "m(P) :- p(P), findall(Q, (friend(P, Q), in(Q, vip)), L), member(_, L).",
    "one of two": "m(P) :- friend(P, Q), (in(Q, vip) ; in(P, vip)).",
    "nobody at all": "m(P) :- p(P), \\+ in(_, closed).",
    "anybody": "m(P) :- p(P), in(_, vip).",
    "whoever is there": "m(P) :- friend(P, Q), p(Q).",
    "who has a variable": "m(P) :- friend(P, Q), random(x(Q)).",
    "by name": "m(P) :- p(P), in(u0, vip).",
    "a chain": "near(P, Q) :- friend(P, Q). near(P, R) :- friend(P, Q), near(Q, R). m(P) :- near(P, _).",
    "a relation of individuals alone": "relation(g, listed(P)). m(P) :- listed(P).",
}
PLANNED = {
    "both ways": ("m(P) :- friend(P, Q), friend(Q, P).", ["u3"]),
    "who is named": ("m(P) :- friend(_, P).", ["u0", "u1", "u2", "u3"]),
    "somebody by name": ("m(P) :- friend(P, u2).", ["u0", "u1"]),
    "another than oneself": ("m(P) :- friend(P, Q), Q \\= P.", ["u0", "u1", "u2", "u4"]),
    "the other end": ("liked(Q, W) :- friend(_, Q), in(Q, W). m(P) :- liked(P, vip).", ["u0", "u2"]),
    "a variable's own individual": ("m(P) :- random(x(P)), in(P, vip).", ["u0", "u2"]),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_no_run_knows_is_refused(form):
    with pytest.raises(StudyError, match=r"told nothing|nothing is told") as refused:
        load(HEAD + DOUBLED + REFUSED[form])
    assert "way out" in str(refused.value)


@pytest.mark.parametrize("form", PLANNED)
def test_what_a_run_knows_is_planned(form):
    text, who = PLANNED[form]
    assert published(HEAD + DOUBLED + text) == float(T.x.sum() + T.x[T.id.isin(who)].sum())


def test_what_is_about_nobody_may_name_anybody():
    text = HEAD + DOUBLED + "m(P) :- in(P, vip). count(c(W), (p(P), in(P, W))) :- in(_, W). "
    spec = load(text + "publish(oc(W), c(W), r(pub)) :- in(_, W).")
    assert {node.name for node in Network.from_spec(spec, TABLES).aggregates} == {"s", "c(vip)", "c(plain)"}
    with pytest.raises(StudyError, match="nothing is told"):
        load(text + "publish(none, s, r(pub)) :- \\+ in(_, closed).")
