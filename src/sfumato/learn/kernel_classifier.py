"""One kernel classifier for every size and budget: the public rule chooses which.

In:   a table with a public box, labels, ε and δ.
Out:  KernelClassifier, a scikit-learn classifier with a guarantee and a certificate.
Not here: the rule (learn/kernel_rule.py), the classifiers it chooses from.
Proof: docs/proofs/kernel_mean.md
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.guarantee import Guarantee
from sfumato.core.schema import Schema
from sfumato.learn.asked import keep_parameters
from sfumato.learn.features import Kernel
from sfumato.learn.kernel_base import PrivateKernelClassifier
from sfumato.learn.kernel_mean import KernelMeanClassifier
from sfumato.learn.kernel_moment import KernelMomentClassifier
from sfumato.learn.kernel_ridge import KernelRidgeClassifier
from sfumato.learn.kernel_rule import Kind

__all__ = ["KernelClassifier"]

_KINDS: dict[Kind, type] = {
    "mean": KernelMeanClassifier,
    "moment": KernelMomentClassifier,
    "ridge": KernelRidgeClassifier,
}


class KernelClassifier(PrivateKernelClassifier):
    """The kernel classifier that `plan_kernel` prefers for this size and budget, with all its defaults.

    Where n, ε and δ let it be useful, gamma="auto" spends 4 % of the budget on how far rows lie apart.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (2000, 2))
    >>> KernelClassifier(2.0, 1e-6, random_state=0).fit(X, X[:, 0] > 0).chosen_
    'moment'
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        gamma: float | Literal["auto", "spread", "wide"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        box: Any = (-1.0, 1.0),
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
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes
        self.kernel = kernel

    def _settle(self, promise: Guarantee, shape: tuple[int, ...], classes: int) -> Guarantee | None:
        self.chosen_: Kind = self._plan(shape, classes).classifier
        self._model = _KINDS[self.chosen_](**self.get_params())
        keep_parameters(self._model)
        for_spread = super()._settle(promise, shape, classes)
        self._model.n_components_ = self.n_components_
        return for_spread

    def _pays(self) -> bool:
        settled = isinstance(self.gamma, str) and self.gamma == "auto"
        return (settled and self._replaces() and self.plan_.pays) or super()._pays()

    def _feature_gamma(self) -> float:
        self._model.gamma_ = self.gamma_
        return self._model._feature_gamma()

    def _kind(self) -> Kind:
        return self.chosen_

    def _sensitivity(self) -> float:
        return self._model._sensitivity()

    def _dimension(self, components: int, classes: int) -> int:
        return self._model._dimension(components, classes)

    def _statistics(self, features: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
        return self._model._statistics(features, labels, classes)

    def _weights(self, released: np.ndarray, classes: int) -> np.ndarray:
        self._model.noise_ = self.noise_
        return self._model._weights(released, classes)

    def _apply(self, features: np.ndarray) -> np.ndarray:
        self._model.weights_ = self.weights_
        return self._model._apply(features)

    def _what(self) -> str:
        return self._model._what()
