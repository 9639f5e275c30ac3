"""People whose variables are made by different clauses: every number is what pandas finds, person by person.

A study is drawn at random: classes that a public table tells apart, a clause of its own for each class or none, cells
that may be absent and are then skipped. What a person adds depends on her own clauses alone, and moves a number no
further than the question says.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import SfumatoError
from sfumato.lang import load
from sfumato.network import Network
from sfumato.network.observations import check_observations
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

HEAD = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
source(m, 'm.csv'). public(m). column(m, id, p(P)). column(m, cls, cls(C)). relation(m, in(P, C)).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 100).
column(t, y, y(P)). range(y(P), 0, 100). missing(y(P), skip).
column(t, z, z(P)). random(z(P)) :- p(P). range(z(P), 0, 10). missing(z(P), skip).
source(v, 'v.csv'). column(v, id, p(P)). rows_per_person(v, 2).
column(v, c, c(P)). random(c(P)) :- p(P). range(c(P), 0, 10). missing(c(P), skip).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1000000)).
"""
#: What k(P) is in a class: the cells it is computed from, how it is written, and what it comes to.
FORMULAS = {
    "x": ("x", "x(P)", lambda row: row["x"]),
    "y": ("y", "y(P)", lambda row: row["y"]),
    "x and y": ("xy", "(x(P) + y(P)) / 2", lambda row: (row["x"] + row["y"]) / 2),
    "y and z": ("yz", "y(P) * z(P) / 10", lambda row: row["y"] * row["z"] / 10),
    "a step between": ("y", "h(P) - y(P)", lambda row: row["y"]),
    "nothing": ("", "42", lambda row: 42.0),
}
#: Questions about rows of which a person may have two.
ROW_QUESTIONS = {
    "sum(rows, c(P), (p(P), k(P) > 40)).": ("kc", lambda row: row["k"] > 40, lambda row: [row["c"]]),
    "count(many, (p(P), c(P) > 3, k(P) > 20)).": (
        "kc",
        lambda row: row["c"] > 3 and row["k"] > 20,
        lambda row: [1.0],
    ),
    "sum(few, c(P), (p(P), y(P) > 10)).": ("yc", lambda row: row["y"] > 10, lambda row: [row["c"]]),
    "moment2(two, [c(P), k(P)], p(P)).": (
        "kc",
        lambda row: True,
        lambda row: [row["c"] ** 2, row["c"] * row["k"], row["k"] ** 2],
    ),
    "sum(all, c(P), p(P)).": ("c", lambda row: True, lambda row: [row["c"]]),
}
#: Questions, the variables they read, who counts, and what she adds.
QUESTIONS = {
    "sum(sum, k(P), p(P)).": ("k", lambda row: True, lambda row: [row["k"]]),
    "count(count, (p(P), k(P) > 40)).": ("k", lambda row: row["k"] > 40, lambda row: [1.0]),
    "mean(mean, k(P), (p(P), x(P) > 30)).": ("kx", lambda row: row["x"] > 30, lambda row: [row["k"], 1.0]),
    "sum(others, x(P), (p(P), \\+ k(P) > 40)).": ("kx", lambda row: row["k"] <= 40, lambda row: [row["x"]]),
    "sum(plain, x(P), p(P)).": ("x", lambda row: True, lambda row: [row["x"]]),
    "sum(both, k(P), (p(P), y(P) > 10)).": ("ky", lambda row: row["y"] > 10, lambda row: [row["k"]]),
    "sum(third, z(P), (p(P), k(P) > 10)).": ("kz", lambda row: row["k"] > 10, lambda row: [row["z"]]),
    "moment2(square, [k(P), x(P)], (p(P), in(P, v))).": (
        "kx",
        lambda row: row["cls"] == "v",
        lambda row: [row["k"] ** 2, row["k"] * row["x"], row["x"] ** 2],
    ),
    "histogram(bins, k(P), p(P), [20, 60]).": (
        "k",
        lambda row: True,
        lambda row: np.eye(3)[int(np.searchsorted([20, 60], row["k"], side="right"))],
    ),
}
PUBLISHED = "publish(s, plain, o(pub))."
CLASSES = ("o", "v", "w")


@dataclass(frozen=True)
class Drawn:
    """A study and who has what: the formula of each class that has k(P), the classes that have y(P)."""

    formulas: dict[str, str]
    having_y: set[str]
    text: str

    def cells(self, variable: str, row: dict) -> str | None:
        """The cells behind a variable of a person; None where she does not have it."""
        if variable == "k":
            return FORMULAS[self.formulas[row["cls"]]][0] if row["cls"] in self.formulas else None
        return None if variable == "y" and row["cls"] not in self.having_y else variable

    def adds(self, question: str, row: dict) -> list[float] | None:
        """What a person adds to a question; None where she does not count in it."""
        read, counts, added = (QUESTIONS | ROW_QUESTIONS)[question]
        cells = [self.cells(variable, row) for variable in read]
        if None in cells or any(math.isnan(row[cell]) for cell in "".join(map(str, cells))):
            return None
        known = {**row, "k": FORMULAS[self.formulas[row["cls"]]][2](row) if "k" in read else math.nan}
        return list(added(known)) if counts(known) else None


def drawn(seed: int) -> Drawn:
    rng = random.Random(seed)
    everybody = rng.random() < 0.3
    formulas = {one: rng.choice(list(FORMULAS)) for one in CLASSES if everybody or rng.random() < 0.8}
    if set(formulas.values()) <= {"nothing"}:  # one number for all has no bins
        formulas["v"] = "y"
    reading = {one for one, formula in formulas.items() if "y" in FORMULAS[formula][0]}
    having = {*CLASSES, ""} if rng.random() < 0.5 else reading | {"w"} | {one for one in CLASSES if rng.random() < 0.5}
    lines = ["random(y(P)) :- p(P)."] if "" in having else [f"random(y(P)) :- in(P, {one})." for one in sorted(having)]
    lines += ["random(h(P)) :- in(P, C), has_y(C). depends(h(P), [y(P)], 2 * y(P)) :- in(P, C), has_y(C)."]
    lines += [f"has_y({one})." for one in sorted(having - {""})] or ["has_y(nobody)."]
    for one, formula in formulas.items():
        cells, written, _ = FORMULAS[formula]
        parents = ", ".join([*(f"{cell}(P)" for cell in cells), *(["h(P)"] if "h(P)" in written else [])])
        lines.append(f"random(k(P)) :- in(P, {one}). depends(k(P), [{parents}], {written}) :- in(P, {one}).")
    return Drawn(
        formulas, having, HEAD + "range(k(P), 0, 100).\n" + "\n".join([*lines, *QUESTIONS, *ROW_QUESTIONS, PUBLISHED])
    )


def people(seed: int, size: int = 40) -> dict[str, pd.DataFrame]:
    """The tables; some people are in no class, a third of the cells is absent, rows of v are none, one or two."""
    rng = np.random.default_rng(seed)
    numbers = {"x": rng.integers(0, 201, size) / 2, "y": rng.integers(0, 201, size) / 2, "z": rng.integers(0, 11, size)}
    private = pd.DataFrame({"id": [f"p{place}" for place in range(size)], **numbers})
    for cell in "yz":
        private[cell] = private[cell].astype(float).mask(rng.random(size) < 0.33)
    public = pd.DataFrame({"id": private["id"], "cls": rng.choice([*CLASSES, ""], size)})
    owners = private["id"].repeat(rng.integers(0, 3, size))
    visits = pd.DataFrame({"id": owners, "c": rng.integers(0, 21, len(owners)) / 2})
    visits["c"] = visits["c"].mask(rng.random(len(owners)) < 0.33)
    return {"t": private, "m": public[public["cls"] != ""].reset_index(drop=True), "v": visits}


def rows_of(tables: dict[str, pd.DataFrame]) -> list[dict]:
    return tables["t"].merge(tables["m"], how="left").fillna({"cls": ""}).to_dict("records")


def visits_of(tables: dict[str, pd.DataFrame]) -> list[dict]:
    return rows_of({**tables, "t": tables["t"].merge(tables["v"])})


def name_of(question: str) -> str:
    return question.split("(")[1].split(",", maxsplit=1)[0]


def by_hand(study: Drawn, question: str, rows: list[dict]) -> list[float] | float:
    return np.sum([added for row in rows if (added := study.adds(question, row)) is not None], axis=0).tolist()


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.by_day(4)
def test_everybody_adds_what_her_own_clauses_say(seed):
    study, tables = drawn(seed), people(seed)
    asked = [*((one, rows_of(tables)) for one in QUESTIONS), *((one, visits_of(tables)) for one in ROW_QUESTIONS)]
    network = Network.from_spec(load(study.text), {"m": tables["m"]})
    for sums_only in (False, True):
        sums = network.evaluate(tables, sums_only=sums_only).aggregates
        for question, rows in asked:
            wanted = by_hand(study, question, rows) or np.zeros(len(sums[name_of(question)].vector))
            found = sums[name_of(question)].vector
            assert found == pytest.approx(wanted, rel=1e-6, abs=1e-3), (study.formulas, study.having_y, question)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.by_day(2)
def test_nobody_moves_a_number_further_than_the_question_says(seed):
    study, rng = drawn(seed), random.Random(seed)
    tables, others = people(seed, 6), people(seed + 1000, 6)
    network = Network.from_spec(load(study.text), {"m": tables["m"]})
    before = network.evaluate(tables, sums_only=True).aggregates
    for place, person in enumerate(tables["t"]["id"]):
        changed, visits, other = tables["t"].copy(), tables["v"], rng.randrange(6)
        changed.loc[place, ["x", "y", "z"]] = others["t"].loc[other, ["x", "y", "z"]]
        new = others["v"][others["v"]["id"] == f"p{other}"].assign(id=person)
        changed = {**tables, "t": changed, "v": pd.concat([visits[visits["id"] != person], new])}
        after = network.evaluate(changed, sums_only=True).aggregates
        for node in network.aggregates:
            for pure, least in ((True, node.question.moves().l1), (False, node.question.moves().l2)):
                one, other = (node.question.encode(found[node.name], pure) for found in (before, after))
                moved = np.linalg.norm(np.asarray(one - other, float), 1 if pure else 2)
                assert moved <= least * (1 + 1e-9), (study.formulas, study.having_y, node.name)


@pytest.mark.parametrize("shown", ["publish(r, k(P), o(pub)) :- p(P).", "observe(pub, k(P)) :- p(P)."])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(4)
def test_a_row_for_everybody_needs_everybodys_cells(seed, shown):
    """Nobody whose cell is absent is shown with the middle of a range in its place, whichever class reads it."""
    study, tables = drawn(seed), people(seed)
    reading = {one for one, formula in study.formulas.items() if set("yz") & set(FORMULAS[formula][0])}
    spec, classes = load(study.text + "\n" + shown), tables["m"]["cls"]
    for met in (tables["m"], tables["m"][~classes.isin(reading)]):
        if set(met["cls"]) & reading:
            with pytest.raises(SfumatoError, match=r"has a row for everybody.*nothing was spent"):
                Network.from_spec(spec, {"m": met})
        elif set(met["cls"]) & study.formulas.keys():
            Network.from_spec(spec, {"m": met})


@pytest.mark.parametrize("of_y", ["p(P)", "in(P, o)"])
def test_what_is_expected_of_those_who_are_there(of_y):
    """A coin of everybody, drawn by a cell that may be absent in one class and by another one in the other."""
    text = (
        HEAD
        + f"""random(y(P)) :- {of_y}. random(coin(P)) :- in(P, C).
    depends(coin(P), [y(P)], bernoulli(y(P) / 100)) :- in(P, o).
    depends(coin(P), [x(P)], bernoulli(x(P) / 100)) :- in(P, v).
    sum(heads, coin(P), p(P)). count(chosen, (p(P), coin(P) =:= 1)). sum(weight, x(P), (p(P), coin(P) =:= 0)).
    publish(s, heads, o(pub))."""
    )
    tables = people(3)
    tables["m"] = tables["m"][tables["m"]["cls"] != "w"]
    rows = [row for row in rows_of(tables) if row["cls"] == "v" or (row["cls"] == "o" and row["y"] >= 0)]
    chances = [row["y" if row["cls"] == "o" else "x"] / 100 for row in rows]
    network = Network.from_spec(load(text), {"m": tables["m"]})
    for sums_only in (False, True):
        sums = network.evaluate(tables, sums_only=sums_only).aggregates
        assert sums["heads"].vector == pytest.approx([sum(chances)], rel=1e-6)
        assert sums["chosen"].vector == pytest.approx([sum(chances)], rel=1e-6)
        weight = sum((1 - chance) * row["x"] for chance, row in zip(chances, rows, strict=True))
        assert sums["weight"].vector == pytest.approx([weight], rel=1e-6)


@pytest.mark.parametrize("of_k", ["p(P)", "in(P, C)"])
@pytest.mark.parametrize("of_y", ["p(P)", "in(P, o)"])
@pytest.mark.parametrize("first", ["o", "v"])
def test_the_published_mean_is_that_of_those_who_are_there(of_k, of_y, first):
    """Of class `first` k is y, which three of eight people lack; of the other class it is x."""
    second = {"o": "v", "v": "o"}[first]
    text = HEAD + f"random(y(P)) :- {of_y if first == 'o' else 'p(P)'}. random(k(P)) :- {of_k}. range(k(P), 0, 100)."
    text += f"\ndepends(k(P), [y(P)], y(P)) :- in(P, {first}). depends(k(P), [x(P)], x(P)) :- in(P, {second})."
    text += "\nmean(n, k(P), p(P)). publish(s, n, o(pub))."
    y = [50.0, 50.0, 50.0, 50.0, None, None, 20.0, 20.0]
    private = pd.DataFrame({"id": [str(place) for place in range(8)], "x": [99.0] * 8, "y": y, "z": [1.0] * 8})
    public = pd.DataFrame({"id": private["id"], "cls": ["o", "v"] * 4})
    tables = {"t": private, "m": public, "v": people(1)["v"]}
    plan = make_plan(text, {"m": public}, sizes={"d": 8})
    found = run_plan(plan, tables, None, random_state=1)["s", "pub"].to_pydict()["value"][0]
    assert found == pytest.approx((50 + 50 + 20 + 4 * 99) / 7, abs=0.01)


@pytest.mark.parametrize(
    "asked", ["sum(n, k(P), p(P)).", "count(n, (p(P), k(P) > 5)).", "mean(n, x(P), (p(P), k(P) > 5))."]
)
@pytest.mark.parametrize("classes", ["ov", "vo"])
def test_rows_of_some_and_persons_of_others_are_not_added_up(asked, classes):
    one, other = classes
    text = HEAD + f"random(y(P)) :- p(P). random(k(P)) :- in(P, C). depends(k(P), [x(P)], x(P)) :- in(P, {one}).\n"
    text += f"depends(k(P), [c(P)], c(P)) :- in(P, {other}). {asked} publish(s, n, o(pub))."
    with pytest.raises(SfumatoError, match=r"rows of v .*rows_per_person\(v, 1\).*nothing was spent"):
        Network.from_spec(load(text), {"m": people(1)["m"]})


#: What g(P) may be: words or whole numbers, of which each class has its own.
LEVELS = {"words": ("a", "b", "c", "d"), "numbers": (1, 2, 5, 7)}


def laws_of(seed: int, levels: tuple) -> dict[str, dict]:
    """The chances of g(P) in each class; some have no g(P)."""
    rng = random.Random(seed)
    laws = {}
    for one in [*CLASSES[:2], *CLASSES[2:][: rng.randrange(2)]]:
        own = rng.sample(levels, 2)
        laws[one] = dict(zip(own, [(quarter := rng.choice([0.25, 0.5, 0.75])), 1 - quarter], strict=True))
    return laws


@pytest.mark.parametrize("kind", LEVELS)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.by_day(5)
def test_levels_are_those_of_all_structures(seed, kind):
    laws, tables = laws_of(seed, LEVELS[kind]), people(seed)
    met = [level for level in LEVELS[kind] if any(level in law for law in laws.values())]
    lines = ["histogram(h, g(P), p(P)). sum(weight, x(P), p(P), by([g(P)])). random(y(P)) :- p(P)."]
    for one, law in laws.items():
        listed = ", ".join(f"{level}: {chance}" for level, chance in law.items())
        lines.append(f"random(g(P)) :- in(P, {one}). depends(g(P), [], discrete([{listed}])) :- in(P, {one}).")
    lines += [
        f"count(is_{level}, (p(P), g(P) = {level})). count(not_{level}, (p(P), \\+ g(P) = {level}))." for level in met
    ]
    lines += ["sum(total, g(P), p(P)). count(large, (p(P), g(P) > 2))."] if kind == "numbers" else []
    text = HEAD + "\n".join([*lines, "publish(s, h, o(pub))."])
    network = Network.from_spec(load(text), {"m": tables["m"]})
    rows = [row for row in rows_of(tables) if row["cls"] in laws]
    for sums_only in (False, True):
        sums = network.evaluate(tables, sums_only=sums_only).aggregates
        cells = {
            name: dict(zip(network.node(name).question.axes[0].levels, sums[name].vector, strict=True))
            for name in ("h", "weight")
        }
        assert sorted(cells["h"]) == sorted(met)
        for level in met:
            chances = [laws[row["cls"]].get(level, 0.0) for row in rows]
            assert cells["h"][level] == pytest.approx(sum(chances), rel=1e-6)
            assert cells["weight"][level] == pytest.approx(
                sum(c * row["x"] for c, row in zip(chances, rows, strict=True)), rel=1e-6
            )
            assert sums[f"is_{level}"].vector == pytest.approx([sum(chances)], rel=1e-6)
            assert sums[f"not_{level}"].vector == pytest.approx([len(rows) - sum(chances)], rel=1e-6)
        if kind == "numbers":
            each = [laws[row["cls"]].items() for row in rows]
            assert sums["total"].vector == pytest.approx([sum(level * c for law in each for level, c in law)], rel=1e-6)
            large = sum(c for law in each for level, c in law if level > 2)
            assert sums["large"].vector == pytest.approx([large], rel=1e-6)


@pytest.mark.parametrize("classes", ["ov", "vo"])
@pytest.mark.parametrize(
    "asked", ["histogram(n, g(P), p(P)).", "count(n, (p(P), g(P) = a)).", "histogram(n, g(P), p(P), [3])."]
)
@pytest.mark.parametrize("law", ["x(P) / 10", "discrete([1: 0.5, 2: 0.5])", "x(P)"])
def test_words_of_some_and_numbers_of_others_are_refused(classes, asked, law):
    one, other = classes
    text = HEAD + "random(y(P)) :- p(P). random(g(P)) :- in(P, C).\n"
    text += f"depends(g(P), [], discrete([a: 0.5, b: 0.5])) :- in(P, {one}).\n"
    text += f"depends(g(P), [x(P)], {law}) :- in(P, {other}).\n"
    with pytest.raises(SfumatoError, match=r"a word of some individuals and none of others.*nothing was spent"):
        Network.from_spec(load(text + f"{asked} publish(s, n, o(pub))."), {"m": people(1)["m"]})


@pytest.mark.parametrize("classes", ["ov", "vo"])
def test_listed_numbers_of_some_and_any_numbers_of_others_need_cut_points(classes):
    one, other = classes
    text = HEAD + f"random(y(P)) :- p(P). random(g(P)) :- in(P, C). depends(g(P), [x(P)], x(P) / 10) :- in(P, {one}).\n"
    text += f"depends(g(P), [], discrete([1: 0.25, 4: 0.75])) :- in(P, {other}). publish(s, n, o(pub)).\n"
    tables = people(2)
    with pytest.raises(SfumatoError, match="cut points"):
        Network.from_spec(load(text + "histogram(n, g(P), p(P))."), {"m": tables["m"]})
    network = Network.from_spec(load(text + "histogram(n, g(P), p(P), [3])."), {"m": tables["m"]})
    high = [float(row["x"] >= 30) if row["cls"] == one else 0.75 for row in rows_of(tables) if row["cls"] in {*classes}]
    for sums_only in (False, True):
        found = network.evaluate(tables, sums_only=sums_only).aggregates["n"].vector
        assert found == pytest.approx([len(high) - sum(high), sum(high)], rel=1e-6)


SEEN = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10).
source(m, 'm.csv'). public(m). column(m, id, p(P)). column(m, cls, cls(C)). relation(m, in(P, C)). missing(m, never).
random(k(P)) :- in(P, C). dataset(d, domain(P, p(P))).
"""
SIX_PEOPLE = pd.DataFrame({"id": [str(place) for place in range(6)], "cls": ["a", "b"] * 3})


@pytest.mark.parametrize("private", ["a", "b"])
def test_what_somebody_knows_exactly_is_found_in_every_structure(private):
    """k(P) is the private value in one class and a constant in the other, whichever comes first."""
    other = "b" if private == "a" else "a"
    study = SEEN + (
        f"depends(k(P), [x(P)], x(P)) :- in(P, {private}). depends(k(P), [], 3) :- in(P, {other}).\n"
        "privacy_requirement(o(nurse), d, dp(1)). sum(n, x(P), p(P)). publish(s, n, o(nurse)).\n"
        "observe(nurse, k(P)) :- p(P).\n"
    )
    network = Network.from_spec(load(study), {"m": SIX_PEOPLE})
    assert [one.variable for one in check_observations(network, {"m": SIX_PEOPLE})] == ["k(P)"]


def shown_to(seed: int) -> tuple[set[str], set[str], str]:
    """The classes that have a variable, those for which it is published, and the study with HERE for what is shown."""
    rng = random.Random(seed)
    having = {one for one in CLASSES if rng.random() < 0.6} or {"o"}
    shown = {one for one in CLASSES if rng.random() < 0.6} or {"v"}
    shown = having if rng.random() < 0.3 else shown
    text = HEAD.replace("column(m, cls, cls(C)).", "column(m, cls, cls(C)). cls(o). cls(v). cls(w).")
    text += "random(y(P)) :- p(P).\n"
    text += "".join(
        f"random(k(P)) :- in(P, {one}). depends(k(P), [x(P)], x(P)) :- in(P, {one}).\n" for one in sorted(having)
    )
    text += "".join(
        f"random(own(P)) :- in(P, {one}). depends(own(P), [x(P)], x(P)) :- in(P, {one}).\n" for one in sorted(shown)
    )
    line = rng.choice(["publish(each, HERE, o(pub))", "dp_rv(o(pub), HERE)"])
    return having, shown, text + "".join(f"{line} :- in(P, {one}).\n" for one in sorted(shown))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.by_day(2)
def test_nobody_is_shown_whom_a_condition_leaves_out(seed, tmp_path):
    """Classes for which a variable is published: those are shown and nobody else, or the study is refused."""
    having, shown, text = shown_to(seed)
    chance = np.random.default_rng(seed)
    who = [f"u{place}" for place in range(12)]
    classes = dict(zip(who, [*CLASSES, *chance.choice([*CLASSES, ""], 9)], strict=True))
    tables = {
        "t": pd.DataFrame({"id": who, "x": chance.uniform(1, 99, 12), "y": 1.0, "z": 1.0}),
        "v": pd.DataFrame({"id": who, "c": 1.0}),
        "m": pd.DataFrame([(one, cls) for one, cls in classes.items() if cls], columns=["id", "cls"]),
    }
    for what, has in (("x(P)", {*CLASSES, ""}), ("k(P)", having), ("own(P)", shown)):
        written = text.replace("HERE", what)
        if not has <= shown:
            with pytest.raises(
                SfumatoError, match="would be shown of all of them" if has & shown else "publishes nothing"
            ):
                make_plan(written, {"m": tables["m"]})
            continue
        plan = make_plan(written, {"m": tables["m"]})
        run_plan(plan, tables, None, out=tmp_path / what)
        (shown_rows,) = (tmp_path / what).rglob("*.parquet")
        rows = pd.read_parquet(shown_rows)
        assert set(rows.loc[rows[what].notna(), "id"]) == {one for one in who if classes[one] in has}
