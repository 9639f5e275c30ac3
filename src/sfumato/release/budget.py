"""Splitting one budget over the columns of a table so that the least is lost.

In:   what each column loses as a function of its share, and a total.
Out:  the shares. Public facts only: no data is looked at.
Not here: the laws (mechanisms/), the certificate: the split is certified afterwards by composing the events.

Shares are settled by a Lagrange multiplier: at price κ every column takes the share that minimises loss + κ·cost by
itself, and κ is bisected until the costs add up. The cost of an ε-DP response next to Gaussian noise is measured by
twice its Kullback-Leibler divergence, 2ε tanh(ε/2) times how often it answers at all, which plays the part of μ²; a
guide for the split, never a proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.special import log_ndtr, ndtr

__all__ = ["Share", "answering", "estimated_delta", "responder", "response_divergence", "response_loss", "split"]

Curve = Callable[[np.ndarray], np.ndarray]

_SHARES = np.geomspace(1e-9, 60.0, 8000)
#: Answers beyond this ε are given as at it (mechanisms/randomized_response.py).
_LARGEST_ANSWER = 40.0
#: Points in the law of the answers' losses.
_MOST_POINTS = 4096


def response_loss(categories: int, epsilon: np.ndarray) -> np.ndarray:
    """Squared error, summed over the categories, of the unbiased estimate of a record's one-hot row.

    With the true category kept at p and each other drawn at q, the indicator (1[y=j] - q)/(p - q) has variance
    p(1-p)/(p-q)² for the true category and q(1-q)/(p-q)² for each other.

    >>> response_loss(2, np.array([1.0, 10.0])).round(4)
    array([1.8413e+00, 1.0000e-04])
    """
    shrink = np.exp(-epsilon)
    keep = 1 / (1 + (categories - 1) * shrink)
    move = keep * shrink
    variance = keep * (1 - keep) + (categories - 1) * move * (1 - move)
    return variance / (keep - move) ** 2


def response_divergence(categories: int, epsilon: np.ndarray) -> np.ndarray:
    """Twice the Kullback-Leibler divergence of the answers for two categories."""
    return 2 * answering(categories, epsilon) * epsilon * np.tanh(epsilon / 2)


def responder(name: str, categories: int, cost: Curve) -> Share:
    """A category that is answered at random, as a taker of the budget."""
    return Share(name, lambda epsilon: response_loss(categories, epsilon), cost)


@dataclass(frozen=True)
class Share:
    """One taker of the budget: its loss and its cost at each of the shares it may get."""

    name: str
    loss: Curve
    cost: Curve


def split(takers: Sequence[Share], total: float) -> dict[str, float]:
    """Shares whose costs add up to at most `total`, minimising the sum of losses.

    >>> same = [Share(name, lambda e: 1 / e**2, lambda e: e) for name in "ab"]
    >>> {name: round(share, 2) for name, share in split(same, 2.0).items()}
    {'a': 1.0, 'b': 1.0}
    """
    losses = np.array([taker.loss(_SHARES) for taker in takers])
    costs = np.array([taker.cost(_SHARES) for taker in takers])
    rows = np.arange(len(takers))
    low, high = -90.0, 90.0
    for _ in range(80):
        price = (low + high) / 2
        best = np.argmin(losses + np.exp(price) * costs, axis=1)
        low, high = (price, high) if costs[rows, best].sum() > total else (low, price)
    best = np.argmin(losses + np.exp(high) * costs, axis=1)
    # The shares lie on a grid: stretch them to use what is left.
    shares = _SHARES[best]
    stretched = shares * min(1.01, max(1.0, math.sqrt(total / costs[rows, best].sum())))
    spent = sum(float(taker.cost(np.array(share))) for taker, share in zip(takers, stretched, strict=True))
    chosen = stretched if spent <= total else shares
    return {taker.name: float(share) for taker, share in zip(takers, chosen, strict=True)}


def answering(categories: int, epsilon: np.ndarray | float) -> np.ndarray:
    """How often the answer is one of any two categories given one of them: all others say nothing about which it was.

    >>> answering(10, np.array([0.1, 1.0, 9.0])).round(3)
    array([0.208, 0.317, 0.999])
    """
    shrink = np.exp(-np.asarray(epsilon))
    return (1 + shrink) / (1 + (categories - 1) * shrink)


def estimated_delta(shares: Mapping[str, float], epsilon: float, sizes: Mapping[str, int] | None = None) -> float:
    """δ(ε) of Gaussian noise of μ = shares["numbers"] and answers of the other ε together; an estimate, not a bound.

    `sizes` says out of how many categories an answer is, two where it says nothing. The loss of an answer is ±ε_k, or 0
    where it is neither of two, so all answers are a law of at most 3^k points, and δ is the Gaussian profile summed
    over them. Beyond a few thousand points they are moved to the nearest of a grid.

    >>> round(estimated_delta({"numbers": 1.0}, 1.0), 6), round(estimated_delta({"colour": 1.0}, 0.5), 4)
    (0.126937, 0.2876)
    """
    losses, masses = np.zeros(1), np.ones(1)
    for name, share in shares.items():
        if name == "numbers":
            continue
        size = min(share, _LARGEST_ANSWER)
        said, right = float(answering((sizes or {}).get(name, 2), size)), 1 / (1 + math.exp(-size))
        steps = [(size, said * right), (-size, said * (1 - right)), *([(0.0, 1 - said)] if said < 1 else [])]
        losses, masses = (
            np.concatenate([losses + step for step, _ in steps]),
            np.concatenate([masses * chance for _, chance in steps]),
        )
        if losses.size > _MOST_POINTS:
            width = np.ptp(losses) / _MOST_POINTS
            cells = np.rint((losses - losses.min()) / width).astype(np.int64)
            losses, masses = losses.min() + width * np.arange(_MOST_POINTS + 1), np.bincount(cells, masses)
    left = epsilon - losses
    mu = shares.get("numbers", 0.0)
    if not mu:
        return float(masses @ -np.expm1(np.minimum(left, 0.0)))
    excess = ndtr(mu / 2 - left / mu) - np.exp(np.minimum(left + log_ndtr(-mu / 2 - left / mu), 0.0))
    return float(masses @ np.maximum(excess, 0.0))
