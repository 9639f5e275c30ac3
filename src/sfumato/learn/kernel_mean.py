"""Classification by class-wise sums of random features: a private kernel density for each class.

In:   a table with a public box, labels, ε and δ.
Out:  KernelMeanClassifier, a scikit-learn classifier with a guarantee and a certificate.
Not here: the shared fit (learn/kernel_base.py), the public rule (learn/kernel_rule.py).
Proof: docs/proofs/kernel_mean.md
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.schema import Schema
from sfumato.errors import InputError
from sfumato.learn.features import Kernel
from sfumato.learn.kernel_base import BOUGHT, PrivateKernelClassifier, check_row_count, checked_box
from sfumato.learn.kernel_rule import Kind
from sfumato.learn.passes import Passes, remember_columns
from sfumato.learn.seeds import seed_from
from sfumato.learn.stream_sums import ClassSums

__all__ = ["KernelMeanClassifier", "class_sums", "with_counts"]

#: Share of the squared norm of a record that carries the count of its class where priors are divided out.
_COUNTING = 0.1


class KernelMeanClassifier(PrivateKernelClassifier):
    """Scores x by Σ k(x, x_i) over the records of each class, released once for `epsilon` and `delta`.

    Values are clipped to the public `box` (low, high) and scaled to [-1, 1]; a `schema` may say the same of a table.
    `gamma` is that of k(x, x') = exp(-gamma·‖x - x'‖²) in the scaled box; "auto" settles it and `n_components` by
    `plan_kernel`, which looks at no value; "spread" spends 4 % of the budget on how far rows lie apart and fits gamma
    to that, "wide" to half of it. An odd number of features is rounded up to pairs. `priors="divided"` scores by
    densities instead: rare classes weigh as much as common ones. `kernel` may be another one (learn/features.py):
    "laplacian", "cauchy", "matern12", "matern32", "matern52", or the polynomials "quadratic" and "cubic". `classes`
    declares the labels. `random_state` is for experiments only.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (3000, 2))
    >>> y = (X > 0).sum(axis=1)
    >>> model = KernelMeanClassifier(1.0, 1e-6, random_state=0).fit(X, y)
    >>> print(model.guarantee_)
    (1, 1e-06)-DP, under replacing one record
    >>> model.score(X, y) > 0.75
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        gamma: float | Literal["auto", "spread", "wide"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        box: Any = (-1.0, 1.0),
        priors: Literal["included", "divided"] = "included",
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
        self.priors = priors
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes
        self.kernel = kernel

    def _check(self) -> None:
        if self.priors not in ("included", "divided"):
            raise InputError("priors must be 'included' or 'divided'. Nothing was spent.")

    def _kind(self) -> Kind:
        return "mean"

    def _sensitivity(self) -> float:
        return 2.0 if self._replaces() else 1.0

    def _dimension(self, components: int, classes: int) -> int:
        return classes * (components + (self.priors == "divided"))

    def _statistics(self, features: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
        if self.priors == "divided":
            constant = np.full((len(features), 1), math.sqrt(_COUNTING))
            features = np.hstack([features * math.sqrt(1 - _COUNTING), constant])
        return class_sums(features, labels, classes).ravel()

    def _weights(self, released: np.ndarray, classes: int) -> np.ndarray:
        sums = released.reshape(classes, -1)
        if self.priors == "included":
            self.sizes_ = None
            return sums
        sizes = sums[:, -1] / math.sqrt(_COUNTING)
        # A class that noise made (nearly) empty keeps a tenth of an equal share.
        self.sizes_ = np.maximum(sizes, max(1.0, float(sizes.clip(0).sum()) / (10 * classes)))
        return sums[:, :-1] / (math.sqrt(1 - _COUNTING) * self.sizes_[:, None])

    def fit_by_sums(self, passes: Passes, classes: np.ndarray) -> KernelMeanClassifier:
        """Fit by one pass over a table that need not be in memory; see learn/stream.py."""
        promise = self._budget()
        self._check()
        check_row_count(passes.rows)
        if isinstance(self.gamma, str) and self.gamma in BOUGHT:
            raise InputError(
                f"gamma={self.gamma!r} pairs rows by their position, which a table in parts does not have. Pass a "
                "number, or gamma='auto'. Nothing was spent."
            )
        self.classes_ = classes
        columns = remember_columns(self, passes)
        seeds = seed_from(self.random_state)
        self._prepare(promise, (passes.rows, columns), seeds)
        self.features_(np.zeros((1, columns)))  # draws the frequencies, which no row influences
        box = None if self.schema is not None else checked_box(self.box, columns)
        sums, counts = passes.total(ClassSums(self.features_, len(classes), box))
        passes.check_unchanged()
        total = with_counts(sums, counts) if self.priors == "divided" else sums
        self._finish(promise, total.ravel(), seeds)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """A private density score: the noisy sum of k(x, x_i) over all records, up to a constant factor."""
        return self._scores(X).sum(axis=1)

    def _what(self) -> str:
        return "The sums of features of each class"


def with_counts(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Sums of features and the number of records of each class, in the shares that `_statistics` gives them."""
    return np.hstack([sums * math.sqrt(1 - _COUNTING), counts[:, None] * math.sqrt(_COUNTING)])


def class_sums(features: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Σ of the features of each class, one row for each.

    >>> class_sums(np.ones((3, 2)), np.array([0, 2, 2]), 3)
    array([[1., 1.],
           [0., 0.],
           [2., 2.]])
    """
    members = np.zeros((classes, len(labels)))
    members[labels, np.arange(len(labels))] = 1.0
    return members @ features
