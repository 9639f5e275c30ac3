"""Classification by ridge regression on random features, from sums that cost no more than class means.

In:   a table with a public box, labels, ε and δ.
Out:  KernelRidgeClassifier, a scikit-learn classifier with a guarantee and a certificate.
Not here: the shared fit (learn/kernel_base.py), packing (mechanisms/noisy_sums.py), the means (learn/kernel_mean.py).
Proof: docs/proofs/kernel_mean.md

One record contributes (φφᵀ/√2, one-hot(label)⊗φ) with ‖φ‖ = 1. Replacing it moves the sum by at most 2, which is what
replacing it moves the second part alone: the second moments are free.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh

from sfumato.learn.kernel_mean import class_sums
from sfumato.learn.kernel_products import ProductsClassifier
from sfumato.learn.kernel_rule import Kind
from sfumato.mechanisms.noisy_sums import pack, unpack

__all__ = ["KernelRidgeClassifier"]

#: "auto" strength, in units of the largest eigenvalue that noise alone is expected to have.
_STRENGTH = 0.35


class KernelRidgeClassifier(ProductsClassifier):
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

    def _kind(self) -> Kind:
        return "ridge"

    def _sensitivity(self) -> float:
        return 2.0 if self._replaces() else math.sqrt(1.5)

    def _dimension(self, components: int, classes: int) -> int:
        return components * (components + 1) // 2 + components * classes

    def _statistics(self, features: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
        products = pack(features.T @ features) / math.sqrt(2)
        return np.concatenate([products, class_sums(features, labels, classes).ravel()])

    def _weights(self, released: np.ndarray, classes: int) -> np.ndarray:
        width = self.n_components_
        packed, sums = np.split(released, [width * (width + 1) // 2])
        self.regularization_ = self._strength(width, classes)
        values, vectors = eigh(unpack(packed * math.sqrt(2), width))
        sums = sums.reshape(classes, width)
        return ((sums @ vectors) / (np.maximum(values, 0.0) + self.regularization_)) @ vectors.T

    def _automatic_strength(self, width: int, classes: int) -> float:
        # Off-diagonals carry the noise's deviation; the largest eigenvalue of such a matrix is 2·deviation·√width.
        return _STRENGTH * 2 * math.sqrt(width * self.noise_.error())

    def _what(self) -> str:
        return "The sums of features of each class and the sums of their products"
