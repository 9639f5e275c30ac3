"""Attack a mechanism and report the least privacy loss it must have.

In:   a mechanism (or anything that can be sampled), two neighbouring values, a number of trials.
Out:  AuditResult: lower bounds on ε and μ that hold with the stated confidence, and whether they refute the claim.
Not here: proofs. An audit can only show that a claim is false; that it does not is no proof.

The attack thresholds the likelihood ratio, the best test there is (Neyman & Pearson). Half of the trials choose the
threshold and its direction, the other half measure it; error rates are bounded by Clopper & Pearson 1934.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import betaincinv, ndtri

from sfumato.core.checks import number
from sfumato.core.guarantee import GaussianDP, Guarantee, NoGuarantee
from sfumato.errors import InputError

__all__ = ["AuditResult", "Auditable", "audit"]

_BATCHES = 20
_THRESHOLDS = 400
#: Three statements (ε, μ, claim refuted) of two error rates each; together they err with 1 - confidence.
_STATEMENTS = 6


class Auditable(Protocol):
    """What an audit needs: repeated use, a likelihood, a claim."""

    def sample(self, value: Any, trials: int) -> np.ndarray: ...
    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray: ...
    def guarantee(self) -> Guarantee: ...


@dataclass(frozen=True)
class AuditResult:
    """Lower bounds that all hold together with probability `confidence`, whatever the mechanism is."""

    claim: Guarantee
    trials: int
    confidence: float
    delta: float
    epsilon_lower: float
    epsilon_claimed: float
    mu_lower: float
    mu_claimed: float | None
    refuted: bool

    @property
    def tightness(self) -> float:
        """How much of the claim the attack reached: 1 means the claim is as tight as it can be."""
        if self.mu_claimed is not None:
            return self.mu_lower / self.mu_claimed
        return self.epsilon_lower / self.epsilon_claimed if self.epsilon_claimed > 0 else math.inf

    def __str__(self) -> str:
        verdict = "REFUTED: the mechanism is less private than claimed" if self.refuted else "not refuted"
        mu = "" if self.mu_claimed is None else f" (claimed {self.mu_claimed:.4g})"
        return (
            f"claim {self.claim}\n"
            f"ε at δ={self.delta:g} is at least {self.epsilon_lower:.4g} (claimed {self.epsilon_claimed:.4g}); "
            f"μ is at least {self.mu_lower:.4g}{mu}\n"
            f"{verdict} ({self.trials} trials a side, confidence {self.confidence:g})"
        )


def audit(
    mechanism: Auditable,
    neighbours: tuple[Any, Any],
    trials: int = 100_000,
    confidence: float = 0.999,
    *,
    claim: Guarantee | None = None,
    delta: float | None = None,
    progress: bool = False,
) -> AuditResult:
    """Empirical lower bounds on the privacy loss of `mechanism` between two neighbouring values.

    >>> from sfumato.core import REPLACE_ONE, PureDP
    >>> from sfumato.mechanisms import Laplace
    >>> noise = Laplace.for_guarantee(PureDP(1.0), 1.0, REPLACE_ONE, random_state=3)
    >>> audit(noise, (0.0, 1.0), trials=20_000).refuted
    False
    """
    _check(neighbours, trials, confidence)
    promise = mechanism.guarantee() if claim is None else claim
    at_delta = _delta_of(promise) if delta is None else delta
    scores = _scores(mechanism, neighbours, trials, progress)
    half = trials // 2
    choice = [side[:half] for side in scores]
    test = [side[half:] for side in scores]
    level = (1 - confidence) / _STATEMENTS
    best = {
        name: _measure(test, *_best_threshold(choice, level, value), level)
        for name, value in _objectives(promise, at_delta).items()
    }
    return AuditResult(
        claim=promise,
        trials=trials,
        confidence=confidence,
        delta=at_delta,
        epsilon_lower=max(0.0, float(_epsilon(*best["epsilon"], at_delta)[0])),
        epsilon_claimed=promise.epsilon(at_delta),
        mu_lower=max(0.0, float(_mu(*best["mu"])[0])),
        mu_claimed=promise.mu if isinstance(promise, GaussianDP) else None,
        refuted=bool(_excess(*best["claim"], promise)[0] > 0),
    )


def _check(neighbours: tuple[Any, Any], trials: int, confidence: float) -> None:
    if not isinstance(neighbours, tuple | list) or len(neighbours) != 2:
        raise InputError("neighbours must be two values: (with, without) or (before, after).")
    if not isinstance(trials, int) or trials < 100:
        raise InputError("An audit needs at least 100 trials; 100,000 is usual.")
    if not 0.5 <= number(confidence, "confidence") < 1:
        raise InputError("confidence must lie in [0.5, 1), for instance 0.999.")


def _delta_of(claim: Guarantee) -> float:
    """The δ at which to speak of ε: the claim's own where it has one."""
    if isinstance(claim, NoGuarantee) or math.isfinite(claim.epsilon(0.0)):
        return 0.0
    if math.isfinite(claim.epsilon(getattr(claim, "delta_", 1e-5))):
        return getattr(claim, "delta_", 1e-5)
    return next(delta for delta in (1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.5, 0.9) if math.isfinite(claim.epsilon(delta)))


def _scores(mechanism: Auditable, neighbours: tuple[Any, Any], trials: int, progress: bool) -> list[np.ndarray]:
    """Log likelihood ratios of outputs under either value, in batches so that progress can be shown."""
    sizes = [len(part) for part in np.array_split(np.empty(trials), min(_BATCHES, trials))]
    # A seeded mechanism would repeat itself in every batch.
    sizes = [trials] if getattr(mechanism, "random_state", None) is not None else sizes
    result: list[list[np.ndarray]] = [[], []]
    with _progress_bar(len(sizes) * 2, progress) as advance:
        for size in sizes:
            for side in (0, 1):
                outputs = mechanism.sample(neighbours[side], size)
                first = mechanism.log_likelihood(outputs, neighbours[0])
                result[side].append(first - mechanism.log_likelihood(outputs, neighbours[1]))
                advance()
    return [np.concatenate(side) for side in result]


def _progress_bar(total: int, shown: bool):
    if not shown:
        return nullcontext(lambda: None)
    from contextlib import contextmanager

    from rich.progress import Progress

    @contextmanager
    def bar():
        with Progress(transient=True) as progress:
            task = progress.add_task("auditing", total=total)
            yield lambda: progress.advance(task)

    return bar()


Rates = tuple[np.ndarray, np.ndarray]


def _rates(positives: np.ndarray, trials: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson bounds: the true rate lies below `low` or above `high` with probability `level` each."""
    low = np.where(positives > 0, betaincinv(np.maximum(positives, 1e-9), trials - positives + 1, level), 0.0)
    high = np.where(positives < trials, betaincinv(positives + 1, np.maximum(trials - positives, 1e-9), 1 - level), 1.0)
    return low, high


Objective = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _objectives(claim: Guarantee, delta: float) -> dict[str, Objective]:
    """What a threshold is chosen for; each takes (least true positive rates, largest false positive rates)."""
    return {
        "epsilon": lambda low, high: _epsilon(low, high, delta),
        "mu": _mu,
        "claim": lambda low, high: _excess(low, high, claim),
    }


def _epsilon(true_positive: np.ndarray, false_positive: np.ndarray, delta: float) -> np.ndarray:
    return np.log(np.maximum(true_positive - delta, 1e-300) / false_positive)


def _mu(true_positive: np.ndarray, false_positive: np.ndarray) -> np.ndarray:
    return ndtri(np.maximum(true_positive, 1e-300)) - ndtri(np.minimum(false_positive, 1 - 1e-16))


def _excess(true_positive: np.ndarray, false_positive: np.ndarray, claim: Guarantee) -> np.ndarray:
    """By how much the attacker's power exceeds what the claim's trade-off curve allows at this type I error."""
    return true_positive - (1 - claim.tradeoff(np.minimum(1.0, false_positive)))


def _best_threshold(scores: list[np.ndarray], level: float, value: Objective) -> tuple[float, int]:
    """The threshold and direction (+1: first value is the one tested for) with the largest value on these scores."""
    pooled = np.concatenate(scores)
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, _THRESHOLDS), method="nearest"))
    best, found = -math.inf, (0.0, 1)
    for direction in (1, -1):
        tested, other = (scores[0], scores[1]) if direction == 1 else (scores[1], scores[0])
        sizes = np.full(thresholds.size, len(tested))
        above = [_count_from(side, thresholds, direction) for side in (tested, other)]
        low, high = _rates(above[0], sizes, level)[0], _rates(above[1], sizes, level)[1]
        values = value(low, high)
        top = int(np.argmax(values))
        if values[top] > best:
            best, found = values[top], (float(thresholds[top]), direction)
    return found


#: Likelihood ratios of discrete outputs repeat up to rounding; a threshold must not fall between two copies.
_SAME = 1e-9


def _count_from(scores: np.ndarray, thresholds: np.ndarray, direction: int) -> np.ndarray:
    ordered = np.sort(scores)
    if direction == 1:
        return len(ordered) - np.searchsorted(ordered, thresholds - _SAME, side="left")
    return np.searchsorted(ordered, thresholds + _SAME, side="right")


def _measure(scores: list[np.ndarray], threshold: float, direction: int, level: float) -> Rates:
    """Least true positive and largest false positive rate of the chosen test on fresh scores."""
    tested, other = (scores[0], scores[1]) if direction == 1 else (scores[1], scores[0])
    edge = np.array([threshold])
    positives = [_count_from(side, edge, direction) for side in (tested, other)]
    size = np.array([len(tested)])
    return _rates(positives[0], size, level)[0], _rates(positives[1], size, level)[1]
