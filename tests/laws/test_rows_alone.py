"""Random features of a row are a function of that row: who else is in the table, and where it stands, does not show.

Compared: features of tables against those of each row by itself, at bandwidths at which the last bit of a phase is all
that counts; and what trainings and streams see of a row in neighbouring tables.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sfumato.core import ADD_REMOVE
from sfumato.learn import KernelMeanClassifier, PrivateSVC
from sfumato.learn.features import random_features
from sfumato.learn.passes import ArrayPasses
from sfumato.learn.seeds import Seeds
from sfumato.learn.stream import fit_by_sums
from sfumato.learn.stream_sums import JointSums, MarginSums

KERNELS = ["rbf", "laplacian", "cauchy", "matern12", "matern52", "quadratic", "cubic"]
GAMMAS = [1e-100, 0.2, 1e10, 1e30, 1e100]
#: Cosines and sines of one number may differ by their last bits, by where it stands.
BITS = 1e-14
#: Kernel, classes, whether rows lie on a device; polynomials are of the host.
MACHINES = [
    ("rbf", 2, False),
    ("laplacian", 3, False),
    ("quadratic", 2, False),
    ("rbf", 2, True),
    ("laplacian", 2, True),
]


def rows_of_all_lengths(generator, number, columns):
    """Some shorter than 1, some longer, one of zeros, some that no square of can be held."""
    rows = generator.uniform(-1, 1, (number, columns))
    rows[1::4] *= 30.0
    rows[number // 2] = 0.0
    rows[number // 3] *= 1e160
    rows[number // 5] *= 1e-200
    return rows


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.by_day(8)
def test_features_of_a_row_are_those_that_it_has_alone(kernel, gamma):
    generator = np.random.default_rng(0)
    for columns in (1, 40):
        for norm in (None, 1.0):
            rows = rows_of_all_lengths(generator, 31, columns)
            features = random_features(kernel, gamma, 12, norm, Seeds(1))
            alone = np.concatenate([features(row[None]) for row in rows])
            for start, end in ((0, 31), (1, 31), (0, 30), (3, 20), (8, 10)):
                np.testing.assert_allclose(features(rows[start:end]), alone[start:end], rtol=0, atol=BITS)
            order = generator.permutation(31)
            np.testing.assert_allclose(features(np.asfortranarray(rows[order])), alone[order], rtol=0, atol=BITS)
            thin = np.where(generator.random(rows.shape) < 0.5, rows, 0.0)
            alone = np.concatenate([features(sparse.csr_array(row[None])) for row in thin])
            np.testing.assert_allclose(features(sparse.csr_array(thin)), alone, rtol=0, atol=BITS)


@pytest.mark.parametrize("gamma", [1e-100, 0.2, 1e30, 1e100])
@pytest.mark.parametrize("norm", [None, 1.0])
@pytest.mark.by_day(3)
def test_on_a_device_too_where_a_record_may_be_added(gamma, norm):
    strict = pytest.importorskip("array_api_strict")
    generator = np.random.default_rng(0)
    rows = rows_of_all_lengths(generator, 18, 20)
    features = random_features("rbf", gamma, 6, norm, Seeds(1), shifts=True)
    alone = np.concatenate([np.asarray(features(strict.asarray(row[None]))) for row in rows])
    for start, end in ((0, 18), (1, 18), (5, 9)):
        several = np.asarray(features(strict.asarray(rows[start:end])))
        np.testing.assert_allclose(several, alone[start:end], rtol=0, atol=BITS)


def rows_seen(monkeypatch, fit):
    """The rows that a training sees, as sums are asked of them."""
    seen = []
    with monkeypatch.context() as patch:
        for kind in (MarginSums, JointSums):

            def prepared(self, matrix, of=kind.prepared):
                rows = of(self, matrix)
                seen.append(np.array(rows.matrix) * np.asarray(rows.factor)[:, None])
                return rows

            patch.setattr(kind, "prepared", prepared)
        fit()
    return seen[-1]


@pytest.mark.parametrize("gamma", [0.2, 1e30, 1e100])
@pytest.mark.parametrize(("kernel", "classes", "there"), MACHINES)
@pytest.mark.filterwarnings("ignore:epsilon=.*the noise")
@pytest.mark.by_day(5)
def test_a_record_more_changes_no_other_that_a_machine_is_trained_on(kernel, gamma, classes, there, monkeypatch):
    generator = np.random.default_rng(0)
    rows, labels = rows_of_all_lengths(generator, 48, 40), generator.integers(classes, size=48)
    moved = pytest.importorskip("array_api_strict").asarray if there else np.asarray

    def fit(first):
        model = PrivateSVC(1.0, 1e-6, kernel=kernel, gamma=gamma, n_components=12, adjacency=ADD_REMOVE)
        model.set_params(classes=list(range(classes)), public_size=50, random_state=0)
        return model.fit(moved(rows[first:]), moved(labels[first:]))

    without, with_one = (rows_seen(monkeypatch, lambda first=first: fit(first)) for first in (1, 0))
    np.testing.assert_allclose(with_one[1:], without, rtol=0, atol=BITS)


class Cut(ArrayPasses):
    """A table in two parts: files cut where somebody's longer cell pushes the others."""

    place = 1

    def total(self, statistic):
        parts = [
            statistic(self._matrix[part], self._target[part]) for part in (slice(self.place), slice(self.place, None))
        ]
        return [first + second for first, second in zip(*parts, strict=True)]


@pytest.mark.parametrize("gamma", [0.2, 1e30, 1e100])
def test_where_a_table_is_cut_moves_no_sum(gamma):
    generator = np.random.default_rng(0)
    passes = Cut(generator.uniform(-1, 1, (60, 40)), generator.integers(2, size=60))
    found = []
    for passes.place in (1, 2, 30, 59):
        model = KernelMeanClassifier(1.0, 1e-6, gamma=gamma, n_components=12, classes=[0, 1], random_state=0)
        found.append(fit_by_sums(model, passes).weights_)
    for other in found[1:]:  # noise of the same seed, on a grid
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-9)
