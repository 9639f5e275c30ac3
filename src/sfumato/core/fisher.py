"""How wrong an attacker must be: the Cramér-Rao face of additive noise, worded honestly.

In:   a noise law and, where there is one, the public range of the value.
Out:  AttackerError in the column's own unit.
Not here: the law itself (core/noise.py), the (ε, δ) face (core/guarantee.py).

The Cramér-Rao bound holds for unbiased attackers only. On a bounded domain anyone may guess the middle and err by at
most half the width, whatever the noise: the bound is never presented without that number beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core.domain import Interval
from sfumato.core.noise import Noise
from sfumato.errors import PrivacyParameterError

__all__ = ["AttackerError", "attacker_error", "weighted_error"]


@dataclass(frozen=True)
class AttackerError:
    """Squared errors of two attackers on one number; `constant_guess` is None where the domain is unbounded."""

    unbiased: float
    constant_guess: float | None

    def __str__(self) -> str:
        text = f"an unbiased attacker errs by at least {math.sqrt(self.unbiased):.4g} (root mean square)"
        if self.constant_guess is None:
            return text
        return f"{text}; guessing the middle of the public range errs by at most {math.sqrt(self.constant_guess):.4g}"


def attacker_error(noise: Noise, domain: Interval | None = None) -> AttackerError:
    """Cramér-Rao error of `noise`, and of the constant guess on a bounded domain.

    >>> from sfumato.core.noise import GaussianNoise
    >>> print(attacker_error(GaussianNoise(20.0), Interval(0, 100)))
    an unbiased attacker errs by at least 20 (root mean square); guessing the middle of the public range errs ... 50
    """
    guess = None if domain is None else (domain.width / 2) ** 2
    return AttackerError(1 / noise.fisher_information(), guess)


def weighted_error(information: np.ndarray, weights: np.ndarray) -> float:
    """Least E‖Π^½ (x̂ - x)‖² = Tr(Π I⁻¹) of an unbiased attacker on a whole record (errata to Farokhi 2020, Prop. 2.2).

    >>> weighted_error(np.eye(2), np.diag([0.25, 1.0]))
    1.25
    """
    matrix, weight = np.atleast_2d(information), np.atleast_2d(weights)
    if matrix.shape != weight.shape or matrix.shape[0] != matrix.shape[1]:
        raise PrivacyParameterError("information and weights must be square matrices of one size.")
    try:
        return float(np.trace(np.linalg.solve(matrix, weight)))
    except np.linalg.LinAlgError as error:
        raise PrivacyParameterError(
            "The information matrix is singular: in some direction there is no bound at all."
        ) from error
