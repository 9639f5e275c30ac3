"""Classification by class-wise second moments of random features: the kernel whose neighbours are closest.

In:   a table with a public box, labels, ε and δ.
Out:  KernelMomentClassifier, a scikit-learn classifier with a guarantee and a certificate.
Not here: the shared fit (learn/kernel_base.py), the public rule (learn/kernel_rule.py).
Proof: docs/proofs/kernel_mean.md

Inner products of random features can be negative, and then replacing a record moves class sums by up to 2. Their
squares cannot: ⟨φφᵀ, φ'φ'ᵀ⟩ = ⟨φ, φ'⟩² ≥ 0, so class sums of φφᵀ move by at most √2. The square of a Gaussian kernel is
one again, and the sum over classes is the second moment of φ, by which scores are whitened without further cost.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive
from sfumato.core.schema import Schema
from sfumato.learn.kernel_base import PrivateKernelClassifier
from sfumato.learn.kernel_rule import Kind

__all__ = ["KernelMomentClassifier"]


class KernelMomentClassifier(PrivateKernelClassifier):
    """Scores x by φᵀRSᵧRφ: Sᵧ the noisy Σφφᵀ over class y, R = (ΣSᵧ + regularization)⁻¹.

    As `regularization` grows the scores become Σ k(x, x_i) over the records of each class. "auto" is the spectral size
    of the noise, a public number. `gamma` is that of the squared kernel. The other parameters are those of
    KernelMeanClassifier. Made for δ > 0: norm-gamma noise grows with the number of statistics, n_components²/2 for each
    class.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (3000, 2))
    >>> y = (X > 0).sum(axis=1)
    >>> KernelMomentClassifier(1.0, 1e-6, random_state=0).fit(X, y).score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        gamma: float | Literal["auto"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        box: Any = (-1.0, 1.0),
        regularization: float | Literal["auto"] = "auto",
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        classes: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.gamma = gamma
        self.n_components = n_components
        self.box = box
        self.regularization = regularization
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes

    def _check(self) -> None:
        if self.regularization != "auto":
            positive(self.regularization, "regularization")

    def _kind(self) -> Kind:
        return "moment"

    def _feature_gamma(self) -> float:
        return self.gamma_ / 2  # the square of this kernel has gamma_

    def _sensitivity(self) -> float:
        return math.sqrt(2) if self._replaces() else 1.0

    def _dimension(self, components: int, classes: int) -> int:
        return classes * components * (components + 1) // 2

    def _statistics(self, features: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
        upper = np.triu_indices(features.shape[1], 1)
        packed = []
        for label in range(classes):
            members = features[labels == label]
            products = members.T @ members
            # √2 on what stands twice in the matrix makes the length the Frobenius norm.
            packed += [np.diag(products), math.sqrt(2) * products[upper]]
        return np.concatenate(packed)

    def _weights(self, released: np.ndarray, classes: int) -> np.ndarray:
        width = self.n_components_
        upper, diagonal = np.triu_indices(width, 1), np.diag_indices(width)
        moments = np.zeros((classes, width, width))
        for label, packed in enumerate(released.reshape(classes, -1)):
            moments[label][upper] = packed[width:] / math.sqrt(2)
            moments[label] += moments[label].T
            moments[label][diagonal] = packed[:width]
        values, vectors = eigh(moments.sum(axis=0))
        self.regularization_ = self._strength(width, classes)
        whitening = (vectors / (np.maximum(values, 0.0) + self.regularization_)) @ vectors.T
        return whitening @ moments @ whitening

    def _strength(self, width: int, classes: int) -> float:
        """The largest eigenvalue that noise alone is expected to have: off-diagonals deviate by error/√2 a class."""
        if self.regularization != "auto":
            return positive(self.regularization, "regularization")
        return math.sqrt(2 * width * classes * self.noise_.error())

    def _apply(self, features: np.ndarray) -> np.ndarray:
        return np.stack([((features @ weights) * features).sum(axis=1) for weights in self.weights_], axis=1)

    def _what(self) -> str:
        return "The sums of products of two features over each class"
