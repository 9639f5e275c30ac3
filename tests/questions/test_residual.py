"""Marginals by residuals against dense matrices over the whole domain, exact fractions and all pairs of neighbours."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from sfumato.questions.consistency import DrawnTables, nonnegative
from sfumato.questions.residual import Workload, all_tables, project
from sfumato.questions.residual_strategy import ResidualStrategy, optimal_strategy
from tests.questions import dense

SEEDS = range(40)
NEIGHBOURS = [(False, False), (True, True), (True, False)]


def some_strategy(seed: int) -> tuple[ResidualStrategy, random.Random]:
    chance = random.Random(seed)
    workload = Workload(*dense.random_workload(chance))
    return optimal_strategy(workload, *NEIGHBOURS[seed % 3]), chance


def encoded(strategy: ResidualStrategy, rows: list) -> np.ndarray:
    workload = strategy.workload
    return strategy.encode(dense.tables_of(workload.sizes, workload.tables, rows))


def largest_move(strategy: ResidualStrategy) -> float:
    """Over all pairs of neighbours, by adding up: a row alone moves what it moves in any company."""
    everywhere = [encoded(strategy, [row]).astype(float) for row in dense.records(strategy.workload.sizes)]
    moves = [0.0]
    if strategy.replaces:
        moves += [np.linalg.norm(one - other) for one, other in itertools.combinations(everywhere, 2)]
    if not (strategy.replaces and strategy.everybody):
        moves += [np.linalg.norm(one) for one in everywhere]
    return float(max(moves))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.by_day(17)
def test_no_neighbour_moves_the_numbers_farther_than_claimed_and_one_comes_close(seed):
    strategy, _ = some_strategy(seed)
    truth = largest_move(strategy)
    assert truth <= strategy.l2 <= truth * (1 + 1e-9) + 1e-300


def test_doubling_what_a_removed_row_costs_would_be_found_out():
    """Residuals of two rows may point in opposite directions: replacing is more than twice removing, in squares."""
    strategy = optimal_strategy(Workload((2,), ((0,),)), replaces=True, everybody=True)
    removed = float(np.linalg.norm(encoded(strategy, [(0,)]).astype(float)))
    assert math.sqrt(2) * removed < 0.8 * largest_move(strategy)


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_whole_and_linear_in_the_rows(seed):
    strategy, chance = some_strategy(seed)
    records = dense.records(strategy.workload.sizes)
    one, other = (chance.choices(records, k=30) for _ in range(2))
    workload = strategy.workload
    tables = [dense.tables_of(workload.sizes, workload.tables, rows) for rows in (one, other, one + other)]
    first, second, both = map(strategy.whole, tables)
    assert both.dtype == np.int64
    assert np.array_equal(both, first + second)
    assert np.array_equal(encoded(strategy, one + other) * 2.0**strategy.digits, both)
    assert both.size == strategy.dimension


@pytest.mark.parametrize("seed", SEEDS)
def test_without_noise_the_tables_come_back(seed):
    strategy, chance = some_strategy(seed)
    workload = strategy.workload
    rows = chance.choices(dense.records(workload.sizes), k=50)
    truth = dense.tables_of(workload.sizes, workload.tables, rows)
    found = strategy.decode(encoded(strategy, rows).astype(float), total=50)
    for table in workload.tables:
        np.testing.assert_allclose(found[table], truth[table], atol=1e-9)


def decoding_matrix(strategy: ResidualStrategy) -> np.ndarray:
    """What each published cell takes of each drawn number."""
    columns = []
    for place in range(strategy.dimension):
        unit = np.zeros(strategy.dimension)
        unit[place] = 1.0
        columns.append(np.concatenate([made.reshape(-1) for made in strategy.decode(unit, total=0).values()]))
    return np.array(columns).T.reshape(-1, strategy.dimension)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.by_day(8)
def test_variances_and_covariances_are_those_of_the_decoded_noise(seed):
    strategy, _ = some_strategy(seed)
    workload = strategy.workload
    matrix = decoding_matrix(strategy)
    scale = strategy.l2
    truth = scale**2 * matrix @ matrix.T
    cells = [
        (table, cell) for table in workload.tables for cell in itertools.product(*map(range, workload.shape(table)))
    ]
    spreads = strategy.spreads(scale**2)
    variances = strategy.variances(scale**2)
    for (i, (table, cell)), (j, (other, its)) in itertools.product(enumerate(cells[::3]), enumerate(cells[::5])):
        found = workload.covariance(table, cell, other, its, spreads)
        assert found == pytest.approx(truth[3 * i, 5 * j], abs=1e-9 * max(1.0, abs(truth).max()))
    for i, (table, _) in enumerate(cells):
        assert variances[table] == pytest.approx(truth[i, i], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_agree_with_each_other_and_with_the_public_total(seed):
    strategy, _ = some_strategy(seed)
    workload = strategy.workload
    noise = np.random.default_rng(seed).normal(size=strategy.dimension) * strategy.l2
    found = strategy.decode(noise, total=17)
    for one, other in itertools.combinations(workload.tables, 2):
        shared = set(one) & set(other)
        sums = [
            found[table].sum(axis=tuple(axis for axis, column in enumerate(table) if column not in shared))
            for table in (one, other)
        ]
        np.testing.assert_allclose(*sums, atol=1e-8)
    if strategy.total_is_public:
        for table in workload.tables:
            assert found[table].sum() == pytest.approx(17)


@pytest.mark.parametrize("seed", range(12))
def test_adding_or_removing_reaches_the_bound_by_singular_values(seed):
    """No Gaussian mechanism at all has less total squared error: (Σ singular values)² / cells of the domain."""
    chance = random.Random(seed)
    sizes, tables = dense.random_workload(chance)
    workload = Workload(sizes, tables)
    strategy = optimal_strategy(workload, replaces=False, everybody=False)
    values = np.linalg.svd(dense.workload_matrix(sizes, tables), compute_uv=False)
    bound = values.sum() ** 2 / math.prod(sizes)
    total = sum(workload.cells(table) * value for table, value in strategy.variances(strategy.l2**2).items())
    assert bound * (1 - 1e-9) <= total <= bound * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_replacing_is_within_a_thousandth_of_what_any_precisions_reach(seed):
    """Against a general solver over the same convex program, written with all pairs of records."""
    cvxpy = pytest.importorskip("cvxpy")
    chance = random.Random(seed)
    workload = Workload(*dense.random_workload(chance, largest=40))
    strategy = optimal_strategy(workload, replaces=True, everybody=True)
    if not strategy.drawn:
        pytest.skip("nothing is drawn")
    rows = []
    first, *others = dense.records(workload.sizes)  # by symmetry one record may be held
    for other in others:
        moved = dense.tables_of(workload.sizes, strategy.drawn, [first])
        back = dense.tables_of(workload.sizes, strategy.drawn, [other])
        rows.append([float(np.sum(project(moved[part] - back[part]) ** 2)) for part in strategy.drawn])
    importance = np.array([workload.importance()[part] for part in strategy.drawn])
    precision = cvxpy.Variable(len(importance), pos=True)
    problem = cvxpy.Problem(cvxpy.Minimize(importance @ cvxpy.inv_pos(precision)), [np.array(rows) @ precision <= 1])
    least = problem.solve(solver="CLARABEL")
    variances = strategy.variances(strategy.l2**2)
    mean = sum(workload.cells(table) * value for table, value in variances.items()) / workload.numbers
    assert least * (1 - 1e-6) <= mean <= least * 1.001


@pytest.mark.parametrize("relation", NEIGHBOURS)
def test_the_move_is_right_to_the_last_digit_in_exact_fractions(relation):
    workload = Workload((2, 3, 5, 7), all_tables(4, 3))
    strategy = optimal_strategy(workload, *relation)
    steps = (Fraction(factor, 2**strategy.digits) for factor in strategy.factors)
    lengths = dict(zip(strategy.drawn, steps, strict=True))
    largest = Fraction(0)
    for differing in itertools.product((0, 1), repeat=4):
        if not any(differing) or not strategy.replaces:
            continue
        total = Fraction(0)
        for part, factor in lengths.items():
            unit = factor * workload.cells(part)
            own = math.prod((1 - Fraction(1, workload.sizes[c]) for c in part), start=Fraction(1))
            crossed = math.prod(
                (Fraction(-1, workload.sizes[c]) if differing[c] else 1 - Fraction(1, workload.sizes[c]) for c in part),
                start=Fraction(1),
            )
            total += unit**2 * 2 * (own - crossed)
        largest = max(largest, total)
    if not (strategy.replaces and strategy.everybody):
        alone = sum(
            (f * workload.cells(p)) ** 2 * math.prod((1 - Fraction(1, workload.sizes[c]) for c in p), start=Fraction(1))
            for p, f in lengths.items()
        )
        largest = max(largest, Fraction(alone))
    assert largest <= Fraction(strategy.l2) ** 2 <= largest * (1 + Fraction(1, 10**12))


def test_the_same_plan_on_every_machine():
    """Whole factors, to the last one: a plan made here is the plan a run elsewhere encodes by."""
    strategy = optimal_strategy(Workload((2, 3, 5), all_tables(3, 2)), replaces=True, everybody=True)
    assert (strategy.digits, strategy.factors) == (17, (15960, 13289, 9916, 8083, 5519, 4185))


def test_counts_beyond_64_bits_stay_exact():
    workload = Workload((2, 2), ((0, 1),))
    strategy = optimal_strategy(workload, replaces=True, everybody=True)
    huge = np.array([[2**60 + 1, 0], [0, 1]], dtype=np.int64)
    one_more = np.array([[2**60, 1], [0, 1]], dtype=np.int64)
    moved = strategy.encode({(0, 1): huge}) - strategy.encode({(0, 1): one_more})
    assert all(isinstance(value, Fraction) for value in moved)
    assert strategy.l2**2 / 100 <= sum(value**2 for value in moved) <= strategy.l2**2


def test_many_columns_are_charged_each_residuals_own_worst_neighbour():
    workload = Workload((2,) * 24, all_tables(24, 2))
    strategy = optimal_strategy(workload, replaces=True, everybody=True)
    chance = random.Random(3)
    moves = [0.0]
    for differing in (24, *(chance.randrange(1, 25) for _ in range(60))):  # all columns, and any number of them
        one = [chance.randrange(2) for _ in range(24)]
        moved = set(chance.sample(range(24), differing))
        other = [1 - level if column in moved else level for column, level in enumerate(one)]
        moves.append(float(np.linalg.norm((encoded(strategy, [one]) - encoded(strategy, [other])).astype(float))))
    assert 0.5 * strategy.l2 < max(moves) <= strategy.l2


def test_weights_make_a_table_more_exact_at_the_cost_of_the_others():
    workload = Workload((3, 4, 5), all_tables(3, 2))
    even = optimal_strategy(workload, True, True)
    first = optimal_strategy(workload, True, True, weights=[100.0, 1.0, 1.0])
    before, after = even.variances(even.l2**2), first.variances(first.l2**2)
    assert after[0, 1] < 0.8 * before[0, 1]
    assert after[1, 2] > before[1, 2]


# ── plain tables made consistent ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", SEEDS)
def test_least_squares_of_plain_tables_is_the_dense_one(seed):
    chance = random.Random(seed)
    sizes, tables = dense.random_workload(chance, largest=60)
    workload = Workload(sizes, tables)
    variances = tuple(chance.uniform(0.2, 5) for _ in tables)
    public = bool(seed % 2)
    measured = DrawnTables(workload, tables, variances, total_is_public=public)
    noisy = {table: np.random.default_rng(seed).normal(5, 3, workload.shape(table)) for table in tables}
    matrix = dense.workload_matrix(sizes, tables)
    spread = np.concatenate([np.full(workload.cells(t), v) for t, v in zip(tables, variances, strict=True)])
    drawn = np.concatenate([noisy[table].reshape(-1) for table in tables])
    facts = np.ones((1, matrix.shape[1])) if public else np.zeros((0, matrix.shape[1]))
    found, covariance = dense.least_squares(matrix, spread, drawn, facts, np.array([40.0]) if public else np.zeros(0))
    ours = measured.estimate(noisy, total=40.0)
    np.testing.assert_allclose(
        np.concatenate([ours[table].reshape(-1) for table in tables]), matrix @ found, atol=1e-7, rtol=1e-7
    )
    truth = np.diag(matrix @ covariance @ matrix.T)
    claimed = np.concatenate([np.full(workload.cells(t), measured.variance(t)) for t in tables])
    np.testing.assert_allclose(claimed, truth, atol=1e-8)
    assert np.all(claimed <= spread * (1 + 1e-9)), "consistency never costs accuracy"


@pytest.mark.parametrize("seed", range(15))
def test_the_noises_left_in_a_cell_are_those_of_the_estimate(seed):
    chance = random.Random(seed)
    workload = Workload(*dense.random_workload(chance, largest=60))
    variances = tuple(chance.uniform(0.2, 5) for _ in workload.tables)
    measured = DrawnTables(workload, workload.tables, variances, total_is_public=bool(seed % 2))
    table = chance.choice(workload.tables)
    cell = tuple(chance.randrange(levels) for levels in workload.shape(table))
    truth: dict = {}
    for source in workload.tables:
        for place in itertools.product(*map(range, workload.shape(source))):
            noise = {t: np.zeros(workload.shape(t)) for t in workload.tables}
            noise[source][place] = 1.0
            factor = float(measured.estimate(noise, total=0.0)[table][cell])
            truth.setdefault(source, []).append(factor)
    for source, factors in truth.items():
        own = [term for term in measured.noise(table) if term.source == source]
        listed = sorted(factor for term in own for factor in [term.factor] * term.count)
        listed += [0.0] * (len(factors) - len(listed))
        np.testing.assert_allclose(sorted(listed), sorted(factors), atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_one_table_of_everything_gives_all_smaller_ones_with_the_noise_of_its_cells(seed):
    chance = random.Random(seed)
    workload = Workload(*dense.random_workload(chance, largest=60))
    everything = tuple(range(len(workload.sizes)))
    measured = DrawnTables(workload, (everything,), (3.0,), total_is_public=False)
    noisy = np.random.default_rng(seed).normal(size=workload.shape(everything))
    for table, found in measured.estimate({everything: noisy}).items():
        others = tuple(column for column in everything if column not in table)
        np.testing.assert_allclose(found, noisy.sum(axis=others), atol=1e-9)
        assert measured.variance(table) == pytest.approx(3.0 * workload.cells(others))


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_counts_without_negative_ones(seed):
    generator = np.random.default_rng(seed)
    values = generator.normal(3, 6, size=generator.integers(1, 12))
    total = float(generator.uniform(0.5, 40))
    found = nonnegative(values, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    for _ in range(200):  # no other such vector is nearer
        other = generator.dirichlet(np.ones(values.size)) * total
        assert np.sum((found - values) ** 2) <= np.sum((other - values) ** 2) + 1e-9
