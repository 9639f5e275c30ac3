"""Three published ways to make a kernel support vector machine private, with scales that are true.

In:   a table with a public box, labels, ε and δ; public rows (SemiSVC); a ledger (OutputSVC).
Out:  WeightSVC, SemiSVC, OutputSVC: scikit-learn classifiers for comparison.
Not here: the solver (learn/newton.py), calibration (learn/calibration.py), ours (learn/kernel_moment.py).
Proof: docs/proofs/svm_baselines.md

All three minimise ½‖w‖² + (C/n)·Σ loss in features of norm 1, without a free intercept, one class against the rest. The
loss is the hinge with its corner rounded, whose slope is at most 1 as well.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.linalg import eigvalsh, solve
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import moderate, positive
from sfumato.core.events.event import Event, Repeated
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import GaussianDP, PureDP
from sfumato.core.schema import Schema
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, OverspendError, PrivacyParameterError
from sfumato.learn.asked import as_fitted
from sfumato.learn.base import positive_codes
from sfumato.learn.calibration import TrainingPlan, plan_training
from sfumato.learn.features import FourierFeatures, even_components
from sfumato.learn.fitting import LedgerLike, is_charged, pay, sentence
from sfumato.learn.kernel_base import ARITHMETIC, KernelInput, check_row_count
from sfumato.learn.kernel_rule import plan_kernel
from sfumato.learn.losses import HuberLoss
from sfumato.learn.newton import Objective, SumsAsked, SumsGiven, minimise_together
from sfumato.learn.passes import ArrayPasses
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.stream_sums import MarginSums, RowShape, answers_from
from sfumato.learn.table import checked_labels, declared_classes
from sfumato.learn.training_budget import TrainingBudget
from sfumato.mechanisms import Gaussian, NormGamma

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["OutputSVC", "SemiSVC", "WeightSVC"]

#: ‖w‖ of a useful one-against-the-rest machine in features of norm 1; sets the ridge of SemiSVC.
_TYPICAL_LENGTH = 5.0


class _KernelSVC(ClassifierMixin, KernelInput):
    """One machine for each class in random features. Abstract."""

    C: Any
    classes: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    @abstractmethod
    def _release(self, solutions: np.ndarray, plan: TrainingPlan, seeds: Seeds) -> None:
        """Publish (or keep) the solutions, one row for each machine."""

    def _check(self) -> None:
        """Raise on parameters of the final class that mean nothing."""

    def _fit(self, X: Any, y: Any) -> None:
        promise = self._budget()
        if not self._replaces():
            raise PrivacyParameterError(f"{type(self).__name__} covers replacing one record only. Nothing was spent.")
        self._check()
        components = even_components(self.n_components)
        rows = self._rows(X, reset=True)
        check_row_count(len(rows))
        labels, self.classes_ = checked_labels(y, len(rows), declared_classes(self.classes))
        seeds = seed_from(self.random_state)
        self._publishable = seeds.publishable
        self.gamma_ = self._bandwidth(rows.shape)
        self.features_ = FourierFeatures(self.gamma_, components, None, seeds)
        models = 1 if len(self.classes_) == 2 else len(self.classes_)
        budget = TrainingBudget(float(self.epsilon), float(self.delta), self.adjacency, len(rows), components, models)
        strength = 1 / self._cost(len(rows))
        plan = plan_training(budget, HuberLoss(), "output", strength)
        passes = ArrayPasses(self.features_(rows), labels)
        shape, loss, positive = RowShape(1.0, 0.0), HuberLoss(), tuple(positive_codes(models))

        def ask(questions: list[SumsAsked]) -> list[SumsGiven]:
            return answers_from(questions, passes.total(MarginSums(shape, loss, tuple(questions), positive)))

        flat = np.zeros(components)
        problem = Objective(loss, components, len(rows), len(rows), strength, flat, plan.tolerance)
        with calm_threads(len(rows) * components):
            solutions = np.stack([found.point for found in minimise_together([problem] * models, ask)])
        self.guarantee_ = promise
        self._release(solutions, plan, seeds)

    def _bandwidth(self, shape: tuple[int, ...]) -> float:
        if self.gamma == "auto":
            return plan_kernel(shape[0], shape[1], len(self.classes_), float(self.epsilon), float(self.delta)).gamma
        return moderate(self.gamma, "gamma")

    def _cost(self, records: int) -> float:
        """C: as given, or √n, between a constant (all noise hidden, nothing learned) and n (no regularisation)."""
        return math.sqrt(records) if self.C == "auto" else positive(self.C, "C")

    def _moved(self, plan: TrainingPlan) -> float:
        """How far replacing a record moves all machines together, what the solver leaves over included."""
        one = 2 / (plan.budget.size * plan.regularization) + 2 * plan.tolerance / plan.regularization
        return one * math.sqrt(plan.budget.models) * (1 + ARITHMETIC)

    def _chosen(self, scores: np.ndarray) -> np.ndarray:
        return self.classes_[(scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)]

    @abstractmethod
    def _events(self) -> list[Event | Repeated]:
        """What was drawn, or, for answers, what all of them cost."""

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "guarantee_")
        from sfumato.core.certificate import Certificate

        events = self._events()
        return Certificate.issue(
            subject=type(self).__name__,
            events=events,
            proofs=sorted({"svm_baselines", "output_perturbation", *(event.proof_id() for event in events)}),
            notes=["the number of records, the box and the frequencies of the features are public", self.labels_note()],
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def explain(self) -> str:
        """What was done and what it promises, in words."""
        check_is_fitted(self, "guarantee_")
        return f"{type(self).__name__}: {self.guarantee_}.\n{self._how()}\n{sentence(self.labels_note())}"

    @abstractmethod
    def _how(self) -> str:
        """One sentence."""


class WeightSVC(_KernelSVC):
    """Publishes the weights with noise (Rubinstein et al. 2012, with the constant 2C/n, half of theirs).

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (2000, 2))
    >>> WeightSVC(5.0, 1e-6, n_components=100, random_state=0).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.8
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        C: float | Literal["auto"] = "auto",
        gamma: float | Literal["auto"] = "auto",
        n_components: int = 400,
        box: Any = (-1.0, 1.0),
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        classes: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.gamma = gamma
        self.n_components = n_components
        self.box = box
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes

    def _release(self, solutions: np.ndarray, plan: TrainingPlan, seeds: Seeds) -> None:
        self.plan_ = plan
        pay(self, lambda: plan.events, self.guarantee_)
        self.weights_ = plan.masked(solutions, seeds)

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "weights_")
        return self._chosen(self.features_(self._rows(X, reset=False)) @ self.weights_.T)

    def _events(self) -> list[Event | Repeated]:
        return list(self.plan_.events)

    def _how(self) -> str:
        return f"Weights were published with noise of expected length {self.plan_.noise_length:.3g} for each machine."


class SemiSVC(_KernelSVC):
    """Publishes noisy scores of `public` rows, and the ridge fit of them. Needs δ > 0; the public rows are unprotected.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (2000, 2))
    >>> model = SemiSVC(5.0, 1e-6, public=X[:200] / 2, n_components=100, random_state=0)
    >>> model.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.8
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        public: Any = None,
        C: float | Literal["auto"] = "auto",
        gamma: float | Literal["auto"] = "auto",
        n_components: int = 400,
        box: Any = (-1.0, 1.0),
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        classes: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.public = public
        self.C = C
        self.gamma = gamma
        self.n_components = n_components
        self.box = box
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes

    def _check(self) -> None:
        if self.public is None:
            raise DataError("SemiSVC needs public=…, unlabelled rows that are not private. Nothing was spent.")
        if not self.delta:
            raise PrivacyParameterError("SemiSVC needs delta > 0. Nothing was spent.")

    @calm_threads()
    def _release(self, solutions: np.ndarray, plan: TrainingPlan, seeds: Seeds) -> None:
        shown = self.features_(self._rows(self.public, reset=False))
        gram = shown.T @ shown
        stretch = math.sqrt(float(eigvalsh(gram)[-1])) * (1 + ARITHMETIC)  # the operator norm of the public features
        mu = GaussianDP(gaussian_mu(float(self.epsilon), float(self.delta)))
        size = shown.shape[0] * len(solutions)
        self.noise_ = Gaussian.for_guarantee(mu, self._moved(plan) * stretch, self.adjacency, dimension=size)
        pay(self, lambda: [self.noise_.event()], self.guarantee_)
        scores = seeds.seeded(self.noise_)(shown @ solutions.T)
        ridge = self.noise_.error() * gram.shape[0] / _TYPICAL_LENGTH**2
        self.weights_ = solve(gram + ridge * np.eye(len(gram)), shown.T @ scores, assume_a="pos").T

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "weights_")
        return self._chosen(self.features_(self._rows(X, reset=False)) @ self.weights_.T)

    def _events(self) -> list[Event | Repeated]:
        return [self.noise_.event()]

    def _how(self) -> str:
        return f"Scores of public rows were published with noise of deviation {math.sqrt(self.noise_.error()):.3g}."


class OutputSVC(_KernelSVC):
    """Keeps the weights and answers up to `queries` rows with noise, each charged; then refuses.

    `epsilon` and `delta` cover all `queries` answers together. With a `ledger` every answer is also reserved there for
    `dataset` before it is drawn, and committed afterwards: OverspendError means that nothing was drawn.
    The fitted object holds private weights: it answers, it is not published.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (2000, 2))
    >>> model = OutputSVC(5.0, 1e-6, queries=3, n_components=100, random_state=0).fit(X, X[:, 0] > 0)
    >>> len(model.predict(X[:2])), model.left_
    (2, 1)
    >>> model.predict(X[:2])
    Traceback (most recent call last):
    sfumato.errors.OverspendError: 2 answers were asked for and 1 of 3 are left. Nothing was drawn or spent.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        queries: int = 100,
        ledger: LedgerLike | None = None,
        dataset: str = "records",
        C: float | Literal["auto"] = "auto",
        gamma: float | Literal["auto"] = "auto",
        n_components: int = 400,
        box: Any = (-1.0, 1.0),
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        classes: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.queries = queries
        self.ledger = ledger
        self.dataset = dataset
        self.C = C
        self.gamma = gamma
        self.n_components = n_components
        self.box = box
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes

    def _check(self) -> None:
        if is_charged(self):
            raise InputError(
                "OutputSVC draws when it answers, not when it is fitted: OutputSVC(…, ledger=…, dataset=…) charges "
                "every answer. Fit it without a ledger. Nothing was drawn and nothing was spent."
            )
        if not isinstance(self.queries, int | np.integer) or isinstance(self.queries, bool) or self.queries < 1:
            raise PrivacyParameterError("queries must be a whole number of at least 1. Nothing was spent.")

    def _release(self, solutions: np.ndarray, plan: TrainingPlan, seeds: Seeds) -> None:
        """Nothing leaves yet: what one answer costs is settled."""
        count, size = int(self.queries), len(solutions)
        if self.delta:
            mu = gaussian_mu(float(self.epsilon), float(self.delta)) / math.sqrt(count) * (1 - 1e-9)
            self.noise_ = Gaussian.for_guarantee(GaussianDP(mu), self._moved(plan), self.adjacency, dimension=size)
        else:
            each = PureDP(float(self.epsilon) / count * (1 - 1e-9))
            self.noise_ = NormGamma.for_guarantee(each, self._moved(plan), self.adjacency, dimension=size)
        self._kept, self._seeds, self.left_ = solutions, seeds, count

    def predict(self, X: Any) -> np.ndarray:
        """One noisy answer for each row; charges them all before the first is drawn."""
        check_is_fitted(self, "noise_")
        features, asked = self.features_(self._rows(X, reset=False)), as_fitted(self)
        if len(features) > self.left_:
            raise OverspendError(
                f"{len(features)} answers were asked for and {self.left_} of {asked.queries} are left. "
                "Nothing was drawn or spent.",
                requested=str(len(features)),
                remaining=str(self.left_),
                difference=str(len(features) - self.left_),
            )
        if not len(features):  # nothing is drawn for nobody, and nothing charged
            return self.classes_[:0]
        event = self.noise_.event()
        cost = event if len(features) == 1 else Repeated(event, len(features))
        reservation = None
        if self.ledger is not None:
            reservation = self.ledger.reserve(
                self.dataset, [cost], adjacency=asked.adjacency, purpose=f"{len(features)} answers of OutputSVC"
            )
        self.left_ -= len(features)
        scores = np.stack([self._seeds.seeded(self.noise_)(row) for row in features @ self._kept.T])
        if self.ledger is not None:
            self.ledger.commit(reservation)
        return self._chosen(scores)

    def _events(self) -> list[Event | Repeated]:
        event, queries = self.noise_.event(), int(as_fitted(self).queries)
        return [event if queries == 1 else Repeated(event, queries)]

    def _how(self) -> str:
        return (
            f"Each answer carries noise of deviation {math.sqrt(self.noise_.error()):.3g}; {self.left_} of "
            f"{as_fitted(self).queries} are left. The weights stay with whoever holds the records."
        )
