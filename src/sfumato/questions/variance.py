"""The variance of a variable, and its standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sfumato.questions.form import Form
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.question import Label, Numbers
from sfumato.questions.spread import Moments, Spread
from sfumato.questions.sums import Sums

__all__ = ["Variance"]

_KINDS = ("variance", "standard deviation")


@final
@dataclass(frozen=True, kw_only=True)
class Variance(Spread):
    """Σ (x - mean)² over the number of rows, and its root: two numbers for each group.

    >>> spread = Variance(values=("x(P)",), ranges=((0.0, 10.0),), everybody=True)
    >>> spread.dimension, spread.size, round(spread.moves().l2, 6)
    (2, 2, 2.0)
    """

    form: ClassVar[Form] = Form(
        "variance",
        (("name", "value", "goal"), ("name", "value", "goal", "groups")),
        "the variance and the standard deviation of a variable",
        "variance",
    )

    @property
    def kinds(self) -> tuple[tuple[Label, str], ...]:
        return tuple(({"statistic": kind}, kind) for kind in _KINDS)

    def truth(self, sums: Sums) -> Numbers:
        found = [float(self.matrix(sums, cell)[0, 0]) for cell in range(self.cells)]
        return np.array([number for value in found for number in (value, math.sqrt(value))])

    def of_group(self, moments: Moments | None) -> list[Figure]:
        scale = self.half[0]
        if moments is None:
            return [Figure(0.0, scale**2 / 2, 0.0, scale**2), Figure(0.0, scale / 2, 0.0, scale)]
        one = moments.figure(moments.variance(0), moments.slopes_of_variance(0), math.sqrt(2) * moments.curved)
        one = one.placed(0.0, scale**2).within(0.0, scale**2)
        root = math.sqrt(one.value)
        low, high = math.sqrt(one.low), math.sqrt(one.high)
        # Of a root near 0 the slope says nothing: there its error is what the interval leaves open.
        error = one.standard_error / (2 * root) if root**2 > 2 * one.standard_error else (high - low) / 2
        return [one, Figure(root, min(error, scale / 2), low, high)]

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        moments, scale = self.typical(law, size, pure), self.half[0]
        one = moments.figure(0.0, moments.slopes_of_variance(0), math.sqrt(2) * moments.curved)
        error, wide = min(one.standard_error, 0.5) * scale**2, min(one.high, 1.0) * scale**2
        root = 2 * math.sqrt(1 / 3) * scale
        return ((error, wide), (min(error / root, scale / 2), min(wide / root, scale))) * self.cells

    def at_most(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[float, float]:
        """How far the intervals of a variance and of a standard deviation reach, whatever the values are.

        A root moves by no more than the root of what its number moves by.
        """
        moments, scale = self.extreme(law, size, pure), self.half[0]
        wide = moments.figure(0.0, moments.slopes_of_variance(0), math.sqrt(2) * moments.curved).high
        wide = (1.0 if moments.is_few else min(wide, 1.0)) * scale**2
        return wide, math.sqrt(wide)

    def otherwise(self, law: NoiseLaw, size: float, pure: bool = False) -> str:
        wide, root = self.at_most(law, size, pure)
        return f"Whatever the values are: the variance within ±{wide:.4g}, the standard deviation within ±{root:.4g}."

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        """The roots are the same numbers once more, and count as such: their own unit is another."""
        pairs = self.predicted(NoiseLaw(variance), size, pure)[::2]
        return 2 * math.fsum(error**2 for error, _ in pairs)

    @property
    def ceiling(self) -> float:
        return 2 * self.cells * self.half[0] ** 4

    def scale(self, size: float, people: float) -> float:
        low, high = self.ranges[0]
        return max(((high - low) / 2) ** 2, 1e-300)

    def words(self) -> str:
        return f"the variance and the standard deviation of {self.values[0]} over {self.counted}{self.each}"
