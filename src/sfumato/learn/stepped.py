"""A linear classifier from noisy sums of products and noisy gradients, one after the other.

In:   a table with a schema, declared labels, ε and δ.
Out:  SteppedClassifier, fitted: weights, what was drawn for them. Every number it draws is a sum over records.
Not here: a step and what it costs (mechanisms/noisy_sums.py); classifiers for rows that are in one place, which are
better there (learn/logistic.py, learn/svc.py); who adds up and draws where they are not (run/course.py).
Proof: docs/proofs/centre_learning.md, "Gradients of unit rows"
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.certificate import Certificate
from sfumato.core.guarantee import ApproxDP, GaussianDP
from sfumato.core.schema import Schema
from sfumato.learn.base import intercept_share
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.kernel_base import check_row_count
from sfumato.learn.rows import UnitRows
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.table import checked_labels, declared_classes
from sfumato.mechanisms import Gaussian
from sfumato.mechanisms.noisy_sums import (
    RIDGE,
    STEPS,
    StepLoss,
    clipped,
    curvature,
    hessian_bound,
    next_weights,
    pack,
    parts,
    slopes,
    unpack,
)

__all__ = ["SteppedClassifier"]

#: Rounding of the sums, in units of the sensitivity: enough for ten million records (docs/proofs/kernel_mean.md).
_ARITHMETIC = 2e-5


@final
@dataclass
class SteppedClassifier:
    """Logistic regression (softmax for several classes) or a rounded hinge, by `steps` noisy gradients.

    >>> from sfumato.core import REPLACE_ONE, Interval
    >>> age = np.random.default_rng(0).uniform(0, 100, 4000)
    >>> schema = Schema({"age": Interval(0, 100)})
    >>> model = SteppedClassifier(1.0, 1e-6, schema, REPLACE_ONE, ["no", "yes"], norm=1.8, random_state=0)
    >>> model = model.fit({"age": age}, np.where(age > 50, "yes", "no"))
    >>> float(np.mean((model.decision_function({"age": age}) > 0) == (age > 50))) > 0.9
    True
    """

    epsilon: float
    delta: float
    schema: Schema
    adjacency: Adjacency
    classes: list[Any]
    norm: float
    loss: StepLoss = "logistic"
    steps: int = STEPS
    random_state: Any = None
    weights_: np.ndarray = field(init=False, repr=False)
    classes_: np.ndarray = field(init=False, repr=False)
    noises_: list[Gaussian] = field(init=False, repr=False)

    def fit(self, table: Any, labels: Any) -> SteppedClassifier:
        matrix = SchemaEncoder(self.schema).fit(None).transform(table)
        seeds = seed_from(self.random_state)
        check_row_count(seeds.records(matrix.shape[0]))
        codes, self.classes_ = checked_labels(labels, matrix.shape[0], declared_classes(self.classes))
        self._publishable = seeds.publishable
        rows = UnitRows(matrix, self.norm, self.constant)
        wanted = np.eye(len(self.classes_))[codes]
        self.noises_ = []
        bound = self._bound(rows, seeds)
        weights = ahead = np.zeros((self.outputs, rows.width))
        for step in range(1, self.steps + 1):
            gradient = self._gradient(rows, wanted, ahead, seeds)
            weights, ahead = next_weights(bound, ahead, gradient, self.ridge, weights, step)
        self.weights_ = weights
        return self

    # ── what is public ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def constant(self) -> float:
        return intercept_share("auto", self.schema, self.schema.width)

    @property
    def outputs(self) -> int:
        """One weight vector for two classes, one for each of several."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def ridge(self) -> float:
        """On the weights of unit rows: RIDGE on those of rows as they are encoded."""
        return RIDGE / self.norm**2

    @property
    def longest(self) -> float:
        """To what a record's slopes are clipped: half of what they can be."""
        return 0.5 if self.outputs == 1 else math.sqrt(0.5)

    @property
    def curvature(self) -> float:
        """The Hessian is at most this times Σ x xᵀ, for each output."""
        return curvature(self.loss, self.outputs)

    @property
    def guarantee_(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)

    def products_noise(self, width: int) -> Gaussian:
        """On the upper triangle of Σ x xᵀ, off-diagonals times √2: x xᵀ and x'x'ᵀ are at most √2 apart."""
        return self._noise(self._parts[0], math.sqrt(2) if self._replaces else 1.0, width * (width + 1) // 2)

    def step_noise(self, width: int) -> Gaussian:
        """On one gradient of all outputs."""
        moved = (2.0 if self._replaces else 1.0) * self.longest
        return self._noise(self._parts[1], moved, self.outputs * width)

    @property
    def _replaces(self) -> bool:
        return self.adjacency.relation == "replace-one"

    @property
    def _parts(self) -> tuple[GaussianDP, GaussianDP]:
        return parts(self.guarantee_, self.steps)

    def _noise(self, promise: GaussianDP, moved: float, size: int) -> Gaussian:
        return Gaussian.for_guarantee(promise, moved * (1 + _ARITHMETIC), self.adjacency, dimension=size)

    # ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _bound(self, rows: UnitRows, seeds: Seeds) -> np.ndarray:
        noise = self.products_noise(rows.width)
        self.noises_.append(noise)
        noisy = unpack(seeds.released(noise, lambda: pack(rows.exact_gram())), rows.width)
        return hessian_bound(noisy, seeds.deviation(noise), self.curvature, self.ridge)

    def _gradient(self, rows: UnitRows, wanted: np.ndarray, weights: np.ndarray, seeds: Seeds) -> np.ndarray:
        noise = self.step_noise(rows.width)
        self.noises_.append(noise)
        found = seeds.released(noise, lambda: self._pulled(rows, wanted, weights))
        return found.reshape(self.outputs, rows.width)

    def _pulled(self, rows: UnitRows, wanted: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Σ of the records' gradients, each clipped."""
        with np.errstate(over="ignore", invalid="ignore"):  # weights may be any finite numbers
            scores = np.stack([rows.times(one, alike=True) for one in weights], axis=1)
        right = wanted[:, 1:] if self.outputs == 1 else wanted
        short = clipped(slopes(self.loss, scores, right), self.longest)
        return np.concatenate([rows.pull(short[:, place]) for place in range(self.outputs)])

    # ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────

    def decision_function(self, table: Any) -> np.ndarray:
        rows = UnitRows(SchemaEncoder(self.schema).fit(None).transform(table), self.norm, self.constant)
        scores = np.stack([rows.times(one) for one in self.weights_], axis=1)
        return scores[:, 0] if self.outputs == 1 else scores

    @property
    def coef_(self) -> np.ndarray:
        share = math.sqrt(1 - self.constant**2) / self.norm
        return self.weights_[:, : self.schema.width] * share

    @property
    def intercept_(self) -> np.ndarray:
        return self.weights_[:, -1] * self.constant if self.constant else np.zeros(self.outputs)

    def rule(self) -> dict[str, Any]:
        """What predictions are computed from."""
        return {"type": "linear", "norm": self.norm, "constant": self.constant, "weights": self.weights_.tolist()}

    @property
    def certificate_(self) -> Certificate:
        return Certificate.issue(
            subject=f"a linear classifier in {self.steps} steps",
            events=[noise.event() for noise in self.noises_],
            proofs=["centre_learning", "gaussian"],
            notes=["the list of labels is public", *(["the number of records is public"] if self._replaces else [])],
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )
