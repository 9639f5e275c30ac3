"""The bandwidth that nobody chose: on public shapes of tables it is never far behind the best, let alone at chance.

Tables are made here, the noise is drawn as it always is. A fixed γ is tried on the very rows it is then judged by,
which favours it. Accuracies of two models on N rows differ by chance by at most √(1/(2N)) of standard deviation.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato import evidence
from sfumato.core import ADD_REMOVE
from sfumato.learn import KernelClassifier, PrivateClassifier, PrivateSVC, load
from sfumato.learn.features import FourierFeatures, random_features
from sfumato.learn.kernel_mean import KernelMeanClassifier
from sfumato.learn.kernel_moment import KernelMomentClassifier
from sfumato.learn.kernel_rule import bandwidths, narrowest_by_spread, plan_kernel
from sfumato.learn.seeds import Seeds

EPSILON, DELTA = 10.0, 1e-6
RECORDS, HELD = 2000, 3000
#: What must be kept of the best fixed γ's advantage over chance, beside three deviations of the comparison.
SHARE, ROOM = 0.75, 3 * math.sqrt(1 / (2 * HELD))
#: γ·columns that are tried: from nearly linear to what the rule said in every number of columns.
TRIED = (1.0, 4.0, 16.0)


def halves(scores):
    return (scores > np.median(scores)).astype(int)


def even(generator, rows, columns):
    X = generator.uniform(-1, 1, (rows, columns))
    return X, halves(X @ generator.normal(size=columns))


def part_of_the_box(generator, rows, columns):
    X, y = even(generator, rows, columns)
    return 0.4 * X + generator.uniform(-0.5, 0.5, columns), y


def coins(generator, rows, columns):
    X = generator.uniform(-1, 1, (rows, columns))
    X[:, : columns // 2] = np.sign(X[:, : columns // 2])
    return X, halves(np.sin(2 * X) @ generator.normal(size=columns))


def few_directions(generator, rows, columns):
    places = generator.uniform(-1, 1, (rows, 2))
    X = places @ generator.normal(size=(2, columns)) / 2 + 0.05 * generator.normal(size=(rows, columns))
    return np.clip(X, -1, 1), halves(places[:, 0])


def groups(generator, rows, columns):
    centres, which = generator.uniform(-0.6, 0.6, (10, columns)), generator.integers(10, size=rows)
    return np.clip(centres[which] + 0.25 * generator.normal(size=(rows, columns)), -1, 1), which % 5


SHAPES = {shape.__name__: shape for shape in (even, part_of_the_box, coins, few_directions, groups)}
WIDTHS = (2, 10, 20, 40)


def mean(columns, gamma):
    return KernelMeanClassifier(EPSILON, DELTA, gamma, n_components=300, random_state=0)


def bought(columns, gamma):
    return mean(columns, "spread" if gamma == "auto" else gamma)


def moment(columns, gamma):
    return KernelMomentClassifier(EPSILON, DELTA, gamma, n_components=60, random_state=0)


def kernel(columns, gamma):
    return KernelClassifier(EPSILON, DELTA, gamma, n_components=60, random_state=0)


def added(columns, gamma):
    return KernelClassifier(EPSILON, DELTA, gamma, n_components=60, adjacency=ADD_REMOVE, random_state=0)


def machine(columns, gamma):
    norm = math.sqrt(columns)
    return PrivateSVC(EPSILON, DELTA, kernel="rbf", gamma=gamma, n_components=150, norm=norm, random_state=0)


def by_itself(columns, gamma):
    """PrivateClassifier has no γ: the machine stands for what it could have chosen."""
    if gamma != "auto":
        return machine(columns, gamma)
    return PrivateClassifier(EPSILON, DELTA, n_components=150, random_state=0)


KINDS = {kind.__name__: kind for kind in (mean, bought, moment, kernel, added, machine, by_itself)}


def advantages(kind, shape, columns):
    """How far above chance the default is, and the best fixed γ."""
    X, y = SHAPES[shape](np.random.default_rng(columns), RECORDS + HELD, columns)
    held, truth = X[RECORDS:], y[RECORDS:]
    chance = np.bincount(truth).max() / HELD

    def above(gamma):
        return KINDS[kind](columns, gamma).fit(X[:RECORDS], y[:RECORDS]).score(held, truth) - chance

    return above("auto"), max(above(tried / columns) for tried in TRIED)


def check(kind, shape, columns):
    ours, best = advantages(kind, shape, columns)
    assert ours >= SHARE * best - ROOM, f"{ours:.3f} above chance, and {best:.3f} can be had"


@pytest.mark.parametrize("kind", KINDS)
def test_evenly_spread_columns_are_told_apart(kind):
    """Where the rule did not fall with the columns every one of these was at chance or near it."""
    check(kind, "even", 20)


@pytest.mark.slow
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_default_keeps_up_with_the_best_bandwidth(kind, shape, columns):
    """Class means by the box alone keep up in 20 columns: beyond, no two bandwidths fit all, and theirs is bought."""
    if kind == "mean" and columns > 20:
        pytest.skip("the documented limit: gamma='spread', which is the case 'bought'")
    check(kind, shape, columns)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "cauchy", "matern32"])
def test_several_bandwidths_share_one_norm_and_average_their_kernels(name):
    rows = np.random.default_rng(0).uniform(-1, 1, (12, 3))
    multiples = (0.5, 4.0)
    both = FourierFeatures(0.6, 40_000, None, Seeds(1), name, multiples)(rows)
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), 1.0, atol=1e-14)
    # A width is 1/√γ: frequencies of a multiple are longer by its root, whatever the law.
    alone = [random_features(name, 0.6, 40_000, None, Seeds(2))(rows * math.sqrt(one)) for one in multiples]
    np.testing.assert_allclose(both @ both.T, np.mean([one @ one.T for one in alone], axis=0), atol=0.05)
    assert np.abs(both @ both.T - alone[1] @ alone[1].T).max() > 0.1


@pytest.mark.parametrize("kind", ["mean", "added", "machine"])
def test_a_model_of_several_bandwidths_is_verified_saved_and_read_back(kind, tmp_path):
    X, y = even(np.random.default_rng(0), 400, 8)
    model = KINDS[kind](8, "auto").fit(X, y)
    assert evidence.verify(model.certificate_).ok
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.explain() == model.explain()
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_words_name_every_bandwidth():
    X, y = even(np.random.default_rng(0), 400, 8)
    model = mean(8, "auto").fit(X, y)
    first, second = (f"{model.gamma_ * one:.3g}" for one in bandwidths("mean", 8))
    assert f"gamma {first} and {second} by the public rule" in model.explain()
    assert " and " not in mean(8, 0.3).fit(X, y).explain().split("Bandwidth")[1].split("as given")[0]
    model.set_params(gamma=0.3)  # for the next fit
    assert f"gamma {first} and {second}" in model.explain()


def test_wider_tables_have_wider_kernels_and_narrow_ones_what_they_had():
    gammas = [plan_kernel(5000, columns, 2, EPSILON, DELTA) for columns in range(1, 200)]
    assert gammas[1].gamma == pytest.approx(10.0)
    assert all(one.gamma >= two.gamma for one, two in itertools.pairwise(gammas))
    bought = [narrowest_by_spread(columns, 0.5) for columns in range(1, 200)]
    assert all(one >= two for one, two in itertools.pairwise(bought))
    assert bandwidths("mean", 5) == bandwidths("trained", 5) == (1.0,)
