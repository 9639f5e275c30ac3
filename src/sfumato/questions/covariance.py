"""The covariances of some variables."""

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

__all__ = ["Covariance"]


@final
@dataclass(frozen=True, kw_only=True)
class Covariance(Spread):
    """All variances and covariances, a matrix that is never negative definite; intervals are those before that.

    >>> pair = Covariance(values=("a(P)", "b(P)"), ranges=((0.0, 1.0), (-5.0, 5.0)), everybody=True)
    >>> pair.dimension, pair.size, round(pair.moves().l2 ** 2, 6), round(pair.moves().l1, 3)
    (5, 4, 8.0, 5.333)
    """

    form: ClassVar[Form] = Form(
        "covariance",
        (("name", "values", "goal"), ("name", "values", "goal", "groups")),
        "the variances and covariances of some variables",
        "covariance",
    )

    @property
    def kinds(self) -> tuple[tuple[Label, str], ...]:
        return tuple(
            ({"first": first, "second": second}, f"{first} with {second}")
            for first in self.values
            for second in self.values
        )

    def truth(self, sums: Sums) -> Numbers:
        return np.concatenate([np.ravel(self.matrix(sums, cell)) for cell in range(self.cells)])

    def of_group(self, moments: Moments | None) -> list[Figure]:
        d = len(self.values)
        free = [[self._entry(moments, i, j) for j in range(d)] for i in range(d)]
        values, vectors = np.linalg.eigh(np.array([[figure.value for figure in row] for row in free]))
        possible = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return [self._told(free[i][j], float(possible[i, j]), i, j) for i in range(d) for j in range(d)]

    def _entry(self, moments: Moments | None, i: int, j: int) -> Figure:
        """In units of half the ranges, before it is moved to what is possible."""
        if moments is None:
            return Figure(0.0, 0.5 if i == j else 1.0, 0.0 if i == j else -1.0, 1.0)
        if i == j:
            return moments.figure(moments.variance(i), moments.slopes_of_variance(i), math.sqrt(2) * moments.curved)
        first, second = min(i, j), max(i, j)
        slopes = moments.slopes_of_covariance(first, second)
        return moments.figure(moments.covariance(first, second), slopes, moments.curved)

    def _told(self, free: Figure, possible: float, i: int, j: int) -> Figure:
        unit = self.half[i] * self.half[j]
        low, high = (0.0, 1.0) if i == j else (-1.0, 1.0)
        cut = free.within(low, high)
        value = min(max(possible, low), high)
        ends = min(cut.low, value), max(cut.high, value)
        return Figure(value, cut.standard_error, *ends).placed(0.0, unit)

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        moments, d = self.typical(law, size, pure), len(self.values)
        found = []
        for i in range(d):
            for j in range(d):
                free, unit = self._entry(moments, i, j), self.half[i] * self.half[j]
                wide = (free.high - free.low) / 2
                found.append((min(free.standard_error, 1.0) * unit, min(wide, 2.0) * unit))
        return tuple(found) * self.cells

    def at_most(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[float, ...]:
        """How far the intervals reach, whatever the values are."""
        moments, d = self.extreme(law, size, pure), len(self.values)
        found = [(self._entry(moments, i, j), self.half[i] * self.half[j]) for i in range(d) for j in range(d)]
        return tuple((2.0 if moments.is_few else min((one.high - one.low) / 2, 2.0)) * unit for one, unit in found)

    def otherwise(self, law: NoiseLaw, size: float, pure: bool = False) -> str:
        return f"Whatever the values are: each within ±{max(self.at_most(law, size, pure)):.4g}."

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        """Each entry in its own unit, and all of them in the largest one."""
        units = [self.half[i] * self.half[j] for i in range(len(self.values)) for j in range(len(self.values))]
        pairs = self.predicted(NoiseLaw(variance), size, pure)[: len(units)]
        own = math.fsum((error / unit) ** 2 for (error, _), unit in zip(pairs, units, strict=True))
        return self.cells * own * self.scale(size, 0.0) ** 2

    def scale(self, size: float, people: float) -> float:
        return max(max((high - low) / 2 for low, high in self.ranges) ** 2, 1e-300)

    @property
    def ceiling(self) -> float:
        return self.size * self.scale(0.0, 0.0) ** 2

    def words(self) -> str:
        return f"the variances and covariances of {', '.join(self.values)} over {self.counted}{self.each}"
