"""Least squares on a table whose noise is known.

In:   a published table, its noise law, a numeric target.
Out:  NoiseAwareLinearRegression, a scikit-learn regressor for clean inputs (and, on request, for noisy ones).
Not here: reading tables and the shrinkage family (release/aware_common.py), classification (release/aware_logistic.py).

The corrected normal equations (X̄ᵀX̄ - nΣ)β = X̄ᵀy are consistent (Fuller 1987, ch. 2; Loh & Wainwright 2012). Their bias
of second order is taken out as well (NoisyGram.resolved), and every coefficient has a standard error: the sandwich of
the equations' own scatter. Where noise drowns a direction, so that the signal there is less than two of its standard
errors, no answer is unbiased: a SwampedWarning says so, and β_λ is given, with λ between the sampling error √(p/n) and
1, which joins the correction to plain least squares. λ minimises an estimate of the clean loss with its optimism
removed (Takeuchi 1976), and leaves plain least squares only as far as the estimated gain exceeds 3/2 of its standard
error. Such coefficients predict well and are too small.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError
from sfumato.release.aware_common import RESOLVED, NoiseLike, NoisyGram, fit_features
from sfumato.release.noise import TableNoise

__all__ = ["NoiseAwareLinearRegression", "SwampedWarning", "choose_shrinkage", "numeric_target", "shared_noise"]

Matrix = NDArray[np.float64]
# Gains below this many standard errors may be an accident; staying with plain least squares costs nothing then.
_CAUTION = 1.5
_WAYS = ("auto", "unbiased", "prediction")


class SwampedWarning(UserWarning):
    """The published noise hides a direction of the features: coefficients along it are not to be read as estimates."""


class NoiseAwareLinearRegression(RegressorMixin, BaseEstimator):
    """Linear regression for clean inputs, learned from noisy ones.

    `noise` is the TableNoise of a release, or a variance, or a covariance matrix in the order of X's columns.
    `regularization`: "unbiased" corrects in full, "prediction" takes the λ of least estimated loss (its coefficients
    are shrunk), "auto" is the first where the table resolves every direction and otherwise the second, with a
    SwampedWarning; or λ itself: 1 is plain least squares, 0 the bare normal equations.
    Fitted: `coef_` and `intercept_` for clean rows in the columns' own units (categories as indicators of all but the
    first value, see `feature_names_out_`), `standard_error_` of the coefficients (of shrunk ones: their scatter, not
    their distance from the truth), `resolution_` (how many standard errors the faintest direction is from nothing; a
    figure below 2 means that coefficients are shrunk), `coef_noisy_` and `intercept_noisy_` for published rows,
    `shrinkage_` (λ; 0 when unbiased), `covariance_` (of the true features, positive semidefinite).

    >>> generator = np.random.default_rng(0)
    >>> truth = generator.normal(size=(20000, 1))
    >>> noisy = truth + generator.normal(size=truth.shape)
    >>> bool(abs(NoiseAwareLinearRegression(noise=1.0).fit(noisy, 3 * truth[:, 0]).coef_[0] - 3) < 0.1)
    True
    """

    def __init__(
        self,
        noise: NoiseLike = 0.0,
        regularization: Literal["auto", "unbiased", "prediction"] | float = "auto",
        fit_intercept: bool = True,
    ) -> None:
        self.noise = noise
        self.regularization = regularization
        self.fit_intercept = fit_intercept

    @calm_threads()
    def fit(self, X: Any, y: Any) -> NoiseAwareLinearRegression:
        """Learn from the published table X and target y."""
        if y is None:
            raise InputError("NoiseAwareLinearRegression requires y to be passed, but the target y is None.")
        self._features, published = fit_features(self, X, self.noise)
        target = numeric_target(y)
        check_consistent_length(published, target)
        rows = len(published)
        centre = published.mean(axis=0) if self.fit_intercept else np.zeros(published.shape[1])
        middle = float(target.mean()) if self.fit_intercept else 0.0
        centred, response = published - centre, target - middle
        noise = self._features.covariance(published)
        gram = NoisyGram.of(centred.T @ centred / rows, noise, rows)
        products = centred.T @ response / rows
        corrected = products - shared_noise(self.noise, self._features.encoded) / self._features.scale
        resolved, distances = gram.resolved(centred)
        self.resolution_ = float(distances.min(initial=np.inf))
        self.shrinkage_ = self._shrinkage(gram, corrected, float(response @ response / rows), rows)
        unbiased = self._way() == "unbiased"
        inverse = gram.inverse(resolved if unbiased else gram.divisors(self.shrinkage_))
        answer = inverse @ corrected
        self.coef_, self.intercept_ = self._rule(answer, centre, middle)
        scatter = self._scatter(published, centred, response, answer) @ inverse.T
        self.standard_error_ = self._error(scatter, centred) / self._features.scale
        self.coef_noisy_, self.intercept_noisy_ = self._rule(gram.solve(products, 1.0), centre, middle)
        self.covariance_ = gram.repaired(noise) * np.outer(self._features.scale, self._features.scale)
        self.feature_names_out_ = np.array(self._features.encoded, dtype=object)
        return self

    def predict(self, X: Any, noisy: bool = False) -> Matrix:
        """Predictions for clean rows; with `noisy=True`, the best linear ones for rows with the published noise."""
        check_is_fitted(self)
        features = self._features
        matrix = features.published(self, X) if noisy else features.clean(self, X)
        matrix = matrix * features.scale + features.offset
        coefficients, intercept = (self.coef_noisy_, self.intercept_noisy_) if noisy else (self.coef_, self.intercept_)
        return matrix @ coefficients + intercept

    def _way(self) -> str:
        """Which correction is taken, after `resolution_` is known."""
        if not isinstance(self.regularization, str):
            return "given"
        if self.regularization != "auto":
            return self.regularization
        return "unbiased" if self.resolution_ >= RESOLVED else "prediction"

    def _shrinkage(self, gram: NoisyGram, products: Matrix, power: float, rows: int) -> float:
        if not isinstance(self.regularization, str):
            if not 0 <= self.regularization <= 1:
                raise InputError(f"regularization must be a word or from 0 to 1, not {self.regularization}.")
            return float(self.regularization)
        if self.regularization not in _WAYS:
            raise InputError(f"regularization must be one of {_WAYS} or a number from 0 to 1.")
        if rows <= len(products) + bool(self.fit_intercept):
            warnings.warn(
                f"{rows} rows are too few for {len(products)} features: nothing is left to tell scatter from signal, "
                "and standard_error_ is infinite. Release more rows, or leave features out.",
                SwampedWarning,
                stacklevel=3,
            )
        elif self.regularization != "prediction" and self.resolution_ < RESOLVED:
            warnings.warn(
                "The published noise drowns a direction of the features (resolution_ "
                f"{self.resolution_:.2g}, and 2 is needed): the coefficients are pulled towards zero and are good for "
                "prediction at most. Release with a larger ε or more rows, or leave features out.",
                SwampedWarning,
                stacklevel=3,
            )
        return choose_shrinkage(gram, products, power, rows) if self._way() == "prediction" else 0.0

    def _scatter(self, published: Matrix, centred: Matrix, response: Matrix, answer: Matrix) -> Matrix:
        """Each row's part in the corrected equations at the answer: their scatter is what the answer is unsure of."""
        parts = centred * (response - centred @ answer)[:, None]
        for place in self._features.response_places():
            # The noise of inverted answers is read off the rows (Features.covariance), so it varies with them.
            block, own = published[:, place], answer[place]
            parts[:, place] += block * (block @ own)[:, None] - block * own
        return parts

    def _error(self, scatter: Matrix, centred: Matrix) -> Matrix:
        """Standard error of the mean of the rows' parts, each row judged by an answer it had no part in.

        A row pulls the answer towards itself by its leverage h, so its part is divided by 1 - h (MacKinnon & White
        1985, HC3). With few rows to spare the scatter is itself a guess: Student's quantile over the normal one makes
        ±1.96 errors cover as they should. With none to spare nothing is known.
        """
        rows, width = centred.shape
        spare = rows - width - bool(self.fit_intercept)
        if spare < 1:
            return np.full(width, np.inf)
        basis = np.linalg.svd(centred, full_matrices=False)[0]
        leverage = (basis**2).sum(axis=1) + bool(self.fit_intercept) / rows
        parts = (scatter - scatter.mean(axis=0)) / np.maximum(1 - leverage, 1 / rows)[:, None]
        student = float(stdtrit(spare, 0.975) / ndtri(0.975))
        return student * np.sqrt((parts**2).sum(axis=0)) / rows

    def _rule(self, coefficients: Matrix, centre: Matrix, middle: float) -> tuple[Matrix, float]:
        own, intercept = self._features.in_own_unit(coefficients, middle - float(coefficients @ centre))
        return own, intercept if self.fit_intercept else 0.0


def choose_shrinkage(gram: NoisyGram, products: Matrix, power: float, rows: int) -> float:
    """The λ of least estimated clean loss; `products` estimate E[xy], `power` is the mean square of the target.

    For β = β_λ in the coordinates of `gram` the loss βᵀgβ - 2cᵀβ is too hopeful by 2·tr(G⁻¹V), where
    V = ((g + 1)τ² + ββᵀ)/n is the sampling covariance of the corrected equations and τ² the noisy residual variance
    (exact for Gaussian features and noise). Only n, Σ and second moments enter.
    """
    if not gram.signal.size or gram.floor >= 1:
        return 1.0
    known = gram.basis.T @ products
    left = max(power - float(products @ gram.exact @ products), 1e-12 * power)
    candidates = np.geomspace(1.0, gram.floor, 25)
    signal = np.maximum(gram.signal, 0.0)
    answers = np.array([known / gram.divisors(value) for value in candidates])
    divisors = np.array([gram.divisors(value) for value in candidates])
    residual = left + answers**2 @ (signal + 1) - 2 * answers @ known
    residual = np.maximum(residual, 0.01 * left)
    optimism = 2 * ((np.outer(residual, signal + 1) + answers**2) / divisors).sum(axis=1) / rows
    loss = answers**2 @ signal - 2 * answers @ known + optimism
    shared = left - answers[0] @ known - answers @ known + answers @ ((signal + 1) * answers[0])
    # Variance of the difference of two squared Gaussian residuals, averaged over the rows.
    spread = np.sqrt(np.maximum(2 * (residual[0] ** 2 + residual**2 - 2 * shared**2), 0.0) / rows)
    best = int(np.argmin(loss))
    if loss[best] + _CAUTION * spread[best] >= loss[0]:
        best = int(np.argmin(loss + _CAUTION * spread))
    return float(candidates[best])


def numeric_target(y: Any) -> Matrix:
    """The numbers to predict, read from any container; a number that is none is refused without being quoted."""
    values = column_or_1d(y.to_numpy() if hasattr(y, "to_numpy") else y, warn=True)
    try:
        numeric = values.astype(float)
    except (OverflowError, TypeError, ValueError):
        raise DataError("The target must be numeric, and no number beyond what floats can hold.") from None
    if not np.isfinite(numeric).all():
        raise DataError("The target has missing (NaN) or infinite (inf) values.")
    return numeric


def shared_noise(noise: NoiseLike, encoded: tuple[str, ...]) -> Matrix:
    """Covariance of each column's noise with the noise of the label, where one release drew both."""
    if not isinstance(noise, TableNoise) or noise.label is None or noise.label not in noise.columns:
        return np.zeros(len(encoded))
    return noise.covariance_of([*encoded, noise.label])[:-1, -1]
