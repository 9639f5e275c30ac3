"""A step publishes what it names: of a clause with variables the instances named, and no other.

1. At every step the plan has exactly the publications that the step's lines name, whatever clause they come from.
2. What all steps together cost is within the promise, and a promise that a step does not name is not shared with it.
3. A name that no clause gives, and an instance that no step names, are told before anything is spent.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from sfumato import make_plan
from sfumato.core import GaussianDP, compose
from sfumato.errors import PlanError, StudyError
from sfumato.lang import load
from sfumato.lang.load import examine

GROUPS = ("a", "b", "c", "e")
HEAD = """
    table(t, 't.csv', p(P) = id, [x: 0..100, g: [a, b, c, e]]). rows_per_person(t, 1). missing(t, never).
    dataset(d, domain(P, p(P))). group(a). group(b). group(c). group(e).
    mean(m(G), x(P), (p(P), g(P) = G)) :- group(G). count(n(G, K), (p(P), g(P) = G, x(P) > K)) :- group(G), bar(K).
    bar(10). bar(50).
"""
ONE = "privacy_requirement(o(pub), d, gdp(1)).\n"
MEANS = "publish(pm(G), m(G), o(pub)) :- group(G).\n"
COUNTS = "publish(pn(G, K), n(G, K), o(pub)) :- group(G), bar(K).\n"


def named(seed: int) -> dict[int, list[str]]:
    """By step: what it publishes, as the study writes it; each instance at one step, some steps name whole families."""
    source = random.Random(seed)
    last = source.randint(1, 3)
    found: dict[int, list[str]] = {number: [] for number in range(1, last + 1)}
    for group in GROUPS:
        found[source.randint(1, last)].append(f"pm({group})")
    for bar in (10, 50):
        variable = source.choice("GKX")  # the same name as one of the clause's is another variable
        found[source.randint(1, last)].append(f"pn({variable}, {bar})")
    return {number: names for number, names in found.items() if names}


def instances(name: str) -> set[str]:
    if name.startswith("pm"):
        return {name}
    return {f"pn({group}, {name.split(', ')[1][:-1]})" for group in GROUPS}


def study(seed: int) -> str:
    lines = [f"step({number}, publish({name}))." for number, names in named(seed).items() for name in names]
    return HEAD + ONE + MEANS + COUNTS + "\n".join(lines)


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(40))
def test_a_step_publishes_what_it_names(seed):
    costs = []
    assert [one for one in examine(study(seed))[1] if one.severity == "error"] == []
    for number, names in named(seed).items():
        plan = make_plan(load(study(seed), at=number))
        assert {one.name for one in plan.publications} == set().union(*map(instances, names))
        costs.append(plan.cost("d"))
    assert compose(costs).implies(GaussianDP(1.0, adjacency=costs[0].adjacency)) is True


OWN = "".join(f"privacy_requirement(o({group}), d, gdp(1)).\n" for group in "ab") + (
    "publish(pm(G), m(G), o(G)) :- mine(G).\nmine(a). mine(b).\nstep(1, publish(pm(a))). step(2, publish(pm(b))).\n"
)


def test_a_promise_is_shared_over_the_steps_that_name_something_of_it():
    plans = [make_plan(load(HEAD + OWN, at=number)) for number in (1, 2)]
    assert [[one.observer for one in plan.publications] for plan in plans] == [["a"], ["b"]]
    assert [str(plan.promises[0].asked) for plan in plans] == [str(plan.promises[0].asked) for plan in plans[:1]] * 2
    assert plans[0].promises[0].asked.mu == pytest.approx(1)


def test_colluders_who_are_named_at_different_steps_are_found():
    """One clause shows to both, each at its own step: together they would see more than one was promised."""
    with pytest.raises(StudyError, match="collude"):
        load(HEAD + OWN + "collude([a, b]).")


def test_a_name_that_no_clause_gives_is_told():
    text = HEAD + ONE + MEANS + "step(1, publish(pm(a))). step(2, publish(pm(z)))."
    with pytest.raises(StudyError, match=r"step 2 publishes pm\(z\)"):
        load(text)


def test_an_instance_that_no_step_names_is_told():
    text = HEAD + ONE + MEANS + "step(1, publish(pm(a))). step(2, publish(pm(b)))."
    told = [one for one in examine(text)[1] if "pm(c)" in one.message]
    assert [(one.severity, one.code) for one in told] == [("warning", "step")]
    assert "pm(e)" in told[0].message
    assert make_plan(load(text, at=2)).publication("pm(b)")


def test_a_person_is_no_instance():
    text = HEAD + ONE + "publish(each(P), x(P), o(pub)) :- p(P).\nstep(1, publish(each(u1)))."
    with pytest.raises(StudyError):
        load(text)
    with pytest.raises((StudyError, PlanError)):
        make_plan(load(text, at=1))


def test_a_name_of_a_public_row_is_found_when_it_is_planned():
    text = HEAD.replace("group(a). group(b). group(c). group(e).", "") + ONE + MEANS
    text += "source(w, 'w.csv'). column(w, ward, group(G)). public(w).\n"
    text += "step(1, publish(pm(a))). step(2, publish(pm(z)))."
    wards = {"w": pa.table({"ward": ["a", "b"]})}
    assert [one.name for one in make_plan(load(text, at=1), wards).publications] == ["pm(a)"]
    with pytest.raises(PlanError, match=r"pm\(z\)"):
        make_plan(load(text, at=2), wards)


@pytest.mark.parametrize("first", ["step(1, publish(pm(a))).", "step(1, publish(pm(X)))."])
def test_a_name_may_come_from_any_clause_and_any_step(first):
    """One clause gives pm(all), another the groups; a step that names a whole clause leaves nothing out."""
    text = HEAD + ONE + MEANS + "mean(k, x(P), p(P)). publish(pm(all), k, o(pub)).\n" + first
    text += " step(1, publish(pm(all))). step(2, publish(pm(X))).\n"
    _, problems = examine(text)
    assert [str(one) for one in problems] == []
