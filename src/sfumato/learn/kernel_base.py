"""What the private kernel classifiers share: a public box, features of norm 1, one noisy release, words about it.

In:   a matrix or table, labels, public bounds, ε and δ.
Out:  PrivateKernelClassifier (abstract): classes_, weights_, guarantee_, certificate_, explain().
      KernelInput: checked rows scaled to the public box, for every kernel estimator.
Not here: which statistics are released (learn/kernel_mean.py and its neighbours), features (learn/features.py).
Proof: docs/proofs/kernel_mean.md

Nothing is spent before every check has passed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import moderate, positive, probability
from sfumato.core.events.event import Event
from sfumato.core.guarantee import ApproxDP, Guarantee, PureDP
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, PrivacyParameterError, SchemaError
from sfumato.learn.arrays import as_matrix, in_box, is_device_array, to_host
from sfumato.learn.asked import as_fitted
from sfumato.learn.features import check_kernel, even_components, kernel_scale, random_features
from sfumato.learn.fitting import PrivateEstimator, pay, sentence
from sfumato.learn.kernel_rule import KernelPlan, Kind, components_for, plan_kernel
from sfumato.learn.kernel_spread import KernelSpread, split_promise
from sfumato.learn.row_parts import row_count
from sfumato.learn.rows import BLOCK
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.table import checked_labels, checked_matrix, declared_classes, knows_its_size
from sfumato.learn.training_budget import TrainingBudget
from sfumato.mechanisms import Gaussian, NormGamma

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = [
    "ARITHMETIC",
    "BOUGHT",
    "MOST_NUMBERS",
    "KernelInput",
    "KernelRun",
    "PrivateKernelClassifier",
    "blocks",
    "check_row_count",
    "noise_for",
]

#: Rounding of features and sums, in units of the sensitivity: enough for ten million records (docs/proofs).
ARITHMETIC = 2e-5
#: Up to here that slack covers the rounding of a plain sum (docs/proofs/kernel_mean.md).
MOST_ROWS = 10_000_000
#: More noisy sums than these do not fit in memory beside their noise.
MOST_NUMBERS = 2**27
#: Ends of a box beyond this, or nearer to each other than its inverse, are refused.
_FARTHEST = 1e100
#: What gamma may say to buy how far rows lie apart; and what "wide" makes of the rule's γ (learn/classifier_rule.py).
BOUGHT = ("spread", "wide")
WIDER = 0.5


class KernelInput(PrivateEstimator):
    """Rows in a public box: clipped to it and scaled to width 2, or encoded by a schema. Abstract.

    No privacy rests on the box, for Fourier features have norm 1 wherever a row lies. It says what distance is large.
    """

    epsilon: float
    delta: float
    gamma: Any
    n_components: Any
    box: Any
    schema: Any
    adjacency: Adjacency
    random_state: Any
    #: Of the difference of two rows, or of their product; estimators that let it be chosen have it as a parameter.
    kernel: Any = "rbf"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _rows(self, table: Any, *, reset: bool) -> Any:
        """Where the table lies: on the host, or on the device of a torch tensor or CuPy array."""
        if is_device_array(table):
            return self._device_rows(table, reset=reset)
        matrix = checked_matrix(self, table, reset=reset)
        dense, asked = matrix.toarray() if sparse.issparse(matrix) else matrix, as_fitted(self)
        if asked.schema is not None:
            return dense
        low, high = checked_box(asked.box, dense.shape[1])
        middle, half = low + (high - low) / 2, (high - low) / 2
        return (np.clip(dense, low, high) - middle) / half

    def check_table(self, table: Any, *, reset: bool) -> None:
        self._inside = True
        self._rows(table, reset=reset)

    def _device_rows(self, table: Any, *, reset: bool) -> Any:
        asked = as_fitted(self)
        if asked.schema is not None:
            raise InputError(
                "A schema describes tables with names, and an array on a device has none. Encode first "
                "(SchemaEncoder) and pass box=. Nothing was spent."
            )
        matrix = as_matrix(table, some_rows=reset and knows_its_size(self))
        columns = int(matrix.shape[1])
        if reset:
            self.n_features_in_ = columns
        elif columns != self.n_features_in_:
            raise DataError(f"X has {columns} columns, and training saw {self.n_features_in_}. Nothing was spent.")
        return in_box(matrix, checked_box(asked.box, columns))

    def _budget(self) -> Guarantee:
        epsilon, delta = positive(self.epsilon, "epsilon"), probability(self.delta)
        if not isinstance(self.adjacency, Adjacency):
            raise PrivacyParameterError("adjacency must be REPLACE_ONE, ADD_REMOVE or an Adjacency. Nothing was spent.")
        if delta:
            return ApproxDP(epsilon, delta, adjacency=self.adjacency)
        return PureDP(epsilon, adjacency=self.adjacency)

    def _replaces(self) -> bool:
        return self.adjacency.relation == "replace-one"


@dataclass(frozen=True)
class KernelRun:
    """What one training run may cost, and what it draws."""

    budget: TrainingBudget
    events: tuple[Event, ...]


class PrivateKernelClassifier(ClassifierMixin, KernelInput):
    """A classifier whose scores are ⟨weights_[c], features of x⟩, from one noisy release of sums. Abstract."""

    classes: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on 30 rows the noise wins
        return tags

    @abstractmethod
    def _sensitivity(self) -> float:
        """The L2 distance between the statistics of neighbours."""

    @abstractmethod
    def _dimension(self, components: int, classes: int) -> int:
        """How many numbers are released."""

    @abstractmethod
    def _statistics(self, features: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
        """The exact numbers to release, as one vector."""

    @abstractmethod
    def _weights(self, released: np.ndarray, classes: int) -> np.ndarray:
        """One weight vector for each class, from the release alone."""

    def _check(self) -> None:
        """Raise on parameters of the final class that mean nothing."""

    def _fit(self, X: Any, y: Any) -> None:
        if is_device_array(X):
            from sfumato.learn.stream import fit_on_device

            fit_on_device(self, X, y)
            return
        promise = self._budget()
        self._check()
        rows = self._rows(X, reset=True)
        seeds = seed_from(self.random_state)
        records = seeds.records(rows.shape[0])
        check_row_count(records)
        labels, self.classes_ = checked_labels(y, rows.shape[0], declared_classes(self.classes))
        self._prepare(promise, (records, rows.shape[1]), seeds, lambda share: KernelSpread.release(rows, share, seeds))
        self._learn(rows, labels, seeds)
        self.guarantee_ = promise

    def _learn(self, rows: np.ndarray, labels: np.ndarray, seeds: Seeds) -> None:
        """weights_ by noisy sums over rows in the box; everything is settled and paid for."""
        classes = len(self.classes_)
        total = np.zeros(self._dimension(self.n_components_, classes))
        with calm_threads():
            for part in blocks(rows):
                total += self._statistics(self.features_(rows[part, ...]), labels[part], classes)
        self.weights_ = self._weights(seeds.released(self.noise_, total), classes)

    def _prepare(
        self,
        promise: Guarantee,
        shape: tuple[int, int],
        seeds: Seeds,
        spread: Callable[[Guarantee], KernelSpread] | None = None,
    ) -> None:
        """Everything before the sums: settled by public numbers and paid for; `spread` is released where it is."""
        for_spread = self._settle(promise, shape, len(self.classes_))
        self._pay(promise, for_spread)
        self._publishable = seeds.publishable
        self.spread_ = spread(for_spread) if spread is not None and for_spread is not None else None
        self._aim()
        shifts = not self._replaces()
        gamma = self._feature_gamma()
        self.features_ = random_features(self.kernel, gamma, self.n_components_, None, seeds, shifts=shifts)

    def _finish(self, promise: Guarantee, total: np.ndarray, seeds: Seeds) -> None:
        """Noise on the sums, and the weights from nothing else."""
        self.weights_ = self._weights(seeds.released(self.noise_, total), len(self.classes_))
        self.guarantee_ = promise

    def _pay(self, promise: Guarantee, for_spread: Guarantee | None) -> None:
        """Reserve all that will be drawn: the spread of rows, where it is paid for, and the sums."""
        paid = [] if for_spread is None else [KernelSpread.of_nothing(for_spread).noise.event()]
        pay(self, lambda: [*paid, *self._acts()], promise)

    def _acts(self) -> tuple[Event, ...]:
        """What is drawn beside the spread of rows."""
        return (self.noise_.event(),)

    def _settle(self, promise: Guarantee, shape: tuple[int, ...], classes: int) -> Guarantee | None:
        """plan_, n_components_ and noise_, by public numbers; returns what the spread of rows costs, if it is paid."""
        self.plan_ = self._plan(shape, classes)
        check_kernel(self.kernel)
        if self.gamma not in ("auto", *BOUGHT):
            moderate(self.gamma, "gamma")
        if self.n_components == "auto":
            self.n_components_ = components_for(self._kind(), float(self.delta))
        else:
            self.n_components_ = even_components(self.n_components)
        first, rest = split_promise(promise) if self._pays() else (None, promise)
        dimension = self._dimension(self.n_components_, classes)
        if dimension > MOST_NUMBERS:
            raise InputError(
                f"{dimension} numbers would be published for {classes} classes, and at most {MOST_NUMBERS} can be: "
                "choose fewer n_components. Nothing was spent."
            )
        self.noise_ = noise_for(self._of_one_act(rest), self._sensitivity(), dimension)
        return first

    def _of_one_act(self, promise: Guarantee) -> Guarantee:
        """What one release of sums may cost, of what all may cost together."""
        return promise

    def _pays(self) -> bool:
        """Whether a part of the budget goes to the spread of the rows."""
        wanted = isinstance(self.gamma, str) and self.gamma in BOUGHT
        if wanted and not self._replaces():
            raise PrivacyParameterError(
                f"gamma={self.gamma!r} pairs rows by position, which adding or removing a record would shift. Pass a "
                "number, or gamma='auto'. Nothing was spent."
            )
        return wanted

    def _aim(self) -> None:
        """gamma_: as given, by the public rule, or from the released spread."""
        if self.spread_ is not None:
            wider = WIDER if isinstance(self.gamma, str) and self.gamma == "wide" else 1.0
            self.gamma_ = wider * self.plan_.gamma_for(self.spread_.value)
        else:
            self.gamma_ = self._public_gamma() if self.gamma == "auto" else moderate(self.gamma, "gamma")

    def _public_gamma(self) -> float:
        """The rule's, made for the Gaussian kernel; rows spread evenly over a box of width 2 have length √(d/3)."""
        return kernel_scale(self.kernel, self.plan_.gamma, math.sqrt(self.n_features_in_ / 3))

    def events(self) -> tuple[Event, ...]:
        """What `fit` drew, a bought spread first."""
        paid = () if self.spread_ is None else (self.spread_.noise.event(),)
        return (*paid, *self._acts())

    def plan_for(self, X: Any, classes: Any) -> KernelRun:
        """What `fit` would release on a table of this shape. Looks at no value."""
        if not self._replaces():
            raise PrivacyParameterError(
                "A plan names the number of records, which is private when records are added or removed. Use "
                "replace-one. Nothing was spent."
            )
        copy: Any = clone(self)
        other = copy._of_shape(X, classes)
        size, width = row_count(X), other.n_components_
        budget = TrainingBudget(float(self.epsilon), float(self.delta), self.adjacency, size, width, len(classes))
        return KernelRun(budget, other.events())

    def learn_nothing(self, X: Any, classes: Any) -> PrivateKernelClassifier:
        """A fitted model whose sums are zero, made from the shape of the table alone."""
        self._of_shape(X, classes)
        seeds = seed_from(self.random_state)
        self._publishable = seeds.publishable
        self.features_ = random_features(self.kernel, self._feature_gamma(), self.n_components_, None, seeds)
        self.weights_ = self._weights(np.zeros(self._dimension(self.n_components_, len(classes))), len(classes))
        return self

    def _of_shape(self, X: Any, classes: Any) -> PrivateKernelClassifier:
        self.guarantee_ = self._budget()
        self._check()
        self.n_features_in_ = self.schema.width if self.schema is not None else X.shape[1]
        self.classes_ = np.asarray(classes)
        for_spread = self._settle(self.guarantee_, (row_count(X), self.n_features_in_), len(classes))
        self.spread_ = KernelSpread.of_nothing(for_spread) if for_spread is not None else None
        self._aim()
        return self

    def _plan(self, shape: tuple[int, ...], classes: int) -> KernelPlan:
        records, moved = (shape[0], 2.0) if self._replaces() else (None, 1.0)
        return plan_kernel(records, shape[1], classes, float(self.epsilon), float(self.delta), moved)

    @abstractmethod
    def _kind(self) -> Kind:
        """What is released."""

    def _feature_gamma(self) -> float:
        """Bandwidth of the features themselves."""
        return self.gamma_

    def decision_function(self, X: Any) -> np.ndarray:
        """One score for each class; the difference of the two where there are two."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _scores(self, table: Any) -> np.ndarray:
        check_is_fitted(self, "weights_")
        rows = self._rows(table, reset=False)
        return np.concatenate([self._apply(to_host(self.features_(rows[part, ...]))) for part in blocks(rows)])

    def _apply(self, features: np.ndarray) -> np.ndarray:
        """Scores of rows with these features, one column for each class."""
        return features @ self.weights_.T

    def predict(self, X: Any) -> np.ndarray:
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "noise_")
        from sfumato.core.certificate import Certificate

        notes = ["the box and the frequencies of the features are public", self.labels_note()]
        if as_fitted(self)._replaces():
            notes.append("the number of records is public")
        return Certificate.issue(
            subject=type(self).__name__,
            events=list(self.events()),
            proofs=sorted({"kernel_mean", *(event.proof_id() for event in self.events())}),
            notes=notes,
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def explain(self) -> str:
        """What was done and what it promises, in words."""
        check_is_fitted(self, "noise_")
        lines = [
            f"{type(self).__name__}: {self.guarantee_}.",
            f"{self._what()} were published {self._how_often()} with noise of standard deviation "
            f"{math.sqrt(self.noise_.error()):.3g} each; rows have {self.n_components_} features of joint norm 1.",
            f"Bandwidth gamma {self.gamma_:.3g} "
            + self._origin()
            + " All that follows is computed from the noisy sums.",
            sentence(self.labels_note()),
            *self.scores_words(),
        ]
        if not self._publishable:
            lines.append("A random_state was used: for experiments, not for publication.")
        return "\n".join(lines)

    def _origin(self) -> str:
        if self.spread_ is not None:
            return f"from how far rows lie apart, {self.spread_.value:.2g}, a noisy number paid for."
        return "by the public rule." if as_fitted(self).gamma == "auto" else "as given."

    def _how_often(self) -> str:
        return "once"

    @abstractmethod
    def _what(self) -> str:
        """What was released, as the beginning of a sentence."""


def blocks(rows: Any) -> list[slice]:
    """Rows in parts, at least one: they bound memory, and the rounding error of sums.

    >>> blocks(np.zeros((3000, 1)))
    [slice(0, 2048, None), slice(2048, 3000, None)]
    """
    number = int(rows.shape[0])
    return [slice(start, min(start + BLOCK, number)) for start in range(0, max(number, 1), BLOCK)]


def checked_box(box: Any, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, one for each column."""
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (columns,)) for end in box)
    except (TypeError, ValueError):
        raise SchemaError(_BOX) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise SchemaError(_BOX)
    if max(-low.min(initial=0.0), high.max(initial=0.0)) > _FARTHEST or (high - low).min(initial=1.0) < 1 / _FARTHEST:
        raise SchemaError(
            f"The ends of box must lie within ±{_FARTHEST:g}, at least {1 / _FARTHEST:g} apart: beyond, the middle and "
            "the width leave the range of floating point. Measure in another unit. Nothing was spent."
        )
    return low, high


_BOX = (
    "box must be (low, high), numbers or one number for each column, low below high: the public range of the columns, "
    "written down without looking at the data. Nothing was spent."
)


def noise_for(promise: Guarantee, sensitivity: float, dimension: int) -> Gaussian | NormGamma:
    """Gaussian noise where the promise has a δ, norm-gamma noise where it is pure; rounding included."""
    adjacency = promise.adjacency
    if adjacency is None:
        raise PrivacyParameterError("Say who is protected. Nothing was spent.")
    kind = NormGamma if isinstance(promise, PureDP) else Gaussian
    return kind.for_guarantee(promise, sensitivity * (1 + ARITHMETIC), adjacency, dimension=dimension)


def check_row_count(rows: int) -> None:
    """Beyond MOST_ROWS rounding is not covered by the sensitivity."""
    if rows > MOST_ROWS:
        raise DataError(
            f"More than {MOST_ROWS} rows: rounding of the sums is not proved beyond that. Fit a public sample of the "
            "rows. Nothing was drawn and nothing was spent."
        )
