"""The sum of a variable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from sfumato.errors import PlanError
from sfumato.questions.form import Form
from sfumato.questions.grid import Grid, width
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Corner, Moves
from sfumato.questions.question import Numbers, Question
from sfumato.questions.sums import Entry, Sums

__all__ = ["Sum"]


@final
@dataclass(frozen=True, kw_only=True)
class Sum(Question):
    """Σ x. Where everybody adds one row, Σ (x - middle) is drawn: replacing one moves it by the width of the range.

    >>> Sum(values=("x(P)",), ranges=((3.0, 5.0),)).moves().l2
    5.0
    >>> Sum(values=("x(P)",), ranges=((3.0, 5.0),), everybody=True).moves().l2
    2.0
    """

    form: ClassVar[Form] = Form(
        "sum", (("name", "value", "goal"), ("name", "value", "goal", "groups")), "the sum of a variable", "sum"
    )

    @cached_property
    def _grid(self) -> Grid | None:
        return Grid.of(*self.ranges[0], centred=self.has_public_count and not self.axes) if self.bounded else None

    @property
    def _middle(self) -> float:
        return self._grid.offset if self._grid is not None else 0.0

    def entries(self) -> tuple[Entry, ...]:
        return (Entry(self._grid, (0,), self.all_axes),)

    def corners(self, pure: bool) -> tuple[Corner, ...]:
        assert self._grid is not None
        low, high = self._grid.ends
        return (low,), (high,)

    def met(self) -> tuple[Moves, Moves]:
        return self.met_at_corners()

    def truth(self, sums: Sums) -> Numbers:
        return sums.vector

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        return tuple(Figure.around(float(value), law) for value in self._read(noisy, count))

    def _read(self, noisy: Numbers, count: float | None) -> Numbers:
        if self._middle and count is None:
            raise PlanError("A sum to which everybody contributes is read with the public number of them.")
        return np.ravel(np.asarray(noisy, dtype=np.float64)) + self._middle * float(count or 0.0)

    def number(self, rows: Numbers, count: float | None = None, pure: bool = False, is_open: bool = False) -> Numbers:
        return self._read(rows[:, 0], count)

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        return ((law.deviation, law.half_width),) * self.size

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return variance * self.dimension

    def bounds(self, size: float) -> tuple[float, float]:
        low, high = self.ranges[0]
        return low * size, high * size

    def scale(self, size: float, people: float) -> float:
        return max(width(*self.bounds(size)), 1e-300)

    def limits(self) -> tuple[float, float, str]:
        return -math.inf, math.inf, "the number of individuals has no public bound"

    def words(self) -> str:
        return f"the sum of {self.values[0]} over {self.counted}{self.each}"
