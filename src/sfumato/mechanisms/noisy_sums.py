"""What models are made of where only noisy sums over records are known: products of their rows, and gradients.

In:   what a promise is split into; scores and labels of records; sums that noise was added to, and its deviation.
Out:  the parts of a promise; vectors of a public length; a ridge solution, a bound of the Hessian, the next weights.
Not here: noise; rows and their sums, in one place (learn/linear.py, learn/stepped.py) or over institutions
(centres/linear.py, centres/gradients.py, centres/newton.py).
Proof: docs/proofs/centre_learning.md

The Hessian of the loss is at most c·Σ x xᵀ whatever the weights are, so one noisy matrix serves for all steps: each
step minimises the bound (Böhning & Lindsay 1988), from a point ahead of the last one (Nesterov 1983). Whoever has the
sums has the weights: all but `parts` and `clipped` is post-processing, on which no promise rests.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from sfumato.core.guarantee import GaussianDP, Guarantee
from sfumato.mechanisms.gaussian import largest_mu

__all__ = [
    "FIRST",
    "RIDGE",
    "STEPS",
    "StepLoss",
    "clipped",
    "curvature",
    "hessian_bound",
    "lost_to_noise",
    "next_weights",
    "pack",
    "parts",
    "ridge_solution",
    "slopes",
    "unpack",
]

StepLoss = Literal["logistic", "hinge"]
#: How many gradients follow the sums of products.
STEPS = 14
#: Of μ², for the sums of products; the rest is for the gradients, in equal parts.
FIRST = 0.2
#: The ridge on the weights, in records.
RIDGE = 10.0
#: The hinge is rounded off this far on both sides of its corner.
_ROUNDED = 0.5
#: A part of μ² is left for rounding.
_ROOM = 1 - 1e-9


def parts(guarantee: Guarantee, steps: int, first: float = FIRST) -> tuple[GaussianDP, GaussianDP]:
    """What the sums of products may cost and what each of `steps` gradients, so that all together keep `guarantee`.

    >>> products, gradient = parts(GaussianDP(1.0), 4)
    >>> round(products.mu**2, 6), round(gradient.mu**2, 6)
    (0.2, 0.2)
    """
    whole = largest_mu(guarantee) ** 2 * _ROOM
    return GaussianDP(math.sqrt(whole * first)), GaussianDP(math.sqrt(whole * (1 - first) / steps))


def clipped(vectors: np.ndarray, longest: float, order: Literal[1, 2] = 2) -> np.ndarray:
    """Each row shortened to the length `longest` where it is longer.

    >>> clipped(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(12).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    lengths = np.linalg.norm(vectors, ord=order, axis=1)
    return vectors * np.minimum(1.0, longest / np.maximum(lengths, np.finfo(float).tiny))[:, None]


def slopes(loss: StepLoss, scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The derivative of each record's loss by its scores: a row a record, one column for two classes.

    `wanted` is 1 where the record has the class of the column. Scores of any size, infinite ones too, have a slope.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.nan_to_num(scores)
        if loss == "hinge":
            side = 2 * wanted - 1
            return -side * np.clip((1 + _ROUNDED - side * scores) / (2 * _ROUNDED), 0.0, 1.0)
        if scores.shape[1] == 1:
            return 0.5 * (1 + np.tanh(0.5 * scores)) - wanted
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        return chances / chances.sum(axis=1, keepdims=True) - wanted


def curvature(loss: StepLoss, outputs: int = 1) -> float:
    """The largest second derivative of a loss: the Hessian is at most this times Σ x xᵀ, for each output."""
    if loss == "hinge":
        return 1 / (2 * _ROUNDED)
    return 0.25 if outputs == 1 else 0.5


def lost_to_noise(width: int, deviation: float) -> float:
    """About the largest eigenvalue of a symmetric matrix of noise that has this deviation where it was packed."""
    return math.sqrt(2 * width) * deviation


def hessian_bound(products: np.ndarray, deviation: float, most: float, ridge: float) -> np.ndarray:
    """A bound of the Hessian by noisy Σ x xᵀ and the largest curvature of the loss.

    Negative eigenvalues are noise; what noise may have taken away is put back.
    """
    values, vectors = np.linalg.eigh(products)
    raised = most * (np.maximum(values, 0.0) + lost_to_noise(len(products), deviation)) + ridge
    return (vectors * raised) @ vectors.T


def next_weights(
    bound: np.ndarray, at: np.ndarray, gradient: np.ndarray, ridge: float, before: np.ndarray, step: int
) -> tuple[np.ndarray, np.ndarray]:
    """The weights after step number `step` (from 1), and the point ahead of them where the next gradient is asked for.

    `gradient` is the noisy sum `at` a point, without the ridge's own; `before` are the weights of the step before.
    """
    weights = at - np.linalg.solve(bound, (gradient + ridge * at).T).T
    return weights, weights + step / (step + 3) * (weights - before)


def ridge_solution(products: np.ndarray, pulled: np.ndarray, strength: float) -> np.ndarray:
    """(products₊ + strength)⁻¹ pulled, with negative eigenvalues of the noisy matrix put to zero.

    >>> ridge_solution(np.diag([3.0, -1.0]), np.array([4.0, 1.0]), 1.0).tolist()
    [1.0, 1.0]
    """
    values, vectors = np.linalg.eigh(products)
    return vectors @ ((vectors.T @ pulled) / (np.maximum(values, 0.0) + strength))


def pack(products: np.ndarray) -> np.ndarray:
    """A symmetric matrix as a vector of the same length (Frobenius norm): √2 on what stands twice.

    >>> round(float(np.linalg.norm(pack(np.array([[1.0, 2.0], [2.0, 0.0]])))), 12)
    3.0
    """
    upper = np.triu_indices(len(products), 1)
    return np.concatenate([np.diag(products), math.sqrt(2) * products[upper]])


def unpack(packed: np.ndarray, width: int) -> np.ndarray:
    """The symmetric matrix of which `packed` is the packing.

    >>> unpack(pack(np.array([[1.0, 2.0], [2.0, 0.0]])), 2).round(12).tolist()
    [[1.0, 2.0], [2.0, 0.0]]
    """
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width, 1)] = packed[width:] / math.sqrt(2)
    matrix += matrix.T
    matrix[np.diag_indices(width)] = packed[:width]
    return matrix
