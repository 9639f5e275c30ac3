"""The worst pair of outputs of one act, in the few forms that composition knows.

In:   nothing but numbers.
Out:  Part, with its Rényi curve and the zCDP and Gaussian parameters it implies.
Not here: adding parts up (core/compose.py), their privacy loss distributions (core/loss_distribution.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from sfumato.core.events.learning import objective_curve
from sfumato.core.guarantee import mu_of_pure
from sfumato.core.renyi import laplace_curve, two_point_curve
from sfumato.errors import PrivacyParameterError

__all__ = ["Part", "PartKind"]

PartKind = Literal["gaussian", "laplace", "two-point", "box", "objective", "concentrated", "renyi"]


@dataclass(frozen=True, order=True)
class Part:
    """The worst pair of outputs of one act, and how often it happened.

    `value` is μ, ε, ε, the shift, μ, ρ or ε by kind; `extra` is δ for "two-point", the strength for "box", the shift
    for "objective" and the order for "renyi".
    """

    kind: PartKind
    value: float
    extra: float = 0.0
    count: int = 1

    def __post_init__(self) -> None:
        if not _valid(self):
            raise PrivacyParameterError("This is not the cost of any act.")

    def rho(self) -> float:
        """The zCDP of all `count` acts; ε-DP has ε²/2 (Bun & Steinke 2016, Prop. 3.3)."""
        match self.kind:
            case "gaussian" | "laplace":
                return self.count * self.value**2 / 2
            case "two-point" if self.extra == 0:
                return self.count * self.value**2 / 2
            case "concentrated":
                return self.count * self.value
        return math.inf

    def square_of_mu(self) -> float:
        """μ² of all `count` acts; ε-DP has the μ whose curve meets the kink of its own (squares of μ add)."""
        match self.kind:
            case "gaussian":
                return self.count * self.value**2
            case "laplace" | "two-point" if self.extra == 0:
                return self.count * mu_of_pure(self.value) ** 2
        return math.inf

    def curve(self, alpha: np.ndarray) -> np.ndarray:
        """Rényi ε of all `count` acts at these orders."""
        match self.kind:
            case "gaussian":
                single = alpha * (self.value**2 / 2)
            case "laplace":
                single = laplace_curve(self.value, alpha)
            case "two-point":
                single = np.full_like(alpha, math.inf) if self.extra > 0 else two_point_curve(self.value, alpha)
            case "box":
                single = np.full_like(alpha, math.inf)
            case "objective":
                single = objective_curve(self.value, self.extra, alpha)
            case "concentrated":
                single = alpha * self.value
            case "renyi":
                single = np.where(alpha <= self.extra, self.value, math.inf)
        return self.count * single


def _valid(part: Part) -> bool:
    return (
        part.kind in get_args(PartKind)
        and all(isinstance(number, float | int) and math.isfinite(number) for number in (part.value, part.extra))
        and part.value > 0
        and part.extra >= 0
        and type(part.count) is int
        and part.count >= 1
    )
