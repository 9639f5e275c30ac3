"""What the private linear classifiers share: checked input, the plan, one fit, words about it.

In:   a table or matrix, labels, a budget.
Out:  PrivateLinearClassifier (abstract): coef_, intercept_, guarantee_, certificate_, explain().
Not here: how much noise (learn/calibration.py), solving (learn/newton.py), the losses (learn/losses.py).

Nothing is spent before `_plan` has succeeded, and every check before it raises with nothing spent.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive, probability
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.learn.arrays import as_matrix, is_device_array, to_device, to_host
from sfumato.learn.asked import as_fitted
from sfumato.learn.bounds import NormBound, price_of_bounds
from sfumato.learn.calibration import TrainingPlan, plan_training
from sfumato.learn.device_rows import DeviceRows
from sfumato.learn.fitting import PrivateEstimator, pay, sentence
from sfumato.learn.joint_loss import JointLoss
from sfumato.learn.label_look import best_score, seen_share
from sfumato.learn.losses import Loss
from sfumato.learn.newton import MOST_ROWS_PER_SIZE, Minimiser, Objective, SumsAsked, SumsGiven, minimise_together
from sfumato.learn.passes import ArrayPasses, Passes, bounds_by_sums, device_matrix
from sfumato.learn.penalties import PenaltyTerms
from sfumato.learn.row_parts import row_count
from sfumato.learn.rows import UnitRows
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.stream_sums import JointSums, MarginSums, RowShape, TargetSums, answers_from
from sfumato.learn.table import checked_labels, checked_matrix, declared_classes
from sfumato.learn.training_budget import TrainingBudget

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["NothingLearnedWarning", "PrivateLinearClassifier"]


#: Strengths below this need Hessians in double precision: those in single precision err by about a millionth.
_FINE_STRENGTH = 1e-6
#: From so many columns on, rows that are lengthened with their constant are nearly alike in length: fixed on made
#: tables of 1 to 8 columns.
_MANY_COLUMNS = 4
#: A mask wider than this shows in the predictions.
_WIDE_MASK = 0.1


class NothingLearnedWarning(UserWarning):
    """The noise is expected to drown the signal; raised before anything is spent."""


class PrivateLinearClassifier(ClassifierMixin, PrivateEstimator):
    """A linear classifier trained once under a privacy budget. Abstract.

    The guarantee covers what `predict` and `coef_`, `intercept_` show. `n_iter_` is a diagnostic that was computed
    from the private data without noise: look at it, do not publish it.
    """

    epsilon: float
    delta: float
    method: str
    regularization: Any
    penalty: Any
    schema: Any
    norm: float | None
    adjacency: Adjacency
    fit_intercept: Any
    rows: Any
    classes: Any
    public_size: int | None
    spend_on_bounds: float | None
    random_state: Any
    _even = False  # whether useful coefficients are alike, so that "auto" is `even_strength`

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss that is minimised."""

    def _loss_under(self, budget: TrainingBudget) -> Loss:
        """The loss of two classes that is minimised under this budget: a rule of public facts, where there is one."""
        return self._loss()

    @abstractmethod
    def _joint_loss(self, classes: int, *, full: bool) -> JointLoss:
        """The loss of more than two classes, all at once."""

    def _begin(self, records: int) -> None:
        """Called by every fit once the columns and classes are known; the kernel approximation makes its features."""

    def _check_passes(self, passes: Passes) -> None:
        """Refuse rows that lie where this fit cannot use them."""

    def _buy(self, passes: Passes | None, records: int, epsilon: float, seeds: Seeds, bounds: NormBound) -> None:
        """What a fit pays for beside the norm, before it is planned; without passes it is made from no row."""

    def _expanded(self, matrix: Any) -> Any:
        """Features that training sees."""
        return matrix

    def _constant(self, columns: int) -> float:
        """Size of the constant feature in rows of norm 1."""
        return intercept_share(self.fit_intercept, self.schema, self._columns(columns))

    def _stretches(self) -> bool:
        """Whether short rows are lengthened in training; by default where the schema made the rows."""
        if self.rows not in ("auto", "clip", "stretch"):
            raise InputError("rows must be 'auto', 'clip' or 'stretch'. Nothing was spent.")
        return self.rows == "stretch" or (self.rows == "auto" and self._stretches_by_itself())

    def _stretches_by_itself(self) -> bool:
        """Where the schema made the rows, unless they are a constant and few columns.

        A constant that is lengthened with its row is none any more: the fewer columns, the more lengths differ, and a
        rare label is then ordered by the length of rows.
        """
        if self.schema is None:
            return False
        return not self._constant(self.schema.width) or self.schema.width >= _MANY_COLUMNS

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # on 30 rows the noise wins
        tags.non_deterministic = self.random_state is None
        return tags

    def _fit(self, X: Any, y: Any) -> None:
        self._checked_budget()
        there = is_device_array(X)
        matrix = device_matrix(self, X) if there else checked_matrix(self, X, reset=True)
        rows, labels = int(matrix.shape[0]), to_host(y) if is_device_array(y) else y
        codes, classes = checked_labels(labels, rows, declared_classes(self.classes))
        seeds = seed_from(self.random_state)
        with calm_threads(rows * int(matrix.shape[1])):
            self.fit_by_sums(ArrayPasses(matrix, to_device(codes, matrix) if there else codes), classes, seeds)
        self._finish(X, codes, seeds)

    def fit_by_sums(self, passes: Passes, classes: np.ndarray, seeds: Seeds | None = None) -> PrivateLinearClassifier:
        """The one fit, for rows that lie anywhere and can be summed; labels are places in the list of `classes`.

        `n_features_in_` must have been set.
        """
        epsilon, delta = self._checked_budget()
        self.classes_ = classes
        columns, seeds = self.n_features_in_, seed_from(self.random_state) if seeds is None else seeds
        # What may be refused is refused before a norm is bought.
        self._check_passes(passes)
        self._begin(self._size(passes.rows))
        PenaltyTerms.of(self.penalty, self._columns(columns), self._columns(columns))
        self._stretches()
        self._pay(passes.rows, columns)
        bounds = bounds_by_sums(self, passes, epsilon, seeds)
        self._buy(passes, self._size(passes.rows), epsilon - bounds.epsilon, seeds, bounds)
        plan = self._plan(epsilon - bounds.epsilon, delta, passes.rows, columns, len(classes))
        self._warn_if_hopeless(plan)
        budget = plan.budget
        nonzeros = budget.nonzeros if budget.noise.counts_entries else None
        shape = RowShape(self._row_norm(bounds.norm), self._constant(columns), self._stretches(), nonzeros)
        template = self._expanded(np.zeros((1, columns)))  # also draws the frequencies, which no row influences
        rows = UnitRows(template, shape.norm, shape.constant)
        centre = self._centre(plan, rows.width, passes, seeds)

        def solve(tilts: Sequence[np.ndarray]) -> list[Minimiser]:
            return self._solve(plan, passes, shape, [tilt - centre for tilt in tilts])

        self._train(plan, rows.width, solve, seeds)
        self._store(plan, rows, bounds)
        return self

    def _centre(self, plan: TrainingPlan, width: int, passes: Passes, seeds: Seeds) -> np.ndarray:
        """Λ·f₀, for coefficients f₀ that the penalty draws to: a constant that a look at the labels found, or none."""
        found = np.zeros(width * plan.loss.outputs)
        if plan.look is None or isinstance(plan.loss, JointLoss):
            return found
        sums, _, rows = (float(total) for total in passes.total(TargetSums(0.0, 1.0)))
        passes.check_unchanged()
        counts = [(rows + sums) / 2, (rows - sums) / 2][: plan.look.dimension]
        noisy = seeds.seeded(plan.look)(np.array(counts))
        share = seen_share(noisy, plan.budget.size, math.sqrt(plan.look.error()))
        found[-1] = plan.regularization * best_score(plan.loss, share) / plan.budget.constant
        return found

    def _finish(self, table: Any, labels: np.ndarray, seeds: Any) -> None:
        """Called last by a fit in memory; a curve of probabilities that is paid for is drawn here."""

    def _pay(self, rows: int, columns: int) -> None:
        """Reserve all that will be drawn, a bought norm included; refuses before anything is."""
        self._size(rows)
        size = np.broadcast_to(0.0, (rows, columns))
        promise = TrainingBudget(*self._checked_budget(), self.adjacency, 1, 1).promise()
        pay(self, lambda: self.plan_for(size, self.classes_).events, promise)

    def _checked_budget(self) -> tuple[float, float]:
        epsilon = positive(self.epsilon, "epsilon")
        delta = probability(self.delta)
        if not isinstance(self.adjacency, Adjacency):
            raise PrivacyParameterError("adjacency must be REPLACE_ONE, ADD_REMOVE or an Adjacency. Nothing was spent.")
        return epsilon, delta

    def _size(self, rows: int) -> int:
        """The public number of records: their true number under replace-one, a public guess under add-remove."""
        if self.adjacency.relation == "replace-one":
            return rows
        if self.public_size is None:
            raise PrivacyParameterError(
                "Under adding or removing one record the number of records is private, and the regularisation must "
                "not depend on it: pass public_size, a rough count known without the data. Nothing was spent."
            )
        size = int(max(1.0, positive(self.public_size, "public_size")))
        if rows > MOST_ROWS_PER_SIZE * size:
            raise DataError(
                f"The table has more than {MOST_ROWS_PER_SIZE:g} times as many rows as public_size says. The promise "
                "is made for tables that public_size describes within that factor: state it as the public knows it. "
                "Nothing was spent."
            )
        return size

    def _plan(self, epsilon: float, delta: float, rows: int, columns: int, classes: int) -> TrainingPlan:
        constant = self._constant(columns)
        width = self._columns(columns) + (constant > 0)
        joint = classes > 2 and self.method == "objective"
        models = 1 if classes <= 2 or joint else classes
        looks = constant if classes == 2 and self.method == "objective" else 0.0
        budget = TrainingBudget(
            epsilon, delta, self.adjacency, self._size(rows), width, models, self._nonzeros(), constant=looks
        )
        loss = self._joint_loss(classes, full=budget.noise.counts_entries) if joint else self._loss_under(budget)
        terms = PenaltyTerms.of(self.penalty, self._columns(columns), width, loss.outputs)
        budget = replace(budget, penalty=terms.rounding)
        return plan_training(budget, loss, self.method, self.regularization, even=self._even)  # type: ignore[arg-type]

    def _nonzeros(self) -> int | None:
        """How many entries of a row can differ from zero: one for each column of the schema, and the constant."""
        return None if self.schema is None else len(self.schema.columns) + (self._constant(self.schema.width) > 0)

    def _columns(self, columns: int) -> int:
        """How many features training sees for a table of so many columns."""
        return columns

    def _row_norm(self, norm: float) -> float:
        """The norm bound of the features training sees."""
        return norm

    def plan_for(self, X: Any, classes: Any) -> TrainingPlan:
        """What `fit` would do with a table of this shape: noise, strength, and all events. Looks at no value.

        A norm that is bought is one of the events, and leaves the rest of ε for training.
        """
        epsilon, delta = self._checked_budget()
        self._stretches()
        columns = self.schema.width if self.schema is not None else X.shape[1]
        bought = price_of_bounds(self.norm, self.schema, epsilon, self.spend_on_bounds, self.adjacency)
        plan = self._plan(epsilon - bought.epsilon, delta, row_count(X), columns, len(classes))
        return replace(plan, events=(*bought.events, *plan.events), proofs=(*bought.proofs, *plan.proofs))

    def learn_nothing(self, X: Any, classes: Any) -> PrivateLinearClassifier:
        """A fitted model with coefficients zero, made from the shape of the table alone."""
        self._publishable = seed_from(self.random_state).publishable
        epsilon, delta = self._checked_budget()
        columns = self.schema.width if self.schema is not None else X.shape[1]
        plan = self._plan(epsilon, delta, row_count(X), columns, len(classes))
        self.n_features_in_ = self.schema.width if self.schema is not None else X.shape[1]
        self.classes_ = np.asarray(classes)
        self._begin(plan.budget.size)
        bounds = NormBound(float(self.norm or 1.0), "that bound is public")
        self._buy(None, plan.budget.size, epsilon, seed_from(self.random_state), bounds)
        self._expanded(np.zeros((1, self.n_features_in_)))  # draws frequencies
        constant = self._constant(self.n_features_in_)
        rows = UnitRows(np.zeros((1, self._columns(self.n_features_in_))), self._row_norm(bounds.norm), constant)
        self._weights = np.zeros((1 if len(classes) <= 2 else len(classes), rows.width))
        self.n_iter_ = np.zeros(plan.budget.models, dtype=int)
        self._store(plan, rows, bounds)
        return self

    def _warn_if_hopeless(self, plan: TrainingPlan) -> None:
        """Before spending: coefficients no longer than (1 + …)/Λ·signal against noise of this length."""
        budget = plan.budget
        noise = plan.noise_length * plan.regularization / plan.loss.slope_bound  # against the largest gradient
        if noise > 1:
            excess = plan.noise_length**2 * (plan.regularization + plan.loss.largest_curvature) / 2
            warnings.warn(
                f"epsilon={budget.epsilon:g} for {budget.size} records and {budget.width} features: the noise is "
                f"{noise:.2g} times as long as the strongest signal can be, and the expected excess loss reaches "
                f"{excess:.2g}. Next to nothing can be learned. More records, fewer features, a larger epsilon or a "
                "small delta help; nothing is spent yet.",
                NothingLearnedWarning,
                stacklevel=3,
            )
        deviation = math.sqrt(plan.mask.error())
        if plan.method == "objective" and deviation > _WIDE_MASK:
            warnings.warn(
                f"regularization={plan.regularization:.3g} is so little that what floating point leaves unsolved must "
                f"be hidden by noise of standard deviation {deviation:.2g} in every coefficient. More regularization, "
                "or 'auto', makes it narrow; nothing is spent yet.",
                NothingLearnedWarning,
                stacklevel=3,
            )

    def _solve(
        self, plan: TrainingPlan, passes: Passes, shape: RowShape, tilts: Sequence[np.ndarray]
    ) -> list[Minimiser]:
        loss, budget, features = plan.loss, plan.budget, getattr(self, "features_", None)
        fine = plan.regularization < _FINE_STRENGTH

        def ask(questions: list[SumsAsked]) -> list[SumsGiven]:
            asked = tuple(questions)
            if isinstance(loss, JointLoss):
                return answers_from(questions, passes.total(JointSums(shape, loss, asked, features)))
            positive = tuple(positive_codes(budget.models))
            return answers_from(questions, passes.total(MarginSums(shape, loss, asked, positive, features, fine)))

        columns = budget.width - (shape.constant > 0)
        terms = PenaltyTerms.of(self.penalty, columns, budget.width, loss.outputs)
        objectives = [
            Objective(loss, budget.width, passes.rows, budget.size, plan.regularization, tilt, plan.tolerance, terms)
            for tilt in tilts
        ]
        found = minimise_together(objectives, ask)
        passes.check_unchanged()
        return found

    def _train(
        self, plan: TrainingPlan, width: int, solve: Callable[[Sequence[np.ndarray]], list[Minimiser]], seeds: Any
    ) -> None:
        """Draw a linear term for each model, let `solve` find the minimisers, hide what the solver left over."""
        self._publishable = seeds.publishable
        tilts = [np.zeros(plan.loss.outputs * width) for _ in range(plan.budget.models)]
        if plan.tilt is not None:
            tilts = [seeds.seeded(plan.tilt)(tilt) / plan.budget.size for tilt in tilts]
        found = solve(tilts)
        released = plan.masked(np.stack([one.point for one in found]), seeds)
        self._weights = plan.scored(released, width)
        self.n_iter_ = np.asarray([one.steps for one in found])

    def _store(self, plan: TrainingPlan, rows: UnitRows, bounds: NormBound) -> None:
        self._weights_constant = rows.constant
        self._norm = self._row_norm(bounds.norm)
        self.coef_ = self._weights[:, : rows.columns] * rows.largest
        self.intercept_ = self._weights[:, -1] * rows.constant if rows.constant else np.zeros(len(self._weights))
        self.regularization_ = plan.regularization
        self.plan_ = plan
        self.bounds_ = bounds
        self.guarantee_ = TrainingBudget(
            float(self.epsilon), float(self.delta), self.adjacency, plan.budget.size, rows.width
        ).promise()

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "plan_")
        from sfumato.core.certificate import Certificate

        notes = [
            f"{self.plan_.budget.size} records and {self.plan_.budget.width} features are public",
            self.labels_note(),
        ]
        return Certificate.issue(
            subject=f"{type(self).__name__} with {self.plan_.method} perturbation",
            events=[*self.bounds_.events, *self.plan_.events],
            proofs=sorted({*self.bounds_.proofs, *self.plan_.proofs}),
            notes=notes,
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """X·coef_ + intercept_, with rows longer than the norm shortened to it as in training."""
        check_is_fitted(self, "coef_")
        if is_device_array(X):
            matrix = self._expanded(as_matrix(X))
            shaped = DeviceRows(matrix, self._norm, self._weights_constant)
            scores = np.stack([to_host(shaped.times(to_device(one, matrix))) for one in self._weights], axis=1)
            return scores[:, 0] if scores.shape[1] == 1 else scores
        matrix = self._expanded(checked_matrix(self, X, reset=False))
        rows = UnitRows(matrix, self._norm, self._weights_constant)
        scores = np.stack([rows.times(weights) for weights in self._weights], axis=1)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def rule(self) -> dict[str, Any]:
        """What predictions are computed from; every number of it was released or is public."""
        weights = self._weights.tolist()
        return {"type": "linear", "norm": self._norm, "constant": self._weights_constant, "weights": weights}

    def predict(self, X: Any) -> np.ndarray:
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def _strength_origin(self) -> str:
        """Where the strength that was used comes from, as the end of a sentence."""
        if self.plan_.given is None:
            return "by the public rule of size, width, epsilon and loss."
        if self.plan_.regularization <= self.plan_.given * (1 + 1e-9):
            return "as given."
        return (
            f"and not the {self.plan_.given:.3g} that was given: with less, the curvature of one record's loss could "
            "cost more than half of epsilon, so it was raised to the least that is proved."
        )

    def _penalty_words(self) -> str:
        if not as_fitted(self).penalty:
            return ""
        return " A public penalty was added to the squared one; privacy rests on the squared one and grows no weaker."

    def _intercept_words(self) -> str:
        if not self._weights_constant:
            return "There is no intercept: none was asked for or the one-hot columns carry it."
        if self.plan_.look is None:
            return "The intercept is a penalised constant feature."
        deviation = math.sqrt(self.plan_.look.error())
        return (
            "The intercept is a constant feature; its penalty draws it to the score that is best for the share of the "
            f"second label, which was counted with noise of standard deviation {deviation:.3g}."
        )

    def _bought_words(self) -> tuple[str, ...]:
        """What was paid for beside the norm, in sentences."""
        return ()

    def explain(self) -> str:
        """What was done, what it promises and what it cost in accuracy, in words."""
        check_is_fitted(self, "plan_")
        plan, budget = self.plan_, self.plan_.budget
        how = (
            "A random linear term was added to the training objective"
            if plan.method == "objective"
            else "Random noise was added to the exact solution"
        )
        lines = [
            f"{type(self).__name__}: {self.guarantee_}.",
            f"{how}; the noise is {budget.noise.words} and its expected length in the coefficients is at most "
            f"{plan.noise_length:.3g} for rows of norm 1.",
            f"Regularisation {plan.regularization:.3g} {self._strength_origin()}" + self._penalty_words(),
            f"Rows longer than {self.bounds_.norm:g} were shortened to it; {self.bounds_.origin}."
            + (" Shorter ones were lengthened to norm 1." if as_fitted(self)._stretches() else ""),
            self._intercept_words(),
            *self._bought_words(),
            f"The solver stopped at a gradient norm of {plan.tolerance:.2g}, fixed beforehand; what it left over is "
            "hidden by noise of its own and counted.",
        ]
        if isinstance(plan.loss, JointLoss):
            lines.append(f"All {plan.loss.classes} classes were trained together.")
        elif budget.models > 1:
            lines.append(f"{budget.models} one-against-the-rest models share the budget.")
        lines += [sentence(self.labels_note()), *self.scores_words()]
        lines.append("n_iter_ was counted on the private data and is not covered: do not publish it.")
        if not self._publishable:
            lines.append("A random_state was used: for experiments, not for publication.")
        return "\n".join(lines)


def positive_codes(models: int) -> range:
    """Which label counts as positive in each model: the second of two, or each one in turn."""
    return range(1, 2) if models == 1 else range(models)


#: Share of the norm that a constant feature takes when nobody says otherwise: the least and the largest.
_LEAST_CONSTANT, _LARGEST_CONSTANT = 0.2, 0.4


def _automatic_share(columns: int | None) -> float:
    wanted = 0.0 if columns is None else 1 / math.sqrt(columns + 1)
    return min(_LARGEST_CONSTANT, max(_LEAST_CONSTANT, wanted))


def intercept_share(fit_intercept: Any, schema: Any, columns: int | None = None) -> float:
    """Size of the constant in rows of norm 1: a rule of the schema and the width, never of the data.

    One-hot columns add up to a constant already, so with a schema that has categories there is none. Otherwise the
    constant is as long as one of columns + 1 that share a row, but 0.2 at least (it then shortens the others by 2 %;
    (x, 1)/√2 would by 29 %) and 0.4 at most; 0.2 for regressions, whose mean comes first. A number in (0, 1) sets it.

    >>> [round(intercept_share("auto", None, columns), 2) for columns in (1, 5, 8, 100)]
    [0.4, 0.4, 0.33, 0.2]
    """
    automatic = isinstance(fit_intercept, str) and fit_intercept == "auto"
    if automatic or isinstance(fit_intercept, bool | np.bool_):
        without = not fit_intercept or (automatic and _has_categories(schema))
        return 0.0 if without else _automatic_share(columns)
    if isinstance(fit_intercept, int | float) and 0 < fit_intercept < 1 and math.isfinite(fit_intercept):
        return float(fit_intercept)
    raise InputError("fit_intercept must be 'auto', True, False or a share of the norm in (0, 1). Nothing was spent.")


def _has_categories(schema: Any) -> bool:
    return schema is not None and any(domain.kind == "categories" for domain in schema.columns.values())
