"""The mean of a variable: a noisy sum over a public or a noisy count."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from sfumato.questions.form import Form
from sfumato.questions.grid import CELL, CHANCE, ONE, Grid, width
from sfumato.questions.intervals import Figure, NoiseLaw, ratio_figures
from sfumato.questions.moves import Corner, Moves
from sfumato.questions.question import Basis, Numbers, Question
from sfumato.questions.sums import Entry, Sums

__all__ = ["Mean"]


@final
@dataclass(frozen=True, kw_only=True)
class Mean(Question):
    """Σ (x - middle) over the number of rows; the count is drawn beside the sum unless everybody knows it.

    Of several groups each individual is in one: replacing one moves two of them, and what is free for one group is not.

    >>> ages = Mean(values=("age(P)",), ranges=((0.0, 110.0),), everybody=True)
    >>> ages.dimension, ages.moves().l2
    (1, 110.0)
    """

    form: ClassVar[Form] = Form(
        "mean", (("name", "value", "goal"), ("name", "value", "goal", "groups")), "the mean of a variable", "mean"
    )
    locates: ClassVar[bool] = True

    #: Whether it is one of several groups that a study writes as conditions of their own (network/apart.py).
    apart: bool = False

    @property
    def low(self) -> float:
        return self.ranges[0][0]

    @property
    def high(self) -> float:
        return self.ranges[0][1]

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def middle(self) -> float:
        return self._grid.offset if self._grid is not None else 0.0

    @cached_property
    def _grid(self) -> Grid | None:
        return Grid.of(*self.ranges[0], centred=True) if self.bounded else None

    def written_apart(self) -> Mean:
        return dataclasses.replace(self, apart=True)

    @property
    def _public(self) -> bool:
        """The sizes of groups are private, even where the number of all individuals is not."""
        return self.has_public_count and not self.axes

    def unit(self, pure: bool = False) -> float:
        """By what a count is multiplied when it is drawn together with a sum, so that both need the same noise.

        Under replace-one this is as large as costs nothing: an individual that leaves moves (sum, unit·count) by no
        more than one that crosses the range, and between two of several groups both together do not (there is no such
        number in L1). Otherwise it minimises the error of a mean spread over its range.
        """
        several = self.cells > 1 or self.apart
        if pure:
            return self.width / 2 if self.replaces and not several else self.width * 24 ** (-1 / 3)
        if self.replaces:
            return self.width / 2 if several else self.width * math.sqrt(0.75)
        return self.width * 48**-0.25

    def entries(self) -> tuple[Entry, ...]:
        total = Entry(self._grid, (0,), self.all_axes)
        one = CHANCE if self.expected else CELL if self.axes else ONE
        return (total,) if self._public else (total, Entry(one, (), self.all_axes))

    def factors(self, pure: bool) -> tuple[float, ...]:
        return (1.0,) if self._public else (1.0, self.unit(pure))

    def corners(self, pure: bool) -> tuple[Corner, ...]:
        assert self._grid is not None
        counts = tuple(Fraction(factor) for factor in self.factors(pure)[1:])
        return tuple((end, *counts) for end in self._grid.ends)

    def met(self) -> tuple[Moves, Moves]:
        return self.met_at_corners()

    def truth(self, sums: Sums) -> Numbers:
        """Of nobody the lower end of the range."""
        pairs = zip(sums.exact(0), sums.counts[0], strict=True)
        return np.array([float(total / Fraction(count)) if count else self.low for total, count in pairs])

    def _mean(self, total: float, count: float) -> float:
        """A count below one says that there is next to nothing to average; the mean then stays in its range."""
        return min(max(self.middle + total / max(count, 1.0), self.low), self.high)

    @property
    def reads(self) -> int:
        return self.dimension

    def is_open(self, noisy: Numbers, law: NoiseLaw) -> bool:
        """Whether the drawn count cannot be told from 0."""
        return not self._public and float(noisy[1]) <= law.half_width

    def number(self, rows: Numbers, count: float | None = None, pure: bool = False, is_open: bool = False) -> Numbers:
        if self._public:
            means = self.middle + rows[:, 0] / max(float(count if count is not None else 1.0), 1.0)
            return np.clip(means, self.low, self.high)
        drawn = rows[:, 1] / self.unit(pure)
        # Where the count is known to be more than 0 the ratio itself is taken, whose interval is exact.
        means = self.middle + rows[:, 0] / (np.maximum(drawn, 1.0) if is_open else drawn)
        return np.clip(means, self.low, self.high)

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        """With a drawn count error and interval follow from it; where it may be 0 only the range is known."""
        noisy = np.asarray(noisy, dtype=np.float64)
        if self._public:
            size = max(float(count if count is not None else 1.0), 1.0)
            free = self.middle + float(noisy[0]) / size
            return (Figure.around(free, law.times(1 / size)).within(self.low, self.high),)
        return self.ratios(noisy.reshape(2, self.cells), law, pure)

    def ratios(self, noisy: Numbers, law: NoiseLaw, pure: bool) -> tuple[Figure, ...]:
        """The means of sums and counts that were drawn, one a group."""
        totals, counts = noisy[0], noisy[1] / self.unit(pure)
        known = (counts > 0) & (noisy[1] > law.half_width)
        # Where the count cannot be told from 0 nothing is known but the range.
        found = [
            Figure(self._mean(float(total), float(count)), self.width / 2, self.low, self.high)
            for total, count in zip(totals, counts, strict=True)
        ]
        if law.deviation == 0:
            return tuple(Figure.exact(figure.value) for figure in found)
        told = iter(ratio_figures(totals[known], noisy[1][known], law))
        for place in np.flatnonzero(known):
            found[place] = next(told).placed(self.middle, self.unit(pure)).within(self.low, self.high)
        return tuple(found)

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        """With a drawn count the mean is taken as spread over its range, and the rows as spread over the groups."""
        if not self._public:
            law = law.plus(law.times(self.width / math.sqrt(12) / self.unit(pure)))
        own = law.times(1 / max(size / self.cells, 1.0))
        return ((min(own.deviation, self.width / 2), min(own.half_width, self.width)),) * self.size

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        """With a drawn count the first-order expansion for a mean spread over its range."""
        per_count = 0.0 if self._public else variance / self.unit(pure) ** 2
        one = (variance + self.width**2 / 12 * per_count) / max(size / self.cells, 1.0) ** 2
        return self.size * min(one, self.width**2)

    @property
    def ceiling(self) -> float:
        return self.size * self.width**2

    @property
    def basis(self) -> Basis:
        if self.is_public:
            return "known"
        return "people" if self._public else "drawn"

    def bounds(self, size: float) -> tuple[float, float]:
        return self.ranges[0]

    def limits(self) -> tuple[float, float, str]:
        return self.low, self.high, ""

    def scale(self, size: float, people: float) -> float:
        return max(width(self.low, self.high), 1e-300)

    def words(self) -> str:
        return f"the mean of {self.values[0]} over {self.counted}{self.each}"

    def law_words(self, noise: str, drawn: float, error: float, pure: bool = False) -> str:
        wide = f"{noise} noise of standard deviation {drawn:.4g} was added to the sum"
        if self._public:
            return (
                f"{wide}, then divided by the number of contributions, which is public: the error has the same law and "
                "that standard deviation over the number. The mean was put back into its public range."
            )
        return (
            f"{wide} and of {drawn / self.unit(pure):.4g} to the count, then divided: a ratio. Its error follows from "
            "the drawn count, and its interval from both by test inversion (Fieller); where the count cannot be told "
            "from 0 the interval is the whole range. The mean was put back into its public range."
        )
