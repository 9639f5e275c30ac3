"""Holes of studies that were found by attacking them, each with the attack that found it."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.errors import DataError, PlanError, SchemaError, StudyError
from sfumato.lang import load
from sfumato.network.bounds import Bounds
from sfumato.network.expression import Constant, Reference
from sfumato.network.network import Network
from sfumato.network.rounding import rounding
from sfumato.plan.make import make_plan
from sfumato.plan.request import asked_of
from sfumato.questions.intervals import NoiseLaw
from sfumato.run.forget import without_forgotten
from sfumato.run.own import persons_own
from sfumato.run.study import run_plan

PEOPLE = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
random(age(P)) :- patient(P).
range(age(P), {low}, {high}).
dataset(people, domain(P, patient(P))).
privacy_requirement(promise(public), people, dp(1.0)).
"""
AGES = PEOPLE.format(low=0, high=110)
MEAN = AGES + "mean(m, age(P), patient(P)). publish(average, m, promise(public)).\n"


def network_of(text: str) -> Network:
    return Network.from_spec(load(text))


def as_csv(folder, text: str | bytes):
    path = folder / "patients.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {"patients": path}


# ── whose a cell is ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("person", ["column(doses, patient, patient(P)).", ""], ids=["of persons", "of nobody"])
def test_nobodys_variable_is_not_read_from_a_private_table(person):
    """The smallest dose of all patients was a constant of everybody's expressions, without noise."""
    study = f"""{AGES}
    source(doses, 'doses.parquet'). {person} column(doses, drug, drug(D)). column(doses, dose, dose(D)).
    missing(doses, never). rows_per_person(doses, 9). drug(d1). random(dose(D)) :- drug(D). range(dose(D), 0, 1).
    random(x(P)) :- patient(P). depends(x(P), [dose(d1)], dose(d1)).
    sum(s, x(P), patient(P)). publish(total, s, promise(public)).
    """
    with pytest.raises(SchemaError, match=r"belongs to nobody.*public\(doses\)"):
        network_of(study)
    doses = pa.table({"patient": ["a"], "drug": ["d1"], "dose": [0.5]})
    assert Network.from_spec(load(study + "public(doses).\n"), {"doses": doses}).node("dose(d1)").public


@pytest.mark.parametrize(
    "columns",
    ["column(t, a, patient(P)). column(t, b, patient(Q)).", "column(t, a, patient(P)). column(t, b, doctor(D))."],
)
def test_a_private_row_belongs_to_one_individual(columns):
    """Whoever stood in the second column moved other people's contributions and was charged for none of it."""
    study = f"""{AGES} source(t, 't.parquet'). {columns} rows_per_person(t, 10).
    source(doctors, 'd.parquet'). column(doctors, id, doctor(D)). rows_per_person(doctors, 1).
    dataset(doctors, domain(D, doctor(D))). count(n, patient(P)). publish(number, n, promise(public)).
    """
    with pytest.raises(SchemaError, match="belong to several individuals"):
        network_of(study)


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "condition"), [("mean", "patient(P)"), ("mean", "patient(P), age(P) > 0"), ("sum", "patient(P)")]
)
def test_one_individual_far_from_zero_moves_what_is_claimed(kind, condition):
    """Totals near 10^18 are floats 128 apart; the range is 1 wide, and so was the claim."""
    study = PEOPLE.format(low=10**15, high=10**15 + 1) + f"{kind}(m, age(P), ({condition})).\n"
    study += "publish(total, m, promise(public)).\n"
    network, size = network_of(study), 1100
    (node,) = network.aggregates
    question = asked_of(node)
    encoded = []
    for above in range(4):
        ages = np.full(size, 1e15)
        ages[:above] += 1
        table = pa.table({"id": [f"p{place:05d}" for place in range(size)], "age": ages})
        sums = network.evaluate({"patients": table}).aggregates["m"]
        encoded.append(question.encode(sums, True))
        read = question.figures(encoded[-1], NoiseLaw(), float(sums.count), True)[0].value
        np.testing.assert_allclose(read, 1e15 if kind == "mean" else 1e15 * size, rtol=1e-12)
    moves = [np.abs(after - before).sum() for before, after in pairwise(encoded)]
    assert min(moves) >= 0.999  # nobody is lost in rounding
    assert max(moves) <= question.moves().l1 * (1 + 2**-20)


def test_the_grid_of_a_tiny_range_is_part_of_the_claim():
    """Below 2^-948 the grid is no longer small beside the range."""
    low, high = 0.3e-300, 1.2e-300
    study = PEOPLE.format(low=repr(low), high=repr(high)) + "mean(m, age(P), patient(P)).\n"
    network = network_of(study + "publish(average, m, promise(public)).\n")
    (node,) = network.aggregates
    grid = asked_of(node).entries()[0].grid
    assert asked_of(node).moves().l2 >= (grid.high - grid.low) * grid.step > high - low


def test_rounding_of_the_computed_value_is_part_of_the_sensitivity():
    """((age + 8191.5) + 10^20) - 10^20 has slope 1 and is 0 or 16384."""
    study = PEOPLE.format(low=0, high=1) + (
        "random(f(P)) :- patient(P). publish(q, f(P), promise(public)). prefer(q, [output]).\n"
        "depends(f(P), [age(P)], ((age(P) + 8191.5) + 100000000000000000000.0) - 100000000000000000000.0).\n"
    )
    plan = make_plan(study)
    values = plan.network.evaluate({"patients": pa.table({"id": ["a", "b"], "age": [0.4, 0.6]})}).column("f(P)")
    assert abs(values[1] - values[0]) == 16384
    assert plan.draws[0].sensitivity >= 16384


@pytest.mark.parametrize("large", [0.0, 1e3, 1e16])
def test_computed_values_stay_within_the_bound_of_their_rounding(large):
    x, y, shift = Reference("x"), Reference("y"), Constant(large)
    expression = ((x * y + shift) - shift) * x - (y + shift) / Constant(3.0)
    bound = rounding(expression, {"x": Bounds(-1, 2), "y": Bounds(0, 3)}, {})
    generator, worst = np.random.default_rng(1), 0.0
    for a, b in zip(generator.uniform(-1, 2, 300), generator.uniform(0, 3, 300), strict=True):
        exact = (Fraction(a) * Fraction(b)) * Fraction(a) - (Fraction(b) + Fraction(large)) / 3
        computed = Fraction(float(expression.evaluate({"x": np.asarray(a), "y": np.asarray(b)})))
        worst = max(worst, float(abs(computed - exact)))
    assert 0.0 < worst <= bound < 100 * worst
    assert math.isinf(rounding(Constant(1.0) / x, {"x": Bounds(-1, 1)}, {}))


# ── what a column is ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("cell", "age"),
    [("70", 70.0), ("unknown", 55.0), ("1e999", None), ("", 55.0), ("70,SECRET", 70.0), ("7\xff", 55.0)],
)
def test_one_cell_of_a_csv_file_decides_nothing_about_the_others(tmp_path, cell, age):
    """A word made every age a word and the run fail; 01 became 1 or stayed 01."""
    tables = as_csv(tmp_path, f"id,age\n01,30\n02,{cell}\n03,5\n".encode("latin-1"))
    values = network_of(MEAN).evaluate(tables)
    assert values.identifiers("people").tolist() == ["01", "02", "03"]
    found = values.column("age(P)").tolist()
    assert found[::2] == [30.0, 5.0]
    assert found[1] == age or (age is None and found[1] in (0.0, 110.0))


def test_a_late_word_and_an_open_quote_fail_nothing(tmp_path):
    rows = "".join(f"p{place:05d},{place % 90}\n" for place in range(25_000))
    network = network_of(MEAN)
    late = network.evaluate(as_csv(tmp_path, f"id,age\n{rows}zz,unknown\n"))
    assert late.aggregates["m"].count == 25_001
    network.evaluate(as_csv(tmp_path, 'id,age\na,30\nb,"70\n'))
    with pytest.raises(SchemaError, match="no column age"):
        network.evaluate(as_csv(tmp_path, "id,ages\na,30\n"))
    with pytest.raises(DataError, match="header"):
        network.evaluate(as_csv(tmp_path, ""))


def test_public_csv_files_still_hold_numbers(tmp_path):
    (tmp_path / "codes.csv").write_text("code,weight\n5,0.5\n7,2\n")
    study = (
        AGES + "public(codes). source(codes, 'codes.csv'). column(codes, code, code(C)). column(codes, weight, w(W)).\n"
    )
    study += "relation(codes, weighs(C, W)). random(x(P, C)) :- patient(P), code(C), C > 5.\n"
    study += "depends(x(P, C), [age(P)], W * age(P)) :- patient(P), weighs(C, W), C > 5.\n"
    study += "count(n, patient(P)). publish(number, n, promise(public)).\n"
    network = Network.from_spec(load(study), {"codes": tmp_path / "codes.csv"})
    people = pa.table({"id": ["a"], "age": [3.0]})
    values = network.evaluate({"codes": tmp_path / "codes.csv", "patients": people})
    assert values.column("x(P, 7)").tolist() == [6.0]


@pytest.mark.parametrize("cell", ["7", "abc", "7.5x"])
def test_numbers_of_the_study_are_compared_with_text_without_failing(cell):
    study = f"""{AGES} source(t, 't.parquet'). column(t, patient, patient(P)). column(t, code, code(C)).
    rows_per_person(t, 9). relation(t, treated(P, C)). code(5). code(7).
    count(n(C), (patient(P), treated(P, C))) :- code(C). publish(number, n(C), promise(public)) :- code(C).
    """
    tables = {
        "patients": pa.table({"id": ["a", "b"], "age": [30.0, 70.0]}),
        "t": pa.table({"patient": ["a", "b"], "code": ["5", cell]}),
    }
    found = network_of(study).evaluate(tables).aggregates
    assert [found["n(5)"].vector[0], found["n(7)"].vector[0]] == [1.0, float(cell == "7")]


@pytest.mark.parametrize(
    "column",
    [pa.array([None, [1]], pa.list_(pa.int64())), pa.array([1, 2], pa.duration("s")), pa.array([None, {"a": 1}])],
    ids=["list", "interval", "struct"],
)
def test_a_type_that_only_sounds_like_a_number_is_refused_by_its_name(column):
    for shown in (column, column.slice(0, 0)):  # with and without cells
        ids = pa.array(["a", "b"][: len(shown)], pa.string())
        with pytest.raises(SchemaError, match="declares numbers"):
            network_of(MEAN).evaluate({"patients": pa.table({"id": ids, "age": shown})})


def test_a_column_without_any_value_is_all_absent():
    values = network_of(MEAN).evaluate({"patients": {"id": ["a", "b"], "age": [None, None]}})
    assert values.column("age(P)").tolist() == [55.0, 55.0]


@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_a_word_among_numbers_is_an_absent_number_and_no_reason_to_fail(kind):
    """The whole table was refused for one person's cell."""
    table = kind({"id": ["a", "b"], "age": [33, "HIV positive"]})
    assert network_of(MEAN).evaluate({"patients": table}).column("age(P)").tolist() == [33.0, 55.0]


# ── who somebody is ──────────────────────────────────────────────────────────────────────────────────────────────────

ROWS = """
source(v, 'v.parquet'). column(v, id, patient(P)). missing(v, never). column(v, x, x(P)). rows_per_person(v, 2).
random(x(P)) :- patient(P). range(x(P), 0, 1). dataset(people, domain(P, patient(P))). adjacency(people, add_remove).
sum(s, x(P), patient(P)).
"""


def test_identifiers_are_one_value_of_one_type():
    """A union of the number 1 and the text 1 kept two rows for each and joined all four to one person."""
    union = pa.UnionArray.from_sparse(pa.array([0, 0, 1, 1], pa.int8()), [pa.array([1] * 4), pa.array(["1"] * 4)])
    for column in (union, pa.array([["a, b"], ["a", "b"]]), pa.array([{"a": 1}])):
        with pytest.raises(SchemaError, match="says whose a row is"):
            network_of(ROWS).evaluate({"v": pa.table({"id": column, "x": [1.0] * len(column)})})


def test_rows_are_kept_by_the_text_that_names_a_person():
    """0.0 and -0.0 were two names of equal numbers, and rows were kept from whom nobody said: they are one name, 0."""
    column = pa.array([0.0, 0.0, 0.0, -0.0, -0.0])
    values = network_of(ROWS).evaluate({"v": pa.table({"id": column, "x": [1.0] * 5})})
    assert values.identifiers("people").tolist() == ["0"]
    assert values.aggregates["s"].vector.tolist() == [2.0]


@pytest.mark.parametrize(
    ("line", "ids", "named", "left"),
    [
        ("forget(3).", ["01", "02", "03"], ["01", "02", "03"], ["01", "02"]),
        ("forget(3).", ["1.5", "2.0", "3.0"], ["1.5", "2", "3"], ["1.5", "2"]),  # as pandas writes whole numbers
        ("forget('3').", ["1.5", "2.0", "3.0"], ["1.5", "2", "3"], ["1.5", "2"]),
        ("forget('03').", ["03", "3"], ["03", "3"], ["3"]),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.by_day(3)
def test_the_forgotten_are_those_the_evaluation_names(tmp_path, line, ids, named, left, suffix):
    separator = {".csv": ",", ".tsv": "\t"}[suffix]
    path = tmp_path / f"patients{suffix}"
    path.write_text("".join(separator.join(pair) + "\n" for pair in (("id", "age"), *((name, "7x") for name in ids))))
    for adjacency, found in (
        ("replace_one", named),
        ("add_remove", left),
    ):  # a place is kept where their number is public
        spec = load(MEAN + line + f" adjacency(people, {adjacency}).")
        rows = without_forgotten(spec, {"patients": path})
        assert Network.from_spec(spec).evaluate(rows).identifiers("people").tolist() == found


def test_forgetting_compares_the_text_of_numbers_as_it_is_published(tmp_path):
    """A floating-point 3.0 is published as 3, and was as 3.0: whichever is written, the person is forgotten."""
    table = pa.table({"id": [1.0, 3.0], "age": [30.0, 70.0]})
    parquet.write_table(table, tmp_path / "patients.parquet")
    for written in ("'3.0'", "'3'", "3"):
        spec = load(MEAN + f"forget({written}). adjacency(people, add_remove).")
        for given in (table, tmp_path / "patients.parquet"):
            kept = Network.from_spec(spec).evaluate(without_forgotten(spec, {"patients": given}))
            assert kept.identifiers("people").tolist() == ["1"]
    own = Network.from_spec(load(MEAN + "personal_rv(P, age(P)) :- patient(P)."))
    for written in ("3", "3.0"):
        (found,) = persons_own(own, {"patients": table}, written)
        assert found.cells == (70.0,)


def test_a_csv_study_runs_to_its_end(tmp_path):
    as_csv(tmp_path, "id,age\numa,30\nbo,unknown\nal,50\n")
    plan = make_plan(MEAN.replace(".parquet", ".csv") + "forget(uma).\n", sizes={"people": 2})
    released = run_plan(plan, tmp_path, None, random_state=1)
    assert 0 <= released["average"]["value"][0].as_py() <= 110


# ── what everybody's values make of one's own ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("owner", ["patient", "doctor"])
def test_an_individual_does_not_rest_on_an_aggregate_through_shared_variables(steps, owner):
    """dev(P) = age(P)·sh with sh = mean/2: one patient moved everybody's value, and the plan charged one."""
    chain = "".join(f"random(s{k}). depends(s{k}, [s{k - 1}], s{k - 1} * 2).\n" for k in range(1, steps))
    study = f"""{AGES}
    source(staff, 'staff.parquet'). column(staff, id, doctor(D)). column(staff, pay, pay(D)).
    rows_per_person(staff, 1). missing(staff, never).
    random(pay(D)) :- doctor(D). range(pay(D), 0, 10).
    sum(wages, pay(D), doctor(D)). publish(w, wages, team_promise(public)). publish(a, m, promise(public)).
    dataset(team, domain(D, doctor(D))). privacy_requirement(team_promise(public), team, dp(1.0)).
    mean(m, age(P), patient(P)). random(s0). depends(s0, [m], m / 2). {chain}
    """
    cell, mine, promise = ("age", "P", "promise") if owner == "patient" else ("pay", "D", "team_promise")
    study += f"""random(w({mine})) :- {owner}({mine}).
    depends(w({mine}), [{cell}({mine}), s{steps - 1}], clip({cell}({mine}) * s{steps - 1}, 0, 100)) :- {owner}({mine}).
    mean(q, w({mine}), {owner}({mine})). publish(d, q, {promise}(public)).
    """
    said = f"depends on s{steps - 1}, which depends on all of them|q rests on individuals of people"
    with pytest.raises((SchemaError, StudyError), match=said):
        network_of(study)


def test_one_requirement_does_not_pay_for_another_dataset():
    study = f"""{AGES}
    source(staff, 'staff.parquet'). column(staff, id, doctor(D)). column(staff, pay, pay(D)).
    rows_per_person(staff, 1). missing(staff, never).
    random(pay(D)) :- doctor(D). range(pay(D), 0, 10). dataset(team, domain(D, doctor(D))).
    mean(m, age(P), patient(P)). mean(w, pay(D), doctor(D)). random(both). depends(both, [m, w], m * w).
    publish(d, both, promise(public)).
    """
    with pytest.raises(StudyError, match="both rests on individuals of team"):
        make_plan(study)


def test_a_plan_that_does_not_follow_from_its_study_is_never_made(monkeypatch):
    """Planted: half the sensitivity. What is derived a second time from the study says so before anything is made."""
    from sfumato.plan import settle

    honest = settle.asked_of
    halved = lambda node: dataclasses.replace(honest(node), ranges=((0.0, 55.0),))  # noqa: E731
    monkeypatch.setattr(settle, "asked_of", halved)
    with pytest.raises(PlanError, match="derived again"):
        make_plan(MEAN)
