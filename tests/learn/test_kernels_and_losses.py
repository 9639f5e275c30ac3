"""Every kernel of §5 and any convex loss: features that have the kernel, slopes that meet the conditions."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from scipy.special import gamma as gamma_function
from scipy.special import kv

from sfumato import evidence
from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.errors import InputError
from sfumato.learn import ConvexLoss, KernelMeanClassifier, KernelMomentClassifier, PrivateSVC, load
from sfumato.learn.features import Kernel, random_features
from sfumato.learn.losses import LogisticLoss
from sfumato.learn.passes import ArrayPasses
from sfumato.learn.seeds import Seeds
from sfumato.learn.stream import fit_by_sums

GAMMA = 0.7


def matern(smoothness, t):
    """By the Bessel function of its definition, at distance √(2γ)‖t‖."""
    r = np.maximum(math.sqrt(2 * smoothness) * math.sqrt(2 * GAMMA) * np.linalg.norm(t, axis=-1), 1e-9)
    return 2 ** (1 - smoothness) / gamma_function(smoothness) * r**smoothness * kv(smoothness, r)


def polynomial(degree, x, y):
    lengths = np.sqrt((1 + GAMMA * (x**2).sum(1))[:, None] * (1 + GAMMA * (y**2).sum(1))[None, :])
    return ((1 + GAMMA * x @ y.T) / lengths) ** degree


KERNELS = {
    "rbf": lambda t: np.exp(-GAMMA * (t**2).sum(-1)),
    "laplacian": lambda t: np.exp(-GAMMA * np.abs(t).sum(-1)),
    "cauchy": lambda t: (1 / (1 + GAMMA * t**2)).prod(-1),
    "matern12": lambda t: matern(0.5, t),
    "matern32": lambda t: matern(1.5, t),
    "matern52": lambda t: matern(2.5, t),
    "quadratic": 2,
    "cubic": 3,
}


@pytest.mark.paper("003", "§5", "learn/features.py")
@pytest.mark.parametrize("name", KERNELS)
def test_inner_products_are_the_kernel_and_no_row_is_longer_than_one(name):
    rows = np.random.default_rng(1).uniform(-1, 1, (16, 3))
    features = random_features(name, GAMMA, 40_000, None, Seeds(3))(rows)
    wanted = KERNELS[name]
    truth = polynomial(wanted, rows, rows) if isinstance(wanted, int) else wanted(rows[:, None] - rows[None])
    np.testing.assert_allclose(features @ features.T, truth, atol=0.05)
    assert np.linalg.norm(features, axis=1).max() <= 1 + 1e-12
    others = [other for other in KERNELS if other != name and callable(KERNELS[other])]
    apart = [np.abs(features @ features.T - KERNELS[other](rows[:, None] - rows[None])).max() for other in others]
    assert min(apart) > 0.05, "the test would not tell this kernel from another one"


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", [KernelMeanClassifier, KernelMomentClassifier, PrivateSVC])
@pytest.mark.by_day(5)
def test_every_kernel_learns_and_survives_its_file(name, kind, tmp_path):
    generator = np.random.default_rng(0)
    X = generator.uniform(-0.7, 0.7, (3000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)  # no linear score tells them apart
    gamma = 4.0 if isinstance(KERNELS[name], int) or name == "laplacian" else 8.0
    model = kind(30.0, 1e-5, kernel=name, gamma=gamma, n_components=60, classes=[0, 1], random_state=1).fit(X, y)
    assert model.score(X, y) > 0.75
    assert evidence.verify(model.certificate_).ok
    model.save(tmp_path / "model.json")
    assert (load(tmp_path / "model.json").predict(X) == model.predict(X)).all()


def test_no_other_kernel_is_known():
    for kind in (KernelMeanClassifier, PrivateSVC):
        with pytest.raises(InputError, match="laplacian"):
            kind(1.0, 1e-5, kernel="sigmoid").fit(np.zeros((4, 2)), [0, 1, 0, 1])


@pytest.mark.paper("003", "§3.1", "learn/convex_loss.py")
def test_a_loss_by_its_slopes_is_the_loss():
    """Value, slope and curvature fit together, and a logistic slope gives the logistic loss."""
    ours, named = ConvexLoss.from_slope(lambda z: -1 / (1 + np.exp(z)), -30, 30, 4000), LogisticLoss()
    margins = np.linspace(-40, 40, 801)
    np.testing.assert_allclose(ours.value(margins), named.value(margins), atol=1e-3)
    np.testing.assert_allclose(ours.slope(margins), named.slope(margins), atol=1e-4)
    assert ours.largest_curvature <= 0.2501
    rough = ConvexLoss((-1.0, 0.3, 2.0), (-0.9, -0.2, 0.0))
    steps = (rough.value(margins + 1e-6) - rough.value(margins - 1e-6)) / 2e-6
    np.testing.assert_allclose(steps, rough.slope(margins), atol=1e-5)
    assert (rough.curvature(margins) <= rough.largest_curvature).all()


def test_a_loss_by_its_slopes_is_trained_and_saved(tmp_path):
    generator = np.random.default_rng(0)
    X = generator.uniform(-0.7, 0.7, (2000, 2))
    y = (X[:, 0] > 0).astype(int)
    model = PrivateSVC(4.0, 1e-5, loss=ConvexLoss((0.5, 1.5), (-1.0, 0.0)), classes=[0, 1]).fit(X, y)
    assert model.score(X, y) > 0.9
    assert evidence.verify(model.certificate_).ok
    model.save(tmp_path / "model.json")
    assert (load(tmp_path / "model.json").predict(X) == model.predict(X)).all()
    same = [PrivateSVC(4.0, 1e-5, loss=loss, random_state=1).fit(X, y).coef_ for loss in (model.loss, "huber")]
    np.testing.assert_allclose(*same, rtol=1e-6)  # Huber's loss is this one


@pytest.mark.parametrize(
    ("knots", "slopes"),
    [
        ((0, 1), (-1.1, 0)),  # steeper than the noise hides
        ((0, 1, 2), (-0.2, -0.5, 0)),  # not convex
        ((0, 1), (-1, -0.1)),  # falls below 0
        ((0, 0), (-1, 0)),
        ((0, 1), (-1, 0.5)),
        ((0, 1), (0, 0)),
        ((0, math.inf), (-1, 0)),
        ((0,), (0,)),
    ],
)
def test_losses_outside_of_the_theorems_are_refused(knots, slopes):
    with pytest.raises(InputError, match="Nothing was spent"):
        ConvexLoss(knots, slopes)


def test_several_classes_need_their_own_loss():
    with pytest.raises(InputError, match="one class against the rest"):
        PrivateSVC(1.0, 1e-5, loss=ConvexLoss((0, 1), (-1, 0))).fit(np.eye(3)[[0, 1, 2] * 20], [0, 1, 2] * 20)


class Till:
    """Keeps what was reserved and what was committed."""

    def __init__(self):
        self.reserved, self.committed = [], []

    def reserve(self, dataset, cost, **words):
        self.reserved.append(cost)
        return cost

    def commit(self, reservation):
        self.committed.append(reservation)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=str)
@pytest.mark.parametrize("kernel", get_args(Kernel))
@pytest.mark.by_day(6)
def test_every_kernel_is_fitted_by_sums_as_in_memory(kernel, adjacency):
    generator = np.random.default_rng(0)
    X, y = generator.uniform(-1, 1, (50, 3)), generator.integers(2, size=50)
    for options in ({}, {"priors": "divided"}):
        options |= {"kernel": kernel, "adjacency": adjacency, "n_components": 6, "classes": [0, 1], "random_state": 0}
        till, model = Till(), KernelMeanClassifier(1.0, 1e-6, **options)
        fit_by_sums(model, ArrayPasses(X, y), ledger=till, dataset="people")
        assert len(till.reserved) == len(till.committed) == 1
        there = KernelMeanClassifier(1.0, 1e-6, **options).fit(X, y)
        np.testing.assert_allclose(model.weights_, there.weights_, atol=1e-9)


@pytest.mark.parametrize("kind", [KernelMeanClassifier, PrivateSVC])
@pytest.mark.parametrize("kernel", ["quadratic", "cubic"])
def test_what_a_device_cannot_do_is_refused_before_it_is_paid_for(kind, kernel):
    strict = pytest.importorskip("array_api_strict")
    generator = np.random.default_rng(0)
    X, y = generator.uniform(-1, 1, (50, 3)), generator.integers(2, size=50)
    till = Till()
    with pytest.raises(InputError, match=r"pass them as a NumPy array.* Nothing was spent\.$"):
        kind(1.0, 1e-6, kernel=kernel).fit(strict.asarray(X), strict.asarray(y), ledger=till, dataset="people")
    assert not till.reserved
