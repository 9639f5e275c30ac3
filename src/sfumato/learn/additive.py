"""Generalised additive models under differential privacy: one function of each column, all of them to be looked at.

In:   a table with a public schema, labels or a target, ε and δ.
Out:  PrivateAdditiveClassifier, PrivateAdditiveRegressor: scikit-learn estimators with a guarantee and a certificate;
      `shapes_`, `plot_shapes()`.
Not here: bins and features (learn/additive_terms.py), noise and training (learn/logistic.py, learn/linear.py).
Proof: docs/proofs/additive.md

Boosting one column after the other pays for every round. Here all functions are trained at once, as one linear model in
public features of norm 1, and noise is drawn once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive, probability
from sfumato.core.guarantee import ApproxDP, Guarantee, PureDP
from sfumato.core.schema import Schema
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.learn.additive_terms import Shape, Terms
from sfumato.learn.asked import as_fitted
from sfumato.learn.fitting import PrivateEstimator, fit_inside, sentence
from sfumato.learn.linear import PrivateLinearRegression
from sfumato.learn.logistic import PrivateLogisticRegression
from sfumato.learn.row_parts import row_count
from sfumato.learn.rows import BLOCK

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["PrivateAdditiveClassifier", "PrivateAdditiveRegressor"]

Edges = Mapping[str, Sequence[float]]
#: A regression publishes the products of all its features: of an interval six, and not fourteen.
_FEW_WAVES = 3


class _AdditiveModel(PrivateEstimator):
    """A linear model in public features, one group of them for each column. Abstract."""

    epsilon: float
    delta: float
    schema: Any
    bins: Any
    edges: Any
    adjacency: Adjacency
    random_state: Any

    @abstractmethod
    def _linear(self) -> Any:
        """The linear model that is trained in the features."""

    def _terms(self) -> Terms:
        return Terms(self.schema, self.bins, self.edges)

    def _budget(self) -> Guarantee:
        epsilon, delta = positive(self.epsilon, "epsilon"), probability(self.delta)
        if not isinstance(self.adjacency, Adjacency):
            raise PrivacyParameterError("adjacency must be REPLACE_ONE, ADD_REMOVE or an Adjacency. Nothing was spent.")
        return (ApproxDP(epsilon, delta) if delta else PureDP(epsilon)).under(self.adjacency)

    def _fit(self, X: Any, y: Any) -> None:
        promise = self._budget()
        self._keep(fit_inside(self, self._linear(), self._terms()(X), y), promise)

    def _keep(self, model: Any, promise: Guarantee) -> None:
        self._model, self.guarantee_ = model, promise
        self._publishable = model.certificate_.publishable
        self.n_features_in_ = len(self.schema.columns)
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    def check_table(self, table: Any, *, reset: bool) -> None:
        self._terms().bins_of(table)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags

    @property
    def shapes_(self) -> dict[str, Shape]:
        """What every column adds to the score, by bin; each function has mean 0 over its bins."""
        return self._shapes()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The score where every function is 0."""
        return self._shapes()[1]

    def _shapes(self) -> tuple[dict[str, Shape], np.ndarray]:
        check_is_fitted(self, "_model")
        shapes, taken = as_fitted(self)._terms().shapes(np.atleast_2d(self._model.coef_))
        return shapes, taken + np.atleast_1d(self._model.intercept_)

    def plot_shapes(self, columns: Iterable[str] | None = None) -> Any:
        """A matplotlib figure with the function of every column, or of these: steps for intervals, bars for categories.

        Everything in it was published by the fit: it may be shown.
        """
        from sfumato.learn.additive_plot import shapes_figure

        check_is_fitted(self, "_model")
        shapes = self.shapes_
        wanted = list(shapes) if columns is None else list(columns)
        unknown = [name for name in wanted if name not in shapes]
        if unknown or not wanted:
            raise InputError(f"columns must name columns of the schema, not {unknown}.")
        return shapes_figure([shapes[name] for name in wanted], self._score_names(), self._unit())

    @abstractmethod
    def _score_names(self) -> list[str]:
        """A name for each score."""

    @abstractmethod
    def _unit(self) -> str:
        """What a function adds to."""

    def _answers(self, name: str, table: Any) -> np.ndarray:
        """A method of the linear model, on the features of a few rows at a time."""
        check_is_fitted(self, "_model")
        terms, ask = as_fitted(self)._terms(), getattr(self._model, name)
        places = terms.bins_of(table)
        parts = [places[start : start + BLOCK] for start in range(0, max(len(places), 1), BLOCK)]
        return np.concatenate([ask(terms.features(part)) for part in parts])

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "_model")
        from sfumato.core.certificate import Certificate

        inner = self._model.certificate_
        return Certificate.issue(
            subject=f"{type(self).__name__}, trained as: {inner.subject}",
            events=inner.events,
            proofs=sorted({*inner.proofs, "additive"}),
            notes=["the schema and the bins of every column are public", *self._label_notes()],
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def _label_notes(self) -> tuple[str, ...]:
        return (self.labels_note(),) if hasattr(self, "classes_") else ()

    def explain(self) -> str:
        """What was done and what it promises, in words."""
        check_is_fitted(self, "_model")
        terms = as_fitted(self)._terms()
        lines = [
            f"{type(self).__name__}: {self.guarantee_}.",
            f"{len(terms.slices)} functions, one of each column, in {terms.width} bins that the schema gives, were "
            "trained at once as one linear model; noise was drawn for all of them together.",
            "Functions that jump are charged for it, so that neighbouring bins share what they learn.",
            *self._model.explain().splitlines()[1:3],
            *map(sentence, self._label_notes()),
            *self.scores_words(),
        ]
        if not self._publishable:
            lines.append("A random_state was used: for experiments, not for publication.")
        return "\n".join(lines)


class PrivateAdditiveClassifier(ClassifierMixin, _AdditiveModel):
    """A classifier whose score is a sum of one function of each column; costs `epsilon` and `delta` once, at `fit`.

    `schema` says which values a column can have. An interval has `bins` bins, finer towards 0 where it begins there, or
    those between the public `edges={"age": [18, 30, 65]}`; a category is a bin. `shapes_` holds the functions,
    `plot_shapes()` shows them. The other parameters are those of PrivateLogisticRegression.

    >>> from sfumato.core import Categories, Interval
    >>> generator = np.random.default_rng(0)
    >>> table = {"age": generator.uniform(0, 100, 5000), "sex": generator.choice(["f", "m"], 5000)}
    >>> label = np.abs(table["age"] - 50) < 25
    >>> schema = Schema({"age": Interval(0, 100), "sex": Categories(["f", "m"])})
    >>> model = PrivateAdditiveClassifier(2.0, 1e-6, schema, random_state=0).fit(table, label)
    >>> model.score(table, label) > 0.9
    True
    >>> print(model.guarantee_)
    (2, 1e-06)-DP, under replacing one record
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        schema: Schema | None = None,
        bins: int = 64,
        edges: Edges | None = None,
        regularization: float | Literal["auto"] = "auto",
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        classes: Any = None,
        public_size: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.bins = bins
        self.edges = edges
        self.regularization: float | Literal["auto"] = regularization
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes
        self.public_size = public_size

    def _linear(self) -> PrivateLogisticRegression:
        linear = PrivateLogisticRegression(
            self.epsilon,
            self.delta,
            regularization=self.regularization,
            norm=1.0,
            adjacency=self.adjacency,
            random_state=self.random_state,
            rows="clip",
            classes=self.classes,
            public_size=self.public_size,
        )
        return linear.held_evenly()

    def plan_for(self, X: Any, classes: Any) -> Any:
        """What `fit` would do with a table of this shape. Looks at no value."""
        self._budget()
        return self._linear().plan_for(self._shape_of(X), classes)

    def learn_nothing(self, X: Any, classes: Any) -> PrivateAdditiveClassifier:
        """A fitted model whose functions are 0, made from the shape of the table alone."""
        self._keep(self._linear().learn_nothing(self._shape_of(X), classes), self._budget())
        return self

    def _shape_of(self, table: Any) -> np.ndarray:
        return np.broadcast_to(0.0, (row_count(table), self._terms().width))

    def _score_names(self) -> list[str]:
        return [str(self.classes_[1])] if len(self.classes_) == 2 else [str(label) for label in self.classes_]

    def _unit(self) -> str:
        return "log odds"

    def decision_function(self, X: Any) -> np.ndarray:
        """The sum of the functions; one score for each class where there are more than two."""
        return self._answers("decision_function", X)

    def predict(self, X: Any) -> np.ndarray:
        return self._answers("predict", X)

    def predict_proba(self, X: Any) -> np.ndarray:
        return self._answers("predict_proba", X)


class PrivateAdditiveRegressor(RegressorMixin, _AdditiveModel):
    """A regression whose prediction is a sum of one function of each column; costs `epsilon` and `delta` once.

    `target` is the public interval of y; values outside are clipped. Products of all features are published here, so an
    interval has few: its function bends up to three times. The other parameters are those of PrivateAdditiveClassifier.

    >>> from sfumato.core import Interval
    >>> generator = np.random.default_rng(0)
    >>> table = {"age": generator.uniform(20, 100, 20000)}
    >>> dose = np.abs(table["age"] - 60) / 40
    >>> schema = Schema({"age": Interval(20, 100)})
    >>> model = PrivateAdditiveRegressor(2.0, 1e-6, schema, target=(0, 1), random_state=0).fit(table, dose)
    >>> model.score(table, dose) > 0.8
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        schema: Schema | None = None,
        target: tuple[float, float] = (-1.0, 1.0),
        bins: int = 64,
        edges: Edges | None = None,
        regularization: float | Literal["auto"] = "auto",
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.target = target
        self.bins = bins
        self.edges = edges
        self.regularization: float | Literal["auto"] = regularization
        self.adjacency = adjacency
        self.random_state = random_state

    def _terms(self) -> Terms:
        return Terms(self.schema, self.bins, self.edges, _FEW_WAVES)

    def _linear(self) -> PrivateLinearRegression:
        return PrivateLinearRegression(
            self.epsilon,
            self.delta,
            target=self.target,
            regularization=self.regularization,
            norm=1.0,
            adjacency=self.adjacency,
            random_state=self.random_state,
        )

    def _score_names(self) -> list[str]:
        return ["prediction"]

    def _unit(self) -> str:
        return "prediction"

    def predict(self, X: Any) -> np.ndarray:
        return self._answers("predict", X)
