"""Classification by class-wise second moments of random features: the kernel whose neighbours are closest.

In:   a table with a public box, labels, ε and δ.
Out:  KernelMomentClassifier, a scikit-learn classifier with a guarantee and a certificate.
Not here: the shared fit (learn/kernel_base.py), packing (mechanisms/noisy_sums.py), the rule (learn/kernel_rule.py).
Proof: docs/proofs/kernel_mean.md

Inner products of random features can be negative, and then replacing a record moves class sums by up to 2. Their
squares cannot: ⟨φφᵀ, φ'φ'ᵀ⟩ = ⟨φ, φ'⟩² ≥ 0, so class sums of φφᵀ move by at most √2. The square of a Gaussian kernel is
one again, and the sum over classes is the second moment of φ, by which scores are whitened without further cost.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh

from sfumato.learn.kernel_products import ProductsClassifier
from sfumato.learn.kernel_rule import Kind
from sfumato.mechanisms.noisy_sums import pack, unpack

__all__ = ["KernelMomentClassifier"]


class KernelMomentClassifier(ProductsClassifier):
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

    def _kind(self) -> Kind:
        return "moment"

    def _feature_gamma(self) -> float:
        return self.gamma_ / 2  # the square of this kernel has gamma_

    def _sensitivity(self) -> float:
        return math.sqrt(2) if self._replaces() else 1.0

    def _dimension(self, components: int, classes: int) -> int:
        return classes * components * (components + 1) // 2

    def _statistics(self, features: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
        members = (features[labels == label] for label in range(classes))
        return np.concatenate([pack(part.T @ part) for part in members])

    def _weights(self, released: np.ndarray, classes: int) -> np.ndarray:
        width = self.n_components_
        moments = np.stack([unpack(packed, width) for packed in released.reshape(classes, -1)])
        values, vectors = eigh(moments.sum(axis=0))
        self.regularization_ = self._strength(width, classes)
        whitening = (vectors / (np.maximum(values, 0.0) + self.regularization_)) @ vectors.T
        return whitening @ moments @ whitening

    def _automatic_strength(self, width: int, classes: int) -> float:
        return math.sqrt(2 * width * classes * self.noise_.error())  # off-diagonals deviate by error/√2 a class

    def _apply(self, features: np.ndarray) -> np.ndarray:
        return np.stack([((features @ weights) * features).sum(axis=1) for weights in self.weights_], axis=1)

    def _what(self) -> str:
        return "The sums of products of two features over each class"
