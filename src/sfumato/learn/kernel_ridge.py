"""Classification by ridge regression on random features, from sums that cost no more than class means.

In:   a table with a public box, labels, ε and δ.
Out:  KernelRidgeClassifier, a scikit-learn classifier with a guarantee and a certificate.
Not here: the shared fit (learn/kernel_base.py), the means (learn/kernel_mean.py).
Proof: docs/proofs/kernel_mean.md

One record contributes (φφᵀ/√2, one-hot(label)⊗φ) with ‖φ‖ = 1. Replacing it moves the sum by at most 2, which is what
replacing it moves the second part alone: the second moments are free.
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
from sfumato.learn.kernel_mean import class_sums
from sfumato.learn.kernel_rule import Kind

__all__ = ["KernelRidgeClassifier"]

#: "auto" strength, in units of the largest eigenvalue that noise alone is expected to have.
_STRENGTH = 0.35


class KernelRidgeClassifier(PrivateKernelClassifier):
    """Least squares on one-hot labels in random features, from one noisy release of sufficient statistics.

    As `regularization` grows it becomes KernelMeanClassifier; "auto" is a third of the spectral size of the noise, a
    public number. The other parameters are those of KernelMeanClassifier. Made for δ > 0: norm-gamma noise grows with
    the number of statistics, n_components²/2.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (3000, 2))
    >>> y = (X > 0).sum(axis=1)
    >>> KernelRidgeClassifier(1.0, 1e-6, random_state=0).fit(X, y).score(X, y) > 0.8
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
        return "ridge"

    def _sensitivity(self) -> float:
        return 2.0 if self._replaces() else math.sqrt(1.5)

    def _dimension(self, components: int, classes: int) -> int:
        return components * (components + 1) // 2 + components * classes

    def _statistics(self, features: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
        products = features.T @ features
        upper = np.triu_indices(len(products), 1)
        # √2 on what stands twice in the matrix makes the length the Frobenius norm; 1/√2 is the weight of this part.
        return np.concatenate(
            [
                np.diag(products) / math.sqrt(2),
                products[upper],
                class_sums(features, labels, classes).ravel(),
            ]
        )

    def _weights(self, released: np.ndarray, classes: int) -> np.ndarray:
        width = self.n_components_
        products = np.zeros((width, width))
        products[np.triu_indices(width, 1)] = released[width : -width * classes]
        products += products.T
        products[np.diag_indices(width)] = released[:width] * math.sqrt(2)
        sums = released[-width * classes :].reshape(classes, width)
        self.regularization_ = self._strength(width)
        values, vectors = eigh(products)
        return ((sums @ vectors) / (np.maximum(values, 0.0) + self.regularization_)) @ vectors.T

    def _strength(self, width: int) -> float:
        if self.regularization != "auto":
            return positive(self.regularization, "regularization")
        # Off-diagonals carry the noise's deviation; the largest eigenvalue of such a matrix is 2·deviation·√width.
        return _STRENGTH * 2 * math.sqrt(width * self.noise_.error())

    def _what(self) -> str:
        return "The sums of features of each class and the sums of their products"
