"""Linear support vector classification on a table whose noise is known.

In:   a published table, its noise law, labels published as they are or by randomised response.
Out:  NoiseAwareSVC, a scikit-learn classifier for clean inputs.
Not here: the calibration of a noisy linear rule (release/aware_common.py), probabilities (release/aware_logistic.py).

The hinge has no unbiased correction for noise in x: its kink is not analytic, so no function of x̄ has the clean hinge
as its expectation (Stefanski 1989). What can be undone is the effect on the rule: noise turns it from W⁻¹(μ₁ - μ₀) to
(W + Σ)⁻¹(μ₁ - μ₀). It is turned back as far as the label's least squares on the same table says is safe; where it says
nothing, the rule stays the plain one.
Randomised labels: the unbiased hinge of Natarajan et al. 2013 is neither convex nor bounded below on small tables.
Instead each row enters with both labels, weighted by their chances given the published one (importance reweighting,
Liu & Tao 2016): the expected hinge of the true label.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sfumato.core.threads import calm_threads
from sfumato.errors import InputError
from sfumato.release.aware_common import Labels, NoiseLike, NoisyGram, calibrate, fit_features, read_labels
from sfumato.release.aware_linear import choose_shrinkage
from sfumato.release.aware_logistic import label_penalty, penalised_logit
from sfumato.release.noise import ResponseNoise

__all__ = ["NoiseAwareSVC"]

Matrix = NDArray[np.float64]
Rule = tuple[Matrix, float]


class NoiseAwareSVC(ClassifierMixin, BaseEstimator):
    """A linear support vector classifier for clean inputs, learned from noisy ones; many classes one against the rest.

    `noise` is the TableNoise of a release, or a variance, or a covariance matrix in the order of X's columns.
    `C` is the inverse penalty of LinearSVC (with a TableNoise: on columns scaled to their public interval).
    `shrinkage` is "auto" or λ itself: 1 leaves the plain rule, 0 takes the full correction.
    `label_noise` gives the odds of randomised labels where `noise` does not.
    Fitted: `classes_`, `coef_`, `intercept_` in the columns' own units, `shrinkage_` (λ for each rule).

    >>> generator = np.random.default_rng(0)
    >>> truth = generator.normal(size=(4000, 2)) @ np.array([[1.0, 0.9], [0.0, 0.5]])
    >>> labels = truth @ [1, -1] > 0
    >>> noisy = truth + generator.normal(size=truth.shape) * [0.2, 1.0]
    >>> aware = NoiseAwareSVC(noise=[0.04, 1.0]).fit(noisy, labels).score(truth, labels)
    >>> aware > LinearSVC().fit(noisy, labels).score(truth, labels) + 0.1
    True
    """

    def __init__(
        self,
        noise: NoiseLike = 0.0,
        C: float = 1.0,
        shrinkage: Literal["auto"] | float = "auto",
        label_noise: ResponseNoise | None = None,
    ) -> None:
        self.noise = noise
        self.C = C
        self.shrinkage = shrinkage
        self.label_noise = label_noise

    @calm_threads()
    def fit(self, X: Any, y: Any) -> NoiseAwareSVC:
        """Learn from the published table X and its labels."""
        if y is None:
            raise InputError("NoiseAwareSVC requires y to be passed, but the target y is None.")
        if not self.C > 0:
            raise InputError("C must be positive.")
        self._features, published = fit_features(self, X, self.noise)
        labels = read_labels(y, self.noise, self.label_noise)
        check_consistent_length(published, labels.codes)
        self.classes_ = labels.classes
        fitted = [self._fit_one(published, labels, code) for code in labels.rules]
        rules = [self._features.in_own_unit(*rule) for rule, _ in fitted]
        self.shrinkage_ = np.array([shrinkage for _, shrinkage in fitted])
        self.coef_ = np.array([coefficients for coefficients, _ in rules])
        self.intercept_ = np.array([intercept for _, intercept in rules])
        return self

    def _fit_one(self, published: Matrix, labels: Labels, code: int) -> tuple[Rule, float]:
        noise = self._features.covariance(published)
        chances = labels.observed(code)
        if labels.keep < 1:
            chances = penalised_logit(published, labels, code, label_penalty(labels, noise, self.C))[1]
        rule = _hinge(published, chances, self.C)
        if not noise.any():
            return rule, 1.0
        shrinkage = self._shrinkage(published, chances, noise)
        return calibrate(rule, published, chances, noise, shrinkage), shrinkage

    def _shrinkage(self, published: Matrix, target: Matrix, noise: Matrix) -> float:
        if isinstance(self.shrinkage, str):
            if self.shrinkage != "auto":
                raise InputError('shrinkage must be "auto" or a number from 0 to 1.')
            return _safe_shrinkage(published, target, noise)
        if not 0 <= self.shrinkage <= 1:
            raise InputError(f"shrinkage must be from 0 (full correction) to 1 (none), not {self.shrinkage}.")
        return float(self.shrinkage)

    def decision_function(self, X: Any) -> Matrix:
        """The margin for clean rows; one column for each class when there are more than two."""
        check_is_fitted(self)
        matrix = self._features.clean(self, X) * self._features.scale + self._features.offset
        margins = matrix @ self.coef_.T + self.intercept_
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict(self, X: Any) -> NDArray[Any]:
        """The class for clean rows."""
        margins = self.decision_function(X)
        return self.classes_[(margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)]


def _safe_shrinkage(published: Matrix, target: Matrix, noise: Matrix) -> float:
    """λ chosen for least squares on the label, whose direction is that of the discriminant (Fisher 1936)."""
    rows = len(published)
    centred, response = published - published.mean(axis=0), target - target.mean()
    gram = NoisyGram.of(centred.T @ centred / rows, noise, rows)
    return choose_shrinkage(gram, centred.T @ response / rows, float(response @ response / rows), rows)


def _hinge(published: Matrix, chances: Matrix, inverse_penalty: float) -> Rule:
    """LinearSVC with each row under both labels, weighted by their chances; certain labels enter once."""
    rows = np.concatenate([np.flatnonzero(chances > 0), np.flatnonzero(chances < 1)])
    labels = np.arange(len(rows)) < np.count_nonzero(chances > 0)
    weights = np.where(labels, chances[rows], 1 - chances[rows])
    dual: Any = False  # scikit-learn's annotation forgets the boolean
    model = LinearSVC(C=inverse_penalty, dual=dual, max_iter=10000)
    model.fit(published[rows], labels, sample_weight=weights)
    return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
