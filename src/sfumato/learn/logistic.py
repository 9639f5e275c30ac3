"""Logistic regression under differential privacy.

In:   a table with public bounds, labels, ε and δ.
Out:  PrivateLogisticRegression, a scikit-learn classifier with a guarantee and a certificate.
Not here: noise and strength (learn/calibration.py), the shared fit (learn/base.py).
Proof: docs/proofs/objective_perturbation.md, docs/proofs/output_perturbation.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit, softmax

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.schema import Schema
from sfumato.learn.base import PrivateLinearClassifier
from sfumato.learn.calibration import Method, logistic_margin
from sfumato.learn.joint_loss import JointLoss
from sfumato.learn.losses import LogisticLoss, Loss
from sfumato.learn.penalties import Penalty
from sfumato.learn.training_budget import TrainingBudget

__all__ = ["PrivateLogisticRegression"]


class PrivateLogisticRegression(PrivateLinearClassifier):
    """Logistic regression that costs `epsilon` and `delta` once, at `fit`. Several classes: one softmax.

    `delta=0` gives pure privacy; any δ > 0, such as 1e-6, lets the noise grow with √features instead of features.
    `schema` makes X a table of public domains; without it X is numeric. Rows are shortened to `norm`.
    `regularization` is Λ in (1/n)Σloss + ½Λ‖f‖² for rows of norm 1; "auto" is a public rule (`automatic_strength`).
    `fit_intercept`: see `intercept_share`; of two labels one is counted first, for at most 3 % of the budget, so that
    the constant starts where it belongs (learn/label_look.py). `rows="stretch"` also lengthens short rows to the norm,
    which keeps the sign of linear scores and wastes no noise; "auto" does so when the schema made the rows, and they
    are not just a constant and fewer than four columns. Where noise is long against the
    data, regularization="auto" also gives the loss a margin (`logistic_margin`, a public rule); `predict_proba`
    undoes it. `penalty` is a public penalty, or several, added to ½‖f‖² (learn/penalties.py): HuberPenalty(0.1) pulls
    small coefficients to 0 as a lasso does. `classes` declares the labels. `random_state` is for experiments only.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-0.5, 0.5, (5000, 2))
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, random_state=0).fit(X, X[:, 0] > 0)
    >>> print(model.guarantee_)
    (1, 1e-06)-DP, under replacing one record
    >>> model.score(X, X[:, 0] > 0) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        method: Method = "objective",
        regularization: float | Literal["auto"] = "auto",
        schema: Schema | None = None,
        norm: float | None = 1.0,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        fit_intercept: bool | float | Literal["auto"] = "auto",
        rows: Literal["auto", "clip", "stretch"] = "auto",
        classes: Any = None,
        public_size: int | None = None,
        spend_on_bounds: float | None = None,
        penalty: Penalty | Sequence[Penalty] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.regularization = regularization
        self.schema = schema
        self.norm = norm
        self.adjacency = adjacency
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.rows = rows
        self.classes = classes
        self.public_size = public_size
        self.spend_on_bounds = spend_on_bounds
        self.penalty = penalty

    def held_evenly(self) -> Self:
        """This, for rows of which useful coefficients are alike: the automatic strength is then `even_strength`."""
        self._even = True
        return self

    def _loss(self) -> Loss:
        return LogisticLoss()

    def _loss_under(self, budget: TrainingBudget) -> Loss:
        automatic = self.method == "objective" and self.regularization == "auto"
        return LogisticLoss(logistic_margin(budget)) if automatic else LogisticLoss()

    def _joint_loss(self, classes: int, *, full: bool) -> JointLoss:
        return JointLoss(classes, full=full)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities by the logistic curve, or the softmax of the scores of several classes."""
        scores = self.decision_function(X)
        loss = self.plan_.loss
        if scores.ndim == 1:
            assert isinstance(loss, LogisticLoss)
            chance = loss.chance(scores)
            return np.stack([1 - chance, chance], axis=1)
        chances = np.maximum(softmax(scores, axis=1) if isinstance(loss, JointLoss) else expit(scores), 1e-300)
        return chances / chances.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        return np.log(self.predict_proba(X))
