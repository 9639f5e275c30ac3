"""How many records a private classifier needs.

In:   a wanted excess loss, ε, δ, the number of features, the length of the best coefficients.
Out:  the least number of records by the theorems, or by simulation on a public stand-in.
Not here: training (learn/base.py).
Reference: Chaudhuri, Monteleoni & Sarwate 2011, Thms 3 and 4 (their constants left out, so estimates and not bounds).
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import numpy as np

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive, probability
from sfumato.errors import InputError
from sfumato.learn.base import NothingLearnedWarning
from sfumato.learn.calibration import Method, TrainingBudget, plan_training
from sfumato.learn.logistic import PrivateLogisticRegression
from sfumato.learn.losses import HuberLoss, LogisticLoss

__all__ = ["expected_excess", "sample_size"]

_MOST_RECORDS = 10**12


def sample_size(
    excess: float,
    epsilon: float,
    delta: float = 0.0,
    *,
    features: int,
    length: float = 10.0,
    method: Method = "objective",
    loss: Literal["logistic", "huber"] = "logistic",
    confidence: float = 0.95,
    adjacency: Adjacency = REPLACE_ONE,
    simulate: bool = False,
    trials: int = 5,
    seed: int = 0,
) -> int:
    """The least n for which the default regularisation is expected to lose at most `excess` to a non-private fit.

    `length` is the norm of the coefficients one would be content with, for rows of norm 1. With `simulate` the answer
    is the first of a sequence of doublings at which logistic regression on synthetic rows reaches it on average.

    >>> few = sample_size(0.05, 1.0, 1e-6, features=20)
    >>> sample_size(0.05, 0.1, 1e-6, features=20) > few
    True
    >>> sample_size(0.05, 1.0, features=20, method="output") > 0
    True
    """
    excess, length = positive(excess, "excess"), positive(length, "length")
    positive(epsilon, "epsilon")
    probability(delta)
    if not 0 < confidence < 1:
        raise InputError("confidence must lie in (0, 1).")
    wanted = _Question(features, epsilon, delta, length, method, loss, confidence, adjacency)
    if simulate:
        return _simulated(wanted, excess, trials, seed)
    low, high = 1, 2
    while expected_excess(high, wanted) > excess:
        low, high = high, 2 * high
        if high > _MOST_RECORDS:
            raise InputError(f"Not even {_MOST_RECORDS:.0e} records would do. Ask for a larger excess loss.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if expected_excess(middle, wanted) > excess else (low, middle)
    return high


class _Question:
    """The public facts of a planned training."""

    def __init__(
        self,
        features: int,
        epsilon: float,
        delta: float,
        length: float,
        method: Method,
        loss: str,
        confidence: float,
        adjacency: Adjacency,
    ) -> None:
        if loss not in ("logistic", "huber"):
            raise InputError("loss must be 'logistic' or 'huber'.")
        if not isinstance(features, int) or features < 1:
            raise InputError("features must be a whole number of at least 1.")
        self.features, self.epsilon, self.delta, self.length = features, epsilon, delta, length
        self.method: Method = method
        self.loss = LogisticLoss() if loss == "logistic" else HuberLoss()
        self.confidence, self.adjacency = confidence, adjacency


def expected_excess(records: int, question: _Question) -> float:
    """Excess loss over coefficients of norm `length`: shrinking, privacy noise, and the sample itself.

    Shrinking costs ½Λ·length². Noise b costs ‖b‖²/(2n²Λ) (objective) and noise on the solution (Λ + c)‖z‖²/2 (output).
    A sample of n leaves ln(1/(1-confidence))/(nΛ) of regret (Shalev-Shwartz et al. 2008), as in Thms 3 and 4.
    """
    budget = TrainingBudget(question.epsilon, question.delta, question.adjacency, records, question.features)
    plan = plan_training(budget, question.loss, question.method)
    strength, noise = plan.regularization, plan.noise_length
    shrinking = strength * question.length**2 / 2
    # ‖b‖/(nΛ) is the noise length, so ‖b‖²/(2n²Λ) = Λ·length²/2.
    stiffness = strength if question.method == "objective" else strength + question.loss.largest_curvature
    sampling = math.log(1 / (1 - question.confidence)) / (records * strength)
    return shrinking + stiffness * noise**2 / 2 + min(sampling, question.length / math.sqrt(records))


def _simulated(question: _Question, excess: float, trials: int, seed: int) -> int:
    generator = np.random.default_rng(seed)
    direction = generator.standard_normal(question.features)
    direction *= question.length / np.linalg.norm(direction)
    held_out = _rows(generator, 20_000, direction)
    best = _loss_of(held_out, direction)
    records = 64
    while records <= 2**20:
        losses = []
        for _ in range(trials):
            X, labels = _rows(generator, records, direction)
            model = PrivateLogisticRegression(
                question.epsilon,
                question.delta,
                question.method,
                adjacency=question.adjacency,
                public_size=records,
                fit_intercept=False,
                classes=[0, 1],
                random_state=int(generator.integers(2**31)),
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NothingLearnedWarning)
                losses.append(_loss_of(held_out, model.fit(X, labels).coef_[0]))
        if np.mean(losses) - best <= excess:
            return records
        records *= 2
    raise InputError("Not even a million simulated records would do. Ask for a larger excess loss.")


def _rows(generator: np.random.Generator, count: int, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X: Any = generator.standard_normal((count, direction.size))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    labels = generator.random(count) < 1 / (1 + np.exp(-X @ direction))
    return X, labels.astype(int)


def _loss_of(rows: tuple[np.ndarray, np.ndarray], direction: np.ndarray) -> float:
    X, labels = rows
    return float(LogisticLoss().value((2 * labels - 1) * (X @ direction)).mean())
