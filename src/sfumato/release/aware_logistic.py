"""Logistic regression on a table whose noise is known.

In:   a published table, its noise law, labels published as they are or by randomised response.
Out:  NoiseAwareLogisticRegression, a scikit-learn classifier for clean inputs.
Not here: the calibration of a noisy linear rule (release/aware_common.py), the hinge loss (release/aware_svc.py).

Three steps. (1) Penalised logistic regression on the noisy rows; randomised labels enter through the likelihood of the
published label (the forward correction of Patrini et al. 2017: bounded, where the unbiased loss of Natarajan et al.
2013 falls without end on small tables). (2) Calibration: exact for Gaussian classes, never unstable. (3) The
conditional score of Stefanski & Carroll 1987, consistent under Gaussian noise whatever the law of the features, taken
where its own sandwich variance says that it is the nearer of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sfumato.core.threads import calm_threads
from sfumato.errors import InputError
from sfumato.release.aware_common import Labels, NoiseLike, NoisyGram, calibrate, fit_features, read_labels
from sfumato.release.noise import ResponseNoise

__all__ = ["NoiseAwareLogisticRegression", "label_penalty", "penalised_logit"]

Matrix = NDArray[np.float64]
Rule = tuple[Matrix, float]
_METHODS = ("auto", "calibration", "score")
# The conditional score is trusted when its variance is below this share of the variance of the fitted logit.
_STABLE = 0.05
# … and when it is at most this many times as long as the calibrated rule.
_LONGEST = 2.0


class NoiseAwareLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression for clean inputs, learned from noisy ones; several classes one against the rest.

    `noise` is the TableNoise of a release, or a variance, or a covariance matrix in the order of X's columns.
    `C` is the inverse penalty, as in scikit-learn (with a TableNoise: on columns scaled to their public interval).
    `method`: "calibration" stops after step 2, "score" insists on step 3 wherever it converges, "auto" compares.
    `label_noise` gives the odds of randomised labels where `noise` does not.
    Fitted: `classes_`, `coef_`, `intercept_` in the columns' own units, `method_` (what was used, for each rule),
    `resolution_`: how many standard errors the faintest direction of the features is from nothing. Below 2 the noise
    drowns it, and coefficients along it are pulled towards zero: good for prediction at most.

    >>> generator = np.random.default_rng(0)
    >>> truth = generator.normal(size=(20000, 1))
    >>> labels = generator.uniform(size=20000) < expit(2 * truth[:, 0])
    >>> noisy = truth + generator.normal(size=truth.shape)
    >>> bool(abs(NoiseAwareLogisticRegression(noise=1.0).fit(noisy, labels).coef_[0, 0] - 2) < 0.2)
    True
    """

    def __init__(
        self,
        noise: NoiseLike = 0.0,
        C: float = 1.0,
        method: Literal["auto", "calibration", "score"] = "auto",
        label_noise: ResponseNoise | None = None,
    ) -> None:
        self.noise = noise
        self.C = C
        self.method = method
        self.label_noise = label_noise

    @calm_threads()
    def fit(self, X: Any, y: Any) -> NoiseAwareLogisticRegression:
        """Learn from the published table X and its labels."""
        if y is None:
            raise InputError("NoiseAwareLogisticRegression requires y to be passed, but the target y is None.")
        if self.method not in _METHODS or not self.C > 0:
            raise InputError(f"method must be one of {_METHODS} and C positive.")
        self._features, published = fit_features(self, X, self.noise)
        labels = read_labels(y, self.noise, self.label_noise)
        check_consistent_length(published, labels.codes)
        self.classes_ = labels.classes
        self.resolution_ = _resolution(published, self._features.covariance(published))
        fitted = [self._fit_one(published, labels, code) for code in labels.rules]
        rules = [self._features.in_own_unit(*rule) for rule, _ in fitted]
        self.method_ = tuple(method for _, method in fitted)
        self.coef_ = np.array([coefficients for coefficients, _ in rules])
        self.intercept_ = np.array([intercept for _, intercept in rules])
        return self

    def _fit_one(self, published: Matrix, labels: Labels, code: int) -> tuple[Rule, str]:
        noise = self._features.covariance(published)
        penalty = label_penalty(labels, noise, self.C)
        plain, chances = penalised_logit(published, labels, code, penalty)
        if not noise.any():
            return plain, "plain"
        calibrated = calibrate(plain, published, chances, noise)
        # Inverted answers are far from Gaussian: the conditional score does not apply to them.
        if self.method == "calibration" or self._features.response_places():
            return calibrated, "calibration"
        score = _ConditionalScore(published, labels.unbiased(code), noise, penalty @ plain[0]).root(calibrated)
        if score is None or (self.method == "auto" and not _nearer(score, calibrated, published, noise)):
            return calibrated, "calibration"
        return score[:2], "score"

    def decision_function(self, X: Any) -> Matrix:
        """The logit for clean rows; one column for each class when there are more than two."""
        check_is_fitted(self)
        matrix = self._features.clean(self, X) * self._features.scale + self._features.offset
        logits = matrix @ self.coef_.T + self.intercept_
        return logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> Matrix:
        """Class probabilities for clean rows."""
        logits = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.column_stack([expit(-logits), expit(logits)])
        odds = np.maximum(expit(logits), np.finfo(float).tiny)
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class for clean rows."""
        logits = self.decision_function(X)
        return self.classes_[(logits > 0).astype(int) if logits.ndim == 1 else logits.argmax(axis=1)]


def _resolution(published: Matrix, noise: Matrix) -> float:
    centred = published - published.mean(axis=0)
    gram = NoisyGram.of(centred.T @ centred / len(published), noise, len(published))
    return float(gram.resolved(centred)[1].min(initial=np.inf))


def label_penalty(labels: Labels, noise: Matrix, inverse_penalty: float) -> Matrix:
    """The quadratic penalty on the coefficients: 1/C where labels were published as they are.

    Randomised: 1/C on (keep - move)·β, the size coefficients have in a fit to the published labels, so that C means
    what it means there. And the part of the logit that is only noise, of variance βᵀΣβ, is held near 1: vague labels
    would otherwise be fitted by it. Beside n rows this term, of the order of p, vanishes as the table grows. Its factor
    (keep - move) is empirical: without it rules on small tables fall back on the larger class, with its square they
    overfit.
    """
    width = len(noise)
    gain = labels.keep - labels.move
    return np.eye(width) * gain**2 / inverse_penalty + (gain * width * noise if labels.keep < 1 else 0.0)


def penalised_logit(published: Matrix, labels: Labels, code: int, penalty: Matrix) -> tuple[Rule, Matrix]:
    """The rule of greatest penalised likelihood of the published labels, and each row's chance of truly being `code`.

    Without randomisation this is scikit-learn's objective, and the chances are the labels themselves.
    """
    centre = published.mean(axis=0)
    wide = np.column_stack([np.ones(len(published)), published - centre])  # centred: better conditioned
    channel = _Channel(labels.observed(code), labels.move, labels.keep)
    share = float(np.clip(labels.unbiased(code).mean(), 1e-6, 1 - 1e-6))
    base = np.append(np.log(share / (1 - share)), np.zeros(published.shape[1]))
    point = channel.fit(wide, base, penalty)
    return (point[1:], float(point[0] - point[1:] @ centre)), channel.chances(wide @ point)[1]


@dataclass(frozen=True)
class _Channel:
    """P(published = this class) = low + (high - low)·F(logit): what randomisation makes of a true logit."""

    observed: Matrix
    low: float
    high: float

    def likelihoods(self, logits: Matrix) -> Matrix:
        """Log-likelihood of each published label."""
        yes, no = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
        with np.errstate(divide="ignore"):  # log 0 is right for labels published as they are
            hit = np.logaddexp(np.log(self.high) + yes, np.log(self.low) + no)
            miss = np.logaddexp(np.log(1 - self.high) + yes, np.log(1 - self.low) + no)
        return np.where(self.observed > 0, hit, miss)

    def chances(self, logits: Matrix) -> tuple[Matrix, Matrix]:
        """The chance of truly being this class, before and after seeing the published label."""
        prior = expit(logits)
        seen = np.where(self.observed > 0, self.high, 1 - self.high)
        unseen = np.where(self.observed > 0, self.low, 1 - self.low)
        both = seen * prior + unseen * (1 - prior)
        return prior, np.divide(seen * prior, both, out=self.observed.copy(), where=unseen * seen > 0)

    def fit(self, wide: Matrix, start: Matrix, penalty: Matrix) -> Matrix:
        """Penalised maximum likelihood; the first column of `wide` is the free intercept."""
        full = np.zeros((len(start), len(start)))
        full[1:, 1:] = penalty

        def objective(point: Matrix) -> tuple[float, Matrix]:
            logits = wide @ point
            prior, posterior = self.chances(logits)
            value = float(point @ full @ point) / 2 - float(self.likelihoods(logits).sum())
            return value, wide.T @ (prior - posterior) + full @ point

        def curvature(point: Matrix) -> Matrix:
            prior, posterior = self.chances(wide @ point)
            weight = prior * (1 - prior) - posterior * (1 - posterior)
            return (wide * weight[:, None]).T @ wide + full + 1e-12 * np.eye(len(start))

        # Second-order: the dense Hessian is p×p, and a trust region cannot overshoot where probabilities saturate.
        options = {"gtol": 1e-6}
        return minimize(objective, start, jac=True, hess=curvature, method="trust-exact", options=options).x


@dataclass(frozen=True)
class _ConditionalScore:
    """The estimating equations of Stefanski & Carroll 1987 for the logit, with labels given by unbiased weights.

    Given δ = x̄ + yΣβ the label is logistic with logit α + βᵀδ - βᵀΣβ/2, free of the unseen x. Each row enters once
    for each label, weighted by its unbiased indicator. The penalty pulls as it did in the plain fit (`pull`): a penalty
    on the corrected coefficients, which are longer, would shrink them harder the more noise there is.
    """

    published: Matrix
    target: Matrix
    noise: Matrix
    pull: Matrix

    def root(self, start: Rule) -> tuple[Matrix, float, Matrix] | None:
        """Coefficients, intercept and the coefficients' covariance at a root near `start`; None without one."""
        point = np.append(start[1], start[0])
        reach = 0.5 * float(np.sqrt(start[0] @ self.noise @ start[0]))  # longest step, in units of the noise
        for _ in range(40):
            rows, slope = self._equations(point)
            try:
                step = np.linalg.solve(slope, np.append(0.0, self.pull) - rows.sum(axis=0))
            except np.linalg.LinAlgError:
                return None
            with np.errstate(over="ignore"):
                length = float(np.sqrt(max(step[1:] @ self.noise @ step[1:], 0.0)))
            if not np.isfinite(length):
                return None
            step *= min(1.0, reach / length) if length > 0 else 1.0
            point = point + step
            if not float(point[1:] @ self.noise @ point[1:]) <= (2 * _LONGEST * reach) ** 2:
                return None  # drowned directions have roots at infinity
            if np.abs(step).max() <= 1e-7 * (1 + np.abs(point).max()):
                return self._with_covariance(point)
        return None

    def _equations(self, point: Matrix) -> tuple[Matrix, Matrix]:
        """The score of each row, and the derivative of their sum."""
        shift = np.append(0.0, self.noise @ point[1:])
        half = float(point @ shift) / 2
        low = np.column_stack([np.ones(len(self.published)), self.published])
        high = low + shift
        logits = low @ point
        chance_low, chance_high = expit(logits - half), expit(logits + half)
        weight_low, weight_high = -(1 - self.target) * chance_low, self.target * (1 - chance_high)
        rows = weight_low[:, None] * low + weight_high[:, None] * high
        slope = (low * (weight_low * (1 - chance_low))[:, None]).T @ (low - shift)
        slope -= (high * (weight_high * chance_high)[:, None]).T @ high
        slope[1:, 1:] += weight_high.sum() * self.noise
        return rows, slope

    def _with_covariance(self, point: Matrix) -> tuple[Matrix, float, Matrix] | None:
        rows, slope = self._equations(point)
        try:
            bread = np.linalg.inv(slope)
        except np.linalg.LinAlgError:
            return None
        return point[1:], float(point[0]), (bread @ (rows.T @ rows) @ bread.T)[1:, 1:]


def _nearer(score: tuple[Matrix, float, Matrix], calibrated: Rule, published: Matrix, noise: Matrix) -> bool:
    """Whether the conditional score is expected nearer to the truth than the calibrated rule, in logits of clean rows.

    Their squared distance estimates bias² + variance, so calibration's bias² is the distance less the variance of the
    score: compare that with the variance (the focused choice of Claeskens & Hjort 2003). A large variance rules it out.
    """
    centred = published - published.mean(axis=0)
    moments = centred.T @ centred / len(published)
    clean = NoisyGram.of(moments, noise, len(published)).repaired(noise)
    apart = score[0] - calibrated[0]
    variance = float(np.trace(clean @ score[2]))
    strength = float(calibrated[0] @ clean @ calibrated[0])
    longer = float(score[0] @ clean @ score[0]) > _LONGEST**2 * strength
    return not longer and variance < _STABLE * strength and float(apart @ clean @ apart) > 2 * variance
