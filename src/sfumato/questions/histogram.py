"""How many individuals, or rows, there are in each cell of some variables."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from sfumato.questions.counted import counted_error, counted_figures, counted_words, left_in_a_cell
from sfumato.questions.form import Form
from sfumato.questions.grid import CELL, CHANCE
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Corner, Moves
from sfumato.questions.question import Numbers, Question
from sfumato.questions.sums import Entry, Sums

__all__ = ["Histogram"]


@final
@dataclass(frozen=True, kw_only=True)
class Histogram(Question):
    """Counts of the cells of `axes`; a row is in one cell.

    >>> import numpy as np
    >>> from sfumato.questions.axis import Axis
    >>> counts = Histogram(axes=(Axis("x(P)", levels=("a", "b")),)).figures(np.array([40.0, 7.0]), NoiseLaw(4.0))
    >>> [(figure.value, figure.standard_error, round(figure.low, 2)) for figure in counts]
    [(40.0, 2.0, 36.08), (7.0, 2.0, 3.08)]
    """

    form: ClassVar[Form] = Form(
        "histogram",
        (("name", "cells", "goal"), ("name", "cells", "goal", "edges")),
        "how many individuals there are in each cell",
        "histogram",
    )
    of_expectations: ClassVar[bool] = False

    def entries(self) -> tuple[Entry, ...]:
        return (Entry(CHANCE if self.expected else CELL, (), self.all_axes),)

    def corners(self, pure: bool) -> tuple[Corner, ...]:
        return ((Fraction(1),),)

    def met(self) -> tuple[Moves, Moves]:
        return self.met_at_corners()

    def truth(self, sums: Sums) -> Numbers:
        return sums.moved(0)

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        return counted_figures(noisy, law, self.has_public_count, count)

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        own = left_in_a_cell(law, self.size, self.has_public_count)
        return ((own.deviation, own.half_width),) * self.size

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return counted_error(variance, self.dimension, self.has_public_count)

    def law_words(self, noise: str, drawn: float, error: float, pure: bool = False) -> str:
        return counted_words(noise, drawn, error) or super().law_words(noise, drawn, error, pure)

    @property
    def counts_cells(self) -> bool:
        return True

    @property
    def draws_its_table(self) -> bool:
        return True

    def scale(self, size: float, people: float) -> float:
        return people

    def words(self) -> str:
        return f"the number of {self.counted} for {' and '.join(axis.words for axis in self.axes)}"
