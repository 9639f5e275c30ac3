"""What the classifiers share that release sums of products of features.

In:   parameters as they are given.
Out:  ProductsClassifier (abstract): parameters, a strength taken from the noise alone.
Not here: which sums are released and how scores follow (learn/kernel_moment.py, learn/kernel_ridge.py), how they are
packed (mechanisms/noisy_sums.py).
Proof: docs/proofs/kernel_mean.md
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive
from sfumato.core.schema import Schema
from sfumato.learn.features import Kernel
from sfumato.learn.kernel_base import PrivateKernelClassifier

__all__ = ["ProductsClassifier"]


class ProductsClassifier(PrivateKernelClassifier):
    """A kernel classifier from noisy Σφφᵀ, regularised by the spectral size of the noise. Abstract."""

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        gamma: float | Literal["auto", "spread", "wide"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        box: Any = (-1.0, 1.0),
        regularization: float | Literal["auto"] = "auto",
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        classes: Any = None,
        kernel: Kernel = "rbf",
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
        self.kernel = kernel

    def _check(self) -> None:
        if self.regularization != "auto":
            positive(self.regularization, "regularization")

    def _strength(self, width: int, classes: int) -> float:
        """As given, or the public rule of the final class."""
        if self.regularization != "auto":
            return positive(self.regularization, "regularization")
        return self._automatic_strength(width, classes)

    @abstractmethod
    def _automatic_strength(self, width: int, classes: int) -> float:
        """A multiple of the largest eigenvalue that noise alone is expected to have."""
