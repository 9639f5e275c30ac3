"""Kernels on noisy tables: true means come back, curved boundaries are learned, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from sfumato.core import Categories, Interval, Schema
from sfumato.core.noise import BoxNoise, GaussianNoise, LaplaceNoise
from sfumato.errors import InputError
from sfumato.release import NoiseAwareKernelClassifier, TableNoise
from sfumato.release.aware_kernel import _Waves
from sfumato.release.noise import ResponseNoise

SCHEMA = Schema({"a": Interval(-1, 1), "b": Interval(-1, 1)})


def ring(rows, seed=0):
    truth = np.random.default_rng(seed).uniform(-1, 1, (rows, 2))
    return truth, np.linalg.norm(truth, axis=1) < 0.6


def test_means_of_products_are_those_of_the_true_rows():
    """Against the plain Gram matrix of rows without noise; without the correction they are far apart."""
    generator = np.random.default_rng(1)
    truth = generator.uniform(-1, 1, (60_000, 2))
    noisy, covariance = truth + generator.normal(scale=0.4, size=truth.shape), 0.16 * np.eye(2)
    frequencies = generator.normal(scale=1.0, size=(2, 8))

    def noise(omega):
        return np.exp(-0.5 * np.einsum("i...,ik,k...->...", omega, covariance, omega))

    wanted = _Waves.of(truth, frequencies, lambda omega: np.ones(omega.shape[1:]))
    found, plain = (_Waves.of(noisy, frequencies, how) for how in (noise, lambda omega: np.ones(omega.shape[1:])))
    least = noise(frequencies[:, :, None] + frequencies[:, None, :]).min()
    allowed = 6 / (least * np.sqrt(60_000))  # sampling error of a mean of numbers in [-1, 1], divided by `least`
    np.testing.assert_allclose(found.gram, wanted.gram, atol=allowed)
    np.testing.assert_allclose(found.means, wanted.means, atol=allowed)
    near, far = (np.abs(one.gram - wanted.gram).mean() for one in (found, plain))
    assert far > 4 * near


@pytest.mark.paper("000", "§2.4, kernels", "release/aware_kernel.py")
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.by_day(1)
def test_a_ring_is_learned_through_noise(law):
    """Better on clean rows than a kernel machine that takes noisy rows as they are."""
    truth, labels = ring(6000)
    generator, clean = np.random.default_rng(5), ring(3000, 9)
    if law == "gaussian":
        noise, noisy = GaussianNoise(0.4), truth + generator.normal(scale=0.4, size=truth.shape)
    else:
        noise, noisy = LaplaceNoise(0.28), truth + generator.laplace(scale=0.28, size=truth.shape)
    table = TableNoise.independent(SCHEMA, {"a": noise, "b": noise})
    model = NoiseAwareKernelClassifier(table).fit({"a": noisy[:, 0], "b": noisy[:, 1]}, labels)
    share = model.score({"a": clean[0][:, 0], "b": clean[0][:, 1]}, clean[1])
    assert share > 0.93
    assert share > SVC().fit(noisy, labels).score(*clean) + 0.02


def test_randomised_labels_and_several_classes():
    generator = np.random.default_rng(2)
    truth = generator.uniform(-1, 1, (20_000, 2))
    labels = (np.abs(truth) > 0.5).sum(axis=1)
    noisy = truth + generator.normal(scale=0.15, size=truth.shape)
    told = np.where(generator.random(20_000) < 0.7, labels, (labels + generator.integers(1, 3, 20_000)) % 3)
    response = ResponseNoise((0, 1, 2), 0.7)
    model = NoiseAwareKernelClassifier(0.0225, label_noise=response, gamma=3.0).fit(noisy, told)
    assert model.score(truth, labels) > 0.85


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_conformance():
    check_estimator(NoiseAwareKernelClassifier(), on_skip=None)


@pytest.mark.parametrize("wrong", [{"gamma": 0.0}, {"n_components": 0}, {"ridge": -1.0}])
def test_parameters_that_mean_nothing_are_refused(wrong):
    with pytest.raises((InputError, ValueError)):
        NoiseAwareKernelClassifier(0.1, **wrong).fit(*ring(50))


def test_noise_that_cannot_be_undone_is_refused():
    truth, labels = ring(50)
    table = {"a": truth[:, 0], "b": truth[:, 1]}
    box = TableNoise.independent(SCHEMA, {"a": BoxNoise(1.0), "b": GaussianNoise(0.1)})
    with pytest.raises(InputError, match="Box noise"):
        NoiseAwareKernelClassifier(box).fit(table, labels)
    mixed = Schema({"a": Interval(-1, 1), "c": Categories(["x", "y"])})
    answers = TableNoise.independent(mixed, {"a": GaussianNoise(0.1)}, {"c": ResponseNoise(("x", "y"), 0.8)})
    with pytest.raises(InputError, match="Randomised categories"):
        NoiseAwareKernelClassifier(answers).fit({"a": truth[:, 0], "c": ["x", "y"] * 25}, labels)
