"""Neural networks on a table whose noise is known: one hidden layer, trained for clean inputs.

In:   a published table, its noise law, labels (as they are or by randomised response) or numbers to predict.
Out:  NoiseAwareNetworkClassifier and NoiseAwareNetworkRegressor, scikit-learn estimators for clean inputs.
Not here: draws of the true rows (release/aware_truth.py), other machines (release/aware_kernel.py and its siblings).
Reference: Farokhi 2020, §2.4 (networks); Carroll et al. 2006, ch. 8 (likelihood with errors in variables).

Given the true x, the published x̄ says no more about y, so that E[y | x̄] = E[f(x) | x̄] for f(x) = E[y | x]. The network
is fitted to that: its outputs, averaged over draws of the true row given the published one, meet the published y
(docs/proofs/table_release.md). An ordinary network fits E[y | x̄] itself, which is f blurred.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sfumato.core.checks import at_least_zero
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError
from sfumato.release.aware_common import Labels, NoiseLike, fit_features, read_labels
from sfumato.release.aware_linear import numeric_target, shared_noise
from sfumato.release.aware_truth import TrueRows, log_ratio
from sfumato.release.noise import ResponseNoise

__all__ = ["NoiseAwareNetworkClassifier", "NoiseAwareNetworkRegressor"]

Matrix = NDArray[np.float64]
_BLOCK = 4096
#: So many starts are tried for so many steps; the best goes on.
_STARTS, _TRIED = 3, 25


@dataclass(frozen=True)
class _Layers:
    """tanh(x·first + bias)·second + offset."""

    first: Matrix
    bias: Matrix
    second: Matrix
    offset: Matrix

    @classmethod
    def begin(cls, width: int, hidden: int, outputs: int, generator: np.random.Generator) -> _Layers:
        return cls(
            generator.normal(size=(width, hidden)) * 1.5 / np.sqrt(width),
            generator.normal(size=hidden),
            generator.normal(size=(hidden, outputs)) / np.sqrt(hidden),
            np.zeros(outputs),
        )

    def flat(self) -> Matrix:
        return np.concatenate([part.ravel() for part in (self.first, self.bias, self.second, self.offset)])

    def shrunk(self) -> Matrix:
        """What the penalty is on: weights, not biases."""
        kept = replace(self, bias=np.zeros_like(self.bias), offset=np.zeros_like(self.offset))
        return kept.flat()

    def with_flat(self, numbers: Matrix) -> _Layers:
        shapes = [part.shape for part in (self.first, self.bias, self.second, self.offset)]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        return _Layers(*(part.reshape(shape) for part, shape in zip(np.split(numbers, ends), shapes, strict=True)))

    def hidden(self, rows: Matrix) -> Matrix:
        return np.tanh(rows @ self.first + self.bias)

    def outputs(self, hidden: Matrix) -> Matrix:
        return hidden @ self.second + self.offset

    def slopes(self, rows: Matrix, hidden: Matrix, wanted: Matrix) -> Matrix:
        """The gradient in all numbers, given that in the outputs."""
        back = (wanted @ self.second.T) * (1 - hidden**2)
        return np.concatenate(
            [(rows.T @ back).ravel(), back.sum(axis=0), (hidden.T @ wanted).ravel(), wanted.sum(axis=0)]
        )


class _Aim(ABC):
    """What the averaged outputs of rows should meet. Abstract."""

    @abstractmethod
    def loss(self, part: slice, outputs: Matrix, weights: Matrix) -> tuple[float, Matrix]:
        """The loss of these rows, summed, and its gradient in `outputs` (rows, draws, outputs)."""


@final
@dataclass(frozen=True)
class _Told(_Aim):
    """-log chance of the published label: averaged over draws, and through the odds of randomised answers."""

    codes: NDArray[np.int64]
    odds: Matrix  # odds[true, published]

    def loss(self, part: slice, outputs: Matrix, weights: Matrix) -> tuple[float, Matrix]:
        chances = _chances(outputs)
        heard = self.odds[:, self.codes[part]].T[:, None, :]
        each = (chances * heard).sum(axis=2)
        average = np.maximum((each * weights).sum(axis=1), 1e-300)
        slope = -(weights / average[:, None])[:, :, None] * chances * (heard - each[:, :, None])
        return -float(np.log(average).sum()), slope[:, :, 1:]


@final
@dataclass(frozen=True)
class _Met(_Aim):
    """Half the squared distance of the averaged output to the published number."""

    target: Matrix

    def loss(self, part: slice, outputs: Matrix, weights: Matrix) -> tuple[float, Matrix]:
        missed = (outputs[:, :, 0] * weights).sum(axis=1) - self.target[part]
        return float(missed @ missed) / 2, (missed[:, None] * weights)[:, :, None]


def _chances(outputs: Matrix) -> Matrix:
    """Of the classes; the first has the output 0."""
    full = np.concatenate([np.zeros((*outputs.shape[:-1], 1)), outputs], axis=-1)
    odds = np.exp(full - full.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


class _NoiseAwareNetwork(BaseEstimator, ABC):
    """What both networks share. Abstract."""

    noise: NoiseLike
    hidden: int
    penalty: float
    draws: int
    max_iter: int
    random_state: int

    def _read(self, X: Any, y: Any) -> Matrix:
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        for name in ("hidden", "draws", "max_iter"):
            given = getattr(self, name)
            if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 1:
                raise InputError(f"{name} must be a whole number of at least 1.")
        at_least_zero(self.penalty, "penalty")
        self._features, published = fit_features(self, X, self.noise)
        return published

    def _train(self, published: Matrix, aim: _Aim, outputs: int) -> None:
        noise = self._features.additive
        ratio = log_ratio(self._features, noise)
        rows = TrueRows.given(published, noise, self.draws, ratio, self.random_state)
        unit = rows.draws.std(axis=(0, 1))
        self._centre, self._unit = rows.draws.mean(axis=(0, 1)), np.where(unit > 0, unit, 1.0)
        rows = replace(rows, draws=(rows.draws - self._centre) / self._unit)
        generator = np.random.default_rng(self.random_state)  # public starts, no noise
        starts = [_Layers.begin(published.shape[1], self.hidden, outputs, generator) for _ in range(_STARTS)]
        tried = [self._descend(start, rows, aim, _TRIED) for start in starts]
        best = min(tried, key=lambda one: one[0])[1]
        self.loss_, self._layers, self.n_iter_ = self._descend(best, rows, aim, self.max_iter)
        _check_finite(self.loss_, *self._layers.flat(), *self._centre, *self._unit)

    def _descend(self, start: _Layers, rows: TrueRows, aim: _Aim, steps: int) -> tuple[float, _Layers, int]:
        def cost(numbers: Matrix) -> tuple[float, Matrix]:
            layers = start.with_flat(numbers)
            loss, slope = _loss(layers, rows, aim)
            shrunk = layers.shrunk()
            return loss + self.penalty / 2 * float(shrunk @ shrunk), slope + self.penalty * shrunk

        found = minimize(cost, start.flat(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
        return float(found.fun), start.with_flat(found.x), int(found.nit)

    def _outputs(self, X: Any) -> Matrix:
        check_is_fitted(self)
        rows = (self._features.clean(self, X) - self._centre) / self._unit
        return self._layers.outputs(self._layers.hidden(rows))


def _check_finite(*numbers: float) -> None:
    if not np.isfinite(numbers).all():
        raise DataError("The numbers of this table are too large for a network to be learned from. Divide them.")


def _loss(layers: _Layers, rows: TrueRows, aim: _Aim) -> tuple[float, Matrix]:
    """The mean loss of all rows and its gradient, block by block."""
    count, draws, width = rows.draws.shape
    total, slope = 0.0, np.zeros(layers.flat().size)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        inputs = rows.draws[part].reshape(-1, width)
        hidden = layers.hidden(inputs)
        outputs = layers.outputs(hidden).reshape(-1, draws, len(layers.offset))
        loss, wanted = aim.loss(part, outputs, rows.weights[part])
        total += loss
        slope += layers.slopes(inputs, hidden, wanted.reshape(-1, len(layers.offset)))
    return total / count, slope / count


@final
class NoiseAwareNetworkClassifier(ClassifierMixin, _NoiseAwareNetwork):
    """A network with one hidden layer for clean inputs, learned from noisy ones; several classes by softmax.

    `noise` is the TableNoise of a release (any noise on numeric columns), or a variance, or a covariance matrix.
    `hidden` units, `penalty`·‖weights‖²/2, `draws` of the true row for each published one, at most `max_iter` steps of
    L-BFGS. `random_state` seeds starts and draws, which hide nothing. `label_noise`: the odds of randomised labels
    where `noise` does not have them. Fitted: `classes_`, `loss_`, `n_iter_`.

    >>> generator = np.random.default_rng(0)
    >>> truth = generator.uniform(-1, 1, (600, 2))
    >>> labels = np.linalg.norm(truth, axis=1) < 0.6
    >>> noisy = truth + generator.normal(scale=0.3, size=truth.shape)
    >>> NoiseAwareNetworkClassifier(0.09, hidden=8, max_iter=100).fit(noisy, labels).score(truth, labels) > 0.9
    True
    """

    def __init__(
        self,
        noise: NoiseLike = 0.0,
        hidden: int = 12,
        penalty: float = 1e-4,
        draws: int = 16,
        max_iter: int = 300,
        label_noise: ResponseNoise | None = None,
        random_state: int = 0,
    ) -> None:
        self.noise = noise
        self.hidden = hidden
        self.penalty = penalty
        self.draws = draws
        self.max_iter = max_iter
        self.label_noise = label_noise
        self.random_state = random_state

    @calm_threads()
    def fit(self, X: Any, y: Any) -> NoiseAwareNetworkClassifier:
        """Learn from the published table X and its labels."""
        published = self._read(X, y)
        labels = read_labels(y, self.noise, self.label_noise)
        check_consistent_length(published, labels.codes)
        self.classes_ = labels.classes
        self._train(published, _Told(labels.codes, _odds(labels)), len(labels.classes) - 1)
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """Class probabilities for clean rows."""
        return _chances(self._outputs(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class for clean rows."""
        places = self.predict_proba(X).argmax(axis=1)
        return self.classes_[places]


def _odds(labels: Labels) -> Matrix:
    size = len(labels.classes)
    return np.full((size, size), labels.move) + np.eye(size) * (labels.keep - labels.move)


@final
class NoiseAwareNetworkRegressor(RegressorMixin, _NoiseAwareNetwork):
    """The same network for a number, by least squares; its parameters are those of NoiseAwareNetworkClassifier.

    Noise on y with mean 0 that is independent of the noise on X needs no correction.

    >>> generator = np.random.default_rng(0)
    >>> truth = generator.uniform(-2, 2, (600, 1))
    >>> noisy = truth + generator.normal(scale=0.4, size=truth.shape)
    >>> model = NoiseAwareNetworkRegressor(0.16, hidden=8, max_iter=100).fit(noisy, np.sin(2 * truth[:, 0]))
    >>> model.score(truth, np.sin(2 * truth[:, 0])) > 0.8
    True
    """

    def __init__(
        self,
        noise: NoiseLike = 0.0,
        hidden: int = 12,
        penalty: float = 1e-4,
        draws: int = 16,
        max_iter: int = 300,
        random_state: int = 0,
    ) -> None:
        self.noise = noise
        self.hidden = hidden
        self.penalty = penalty
        self.draws = draws
        self.max_iter = max_iter
        self.random_state = random_state

    @calm_threads()
    def fit(self, X: Any, y: Any) -> NoiseAwareNetworkRegressor:
        """Learn from the published table X and the target y."""
        published = self._read(X, y)
        target = numeric_target(y)
        check_consistent_length(published, target)
        if shared_noise(self.noise, self._features.encoded).any():
            raise InputError(
                "One release drew the noise of y together with that of X, and they are correlated: use "
                "NoiseAwareLinearRegression, or release y with noise of its own."
            )
        self._mean, self._spread = float(target.mean()), float(target.std()) or 1.0
        _check_finite(self._mean, self._spread)
        self._train(published, _Met((target - self._mean) / self._spread), 1)
        return self

    def predict(self, X: Any) -> Matrix:
        """The expected number for clean rows."""
        outputs = self._outputs(X)[:, 0]
        return self._mean + self._spread * outputs
