"""What a study says of owners, groups and others is answered in words: a refusal names what is so and what to do.

Each grid writes one thing in every form: conditions of groups, tables of owners with further columns, names that clash,
lists of others. What can be answered is compared with pandas; no message has a name that the house made.
"""

from __future__ import annotations

import re

import pandas as pd
import pytest

from sfumato.errors import SfumatoError, StudyError
from sfumato.lang import load
from sfumato.network import Network
from sfumato.run.planning import make_plan

IDS = ["u0", "u1", "u2", "u3"]
T = pd.DataFrame({"id": IDS, "age": [1.0, 9.0, 3.0, 8.0]})
G = pd.DataFrame({"id": IDS, "kind": ["vip", "plain", "vip", "plain"]})
PEOPLE = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, age, age(P)). random(age(P)) :- p(P). range(age(P), 0, 10).
source(g, 'g.csv'). column(g, id, p(P)). column(g, kind, kind(K)). relation(g, in(P, K)).
kind(vip). kind(plain). kind(other).
"""


def sums(network, tables):
    found = network.evaluate(tables).aggregates
    return {node.name: float(node.question.truth(found[node.name])[0]) for node in network.aggregates}


def clean(message):
    """No name that the house made, and no failure without words."""
    return not re.search(r"\$|KeyError|Traceback", message)


# ── groups ───────────────────────────────────────────────────────────────────────────────────────────────────────────

#: A condition of each of two groups, and whether it rests on the table g.
CONDITIONS = {
    "plainly": ("in(P, vip)", "in(P, plain)", True),
    "negated": ("\\+ in(P, plain)", "\\+ in(P, vip)", True),
    "negated twice": ("\\+ \\+ in(P, vip)", "\\+ \\+ in(P, plain)", True),
    "one of two": ("(in(P, vip) ; in(P, other))", "(in(P, plain) ; in(P, other))", True),
    "nested": ("\\+ (in(P, plain) ; in(P, other))", "(in(P, plain) ; \\+ in(P, vip))", True),
    "compared": ("age(P) > 5", "age(P) =< 5", False),
    "compared and negated": ("\\+ age(P) =< 5", "\\+ age(P) > 5", False),
    "computed": ("age(P) + 0 > 5", "5 >= age(P) + 0", False),
    "computed deeply": ("max(0, 2 * age(P)) > 10", "10 >= abs(age(P) * 2)", False),
    "both": ("(in(P, vip) ; age(P) > 5)", "(in(P, plain) ; \\+ age(P) > 5)", False),
    "through a clause": ("old(P)", "\\+ old(P)", False),
}
GROUPS = """
dataset(vips, domain(P, (p(P), {one}))). dataset(others, domain(P, (p(P), {other}))).
privacy_requirement(v(pub), vips, dp(0.1, 0.000001)). privacy_requirement(o(pub), others, dp(5, 0.000001)).
sum(sv, age(P), (p(P), {one})). sum(so, age(P), (p(P), {other})). publish(a, sv, v(pub)). publish(b, so, o(pub)).
"""


def groups_of(form, public):
    one, other, by_table = CONDITIONS[form]
    said = "public(g). " if public else "rows_per_person(g, 1). "
    old = "old(P) :- p(P), \\+ young(P). young(P) :- age(P) < 5. " if "old(P)" in one else ""
    return PEOPLE + said + old + GROUPS.format(one=one, other=other), by_table


@pytest.mark.parametrize("form", CONDITIONS)
def test_a_private_condition_makes_no_group_in_any_form(form):
    for public in (False, True):
        text, by_table = groups_of(form, public)
        if public and by_table:
            continue
        with pytest.raises(StudyError, match="private-group"):
            load(text)


@pytest.mark.parametrize("form", [form for form, (_, _, by_table) in CONDITIONS.items() if by_table])
def test_a_public_condition_makes_a_group_in_any_form(form):
    plan = make_plan(groups_of(form, True)[0], {"g": G})
    vip = T.id.isin(G.id[G.kind == "vip"])
    assert sums(plan.network, {"t": T, "g": G}) == {"sv": T.age[vip].sum(), "so": T.age[~vip].sum()}
    assert all(one.kept.epsilon(1e-6) <= one.asked.epsilon(1e-6) * (1 + 1e-9) for one in plan.promises)


def test_a_goal_that_says_another_condition_is_refused():
    """Planted: whoever counts people of the other group under the promise of this one."""
    text = groups_of("negated", True)[0]
    for wrong in ("p(P)", "(p(P), in(P, plain))", "(p(P), in(P, vip))", "(p(P), (\\+ in(P, plain) ; in(P, plain)))"):
        changed = text.replace("sum(sv, age(P), (p(P), \\+ in(P, plain)))", f"sum(sv, age(P), {wrong})")
        assert changed != text
        with pytest.raises(SfumatoError, match="counts people outside of vips"):
            make_plan(changed, {"g": G})


@pytest.mark.parametrize("condition", ["in(P, _)", "\\+ in(P, _)", "in(P, K)"])
def test_a_group_of_more_than_its_individual_is_refused_as_such(condition):
    text = PEOPLE + "public(g). " + GROUPS.format(one=condition, other="in(P, plain)")
    with pytest.raises(SfumatoError, match=r"about more than the individual|private-group"):
        make_plan(text, {"g": G})


def test_a_word_is_no_private_variable():
    text = groups_of("plainly", True)[0] + "count(vip, (p(P), in(P, plain))). publish(c, vip, o(pub)). "
    assert sums(make_plan(text, {"g": G}).network, {"t": T, "g": G})["vip"] == 2


# ── owners ───────────────────────────────────────────────────────────────────────────────────────────────────────────

WHO = pd.DataFrame(
    {"id": ["v1", "v2", "v3", "v4"], "patient": ["a", "a", "b", "c"], "ward": ["x", "x", "y", "y"], "fee": [1, 2, 3, 4]}
)
VISITS = pd.DataFrame({"id": ["v1", "v2", "v3", "v4"], "cost": [1.0, 2, 3, 4]})
OWNED = """
source(visits, 'v.csv'). column(visits, id, visit(V)). column(visits, cost, cost(V)). rows_per_person(visits, 1).
missing(visits, never). random(cost(V)) :- visit(V). range(cost(V), 0, 100).
source(who, 'w.csv'). public(who). column(who, id, visit(V)). column(who, patient, patient(P)).
relation(who, seen(V, P)).
dataset(patients, domain(P, patient(P))). instance_rv(patients, P, cost(V)) :- seen(V, P).
privacy_requirement(pp(public), patients, gdp(1)). sum(s, cost(V), visit(V)). publish(total, s, pp(public)).
"""
WARD = "column({t}, ward, ward(W)). "
#: What asks the table of owners for more, as further columns and relations of it declare.
ASKED = {
    "a relation in a goal": (
        WARD + "relation({t}, in(V, W)). ",
        "count(c, (visit(V), in(V, x))). publish(cc, c, pp(public)).",
    ),
    "a column in a condition": (
        WARD,
        "count(c(W), (visit(V), cost(V) > 1)) :- ward(W). publish(k(W), c(W), pp(public)) :- ward(W).",
    ),
    "a relation in a clause": (
        WARD + "relation({t}, in(V, W)). ",
        "random(z(V)) :- in(V, x). depends(z(V), [cost(V)], cost(V)) :- in(V, x). sum(c, z(V), visit(V)). "
        "publish(cc, c, pp(public)).",
    ),
    "a negation": (
        WARD + "relation({t}, in(V, W)). ",
        "count(c, (visit(V), \\+ in(V, x))). publish(cc, c, pp(public)).",
    ),
}
WAYS_OUT = "source(who_too, 'w.csv'). public(who_too). column(who_too, id, visit(V)). "


@pytest.mark.parametrize("form", ASKED)
def test_what_a_table_of_owners_says_besides_is_refused_or_right(form):
    declared, asks = ASKED[form]
    with pytest.raises(StudyError, match=r"who is read for who owns what alone") as refused:
        load(OWNED + declared.format(t="who") + asks)
    assert len(refused.value.problems) == 1  # and nothing that only follows from it
    tables = {"who": WHO, "who_too": WHO, "visits": VISITS}
    found = sums(Network.from_spec(load(OWNED + WAYS_OUT + declared.format(t="who_too") + asks), tables), tables)
    want = {"a relation in a goal": 2, "a relation in a clause": 3, "a negation": 2}
    if form in want:
        assert found["c"] == want[form]
    else:
        assert found == {"s": 10, "c(x)": 3, "c(y)": 3}


def test_a_relation_that_two_tables_feed_loses_none_of_them():
    """Planted: the rows of the table of owners would be missing beside those of the other one, without a word."""
    other = WAYS_OUT + WARD.format(t="who_too") + "relation(who_too, in(V, W)). "
    text = OWNED + WARD.format(t="who") + "relation(who, in(V, W)). " + other + ASKED["a relation in a goal"][1]
    with pytest.raises(StudyError, match=r"in\(V, x\) asks for what who says"):
        load(text)


def test_the_relation_of_owners_itself_is_no_condition():
    with pytest.raises(StudyError, match=r"seen\(V, P\) asks for what who says") as refused:
        load(OWNED + "personal_rv(P, cost(V)) :- seen(V, P).")
    assert "read, write" not in str(refused.value)


def test_columns_that_nothing_asks_for_are_no_matter():
    network = Network.from_spec(load(OWNED + WARD.format(t="who") + "relation(who, in(V, W))."), {"who": WHO})
    assert sums(network, {"who": WHO, "visits": VISITS}) == {"s": 10}


@pytest.mark.parametrize("pair", ["vs, patients", "patients, vs", "vs, vs"])
def test_the_same_person_owns_in_both_ways(pair):
    text = OWNED + f"dataset(vs, domain(V, visit(V))). same_person({pair})."
    with pytest.raises(StudyError, match=r"same_person.*nobody of vs owns things"):
        load(text)
    with pytest.raises(StudyError, match=r"same_person.*nobody of d owns things"):
        load(PEOPLE + "public(g). dataset(d, domain(P, p(P))). same_person(d, d).")


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

TWO = """
source(pt, 'p.csv'). column(pt, id, patient(P)). column(pt, age, age(P)). rows_per_person(pt, 1). missing(pt, never).
random(age(P)) :- patient(P). range(age(P), 0, 10).
source(dt, 'd.csv'). column(dt, id, doctor(D)). column(dt, skill, skill(D)). rows_per_person(dt, 1). missing(dt, never).
random(skill(D)) :- doctor(D). range(skill(D), 0, 10). column(dt, sort, sort(D)). random(sort(D)) :- doctor(D).
range(sort(D), [ann, bob]).
source(tr, 'tr.csv'). column(tr, p, patient(P)). column(tr, d, doctor(D)). relation(tr, treats(D, P)). public(tr).
dataset(patients, domain(P, patient(P))). dataset(doctors, domain(D, doctor(D))).
privacy_requirement(dd(public), doctors, dp(1.0)). privacy_requirement(pp(public), patients, dp(1.0)).
sum({n}, age(P), patient(P)). publish(aa, {n}, pp(public)). count(s, (doctor(D), {goal})). publish(o, s, dd(public)).
"""
TREATS = pd.DataFrame({"p": ["ann", "b", "ann"], "d": ["d1", "d1", "d2"]})
DOCTORS = pd.DataFrame({"id": ["d1", "d2", "d3"], "skill": [1.0, 5, 9], "sort": ["ann", "bob", "ann"]})
GOALS = {
    "treats(D, ann), skill(D) > 2": 1,
    "\\+ treats(D, ann)": 1,
    "(treats(D, ann) ; skill(D) > 8)": 3,
    "sort(D) = ann": 2,
    "sort(D) \\= ann": 1,
}


@pytest.mark.parametrize("name", ["total", "ann"])
@pytest.mark.parametrize("goal", GOALS)
def test_a_word_of_a_goal_may_be_the_name_of_an_aggregate(goal, name):
    tables = {"pt": pd.DataFrame({"id": ["ann", "b"], "age": [1.0, 2]}), "dt": DOCTORS, "tr": TREATS}
    plan = make_plan(TWO.format(n=name, goal=goal), {"tr": TREATS})
    assert sums(plan.network, tables) == {name: 3.0, "s": GOALS[goal]}


# ── others ───────────────────────────────────────────────────────────────────────────────────────────────────────────

F = pd.DataFrame({"a": ["u0", "u0", "u1"], "b": ["u1", "u2", "u2"]})
FRIENDS = (
    PEOPLE.split("source(g", maxsplit=1)[0]
    + """
source(f, 'f.csv'). public(f). column(f, a, p(P)). column(f, b, p(Q)). relation(f, friend(P, Q)).
dataset(d, domain(P, p(P))). privacy_requirement(r(pub), d, dp(1)).
"""
)
OTHERS = {
    "an aggregate for each": (
        "count(s(Q), (p(P), friend(P, Q))) :- friend(_, Q). publish(o(Q), s(Q), r(pub)) :- friend(_, Q).",
        r"s\(P\) would be an aggregate for each individual of d",
    ),
    "an aggregate for each of them": (
        "count(s(Q), (p(P), friend(P, Q))) :- p(Q). publish(o(Q), s(Q), r(pub)) :- p(Q).",
        r"s\(P\) would be an aggregate for each individual of d",
    ),
    "how long a list is": (
        "random(y(P)) :- p(P). depends(y(P), L, sum(L) / N) :- findall(age(Q), friend(P, Q), L), length(L, N). "
        "sum(s, y(P), p(P)). publish(o, s, r(pub)).",
        r"length\(L, N\) asks for the list itself",
    ),
    "what is in a list": (
        "random(y(P)) :- p(P). depends(y(P), L, sum(L)) :- findall(age(Q), friend(P, Q), L), \\+ L = []. "
        "sum(s, y(P), p(P)). publish(o, s, r(pub)).",
        r"asks for the list itself",
    ),
}


@pytest.mark.parametrize("form", OTHERS)
def test_what_cannot_be_asked_of_others_is_said_in_words(form):
    text, said = OTHERS[form]
    with pytest.raises(SfumatoError, match=said) as refused:
        make_plan(FRIENDS + text, {"f": F})
    assert clean(str(refused.value))


def test_a_plan_has_no_name_that_the_house_made():
    text = "random(y(P)) :- p(P). depends(y(P), L, {}(L)) :- findall(age(Q), friend(P, Q), L). sum(s, y(P), p(P)). "
    for how in ("sum", "mean"):
        plan = make_plan(FRIENDS + text.format(how) + "publish(o, s, r(pub)).", {"f": F})
        said = [*plan.publication("o").about, str(plan.extras["about"])]
        assert all(map(clean, said))
        assert any(f"{how} of age over friend" in one for one in said)
