"""What a unit consists of: publications rest on their own part of a person, and each part has its own promise."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato import make_plan, run_plan
from sfumato.core import compose
from sfumato.errors import PlanError, SchemaError, StudyError
from sfumato.evidence import verify
from sfumato.evidence.explain import explain
from sfumato.lang import load
from sfumato.network.network import Network
from sfumato.network.parts import check_parts
from sfumato.plan.plan import Plan

NAMES = ("age", "income", "pulse", "dose")
HEAD = "source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).\n" + "".join(
    f"column(t, {name}, {name}(P)). random({name}(P)) :- p(P). range({name}(P), 0, {10 * (place + 1)}).\n"
    for place, name in enumerate(NAMES)
)


#: What counts of several rows of a person; of those that are added up the rows of each part would be others.
ADDED_UP = ("rows_per_person(t, 2)", "rows_per_person(t, 3, last(day))")
RULES = ("rows_per_person(t, 1)", "rows_per_person(t, 1, last(day))", "each_person(t, mean)", *ADDED_UP)


def divided(parts: dict[str, list[str]], budgets: dict[str, str], reads: dict[str, list[str]] | None = None) -> str:
    """A study whose datasets hold these variables; each publishes the sum of what it reads, its own unless said."""
    text = HEAD
    for part, names in parts.items():
        text += f"dataset({part}, domain(P, p(P))). dataset_instance({part}, P) :- p(P).\n"
        text += "".join(f"instance_rv({part}, P, {name}(P)) :- p(P).\n" for name in names)
        text += f"privacy_requirement({part}(public), {part}, {budgets[part]}).\n"
        read = (reads or parts)[part]
        text += f"random(all_{part}(P)) :- p(P).\n"
        text += (
            f"depends(all_{part}(P), [{', '.join(f'{n}(P)' for n in read)}], {' + '.join(f'{n}(P)' for n in read)}).\n"
        )
        text += f"sum(s_{part}, all_{part}(P), p(P)). publish(out_{part}, s_{part}, {part}(public)).\n"
    return text


def rows(chance: np.random.Generator, size: int = 5, of_each: int = 1) -> dict[str, pa.Table]:
    columns = {name: chance.uniform(0, 10 * (place + 1), size * of_each) for place, name in enumerate(NAMES)}
    who = [f"u{place % size}" for place in range(size * of_each)]
    return {"t": pa.table({"id": who, **columns, "day": chance.integers(0, 2, size * of_each)})}


def moved(chance: np.random.Generator, data: dict[str, pa.Table], names: list[str]) -> dict[str, pa.Table]:
    """u2 with other values of these variables, in every row."""
    table = data["t"].to_pylist()
    for row in (row for row in table if row["id"] == "u2"):
        row |= {name: float(chance.uniform(0, 10 * (NAMES.index(name) + 1))) for name in names}
    return {"t": pa.Table.from_pylist(table)}


def sums(network: Network, data: dict[str, pa.Table]) -> dict[str, int]:
    return {name: int(np.ravel(one.units[0])[0]) for name, one in network.evaluate(data).aggregates.items()}


@pytest.mark.parametrize("seed", [*range(1), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_a_change_of_one_part_moves_what_its_promise_pays_for(seed):
    chance = np.random.default_rng(seed)
    order = list(chance.permutation(NAMES))
    cut = int(chance.integers(1, 4))
    parts = {"first": order[:cut], "second": order[cut:]}
    plan = make_plan(divided(parts, {"first": "gdp(0.5)", "second": "gdp(0.2)"}), sizes={"p": 5})
    data = rows(chance)
    before = sums(plan.network, data)
    for part, names in parts.items():
        after = sums(plan.network, moved(chance, data, names))
        assert {name for name in before if before[name] != after[name]} == {f"s_{part}"}
    asked = {promise.observers[0]: promise for promise in plan.promises}
    for part, mu in (("first", 0.5), ("second", 0.2)):
        (kept,) = [asked[f"public ({part})"].kept]
        assert kept.implies(asked[f"public ({part})"].asked) is True
        assert compose(plan.events("p", (f"public ({part})",))).delta(1.0) <= asked[f"public ({part})"].asked.delta(1.0)
        assert mu == asked[f"public ({part})"].asked.mu
    assert plan.cost("p").mu == pytest.approx(math.hypot(0.5, 0.2), rel=1e-6)  # a whole person: never the larger alone


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", [*range(1), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_which_rows_are_used_for_a_part_does_not_hang_on_another(seed, rule):
    """Several rows of everybody, of which some count: another age does not choose another income, or it is refused."""
    chance = np.random.default_rng(seed)
    order = list(chance.permutation(NAMES))
    cut = int(chance.integers(1, 4))
    parts = {"first": order[:cut], "second": order[cut:]}
    text = divided(parts, {"first": "gdp(0.5)", "second": "gdp(0.2)"}).replace("rows_per_person(t, 1)", rule)
    if rule in ADDED_UP:
        with pytest.raises(PlanError, match="rows of a person count, holds cells"):
            make_plan(text)
        return
    network, data = make_plan(text, sizes={"p": 5}).network, rows(chance, of_each=int(chance.integers(2, 5)))
    before = sums(network, data)
    for part, names in parts.items():
        for _ in range(6):
            after = sums(network, moved(chance, data, names))
            assert {name for name in before if before[name] != after[name]} <= {f"s_{part}"}


def told_apart(parts: dict[str, list[str]], rule: str, viewed: bool) -> str:
    """The same rows under a name for each part, as they are or as a view with columns of other names."""
    text = divided(parts, {"first": "gdp(0.5)", "second": "gdp(0.2)"}).split("dataset(", 1)[1]
    text = "source(h, 'h.parquet'). column(h, id, p(P)). rows_per_person(h, 1). missing(h, never).\ndataset(" + text
    for part, names in parts.items():
        text += f"source({part}, 't.parquet'). column({part}, id, p(P)). missing({part}, never).\n"
        text += rule.replace("(t,", f"({part},") + ".\n"
        for name in names:
            text += f"column({part}, {viewed * 'v_'}{name}, {name}(P)). random({name}(P)) :- p(P).\n"
            text += f"range({name}(P), 0, {10 * (NAMES.index(name) + 1)}).\n"
    return text


@pytest.mark.parametrize("viewed", [False, True], ids=["file", "view"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.by_day(3)
def test_one_file_under_two_names_does_not_choose_one_part_by_another(seed, rule, viewed):
    """The same rows are declared once for each part: columns that a name does not declare choose nothing of it."""
    chance = np.random.default_rng(seed)
    order = list(chance.permutation(NAMES))
    cut = int(chance.integers(1, 4))
    parts = {"first": order[:cut], "second": order[cut:]}
    network = Network.from_spec(load(told_apart(parts, rule, viewed)))
    check_parts(network)
    data = rows(chance, of_each=int(chance.integers(2, 5)))

    def shown(given: dict[str, pa.Table]) -> dict[str, pa.Table]:
        names = [f"v_{name}" if viewed and name in NAMES else name for name in given["t"].column_names]
        table = given["t"].rename_columns(names)
        return {"first": table, "second": table, "h": pa.table({"id": [f"u{place}" for place in range(5)]})}

    before = sums(network, shown(data))
    for part, names in parts.items():
        for _ in range(2):
            after = sums(network, shown(moved(chance, data, names)))
            assert {name for name in before if before[name] != after[name]} <= {f"s_{part}"}
    # The other part's cell is declared here too, under a name that is in no part: its rows are one's own, or refused.
    own, other = ("first", "second")[:: int(chance.choice([1, -1]))]
    text = told_apart(parts, rule, viewed) + f"column({own}, {viewed * 'v_'}{parts[other][0]}, extra(P)). "
    text += "random(extra(P)) :- p(P). range(extra(P), 0, 9).\n"
    if rule in ADDED_UP:
        with pytest.raises(PlanError, match=r"extra\(P\) of none"):
            check_parts(Network.from_spec(load(text)))
        return
    more = Network.from_spec(load(text))
    check_parts(more)
    moved_rows = sums(more, shown(moved(chance, data, parts[other])))
    assert {name for name, one in sums(more, shown(data)).items() if one != moved_rows[name]} <= {f"s_{other}"}


@pytest.mark.parametrize(
    ("first", "more"),
    [
        ("rows_per_person(t, 1, last(income))", ""),
        ("rows_per_person(t, 2, first('INCOME'))", ""),
        (
            "rows_per_person(t, 2)",
            "column(first, income, band(B)). relation(first, has(P, B)). sum(b, age(P), p(P)).\n",
        ),
    ],
)
def test_a_column_with_cells_of_one_part_does_not_choose_rows_of_another(first, more):
    parts = {"first": ["age", "pulse"], "second": ["income", "dose"]}
    text = told_apart(parts, "rows_per_person(t, 2)", False).replace(
        "rows_per_person(first, 2)", first.replace("(t", "(first")
    )
    used = (
        "publish(nb, b, first(public)). count(c, (p(P), has(P, 3))). publish(nc, c, first(public)).\n" if more else ""
    )
    with pytest.raises(PlanError, match="they would choose what is shown of first"):
        make_plan(text + more + used)
    make_plan(told_apart(parts, "rows_per_person(t, 2, last(day))", False))


def salts(columns: str) -> str:
    """Two kinds of test, each of which is a part."""
    text = f"source(t, 't.parquet'). column(t, id, p(P)). {columns} test(na). test(k).\n"
    text += "missing(t, never). random(lab(P, T)) :- p(P), test(T). range(lab(P, T), 0, 10).\n"
    for part, name in (("salts", "na"), ("others", "k")):
        text += f"dataset({part}, domain(P, p(P))). dataset_instance({part}, P) :- p(P).\n"
        text += f"instance_rv({part}, P, lab(P, {name})) :- p(P).\n"
        text += f"privacy_requirement({part}(public), {part}, gdp(1)).\n"
        text += f"sum(s_{part}, lab(P, {name}), p(P)). publish(out_{part}, s_{part}, {part}(public)).\n"
    return text


def test_a_column_with_cells_of_two_parts_is_refused():
    with pytest.raises(PlanError, match="The column value of t holds cells of"):
        make_plan(salts("column(t, test, test(T)). column(t, value, lab(P, T)). rows_per_person(t, 4)."))
    make_plan(salts("column(t, sodium, lab(P, na)). column(t, kalium, lab(P, k)). rows_per_person(t, 1)."))


@pytest.mark.paper("002", "§3.3.2, budgets", "lang/divisions.py")
def test_each_coordinate_has_its_own_budget():
    """The example of the note: widths 1, age (1, 1e-6) and income (0.3, 1e-6), published as they are."""
    text = HEAD.replace("0, 10)", "0, 1)").replace("0, 20)", "0, 1)")
    for part, name, epsilon in (("ages", "age", 1.0), ("incomes", "income", 0.3)):
        text += f"dataset({part}, domain(P, p(P))). dataset_instance({part}, P) :- p(P).\n"
        text += f"instance_rv({part}, P, {name}(P)) :- p(P).\n"
        text += f"privacy_requirement({part}(public), {part}, dp({epsilon}, 0.000001)).\n"
        text += f"publish(out_{part}, {name}(P), {part}(public)) :- p(P). prefer(out_{part}, [gaussian]).\n"
    plan = make_plan(text, sizes={"p": 10})
    scales = {draw.node: draw.scale for draw in plan.draws}
    assert scales == pytest.approx({"age(P)": 4.22, "income(P)": 12.99}, rel=2e-3)
    assert plan.cost("p").mu == pytest.approx(0.249, abs=5e-4)
    assert "ages is age(P) of each individual" in " ".join(explain(plan, "lawyer").split())


@pytest.mark.paper("002", "§4.4, units", "plan/units.py")
def test_what_rests_on_another_part_is_refused():
    parts = {"first": ["age"], "second": ["income", "pulse"]}
    budgets = {"first": "gdp(0.5)", "second": "gdp(0.2)"}
    for reads, said in (
        ({"first": ["age", "income"], "second": ["pulse"]}, r"income\(P\).*belongs to second"),
        ({"first": ["age", "dose"], "second": ["pulse"]}, r"dose\(P\).*no instance"),
    ):
        with pytest.raises(PlanError, match=said):
            make_plan(divided(parts, budgets, reads))
    with pytest.raises(PlanError, match="belongs to first and to second"):
        make_plan(divided({"first": ["age"], "second": ["age", "income"]}, budgets))
    one = divided({"people": ["age"]}, {"people": "gdp(1)"}, {"people": ["age", "dose"]})
    with pytest.raises(PlanError, match=r"dose\(P\)"):
        make_plan(one)
    make_plan(one + "instance_rv(people, P, dose(P)) :- p(P).\n")
    with pytest.raises(PlanError, match="personal"):
        make_plan(one + "instance_rv(people, P, dose(P)) :- p(P).\npersonal_rv(P, pulse(P)) :- p(P).\n")


def test_what_cannot_be_divided_is_refused():
    parts, budgets = {"first": ["age"], "second": ["income"]}, {"first": "gdp(0.5)", "second": "gdp(0.2)"}
    text = divided(parts, budgets)
    with pytest.raises(StudyError, match="presence belongs to no part"):
        load(text + "adjacency(first, add_remove). adjacency(second, add_remove).\n")
    with pytest.raises(StudyError, match="holds all of them"):
        load(text.replace("instance_rv(second, P, income(P)) :- p(P).", ""))
    for line in ("observe(public, age(P)) :- p(P).\n",):
        with pytest.raises(PlanError, match="parts of the same people"):
            make_plan(text + line)


GROUPS = (
    HEAD
    + """
source(g, 'g.parquet'). column(g, id, p(P)). column(g, kind, kind(K)). relation(g, in(P, K)). public(g).
kind(vip). kind(plain).
dataset(vips, domain(P, (p(P), in(P, vip)))). dataset(others, domain(P, (p(P), in(P, plain)))).
privacy_requirement(v(public), vips, dp(0.1, 0.000001)). privacy_requirement(o(public), others, dp(1, 0.000001)).
sum(sv, age(P), (p(P), in(P, vip))). sum(so, age(P), (p(P), in(P, plain))).
publish(vip, sv, v(public)). publish(other, so, o(public)).
"""
)
KINDS = {"g": pa.table({"id": [f"u{place}" for place in range(5)], "kind": ["vip", "plain", "vip", "plain", "plain"]})}


def test_each_public_group_has_its_own_promise(tmp_path):
    plan = make_plan(load(GROUPS), KINDS, sizes={"p": 5})
    scales = {draw.node: draw.scale for draw in plan.draws}
    assert scales["sv"] == pytest.approx(10 * scales["so"], rel=1e-4)  # ε of 0.1 beside 1
    chance = np.random.default_rng(3)
    data = rows(chance) | KINDS
    before, after = (sums(plan.network, one) for one in (data, moved(chance, data, ["age"]) | KINDS))
    assert before["sv"] != after["sv"]  # u2 is one of the vips
    assert before["so"] == after["so"]
    run_plan(plan, data, None, out=tmp_path / "out")
    assert all(verify(path).ok for path in (tmp_path / "out").glob("certificate*.json"))
    assert Plan.read(tmp_path / "out" / "plan.json").hash == plan.hash


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("public(g).", "rows_per_person(g, 1).", "private data"),
        ("sum(sv, age(P), (p(P), in(P, vip)))", "sum(sv, age(P), p(P))", "outside of vips"),
        ("sum(sv, age(P), (p(P), in(P, vip)))", "sum(sv, age(P), (p(P), in(P, plain)))", "outside of vips"),
        # A clause whose head fits and whose body does not hold says nothing about whom this one counts.
        (
            "sum(sv, age(P), (p(P), in(P, vip))).",
            "row(x). sum(sv(R), age(P), (p(P), in(P, vip))) :- row(R). sum(sv(all), age(P), p(P)). "
            "publish(more, sv(all), v(public)). sum(sv, age(P), (p(P), in(P, vip))).",
            "outside of vips",
        ),
        ("publish(vip, sv, v(public)).", "publish(vip, age(P), v(public)) :- p(P).", "is no statistic"),
        (
            "publish(vip, sv, v(public)).",
            "publish(vip, age(P), v(public)) :- p(P), in(P, vip).",
            "shown of all of them",
        ),
    ],
)
def test_private_groups_and_other_peoples_statistics_are_refused(old, new, said):
    with pytest.raises((PlanError, SchemaError, StudyError)) as error:
        make_plan(load(GROUPS.replace(old, new)), KINDS)
    assert said in str(error.value)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(2)
def test_a_group_counts_its_own_in_whatever_order_its_goal_says_so(seed):
    """p(P), in(P, vip) and more, in any order and any brackets; not where the group is said of somebody else."""
    chance = np.random.default_rng(seed)
    parts = ["p(Q)", "in(Q, vip)", *(["age(Q) > 3", "in(Q, K)"][: int(chance.integers(0, 3))])]
    goal = " , ".join(chance.permutation(parts)[:-1])
    (last,) = set(parts) - set(goal.split(" , "))
    text = GROUPS.replace("sum(sv, age(P), (p(P), in(P, vip)))", f"sum(sv, age(Q), (({goal}), {last}))")
    plan = make_plan(load(text), KINDS, sizes={"p": 5})
    plain = make_plan(load(GROUPS), KINDS, sizes={"p": 5})
    assert [(draw.node, draw.scale) for draw in plan.draws] == [(draw.node, draw.scale) for draw in plain.draws]
    data = rows(chance)
    vips = data["t"].filter(pa.array([kind == "vip" for kind in KINDS["g"]["kind"].to_pylist()]))["age"].to_numpy()
    values = plan.network.evaluate(data | KINDS).aggregates
    found = {node.name: node.question.encode(values[node.name])[0] for node in plan.network.aggregates}
    own = vips[vips > 3] if "age(Q) > 3" in parts else vips
    middle = 5.0 * len(own)  # sums are of how far from the middle of the range
    assert found["sv"] == pytest.approx(own.sum()) or found["sv"] == pytest.approx(own.sum() - middle)
    with pytest.raises(PlanError, match=r"does not say in\(P, vip\)"):
        make_plan(load(text.replace("in(Q, vip)", "in(Q, plain)")), KINDS)


@pytest.mark.parametrize(
    ("declared", "asked"),
    [
        ("range(city(P), text).", "groups(g, city(P), p(P))."),
        ("range(city(P), private(0.3)).", "sum(g, city(P), p(P))."),
    ],
)
def test_a_variable_without_a_public_range_may_be_part_of_an_instance(declared, asked):
    """To say whose it is asks nothing of it; without that line nothing of it is published."""
    text = HEAD + f"column(t, city, city(P)). random(city(P)) :- p(P). {declared} "
    text += "dataset(a, domain(P, p(P))). dataset_instance(a, P) :- p(P). instance_rv(a, P, age(P)) :- p(P). "
    text += f"privacy_requirement(ra(public), a, dp(1, 1e-6)). {asked} publish(out, g, ra(public)). "
    with pytest.raises(PlanError, match=r"Write instance_rv\(a, Instance, city\(P\)\)"):
        make_plan(text)
    plan = make_plan(text + "instance_rv(a, P, city(P)) :- p(P).")
    cities = ["u", "v"] * 2000 if "text" in declared else [3.0, 5.0] * 2000
    data = {"t": pa.table({"id": range(4000), **dict.fromkeys(NAMES, [1.0] * 4000), "city": cities})}
    seen = run_plan(plan, data, None, random_state=1)["out"]
    assert seen["value"].to_pylist() == pytest.approx([2000, 2000] if "text" in declared else [16000], abs=200)


#: Every place of a publication in which a variable may stand: HERE is a number, KIND one of a list.
PLACES = (
    *(
        "publish(o, HERE, r(public)) :- p(P).",
        "publish(o, KIND, r(public)) :- p(P).",
        "dp_rv(r(public), HERE) :- p(P).",
    ),
    *(
        "sum(q, HERE, p(P)).",
        "sum(q, x(P), (p(P), HERE > 3)).",
        "sum(q, x(P), (p(P), \\+ KIND = u)).",
        "mean(q, HERE, p(P)).",
    ),
    *("count(q, (p(P), HERE > 3)).", "count(q, (p(P), (x(P) > 3 ; KIND = u))).", "count(q, p(P), by([KIND]))."),
    *("sum(q, x(P), p(P), by([HERE: [5]])).", "mean(q, x(P), p(P), by([KIND])).", "moment2(q, [x(P), HERE], p(P))."),
    *("variance(q, HERE, p(P)).", "variance(q, x(P), p(P), by([KIND])).", "covariance(q, [x(P), HERE], p(P))."),
    *("correlation(q, [HERE, x(P)], p(P)).", "histogram(q, HERE, p(P), [2, 5]).", "histogram(q, [k(P), KIND], p(P))."),
    *("quantile(q, HERE, p(P), [0.5]).", "median(q, x(P), p(P), by([KIND])).", "median(q, x(P), (p(P), HERE > 3))."),
    *("marginals(q, [k(P), KIND], 1, p(P)).", "sum(q, e(P), p(P))."),
    *("publish(o, classifier(k(P), [HERE]), r(public)).", "publish(o, classifier(KIND, [x(P)]), r(public))."),
    *("publish(o, regression(HERE, [x(P)]), r(public)).", "publish(o, regression(x(P), [HERE]), r(public))."),
    *("publish(o, outliers([x(P), HERE]), r(public)).", "publish(o, channel(HERE, [identity]), r(public)) :- p(P)."),
    *("publish(o, table([x(P), HERE]), r(public)).", "publish(o, table([x(P), KIND], for(svm(KIND))), r(public))."),
    *("publish(o, synthetic([k(P), KIND]), r(public)).", "publish(o, synthetic([HERE, k(P)], for(k(P))), r(public))."),
    *("publish(o, sample(z(P)), r(public)) :- p(P).", "publish(o, probability(z(P) >= 1), r(public)) :- p(P)."),
    *("sum(q, z(P), p(P)).", "count(q, (p(P), z(P) > 1)).", "histogram(q, d(P), p(P))."),
)
#: The groups between which a rule has to be fair are read too, though they are neither its label nor a feature.
FAIR = (
    "publish(o, classifier(k(P), [x(P)]), r(public)). fairness_requirement(f, KIND, {}(0.1)). fair_rv(f, o). "
    "fairness_holds(f, on({}), 0.95)."
)
#: Variables that are computed from the cell: drawn, and of a list.
COMPUTED = """
random(z(P)) :- p(P). range(z(P), 0, 9). depends(z(P), [HERE], normal(HERE, 1)).
random(d(P)) :- p(P). range(d(P), [a, b]). depends(d(P), [HERE], discrete([a: HERE / 9, b: 1 - HERE / 9])).
random(e(P)) :- p(P). range(e(P), 0, 1). depends(e(P), [KIND], lookup([KIND], [row([u], 0.25), row([v], 0.5)])).
"""


def read_in(place: str, cells: dict[str, str]) -> str:
    """A study that publishes something in which these cells stand; all but y(P) and l(P) are of the part that pays."""
    text = "source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).\n"
    for name, domain in {**dict.fromkeys("xay", "0, 9"), **dict.fromkeys("kbl", "[u, v]")}.items():
        text += f"column(t, {name}, {name}(P)). random({name}(P)) :- p(P). range({name}(P), {domain}).\n"
    text += "dataset(d, domain(P, p(P))). dataset_instance(d, P) :- p(P).\n"
    text += "".join(f"instance_rv(d, P, {name}(P)) :- p(P).\n" for name in "xakb")
    text += "privacy_requirement(r(public), d, dp(2, 1e-6)).\n"
    computed = [line for line in COMPUTED.splitlines() if line[7:11] in place]  # random(z(P))
    text += "\n".join([*computed, place])
    text += "" if "publish(" in place or "dp_rv" in place else " publish(o, q, r(public))."
    for sign, name in cells.items():
        text = text.replace(sign, f"{name}(P)")
    return text


@pytest.mark.parametrize("where", ["population", "rows"])
@pytest.mark.parametrize("measure", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.by_day(2)
def test_groups_of_a_fair_rule_are_of_its_own_part(measure, where):
    reads_its_own_part(FAIR.format(measure, where))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.by_day(5)
def test_whatever_a_publication_reads_is_of_its_own_part(place):
    """In every place of every kind: a cell of the part is taken, and one that belongs to no instance is refused."""
    reads_its_own_part(place)


def reads_its_own_part(place: str) -> None:
    make_plan(read_in(place, {"HERE": "a", "KIND": "b"}), sizes={"d": 1000})
    with pytest.raises(PlanError, match=r"rests on [yl]\(P\).*belongs to no instance"):
        make_plan(read_in(place, {"HERE": "y", "KIND": "l"}), sizes={"d": 1000})
