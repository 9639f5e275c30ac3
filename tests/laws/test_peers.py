"""People by whom a public table names others: sums over peers, cells and conditions, held against plain Python.

Whatever says who is whose peer counts, in whichever table, in whichever order of its columns and of the study's lines:
all of it is read, or the study is refused before anything is.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from sfumato import make_plan
from sfumato.core import Pufferfish
from sfumato.errors import SchemaError
from sfumato.lang import load

PEOPLE = """
source(t, 't.csv'). column(t, id, p(P)). column(t, x, cost(P)). rows_per_person(t, 1). {missing}
random(cost(P)) :- p(P). range(cost(P), -2, 10).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)). publish(s, s, o(pub)).
"""
EXPOSED = """
random(e(P)) :- p(P). depends(e(P), L, {law}(L)) :- findall(cost(Q), friend(P, Q), L). sum(s, e(P), p(P)).
"""
Pair = tuple[str, str]


def friends(name: str, *relations: str) -> list[str]:
    """The lines of a public table of pairs; every relation says one thing of each row."""
    lines = [f"source({name}, '{name}.csv').", f"public({name})."]
    lines += [f"column({name}, a, p(P)).", f"column({name}, b, p(Q))."]
    return [*lines, *(f"relation({name}, {one})." for one in relations)]


def pair_table(pairs: Iterable[Pair], **more: list[Any]) -> pa.Table:
    listed = list(pairs)
    columns = {"a": [a for a, _ in listed], "b": [b for _, b in listed]}
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()} | more)


def summed(pairs: set[Pair], costs: dict[str, float], law: str) -> dict[str, float]:
    found = {}
    for who in costs:
        own = [costs[peer] for one, peer in pairs if one == who and peer in costs]
        found[who] = 0.0 if not own else statistics.fmean(own) if law == "mean" else sum(own)
    return found


@pytest.mark.parametrize("law", ["sum", "mean"])
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.by_day(2)
def test_everybody_sums_over_all_peers_whatever_says_who_they_are(seed, law):
    chance = random.Random(seed)
    names = [str(number) for number in range(chance.randint(2, 6))]
    cells = [chance.choice([None, float("nan"), -5.0, 1.5, 4.0, 77.0]) for _ in names]
    stands = chance.choice([-1, 3])
    absent = chance.choice([f"missing(cost(P), {stands}).", "missing(t, never)."])
    other = 4.0 if "never" in absent else stands  # the middle stands where the study says there is none
    read = [other if cell is None or math.isnan(cell) else min(max(cell, -2), 10) for cell in cells]
    costs = dict(zip(names, read, strict=True))
    lines: list[str] = []
    tables: dict[str, pa.Table] = {}
    pairs: set[Pair] = set()
    for place in range(chance.randint(1, 3)):
        listed = [(chance.choice([*names, "?"]), chance.choice([*names, "?"])) for _ in range(chance.randint(0, 5))]
        ways = chance.choice([["friend(P, Q)"], ["friend(Q, P)"], ["friend(P, Q)", "friend(Q, P)"]])
        lines += friends(f"f{place}", *ways)
        tables[f"f{place}"] = pair_table(listed)
        pairs |= {(a, b) if way == "friend(P, Q)" else (b, a) for way in ways for a, b in listed}
    chance.shuffle(lines)
    text = "\n".join([PEOPLE.format(missing=absent), EXPOSED.format(law=law), *lines])
    plan = make_plan(load(text), tables)
    people = {"t": pa.table({"id": names, "x": pa.array(cells, pa.float64())})}
    seen = plan.network.evaluate({**tables, **people}).individuals["d"].to_pydict()
    expected = summed(pairs, costs, law)
    assert dict(zip(seen["id"], seen["e(P)"], strict=True)) == pytest.approx(expected, abs=1e-9)
    (promise,) = plan.promises
    assert isinstance(promise.asked, Pufferfish)
    reached = [len({who for who, peer in pairs if peer == one} | {one}) for one in {*names, *(b for _, b in pairs)}]
    assert promise.asked.dependence.together == max(reached)


@pytest.mark.parametrize(
    ("missing", "more", "said"),
    [
        ("missing(t, skip).", "", r"missing\(cost\(P\), Value\) with a number from -2 to 10, beside"),
        ("missing(cost(P), skip).", "", "in place of the line that skips it"),
        ("missing(t, never).", "friend(P, Q) :- friend(Q, P).", "reads tables alone"),
        ("missing(t, never).", "friend(P, Q) :- mate(P, Q). MATES", "reads tables alone"),
        ("missing(t, never).", "friend('0', '1').", "reads tables alone"),
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_what_would_be_left_out_is_refused_in_any_order(missing, more, said, last):
    """An absent cell that is skipped, and whatever says who is a peer and is no table of pairs."""
    more = more.replace("MATES", " ".join(friends("m", "mate(P, Q)")))
    own = PEOPLE.format(missing=missing) + EXPOSED.format(law="sum")
    parts = [own, " ".join(friends("f", "friend(P, Q)")), more]
    pairs = pair_table([("0", "1")])
    with pytest.raises(SchemaError, match=said):
        make_plan(load("\n".join(parts if last else reversed(parts))), {"f": pairs, "m": pairs})


# ── two people in one row ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.by_day(3)
def test_a_cell_belongs_to_whom_its_own_column_names(seed):
    """A public table of two people a row: what it says of the second is theirs, and a condition may ask for either."""
    chance = random.Random(seed)
    names = [str(number) for number in range(chance.randint(2, 5))]
    kind = chance.choice([str, int])
    rows = [(chance.choice(names), chance.choice(names)) for _ in range(chance.randint(1, 7))]
    weights = [chance.choice([5.0, 6.0, 7.0, None]) for _ in rows]
    one = chance.choice(names)
    asked = {
        "friend(Q, P)": {b for _, b in rows},
        "friend(P, Q)": {a for a, _ in rows},
        f"friend({one}, P)": {b for a, b in rows if a == one},
        f"friend(P, {one})": {a for a, b in rows if b == one},
        f"(friend({one}, P) ; friend(P, {one}))": {x for pair in rows if one in pair for x in _others(pair, one)},
    }
    goal = chance.choice(list(asked))
    of = chance.choice("PQ")
    text = "\n".join(
        [
            PEOPLE.format(missing="missing(t, never). missing(w(P), 1)."),
            *friends("f", "friend(P, Q)"),
            f"column(f, w, w({of})). random(w(P)) :- p(P). range(w(P), 0, 10).",
            f"sum(s, w(P), p(P)). count(c, (p(P), {goal})). publish(c, c, o(pub)).",
        ]
    )
    table = pair_table(rows, w=pa.array(weights, pa.float64()))
    for column in (0, 1) if kind is int else ():
        table = table.set_column(column, "ab"[column], table[column].cast(pa.int64()))
    plan = make_plan(load(text), {"f": table})
    people = pa.table({"id": [kind(name) for name in names], "x": [0.0] * len(names)})
    for only in (False, True):
        values = plan.network.evaluate({"f": table, "t": people}, sums_only=only)
        counted = next(node.question for node in plan.network.aggregates if node.name == "c")
        assert counted.encode(values.aggregates["c"])[0] == len(asked[goal] & set(names))
    values = plan.network.evaluate({"f": table, "t": people})
    seen = values.individuals["d"].to_pydict()
    own = {who: [w for (a, b), w in zip(rows, weights, strict=True) if who == (a if of == "P" else b)] for who in names}
    there = {who: [w for w in found if w is not None] for who, found in own.items()}
    assert dict(zip(seen["id"], seen["w(P)"], strict=True)) == {
        who: min(found or [1.0]) for who, found in there.items()
    }


def _others(pair: Pair, one: str) -> list[str]:
    a, b = pair
    return [*([b] if a == one else []), *([a] if b == one else [])]


OWN = "source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1)."


@pytest.mark.parametrize(
    ("own", "asked", "said"),
    [(OWN, "friend(P, P)", "names P twice"), ("", "friend(P, Q)", "by several of its columns: a and b")],
)
def test_two_people_where_one_is_meant_are_refused(own, asked, said):
    dataset = "dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)). publish(s, s, o(pub))."
    text = " ".join([own, dataset, *friends("f", "friend(P, Q)"), f"count(s, (p(P), {asked}))."])
    with pytest.raises(SchemaError, match=said):
        make_plan(load(text), {"f": pair_table([("1", "2")])})
