"""One patient of a centre, whatever her rows and cells hold, moves the centre's sum by no more than is charged.

Tables, people with many rows and hostile cells are drawn at random; the rule for cells is written down again here in
plain Python, and neighbours differ in everything that one person can be.
"""

from __future__ import annotations

import collections
import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato import load, make_plan
from sfumato.centres import ClippedSums, Count, Histogram, Means, SecondMoments, new_centres
from sfumato.centres import statistics as module
from sfumato.core import Adjacency, Categories, Interval, Schema
from sfumato.core.kept_rows import kept_rows
from sfumato.run.over_centres import cells_of, study_round

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.UndeclaredCellWarning")

GRID = 2.0**-20
HOSTILE = [
    None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, "", "x", '"', "1,5", "2.5", "true", "\x00", "ß" * 9,
    True, False, 0, 2**63, -(2**70), b"\xff", [1], "nan", "inf", "-", "a\nb",
]  # fmt: skip
NUMBERS = Schema({"kalium": Interval(2, 8), "age": Interval(0, 110, null=40)})
WORDS = Schema({"sex": Categories(["f", "m"], unknown="m"), "ward": Categories(["a", "b", "c"])})
BOTH = Schema({**NUMBERS.columns, **WORDS.columns})


def statistics(rows):
    options = {"identity": "id", "rows_per_person": rows}
    return [
        Count(BOTH, **options),
        Means(BOTH, **options),
        Means(NUMBERS, **options),
        Histogram(WORDS, **options),
        SecondMoments(BOTH, **options),
    ]


def any_row(generator):
    cells = {
        "kalium": generator.uniform(0, 10),
        "age": float(generator.integers(0, 120)),
        "sex": str(generator.choice(["f", "m"])),
        "ward": str(generator.choice(["a", "b", "c"])),
    }
    for name in cells:
        if generator.random() < 0.3:
            cells[name] = HOSTILE[generator.integers(len(HOSTILE))]
    return cells


def any_person(generator, most):
    return [any_row(generator) for _ in range(generator.integers(1, most))]


def table_of(people, generator):
    """All rows, shuffled; the rest of the table must not care where a person's rows stand."""
    rows = [{**row, "id": name} for name, own in people.items() for row in own]
    order = generator.permutation(len(rows))
    return {name: [rows[place][name] for place in order] for name in ("id", *BOTH.columns)}


def largest_breach(statistic, cases, seed=0):
    """The largest move of a neighbour, in units of what is charged for it."""
    generator, worst = np.random.default_rng(seed), 0.0
    for _ in range(cases):
        people = {f"p{number}": any_person(generator, 6) for number in range(4)}
        replaced = {**people, "p0": any_person(generator, 12)}
        without = {name: own for name, own in people.items() if name != "p0"}
        found, other, fewer = (
            statistic.cells(table_of(one, generator), GRID, 1000) for one in (people, replaced, without)
        )
        for relation, moved in (("replace-one", found - other), ("add-remove", found - fewer)):
            for law, size in (("gaussian", np.linalg.norm(moved * GRID)), ("laplace", np.abs(moved * GRID).sum())):
                if relation == "replace-one" and isinstance(statistic, Count) and statistic.rows_per_person == 1:
                    assert not moved.any()
                    continue
                charged = statistic.sensitivity(Adjacency("patient", relation), law)
                rounding = GRID * (math.sqrt(statistic.length) if law == "gaussian" else statistic.length)
                worst = max(worst, size / (charged + rounding))
    return worst


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.by_day(1)
def test_one_patient_moves_no_more_than_is_charged(rows):
    for statistic in statistics(rows):
        assert largest_breach(statistic, 25) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_one_patient_moves_no_more_than_is_charged_at_length(rows):
    for statistic in statistics(rows):
        assert largest_breach(statistic, 500) <= 1


def test_the_law_finds_planted_relatives(monkeypatch):
    """Every row a patient; and a choice by position, where somebody else's rows move one's own."""
    alone = Means(NUMBERS, identity="id")
    with monkeypatch.context() as patch:
        patch.setattr(Means, "_owners", lambda self, table, people, rows: None)
        assert largest_breach(alone, 25) > 1
    with monkeypatch.context() as patch:
        patch.setattr(module, "kept_rows", lambda people, rows, most, key: (np.arange(3), np.arange(3)))
        assert largest_breach(alone, 25) > 1


def place(name, cell):
    """The rule for a cell, in plain Python: (value scaled to [0, 1]) for numbers, a position for words."""
    if name in ("kalium", "age"):
        low, high, instead = {"kalium": (2.0, 8.0, 5.0), "age": (0.0, 110.0, 40.0)}[name]
        number = math.nan
        try:
            number = float(cell)
        except (TypeError, ValueError, OverflowError):
            if isinstance(cell, str) and cell.lower() in ("true", "false"):
                number = float(cell.lower() == "true")
        number = instead if math.isnan(number) else min(max(number, low), high)
        return (number - low) / (high - low)
    listed = {"sex": ["f", "m"], "ward": ["a", "b", "c"]}[name]
    absent = cell is None or isinstance(cell, list) or (isinstance(cell, float) and math.isnan(cell))
    if not absent and str(cell) in listed:
        return listed.index(str(cell))
    return 1 if name == "sex" and not absent else 0


def test_every_cell_has_its_place():
    """Against plain Python, as Python lists, as a pandas frame and as text."""
    generator = np.random.default_rng(5)
    rows = [any_row(generator) for _ in range(300)]
    expected = np.zeros(1 + 2 + 5)
    for row in rows:
        expected[0] += 1
        expected[1] += place("kalium", row["kalium"]) - 0.5
        expected[2] += place("age", row["age"]) - 0.5
        for start, name in ((3, "sex"), (5, "ward")):
            expected[start + place(name, row[name])] += 1
    table = {name: [row[name] for row in rows] for name in BOTH.columns}
    found = Means(BOTH).cells(table, GRID, 1000) * GRID
    assert np.allclose(found, expected, atol=1e-3)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: pandas.Series(values, dtype=object) for name, values in table.items()})
    assert np.array_equal(Means(BOTH).cells(frame, GRID, 1000) * GRID, found)


def test_numbers_and_their_texts_are_the_same():
    values = [2.5, 7.25, 1e9, None]
    numbers = pa.table({"kalium": values, "age": values})
    texts = pa.table(
        {name: [None if value is None else repr(value) for value in values] for name in numbers.column_names}
    )
    assert np.array_equal(Means(NUMBERS).cells(numbers, GRID, 9), Means(NUMBERS).cells(texts, GRID, 9))


def test_hostile_arrays_are_clipped_sums():
    rows = np.array([[math.nan, 1.0], [math.inf, -math.inf], [1e308, 1e308], [5e-324, 0.0]])
    for order in (1, 2):
        for row in rows:
            found = ClippedSums(2, 1.0, order).cells(row[None], GRID, 9) * GRID
            assert np.linalg.norm(found, ord=order) <= 1 + 2 * GRID


def test_the_kept_rows_are_a_fair_sample():
    """Five rows of one person, two kept: over keys each pair is kept equally often, and equal rows are told apart."""
    people, contents = ["p"] * 5 + ["q"], np.array([[1.0], [1.0], [2.0], [3.0], [4.0], [9.0]])
    pairs = collections.Counter()
    for number in range(2000):
        kept, starts = kept_rows(people, contents, 2, number.to_bytes(4, "big"))
        assert starts.tolist() == [0, 2]
        pairs[tuple(sorted(contents[kept[:2], 0]))] += 1
    shares = {pair: count / 2000 for pair, count in pairs.items()}
    assert abs(shares[1.0, 1.0] - 0.1) < 0.03
    assert abs(shares[1.0, 2.0] - 0.2) < 0.04
    assert abs(shares[3.0, 4.0] - 0.1) < 0.03


def test_the_order_of_the_table_does_not_matter():
    generator = np.random.default_rng(1)
    people = [f"p{number}" for number in generator.integers(0, 6, 60)]
    contents = generator.integers(0, 3, size=(60, 2)).astype(float)
    chosen = []
    for _ in range(5):
        order = generator.permutation(60)
        kept, _ = kept_rows([people[place] for place in order], contents[order], 3)
        chosen.append(collections.Counter((people[order[place]], *contents[order[place]]) for place in kept))
    assert all(one == chosen[0] for one in chosen)


STUDY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). missing(patients, never).
column(patients, age, age(P)).
random(age(P)) :- patient(P).
range(age(P), 0, 110).
rows_per_person(patients, 1).
missing(age(P), 20).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(1)).
centre(north). centre(south).
sum(total, age(P), patient(P)).
publish(total, total, openness(public)).
"""


ONE_ROW = "rows_per_person(patients, 1)"


def drawn(study, rows):
    """What a centre with these rows adds to the sum, before noise."""
    plan = make_plan(load(study))
    agreed = study_round(plan, new_centres(("north", "south"))[0])
    table = {name: [row[place] for row in rows] for place, name in enumerate(("id", "age", "day"))}
    cells = cells_of(plan, plan.network.evaluate({"patients": pa.table(table)}), agreed)
    return plan, float(cells[0] * agreed.grids[0])


def test_a_study_over_centres_counts_a_patient_with_ten_rows_once():
    """As in one place: the sum of the study moves by the range of one value, and so does the sum of a centre."""
    found = [drawn(STUDY, [("1", 50.0, 0), *[("2", age, 0)] * 10]) for age in (110.0, 0.0)]
    moved = abs(found[0][1] - found[1][1])
    assert moved == pytest.approx(110.0)
    assert moved <= found[0][0].draws[0].sensitivity


@pytest.mark.parametrize(
    ("old", "new", "rows", "total"),
    [
        ("missing(age(P), 20)", "missing(age(P), 55)", [("a", None, 0), ("b", 60.0, 0)], 115.0),
        ("missing(age(P), 20)", "missing(age(P), skip)", [("a", None, 0), ("b", 60.0, 0)], 60.0),
        (ONE_ROW, "rows_per_person(patients, 1, first(day))", [("a", 10.0, 2), ("a", 30.0, 1)], 30.0),
        (ONE_ROW, "each_person(patients, mean)", [("a", 10.0, 2), ("a", 30.0, 1)], 20.0),
    ],
)  # fmt: skip
def test_what_a_study_says_of_rows_and_cells_holds_at_every_centre(old, new, rows, total):
    plan, found = drawn(STUDY.replace(old, new), rows)
    offset = 55.0 * len({row[0] for row in rows}) if plan.questions["total"].everybody else 0.0
    assert found + offset == pytest.approx(total, abs=1e-3)
