"""Set-at-a-time evaluation equals grounding and computing every individual by itself."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from network.oracle import by_hand
from network.rows_by_hand import in_order
from network.studies import ONCOLOGY, oncology_tables
from sfumato.lang import Compound, load
from sfumato.network import Network
from sfumato.network.evaluate import GROUP, ID


def place(value, low, high, missing):
    return missing if value is None or math.isnan(value) else min(max(float(value), low), high)


def patient_by_hand(spec, tables, person):
    """One patient of the oncology study: rows picked out in Python, then `by_hand`."""
    row = next(r for r in tables["patients"].to_pylist() if r["id"] == person)
    p = Compound(person)
    cells = {
        f"age({person})": place(row["age"], 0, 110, 50.0),
        f"reportedSmoking({person})": place(row["smoking"], 0, 1, 0.5),
        f"sex({person})": row["sex"] if row["sex"] in ("f", "m") else "f",
    }
    mine = [r for r in tables["alterations"].to_pylist() if r["patient"] == person]
    for gene in ("a1", "a2", "a3", "a4", "a5", "a6"):
        found = in_order(person, [r for r in mine if r["gene"] == gene])
        cells[f"geneAlteration({person}, {gene})"] = place(found[0]["present"] if found else None, 0, 1, 0.5)
    facts = [Compound("patient", (p,)), Compound("cancer", (Compound("c"),)), Compound("cancer", (Compound("k"),))]
    cells |= {"avgCancerSurvival(c)": 20.0, "avgCancerSurvival(k)": 44.0}
    known = [r["cancer"] for r in tables["registry"].to_pylist() if r["patient"] == person]
    facts += [Compound("patientHasCancer", (p, Compound(cancer))) for cancer in known]
    values = by_hand(spec, facts, cells)
    return {name.replace(person, "P"): value for name, value in values.items()}


@pytest.fixture(scope="module")
def oncology():
    spec, tables = load(ONCOLOGY), oncology_tables(12)
    network = Network.from_spec(spec, tables)
    return spec, tables, network, network.evaluate(tables)


def test_oncology_equals_the_patients_one_by_one(oncology):
    spec, tables, _, values = oncology
    table = values.individuals["patientDataset"].to_pylist()
    assert sorted(row["id"] for row in table) == sorted(tables["patients"]["id"].to_pylist())
    for row in table:
        expected = patient_by_hand(spec, tables, row["id"])
        for name, value in expected.items():
            if name not in values.shared:
                assert row[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12)), name
        absent = {name for name, value in row.items() if value is None}
        assert absent == set(row) - {ID, GROUP} - set(expected)


def test_oncology_aggregates_equal_sums_in_python(oncology):
    spec, tables, network, values = oncology
    people = {p: patient_by_hand(spec, tables, p) for p in tables["patients"]["id"].to_pylist()}
    drugs = {(r["patient"], r["drug"]) for r in tables["treatments"].to_pylist()}
    for drug in ("d1", "d2"):
        chosen = [
            v["expectedSurvivalLength(P)"]
            for p, v in people.items()
            if (p, drug) in drugs and v["age(P)"] > 40 and "expectedSurvivalLength(P)" in v
        ]
        found = values.aggregates[f"survivalByDrug({drug})"].vector
        assert found == pytest.approx([sum(chosen), len(chosen)], rel=1e-12)
    ages = [v["age(P)"] for v in people.values()]
    assert values.aggregates["ages"].vector.tolist() == np.histogram(ages, [0, 20, 40, 60, 111])[0].tolist()
    women = [p for p, v in people.items() if v["sex(P)"] == "f" and (p, "d1") not in drugs]
    assert values.aggregates["untreatedWomen"].vector.tolist() == [len(women)]
    smoke = [v["reportedSmoking(P)"] for v in people.values()]
    expected = [
        sum(a * a for a in ages),
        sum(a * s for a, s in zip(ages, smoke, strict=True)),
        sum(s * s for s in smoke),
    ]
    assert values.aggregates["moments"].vector == pytest.approx(expected, rel=1e-12)
    assert len(network.node("ages").question.labels()) == 4


def test_sums_do_not_depend_on_the_order_of_the_rows(oncology):
    _, tables, network, values = oncology
    shuffled = {}
    for name, table in tables.items():
        order = list(range(table.num_rows))
        random.Random(3).shuffle(order)
        shuffled[name] = table.take(order)
    again = network.evaluate(shuffled)
    for name, value in values.aggregates.items():
        assert again.aggregates[name].same(value)


def test_removing_one_person_moves_questions_by_at_most_what_they_claim():
    tables = oncology_tables(12)
    network = Network.from_spec(load(ONCOLOGY + "\nadjacency(patientDataset, add_remove).\n"), tables)
    values = network.evaluate(tables)
    for gone in tables["patients"]["id"].to_pylist()[:4]:
        without = dict(tables)
        for name, key in (("patients", "id"), ("alterations", "patient"), ("treatments", "patient")):
            keep = [value != gone for value in tables[name][key].to_pylist()]
            without[name] = tables[name].filter(keep)
        again = network.evaluate(without)
        for node in network.aggregates:
            for pure in (False, True):
                drawn = [node.question.encode(one.aggregates[node.name], pure) for one in (values, again)]
                claim = node.question.moves().l1 if pure else node.question.moves().l2
                assert np.linalg.norm(drawn[0] - drawn[1], 1 if pure else 2) <= claim * (1 + 2**-20)


NUMBERED = """
source(people, 'people.parquet').
column(people, id, person(P)). rows_per_person(people, 1). missing(people, never).
column(people, x, x(P)).
column(people, y, y(P)).
column(people, g, g(P)).
source(long, 'long.parquet').
column(long, who, person(P)). rows_per_person(long, 10). missing(long, never).
column(long, item, thing(I)).
column(long, value, v(P, I)).
source(tastes, 'tastes.parquet').
public(tastes).
column(tastes, who, person(P)).
column(tastes, item, thing(I)).
relation(tastes, likes(P, I)).
range(x(P), -2, 2). range(y(P), 0.5, 3). range(g(P), [red, green, 'deep blue']).
range(v(P, I), 0, 1).
missing(y(P), 1.5).
random(x(P)) :- person(P).
random(y(P)) :- person(P).
random(g(P)) :- person(P).
random(v(P, I)) :- person(P), item(I).
dataset(people, domain(P, person(P))).
privacy_requirement(openness, people, dp(1.0)).
"""

atoms = ["x(P)", "y(P)", "colour(P)"]
forms = st.sampled_from(
    [
        "{0} + {1}",
        "{0} - {1}",
        "{0} * {1}",
        "{0} / (1 + abs({1}))",
        "exp(-abs({0}))",
        "log(1 + abs({0}))",
        "sqrt(abs({0}))",
        "tanh({0} - {1})",
        "max([{0}, {1}, 0.25])",
        "min({0}, {1})",
        "clip({0}, -1, {1})",
        "mean([{0}, {1}])",
        "-{0}",
        "abs({0}) - -0.5",
    ]
)


@st.composite
def programs(draw):
    """A study with negation, findall, append, recursion over lists, lookups and nested functions; and its tables."""
    items = [f"i{k}" for k in range(draw(st.integers(1, 4)))]
    lines = [f"item({i})." for i in items]
    weights = draw(st.lists(st.floats(-2, 2).map(lambda w: round(w, 3)), min_size=len(items), max_size=len(items)))
    lines += [f"factor({i}, {w!r})." for i, w in zip(items, weights, strict=True)]
    barred = draw(st.sets(st.sampled_from(items)))
    lines += [f"barred({i})." for i in sorted(barred)] or ["barred(none)."]
    colours = draw(st.lists(st.floats(-1, 1).map(lambda w: round(w, 3)), min_size=3, max_size=3))
    rows = ", ".join(
        f"row([{level}], {value!r})" for level, value in zip(("red", "green", "'deep blue'"), colours, strict=True)
    )
    lines += [
        "random(colour(P)) :- person(P).",
        f"depends(colour(P), [g(P)], lookup([g(P)], [{rows}])).",
        "random(open(P, I)) :- person(P), item(I), \\+ barred(I).",
        "depends(open(P, I), [v(P, I), x(P)], tanh(W * v(P, I) - x(P))) :- factor(I, W).",
        "random(liked(P)) :- person(P).",
        "depends(liked(P), Parents, S * y(P)) :- findall(v(P, I), (likes(P, I), item(I)), Vs), "
        "append([0.125], Vs, All), total(All, S), Parents = [y(P)|Vs].",
        "total([], 0).",
        "total([V|Vs], V + S) :- total(Vs, S).",
        "random(top(P)) :- person(P).",
        "depends(top(P), Parents, max(Values)) :- findall(open(P, I), random(open(P, I)), Opens), "
        "findall(v(P, I), (item(I), \\+ likes(P, I)), Others), append(Opens, Others, Some), "
        "append([x(P)], Some, Parents), append([0.5 * x(P)|Some], [-1], Values).",
    ]
    known = [*atoms, "liked(P)", "top(P)"]
    for k in range(draw(st.integers(1, 4))):
        body, parents = draw(nested(known))
        lines += [f"random(d{k}(P)) :- person(P).", f"depends(d{k}(P), [{', '.join(sorted(parents))}], {body})."]
        known.append(f"d{k}(P)")
    if draw(st.booleans()):
        lines.append("range(d0(P), -0.5, 0.75).")
    lines.append(f"dp_rv(openness, {known[-1]}) :- person(P).")
    return NUMBERED + "\n".join(lines), items, draw(tables_for(items))


@st.composite
def nested(draw, known):
    parents: set[str] = set()

    def part(depth):
        if depth == 0 or draw(st.booleans()):
            choice = draw(st.sampled_from(known))
            parents.add(choice)
            return choice
        return "(" + draw(forms).format(part(depth - 1), part(depth - 1)) + ")"

    return part(2), parents


@st.composite
def tables_for(draw, items):
    ids = ["ann", "bo", "cy"][: draw(st.integers(1, 3))]
    cell = st.none() | st.just(math.nan) | st.floats(-5, 5)
    people = [
        (i, draw(cell), draw(cell), draw(st.sampled_from(["red", "green", "deep blue", "grey", None]))) for i in ids
    ]
    if draw(st.booleans()):  # a second row of the same person
        people.append((ids[0], draw(cell), draw(cell), "green"))
    pairs = [(i, item) for i in [*ids, "stranger"] for item in [*items, "other"]]
    long = [(i, item, draw(cell)) for i, item in draw(st.lists(st.sampled_from(pairs), max_size=8))]
    tastes = draw(st.lists(st.sampled_from(pairs), max_size=5))
    return people, long, tastes


def arrow(rows, names, kinds):
    return pa.table({n: pa.array([r[k] for r in rows], t) for k, (n, t) in enumerate(zip(names, kinds, strict=True))})


def check_program(program):
    text, items, (people, long, tastes) = program
    spec = load(text)
    words, numbers = pa.string(), pa.float64()
    tables = {
        "people": arrow(people, ("id", "x", "y", "g"), (words, numbers, numbers, words)),
        "long": arrow(long, ("who", "item", "value"), (words, words, numbers)),
        "tastes": arrow(tastes, ("who", "item"), (words, words)),
    }
    network = Network.from_spec(spec, tables)
    table = network.evaluate(tables).individuals["people"].to_pylist()
    assert {row["id"] for row in table} == {row[0] for row in people}
    colours = {"red", "green", "deep blue"}
    for row in table:
        person = row["id"]
        mine = [r for r in tables["people"].to_pylist() if r["id"] == person]
        first = in_order(person, mine)[0]
        cells = {
            f"x({person})": place(first["x"], -2, 2, 0.0),
            f"y({person})": place(first["y"], 0.5, 3, 1.5),
            f"g({person})": first["g"] if first["g"] in colours else "red",
        }
        for item in items:
            mine = [r for r in tables["long"].to_pylist() if r["who"] == person]
            found = [r for r in in_order(person, mine) if r["item"] == item]
            cells[f"v({person}, {item})"] = place(found[0]["value"] if found else None, 0, 1, 0.5)
        p = Compound(person)
        facts = [Compound("person", (p,))]
        facts += [Compound("thing", (Compound(i),)) for i in sorted({i for _, i in tastes})]
        facts += [Compound("likes", (p, Compound(i))) for i in sorted({i for who, i in tastes if who == person})]
        expected = by_hand(spec, facts, cells)
        for name, value in expected.items():
            found = row[name.replace(f"({person}", "(P")]
            if isinstance(value, str):
                assert found == value
            else:
                np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12, err_msg=name)
        for group in network.groups:
            for node in group.nodes:
                value = row.get(node.name)
                if isinstance(value, float) and group.key is None and len(network.groups) == 1 and node.bounds.bounded:
                    assert value in node.bounds


@settings(
    max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(programs())
def test_random_programs_equal_their_individuals_one_by_one(program):
    check_program(program)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_many_random_programs_equal_their_individuals_one_by_one(program):
    check_program(program)
