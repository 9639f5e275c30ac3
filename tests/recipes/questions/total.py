"""A question that is not in the wheel: one file, found by looking. What a variable adds up to, told twofold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sfumato.questions.form import Form
from sfumato.questions.grid import Grid
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Corner, Moves
from sfumato.questions.question import Numbers, Question
from sfumato.questions.sums import Entry, Sums

__all__ = ["TwofoldTotal"]


@final
@dataclass(frozen=True, kw_only=True)
class TwofoldTotal(Question):
    """2 Σ x, read off a noisy Σ x."""

    form: ClassVar[Form] = Form("twofold", (("name", "value", "goal"),), "twice the sum of a variable", "twofold")

    @property
    def _grid(self) -> Grid | None:
        return Grid.of(*self.ranges[0]) if self.bounded else None

    def entries(self) -> tuple[Entry, ...]:
        return (Entry(self._grid, (0,), self.all_axes),)

    def corners(self, pure: bool) -> tuple[Corner, ...]:
        assert self._grid is not None
        low, high = self._grid.ends
        return (low,), (high,)

    def met(self) -> tuple[Moves, Moves]:
        return self.met_at_corners()

    def truth(self, sums: Sums) -> Numbers:
        return 2 * sums.vector

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        return tuple(Figure.around(2 * float(value), law.times(2)) for value in np.ravel(noisy))

    def number(self, rows: Numbers, count: float | None = None, pure: bool = False, is_open: bool = False) -> Numbers:
        return 2 * rows[:, 0]

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        twofold = law.times(2)
        return ((twofold.deviation, twofold.half_width),)

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return 4 * variance

    def scale(self, size: float, people: float) -> float:
        low, high = self.ranges[0]
        return 2 * (high - low) * size

    def bounds(self, size: float) -> tuple[float, float]:
        low, high = self.ranges[0]
        return 2 * low * size, 2 * high * size

    def words(self) -> str:
        return f"twice the sum of {self.values[0]} over {self.counted}"
