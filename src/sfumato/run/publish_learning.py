"""Strategies for classifier(…), regression(…) and outliers(…): private estimators with public schemas and labels.

In:   what is wanted, (ε, δ), a public number of individuals.
Out:  a model as JSON; its weights as a table.
Not here: the estimators (learn/), the document (learn/model_document.py).
Proof: the notes of the estimators; docs/proofs/portions.md

Predictions use n, the schema, the number of classes, ε and δ alone. A classifier's loss is (noise/signal)²: the
variance that noise adds to a score, over the variance of scores. What a model cannot express is no part of it, because
no public fact tells: a study that knows its boundary to be curved says prefer(Name, [kernel]).

    objective    v/n²·Σ λ/(Λ + 0.15·λ)²/s     v: variance of one coordinate of the random linear term, Λ: its strength,
                                              s: 2.2, and 1.1 more for every unit of its loss's margin
    svm          v/n²·Σ λ/(Λ + 0.20·λ)²/2.2   λ: eigenvalues of the rows' second moments, for individuals spread
                                              evenly over the middle half of every range
    kernel       0.065·d^2.55·(K²·v/n²)^0.3   v: variance of one released sum, d columns; 3.5 times that without δ
    equilibrium  as kernel                    v: of the sums of features of the classes
    points       as equilibrium, + 0.03·d     what points alone cannot tell
    regression   b/(1 + 36·b), b = 2·w⁴·v/n²  v: variance of one sum of products, w coefficients; error over width²
    outliers     v/s² + 0.03                  v: variance of a coordinate of the mean (C = 1), s = 0.3·0.68^d: its score

The numbers were fixed on synthetic tables of 1 to 6 columns and 1,000 to 20,000 rows; there predictions are within a
factor of 6 of simulation, and within 10 on a table that was made afterwards (tests/run/test_publish_predictions.py).
That is enough to rank strategies that differ by more, and to split a budget by cube roots. Constants in the sums stand
for random features, which are drawn anew in every run.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa
from scipy.stats import qmc

from sfumato.core import Categories, GaussianEvent, Guarantee, Interval, Schema
from sfumato.learn import (
    EquilibriumClassifier,
    KernelClassifier,
    NothingLearnedWarning,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSVC,
    PrivateSVDD,
)
from sfumato.learn.base import intercept_share
from sfumato.learn.calibration import TrainingPlan
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.kernel_base import MOST_ROWS, noise_for
from sfumato.learn.losses import LogisticLoss
from sfumato.learn.model_document import model_document
from sfumato.learn.rows import UnitRows
from sfumato.learn.table import label_above_zero
from sfumato.plan.act import Act
from sfumato.plan.cell_rules import own_names, renamed, ruled
from sfumato.plan.plan import Seen
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.questions.kinds.classifier import ClassifierKind
from sfumato.questions.kinds.outliers import OutliersKind
from sfumato.questions.kinds.regression import RegressionKind
from sfumato.run.publish_base import Performed, Publisher, point_of
from sfumato.run.publish_fair import Expected, expected_fairness, fair_refusal, perform_fair

__all__ = [
    "SPREAD_OF_SCORES",
    "ClassifierPublisher",
    "Equilibrium",
    "Kernel",
    "ObjectivePublisher",
    "Outliers",
    "Points",
    "Regression",
    "Svm",
    "largest_norm",
    "second_moments",
]

_NORMAL_95 = 1.959963984540054
_PUBLIC_POINTS = 512
#: The variance of a linear classifier's scores.
SPREAD_OF_SCORES = 2.2


def largest_norm(schema: Schema) -> float:
    """The longest encoded row the schema allows: no row is shortened, and a threshold anywhere can be learned.

    An interval has width 2 around an origin a tenth (from 0 upwards) or three tenths up; a category is one number.

    >>> round(largest_norm(Schema({"age": Interval(0, 110), "sex": Categories(["f", "m"])})), 3)
    2.059
    """
    squares = (
        1.0 if isinstance(domain, Categories) else (1.8 if getattr(domain, "low", 1.0) == 0 else 1.4) ** 2
        for domain in schema.columns.values()
    )
    return math.sqrt(math.fsum(squares))


@lru_cache(maxsize=64)
def second_moments(schema: Schema, norm: float, constant: float) -> np.ndarray:
    """Mean of row·rowᵀ over public points of the schema: what training would see of evenly spread individuals.

    >>> second_moments(Schema({"age": Interval(0, 110)}), 1.8, 0.2).shape
    (2, 2)
    """
    points = qmc.Sobol(len(schema.columns), scramble=False).random(_PUBLIC_POINTS)
    table: dict[str, Any] = {}
    for place, (name, domain) in enumerate(schema.columns.items()):
        if isinstance(domain, Interval):
            table[name] = domain.low + domain.width * (0.2 + 0.5 * points[:, place])
        elif isinstance(domain, Categories):
            table[name] = [domain.values[int(point * len(domain.values))] for point in points[:, place]]
    rows = SchemaEncoder(schema).fit(None).transform(table)
    return UnitRows(rows, norm, constant, stretch=True).exact_gram() / _PUBLIC_POINTS


class LearningPublisher(Publisher):
    """Fits one estimator of learn/ and publishes it. Abstract."""

    #: Sums of more rows are rounded further than their sensitivities allow for (docs/proofs/kernel_mean.md).
    most_shared: ClassVar[int] = MOST_ROWS

    @abstractmethod
    def _estimator(self, schema: Schema, act: Act, random_state: int | None) -> Any:
        """The estimator with everything public settled."""

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        epsilon, delta = point_of(guarantee)
        return self.act(self, wanted, guarantee, {"epsilon": epsilon, "delta": delta})

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        columns, target = list(act.parameters["columns"]), act.parameters["target"]
        cells = act.parameters.get("cells", {})
        schema = ruled(Schema.from_toml(act.parameters["schema"]), cells)
        labels = None if target is None else table[target].to_numpy(zero_copy_only=False)
        model = self._estimator(schema.select(columns), act, random_state)
        if "fairness" in act.parameters:
            return perform_fair(act, model, table, identifiers, _weights)
        with warnings.catch_warnings(record=True) as caught:
            # Whether next to nothing can be learned follows from n, d, ε and δ: a public fact, kept as a note.
            warnings.simplefilter("always", NothingLearnedWarning)
            model.fit(table.select(columns), labels)
        certificate = model.certificate_
        told = tuple(str(one.message) for one in caught if issubclass(one.category, NothingLearnedWarning))
        # Any other warning may depend on the data, so nobody gets to see it.
        notes = (*(note for note in certificate.notes if "random_state" not in note), *told)
        names = own_names(columns, cells)
        document = model_document(act.kind, act.strategy, target, model, notes, also=names)
        return Performed(_weights(model, names), {"json": document}, certificate.events, certificate.proofs, notes)


def _weights(model: Any, own: Mapping[str, str]) -> pa.Table:
    """The released numbers that can be told in a list; the document has them all.

    What speaks for a label names it, of two labels as of several: they stand in the order of their values, and not in
    that in which a study declares them.
    """
    names, values = [], []
    if hasattr(model, "coef_"):
        rows = np.atleast_2d(model.coef_)
        intercepts = np.atleast_1d(model.intercept_)
        heads = _heads(getattr(model, "classes_", None), len(rows))
        for head, row, intercept in zip(heads, rows, intercepts, strict=True):
            names += [f"{head}{name}" for name in (*renamed(model.schema, own).feature_names, "intercept")]
            # No row is longer than the norm, so what is added up is the same in the units that a reader knows.
            slopes, begin = SchemaEncoder(model.schema).in_own_units(row, float(intercept))
            values += [*map(float, slopes), begin]
    else:
        arrays = {"weights": getattr(model, "weights_", None), "centre": getattr(model, "centre_", None)}
        support = getattr(model, "support_", None)
        arrays["weights of the supports"] = getattr(support, "weights_", None)
        arrays["labels of points"] = getattr(model, "point_labels_", None)
        for name, array in arrays.items():
            if array is not None:
                flat = np.ravel(array)
                names += [f"{name}[{place}]" for place in range(flat.size)]
                values += [float(value) for value in flat]
    return pa.table({"part": pa.array(names, pa.string()), "value": pa.array(values, pa.float64())})


def _heads(classes: Any, rules: int) -> list[str]:
    """What each linear rule's numbers are called after: the label that they speak for; nothing in a regression."""
    if classes is None:
        return [""] * rules
    return [f"{label}: " for label in (classes if rules > 1 else [label_above_zero(classes)])]


def _overturned(loss: float) -> float:
    """The share of decisions that noise turns round."""
    ratio = math.sqrt(loss)
    return min(0.5, 0.4 * ratio / (1 + 0.8 * ratio))


# ── classifiers ──────────────────────────────────────────────────────────────────────────────────────────────────────


class ClassifierPublisher(LearningPublisher):
    """A classifier whose labels are the declared range of its target. Abstract."""

    kind: ClassVar[str] = ClassifierKind.functor
    words: ClassVar[str] = (
        "a classifier of {target} from {columns}: a rule that anybody can apply to anybody. All that it takes from the "
        "data are weights learned with noise. Listed weights of a linear one are for predicting and not for reading "
        "off an effect: noise and a penalty draw them towards 0, and they carry no interval"
    )
    estimator: ClassVar[Any]
    seconds: ClassVar[float]  # for a thousand rows, measured on one core
    has_norm: ClassVar[bool] = False

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        if not wanted.classes:
            return f"{wanted.target} is a number: use regression(…), or declare categories"
        return fair_refusal(wanted, guarantee)

    def _estimator(self, schema: Schema, act: Act, random_state: int | None) -> Any:
        domain = Schema.from_toml(act.parameters["schema"]).columns[act.parameters["target"]]
        assert isinstance(domain, Categories)
        given = {"epsilon": act.parameters["epsilon"], "delta": act.parameters["delta"]}
        return self._made(schema, list(domain.values), act.guarantee, given, random_state)

    def _made(
        self,
        schema: Schema,
        classes: list[Any],
        guarantee: Guarantee,
        given: dict[str, float],
        random_state: int | None,
    ) -> Any:
        more = {"norm": largest_norm(schema)} if self.has_norm else {}
        return self.estimator(
            **given, schema=schema, adjacency=guarantee.adjacency, classes=classes, random_state=random_state, **more
        )

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        epsilon, delta = point_of(guarantee)
        given = {"epsilon": epsilon, "delta": delta}
        classes = list(range(wanted.classes))
        model = self._made(wanted.schema, classes, guarantee, given, None)

        def loss_for(people: float) -> float:
            shape = np.broadcast_to(np.zeros(1), (max(1, round(people)), wanted.schema.width))
            return self._loss(model, shape, classes)

        fair = self._fair(wanted, guarantee, size, loss_for)
        loss = loss_for(size if fair is None else size * (1 - fair.portion))
        ratio, overturned = math.sqrt(loss), 100 * _overturned(loss)
        note = (
            f"The error is that of a score, in units of the spread of scores; noise overturns about {overturned:.2g} %."
        )
        told = "" if fair is None or wanted.fairness is None else fair.sentence(wanted.fairness)
        note += f" {told[0].upper()}{told[1:]}." if told else ""
        seen = Seen(str(wanted.target), loss, _NORMAL_95 * ratio, 1, note)
        # A constant answer is as far from a score as the spread of scores.
        lost = 0.0 if fair is None else 1 - fair.share
        return Prediction(loss + lost, (seen,), self.seconds * size / 1000)

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        act = super().settle(wanted, guarantee, size)
        if wanted.fairness is None:
            return act
        epsilon, delta = point_of(guarantee)
        model = self._made(wanted.schema, [0, 1], guarantee, {"epsilon": epsilon, "delta": delta}, None)

        def loss_for(people: float) -> float:
            return self._loss(model, np.broadcast_to(np.zeros(1), (max(1, round(people)), wanted.schema.width)), [0, 1])

        fair = self._fair(wanted, guarantee, size, loss_for)
        assert fair is not None
        return dataclasses.replace(act, parameters={**act.parameters, "portion": fair.portion})

    @staticmethod
    def _fair(wanted: Wanted, guarantee: Guarantee, size: float, loss_for: Callable[[float], float]) -> Expected | None:
        if wanted.fairness is None:
            return None
        return expected_fairness(wanted.fairness, guarantee, size, lambda people: _overturned(loss_for(people)))

    @abstractmethod
    def _loss(self, model: Any, shape: np.ndarray, classes: list[int]) -> float:
        """Variance of the noise in a score over the variance of scores; see the head of this file."""


class LinearPublisher(ClassifierPublisher):
    """A linear classifier by objective perturbation. Abstract."""

    has_norm: ClassVar[bool] = True
    curvature: ClassVar[float]  # of the loss at a typical row
    seconds: ClassVar[float] = 0.02

    def _loss(self, model: Any, shape: np.ndarray, classes: list[int]) -> float:
        plan = model.plan_for(shape, classes)
        moments = second_moments(
            model.schema, float(model.norm), intercept_share(model.fit_intercept, model.schema, model.schema.width)
        )
        spectrum = np.maximum(np.linalg.eigvalsh(moments), 0.0)
        amplified = float(np.sum(spectrum / (plan.regularization + self.curvature * spectrum) ** 2))
        return amplified * plan.tilt.error() / len(shape) ** 2 / (SPREAD_OF_SCORES * self._wider(plan))

    def _wider(self, plan: TrainingPlan) -> float:
        """By how much the scores of this plan's loss are spread more than their noise, in units of those without."""
        return 1.0


@final
class ObjectivePublisher(LinearPublisher):
    """Logistic regression."""

    name: ClassVar[str] = "objective"
    estimator: ClassVar[Any] = PrivateLogisticRegression
    curvature: ClassVar[float] = 0.15

    def _wider(self, plan: TrainingPlan) -> float:
        """A margin asks for longer scores: by 1.33, 1.6, 1.8 and 2.1 times for margins of ½, 1, 1½ and 2."""
        return 1 + plan.loss.margin / 2 if isinstance(plan.loss, LogisticLoss) else 1.0


@final
class Svm(LinearPublisher):
    """A support vector machine with a rounded hinge."""

    name: ClassVar[str] = "svm"
    #: The least hinge loss of a label that few have is that of one score for everybody; what is left of it is noise.
    risk: ClassVar[str] = "where a label is rare its scores may order nobody, and no public fact tells how rare it is"
    estimator: ClassVar[Any] = PrivateSVC
    curvature: ClassVar[float] = 0.2


def _kernel_loss(event: Any, shape: np.ndarray, classes: int) -> float:
    gaussian = isinstance(event, GaussianEvent)
    # Norm-gamma noise has variance (dimension + 1)·scale² in every coordinate.
    variance = event.scale**2 * (1.0 if gaussian else event.dimension + 1.0)
    base = classes**2 * variance / len(shape) ** 2
    return (1.0 if gaussian else 3.5) * 0.065 * shape.shape[1] ** 2.55 * base**0.3


@final
class Kernel(ClassifierPublisher):
    """The kernel classifier that the public rule of learn/kernel_rule.py prefers."""

    name: ClassVar[str] = "kernel"
    summed: ClassVar[bool] = True
    estimator: ClassVar[Any] = KernelClassifier
    seconds: ClassVar[float] = 0.1

    def _loss(self, model: Any, shape: np.ndarray, classes: list[int]) -> float:
        return _kernel_loss(model.plan_for(shape, classes).events[-1], shape, len(classes))


class SupportPublisher(ClassifierPublisher):
    """One noisy support function for each class. Abstract."""

    summed: ClassVar[bool] = True
    estimator: ClassVar[Any] = EquilibriumClassifier
    seconds: ClassVar[float] = 0.5

    def _loss(self, model: Any, shape: np.ndarray, classes: list[int]) -> float:
        plan = model.class_supports(shape.shape).plan_for(shape, classes)
        return _kernel_loss(plan.events[-1], shape, len(classes))


@final
class Equilibrium(SupportPublisher):
    """The support functions themselves: a row has the class whose support is highest."""

    name: ClassVar[str] = "equilibrium"


@final
class Points(SupportPublisher):
    """Their labelled equilibrium points alone: rows take the label of the nearest."""

    name: ClassVar[str] = "points"

    def _made(
        self,
        schema: Schema,
        classes: list[Any],
        guarantee: Guarantee,
        given: dict[str, float],
        random_state: int | None,
    ) -> Any:
        return super()._made(schema, classes, guarantee, given, random_state).set_params(publish="points")

    def _loss(self, model: Any, shape: np.ndarray, classes: list[int]) -> float:
        return super()._loss(model, shape, classes) + 0.03 * shape.shape[1]


# ── numbers and outliers ─────────────────────────────────────────────────────────────────────────────────────────────


@final
class Regression(LearningPublisher):
    """Ridge regression from noisy sums of products."""

    name: ClassVar[str] = "sufficient"
    kind: ClassVar[str] = RegressionKind.functor
    words: ClassVar[str] = (
        "a regression of {target} on {columns}: a formula that anybody can apply to anybody. All that it takes from "
        "the data are sums with noise. Its coefficients are for predicting and not for reading off an effect: noise "
        "and a ridge draw them towards 0, and they carry no interval"
    )
    summed: ClassVar[bool] = True

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        if not isinstance(wanted.target_domain, Interval):
            return f"{wanted.target} is a category: use classifier(…)"
        return None

    def _estimator(self, schema: Schema, act: Act, random_state: int | None) -> Any:
        domain = Schema.from_toml(act.parameters["schema"]).columns[act.parameters["target"]]
        assert isinstance(domain, Interval)
        given = (act.parameters["epsilon"], act.parameters["delta"])
        return self._made(schema, domain, act.guarantee, given, random_state)

    def _made(
        self,
        schema: Schema,
        target: Interval,
        guarantee: Guarantee,
        given: tuple[float, float],
        random_state: int | None,
    ) -> PrivateLinearRegression:
        return PrivateLinearRegression(
            *given,
            target=(target.low, target.high),
            schema=schema,
            norm=largest_norm(schema),
            adjacency=guarantee.adjacency,  # type: ignore[arg-type]
            random_state=random_state,
        )

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        target = wanted.target_domain
        assert isinstance(target, Interval)
        epsilon, delta = point_of(guarantee)
        model = self._made(wanted.schema, target, guarantee, (epsilon, delta), None)
        width = wanted.schema.width + 1
        deviation = math.sqrt(model.noise_on_sums(epsilon, delta, width).error())
        # Small noise is amplified by the ridge's inverse; large noise leaves the middle of a range of six deviations.
        small = 2 * width**4 * (deviation / size) ** 2
        relative = small / (1 + 36 * small)
        seen = Seen(
            str(wanted.target),
            relative * target.width**2,
            _NORMAL_95 * math.sqrt(relative) * target.width,
            1,
            "How far noise and the ridge move a prediction; what the features cannot explain comes on top.",
        )
        return Prediction(relative, (seen,), 0.01 * size / 1000)


@final
class Outliers(LearningPublisher):
    """The noisy centre of the smallest soft ball around the individuals in feature space."""

    name: ClassVar[str] = "svdd"
    kind: ClassVar[str] = OutliersKind.functor
    words: ClassVar[str] = (
        "a rule that says from {columns} how unusual somebody is. All that it takes from the data are numbers learned "
        "with noise; who is unusual is not published"
    )

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        return None

    def _estimator(self, schema: Schema, act: Act, random_state: int | None) -> Any:
        return PrivateSVDD(
            act.parameters["epsilon"],
            act.parameters["delta"],
            schema=schema,
            adjacency=act.guarantee.adjacency,  # type: ignore[arg-type]
            random_state=random_state,
        )

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        epsilon, delta = point_of(guarantee)
        model = PrivateSVDD(epsilon, delta, schema=wanted.schema, adjacency=guarantee.adjacency)  # type: ignore[arg-type]
        records = max(1, round(size))
        components, columns = int(model.n_components), wanted.schema.width
        # With more budget "auto" looks further for the rim at the same noise; at C = 1 budgets can be compared.
        variance = noise_for(model.promised(), 2 / records, components).error()
        typical = 0.3 * 0.68 ** min(columns, 12)  # records look alike in few columns only
        loss = variance / typical**2 + 0.03
        note = (
            "The error is that of the score of a row in units of a typical score, were the mean of all rows released."
        )
        seen = Seen(", ".join(wanted.columns), loss, _NORMAL_95 * math.sqrt(loss), 1, note)
        return Prediction(loss, (seen,), 0.3 * size / 1000)
