"""Who belongs together changes what is promised and how much noise there is, and not what is asked.

A study is planned and evaluated with `correlated` and without: the same numbers, under the same names.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from sfumato import make_plan
from sfumato.lang import load

STUDY = """
source(people, 'people.csv'). column(people, id, person(P)). column(people, x, x(P)).
rows_per_person(people, 1). missing(people, never). random(x(P)) :- person(P). range(x(P), 0, 10).
source(homes, 'homes.csv'). public(homes).
column(homes, person, person(P)). column(homes, home, home(H)). relation(homes, lives_in(P, H)).
dataset(town, domain(P, person(P))).
sum(plain, x(P), person(P)). publish(plain, plain, s(pub)).
"""
TOGETHER = """
correlated(town, group(H, lives_in(P, H)), at_most(9)). privacy_requirement(s(pub), town, pufferfish(1, 1e-6)).
"""
APART = "privacy_requirement(s(pub), town, dp(1, 1e-6))."
#: What may be asked of the homes beside who belongs together.
ASKED = {
    "number": "random(z(P)) :- person(P). range(z(P), 0, 99). depends(z(P), [x(P)], x(P) * K) :- person(P), many(K). "
    "many(K) :- findall(H, home(H), L), length(L, K). sum(sz, z(P), person(P)). publish(sz, sz, s(pub)).",
    "each": "sum(each(H), x(P), person(P)) :- home(H). publish(each(H), each(H), s(pub)) :- home(H).",
    "names": "publish(named(H), plain, s(pub)) :- home(H).",
    "inside": "count(n(H), (person(P), lives_in(P, H))) :- home(H). publish(n(H), n(H), s(pub)) :- home(H).",
    "listed": "home(h0). home(h1). publish(named(H), plain, s(pub)) :- home(H).",
    "streets": "source(streets, 's.csv'). public(streets). column(streets, h, home(H)). column(streets, s, street(S)). "
    "relation(streets, on(H, S)). publish(street(S), plain, s(pub)) :- home(H), on(H, S).",
    "nothing": "",
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.by_day(3)
def test_what_is_asked_does_not_hang_on_who_belongs_together(asked, seed):
    chance = random.Random(f"{asked} {seed}")
    names = [f"p{number}" for number in range(chance.randint(1, 6))]
    homes = {"person": names, "home": [f"h{chance.randrange(4)}" for _ in names]}
    public = {"homes": pa.table(homes), "streets": pa.table({"h": ["h0", "h2", "h9"], "s": ["a", "a", "b"]})}
    people = {"people": pa.table({"id": names, "x": [float(chance.randint(0, 10)) for _ in names]})}
    lines = ASKED[asked].split("\n")
    plans = [make_plan(load("\n".join([STUDY, *lines, own])), public) for own in (TOGETHER, APART)]
    said = [[one.name for one in plan.publications] for plan in plans]
    assert said[0] == said[1]
    found = [plan.network.evaluate({**public, **people}) for plan in plans]
    seen = [values.individuals["town"].drop_columns(["$group"]).to_pydict() for values in found]
    assert seen[0] == seen[1]
    added = [
        {node.name: node.question.encode(values.aggregates[node.name]).tolist() for node in plan.network.aggregates}
        for plan, values in zip(plans, found, strict=True)
    ]
    assert added[0] == added[1]
    if asked in ("each", "names"):
        assert len(said[0]) == 1 + len(set(homes["home"]))
