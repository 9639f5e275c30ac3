"""Probabilities from scores: by a public curve, or by one that is paid for.

In:   scores, and, where it is paid for, the labels of the training rows.
Out:  chances by σ(slope·score + offset); noisy counts of scores and labels, and the curve fitted to them.
Not here: the scores (learn/svc.py), noise (mechanisms/).
Proof: docs/proofs/calibration.md

The public curve has slope 1.75 and no offset: with hinge losses useful scores lie around ±1, and on simulated tables
slopes of 1.5 to 2 lost 0.016 of log-loss on average against the best slope, which lay between 1 and 4.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from sfumato.core.adjacency import Adjacency
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.mechanisms import Gaussian, Laplace

__all__ = ["PUBLIC_CURVE", "chances", "counts_noise", "fitted_curve", "score_counts"]

PUBLIC_CURVE = (1.75, 0.0)
#: Where scores are counted: fifteen edges, the same for every table; scores beyond the outermost count as just there.
_EDGES = np.linspace(-2.8, 2.8, 15)
_CENTRES = np.concatenate([[-3.0], (_EDGES[1:] + _EDGES[:-1]) / 2, [3.0]])
#: How many records the public curve is worth when the counts say little.
_PRIOR = 20.0


def counts_noise(epsilon: float, delta: float, adjacency: Adjacency, models: int) -> Gaussian | Laplace:
    """Noise for `score_counts`: a record stands in one cell for each model, a replaced one leaves it for another."""
    moved = 2 if adjacency.relation == "replace-one" else 1
    size = models * 2 * _CENTRES.size
    if delta:
        return Gaussian.for_guarantee(ApproxDP(epsilon, delta), math.sqrt(moved * models), adjacency, dimension=size)
    return Laplace.for_guarantee(PureDP(epsilon), float(moved * models), adjacency, dimension=size)


def score_counts(scores: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """(models, cells, 2): how many records of either label have a score in each cell. Whole numbers, exactly.

    >>> score_counts(np.array([[0.1], [5.0]]), np.array([[True], [False]]))[0].sum(axis=0)
    array([1., 1.])
    """
    models = scores.shape[1]
    counts = np.zeros((models, _CENTRES.size, 2))
    cells = np.searchsorted(_EDGES, scores)
    for model in range(models):
        np.add.at(counts[model], (cells[:, model], positive[:, model].astype(int)), 1.0)
    return counts


def fitted_curve(counts: np.ndarray) -> tuple[float, float]:
    """Slope and offset of greatest likelihood for noisy counts (cells, 2), drawn towards the public curve.

    >>> none = fitted_curve(np.zeros((16, 2)))
    >>> [round(value, 6) for value in none]
    [1.75, 0.0]
    """
    weights = np.maximum(counts, 0.0)
    start = np.array(PUBLIC_CURVE)

    def loss(curve: np.ndarray) -> float:
        logits = curve[0] * _CENTRES + curve[1]
        likelihood = weights[:, 1] @ log_expit(logits) + weights[:, 0] @ log_expit(-logits)
        return float(-likelihood + _PRIOR * ((curve - start) ** 2).sum())

    found = minimize(loss, start, method="L-BFGS-B", bounds=[(0.01, 100.0), (-20.0, 20.0)]).x
    return float(found[0]), float(found[1])


def chances(scores: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """(rows, classes): σ of each score's curve, scaled to add up to 1 where there are several models.

    >>> chances(np.array([0.0]), np.array([PUBLIC_CURVE]))
    array([[0.5, 0.5]])
    """
    columns = scores[:, None] if scores.ndim == 1 else scores
    raw = expit(columns * curves[:, 0] + curves[:, 1])
    if raw.shape[1] == 1:
        return np.hstack([1 - raw, raw])
    raw = np.maximum(raw, 1e-300)
    return raw / raw.sum(axis=1, keepdims=True)
