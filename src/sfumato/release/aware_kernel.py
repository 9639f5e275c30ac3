"""Kernel classification on a table whose noise is known: what is not linear is learned through random features.

In:   a published table, its noise law, labels published as they are or by randomised response.
Out:  NoiseAwareKernelClassifier, a scikit-learn classifier for clean inputs.
Not here: linear rules (release/aware_svc.py), private training without a published table (learn/).
Reference: Farokhi 2020, §2.4 (machines that are not linear); deconvolution by characteristic functions.

Noise shrinks every frequency by a known factor: E e^{iω·(x+n)} = a(ω)·e^{iω·x}, a the noise's characteristic function.
Products of two features are waves at the sum and at the difference of their frequencies, so their means are shrunk by
known factors too: dividing gives the least squares of the true rows, without bias. Where a is small the quotient is
mostly sampling error: each mean is first shrunk by what its own size says about that (positive-part James-Stein), and
kept below 1, which no true one exceeds; the ridge is the size of the error that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sfumato.core.checks import positive
from sfumato.core.noise import GaussianNoise, LaplaceNoise
from sfumato.core.threads import calm_threads
from sfumato.errors import InputError
from sfumato.release.aware_common import Features, NoiseLike, fit_features, read_labels
from sfumato.release.noise import ResponseNoise, TableNoise

__all__ = ["NoiseAwareKernelClassifier"]

Matrix = NDArray[np.float64]
_BLOCK = 4096
#: Of means of squares that are about a half.
_LEAST_RIDGE = 0.01


class NoiseAwareKernelClassifier(ClassifierMixin, BaseEstimator):
    """A least-squares machine with the kernel exp(-gamma·‖x - x'‖²) for clean inputs, learned from noisy ones.

    `noise` is the TableNoise of a release (Gaussian or Laplace noise on numeric columns), or a variance, or a
    covariance matrix. gamma="auto" is 1/(columns · variance of the true rows), as scikit-learn's "scale".
    `n_components` random frequencies are drawn by `random_state`; they hide nothing. `label_noise`: the odds of
    randomised labels where `noise` does not have them. `ridge` is "auto" or a number. Several classes: one
    against the rest. Noise as wide as the pattern itself cannot be undone by any number of rows one has.

    >>> generator = np.random.default_rng(0)
    >>> truth = generator.uniform(-1, 1, (20_000, 2))
    >>> labels = np.linalg.norm(truth, axis=1) < 0.6
    >>> noisy = truth + generator.normal(scale=0.4, size=truth.shape)
    >>> NoiseAwareKernelClassifier(0.16, random_state=0).fit(noisy, labels).score(truth, labels) > 0.9
    True
    """

    def __init__(
        self,
        noise: NoiseLike = 0.0,
        gamma: Literal["auto"] | float = "auto",
        n_components: int = 60,
        label_noise: ResponseNoise | None = None,
        random_state: int = 0,
        ridge: Literal["auto"] | float = "auto",
    ) -> None:
        self.noise = noise
        self.gamma = gamma
        self.n_components = n_components
        self.label_noise = label_noise
        self.random_state = random_state
        self.ridge = ridge

    @calm_threads()
    def fit(self, X: Any, y: Any) -> NoiseAwareKernelClassifier:
        """Learn from the published table X and its labels."""
        if y is None:
            raise InputError("NoiseAwareKernelClassifier requires y to be passed, but the target y is None.")
        if not isinstance(self.n_components, int) or self.n_components < 1:
            raise InputError("n_components must be a whole number of at least 1.")
        self._features, published = fit_features(self, X, self.noise)
        labels = read_labels(y, self.noise, self.label_noise)
        check_consistent_length(published, labels.codes)
        self.classes_ = labels.classes
        covariance = self._features.covariance(published)
        self.gamma_ = self._bandwidth(published, covariance)
        draw = np.random.default_rng(self.random_state).normal  # public frequencies, no noise
        self.frequencies_ = draw(scale=math.sqrt(2 * self.gamma_), size=(published.shape[1], self.n_components))
        waves = _Waves.of(published, self.frequencies_, lambda omega: _attenuation(self._features, covariance, omega))
        targets = np.stack([labels.unbiased(code) for code in labels.rules])
        self.ridge_ = waves.error + _LEAST_RIDGE if isinstance(self.ridge, str) else positive(self.ridge, "ridge")
        self.coefficients_, self.intercept_ = waves.solve(targets, self.ridge_)
        return self

    def _bandwidth(self, published: Matrix, covariance: Matrix) -> float:
        if not isinstance(self.gamma, str):
            return positive(self.gamma, "gamma")
        total = published.var(axis=0)
        true = np.maximum(total - np.diag(covariance), 0.05 * total)
        return 1 / max(published.shape[1] * float(true.mean()), 1e-300)

    def decision_function(self, X: Any) -> Matrix:
        """Above 0 for the second of two classes; one score for each class where there are more."""
        check_is_fitted(self)
        phases = self._features.clean(self, X) @ self.frequencies_
        scores = np.hstack([np.cos(phases), np.sin(phases)]) @ self.coefficients_.T + self.intercept_ - 0.5
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class for clean rows."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


@dataclass(frozen=True)
class _Waves:
    """Means over the true rows of features (cosines, then sines) and of their products."""

    rows: Matrix
    frequencies: Matrix
    shrunk: Matrix
    gram: Matrix
    means: Matrix
    error: float

    @classmethod
    def of(cls, rows: Matrix, frequencies: Matrix, attenuation: Callable[[Matrix], Matrix]) -> _Waves:
        count, pairs = len(rows), frequencies.shape[1]
        products = np.zeros((2 * pairs, 2 * pairs))
        for start in range(0, count, _BLOCK):
            features = _features(rows[start : start + _BLOCK], frequencies)
            products += features.T @ features / count
        cosines, sines, mixed = products[:pairs, :pairs], products[pairs:, pairs:], products[:pairs, pairs:]
        minus = (cosines + sines) + 1j * (mixed.T - mixed)
        plus = (cosines - sines) + 1j * (mixed.T + mixed)
        beside = frequencies[:, :, None], frequencies[:, None, :]
        apart, together = attenuation(beside[0] - beside[1]), attenuation(beside[0] + beside[1])
        left = (_left_over(minus, apart, count) + _left_over(plus, together, count)) / 4
        minus, plus = _undone(minus, apart, 1 / count), _undone(plus, together, 1 / count)
        mixed = (plus.imag - minus.imag) / 2
        gram = np.block([[(minus.real + plus.real) / 2, mixed], [mixed.T, (minus.real - plus.real) / 2]])
        shrunk = attenuation(frequencies)
        base = cls(rows, frequencies, shrunk, gram, np.zeros(2 * pairs), math.sqrt(2 * pairs * left))
        means = base.against(np.ones(count))
        return replace(base, gram=gram - np.outer(means, means), means=means)

    def against(self, weights: Matrix) -> Matrix:
        """The mean of weight·feature over the true rows."""
        total = np.zeros(self.frequencies.shape[1], dtype=np.complex128)
        for start in range(0, len(self.rows), _BLOCK):
            part = slice(start, start + _BLOCK)
            total += weights[part] @ np.exp(1j * (self.rows[part] @ self.frequencies)) / len(self.rows)
        found = _undone(total, self.shrunk, float((weights**2).mean()) / len(self.rows))
        return np.concatenate([found.real, found.imag])

    def solve(self, targets: Matrix, ridge: float) -> tuple[Matrix, Matrix]:
        """Ridge regression of each target, with its intercept; eigenvalues below 0 are sampling error."""
        values, vectors = np.linalg.eigh(self.gram)
        centres = targets.mean(axis=1)
        sums = np.stack([self.against(target - centre) for target, centre in zip(targets, centres, strict=True)])
        coefficients = ((sums @ vectors) / (np.maximum(values, 0.0) + ridge)) @ vectors.T
        return coefficients, centres - coefficients @ self.means


def _features(rows: Matrix, frequencies: Matrix) -> Matrix:
    phases = rows @ frequencies
    return np.hstack([np.cos(phases), np.sin(phases)])


def _undone(means: NDArray[np.complex128], shrunk: Matrix, error: float) -> NDArray[np.complex128]:
    """Means divided by what noise did to them, as far as the sample tells them from 0."""
    size = np.abs(means)
    kept = np.maximum(0.0, 1 - error / np.maximum(size**2, 1e-300))
    return means / np.maximum(size, 1e-300) * np.minimum(kept * size / np.maximum(shrunk, 1e-12), 1.0)


def _left_over(means: NDArray[np.complex128], shrunk: Matrix, count: int) -> float:
    """The mean squared sampling error of the quotients that are kept."""
    told = np.abs(means) ** 2 > 1 / count
    return float(np.where(told, np.minimum(1 / (count * np.maximum(shrunk, 1e-12) ** 2), 1.0), 0.0).mean())


def _attenuation(features: Features, covariance: Matrix, frequencies: Matrix) -> Matrix:
    """The characteristic function of the noise at each frequency, for columns in the first place."""
    noise = features.law
    gaussian = np.exp(-0.5 * np.einsum("i...,ik,k...->...", frequencies, covariance, frequencies))
    if not isinstance(noise, TableNoise):
        return gaussian
    if set(features.names) & set(noise.responses):
        raise InputError(
            "Randomised categories have no characteristic function to divide by: pass the numeric columns alone."
        )
    laws = dict(zip(noise.columns, noise.laws, strict=True))
    if not all(isinstance(laws.get(name, GaussianNoise(1.0)), GaussianNoise | LaplaceNoise) for name in features.names):
        raise InputError("Box noise is not undone here: release with Gaussian or Laplace noise.")
    for place, name in enumerate(features.names):
        if isinstance(laws.get(name), LaplaceNoise):  # variance 2s², and 1/(1 + s²ω²) for e^{-s²ω²}
            square = covariance[place, place] * frequencies[place] ** 2 / 2
            gaussian = gaussian * np.exp(square) / (1 + square)
    return gaussian
