"""What one patient or one centre can change: the stated bound holds, and some pair comes close to it."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from sfumato.centres import ClippedSums, Count, Histogram, Means, Requirement, SecondMoments, new_centres, plan_round
from sfumato.centres.statistics import statistic_from_dict
from sfumato.core import Adjacency, ApproxDP, Categories, Interval, Schema
from sfumato.errors import DataError, InputError, PrivacyParameterError

MIXED = Schema({"kalium": Interval(0, 10), "age": Interval(0, 100), "sex": Categories(["f", "m"])})
WARDS = Schema({"sex": Categories(["f", "m"]), "ward": Categories(["a", "b", "c"])})
EVERY = [
    Count(MIXED),
    Means(MIXED),
    Histogram(WARDS),
    SecondMoments(MIXED),
    ClippedSums(4, 2.0),
    ClippedSums(4, 2.0, 1),
]
every_statistic = pytest.mark.parametrize("statistic", EVERY, ids=lambda one: f"{one.kind} {getattr(one, 'order', '')}")
GRID = 2.0**-30


def patients(statistic, count: int, seed: int) -> list:
    """Random ones and corners, far outside the bounds as well."""
    generator = np.random.default_rng(seed)
    if isinstance(statistic, ClippedSums):
        return [row[None, :] for row in generator.choice([-9.0, 0.0, 0.3, 9.0], (count, 4))]
    picked = []
    for _ in range(count):
        row = {}
        for name, domain in statistic.schema.columns.items():
            if isinstance(domain, Interval):
                row[name] = [float(generator.choice([-5.0, domain.low, domain.high, 1e9, generator.uniform(0, 10)]))]
            else:
                row[name] = [str(generator.choice(domain.values))]
        picked.append(row)
    return picked


@every_statistic
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.by_day(5)
def test_no_patient_moves_the_sum_further_than_stated(statistic, relation, law):
    try:
        stated = statistic.sensitivity(Adjacency("patient", relation), law)
    except PrivacyParameterError:
        assert isinstance(statistic, Count | ClippedSums)
        return
    vectors = [statistic.cells(one, GRID, 10) * GRID for one in patients(statistic, 150, 1)]
    order = 2 if law == "gaussian" else 1
    gaps = vectors if relation == "add-remove" else [a - b for a in vectors for b in vectors]
    largest = max(float(np.linalg.norm(gap, order)) for gap in gaps)
    rounding = GRID * statistic.length
    assert largest <= stated + rounding
    assert largest >= stated * 0.7


@pytest.mark.parametrize("numbers", range(5))
@pytest.mark.parametrize("categories", range(4))
def test_second_moments_move_as_far_as_their_farthest_rows(numbers, categories):
    """Against all corners, and against rows between them: plain matrices, nothing of the statistic's own."""
    columns = {f"x{place}": Interval(0, 1) for place in range(numbers)}
    columns |= {f"c{place}": Categories(["a", "b", "c"]) for place in range(categories)}
    if not columns:
        return
    generator = np.random.default_rng(numbers + 10 * categories)
    corners = [list(row) for row in itertools.product([0.0, 1.0], repeat=numbers)]
    inside = generator.uniform(size=(200, numbers)).tolist()
    apart = [np.eye(3)[place].tolist() * categories for place in (0, 1)]
    first, second = ([np.array([1.0, *row, *one]) for row in [*corners, *inside]] for one in apart)
    gaps = np.array([np.outer(z, z) - np.outer(w, w) for z in first for w in second])
    stated = SecondMoments(Schema(columns)).sensitivity(Adjacency("patient", "replace-one"), "gaussian")
    assert float(np.linalg.norm(gaps, axis=(1, 2)).max()) == pytest.approx(stated, rel=1e-9)
    upper, weights = np.triu_indices(gaps.shape[1]), np.where(np.eye(gaps.shape[1]) > 0, 1.0, math.sqrt(2))
    stated = SecondMoments(Schema(columns)).sensitivity(Adjacency("patient", "replace-one"), "laplace")
    assert float(np.abs(gaps * weights)[:, *upper].sum(axis=1).max()) <= stated * (1 + 1e-9)


def vectors_of(numbers: int, levels: tuple[int, ...], middle: float) -> list[list[float]]:
    """What every patient at a corner, and some between, adds to count, sums and counts: plain Python."""
    inside = np.random.default_rng(numbers).uniform(size=(5, numbers)).tolist()
    told = [[cell - middle for cell in row] for row in [*itertools.product([0.0, 1.0], repeat=numbers), *inside]]
    one_hot = [np.eye(size).tolist() for size in levels]
    words = [list(itertools.chain(*row)) for row in itertools.product(*one_hot)]
    return [[1.0, *left, *right] for left in told for right in words]


@pytest.mark.parametrize("numbers", range(4))
@pytest.mark.parametrize("levels", [(), (1,), (2,), (3, 2)])
@pytest.mark.parametrize("centre_norm", [None, 50.0])
def test_means_move_as_far_as_their_farthest_patients(numbers, levels, centre_norm):
    """Neighbours by brute force: no patient moves the sum further than stated, and some as far."""
    columns = {f"x{place}": Interval(-1, 3) for place in range(numbers)}
    columns |= {f"c{place}": Categories([str(one) for one in range(size)]) for place, size in enumerate(levels)}
    if not columns:
        return
    statistic = Means(Schema(columns), centre_norm=centre_norm)
    vectors = vectors_of(numbers, levels, 0.0 if centre_norm else 0.5)
    for relation in ("add-remove", "replace-one"):
        pairs = itertools.product(vectors, [[0.0] * statistic.length] if relation == "add-remove" else vectors)
        gaps = [[abs(a - b) for a, b in zip(one, other, strict=True)] for one, other in pairs]
        for law, longest in (("laplace", max(map(sum, gaps))), ("gaussian", max(math.hypot(*gap) for gap in gaps))):
            if longest == 0 or (centre_norm and law == "laplace"):
                with pytest.raises(PrivacyParameterError):
                    statistic.sensitivity(Adjacency("patient", relation), law)
                continue
            stated = statistic.sensitivity(Adjacency("patient", relation), law)
            assert longest <= stated <= longest * (1.002 if centre_norm else 1 + 1e-9)


def test_what_means_add_up_is_what_their_moves_are_of():
    for centre_norm, middle in ((None, 0.5), (50.0, 0.0)):
        statistic = Means(Schema({"x": Interval(-1, 3), "c": Categories(["0", "1"])}), centre_norm=centre_norm)
        for x, c in itertools.product([-1.0, 3.0], "01"):
            added = [1.0, (x + 1) / 4 - middle, float(c == "0"), float(c == "1")]
            assert (statistic.cells({"x": [x], "c": [c]}, GRID, 10) * GRID).tolist() == added
            total = statistic.cells({"x": [x, 1.0], "c": [c, c]}, GRID, 10) * GRID
            assert statistic.read(total)["x"] == pytest.approx((x + 1.0) / 2)


def test_the_mean_of_a_number_needs_a_fifth_less_noise_from_the_middle_of_its_range():
    """Beside sums from the lower end, which `centre_norm` still needs."""
    patient = Adjacency("patient", "add-remove")
    middle, end = (
        Means(Schema({"x": Interval(0, 1)}), centre_norm=norm).sensitivity(patient, "gaussian") for norm in (None, 9.0)
    )
    assert middle / end == pytest.approx(math.sqrt(1.25 / 2), rel=2e-3)


def test_a_centre_moves_the_sum_no_further_than_its_norm():
    statistic = Means(MIXED, centre_norm=5.0)
    unit = Adjacency("centre", "replace-one")
    vectors = []
    for seed in range(30):
        rows = patients(statistic, 40, seed)
        table = {name: [row[name][0] for row in rows] for name in MIXED.columns}
        vectors.append(statistic.cells(table, GRID, 100) * GRID)
    assert max(np.linalg.norm(vector) for vector in vectors) <= 5.0 + 1e-6
    assert max(np.linalg.norm(a - b) for a in vectors for b in vectors) <= statistic.sensitivity(unit, "gaussian")
    near = statistic.sensitivity(Adjacency("patient", "add-remove"), "gaussian")
    fewer = statistic.cells({name: values[1:] for name, values in table.items()}, GRID, 100) * GRID
    assert np.linalg.norm(vectors[-1] - fewer) <= near


def moved_at_the_norm(statistic, seed: int, relation: str, order: int, claimed: float) -> float:
    """How far a patient moves a centre whose figure is cut at its norm, against what is claimed: many are tried."""
    chance, grid = np.random.default_rng(seed), 2.0**-20
    names = statistic.schema.columns["k"].values
    heavy, light = chance.integers(1, 900), chance.integers(1, 60)
    rows = [names[0]] * int(heavy) + [name for name in names[1:] for _ in range(int(light))]
    farthest = 0.0
    for name in (names[0], names[-1]):
        other = [*rows, name] if relation == "add-remove" else [name, *rows[:-1]]
        cells = [statistic.cells({"k": one}, grid, 10**6).astype(float) * grid for one in (rows, other)]
        farthest = max(farthest, float(np.linalg.norm(cells[1] - cells[0], order)))
    return farthest / claimed


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("seed", range(6))
def test_no_patient_moves_a_figure_that_is_cut_further_than_stated(relation, law, seed):
    """Of heavy and light cells: cutting to a length in L2 stretches distances in L1, so Laplace noise is refused."""
    adjacency, size = Adjacency("patient", relation), int(np.random.default_rng(seed).integers(2, 500))
    statistic = Histogram(Schema({"k": Categories([f"c{k}" for k in range(size)])}), centre_norm=300.0)
    if law == "laplace":
        with pytest.raises(PrivacyParameterError, match=r"centre_norm bounds .* in L2.*Nothing was spent"):
            statistic.sensitivity(adjacency, law)
        return
    claimed = statistic.sensitivity(adjacency, law) + 2 * 2.0**-20 * math.sqrt(size)
    assert moved_at_the_norm(statistic, seed, relation, 2, claimed) <= 1


def test_a_cut_figure_with_laplace_noise_would_be_found():
    """Planted: the distance of what is not cut, in L1."""
    statistic = Histogram(Schema({"k": Categories([f"c{k}" for k in range(401)])}), centre_norm=300.0)
    worst = max(moved_at_the_norm(statistic, seed, "add-remove", 1, 1.001) for seed in range(20))
    assert worst > 2


def test_a_centre_without_norm_is_not_protected():
    with pytest.raises(PrivacyParameterError, match="centre_norm"):
        Means(MIXED).sensitivity(Adjacency("centre", "replace-one"), "gaussian")


def test_sums_are_exact_in_any_order_and_split():
    statistic = SecondMoments(MIXED)
    rows = patients(statistic, 60, 2)
    parts = [statistic.cells(row, GRID, 10) for row in rows]
    table = {name: [row[name][0] for row in rows] for name in MIXED.columns}
    assert np.array_equal(statistic.cells(table, GRID, 100), sum(parts))


@every_statistic
def test_a_statistic_survives_writing(statistic):
    assert statistic_from_dict(json.loads(json.dumps(statistic.to_dict()))) == statistic


def test_means_are_read_in_their_own_units():
    statistic = Means(MIXED)
    table = {"kalium": [4.0, 5.0], "age": [30.0, 50.0], "sex": ["f", "m"]}
    found = statistic.read(statistic.cells(table, GRID, 10) * GRID)
    assert found == pytest.approx({"count": 2, "kalium": 4.5, "age": 40, "sex=f": 0.5, "sex=m": 0.5})


def test_second_moments_are_the_matrix():
    statistic = SecondMoments(MIXED)
    table = {"kalium": [4.0, 5.0], "age": [30.0, 50.0], "sex": ["f", "m"]}
    z = np.hstack([np.ones((2, 1)), MIXED.encode(table)])
    assert np.allclose(statistic.matrix(statistic.cells(table, GRID, 10) * GRID), z.T @ z, atol=1e-7)


def test_histogram_cells_have_names():
    statistic = Histogram(WARDS)
    found = statistic.read(statistic.cells({"sex": ["m", "m"], "ward": ["c", "c"]}, 1.0, 10).astype(float))
    assert found["sex=m,ward=c"] == 2
    assert sum(found.values()) == 2


def test_too_many_rows_are_cut_and_only_the_own_log_says_so(caplog):
    """A refusal would tell the others that there is one patient more."""
    rows = 40
    table = {"kalium": [1.0] * rows, "age": [1.0] * rows, "sex": ["f"] * rows}
    assert Count(MIXED).cells(table, 0.5, 6) == math.ceil(6 * (1 / 0.5 + 1))
    assert "most_patients" in caplog.text
    assert str(rows) not in caplog.text


@pytest.mark.parametrize("bad", [np.ones(4), np.ones((2, 3)), "text"])
def test_arrays_of_the_wrong_kind_are_refused(bad):
    with pytest.raises(DataError, match="Nothing was sent"):
        ClippedSums(4, 1.0).cells(bad, 1.0, 10)


def test_a_round_keeps_two_promises_at_once():
    """Patients and centres are both protected; the noise is the larger of the two needs."""
    patient = Requirement(Adjacency("patient", "replace-one"), ApproxDP(1.0, 1e-6))
    centre = Requirement(Adjacency("centre", "replace-one"), ApproxDP(2.0, 1e-6))
    members, _ = new_centres("abc")
    statistic = Means(MIXED, centre_norm=40.0)
    both = plan_round("x", members, statistic, [patient, centre], most_patients=100)
    alone = plan_round("x", members, statistic, [patient], most_patients=100)
    assert both.scale > 5 * alone.scale
    for event, wanted in zip(both.events, (patient, centre), strict=True):
        assert event.guarantee().implies(wanted.guarantee) is True
    assert [certificate.adjacency.unit for certificate in both.certificates()] == ["patient", "centre"]


def test_a_grid_too_coarse_for_scaling_is_refused():
    members, _ = new_centres("abc")
    patient = Requirement(Adjacency("patient", "replace-one"), ApproxDP(1.0, 1e-6))
    agreed = plan_round("x", members, Means(MIXED, centre_norm=40.0), [patient], most_patients=100)
    coarse = {**agreed.to_dict(), "grid": 2.0**-8, "scale": agreed.scale * 2}
    with pytest.raises(InputError, match=r"centre_norm|finer grid"):
        type(agreed).from_dict(coarse)


def test_a_round_that_promises_more_than_its_noise_keeps_is_refused():
    members, _ = new_centres("abc")
    agreed = plan_round(
        "x", members, Means(MIXED), [Requirement(Adjacency("p", "add-remove"), ApproxDP(1.0, 1e-6))], most_patients=9
    )
    record = agreed.to_dict()
    for name, value in (("scale", agreed.scale * 0.99), ("bits", 16), ("colluders", 3), ("grid", 0.3), ("nonsense", 1)):
        with pytest.raises(InputError, match="not a round"):
            type(agreed).from_dict({**record, name: value})
    assert type(agreed).from_dict(json.loads(json.dumps(record))) == agreed
