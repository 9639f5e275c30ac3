"""Variances, covariances and correlations: what is drawn for them together, and how they are read off it.

In:   the public ranges of some variables.
Out:  Spread, the abstract question; Moments, the drawn sums of one group with the laws of their noise.
Not here: which of the numbers are published (questions/variance.py, covariance.py, correlation.py).
Proof: docs/proofs/spread.md

With t = (x - middle)/(half the width) in [-1, 1] the sums of t, a·(t² - 1/2) and t_i·t_j are drawn together, and the
count beside them where it is not public. One variable: a = 1.665 costs nothing beside the sum of t alone.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from sfumato.core.norms import L1, L2
from sfumato.questions.grid import CELL, CHANCE, ONE, Grid, up, width
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Moves
from sfumato.questions.question import Basis, Label, Numbers, Question
from sfumato.questions.sums import Entry, Sums

__all__ = ["Moments", "Spread"]

#: Products of four numbers outside this range leave the floats.
_SMALLEST, _LARGEST = 1e-60, 1e60
#: The largest weight of a square that costs nothing beside its variable: the root of (11 + 5√5)/8, rounded down.
_FREE = 1.66509
#: A drawn count below so many deviations tells next to nothing of what is divided by it.
_FEW = 6.0


@dataclass(frozen=True)
class Moments:
    """Means of t, t² and t_i·t_j in one group as an observer has them, and how noise in each drawn number moves them.

    `slopes` are of `first`, `square`, `product` and of the count in all of them; a drawn number's noise has `law`.
    """

    size: float
    first: Numbers
    square: Numbers
    product: dict[tuple[int, int], float]
    law: NoiseLaw
    weight: float
    unit: float | None

    def variance(self, place: int) -> float:
        """Without the bias of a squared noisy mean."""
        return float(self.square[place] - self.first[place] ** 2 + (self.law.deviation / self.size) ** 2)

    def covariance(self, i: int, j: int) -> float:
        return self.product[i, j] - float(self.first[i] * self.first[j])

    def slopes_of_variance(self, place: int) -> dict[str, float]:
        """How the noise of each drawn number moves a variance, to first order."""
        slopes = {f"first{place}": -2 * float(self.first[place]), f"square{place}": 1 / self.weight}
        if self.unit is not None:
            slopes["count"] = (2 * float(self.first[place]) ** 2 - float(self.square[place]) + 0.5) / self.unit
        return {name: slope / self.size for name, slope in slopes.items()}

    def slopes_of_covariance(self, i: int, j: int) -> dict[str, float]:
        slopes = {f"first{i}": -float(self.first[j]), f"first{j}": -float(self.first[i]), f"product{i},{j}": 1.0}
        if self.unit is not None:
            slopes["count"] = (2 * float(self.first[i] * self.first[j]) - self.product[i, j]) / self.unit
        return {name: slope / self.size for name, slope in slopes.items()}

    def figure(self, value: float, slopes: dict[str, float], curved: float) -> Figure:
        """A number with noise of these slopes, and of a product of two noisy means whose deviation is `curved`."""
        law = NoiseLaw()
        for slope in slopes.values():
            law = law.plus(self.law.times(slope))
        error = math.hypot(law.deviation, curved)
        wide = law.half_width * (error / law.deviation) if law.deviation else 0.0
        if self.unit is not None and error:
            # Dividing by a noisy count bends the error: what is left of it after the first order.
            wide *= 1 + 2 * (self.law.deviation / (self.unit * self.size)) ** 2
        return Figure(value, error, value - wide, value + wide)

    @property
    def is_few(self) -> bool:
        """Whether a drawn count of this size could not be told from 0, and nothing would be known."""
        return self.unit is not None and self.unit * self.size <= _FEW * self.law.deviation

    @property
    def curved(self) -> float:
        """The deviation of the product of two noisy means' errors."""
        return (self.law.deviation / self.size) ** 2


@dataclass(frozen=True, kw_only=True)
class Spread(Question):
    """Squares and products of centred values, drawn together with their sums. Abstract."""

    of_expectations: ClassVar[bool] = False
    proof: ClassVar[str] = "spread"

    @property
    def is_number(self) -> bool:
        return False

    def refusal(self) -> str:
        if any(width(*ends) and not _SMALLEST <= width(*ends) <= _LARGEST for ends in self.ranges):
            return (
                f"A {self.form.functor} needs ranges between {_SMALLEST:g} and {_LARGEST:g} wide. Measure them in "
                "another unit"
            )
        return ""

    # ── what is drawn ────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def half(self) -> tuple[float, ...]:
        """Half of each range's width."""
        return tuple((width(low, high) / 2) or 1.0 for low, high in self.ranges)

    @cached_property
    def _singles(self) -> tuple[Grid | None, ...]:
        return tuple(Grid.of(*ends, centred=True) if self.bounded else None for ends in self.ranges)

    @property
    def middles(self) -> tuple[float, ...]:
        return tuple(grid.offset if grid is not None else 0.0 for grid in self._singles)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.values)), 2))

    @property
    def draws_count(self) -> bool:
        return not (self.has_public_count and not self.axes)

    def weight(self, pure: bool = False) -> float:
        """By what squares are multiplied: as large as is proved to cost nothing, or nothing that matters."""
        if len(self.values) > 1 or pure:
            return 1.0
        return math.sqrt(2.0) if self.cells > 1 or not self.replaces else _FREE

    def unit(self, pure: bool = False) -> float:
        """By what the count is multiplied: what is left of the move inside a group, or an even part of it."""
        alone, inside = self._alone(pure), self._inside(pure)
        if not self.replaces:
            return math.sqrt(len(self.values)) / 2 if not pure else 0.5
        if pure:
            return inside - alone if self.cells == 1 and inside > alone + 0.25 else 0.5
        room = inside**2 / (2 if self.cells > 1 else 1) - alone**2
        return math.sqrt(room) if room >= 0.25 else 0.5

    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        axes, size = self.all_axes, len(self.values)
        found = [Entry(self._singles[i], (i,), axes) for i in range(size)]
        for i, j in [*((i, i) for i in range(size)), *self.pairs]:
            most = up_product(self.half[i], self.half[j])
            grid = Grid.of(0.0 if i == j else -most, most, centred=True) if self.bounded else None
            found.append(Entry(grid, (i, j), axes, (self.middles[i], self.middles[j])))
        if self.draws_count:
            found.append(Entry(CHANCE if self.expected else CELL if axes else ONE, (), axes))
        return tuple(found)

    def factors(self, pure: bool) -> tuple[float, ...]:
        found = [1 / h for h in self.half]
        found += [self.weight(pure) / h**2 for h in self.half]
        found += [1 / (self.half[i] * self.half[j]) for i, j in self.pairs]
        return (*found, self.unit(pure)) if self.draws_count else tuple(found)

    def _inside(self, pure: bool) -> float:
        """How far a row moves the sums when its values change and it stays in its group."""
        a, d = self.weight(pure), len(self.values)
        if pure:
            k = 4 * a * d + 2 * d * (d - 1)
            return (k + 2 * d) ** 2 / (4 * k)
        return 2.0 if d == 1 else math.sqrt(max(4 * k + 4 * k * (d - k) for k in range(1, d + 1)))

    def _alone(self, pure: bool) -> float:
        """How far the sums of a row's values are from 0, without its count."""
        a, d = self.weight(pure), len(self.values)
        pairs = d * (d - 1) / 2
        return d + a * d / 2 + pairs if pure else math.sqrt(d + a * a * d / 4 + pairs)

    def find_moves(self) -> Moves:
        """The larger of what happens inside a group, to one who leaves, and between two groups."""
        found = {}
        for pure in (True, False):
            unit = self.unit(pure) if self.draws_count else 0.0
            away = self._alone(pure) + unit if pure else math.hypot(self._alone(pure), unit)
            if not self.replaces:
                most = away
            else:
                across = (2 * away if pure else math.sqrt(2) * away) if self.cells > 1 else 0.0
                certain = self.everybody and self.rows == 1 and not self.expected
                most = max(self._inside(pure), across, 0.0 if certain else away)
            found[pure] = self.rows * most * (1 + 2.0**-40)  # floats of square roots, rounded against us
        return Moves(L1(found[True]), L2(found[False]))

    # ── what is read off ─────────────────────────────────────────────────────────────────────────────────────────────

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        return tuple(figure for one in self.groups(noisy, law, count, pure) for figure in self.of_group(one))

    @abstractmethod
    def of_group(self, moments: Moments | None) -> list[Figure]:
        """The published numbers of one group; of its moments None where its drawn count cannot be told from 0."""

    def groups(self, noisy: Numbers, law: NoiseLaw, count: float | None, pure: bool) -> list[Moments | None]:
        """The moments of every group; None where its drawn count cannot be told from 0."""
        rows = np.asarray(noisy, dtype=np.float64).reshape(-1, self.cells)
        return [self._moments(column, law, count, pure) for column in rows.T]

    def _moments(self, drawn: Numbers, law: NoiseLaw, count: float | None, pure: bool) -> Moments | None:
        size, d = float(count if count is not None else 1.0), len(self.values)
        unit = self.unit(pure) if self.draws_count else None
        if unit is not None:
            size = float(drawn[-1]) / unit
            if law.deviation and float(drawn[-1]) <= _FEW * law.deviation:
                return None
        if size < 1.0 and (unit is not None or size <= 0):
            return None
        weight = self.weight(pure)
        return Moments(
            size,
            drawn[:d] / size,
            drawn[d : 2 * d] / (weight * size) + 0.5,
            {pair: float(drawn[2 * d + place]) / size for place, pair in enumerate(self.pairs)},
            law,
            weight,
            unit,
        )

    def matrix(self, sums: Sums, cell: int) -> Numbers:
        """The exact covariances of one group."""
        size, d = float(sums.counts[0][cell]), len(self.values)
        found = np.zeros((d, d))
        if size <= 0:
            return found
        count = Fraction(sums.counts[0][cell])
        single = [self._moved(sums, place, cell) / count for place in range(d)]
        for place, (i, j) in enumerate([*((i, i) for i in range(d)), *self.pairs]):
            total = self._moved(sums, d + place, cell) / count
            grid = self._entries[d + place].grid
            value = float(total + Fraction(grid.offset if grid is not None else 0.0) - single[i] * single[j])
            found[i, j] = found[j, i] = max(value, 0.0) if i == j else value
        return found

    def _moved(self, sums: Sums, place: int, cell: int) -> Fraction:
        grid, unit = self._entries[place].grid, sums.units[place][cell]
        return int(unit) * Fraction(grid.step) if grid is not None else Fraction(float(unit))

    # ── before the run ───────────────────────────────────────────────────────────────────────────────────────────────

    def typical(self, law: NoiseLaw, size: float, pure: bool) -> Moments:
        """A group of the expected size whose means and squares are spread over their ranges."""
        d, own = len(self.values), max(size / self.cells, 1.0)
        unit = self.unit(pure) if self.draws_count else None
        third = np.full(d, math.sqrt(1 / 3))
        return Moments(own, third, np.full(d, 2 / 3), dict.fromkeys(self.pairs, 1 / 3), law, self.weight(pure), unit)

    def extreme(self, law: NoiseLaw, size: float, pure: bool) -> Moments:
        """The same group with every value at an end: there each slope of a variance or covariance is steepest.

        |mean| <= 1, mean² <= square <= 1 and |product - mean·mean'| <= √((1 - mean²)(1 - mean'²)).
        """
        found, d = self.typical(law, size, pure), len(self.values)
        return replace(found, first=np.ones(d), square=np.ones(d), product=dict.fromkeys(self.pairs, 1.0))

    @property
    def basis(self) -> Basis:
        return "drawn"

    # ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def kinds(self) -> tuple[tuple[Label, str], ...]:
        """The numbers of one group: their columns, and what each is called."""

    def labels(self) -> tuple[Label, ...]:
        return tuple({**group, **label} for group in super().labels() for label, _ in self.kinds)

    def parts(self) -> tuple[str, ...]:
        groups = [", ".join(text for text in self._group_texts(place)) for place in range(self.cells)]
        names = [name for _, name in self.kinds]
        found = [", ".join(filter(None, (group, name))) for group in groups for name in names]
        return tuple(found) if len(found) > 1 else ("",)

    def _group_texts(self, cell: int) -> list[str]:
        texts = []
        for axis in reversed(self.axes):
            cell, place = divmod(cell, axis.size)
            texts.append(axis.label(place))
        return texts[::-1]

    def law_words(self, noise: str, drawn: float, error: float, pure: bool = False) -> str:
        beside = ", and to the count" if self.draws_count else ""
        return (
            f"{noise} noise of standard deviation {drawn:.4g} was added to the sums of the centred values, of their "
            f"squares and products in units of half a range{beside}; the numbers were read off these together, "
            "corrected for the square of the noise, and moved to what is possible. Intervals come from the numbers "
            "before that, to first order in the noise: approximate where fewer than about 60 rows count."
        )


def up_product(first: float, second: float) -> float:
    """A product of two floats, rounded up."""
    return up(Fraction(first) * Fraction(second))
