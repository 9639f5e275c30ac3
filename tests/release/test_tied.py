"""Columns tied by linear constraints: no published row breaks one, and the promise holds on records that tie."""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from scipy.sparse.linalg import eigsh

from called import called
from sfumato.core import REPLACE_ONE, Interval, Schema
from sfumato.errors import PrivacyParameterError
from sfumato.evidence import verify
from sfumato.mechanisms.bits import StreamKey
from sfumato.release import BoxRelease, Constraint, NoiseAwareLinearRegression, NoiseAwareMoments, TableNoise
from sfumato.release.tied import TiedColumns, constraints_of

STAY = Schema({"start": Interval(0, 100), "end": Interval(0, 100), "age": Interval(0, 90)})
PARTS = Schema(
    {"one": Interval(0, 1), "two": Interval(-3, 5), "total": Interval(0, 1e3), "low": Interval(5e8, 5e8 + 9)}
)


def released(schema, table, **options):
    with warnings.catch_warnings(action="ignore"):
        return BoxRelease(schema, **options).release(table)


def prepared(schema, **options):
    with warnings.catch_warnings(action="ignore"):
        return BoxRelease(schema, **options).prepare()


def uniform(schema, rows, seed=0):
    """Anything within the ranges: constraints do not hold for most of these rows."""
    generator = np.random.default_rng(seed)
    return {name: generator.uniform(domain.low, domain.high, rows) for name, domain in schema.columns.items()}


TIES = {
    "order": (STAY, [("start", "end")]),
    "chain": (STAY, [("start", "end", "age")]),
    "star": (STAY, [("start", "end"), ("start", "age")]),
    "half a year later": (STAY, [Constraint({"start": -1.0, "end": 1.0}, least=26.0)]),
    "never negative": (STAY, [Constraint({"age": 1.0})]),
    "parts of a total": (PARTS, [Constraint({"one": -1.0, "two": -1.0, "total": 1.0})]),
    "far from zero": (PARTS, [Constraint({"low": -1.0, "total": 0.001}, least=-5e8)]),
    "two groups": (PARTS, [("one", "two"), Constraint({"total": 2.0, "low": -1e-9}, least=-1.0)]),
}


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("half_width", [0.4, 20.0])
@pytest.mark.by_day(5)
def test_no_published_row_breaks_a_constraint(tie, half_width):
    """Whatever the records were: those that break a constraint count as ones that just keep it."""
    schema, constraints = TIES[tie]
    table = uniform(schema, 4000)
    out = released(schema, table, half_width=half_width, constraints=constraints)
    for one in constraints_of(constraints):
        found = sum(weight * np.asarray(out.table[name]) for name, weight in one.terms.items())
        true = sum(weight * table[name] for name, weight in one.terms.items())
        assert (found >= one.least).all()
        assert (found >= true).all()  # the noise only widens: any other bound that records keep is kept too
    assert verify(out.certificate).ok
    assert TableNoise.from_json(out.noise.to_json()) == out.noise


def test_free_columns_break_the_order():
    """The test above could fail: without the constraint most of the published rows of tight records break it."""
    table = uniform(STAY, 4000)
    table["end"] = table["start"]
    out = released(STAY, table, half_width=20.0)
    assert (out.table["start"] > out.table["end"]).mean() > 0.4


@pytest.mark.paper("000", "Thm 2.6", "release/tied.py")
def test_the_noise_of_an_order_is_the_least_informative_on_its_support():
    """Against the lowest eigenvector of the plain Laplacian on a lattice of the plane (n_start, n_end).

    The support |n_start + n_end| ≤ 2h, 0 ≤ n_end - n_start ≤ 2h stands on its corner, so that its walls run through
    lattice points. 4·eigenvalue is the least trace of information; the other numbers are a quadrature of the density.
    """
    half, cells = 3.0, 40
    act = prepared(
        Schema({"start": Interval(0, 1), "end": Interval(0, 1)}), half_width=half, constraints=[("start", "end")]
    )
    step = half / cells
    inside = [
        (a, b)
        for a in range(-2 * cells, cells)
        for b in range(-cells, 2 * cells + 1)
        if abs(a + b) < 2 * cells and 0 < b - a < 2 * cells
    ]
    number = {place: index for index, place in enumerate(inside)}
    pairs = [(number[p], number[q]) for p in inside for q in ((p[0] + 1, p[1]), (p[0], p[1] + 1)) if q in number]
    rows, columns = np.array(pairs).T
    beside = sparse.coo_matrix((np.ones(len(pairs)), (rows, columns)), shape=(len(inside), len(inside)))
    value, vector = eigsh((4 * sparse.identity(len(inside)) - beside - beside.T).tocsc() / step**2, k=1, sigma=0.0)
    density = vector[:, 0] ** 2 / step**2
    places = np.array(inside) * step
    mean = density @ places * step**2
    spread = (places - mean).T @ ((places - mean) * density[:, None]) * step**2
    informed = sum(1 / error.unbiased for error in act.attacker.values())
    joint = np.linalg.inv(np.array(act.acts[0].weights(act.schema)) @ np.array(act.acts[0].weights(act.schema)).T)
    assert 4 * value[0] == pytest.approx(math.pi**2 / half**2 * np.trace(joint), rel=2e-3)
    np.testing.assert_allclose(mean, [act.noise.shifts["start"], act.noise.shifts["end"]], atol=2e-3)
    np.testing.assert_allclose(spread, act.noise.covariance, rtol=2e-2)
    slopes = _slopes(number, vector[:, 0] / step, step)
    np.testing.assert_allclose(np.diag(np.linalg.inv(slopes)), [e.unbiased for e in act.attacker.values()], rtol=1e-2)
    assert informed < np.trace(slopes)  # who sees one column alone knows less than of both together


def _slopes(number, state, step):
    """4∫∇u∇uᵀ by central differences, u = 0 outside."""

    def at(places):
        return np.array([state[number[place]] if place in number else 0.0 for place in places])

    reach = sorted({(a + i, b + j) for a, b in number for i in (-1, 0, 1) for j in (-1, 0, 1)})
    gradient = np.stack(
        [
            (at([(a + 1, b) for a, b in reach]) - at([(a - 1, b) for a, b in reach])) / (2 * step),
            (at([(a, b + 1) for a, b in reach]) - at([(a, b - 1) for a, b in reach])) / (2 * step),
        ]
    )
    return 4 * gradient @ gradient.T * step**2


@pytest.mark.slow
def test_the_promise_is_that_of_as_many_free_columns_and_covers_every_pair_of_corners():
    """δ(ε) between records at the corners of start ≤ end, by summing the joint density over the plane."""
    half = 6.0
    tied = prepared(STAY.select(["start", "end"]), half_width=half, constraints=[("start", "end")])
    free = prepared(STAY.select(["start", "end"]), half_width=half)
    assert tied.guarantee.delta(1.0) == pytest.approx(free.guarantee.delta(1.0), rel=0.02)
    assert tied.guarantee.adjacency == free.guarantee.adjacency
    middles, gaps = np.meshgrid(np.linspace(-7, 7, 1401), np.linspace(-7, 7, 1401))

    def density(start, end):
        inner = (np.abs(middles - (start + end) / 2) < half) & (np.abs(gaps - (end - start)) < half)
        waves = np.cos(math.pi * (middles - (start + end) / 2) / (2 * half)) * np.cos(
            math.pi * (gaps - end + start) / (2 * half)
        )
        return np.where(inner, waves**2, 0.0) / half**2 * 0.01**2

    corners, worst = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)], 0.0
    for one, other in itertools.permutations(corners, 2):
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            delta = float(np.maximum(density(*one) - math.exp(epsilon) * density(*other), 0.0).sum())
            assert delta <= tied.guarantee.delta(epsilon)
            worst = max(worst, delta / tied.guarantee.delta(epsilon))
    assert worst > 0.5


@pytest.mark.slow
def test_published_moments_are_those_the_law_states():
    """Mean and covariance of 200,000 draws, within five standard errors; noise on free columns is far outside."""
    rows = 200_000
    table = {"start": np.full(rows, 20.0), "end": np.full(rows, 30.0), "age": np.zeros(rows)}
    out = released(STAY, table, half_width=2.0, trade_off=0.5, constraints=[("start", "end")])
    noise = np.column_stack([np.asarray(out.table[name]) - table[name] for name in out.noise.columns])
    means = np.array([out.noise.shifts.get(name, 0.0) for name in out.noise.columns])
    centred = noise - means
    products = centred[:, :, None] * centred[:, None, :]
    errors = products.std(axis=0) / math.sqrt(rows)
    assert (np.abs(centred.mean(axis=0)) < 5 * noise.std(axis=0) / math.sqrt(rows)).all()
    assert (np.abs(products.mean(axis=0) - out.noise.covariance) < 5 * errors).all()
    assert out.noise.covariance[1, 2] > 50 * errors[1, 2]
    for place, law in enumerate(out.noise.laws):
        assert float((centred[:, place] < 40.0).mean()) == pytest.approx(
            float(law.cdf(40.0)), abs=5 * 0.5 / math.sqrt(rows)
        )


def test_readers_who_know_the_law_get_the_truth_back():
    generator = np.random.default_rng(2)
    start = generator.uniform(0, 60, 40_000)
    end = start + generator.uniform(0, 40, 40_000)
    schema = STAY.select(["start", "end"])
    out = released(schema, {"start": start, "end": end}, half_width=0.5, constraints=[("start", "end")])
    moved = {name: np.asarray(out.table[name]) - out.noise.shifts[name] for name in ("start", "end")}
    law = dataclasses.replace(out.noise, shifts={})
    model = NoiseAwareLinearRegression(law).fit(moved, 2 * start - end)
    assert (np.abs(model.coef_ - [2, -1]) < 5 * model.standard_error_).all()
    assert NoiseAwareMoments(law).fit(moved).quantile("end", 0.5) == pytest.approx(np.median(end), abs=1.5)


def test_a_key_repeats_its_noise_and_batches_do_not():
    act = prepared(STAY, constraints=[("start", "end")])
    rows = pa.table({name: np.zeros(50) for name in STAY.columns})
    keyed = act.keyed(StreamKey.fresh())
    assert keyed.apply(rows, 3) == keyed.apply(rows, 3)
    assert keyed.apply(rows, 3) != keyed.apply(rows, 4)
    assert act.apply(rows) != act.apply(rows)
    middle = [(keyed.apply(rows, 3)["start"].to_numpy() + keyed.apply(rows, 3)["end"].to_numpy()) / 2]
    gap = keyed.apply(rows, 3)["end"].to_numpy() - keyed.apply(rows, 3)["start"].to_numpy()
    assert abs(np.corrcoef(middle[0], gap)[0, 1]) < 0.9  # the coordinates have streams of their own


def test_clipping_keeps_an_order_of_ordered_ranges():
    table = uniform(STAY, 3000)
    out = released(STAY, table, half_width=1.0, constraints=[("start", "end")], clip=True)
    assert (out.table["start"] <= out.table["end"]).all()
    assert out.table["end"].max() <= 100


WRONG = {
    "not a column": ({"constraints": [("start", "finish")]}, "numeric features are"),
    "one name": ({"constraints": [("start",)]}, "rising order"),
    "a word": ({"constraints": ["start"]}, "rising order"),
    "itself": ({"constraints": [("start", "start")]}, "against itself"),
    "a circle": ({"constraints": [("start", "end", "age", "start")]}, "follows from the others"),
    "both sides": ({"constraints": [("start", "end"), Constraint({"start": 1.0, "end": -1.0}, -9.0)]}, "both sides"),
    "huge": ({"constraints": [Constraint({"start": -1e307, "end": 1e307})]}, "divide them"),
    "no room": ({"constraints": [Constraint({"start": -1.0, "end": 1.0}, 100.0)]}, "no room"),
    "no weight": ({"constraints": [("start", "end")], "weights": {"end": 2.0}}, "boxes and weights"),
    "no box": ({"constraints": [("start", "end")], "boxes": {"start": 2.0}}, "boxes and weights"),
    "the label": ({"constraints": [("start", "end")], "label": "end"}, "not a numeric feature"),
    "clipping": ({"constraints": [("start", "age")], "clip": True}, "clip=False"),
    "clipped sums": ({"constraints": [Constraint({"start": 1.0, "end": 1.0}, 3.0)], "clip": True}, "clip=False"),
}


@pytest.mark.parametrize("why", WRONG)
def test_what_cannot_be_kept_is_refused_with_the_way_out(why):
    options, words = WRONG[why]
    with pytest.raises(PrivacyParameterError, match=words) as caught:
        prepared(STAY, **options)
    assert "Nothing was drawn or spent" in str(caught.value)


@pytest.mark.parametrize("terms", [{}, {"start": 0.0}, {"start": math.inf}])
def test_a_constraint_needs_weights(terms):
    with pytest.raises(PrivacyParameterError, match="weights that are numbers"):
        Constraint(terms)


def test_columns_too_far_from_zero_are_refused():
    far = Schema({"start": Interval(1e15, 1e15 + 4), "end": Interval(1e15, 1e15 + 4)})
    with pytest.raises(PrivacyParameterError, match="floating point"):
        prepared(far, half_width=0.01, constraints=[("start", "end")])


def test_every_coordinate_of_every_record_lies_between_0_and_1():
    """The sensitivity that is charged: brute force over corners and random records, broken constraints included."""
    for schema, constraints in TIES.values():
        for act in prepared(schema, constraints=constraints).acts:
            if not isinstance(act, TiedColumns):
                continue
            corners = np.array(list(itertools.product((0.0, 1.0), repeat=len(act.columns))))
            found = corners @ np.array(act.rows).T + act.offsets
            assert (found[:, act.forms :].min(axis=0) > -1e-9).all()
            assert (found.max(axis=0) < 1 + 1e-9).all()
            assert (found.max(axis=0) > 1 - 1e-9).all()  # no range is wider than records need
            assert act.mechanism.sensitivity == 1.0
            assert act.events()[0].adjacency.relation == REPLACE_ONE.relation


def test_the_command_keeps_an_order(tmp_path):
    parquet.write_table(pa.table(uniform(STAY, 300)), tmp_path / "stays.parquet")
    STAY.write(tmp_path / "stays.toml")
    said = ["release", "stays.parquet", "--schema", "stays.toml", "--ordered", "start, end", "--out", "out", "--grant"]
    refused = called(*said, "--epsilon", "1", "--delta", "1e-6", cwd=tmp_path)
    assert refused.returncode != 0
    assert "--method box" in refused.stdout + refused.stderr
    done = called(*said, "--method", "box", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept = parquet.read_table(tmp_path / "out" / "table.parquet")
    assert (kept["start"].to_numpy() <= kept["end"].to_numpy()).all()
    assert called("verify", "out", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("half_width", [1e300, 1e160, 1e-160])
@pytest.mark.parametrize("constraints", [(), (("start", "end"),)])
def test_a_box_whose_square_is_no_number_is_refused(half_width, constraints):
    schema = Schema({"start": Interval(0, 1), "end": Interval(0, 1)})
    with pytest.raises(PrivacyParameterError, match="Nothing was drawn"):
        BoxRelease(schema, half_width=half_width, constraints=constraints).prepare()
