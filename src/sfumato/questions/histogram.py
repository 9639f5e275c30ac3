"""How many individuals, or rows, there are in each cell of some variables."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from sfumato.questions.consistency import Measured
from sfumato.questions.form import Form
from sfumato.questions.grid import CELL, CHANCE
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Corner
from sfumato.questions.question import Numbers, Question
from sfumato.questions.residual import Workload
from sfumato.questions.sums import Entry, Sums

__all__ = ["Histogram"]


@final
@dataclass(frozen=True, kw_only=True)
class Histogram(Question):
    """Counts of the cells of `axes`; a row is in one cell.

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
    counts_cells: ClassVar[bool] = True
    draws_its_table: ClassVar[bool] = True
    at_centres: ClassVar[str | None] = "histogram"

    def entries(self) -> tuple[Entry, ...]:
        return (Entry(CHANCE if self.expected else CELL, (), self.all_axes),)

    def corners(self, pure: bool) -> tuple[Corner, ...]:
        return ((Fraction(1),),)

    def truth(self, sums: Sums) -> Numbers:
        return sums.moved(0)

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        """Where the number of rows is public, what the noise added to it is taken off again, from every cell alike."""
        values, own = np.ravel(noisy).astype(np.float64), self._left(law)
        if self.has_public_count:
            values = values + ((count or 0.0) - values.sum()) / values.size
        return tuple(Figure.around(value, own) for value in values.tolist())

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        own = self._left(law)
        return ((own.deviation, own.half_width),) * self.size

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return variance * (self.dimension - self.has_public_count)

    def _left(self, law: NoiseLaw) -> NoiseLaw:
        """Of the noise in a published cell, when each drawn number carries `law`."""
        one = ((0,),)
        return Measured(Workload((self.size,), one), one, (1.0,), self.has_public_count).law((0,), {(0,): law})

    def law_words(self, noise: str, drawn: float, error: float) -> str:
        if not error < drawn * (1 - 1e-9):
            return super().law_words(noise, drawn, error)
        return (
            f"Published = exact + noise. The noise is {noise} with mean 0 and standard deviation {drawn:.4g} for each "
            f"number; cells were then made consistent with what is known of their sums, which leaves {error:.4g}. "
            "Errors of different cells are correlated. Numbers may be negative or fractional: that is the noise."
        )

    def scale(self, size: float, people: float) -> float:
        return people

    def words(self) -> str:
        return f"the number of {self.counted} for {' and '.join(axis.words for axis in self.axes)}"
