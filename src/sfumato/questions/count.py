"""How many individuals, or rows, fulfil a condition."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from sfumato.questions.counted import counted_error, counted_figures, counted_words, left_in_a_cell
from sfumato.questions.form import Form
from sfumato.questions.grid import CELL, CHANCE, ONE
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Corner, Moves
from sfumato.questions.question import Numbers, Question
from sfumato.questions.sums import Entry, Sums

__all__ = ["Count"]


@final
@dataclass(frozen=True, kw_only=True)
class Count(Question):
    """A number of rows. The number of all individuals is public where replacing one is what nobody may notice.

    >>> Count(rows=3).moves().l1, Count(everybody=True).is_public
    (3.0, True)
    """

    form: ClassVar[Form] = Form(
        "count", (("name", "goal"), ("name", "goal", "groups")), "how many individuals fulfil the goal", "count"
    )

    def entries(self) -> tuple[Entry, ...]:
        return (Entry(CHANCE if self.expected else CELL if self.axes else ONE, (), self.all_axes),)

    def corners(self, pure: bool) -> tuple[Corner, ...]:
        return ((Fraction(1),),)

    def met(self) -> tuple[Moves, Moves]:
        return self.met_at_corners()

    def find_moves(self) -> Moves:
        return Moves.none() if self.has_public_count and not self.axes else super().find_moves()

    def truth(self, sums: Sums) -> Numbers:
        return sums.moved(0)

    @property
    def _total_is_public(self) -> bool:
        return bool(self.axes) and self.has_public_count

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        return counted_figures(noisy, law, self._total_is_public, count)

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        own = left_in_a_cell(law, self.size, self._total_is_public)
        return ((own.deviation, own.half_width),) * self.size

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return counted_error(variance, self.dimension, self._total_is_public)

    def law_words(self, noise: str, drawn: float, error: float, pure: bool = False) -> str:
        return counted_words(noise, drawn, error) or super().law_words(noise, drawn, error, pure)

    @property
    def counts_cells(self) -> bool:
        return bool(self.axes)

    @property
    def draws_its_table(self) -> bool:
        return bool(self.axes)

    def scale(self, size: float, people: float) -> float:
        return people

    def limits(self) -> tuple[float, float, str]:
        return 0.0, float("inf"), "the number of individuals has no public bound"

    def words(self) -> str:
        return f"the number of {self.counted}{self.each}"
