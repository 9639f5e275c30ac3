"""Ridge regression under differential privacy, by perturbed sufficient statistics.

In:   a table with public bounds, a target with public bounds, ε and δ.
Out:  PrivateLinearRegression, a scikit-learn regressor with a guarantee and a certificate.
Not here: classifiers (learn/base.py), noise (mechanisms/).
Proof: docs/proofs/sufficient_statistics.md

One release: the upper triangle of XᵀX (off-diagonals times √2, so that its length is the Frobenius norm) and Xᵀy for
rows of norm at most 1 and targets in [-1, 1]. Everything after it is post-processing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.linalg import eigh
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive, probability
from sfumato.core.events.event import Event
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.core.schema import Schema
from sfumato.errors import DataError, PrivacyParameterError, SchemaError
from sfumato.learn.arrays import as_matrix, is_device_array, to_device, to_host
from sfumato.learn.base import intercept_share
from sfumato.learn.bounds import Bounds, price_of_bounds, settle_bounds
from sfumato.learn.calibration import Budget
from sfumato.learn.device_rows import DeviceRows
from sfumato.learn.fitting import PrivateEstimator, pay
from sfumato.learn.kernel_base import check_row_count
from sfumato.learn.rows import UnitRows
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.table import checked_matrix, without_values
from sfumato.mechanisms import Gaussian, NormGamma

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["PrivateLinearRegression"]

#: Squared distance of neighbours' statistics (x xᵀ, x·y) for ‖x‖ ≤ 1 and |y| ≤ 1: two orthogonal-looking records are
#: 4 apart, and the inner product (x·x')² + yy'(x·x') can be as low as -1/4.
_REPLACED, _ADDED = 4.5, 2.0
#: Rounding of the sums, in units of the sensitivity: enough for ten million records (docs/proofs).
_ARITHMETIC = 2e-5


class PrivateLinearRegression(RegressorMixin, PrivateEstimator):
    """Ridge regression that costs `epsilon` and `delta` once, at `fit`.

    `target` is the public interval of y; values outside are clipped. The other parameters are those of
    PrivateLogisticRegression. With "auto" the strength is the noise's spectral size, which keeps the noisy matrix
    positive; a public rule.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-0.5, 0.5, (20000, 2))
    >>> model = PrivateLinearRegression(1.0, 1e-6, target=(-1, 1), random_state=0).fit(X, X @ [1.0, -0.5])
    >>> model.score(X, X @ [1.0, -0.5]) > 0.9
    True
    """

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
        if is_device_array(X):
            from sfumato.learn.stream import fit_on_device

            fit_on_device(self, X, y)
            return
        epsilon, _ = positive(self.epsilon, "epsilon"), probability(self.delta)
        low, high = self._target_bounds()
        matrix = checked_matrix(self, X, reset=True)
        targets = _checked_targets(y, matrix.shape[0])
        check_row_count(matrix.shape[0])
        seeds = seed_from(self.random_state)
        self._pay(matrix.shape[1])
        bounds = settle_bounds(matrix, self.norm, self.schema, epsilon, self.spend_on_bounds, self.adjacency, seeds)
        rows = UnitRows(matrix, bounds.norm, intercept_share(self.fit_intercept, self.schema))
        middle, half = (low + high) / 2, (high - low) / 2
        scaled = (np.clip(targets, low, high) - middle) / half
        np.clip(scaled, -1.0, 1.0, out=scaled)
        self._release(rows, bounds, (rows.exact_gram(), rows.pull(scaled)), seeds)

    def _release(
        self, rows: Any, bounds: Bounds, sums: tuple[np.ndarray, np.ndarray], seeds: Seeds
    ) -> PrivateLinearRegression:
        """Noise on the exact sums of products, once, and the solution from them; `rows` says how rows were shaped."""
        epsilon, delta = positive(self.epsilon, "epsilon"), probability(self.delta)
        low, high = self._target_bounds()
        middle, half = (low + high) / 2, (high - low) / 2
        noise = self._noise(epsilon - bounds.epsilon, delta, rows.width)
        self._publishable = seeds.publishable
        gram, product = _unpacked(seeds.seeded(noise)(_packed(*sums)), rows.width)
        self.regularization_ = self._strength(noise, rows.width)
        weights = _solve(gram, product, self.regularization_)
        self._norm, self._constant, self._shape = bounds.norm, rows.constant, (middle, half)
        self.coef_ = weights[: rows.columns] * rows.largest * half
        self.intercept_ = middle + (weights[-1] * rows.constant * half if rows.constant else 0.0)
        self._weights = weights
        self.n_iter_ = 1
        self.bounds_, self.noise_ = bounds, noise
        self.guarantee_ = (
            ApproxDP(epsilon, delta, adjacency=self.adjacency) if delta else PureDP(epsilon, adjacency=self.adjacency)
        )
        return self

    def _pay(self, columns: int) -> None:
        """Reserve all that will be drawn, a bought norm included."""
        epsilon, delta = positive(self.epsilon, "epsilon"), probability(self.delta)
        width = columns + (intercept_share(self.fit_intercept, self.schema) > 0)

        def events() -> list[Event]:
            bought = price_of_bounds(self.norm, self.schema, epsilon, self.spend_on_bounds, self.adjacency)
            return [*bought.events, self._noise(epsilon - bought.epsilon, delta, width).event()]

        pay(self, events, Budget(epsilon, delta, self.adjacency, 1, width).promise())

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
        return low, high

    def _noise(self, epsilon: float, delta: float, width: int) -> Gaussian | NormGamma:
        if not isinstance(self.adjacency, Adjacency):
            raise PrivacyParameterError("adjacency must be REPLACE_ONE, ADD_REMOVE or an Adjacency. Nothing was spent.")
        sensitivity = math.sqrt(_REPLACED if self.adjacency.relation == "replace-one" else _ADDED)
        size = width * (width + 1) // 2 + width
        promise = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
        kind = Gaussian if delta else NormGamma
        return kind.for_guarantee(promise, sensitivity * (1 + _ARITHMETIC), self.adjacency, dimension=size)

    def _strength(self, noise: Gaussian | NormGamma, width: int) -> float:
        """Strong convexity of the sum of squares: given, or the size of the noise matrix's largest eigenvalue."""
        if self.regularization == "auto":
            return math.sqrt(2 * width) * math.sqrt(noise.error())
        return positive(self.regularization, "regularization")

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "noise_")
        from sfumato.core.certificate import Certificate

        return Certificate.issue(
            subject="PrivateLinearRegression by perturbed sufficient statistics",
            events=[*self.bounds_.events, self.noise_.event()],
            proofs=sorted({*self.bounds_.proofs, "sufficient_statistics", self.noise_.proof}),
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

    def explain(self) -> str:
        """What was done and what it promises, in words."""
        check_is_fitted(self, "noise_")
        return (
            f"PrivateLinearRegression: {self.guarantee_}.\n"
            f"The sums of products of features and target were published once with noise of standard deviation "
            f"{math.sqrt(self.noise_.error()):.3g} each, for rows of norm 1 and targets scaled to [-1, 1].\n"
            f"Ridge strength {self.regularization_:.3g}; {self.bounds_.origin}."
        )


def _checked_targets(y: Any, rows: int) -> np.ndarray:
    if y is None:
        raise DataError("fit requires y to be passed, but the target y is None. Nothing was spent.")

    def read() -> np.ndarray:
        return column_or_1d(y.to_numpy() if hasattr(y, "to_numpy") else y, warn=True).astype(np.float64)

    column = without_values("y", read)
    if column.shape[0] != rows:
        raise DataError(f"X has {rows} rows and y has {column.shape[0]} values. Nothing was spent.")
    if not np.isfinite(column).all():
        raise DataError("y contains NaN or infinity. Nothing was spent.")
    return column


def _packed(gram: np.ndarray, product: np.ndarray) -> np.ndarray:
    upper = np.triu_indices(len(product), 1)
    return np.concatenate([np.diag(gram), math.sqrt(2) * gram[upper], product])


def _unpacked(packed: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    gram = np.zeros((width, width))
    upper = np.triu_indices(width, 1)
    gram[upper] = packed[width:-width] / math.sqrt(2)
    gram += gram.T
    gram[np.diag_indices(width)] = packed[:width]
    return gram, packed[-width:]


def _solve(gram: np.ndarray, product: np.ndarray, strength: float) -> np.ndarray:
    """(gram₊ + strength)⁻¹ product, with negative eigenvalues of the noisy matrix put to zero."""
    values, vectors = eigh(gram)
    return vectors @ ((vectors.T @ product) / (np.maximum(values, 0.0) + strength))
