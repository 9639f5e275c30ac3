"""The correlations of some variables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sfumato.questions.form import Form
from sfumato.questions.intervals import NORMAL_95, Figure, NoiseLaw
from sfumato.questions.question import Label, Numbers
from sfumato.questions.spread import Moments, Spread
from sfumato.questions.sums import Sums

__all__ = ["Correlation"]

#: Below so many of its standard errors a variance is not told from 0, and a correlation is not determined.
_DETERMINED = 3.0
#: The variance, in units of half a range, of values whose deviation is a third of that of evenly spread ones.
_NARROW = 1 / 27


@final
@dataclass(frozen=True, kw_only=True)
class Correlation(Spread):
    """Of every two variables; the interval is all r with |covariance - r·√(product of the variances)| within its error.

    >>> pair = Correlation(values=("a(P)", "b(P)"), ranges=((0.0, 1.0), (-5.0, 5.0)), everybody=True)
    >>> pair.dimension, pair.size
    (5, 1)
    """

    form: ClassVar[Form] = Form(
        "correlation",
        (("name", "values", "goal"), ("name", "values", "goal", "groups")),
        "the correlation of every two of some variables",
        "correlation",
    )

    def refusal(self) -> str:
        if len(self.values) < 2:
            return "A correlation is of two variables or more"
        return super().refusal()

    @property
    def kinds(self) -> tuple[tuple[Label, str], ...]:
        return tuple(
            ({"first": self.values[i], "second": self.values[j]}, f"{self.values[i]} with {self.values[j]}")
            for i, j in self.pairs
        )

    def truth(self, sums: Sums) -> Numbers:
        """Of what never varies 0."""
        found = []
        for cell in range(self.cells):
            matrix = self.matrix(sums, cell)
            for i, j in self.pairs:
                scale = math.sqrt(matrix[i, i] * matrix[j, j])
                found.append(min(max(matrix[i, j] / scale, -1.0), 1.0) if scale > 0 else 0.0)
        return np.array(found)

    def of_group(self, moments: Moments | None) -> list[Figure]:
        return [_correlation(moments, i, j) for i, j in self.pairs]

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        moments = self.typical(law, size, pure)
        i, j = self.pairs[0]
        slopes = _slopes(moments, i, j, 0.0, 1 / 3, 1 / 3)
        error = 3 * _deviation(law, slopes)
        return ((min(error, 1.0), min(NORMAL_95 * error, 2.0)),) * self.size

    def otherwise(self, law: NoiseLaw, size: float, pure: bool = False) -> str:
        """A correlation divides by what the variables vary: the less, the larger its error, without an end."""
        moments, (i, j) = self.extreme(law, size, pure), self.pairs[0]
        wide = NORMAL_95 * _deviation(law, moments.slopes_of_covariance(i, j)) / _NARROW
        wide = 2.0 if moments.is_few else min(wide, 2.0)
        return (
            f"Of variables whose standard deviations are a third of those of evenly spread values about ±{wide:.4g}; "
            "the less they vary, the less is known."
        )

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return math.fsum(error**2 for error, _ in self.predicted(NoiseLaw(variance), size, pure))

    def scale(self, size: float, people: float) -> float:
        return 2.0 if all(high > low for low, high in self.ranges) else 1e-300

    @property
    def ceiling(self) -> float:
        return 4.0 * self.size

    def words(self) -> str:
        return f"the correlations of {', '.join(self.values)} over {self.counted}{self.each}"


def _deviation(law: NoiseLaw, slopes: dict[str, float]) -> float:
    return law.deviation * math.sqrt(math.fsum(slope**2 for slope in slopes.values()))


def _slopes(moments: Moments, i: int, j: int, r: float, first: float, second: float) -> dict[str, float]:
    """How noise moves covariance - r·√(first·second), the variances being `first` and `second`."""
    found = dict(moments.slopes_of_covariance(i, j))
    ratio = math.sqrt(second / first)
    for place, slope in ((i, r * ratio / 2), (j, r / ratio / 2)):
        for name, own in moments.slopes_of_variance(place).items():
            found[name] = found.get(name, 0.0) - slope * own
    return found


def _correlation(moments: Moments | None, i: int, j: int) -> Figure:
    unknown = Figure(0.0, 1.0, -1.0, 1.0)
    if moments is None:
        return unknown
    pair = []
    for place in (i, j):
        curved = math.sqrt(2) * moments.curved
        one = moments.figure(moments.variance(place), moments.slopes_of_variance(place), curved)
        if one.value <= max(_DETERMINED * one.standard_error, 0.0):
            return unknown
        pair.append(one.value)
    first, second = pair
    scale, covariance = math.sqrt(first * second), moments.covariance(i, j)
    if moments.law.deviation == 0:
        return Figure.exact(min(max(covariance / scale, -1.0), 1.0))
    wanted = np.linspace(-1.0, 1.0, 2001)
    variances = _quadratic(moments, i, j, first, second)
    spread = moments.law.deviation * np.sqrt(
        np.maximum(variances[0] + wanted * (variances[1] + wanted * variances[2]), 0.0)
    )
    reach = _reach(moments, i, j, first, second)
    inside = wanted[np.abs(covariance - wanted * scale) <= reach * spread]
    value = min(max(covariance / scale, -1.0), 1.0)
    step = wanted[1] - wanted[0]
    low, high = (float(inside[0]) - step, float(inside[-1]) + step) if inside.size else (value - step, value + step)
    error = _deviation(moments.law, _slopes(moments, i, j, value, first, second)) / scale
    return Figure(value, min(error, 1.0), max(min(low, value), -1.0), min(max(high, value), 1.0))


def _quadratic(moments: Moments, i: int, j: int, first: float, second: float) -> tuple[float, float, float]:
    """The squared length of the slopes as a quadratic in r, from its values at -1, 0 and 1."""
    at = [math.fsum(s**2 for s in _slopes(moments, i, j, r, first, second).values()) for r in (-1.0, 0.0, 1.0)]
    return at[1], (at[2] - at[0]) / 2, (at[2] + at[0]) / 2 - at[1]


def _reach(moments: Moments, i: int, j: int, first: float, second: float) -> float:
    """How many deviations hold 95 of 100 draws: 1.96 for Gaussian noise, for others the most over three directions."""
    if not moments.law.laplace:
        return NORMAL_95
    found = [NORMAL_95]
    for r in (-1.0, 0.0, 1.0):
        law = NoiseLaw()
        for slope in _slopes(moments, i, j, r, first, second).values():
            law = law.plus(moments.law.times(slope))
        found.append(law.half_width / law.deviation if law.deviation else NORMAL_95)
    return max(found)
