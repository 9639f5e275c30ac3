"""Synthetic rows: what one row can move, what is charged, what comes out."""

from __future__ import annotations

import dataclasses
import decimal
import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import ADD_REMOVE, REPLACE_ONE, ApproxDP, Categories, Interval, Schema, verify
from sfumato.core.compose import compose
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import PrivacyParameterError, SchemaError, UndeclaredCellWarning
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic import one_way
from sfumato.release.synthetic.counts import PairCounts, pairs_within
from sfumato.release.synthetic.junction_tree import CountTable, Fitted, JunctionTree, cells_needed
from sfumato.release.synthetic.levels import Levels
from sfumato.release.synthetic.measure import Measurer

SIZES = (3, 2, 4)


def counted(codes: np.ndarray) -> PairCounts:
    made = PairCounts.empty(SIZES, pairs_within(SIZES))
    made.add(list(codes.T.astype(np.int32)))
    return made


def random_codes(generator: np.random.Generator, rows: int) -> np.ndarray:
    return np.stack([generator.integers(0, size, rows) for size in SIZES], axis=1)


# ── privacy ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_what_one_row_moves_is_what_is_charged(relation):
    """The largest move over neighbours, found by search, is the sensitivity of the events: not more, and reached."""
    generator = np.random.default_rng(3)
    adjacency = REPLACE_ONE if relation == "replace-one" else ADD_REMOVE
    largest_table, largest_scores = 0.0, 0.0
    scopes = pairs_within(SIZES)
    for _ in range(400):
        rows = random_codes(generator, int(generator.integers(1, 6)))
        other = rows.copy() if relation == "replace-one" else rows[:-1]
        if relation == "replace-one":
            other[-1] = random_codes(generator, 1)[0]
        first, second = counted(rows), counted(other)
        expected = {scope: generator.integers(0, 3, first[scope].shape).astype(float) for scope in scopes}
        moves = [np.linalg.norm(first[scope] - second[scope]) for scope in scopes]
        scores = [
            np.abs(first[scope] - expected[scope]).sum() - np.abs(second[scope] - expected[scope]).sum()
            for scope in scopes
        ]
        largest_table = max(largest_table, *moves)
        largest_scores = max(largest_scores, float(np.linalg.norm(scores)))
    measurer = Measurer(first, adjacency, 1.0, random_state=0)
    measurer.table(scopes[0], 0.5)
    measurer.scores({scope: np.zeros(first[scope].shape) for scope in scopes}, 0.5)
    table, scores = (event.sensitivity for event in measurer.events)
    assert largest_table <= table * (1 + 1e-12)
    assert largest_table >= table * (1 - 1e-12)
    assert largest_scores <= scores * (1 + 1e-12)
    assert largest_scores >= scores / 2


def test_a_measurer_never_goes_beyond_its_total():
    measurer = Measurer(counted(random_codes(np.random.default_rng(0), 9)), REPLACE_ONE, 0.3, random_state=1)
    measurer.table((0, 1), 0.6)
    with pytest.raises(PrivacyParameterError, match="beyond the promise"):
        measurer.table((0, 1), 0.5)
    assert len(measurer.events) == 1


def small_table(generator: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    age = generator.uniform(0, 100, rows)
    smoker = np.where(generator.random(rows) < 0.2 + 0.5 * (age > 50), "yes", "no")
    ill = np.where(generator.random(rows) < 0.1 + age / 250 + 0.3 * (smoker == "yes"), "yes", "no")
    return {"age": age, "smoker": smoker, "dose": generator.integers(0, 5, rows), "ill": ill}


SCHEMA = Schema(
    {
        "age": Interval(0, 100),
        "smoker": Categories(["no", "yes"]),
        "dose": Interval(0, 4),
        "ill": Categories(["no", "yes"]),
    }
)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize("label", ["ill", None])
@pytest.mark.by_day(7)
def test_every_history_stays_within_the_promise_and_verifies(epsilon, adjacency, label):
    table = small_table(np.random.default_rng(5), 800)
    out = SyntheticRelease(SCHEMA, epsilon, 1e-6, label=label, adjacency=adjacency).release(table)
    wanted = ApproxDP(epsilon, 1e-6, adjacency=adjacency)
    assert compose(out.certificate.events).implies(wanted) is True
    total = math.fsum(event.mu**2 for event in out.certificate.events)
    # Written out with the textbook formula, not with the code that calibrated: Σμ² keeps (ε, δ).
    assert math.sqrt(total) <= gaussian_mu(epsilon, 1e-6) * (1 + 1e-9)
    assert math.sqrt(total) >= gaussian_mu(epsilon, 1e-6) * 0.999
    assert verify(out.certificate).ok


def attacker_distance(monkeypatch, runs: int, factor: float) -> float:
    """How far apart the best linear attacker's statistic lies on two worst neighbours, in standard deviations."""
    original = Measurer._noise

    def weaker(self, sensitivity, dimension, share):
        noise = original(self, sensitivity, dimension, share)
        return type(noise)(noise.scale * factor, noise.sensitivity, noise.adjacency, noise.dimension, None)

    monkeypatch.setattr(Measurer, "_noise", weaker)
    # What is fitted to the drawn tables is post-processing and costs most of the time: one law stands for all.
    law = Fitted.to(
        (2, 2, 2), [CountTable((0, 1), np.ones((2, 2)), 1.0), CountTable((1, 2), np.ones((2, 2)), 1.0)], 40.0
    )
    monkeypatch.setattr(Fitted, "to", classmethod(lambda cls, *given, **named: law))
    schema = Schema({"a": Categories(["x", "y"]), "b": Categories(["x", "y"]), "c": Categories(["x", "y"])})
    release = SyntheticRelease(schema, 8.0, 1e-6, label="c", rows=3)
    first = {"a": ["x"] * 40, "b": ["x"] * 40, "c": ["x"] * 40}
    second = {name: [*values[:-1], "y"] for name, values in first.items()}
    means = []
    for table in (first, second):
        found = [_statistic(release.release(table).measured, factor) for _ in range(runs)]
        means.append(np.array(found))
    return float((means[1].mean() - means[0].mean()) / math.sqrt((means[0].var() + means[1].var()) / 2))


def _statistic(measured, factor) -> float:
    # All rows stand in the first cell, but for one that moves to the last.
    return math.fsum(
        (one.counts.flat[-1] - one.counts.flat[0]) / (one.standard_error * factor) ** 2 for one in measured
    )


def distances(monkeypatch, runs: int, factor: float) -> tuple[float, float, float]:
    """The claim with four standard errors of the attacker's estimate, the honest distance, that of weaker noise."""
    claim = gaussian_mu(8.0, 1e-6)
    with monkeypatch.context() as patch:
        honest = attacker_distance(patch, runs, 1.0)
    with monkeypatch.context() as patch:
        broken = attacker_distance(patch, runs, factor)
    return claim + 4 * math.sqrt(2 / runs + claim**2 / (4 * runs)), honest, broken


@pytest.mark.slow
def test_an_attacker_stays_below_the_claim_and_refutes_weaker_noise(monkeypatch):
    limit, honest, broken = distances(monkeypatch, 40, 1 / 4)
    assert 0.5 < honest < limit < broken


@pytest.mark.slow
def test_two_thirds_of_the_noise_are_refuted(monkeypatch):
    limit, honest, broken = distances(monkeypatch, 400, 2 / 3)
    assert 1.2 < honest < limit < broken


def test_the_number_of_rows_shows_nowhere_where_presence_is_protected():
    table = small_table(np.random.default_rng(8), 5000)
    sizes = {
        len(SyntheticRelease(SCHEMA, 0.2, 1e-6, label="ill", adjacency=ADD_REMOVE).release(table).table["age"])
        for _ in range(5)
    }
    assert sizes != {5000}
    assert len(sizes) > 1
    public = SyntheticRelease(SCHEMA, 0.2, 1e-6, label="ill").release(table)
    assert len(public.table["age"]) == 5000


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def joint(sizes, potentials) -> np.ndarray:
    """The whole law by enumeration."""
    table = np.zeros(sizes)
    for cell in itertools.product(*(range(size) for size in sizes)):
        table[cell] = sum(potential[tuple(cell[c] for c in scope)] for scope, potential in potentials.items())
    law = np.exp(table - table.max())
    return law / law.sum()


@pytest.mark.parametrize("seed", range(6))
def test_marginals_agree_with_enumeration(seed):
    generator = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in generator.integers(2, 4, 5))
    every = list(itertools.combinations(range(5), 2))
    scopes = [every[at] for at in generator.choice(len(every), int(generator.integers(1, 7)), replace=False)]
    potentials = {scope: generator.normal(size=[sizes[c] for c in scope]) for scope in scopes}
    tree = JunctionTree.over(sizes, scopes)
    law = joint(sizes, potentials)
    for clique, table in zip(tree.cliques, tree.marginals(potentials, 7.0), strict=True):
        away = tuple(c for c in range(5) if c not in clique)
        np.testing.assert_allclose(table, 7.0 * law.sum(axis=away), rtol=1e-9)
    assert cells_needed(sizes, scopes) == sum(math.prod(sizes[c] for c in clique) for clique in tree.cliques)


@pytest.mark.parametrize("seed", range(20))
def test_what_cannot_be_takes_nothing_with_it(seed):
    """Noise far above the counts makes an impossible cell by far the likeliest: the possible ones stay a law."""
    generator = np.random.default_rng(seed)
    impossible = generator.random((4, 2)) < 0.5
    impossible[0, 0], impossible[1, 1] = True, False
    tree = JunctionTree.over((4, 2), [(0, 1)], {(0, 1): impossible})
    potential = generator.normal(size=(4, 2)) * 3000
    potential[0, 0] = 9000.0
    (found,) = tree.marginals({(0, 1): potential}, 2.0)
    allowed = np.where(impossible, -np.inf, potential)
    wanted = np.exp(allowed - allowed.max())
    np.testing.assert_allclose(found, 2 * wanted / wanted.sum(), atol=1e-12)


def test_a_fit_to_exact_counts_gives_rows_with_these_counts():
    generator = np.random.default_rng(4)
    sizes, scopes = (4, 3, 5), [(0, 1), (1, 2)]
    law = joint(sizes, {scope: generator.normal(size=[sizes[c] for c in scope]) for scope in scopes})
    tables = [
        CountTable(scope, 1e4 * law.sum(axis=tuple(c for c in range(3) if c not in scope)), 1.0) for scope in scopes
    ]
    fitted = Fitted.to(sizes, tables, 1e4)
    rows = fitted.rows(20_000, generator)
    for one in tables:
        found = np.zeros(one.counts.shape)
        np.add.at(found, tuple(rows[:, column] for column in one.scope), 1.0)
        assert 0.5 * np.abs(found / 20_000 - one.counts / 1e4).sum() < 0.01


def variation(first: pd.DataFrame, second: pd.DataFrame, columns: list[str]) -> float:
    shares = [frame.groupby(columns).size() / len(frame) for frame in (first, second)]
    both = pd.concat(shares, axis=1).fillna(0.0)
    return 0.5 * float((both[0] - both[1]).abs().sum())


def test_rows_keep_what_the_table_says():
    """One- and two-way tables, means and the link to the label, against plain pandas on the real rows."""
    real = pd.DataFrame(small_table(np.random.default_rng(11), 20_000)).astype({"dose": "Int64"})
    made = SyntheticRelease(SCHEMA, 2.0, 1e-6, label="ill").release(real).table
    assert list(made.columns) == list(real.columns)
    assert made["dose"].dtype.kind == real["dose"].dtype.kind == "i"
    assert abs(made["age"].mean() - real["age"].mean()) < 2
    assert abs(made["dose"].mean() - real["dose"].mean()) < 0.1
    for frame in (real, made):
        frame["old"] = frame["age"] > 50
    for pair in itertools.combinations(["old", "smoker", "dose", "ill"], 2):
        assert variation(real, made, list(pair)) < 0.03, pair


@pytest.mark.parametrize("odd", [33.5, np.nan])
def test_one_cell_does_not_change_the_type_of_a_column(odd):
    """pandas and numpy turn whole numbers into others for the sake of one cell; the rows must not tell."""
    ages = np.random.default_rng(0).integers(20, 80, 500)
    one = ages.astype(float)
    one[0] = odd
    schema = Schema({"age": Interval(0, 100, null=50), "level": Categories([1, 2, 3], null=1)})
    level = np.random.default_rng(1).integers(1, 4, 500)
    other = level.astype(float)
    other[0] = np.nan
    kinds = set()
    for frame in (pd.DataFrame({"age": ages, "level": level}), pd.DataFrame({"age": one, "level": other})):
        made = SyntheticRelease(schema, 2.0, 1e-6).release(frame).table
        kinds.add((made["age"].dtype, made["level"].dtype))
    assert len(kinds) == 1


def test_without_budget_the_rows_say_so():
    out = SyntheticRelease(SCHEMA, 1e-4, 1e-9, label="ill").release(small_table(np.random.default_rng(1), 50))
    assert any("close to uniform" in note for note in out.notes)
    assert len(out.table["age"]) == 50


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_missing_values_are_a_level_where_that_is_said():
    table = pa.table({"job": pa.array(["clerk", None, "chef"] * 400), "age": pa.array([30, 40, None] * 400)})
    schema = Schema({"job": Categories(["clerk", "chef"]), "age": Interval(0, 100)})
    out = SyntheticRelease(schema, 5.0, 1e-6, absent=["job", "age"]).release(table)
    assert out.table.schema.field("age").type == pa.int64()
    for name in ("job", "age"):
        assert abs(out.table[name].null_count - 400) < 60
    with pytest.warns(UndeclaredCellWarning, match="missing"):
        placed = SyntheticRelease(schema, 5.0, 1e-6).release(table)
    assert placed.table["job"].null_count == 0


def test_values_stay_in_their_bins():
    levels = Levels("pay", Interval(0, 100), edges=(0.0, 1.0, 10.0, 100.0))
    generator = np.random.default_rng(0)
    values = pa.array(generator.uniform(0, 100, 500))
    codes = levels.codes(pa.chunked_array([values]))
    again = levels.values(codes, generator)
    assert (levels.codes(pa.chunked_array([again])) == codes).all()
    whole = dataclasses.replace(levels, kind=pa.int32()).values(codes, generator)
    assert whole.type == pa.int32()
    assert (levels.codes(pa.chunked_array([whole])) == codes).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"label": "illness"}, SchemaError, "not a column"),
        ({"edges": {"age": [0, 50]}}, SchemaError, "must rise"),
        ({"edges": {"smoker": [0, 1]}}, SchemaError, "categories"),
        ({"delta": 0.0}, PrivacyParameterError, "δ above 0"),
        ({"absent": ["nobody"]}, SchemaError, "no column"),
        ({"workload": [["age", "age"]]}, SchemaError, "different columns"),
    ],
)
def test_bad_wishes_are_refused_before_anything_is_drawn(change, error, words):
    wishes = {"epsilon": 1.0, "delta": 1e-6, **change}
    with pytest.raises(error, match=words):
        SyntheticRelease(SCHEMA, **wishes).release(small_table(np.random.default_rng(0), 60))


def test_a_list_of_a_hundred_thousand_levels_is_refused():
    schema = Schema({"zip": Categories([str(number) for number in range(100_000)]), "ill": Categories(["no", "yes"])})
    with pytest.raises(SchemaError, match="levels"):
        SyntheticRelease(schema, 1.0, 1e-6).release({"zip": ["1"], "ill": ["no"]})


def test_a_wished_pair_is_always_measured():
    table = small_table(np.random.default_rng(2), 3000)
    out = SyntheticRelease(SCHEMA, 1.0, 1e-6, label="ill", workload=[["dose", "smoker"]]).release(table)
    assert ("smoker", "dose") in {one.columns for one in out.measured}


# ── numbers inside their bins, impossible combinations, types ────────────────────────────────────────────────────────


def skewed(rows: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(17)
    income = np.where(generator.random(rows) < 0.3, 0.0, generator.lognormal(10, 0.8, rows)).clip(0, 1e6)
    hours = np.where(generator.random(rows) < 0.4, 40, generator.integers(0, 90, rows)).astype(np.int16)
    return {"income": income, "hours": hours}


NUMBERS = Schema({"income": Interval(0, 1e6), "hours": Interval(0, 100)})


def far_off(made: dict[str, np.ndarray], real: dict[str, np.ndarray]) -> float:
    """The largest error of a mean or a quantile, in standard deviations."""
    found = []
    for name, values in real.items():
        spread = values.std()
        found.append(abs(made[name].mean() - values.mean()) / spread)
        ends = [np.quantile(table[name], [0.1, 0.25, 0.5, 0.75, 0.9]) for table in (made, real)]
        found += (np.abs(ends[0] - ends[1]) / spread).tolist()
    return max(found)


def test_means_and_quantiles_of_skewed_numbers_are_right():
    real = skewed(30_000)
    typed = {**real, "hours": pa.array(real["hours"])}  # whole numbers by their maker's word
    bought = SyntheticRelease(NUMBERS, 2.0, 1e-6).release(typed)
    assert far_off(bought.table, real) < 0.25  # of which the tail of incomes is most
    assert (bought.table["income"] == 0).mean() == pytest.approx(0.3, abs=0.03)
    assert (bought.table["hours"] == 40).mean() == pytest.approx(0.4, abs=0.05)
    equal = SyntheticRelease(NUMBERS, 2.0, 1e-6, buy_edges=False).release(real)
    # Sixteen equal parts of a million: nearly all in one, of which the next says how it falls.
    assert far_off(bought.table, real) + 0.1 < far_off(equal.table, real) < 0.35


def test_an_edge_that_stands_twice_is_a_bin_for_that_value_alone():
    levels = Levels("pay", Interval(0, 100), edges=(0.0, 0.0, 50.0, 100.0, 100.0))
    values = pa.chunked_array([[0.0, 1e-9, 50.0, 99.0, 100.0, -3.0, 200.0]])
    assert levels.codes(values).tolist() == [0, 1, 2, 2, 3, 0, 3]
    made = levels.values(np.array([0, 3, 1, 2], np.int32), np.random.default_rng(0)).to_pylist()
    assert made[:2] == [0.0, 100.0]
    assert 0 < made[2] < 50 <= made[3] < 100


@pytest.mark.parametrize("plan", ["pairs", "tree", "rounds"])
def test_what_cannot_occur_never_does(plan):
    generator = np.random.default_rng(1)
    sex = generator.choice(["f", "m"], 6000)
    pregnant = np.where((sex == "f") & (generator.random(6000) < 0.2), "yes", "no")
    table = {"sex": sex, "pregnant": pregnant, "age": generator.integers(0, 90, 6000), "job": sex}
    columns = {
        "sex": Categories(["f", "m"]),
        "pregnant": Categories(["no", "yes"]),
        "age": Interval(0, 90, edges=(0, 12, 50, 90)),
        "job": Categories(["f", "m"]),
    }
    never = [{"sex": ["m"], "pregnant": ["yes"]}, {"age": [0, 12], "pregnant": ["yes"], "sex": ["f"]}]
    free = SyntheticRelease(Schema(columns), 0.3, 1e-6, plan="pairs").release(table).table
    kept = SyntheticRelease(Schema(columns, impossible=never), 0.3, 1e-6, plan=plan).release(table).table
    both = [(rows["sex"] == "m") & (rows["pregnant"] == "yes") for rows in (free, kept)]
    assert both[0].any()  # columns that are taken to be independent make some
    assert not both[1].any()
    assert not ((kept["age"] < 12) & (kept["pregnant"] == "yes")).any()
    assert Schema.from_toml(Schema(columns, impossible=never).to_toml()).impossible == tuple(
        {name: tuple(values) for name, values in entry.items()} for entry in never
    )


def test_rows_have_the_types_of_their_columns():
    rows = 400
    table = pa.table(
        {
            "small": pa.array([200] * rows, pa.uint8()),
            "half": pa.array([0.5] * rows, pa.float32()),
            "price": pa.array([decimal.Decimal("1.25")] * rows, pa.decimal128(9, 2)),
            "word": pa.array(["x", "y"] * (rows // 2)).dictionary_encode(),
            "flag": pa.array([True, False] * (rows // 2)),
            "code": pa.array([1, 2] * (rows // 2), pa.int8()),
        }
    )
    columns = {
        "small": Interval(-10, 300),  # wider than the type: nothing may fail after the noise
        "half": Interval(0, 1),
        "price": Interval(0, 10),
        "word": Categories(["x", "y"]),
        "flag": Categories([False, True]),
        "code": Categories([1, 2, 300]),
    }
    out = SyntheticRelease(Schema(columns), 0.5, 1e-6).release(table).table
    for name in ("small", "half", "price", "flag"):
        assert out.schema.field(name).type == table.schema.field(name).type, name
    assert out.schema.field("word").type == pa.string()
    assert set(out["code"].to_pylist()) <= {1, 2, 300}


def test_a_type_that_only_cells_could_tell_is_not_told():
    """A list of whole numbers, and the same with one that is none, are released alike."""
    schema = Schema({"a": Interval(0, 5), "b": Categories(["x", "y"])})
    kinds = set()
    for last in (3, 3.5):
        table = {"a": [*[1, 2, 4] * 30, last], "b": ["x"] * 91}
        out = SyntheticRelease(schema, 1.0, 1e-6, random_state=1).release(table)  # which acts follow is up to the noise
        kinds.add((out.table["a"].dtype, len(out.certificate.events)))
    assert len(kinds) == 1


# ── several rows of a person ─────────────────────────────────────────────────────────────────────────────────────────


def test_rows_of_a_person_are_cut_and_charged():
    generator = np.random.default_rng(2)
    who = [f"p{number}" for number in generator.integers(0, 300, 3000)]
    table = {"who": who, "age": generator.uniform(0, 100, 3000), "ill": generator.choice(["no", "yes"], 3000)}
    schema = Schema({"age": Interval(0, 100), "ill": Categories(["no", "yes"])})
    out = SyntheticRelease(schema, 3.0, 1e-6, people="who", rows_per_person=4).release(table)
    assert str(out.guarantee).endswith("replacing one person")
    assert min(event.sensitivity for event in out.certificate.events) >= 4 * math.sqrt(2)
    assert len(out.table["age"]) == pytest.approx(1190, abs=250)
    assert verify(out.certificate).ok
    for wrong in (
        {"rows_per_person": 4},
        {"people": "age"},
        {"people": "nobody"},
        {"people": "who", "rows_per_person": 0},
    ):
        with pytest.raises((SchemaError, PrivacyParameterError)):
            SyntheticRelease(schema, 3.0, 1e-6, **wrong).release(table)


# ── what is expected, what is measured ───────────────────────────────────────────────────────────────────────────────


def test_forecasts_fall_with_rows_and_epsilon_and_say_when_nothing_is_known():
    wide = Schema({f"c{number}": Categories([str(level) for level in range(12)]) for number in range(10)})
    found = [
        SyntheticRelease(wide, epsilon, 1e-6, label="c0").expected(rows)
        for epsilon, rows in ((1.0, 10_000), (1.0, 100_000), (4.0, 100_000))
    ]
    assert all(len(one) == 3 for one in found)
    for looser, tighter in itertools.pairwise(found):
        for before, after in zip(looser, tighter, strict=True):
            assert after.two_way <= before.two_way
            assert after.one_way < before.one_way
    hopeless = SyntheticRelease(wide, 0.01, 1e-9).expected(100)
    assert not any(one.known for one in hopeless)
    assert "unknown, up to 1" in str(hopeless[0])


def test_of_two_columns_the_pair_is_measured_and_its_forecast_says_so():
    generator = np.random.default_rng(2)
    smoker = generator.choice(["no", "yes"], 5000, p=[0.7, 0.3])
    ill = np.where(generator.random(5000) < np.where(smoker == "yes", 0.6, 0.1), "yes", "no")
    schema = Schema({"smoker": Categories(["no", "yes"]), "ill": Categories(["no", "yes"])})
    release = SyntheticRelease(schema, 1.0, 1e-6, label="ill")
    (told,) = release.expected(5000)
    real = pd.DataFrame({"smoker": smoker, "ill": ill})
    reached = np.mean([variation(real, pd.DataFrame(release.release(real).table), ["smoker", "ill"]) for _ in range(8)])
    assert reached / 4 < told.two_way < 4 * reached


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.by_day(1)
def test_intervals_of_measured_counts_hold_the_truth(epsilon):
    table = small_table(np.random.default_rng(3), 3000)
    real = pd.DataFrame(table)
    inside = []
    for _ in range(12):
        out = SyntheticRelease(SCHEMA, epsilon, 1e-6, label="ill").release(table)
        levels, counts, error = one_way(out.measured, "smoker")
        exact = np.array([(real["smoker"] == level).sum() for level in levels])
        inside += (np.abs(counts - exact) < 1.96 * error).tolist()
    assert len(inside) * 0.75 < sum(inside)


def test_a_label_of_very_many_levels_stands_alone():
    generator = np.random.default_rng(0)
    codes = [str(number) for number in range(3000)]
    schema = Schema({"zip": Categories(codes), "area": Categories(codes[:100]), "ill": Categories(["no", "yes"])})
    table = {
        "zip": generator.choice(codes, 2000),
        "area": generator.choice(codes[:100], 2000),
        "ill": generator.choice(["no", "yes"], 2000),
    }
    for label in ("zip", "ill", None):
        assert len(SyntheticRelease(schema, 1.0, 1e-6, label=label).release(table).table["zip"]) == 2000


def test_another_estimator_finds_the_same_law():
    """mbi's mirror descent on the same measured tables: the two laws' marginals differ by less than their noise."""
    mbi = pytest.importorskip("mbi", reason="the extra [synthetic] is not installed")
    generator = np.random.default_rng(4)
    sizes, scopes = (4, 3, 5), [(0, 1), (1, 2)]
    law = joint(sizes, {scope: generator.normal(size=[sizes[c] for c in scope]) for scope in scopes})
    tables = []
    for scope in scopes:
        exact = 1e4 * law.sum(axis=tuple(c for c in range(3) if c not in scope))
        tables.append(CountTable(scope, exact + generator.normal(scale=20, size=exact.shape), 20.0))
    ours = Fitted.to(sizes, tables, 1e4, steps=600)
    domain = mbi.Domain([str(column) for column in range(3)], sizes)
    names = [tuple(str(column) for column in scope) for scope in scopes]
    measurements = [
        mbi.LinearMeasurement(one.counts.ravel(), name, stddev=20.0) for one, name in zip(tables, names, strict=True)
    ]
    theirs = mbi.estimation.MirrorDescent().estimate(domain, measurements, known_total=1e4, iters=1500)
    for scope, name in zip(scopes, names, strict=True):
        found = np.asarray(theirs.project(name).datavector()).reshape([sizes[c] for c in scope])
        held = ours.counts(scope)
        assert held is not None
        assert 0.5 * np.abs(found - held).sum() / 1e4 < 0.01
