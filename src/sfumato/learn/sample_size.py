"""How many records a private classifier needs.

In:   a wanted excess loss, ε, δ, the number of features, the length of the best coefficients or function.
Out:  the least number of records by the theorems, or by simulation on a public stand-in; random features for kernels.
Not here: training (learn/base.py), the features themselves (learn/features.py).
Reference: Chaudhuri, Monteleoni & Sarwate 2011, Thms 3, 4, 6 and 7 (constants of learning theory left out, so
estimates and not bounds).
Proof: docs/proofs/objective_perturbation.md, "How many records kernels need"

The printed (100), (115) and (116) are not computed: they lack the term that would be there without privacy, and their
step from a function's size to that of its coefficients does not hold. What is computed instead is proved there.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive, probability
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.learn.base import NothingLearnedWarning
from sfumato.learn.calibration import Method, plan_training
from sfumato.learn.logistic import PrivateLogisticRegression
from sfumato.learn.losses import HuberLoss, LogisticLoss, Loss, SmoothedHinge
from sfumato.learn.training_budget import TrainingBudget

__all__ = ["Against", "expected_excess", "random_features_needed", "sample_size"]

#: What the private model is compared with: linear scores, or functions of a kernel's random features.
Against = Literal["linear", "bounded", "norm"]
_LOSSES: dict[str, type[Loss]] = {"logistic": LogisticLoss, "huber": HuberLoss, "smoothed_hinge": SmoothedHinge}
_MOST_RECORDS = 10**12


def sample_size(
    excess: float,
    epsilon: float,
    delta: float = 0.0,
    *,
    features: int | None = None,
    length: float = 10.0,
    against: Against = "linear",
    method: Method = "objective",
    loss: Literal["logistic", "huber", "smoothed_hinge"] = "logistic",
    confidence: float = 0.95,
    adjacency: Adjacency = REPLACE_ONE,
    simulate: bool = False,
    trials: int = 5,
    seed: int = 0,
) -> int:
    """The least n at which one is expected to lose at most `excess` to a non-private fit.

    Regularised by default ("auto") or with the theorems' own excess/length², whichever needs fewer records.
    `length` is the norm of the coefficients one would be content with, for rows of norm 1 and `features` columns
    (Thms 3 and 4). With a kernel, half of the excess goes to `random_features_needed` features and the columns do not
    matter: against="bounded" compares with f(x) = E a(ω)·φ(x; ω) with |a| at most `length` (Thm 6), against="norm"
    with any function whose norm in the kernel's space is at most `length` (in place of Thm 7). With `simulate` the
    answer is the first of a sequence of doublings at which logistic regression on synthetic rows reaches it on average.

    >>> few = sample_size(0.05, 1.0, 1e-6, features=20)
    >>> sample_size(0.05, 0.1, 1e-6, features=20) > few
    True
    >>> sample_size(0.05, 1.0, features=20, method="output") > 0
    True
    >>> sample_size(0.2, 1.0, 1e-6, length=2.0, against="bounded", loss="smoothed_hinge") > 1000
    True
    """
    excess, length = positive(excess, "excess"), positive(length, "length")
    positive(epsilon, "epsilon")
    probability(delta)
    if not 0 < confidence < 1:
        raise InputError("confidence must lie in (0, 1).")
    if against != "linear":
        if simulate or features is not None:
            raise InputError("A kernel's features follow from excess and length: pass neither features nor simulate.")
        features = 2 * random_features_needed(excess / 2, length, against=against, confidence=(1 + confidence) / 2)
        excess, length = excess / 2, _length_of_features(length, against, (1 - confidence) / 4)
        confidence = (1 + confidence) / 2
    wanted = _Question(features, epsilon, delta, length, method, loss, confidence, adjacency)
    if simulate:
        return _simulated(wanted, excess, trials, seed)
    low, high = 1, 2
    while expected_excess(high, wanted, excess) > excess:
        low, high = high, 2 * high
        if high > _MOST_RECORDS:
            raise InputError(f"Not even {_MOST_RECORDS:.0e} records would do. Ask for a larger excess loss.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if expected_excess(middle, wanted, excess) > excess else (low, middle)
    return high


def random_features_needed(
    excess: float, length: float, *, against: Against = "bounded", confidence: float = 0.95
) -> int:
    """How many pairs of a cosine and a sine reach within `excess` of the expected loss of any function of that length.

    Bounded coefficients: (length/excess)²·(1 + √(2 ln 1/η))². A bounded norm: 2·(length/excess)²/η, for half of the
    failures η = 1 - confidence; the other half is for the length of the coefficients.

    >>> random_features_needed(0.1, 1.0), random_features_needed(0.1, 1.0, against="norm")
    (1189, 4000)
    """
    excess, length = positive(excess, "excess"), positive(length, "length")
    if against not in ("bounded", "norm"):
        raise InputError("against must be 'linear', 'bounded' or 'norm'; linear scores need no random features.")
    failure = 1 - confidence
    spread = (1 + math.sqrt(2 * math.log(1 / failure))) ** 2 if against == "bounded" else 2 / failure
    return math.ceil((length / excess) ** 2 * spread * (1 - 1e-12))


def _length_of_features(length: float, against: Against, failure: float) -> float:
    """The norm of the coefficients of features of norm 1 that stand for the function."""
    return length if against == "bounded" else length / math.sqrt(failure)


class _Question:
    """The public facts of a planned training."""

    def __init__(
        self,
        features: int | None,
        epsilon: float,
        delta: float,
        length: float,
        method: Method,
        loss: str,
        confidence: float,
        adjacency: Adjacency,
    ) -> None:
        if loss not in _LOSSES:
            raise InputError(f"loss must be one of {', '.join(map(repr, _LOSSES))}.")
        if not isinstance(features, int) or isinstance(features, bool) or features < 1:
            raise InputError("features must be a whole number of at least 1.")
        self.features, self.epsilon, self.delta, self.length = features, epsilon, delta, length
        self.method: Method = method
        self.loss = _LOSSES[loss]()
        self.confidence, self.adjacency = confidence, adjacency


def expected_excess(records: int, question: _Question, wanted: float) -> float:
    """Excess loss over coefficients of norm `length`: shrinking, privacy noise, and the sample itself.

    At the better of the default strength and the theorems' wanted/length². Shrinking costs ½Λ·length². Noise b costs
    ‖b‖²/(2n²Λ) (objective); noise z on the solution has no direction of its own, so that it costs (Λ + c/d)‖z‖²/2
    in expectation (output; Thm 3 takes the worst direction, c for c/d). A sample of n leaves ln(1/(1-confidence))/(nΛ)
    of regret (Shalev-Shwartz et al. 2008), as in Thms 3 and 4.
    """
    budget = TrainingBudget(question.epsilon, question.delta, question.adjacency, records, question.features)
    plans = [plan_training(budget, question.loss, question.method)]
    with suppress(PrivacyParameterError):  # so few records do not allow that strength
        plans.append(plan_training(budget, question.loss, question.method, wanted / question.length**2))
    return min(_excess_of(plan.regularization, plan.noise_length, records, question) for plan in plans)


def _excess_of(strength: float, noise: float, records: int, question: _Question) -> float:
    shrinking = strength * question.length**2 / 2
    # ‖b‖/(nΛ) is the noise length, so ‖b‖²/(2n²Λ) = Λ·length²/2.
    bent = 0.0 if question.method == "objective" else question.loss.largest_curvature / question.features
    sampling = math.log(1 / (1 - question.confidence)) / (records * strength)
    return shrinking + (strength + bent) * noise**2 / 2 + min(sampling, question.length / math.sqrt(records))


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
