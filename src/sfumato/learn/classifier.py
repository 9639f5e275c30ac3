"""The classifier to begin with: a public rule chooses the form, and the form's own estimator spends the whole budget.

In:   a table with a public box or schema, labels, ε and δ.
Out:  PrivateClassifier, a scikit-learn classifier with a guarantee and a certificate.
Not here: the rule (learn/classifier_rule.py), the forms (learn/kernel_moment.py, learn/kernel_steps.py,
learn/svc.py) and their proofs.
Proof: docs/proofs/kernel_mean.md, docs/proofs/joint_objective.md: which one is used is a function of public facts
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive
from sfumato.core.domain import Interval
from sfumato.core.guarantee import Guarantee
from sfumato.core.schema import Schema
from sfumato.learn.arrays import is_device_array, to_host
from sfumato.learn.classifier_rule import ClassifierPlan, Form, plan_classifier
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.fitting import fit_inside
from sfumato.learn.kernel_base import KernelInput
from sfumato.learn.kernel_mean import KernelMeanClassifier
from sfumato.learn.kernel_moment import KernelMomentClassifier
from sfumato.learn.kernel_steps import KernelStepsClassifier
from sfumato.learn.row_parts import row_count
from sfumato.learn.svc import TRAINED_WIDTH, PrivateSVC
from sfumato.learn.table import checked_labels, declared_classes

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["PrivateClassifier"]

#: A mask wider than this in every coefficient of a training that is held less tightly: the automatic strength is kept.
_WIDEST_MASK = 0.02
_WORDS: dict[Form, str] = {
    "sums": "Noisy sums of products of random features were chosen",
    "stepped": "Noisy gradients of all classes together on {} random features were chosen",
    "trained": "Training all classes together on {} random features was chosen",
}


class PrivateClassifier(ClassifierMixin, KernelInput):
    """Two or more classes under one budget, without anything to tune: costs `epsilon` and `delta` once, at `fit`.

    `plan_classifier` chooses between noisy sums of products of random features (little data or a small budget, `form`
    "sums"), noisy gradients of all classes on them ("stepped") and one noisy solution for all classes (much of both,
    "trained"), by the numbers of records, columns and classes, ε and δ alone: `plan_`. Values are clipped to the public
    `box` (low, high) or encoded by a `schema`. Where it is worth it 4 % of the budget goes to how far rows lie apart,
    which sets the bandwidth. Under add-remove `public_size`, a rough count known without the data, stands for the
    number of records. `n_components` sets the number of features. `classes` declares the labels. `random_state` is for
    experiments only.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (3000, 2))
    >>> y = (X > 0).sum(axis=1)
    >>> model = PrivateClassifier(1.0, 1e-6, random_state=0).fit(X, y)
    >>> print(model.guarantee_)
    (1, 1e-06)-DP, under replacing one record
    >>> model.plan_.form, model.score(X, y) > 0.9
    ('stepped', True)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        box: Any = (-1.0, 1.0),
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        classes: Any = None,
        public_size: int | None = None,
        n_components: int | Literal["auto"] = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.box = box
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes
        self.public_size = public_size
        self.n_components = n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on 30 rows the noise wins
        return tags

    def _fit(self, X: Any, y: Any) -> None:
        promise = self._budget()
        rows = self._rows(X, reset=True)
        labels = to_host(y) if is_device_array(y) else y
        _, classes = checked_labels(labels, int(rows.shape[0]), declared_classes(self.classes))
        plan = self._planned(int(rows.shape[0]), int(rows.shape[1]), len(classes))
        model = self._chosen(plan, rows.shape, classes)
        rows = rows if isinstance(model, PrivateSVC) else to_host(rows)
        self._keep(plan, fit_inside(self, model, rows, labels), promise)

    def _planned(self, rows: int, columns: int, classes: int) -> ClassifierPlan:
        """By public numbers alone: that of rows is one under replace-one only."""
        records = rows if self._replaces() else self.public_size
        if records is not None:
            records = max(1, int(positive(records, "public_size")))
        moved = 2.0 if self._replaces() else 1.0
        budget = float(self.epsilon), float(self.delta)
        return plan_classifier(records, columns, classes, *budget, moved, self.n_components)

    def _chosen(self, plan: ClassifierPlan, shape: Any, classes: Any) -> Any:
        """The estimator of the plan's form, with the whole budget, for rows in a box of width 2."""
        pays = plan.pays and self._replaces()
        given = {"adjacency": self.adjacency, "random_state": self.random_state, "classes": self.classes}
        low, high = self._ends(int(shape[1]))
        box = (-1.0, 1.0) if self.schema is None else (low.tolist(), high.tolist())
        if plan.form == "sums":
            kind = KernelMomentClassifier if self.delta else KernelMeanClassifier
            gamma = "wide" if pays and self.delta else "auto"
            return kind(self.epsilon, self.delta, gamma=gamma, n_components=plan.n_components, box=box, **given)
        if plan.form == "stepped":
            return KernelStepsClassifier(
                self.epsilon,
                self.delta,
                gamma="spread" if pays else "auto",
                n_components=plan.n_components,
                public_size=self.public_size,
                box=box,
                **given,
            )
        model = PrivateSVC(
            self.epsilon,
            self.delta,
            kernel="rbf",
            gamma="spread" if pays else TRAINED_WIDTH * plan.gamma,
            n_components=plan.n_components,
            norm=max(math.sqrt(shape[1]), float(np.linalg.norm(np.maximum(-low, high)))),
            public_size=self.public_size,
            **given,
        )
        return _loosened(model, plan.looser, np.broadcast_to(0.0, shape), classes)

    def _ends(self, columns: int) -> tuple[np.ndarray, np.ndarray]:
        """Between which numbers the columns of scaled rows lie, 2 apart: encoded intervals begin below their origin."""
        low = np.full(columns, -1.0)
        if self.schema is not None:
            encoder = SchemaEncoder(self.schema)
            for name, part in self.schema.slices.items():
                domain = self.schema.columns[name]
                low[part] = -2 * encoder.origin_of(domain) if isinstance(domain, Interval) else -1.0
        return low, low + 2

    def _keep(self, plan: ClassifierPlan, model: Any, promise: Guarantee) -> None:
        self.plan_, self._model, self.guarantee_ = plan, model, promise
        self.classes_ = model.classes_
        self._publishable = model.certificate_.publishable

    def plan_for(self, X: Any, classes: Any) -> Any:
        """What `fit` would release on a table of this shape. Looks at no value."""
        self._budget()
        shape = self._shape_of(X)
        model = self._chosen(self._planned(*shape, len(classes)), shape, classes)
        return model.plan_for(np.broadcast_to(0.0, shape), classes)

    def learn_nothing(self, X: Any, classes: Any) -> PrivateClassifier:
        """A fitted model that saw no row, made from the shape of the table alone."""
        promise, shape = self._budget(), self._shape_of(X)
        self.n_features_in_ = shape[1]
        plan = self._planned(*shape, len(classes))
        model = self._chosen(plan, shape, classes).learn_nothing(np.broadcast_to(0.0, shape), classes)
        self._keep(plan, model, promise)
        return self

    def _shape_of(self, table: Any) -> tuple[int, int]:
        return row_count(table), self.schema.width if self.schema is not None else int(table.shape[1])

    def _answers(self, name: str, table: Any) -> np.ndarray:
        """A method of the form that was chosen, for rows in the box."""
        check_is_fitted(self, "_model")
        rows = self._rows(table, reset=False)
        return getattr(self._model, name)(rows if isinstance(self._model, PrivateSVC) else to_host(rows))

    def decision_function(self, X: Any) -> np.ndarray:
        """One score for each class; of the second where there are two."""
        return self._answers("decision_function", X)

    def predict(self, X: Any) -> np.ndarray:
        return self._answers("predict", X)

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data: the events of the form that was chosen."""
        check_is_fitted(self, "_model")
        from sfumato.core.certificate import Certificate

        inner = self._model.certificate_
        return Certificate.issue(
            subject=f"{type(self).__name__}, trained as: {inner.subject}",
            events=inner.events,
            proofs=inner.proofs,
            notes=["the box, and the rule that chose the form, are public", *inner.notes],
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def explain(self) -> str:
        """What was chosen and why, what was done and what it promises, in words."""
        check_is_fitted(self, "_model")
        chosen = _WORDS[self.plan_.form].format(self.plan_.n_components)
        lines = [
            f"{type(self).__name__}: {self.guarantee_}.",
            f"{chosen} by a public rule of the numbers of records, columns and classes, epsilon and delta.",
            *self._model.explain().splitlines()[1:],
        ]
        return "\n".join(lines)


def _loosened(model: PrivateSVC, looser: float, shape: np.ndarray, classes: Any) -> PrivateSVC:
    """The model held so many times as tightly as by itself, unless its mask would show."""
    if looser == 1.0:
        return model
    automatic = model.plan_for(shape, classes).regularization
    model.regularization = looser * automatic
    if math.sqrt(model.plan_for(shape, classes).mask.error()) > _WIDEST_MASK:
        model.regularization = "auto"
    return model
