"""Losses of all classes' scores at once, that private training is proved for.

In:   scores of K classes for each row, and which class is right.
Out:  chances (the slopes are chances less the right class), and the public bounds of slopes and curvatures.
Not here: losses of one margin (learn/losses.py), privacy (learn/calibration.py).
Proof: docs/proofs/joint_objective.md

The loss is τ·ln Σ_k e^{(s_k + m·[k ≠ y])/τ} - s_y: for m = 0, τ = 1 that of multinomial logistic regression; for m = 1
the hinge max_k(s_k + [k ≠ y]) - s_y of Crammer & Singer with its corners rounded. Chances only depend on differences of
scores, so coefficients live in the K - 1 dimensions that add up to 0 over classes: `basis` turns those into scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.core.checks import moderate
from sfumato.errors import InputError
from sfumato.learn.arrays import largest, namespace, summed, to_device

__all__ = ["JointLoss"]

#: More classes than these are refused.
_MOST_CLASSES = 2000


@dataclass(frozen=True)
class JointLoss:
    """The rounded maximum of K scores less the right one. `full` keeps all K dimensions, for noise that has axes.

    >>> loss = JointLoss(3)
    >>> loss.chances(np.zeros((1, 3)), np.array([0])).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    """

    classes: int
    margin: float = 0.0
    temperature: float = 1.0
    full: bool = False

    def __post_init__(self) -> None:
        moderate(self.temperature, "h")
        if self.classes > _MOST_CLASSES:
            raise InputError(
                f"{self.classes} classes cannot be trained together, and at most {_MOST_CLASSES} can: every step holds "
                "a number for each two of them. KernelMeanClassifier adds up each class by itself. Nothing was spent."
            )

    @property
    def outputs(self) -> int:
        """Numbers of coefficients for each feature."""
        return self.classes if self.full else self.classes - 1

    @property
    def slope_bound(self) -> float:
        """The largest norm of chances less the right class."""
        return math.sqrt(2)

    @property
    def score_curvature(self) -> float:
        """The Hessian in the scores is this times diag p - ppᵀ."""
        return 1 / self.temperature

    @property
    def largest_curvature(self) -> float:
        """diag p - ppᵀ has no eigenvalue above ½."""
        return 1 / (2 * self.temperature)

    @property
    def own_error(self) -> float:
        """Units in the last place by which chances err, given the scores."""
        return 12.0 + 2 * self.classes

    @property
    def at_zero(self) -> float:
        """The loss of a model without coefficients."""
        others = (self.classes - 1) * math.exp(min(700.0, self.margin / self.temperature))
        return self.temperature * math.log(1 + others)

    @cached_property
    def basis(self) -> np.ndarray:
        """K × outputs with orthonormal columns: contrasts of each class with the ones before it, or all axes."""
        if self.full:
            return np.eye(self.classes)
        columns = np.zeros((self.classes, self.classes - 1))
        for place in range(1, self.classes):
            columns[:place, place - 1] = 1.0
            columns[place, place - 1] = -place
        return columns / np.linalg.norm(columns, axis=0)

    def chances(self, scores: Any, right: Any) -> Any:
        """The softmax of (s + m·[k ≠ y])/τ, row by row; `right` is one-hot or a code for each row."""
        library = namespace(scores)
        if self.margin:
            scores = scores + self.margin * (1 - (right if right.ndim == 2 else self.one_hot(right, scores)))
        scaled = scores / self.temperature
        raised = library.exp(scaled - largest(scaled, 1)[:, None])
        return raised / summed(raised, 1)[:, None]

    def one_hot(self, codes: Any, like: Any) -> Any:
        library = namespace(like)
        if library is np:
            return (np.asarray(codes)[:, None] == np.arange(self.classes)).astype(np.float64)
        places = to_device(np.arange(float(self.classes)), like)
        return library.asarray(codes[:, None] == places[None, :], dtype=like.dtype)
