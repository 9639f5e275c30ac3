"""Several quantiles drawn together: every law written out for small cases, every neighbour, the exact path forced."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ApproxDP, PureDP
from sfumato.core.adjacency import Adjacency
from sfumato.core.events.quantiles import QuantilesEvent, gaps_of, quantiles_sensitivity
from sfumato.errors import InputError
from sfumato.mechanisms import JointQuantiles, joint_paths
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.joint_paths import JointPaths
from sfumato.mechanisms.quantile_grid import QuantileGrid, spread_points


def law_of(points: tuple[int, ...], total: int, quantiles: tuple[float, ...], scale: float) -> dict[tuple, float]:
    """All tuples with their probabilities, in plain Python."""
    size, weights = len(points), {}
    wanted = [(above - below) * size for below, above in itertools.pairwise((0.0, *quantiles, 1.0))]
    for places in itertools.combinations_with_replacement(range(total), len(quantiles)):
        ranks = [0, *(sum(point < place for point in points) for place in places), size]
        miss = sum(abs(ranks[k + 1] - ranks[k] - want) for k, want in enumerate(wanted))
        weights[places] = math.exp(-miss / scale)
    whole = math.fsum(weights.values())
    return {places: weight / whole for places, weight in weights.items()}


def some_case(seed: int) -> tuple[tuple[int, ...], int, tuple[float, ...], float]:
    rng = np.random.default_rng(seed)
    total = int(rng.integers(2, 9))
    quantiles = tuple(sorted({round(float(q), 2) for q in rng.uniform(0.03, 0.97, int(rng.integers(1, 5)))}))
    points = tuple(sorted(rng.integers(0, total, int(rng.integers(0, 8))).tolist()))
    return points, total, quantiles, float(rng.uniform(0.2, 6.0))


def paths_of(points: tuple[int, ...], total: int, quantiles: tuple[float, ...], scale: float) -> JointPaths:
    return JointPaths(np.array(points, dtype=np.int64), total, gaps_of(quantiles), scale)


def surprise(paths: JointPaths, law: dict[tuple, float], trials: int, seed: int) -> float:
    """The chance of a larger chi-square, over tuples that are expected at least five times."""
    counts = Counter(map(tuple, paths.draw(trials, Bits(seed)).tolist()))
    assert set(counts) <= set(law)
    common = {places: trials * chance for places, chance in law.items() if trials * chance >= 5}
    rest = trials - sum(common.values())
    square = sum((counts[places] - mean) ** 2 / mean for places, mean in common.items())
    if rest >= 5:
        square += (trials - sum(counts[places] for places in common) - rest) ** 2 / rest
    return float(chi2.sf(square, max(1, len(common) - (rest < 5))))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.by_day(5)
def test_the_draw_has_the_law(seed):
    case = some_case(seed)
    law, paths = law_of(*case), paths_of(*case)
    likely = np.exp(paths.log_likelihood(np.array(list(law))))
    assert np.allclose(likely, list(law.values()), rtol=1e-9)
    assert surprise(paths, law, 4_000, seed) > 1e-6


def test_the_law_finds_a_draw_that_forgets_tuples_within_a_stretch(monkeypatch):
    """Placing a run independently and sorting it favours spread tuples: the number of orders depends on the rows."""

    def sorted_ones(length: int, size: int, bits: Bits) -> list[int]:
        return sorted(bits.below(length, size).tolist())

    monkeypatch.setattr(joint_paths, "_tuple", sorted_ones)
    assert any(surprise(paths_of(*some_case(seed)), law_of(*some_case(seed)), 4_000, seed) < 1e-6 for seed in range(25))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.by_day(2)
def test_wrong_sums_cost_redraws_and_not_the_law(seed, monkeypatch):
    """The sums only propose: with a fifth off, and the margin to match, what is kept has the same law."""
    honest = joint_paths._after
    rng = np.random.default_rng(seed)

    def off(*arguments):
        found = honest(*arguments)
        return found + rng.uniform(-0.2, 0.2, found.shape)

    monkeypatch.setattr(joint_paths, "_after", off)
    monkeypatch.setattr(joint_paths, "_MARGIN", 2.0)
    case = some_case(seed)
    assert surprise(paths_of(*case), law_of(*case), 4_000, seed) > 1e-6


def test_an_undecided_word_is_decided_by_further_bits():
    third = lambda length: (Fraction(1, 3) - Fraction(1, 2**length), Fraction(1, 3) + Fraction(1, 2**length))  # noqa: E731

    class Edge(Bits):
        def words(self, count: int) -> np.ndarray:
            edge = np.full(count, (1 << 64) // 3, dtype=np.uint64)
            return edge if count == 40 else super().words(count)

    heads = joint_paths._flips(third, 40, Edge(seed=3))
    assert 0 < heads.sum() < 40  # the first 64 bits say nothing, the next ones decide either way


# ── every neighbour of every small table ─────────────────────────────────────────────────────────────────────────────


def worst_ratio(quantiles: tuple[float, ...], scale: float, relation: str, rows: int, total: int, most: int) -> float:
    """The largest log-ratio of two neighbours' laws, over all tables of at most `most` rows."""
    tables = [t for size in range(most + 1) for t in itertools.combinations_with_replacement(range(total), size)]
    laws = {table: law_of(table, total, quantiles, scale) for table in tables}
    worst = 0.0
    for one, other in itertools.combinations(tables, 2):
        if are_neighbours(Counter(one), Counter(other), relation, rows):
            worst = max(worst, *(abs(math.log(laws[one][y] / laws[other][y])) for y in laws[one]))
    return worst


def are_neighbours(one: Counter, other: Counter, relation: str, rows: int) -> bool:
    gone, come = (one - other).total(), (other - one).total()
    return max(gone, come) <= rows and (relation == "replace-one" or min(gone, come) == 0)


@pytest.mark.parametrize("quantiles", [(0.5,), (0.1,), (0.25, 0.75), (0.2, 0.5, 0.9)])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.by_day(12)
def test_no_neighbour_tells_more(quantiles, relation, rows):
    scale = 2.0
    epsilon = QuantilesEvent(quantiles, rows, scale, adjacency=Adjacency("person", relation)).eps
    worst = worst_ratio(quantiles, scale, relation, rows, 4, 4)
    assert worst <= epsilon * (1 + 1e-9)
    assert worst >= 0.35 * epsilon


def worst_move(quantiles: tuple[float, ...], relation: str, total: int, most: int) -> float:
    tables = [t for size in range(most + 1) for t in itertools.combinations_with_replacement(range(total), size)]
    places = list(itertools.combinations_with_replacement(range(total), len(quantiles)))

    def miss(table: tuple, at: tuple) -> float:
        ranks = [0, *(sum(row < place for row in table) for place in at), len(table)]
        shares = itertools.pairwise((0.0, *quantiles, 1.0))
        return sum(abs(ranks[k + 1] - ranks[k] - (b - a) * len(table)) for k, (a, b) in enumerate(shares))

    scores = {table: [miss(table, at) for at in places] for table in tables}
    return max(
        abs(a - b)
        for one, other in itertools.combinations(tables, 2)
        if are_neighbours(Counter(one), Counter(other), relation, 1)
        for a, b in zip(scores[one], scores[other], strict=True)
    )


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("quantiles", [(0.5,), (0.2,), (0.25, 0.5, 0.75)])
@pytest.mark.by_day(5)
def test_the_sensitivity_is_attained(quantiles, relation):
    claimed = float(quantiles_sensitivity(quantiles, 1, relation))
    assert 0.8 * claimed <= worst_move(quantiles, relation, 4, 5) <= claimed + 1e-12


def test_ties_are_points_of_their_own():
    """One row more is one point more, wherever it falls: the promise is about points."""
    grid = QuantileGrid.between(0.0, 1.0, 0.25)
    rng = np.random.default_rng(2)
    for _ in range(50):
        cells = rng.integers(0, 5, 40)
        before = Counter(grid.points_of(cells).tolist())
        after = Counter(grid.points_of(np.append(cells, rng.integers(0, 5))).tolist())
        assert (after - before).total() == 1
        assert not before - after
    assert len(set(spread_points(np.arange(1000), np.full(1000, 1 << 40)).tolist())) == 1000


# ── what is published ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", ["even", "skewed", "ties", "zeros", "constant"])
def test_a_large_epsilon_gives_the_quantiles_of_numpy(shape):
    rng = np.random.default_rng(4)
    values = {
        "even": rng.uniform(0, 100, 1001),
        "skewed": np.exp(rng.normal(0, 1, 1001)),
        "ties": rng.integers(0, 12, 1001) * 7.0,
        "zeros": np.where(rng.random(1001) < 0.97, 0.0, rng.uniform(0, 100, 1001)),
        "constant": np.full(1001, 42.5),
    }[shape]
    wanted = tuple((np.arange(1, 20) / 20 - 0.0003).round(4).tolist())
    draw = JointQuantiles.for_guarantee(PureDP(1e6), 1, REPLACE_ONE, quantiles=wanted, low=0.0, high=100.0)
    placed = np.sort(np.clip(values, 0, 100))
    found = draw(values)
    step = draw.grid.step
    above, below = np.searchsorted(placed, found + step, "right"), np.searchsorted(placed, found - step, "left")
    assert np.all(above >= np.array(wanted) * 1001 - 1)
    assert np.all(below <= np.array(wanted) * 1001 + 1)


def test_of_nobody_the_public_weights_are_drawn():
    draw = JointQuantiles.for_guarantee(PureDP(1.0), 1, ADD_REMOVE, quantiles=(0.25, 0.5), low=0.0, high=10.0)
    found = np.array([draw.choose(np.array([])) for _ in range(40)])
    assert np.all((found >= 0) & (found <= 10))
    assert len(np.unique(found)) > 3


def test_values_are_the_decimals_one_would_write():
    draw = JointQuantiles.for_guarantee(PureDP(50.0), 1, REPLACE_ONE, low=0.0, high=110.0)
    assert draw(np.full(1000, 37.0)).tolist() == [37.0]
    by_five = JointQuantiles.for_guarantee(PureDP(50.0), 1, REPLACE_ONE, low=-20.0, high=110.0, step=5.0)
    assert by_five(np.full(1000, -14.0)).tolist() == [-15.0]
    assert by_five.grid.count == 27


@pytest.mark.parametrize(
    "wrong",
    [{"quantiles": (0.0, 0.5)}, {"quantiles": (1.0,)}, {"quantiles": (0.5, 0.5)}, {"quantiles": (0.9, 0.1)},
     {"quantiles": ()}, {"quantiles": (math.nan,)}, {"quantiles": ("half",)}, {"quantiles": 0.5},
     {"low": 1.0, "high": 1.0}, {"low": 2.0, "high": 1.0}, {"low": math.nan}, {"high": math.inf}, {"step": -1.0},
     {"step": math.nan}],
)  # fmt: skip
def test_what_is_no_quantile_and_no_range_is_refused(wrong):
    with pytest.raises(InputError, match="Nothing was spent"):
        JointQuantiles.for_guarantee(PureDP(1.0), 1, REPLACE_ONE, **wrong)


def test_a_promise_with_a_delta_is_kept_by_a_pure_draw():
    made = JointQuantiles.for_guarantee(ApproxDP(1.0, 1e-6), 3, ADD_REMOVE, quantiles=(0.25, 0.5))
    assert made.guarantee().implies(ApproxDP(1.0, 1e-6)) is True
    assert made.event().sensitivity == Fraction(9, 2)


def test_rows_and_ranks_of_a_hundred_thousand():
    """Nineteen quantiles at ε = 1: a rank error of about 8, the one that is predicted."""
    values = np.random.default_rng(0).uniform(0, 1e5, 100_000)
    wanted = tuple((np.arange(1, 20) / 20).round(2).tolist())
    draw = JointQuantiles.for_guarantee(PureDP(1.0), 1, REPLACE_ONE, quantiles=wanted, low=0.0, high=1e5)
    ranks = np.searchsorted(np.sort(values), draw(values))
    off = np.abs(ranks - np.array(wanted) * 100_000)
    assert off.mean() < 5 * math.sqrt(draw.error())
