"""The fit behind invented rows against least squares over the whole joint table; rows against the law they are of."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import nnls

from sfumato.release.synthetic.drawn_rows import even_draws, evened
from sfumato.release.synthetic.junction_tree import CountTable, Fitted, JunctionTree


def _least_loss(sizes, tables, total):
    """The least weighted distance of any table with these columns, by non-negative least squares over every cell."""
    cells = np.array(list(itertools.product(*map(range, sizes))))
    rows, wanted = [], []
    for table in tables:
        place = np.ravel_multi_index(cells[:, list(table.scope)].T, table.counts.shape)
        rows.append((np.arange(table.counts.size)[:, None] == place) / table.deviation)
        wanted.append(table.counts.ravel() / table.deviation)
    heavy = 1e4 / total  # the number of rows is known
    design = np.vstack([*rows, np.full((1, len(cells)), heavy)])
    return 0.5 * nnls(design, np.concatenate([*wanted, [heavy * total]]), maxiter=20 * len(cells))[1] ** 2


def _noisy_tables(generator, sizes, scopes, rows, deviation, twins):
    """Noisy counts of random rows of which `twins` columns nearly repeat the first."""
    codes = [generator.choice(size, rows, p=generator.dirichlet(np.full(size, 0.5))) for size in sizes]
    for column in range(1, 1 + twins):
        kept = generator.random(rows) < 0.999
        codes[column] = np.where(kept, codes[0] % sizes[column], codes[column])
    found = []
    for scope in scopes:
        shape = [sizes[column] for column in scope]
        counts = np.bincount(np.ravel_multi_index([codes[c] for c in scope], shape), minlength=math.prod(shape))
        noisy = counts + generator.normal(scale=deviation, size=counts.size)
        found.append(CountTable(scope, noisy.reshape(shape), deviation))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_fit_comes_near_the_least_distance_also_where_columns_repeat_each_other(seed):
    generator = np.random.default_rng(seed)
    sizes = list(generator.integers(3, 6, 4))
    scopes = [pair for pair in itertools.combinations(range(4), 2) if generator.random() < 0.8] or [(0, 1)]
    tables = _noisy_tables(generator, sizes, scopes, 20_000, float(generator.choice([3.0, 20.0])), twins=2)
    least = _least_loss(sizes, tables, 20_000)
    found = Fitted.to(sizes, tables, 20_000.0, steps=400)
    assert found.loss >= least * (1 - 1e-3)
    assert found.loss <= 1.25 * least + 2


@pytest.mark.parametrize("seed", range(4))
def test_many_small_groups_keep_the_shares_of_what_hangs_on_them(seed):
    """5,000 rows in up to 3,000 groups: drawn each by itself a level would miss its share by 25 to 35 rows."""
    generator = np.random.default_rng(seed)
    weights = np.repeat(generator.dirichlet(np.ones(4), 60), 50, axis=0)
    group = generator.integers(0, len(weights), 5_000)
    expected = weights[group].sum(axis=0)
    alone = np.sqrt((weights[group] * (1 - weights[group])).sum(axis=0))
    drawn = [even_draws(group, weights, generator) for _ in range(32)]
    missed = np.array([np.bincount(one, minlength=4) for one in drawn]) - expected
    assert np.mean(np.sqrt(np.mean(missed**2, axis=0)) / alone) < 0.58  # 0.7 where groups are rounded each by itself
    # What hangs on other columns is drawn apart: two draws agree no more often than by chance.
    agreed = np.mean([np.mean(one == other) for one, other in itertools.pairwise(drawn)])
    assert abs(agreed - (weights[group] ** 2).sum(axis=1).mean()) < 0.02


def _law(generator, columns=7, strength=2.0):
    """A random law over a few columns: its tree, and every cell by brute force; some pairs of values never occur."""
    sizes = tuple(int(size) for size in generator.integers(2, 5, columns))
    pairs = [pair for pair in itertools.combinations(range(columns), 2) if generator.random() < 0.5]
    alone = [(column,) for column in range(columns) if generator.random() < 0.5]
    potentials = {scope: generator.normal(size=[sizes[at] for at in scope]) * strength for scope in [*pairs, *alone]}
    never = {scope: generator.random([sizes[at] for at in scope]) < 0.2 for scope in pairs[:1]}
    for cells in never.values():
        cells[0, 0] = False
    joint = np.zeros(sizes)
    for scope, potential in potentials.items():
        possible = np.where(never.get(scope, False), -np.inf, potential)
        joint = joint + possible.reshape([sizes[at] if at in scope else 1 for at in range(columns)])
    tree = JunctionTree.over(sizes, [(column,) for column in range(columns)] + pairs, never)
    made = Fitted(tree, 1.0, potentials, tree.marginals(potentials, 1.0), 0.0)
    return made, np.where(np.isfinite(joint), np.maximum(np.exp(joint - joint.max()), 1e-300), 0.0)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("number", [7, 900, 20_000])
def test_every_column_of_the_rows_has_the_counts_of_the_law(seed, number):
    """To one row where every value may stand beside every other; near it where some may not. No impossible row."""
    generator = np.random.default_rng([seed, number])
    fitted, joint = _law(generator)
    joint = joint / joint.sum()
    codes = fitted.rows(number, generator)
    assert (joint[tuple(codes.T)] > 0).all()
    expected = [joint.sum(axis=tuple(set(range(codes.shape[1])) - {at})) * number for at in range(codes.shape[1])]
    missed = [np.bincount(codes[:, at], minlength=len(held)) - held for at, held in enumerate(expected)]
    assert max(np.abs(one).max() for one in missed) <= (1.0 if (joint > 0).all() else 3.0) + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_of_the_law_on_average(seed):
    """Every cell of every pair, also those that few draws have: no value is rounded away."""
    generator = np.random.default_rng([seed, 5])
    fitted, joint = _law(generator, columns=4)
    joint = joint / joint.sum()
    draws = [fitted.rows(40, generator) for _ in range(400)]
    for pair in itertools.combinations(range(4), 2):
        expected = 40 * joint.sum(axis=tuple(set(range(4)) - set(pair)))
        place = [np.ravel_multi_index(codes[:, list(pair)].T, expected.shape) for codes in draws]
        found = np.mean([np.bincount(one, minlength=expected.size) for one in place], axis=0)
        error = np.sqrt(np.maximum(expected.ravel(), 1e-3) / 400)
        assert (np.abs(found - expected.ravel()) < 6 * error + 0.03).all()


@pytest.mark.parametrize("seed", range(60))
def test_groups_of_which_the_law_has_nothing_get_their_rows_all_the_same(seed):
    """Noise can leave a value's whole row of counts at nothing, and all of a column's: the rows were paid for."""
    generator = np.random.default_rng([seed, 9])
    groups, levels, number = (int(generator.integers(1, most)) for most in (6, 6, 60))
    weights = generator.random((groups, levels)) * 10.0 ** generator.integers(-320, 300, (groups, 1))
    weights[generator.random((groups, levels)) < generator.choice([0.0, 0.5, 0.95, 1.0])] = 0.0
    group = generator.integers(0, groups, number)
    drawn = even_draws(group, weights, generator)
    made = evened(drawn, group, weights, generator)
    assert made.shape == group.shape
    assert ((made >= 0) & (made < levels)).all()
    moved = made != drawn
    assert (weights[group[moved], made[moved]] > 0).all()


def _holds_all_rows(fitted):
    """Whether every clique holds all rows, and cliques agree on how many have the levels that they share."""
    tree = fitted.tree
    whole = all(abs(table.sum() / fitted.total - 1) < 1e-6 for table in fitted.tables)
    return whole and all(
        np.allclose(
            tree.summed(at, fitted.tables[at], tree.separators[at]),
            tree.summed(tree.parents[at], fitted.tables[tree.parents[at]], tree.separators[at]),
            atol=1e-6 * fitted.total,
        )
        for at in range(1, len(fitted.tables))
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("strength", [2.0, 200.0, 2000.0])
def test_rows_come_of_a_law_however_faint_some_of_it_is(seed, strength):
    """Where noise outweighs the counts one clique may want what no other has left: its rows are possible ones still."""
    generator = np.random.default_rng([seed, int(strength)])
    fitted, joint = _law(generator, columns=5, strength=strength)
    assert _holds_all_rows(fitted)
    assert (joint[tuple(fitted.rows(50, generator).T)] > 0).all()


@pytest.mark.parametrize("seed", range(12))
def test_noise_alone_gives_rows(seed):
    """Counts of nothing but noise, far above the number of rows, as small tables have them at a small ε."""
    generator = np.random.default_rng([seed, 6])
    sizes = tuple(int(size) for size in generator.integers(2, 9, 4))
    scopes = [(0, 1), (0, 2), (1, 3), (2, 3)]
    deviation, total = 10 ** generator.uniform(1, 4), float(generator.integers(1, 10))
    tables = [
        CountTable(scope, generator.normal(size=[sizes[at] for at in scope]) * deviation, deviation) for scope in scopes
    ]
    fitted = Fitted.to(sizes, tables, total, steps=60)
    assert _holds_all_rows(fitted)
    assert fitted.rows(5, generator).shape == (5, 4)
