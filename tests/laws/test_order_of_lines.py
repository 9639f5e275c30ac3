"""The order of a study's lines says nothing: who is protected, who owns what and what is drawn stay the same.

Found by it: two columns that name one variable, of which a relation took the one that came first. Owners were then
counted by another column (six visits of one patient as one), groups by rooms instead of homes.
"""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from sfumato.errors import SfumatoError
from sfumato.lang import load
from sfumato.lang.reader import read
from sfumato.network import Network
from sfumato.run.held_tables import all_tables
from sfumato.run.planning import make_plan

EXAMPLES = sorted(Path("examples").glob("*/study.pl"))

OWNERS = """
source(visits, 'v.csv'). column(visits, id, visit(V)). rows_per_person(visits, 1). missing(visits, never).
column(visits, cost, cost(V)). random(cost(V)) :- visit(V). range(cost(V), 0, 100).
source(who, 'w.csv'). public(who). missing(who, never).
column(who, v, visit(V)). column(who, p, patient(P)). relation(who, seen(V, P)).
dataset(patients, domain(P, patient(P))). instance_rv(patients, P, cost(V)) :- seen(V, P).
privacy_requirement(a(public), patients, dp(1)). sum(n, cost(V), visit(V)). publish(s, n, a(public)).
"""
HOMES = """
source(people, 'p.csv'). column(people, id, person(P)). column(people, ill, ill(P)).
rows_per_person(people, 1). missing(people, never). random(ill(P)) :- person(P). range(ill(P), [no, yes]).
source(homes, 'h.csv'). public(homes).
column(homes, person, person(P)). column(homes, home, home(H)). relation(homes, lives_in(P, H)).
dataset(town, domain(P, person(P))).
"""
GROUPS = HOMES + (
    "correlated(town, group(H, lives_in(P, H)), at_most(6)). privacy_requirement(a(public), town, pufferfish(1)).\n"
    "histogram(n, ill(P), person(P)). publish(s, n, a(public)).\n"
)
COUNTS = HOMES + (
    "privacy_requirement(a(public), town, dp(1)). count(n, (person(P), lives_in(P, a), ill(P) = yes)). "
    "publish(s, n, a(public)).\n"
)
#: A column more, which names again what another one names, and is no value of it.
MORE = {
    OWNERS: ["column(who, age, age(P)).", "column(who, day, day(V))."],
    GROUPS: ["column(homes, room, room(H)).", "column(homes, age, age(P))."],
    COUNTS: ["column(homes, room, room(H)).", "column(homes, age, age(P))."],
}
SIX = [str(place) for place in range(6)]
TABLES = {
    "who": pd.DataFrame({"v": SIX, "p": ["7"] * 6, "age": SIX, "day": ["monday"] * 6}),
    "homes": pd.DataFrame({"person": SIX, "home": ["a"] * 6, "room": SIX, "age": ["30"] * 6}),
}


def planned(lines: list[str], tables: dict) -> Any:
    """What is drawn by which law, and how wide, or that it is refused."""
    try:
        plan = make_plan("\n".join(lines) + "\n", tables)
    except SfumatoError:
        return "refused"
    acts = {(act.name, tuple(sorted(act.observers))): act.strategy for act in plan.acts}
    widths: dict[str, list[float]] = {}
    for draw in plan.draws:
        key = f"{type(draw).__name__} {draw.node} {sorted(draw.observers)}"
        widths.setdefault(key, []).append(getattr(draw, "scale", 0.0))
    return acts, {key: sorted(found) for key, found in widths.items()}


def alike(one: Any, other: Any) -> bool:
    """What is shared out among several observers follows from a search, which ends at its tolerance."""
    if "refused" in (one, other):
        return one == other
    return one[0] == other[0] and one[1] == {key: pytest.approx(found, rel=1e-3) for key, found in other[1].items()}


def lines_of(text: str) -> list[str]:
    clauses, problems = read(text, "study.pl")
    assert not problems
    return [clause.text for clause in clauses]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.by_day(5)
@pytest.mark.parametrize("study", [OWNERS, GROUPS, COUNTS], ids=["owners", "groups", "counts"])
def test_any_order_of_lines_is_planned_alike(study, seed):
    """Also with a column more that names somebody a second time: any order of it is refused, or planned alike."""
    chance = random.Random(seed)
    for more in ([], *([line] for line in MORE[study])):
        lines = lines_of(study) + more
        first = planned(lines, TABLES)
        assert (first == "refused") == bool(more)
        chance.shuffle(lines)
        assert alike(planned(lines, TABLES), first)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_in_another_order(path):
    lines = lines_of(path.read_text(encoding="utf-8"))
    spec = load(path)
    every = all_tables(spec, path.parent) if spec.public_tables else {}
    public = {name: every[name] for name in spec.public_tables}
    first = planned(lines, public)
    assert first != "refused" or spec.steps  # of a study with steps one is planned at a time
    random.Random(1).shuffle(lines)
    assert alike(planned(lines, public), first)


PLAIN = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, age, age(P)). random(age(P)) :- p(P). range(age(P), 0, 100).
column(t, test, test(T)). column(t, value, lab(P, T)). test(na). test(k). random(lab(P, T)) :- p(P), test(T).
range(lab(P, T), 0, 10). dataset(d, domain(P, p(P))).
privacy_requirement(a(public), d, dp(1)). privacy_requirement(b(doctor), d, dp(2, 0.000001)).
sum(n, age(P), p(P)). publish(s, n, a(public)). sum(m, lab(P, na), p(P)). publish(salt, m, b(doctor)).
centre(north). centre(south). centre(west). holds(north, t). holds(south, t). holds(west, t).
"""
#: What is said of something that PLAIN, or the line itself, has said already.
AGAIN = [
    *("range(age(P), 0, 50).", "range(age(Q), 0, 50).", "range(lab(P, na), 0, 50).", "rows_per_person(t, 3)."),
    *("missing(age(P), 1). missing(age(Q), 2).", "column(t, second, age(P)).", "column(t, second, age(Q))."),
    *("source(t, 'u.csv').", "dataset(d, domain(P, p(P))).", "privacy_requirement(a(public), d, dp(5))."),
    *("sum(n, age(P), (p(P), age(P) > 3)).", "count(n, p(P)).", "weight(s, 3). weight(s, 5).", "each_person(t, mean)."),
    *("within(s, 5). within(s, 50).", "colluders(1). colluders(2).", "absences(1). absences(2)."),
    *("adjacency(d, add_remove). adjacency(d, replace_one).", "collude([public, doctor]). collude([doctor, public])."),
    *("prefer(s, [gaussian]). prefer(s, [laplace]).", "publish(s, n, b(doctor)).", "depends(age(P), [], 3)."),
]


@pytest.mark.parametrize("again", AGAIN)
def test_what_is_said_twice_is_refused_or_does_not_hang_on_its_place(again):
    lines, more = lines_of(PLAIN), lines_of(again)
    assert planned(lines, {}) != "refused"
    assert alike(planned([*lines, *more], {}), planned([*more[::-1], *lines], {}))


def test_the_members_of_a_group_are_individuals():
    """A relation that names people by their age counts ages."""
    study = GROUPS.replace("column(homes, person, person(P)).", "column(homes, age, age(P)).")
    assert planned(lines_of(study), TABLES) == "refused"
    assert planned(lines_of(GROUPS.replace("at_most(6)", "at_most(5)")), TABLES) == "refused"


def test_a_group_is_counted_by_who_is_in_it_wherever_that_is_said():
    """The group first in the relation, groups that are a dataset too, and members that two tables name."""
    first = GROUPS.replace("lives_in(P, H)", "holds(H, P)")
    also = GROUPS + "dataset(houses, domain(H, home(H))).\n"
    for study in (first, also):
        assert planned(lines_of(study), TABLES) != "refused"
        assert planned(lines_of(study.replace("at_most(6)", "at_most(5)")), TABLES) == "refused"
    second = "source(more, 'm.csv'). public(more). column(more, person, person(P)). column(more, home, home(H)).\n"
    second = GROUPS + second + "relation(more, lives_in(P, H)).\n"
    tables = TABLES | {"more": pd.DataFrame({"person": ["x", "y"], "home": ["a", "b"]})}
    assert planned(lines_of(second), tables) == "refused"  # seven in one home
    assert planned(lines_of(second.replace("at_most(6)", "at_most(7)")), tables) != "refused"


#: One number as a table may have it.
WRITTEN = {
    "whole": lambda number: number,
    "decimal": float,
    "text": str,
    "7.0": lambda number: f"{number}.0",
    "7.00": lambda number: Decimal(f"{number}.00"),
    "7.000": lambda number: Decimal(f"{number}.000"),
}
MORE_HOMES = GROUPS + (
    "source(more, 'm.csv'). public(more). column(more, person, person(P)). column(more, home, home(H)).\n"
    "relation(more, lives_in(P, H)).\n"
)


@pytest.mark.parametrize("second", WRITTEN)
@pytest.mark.parametrize("first", WRITTEN)
@pytest.mark.by_day(6)
def test_members_that_two_tables_name_are_counted_together_however_they_are_written(first, second):
    """Homes with members in both tables, and people in both: as many as there are is taken, or it is refused."""
    chance = random.Random(f"{first} {second}")
    pairs = [(who, home) for who in range(8) for home in range(3) if chance.random() < 0.4]
    homes: dict[int, set[int]] = {}
    for who, home in pairs:
        homes.setdefault(home, set()).add(who)
    joined: list[set[int]] = []
    for own in homes.values():  # who is in two homes joins them
        met = [other for other in joined if other & own]
        joined = [other for other in joined if not other & own] + [own.union(*met)]
    most, cut = max(map(len, joined)), chance.randrange(1, len(pairs))
    tables = {
        name: pa.table(
            dict(zip(("person", "home"), ([*map(WRITTEN[way], own)] for own in zip(*rows, strict=True)), strict=True))
        )
        for name, way, rows in (("homes", first, pairs[:cut]), ("more", second, pairs[cut:]))
    }

    def bounded(number: int) -> Any:
        return planned(lines_of(MORE_HOMES.replace("at_most(6)", f"at_most({number})")), tables)

    assert bounded(most - 1) == "refused"
    assert bounded(most) != "refused" or first != second


@pytest.mark.parametrize("more", ["lives_in(P, H) :- moved(P, H).", "lives_in(c, 7).", "lives_in(P, 7) :- person(P)."])
@pytest.mark.parametrize("seed", range(2))
def test_members_that_clauses_add_are_not_overlooked(more, seed):
    """Whoever a clause or a fact puts into a home stands in no table: groups that are counted in tables refuse it."""
    reads = (
        "random(z(P)) :- person(P), lives_in(P, H). depends(z(P), [], 1) :- lives_in(P, H).\n"
        "sum(zz, z(P), person(P)). publish(zz, zz, a(public)).\n"
        "source(f, 'f.csv'). public(f). column(f, p, person(P)). column(f, h, home(H)). relation(f, moved(P, H)).\n"
    )
    tables = TABLES | {"f": pd.DataFrame({"p": ["c", "d"], "h": ["a", "a"]})}
    lines = lines_of(GROUPS + reads)
    assert planned(lines, tables) != "refused"
    lines.append(more)
    random.Random(seed).shuffle(lines)
    assert planned(lines, tables) == "refused"


#: How many rows of a person count, and whether a table with that rule may list everybody beside others that may not.
LISTING = "rows_per_person({}, 1)."
OF_SEVERAL = (
    "rows_per_person({}, 2).",
    "rows_per_person({}, 4).",
    "each_person({}, mean).",
    "rows_per_person({}, 1, last(day)).",
)


def tables_of_people(chance: random.Random) -> tuple[list[str], dict[str, pa.Table], list[str]]:
    """Up to three private tables of the same people, their rows, and the tables that list everybody."""
    names = chance.sample(["a", "b", "c"], k=chance.randrange(1, 4))
    rules = {name: chance.choice([LISTING, LISTING, *OF_SEVERAL]) for name in names}
    things = {name for name in names if chance.random() < 0.2}
    lines, rows = ["dataset(d, domain(P, p(P)))."], {}
    lines += ["privacy_requirement(o(public), d, dp(1)).", "count(n, p(P)). publish(n, n, o(public))."]
    for name, rule in rules.items():
        who = [chance.choice("uvwxyz") for _ in range(chance.randrange(1, 7))]
        rows[name] = pa.table({"id": who, name: [1.0] * len(who), "day": [1] * len(who), "kind": ["k"] * len(who)})
        lines += [f"source({name}, '{name}.csv'). column({name}, id, p(P)). {rule.format(name)} missing({name}, skip)."]
        lines += [f"column({name}, {name}, x{name}(P)). random(x{name}(P)) :- p(P). range(x{name}(P), 0, 9)."]
        lines += [f"sum(s{name}, x{name}(P), p(P)). publish(s{name}, s{name}, o(public))."]
        lines += [f"column({name}, kind, k{name}(K)). relation({name}, has{name}(P, K))."] if name in things else []
        lines += [f"count(h{name}, (p(P), has{name}(P, k))). publish(h{name}, h{name}, o(public))."] * (name in things)
    listing = [name for name in names if rules[name] == LISTING]  # whatever else it names
    homes = listing or names
    return lines_of("\n".join(lines)), rows, homes


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.by_day(5)
def test_who_there_is_hangs_on_no_order_and_on_no_other_table(seed):
    """Several private tables say whose a row is: everybody counts whom one that lists people names.

    The number of people is the same in any order of lines, and whoever has rows elsewhere.
    """
    chance = random.Random(seed)
    lines, rows, homes = tables_of_people(chance)
    for changed in (0, 1):
        chance.shuffle(lines)
        network = Network.from_spec(load("\n".join(lines)))
        others = {name: table if name in homes else table.slice(changed) for name, table in rows.items()}
        found = network.evaluate(others).aggregates
        number, *sums = (
            network.node(node).question.encode(found[node])[0] for node in ("n", *(f"s{h}" for h in homes))
        )
        everybody = {who for home in homes for who in rows[home]["id"].to_pylist()}
        assert number == len(everybody)
        # Everybody in such a table has a 1 there, of one row, and nobody else has any.
        alone = {home: set(ids) for home in homes if len(set(ids := rows[home]["id"].to_pylist())) == len(ids)}
        assert [one for home, one in zip(homes, sums, strict=True) if home in alone] == list(map(len, alone.values()))
