"""Ridge regression under differential privacy, by perturbed sufficient statistics.

In:   a table with public bounds, a target with public bounds, ε and δ.
Out:  PrivateLinearRegression, a scikit-learn regressor with a guarantee and a certificate.
Not here: classifiers (learn/base.py), noise (mechanisms/).
Proof: docs/proofs/sufficient_statistics.md

First a mean and a variance of the target (learn/target_moments.py), from which the residuals get their bounds. Then one
release: the upper triangle of XᵀX (off-diagonals times √2, so that its length is the Frobenius norm) and Xᵀr for rows
of norm at most 1 and residuals r in [-1, 1]. Everything after it is post-processing. Where the budget is so small that
the mean wants all of it, there is no second release and the mean is the prediction.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive, probability
from sfumato.core.events.event import Event
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.core.schema import Schema
from sfumato.errors import DataError, InputError, PrivacyParameterError, SchemaError
from sfumato.learn.arrays import as_matrix, is_device_array, to_device, to_host
from sfumato.learn.asked import as_fitted
from sfumato.learn.base import intercept_share
from sfumato.learn.bounds import NormBound, price_of_bounds
from sfumato.learn.device_rows import DeviceRows
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.fitting import PrivateEstimator, pay
from sfumato.learn.kernel_base import MOST_NUMBERS, check_row_count
from sfumato.learn.passes import ArrayPasses, Passes, bounds_by_sums, device_matrix
from sfumato.learn.ridge_choice import chosen_ridge
from sfumato.learn.rows import UnitRows
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.stream_sums import ProductSums, RowShape, TargetSums
from sfumato.learn.table import ABSENT_TARGET, NO_TARGET, checked_matrix, plain_cells, without_values
from sfumato.learn.target_moments import (
    ALL_FOR_MEAN,
    FIRST_SHARE,
    NoisyTarget,
    TargetBudget,
    TargetLook,
    look,
    share_of_mean,
    together,
)
from sfumato.learn.traces import warn_of_centring
from sfumato.learn.training_budget import TrainingBudget
from sfumato.mechanisms import Gaussian, NormGamma
from sfumato.mechanisms.noisy_sums import pack, ridge_solution, unpack

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["PrivateLinearRegression", "TargetAtEndWarning", "checked_targets"]

#: Squared distance of neighbours' statistics (x xᵀ, x·y) for ‖x‖ ≤ 1 and |y| ≤ 1: two orthogonal-looking records are
#: 4 apart, and the inner product (x·x')² + yy'(x·x') can be as low as -1/4.
_REPLACED, _ADDED = 4.5, 2.0
#: Rounding of the sums, in units of the sensitivity: enough for ten million records (docs/proofs).
_ARITHMETIC = 2e-5
#: In units of half the target's interval: a mean so near to an end is at it, where so little noise was drawn.
_AT_AN_END, _SURE = 0.01, 0.02
#: Ends of a target beyond this, or nearer to each other than its inverse, are refused.
_FARTHEST_TARGET = 1e100


class TargetAtEndWarning(UserWarning):
    """The published mean of a target lies at an end of its public interval. The model itself tells as much."""


class PrivateLinearRegression(RegressorMixin, PrivateEstimator):
    """Ridge regression that costs `epsilon` and `delta` once, at `fit`.

    `target` is the public interval of y; values outside are clipped. The other parameters are those of
    PrivateLogisticRegression. A private mean comes first, and features are used as far as the noisy sums show that they
    help ("auto"), so the prediction is hardly ever worse than a private mean; `regularization=0.5` and the like set the
    ridge instead. `mean_` is the mean, `share_` which share of the budget it took.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-0.5, 0.5, (20000, 2))
    >>> model = PrivateLinearRegression(1.0, 1e-6, target=(-1, 1), random_state=0).fit(X, X @ [1.0, -0.5])
    >>> model.score(X, X @ [1.0, -0.5]) > 0.9
    True
    """

    n_features_in_: int

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        target: tuple[float, float] = (-1.0, 1.0),
        regularization: float | Literal["auto"] = "auto",
        schema: Schema | None = None,
        norm: float | None = 1.0,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        fit_intercept: bool | float | Literal["auto"] = "auto",
        spend_on_bounds: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target = target
        self.regularization = regularization
        self.schema = schema
        self.norm = norm
        self.adjacency = adjacency
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.spend_on_bounds = spend_on_bounds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _fit(self, X: Any, y: Any) -> None:
        positive(self.epsilon, "epsilon")
        probability(self.delta)
        self._target_bounds()
        there = is_device_array(X)
        matrix = device_matrix(self, X) if there else checked_matrix(self, X, reset=True)
        targets = checked_targets(to_host(y) if is_device_array(y) else y, int(matrix.shape[0]))
        warn_of_centring(targets)
        self.fit_by_sums(ArrayPasses(matrix, to_device(targets, matrix)))

    def fit_by_sums(self, passes: Passes) -> PrivateLinearRegression:
        """The one fit, for rows that lie anywhere and can be summed; `n_features_in_` must have been set."""
        epsilon, delta = positive(self.epsilon, "epsilon"), probability(self.delta)
        low, high = self._target_bounds()
        if not isinstance(self.adjacency, Adjacency):
            raise PrivacyParameterError("adjacency must be REPLACE_ONE, ADD_REMOVE or an Adjacency. Nothing was spent.")
        seeds = seed_from(self.random_state)
        check_row_count(seeds.records(passes.rows))
        self._publishable = seeds.publishable
        # Whatever may be refused is refused before anything is reserved.
        constant = intercept_share(self.fit_intercept, self.schema)
        strength = None if self.regularization == "auto" else positive(self.regularization, "regularization")
        self._refuse_first(constant)
        self._pay()
        bounds = bounds_by_sums(self, passes, epsilon, seeds)
        shape = RowShape(bounds.norm, constant)
        rows = UnitRows(np.zeros((1, self.n_features_in_)), shape.norm, shape.constant)
        purse = self._purse()
        sums = [float(total) for total in passes.total(TargetSums(low, high))]
        passes.check_unchanged()
        releases, seen = self._mean_first(purse, sums, seeds)
        events: list[Event] = [release.noise.event() for release in releases]
        weights, reach, self.noise_, self.regularization_ = np.zeros(rows.width), 1.0, None, math.inf
        if self.share_ < 1:
            reach = seen.reach
            exact = passes.total(ProductSums(shape, low, high, seen.mean, reach))
            passes.check_unchanged()
            self.noise_ = self.noise_on_sums(purse.epsilon, delta, rows.width, 1 - self.share_)
            events.append(self.noise_.event())
            drawn = seeds.released(self.noise_, np.concatenate([pack(exact[0]), exact[1]]))
            gram, product = unpack(drawn[: -rows.width], rows.width), drawn[-rows.width :]
            if strength is None:
                spread = seen.variance / reach**2  # of the residuals, in their unit
                weights, self.regularization_ = chosen_ridge(
                    gram, product, seeds.deviation(self.noise_), spread, seen.records
                )
            else:
                weights, self.regularization_ = ridge_solution(gram, product, strength), strength
        self._keep(rows, bounds, seen, reach, weights, events)
        self._tell_of_ends(seen)
        return self

    def _refuse_first(self, constant: float) -> None:
        """Refuse what there is no room for, and a promise too small for its noise, before anything is paid."""
        width = self.n_features_in_ + (constant > 0)
        if width * (width + 3) // 2 > MOST_NUMBERS:
            raise InputError(
                f"A regression publishes the products of each two of {width} features, and at most {MOST_NUMBERS} "
                "numbers can be: leave columns out, or put SparseRandomProjection(n_components=…, density=…) before it "
                "in sfumato.learn.make_pipeline. Nothing was spent."
            )
        purse = self._purse()
        purse.noise(FIRST_SHARE, _ARITHMETIC)
        self.noise_on_sums(purse.epsilon, purse.delta, width, 1 - ALL_FOR_MEAN)

    def _tell_of_ends(self, seen: TargetLook) -> None:
        """Say so where the published mean lies at an end of the interval, beyond what its noise could have done."""
        low, high = self._target_bounds()
        if 1 - abs(seen.mean) < _AT_AN_END and seen.error < _SURE:
            warnings.warn(
                f"The published mean of the target lies at an end of target=({low:g}, {high:g}), where values outside "
                "are clipped: most lie beyond that end, or the interval is far too wide. Write down the interval in "
                "which y is known to lie. The cost of this fit is spent.",
                TargetAtEndWarning,
                stacklevel=5,
            )

    def _mean_first(self, purse: TargetBudget, sums: list[float], seeds: Seeds) -> tuple[list[NoisyTarget], TargetLook]:
        """A look at the target with a tenth of the budget, and a second one where the mean wants more."""
        releases = [look(purse, sums, FIRST_SHARE, _ARITHMETIC, seeds)]
        seen = together(purse, releases)
        self.share_ = share_of_mean(purse, seen, _ARITHMETIC)
        if self.share_ > FIRST_SHARE:
            releases.append(look(purse, sums, self.share_ - FIRST_SHARE, _ARITHMETIC, seeds))
            seen = together(purse, releases)
        return releases, seen

    def _keep(
        self,
        rows: UnitRows,
        bounds: NormBound,
        seen: TargetLook,
        reach: float,
        weights: np.ndarray,
        events: list[Event],
    ) -> None:
        low, high = self._target_bounds()
        half = (high - low) / 2
        middle, half = low + half + half * seen.mean, half * reach
        self.mean_ = middle
        self._norm, self._constant, self._shape = bounds.norm, rows.constant, (middle, half)
        self.coef_ = weights[: rows.columns] * rows.largest * half
        self.intercept_ = middle + (weights[-1] * rows.constant * half if rows.constant else 0.0)
        self._weights = weights
        self.n_iter_ = 1
        self.bounds_, self._events = bounds, tuple(events)
        epsilon, delta = float(self.epsilon), float(self.delta)
        self.guarantee_ = (
            ApproxDP(epsilon, delta, adjacency=self.adjacency) if delta else PureDP(epsilon, adjacency=self.adjacency)
        )

    def _pay(self) -> None:
        """Reserve the whole purse, a bought norm included: which share goes where is settled by what is published."""
        epsilon, delta = positive(self.epsilon, "epsilon"), probability(self.delta)

        def costs() -> list[Any]:
            return [*self._bought().events, self._purse().part(1.0).under(self.adjacency)]

        pay(self, costs, TrainingBudget(epsilon, delta, self.adjacency, 1, 1).promise())

    def _bought(self) -> NormBound:
        """What a norm costs, where it is not public."""
        return price_of_bounds(self.norm, self.schema, float(self.epsilon), self.spend_on_bounds, self.adjacency)

    def _purse(self) -> TargetBudget:
        """What is left for the target and the products."""
        return TargetBudget(float(self.epsilon) - self._bought().epsilon, float(self.delta), self.adjacency)

    def _target_bounds(self) -> tuple[float, float]:
        try:
            low, high = (float(end) for end in self.target)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise SchemaError(
                "target must be a public interval (low, high) of y, written down without looking at the data. "
                "Nothing was spent."
            )
        if max(abs(low), abs(high)) > _FARTHEST_TARGET or high - low < 1 / _FARTHEST_TARGET:
            raise SchemaError(
                f"The ends of target must lie within ±{_FARTHEST_TARGET:g}, at least {1 / _FARTHEST_TARGET:g} apart: "
                "beyond, predictions leave the range of floating point. Measure in another unit. Nothing was spent."
            )
        return low, high

    def noise_on_sums(
        self, epsilon: float, delta: float, width: int, share: float = 1 - FIRST_SHARE
    ) -> Gaussian | NormGamma:
        """Noise on the sums of products at a share of the budget."""
        sensitivity = math.sqrt(_REPLACED if self.adjacency.relation == "replace-one" else _ADDED)
        size = width * (width + 1) // 2 + width
        promise = TargetBudget(epsilon, delta, self.adjacency).part(share)
        kind = Gaussian if delta else NormGamma
        return kind.for_guarantee(promise, sensitivity * (1 + _ARITHMETIC), self.adjacency, dimension=size)

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "coef_")
        from sfumato.core.certificate import Certificate

        return Certificate.issue(
            subject="PrivateLinearRegression by perturbed sufficient statistics",
            events=[*self.bounds_.events, *self._events],
            proofs=sorted(
                {*self.bounds_.proofs, "sufficient_statistics", *(event.proof_id() for event in self._events)}
            ),
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "coef_")
        middle, half = self._shape
        if is_device_array(X):
            shaped = DeviceRows(as_matrix(X), self._norm, self._constant)
            return middle + half * to_host(shaped.times(to_device(self._weights, X)))
        rows = UnitRows(checked_matrix(self, X, reset=False), self._norm, self._constant)
        return middle + half * rows.times(self._weights)

    def rule(self) -> dict[str, Any]:
        """What predictions are computed from; every number of it was released or is public."""
        middle, half = self._shape
        linear = {"type": "linear", "norm": self._norm, "constant": self._constant, "weights": [self._weights.tolist()]}
        return {**linear, "middle": middle, "half": half}

    def explain(self) -> str:
        """What was done and what it promises, in words."""
        check_is_fitted(self, "coef_")
        lines = [
            f"PrivateLinearRegression: {self.guarantee_}.",
            f"A private mean and variance of the target came first, for {100 * self.share_:.0f} % of the budget.",
        ]
        if self.noise_ is None:
            lines.append("With so little budget the mean wants all of it: features were not looked at.")
        else:
            lines.append(
                "The sums of products of features and residuals were published once with noise of standard deviation "
                f"{math.sqrt(self.noise_.error()):.3g} each, for rows of norm 1 and residuals up to "
                f"{self._shape[1]:.3g}; larger ones were clipped to it."
            )
            lines.append(
                "They do not show beyond doubt that the features help, so the mean is the prediction."
                if math.isinf(self.regularization_)
                else f"Ridge strength {self.regularization_:.3g}."
            )
        lines.append(f"Rows longer than {self._norm:g} were shortened to it; {self.bounds_.origin}.")
        schema = as_fitted(self).schema
        longest = 0.0 if schema is None else SchemaEncoder(schema).longest_row()
        if longest > self._norm:
            lines.append(
                f"By the schema rows can be {longest:.3g} long, and where many are, lines bend. norm={longest:.3g} "
                "would shorten none, with more noise: worth it with many rows."
            )
        return "\n".join(lines)


def checked_targets(y: Any, rows: int) -> np.ndarray:
    """The target as one finite number for each row."""
    if y is None:
        raise DataError("fit requires y to be passed, but the target y is None. Nothing was spent.")

    def read() -> np.ndarray:
        return column_or_1d(plain_cells(y), warn=True).astype(np.float64)

    column = without_values("y", read, NO_TARGET)
    if column.shape[0] != rows:
        raise DataError(f"X has {rows} rows and y has {column.shape[0]} values. Nothing was spent.")
    if not np.isfinite(column).all():
        raise DataError(ABSENT_TARGET)
    return column
