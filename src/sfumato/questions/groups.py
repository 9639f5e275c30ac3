"""Which values of a text occur often enough to be named, and how many people have each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sfumato.core.norms import L1, L2
from sfumato.questions.form import Form
from sfumato.questions.grid import CELL
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Moves
from sfumato.questions.question import Label, Numbers, Question
from sfumato.questions.sums import Entry, Sums
from sfumato.questions.ways import Ways

__all__ = ["FoundGroups"]


@final
@dataclass(frozen=True, kw_only=True)
class FoundGroups(Question):
    """Of the one axis no cell is public: sums carry the texts that occur. Every person counts once in a group.

    It is drawn itself or not at all (run/publish_groups.py): noise on counts would leave the names bare.

    >>> from sfumato.questions.axis import Axis
    >>> FoundGroups(axes=(Axis("city(P)"),), rows=2).words()
    'which values of city(P) occur, and how many persons have each'
    """

    form: ClassVar[Form] = Form(
        "groups",
        (("name", "cells", "goal"),),
        "which values of a text occur often enough to be named, with their counts",
        "groups",
        Ways(
            "groups",
            {"named": "values that enough people have, with noisy counts"},
            ("sfumato.run.publish_groups",),
            numbers="values that nobody listed",
        ),
    )
    of_expectations: ClassVar[bool] = False
    only_drawn: ClassVar[bool] = True
    of_texts: ClassVar[bool] = True
    counts_persons: ClassVar[bool] = True

    @property
    def is_number(self) -> bool:
        return False

    def refusal(self) -> str:
        if self.expected:
            return "groups are of values that people have, and here they are random. Ask about a column"
        return "" if len(self.axes) == 1 else "groups are the values of one variable. Declare one for each of them"

    def entries(self) -> tuple[Entry, ...]:
        return (Entry(CELL, (), (0,)),)

    def total(self, parts: Sequence[Sums]) -> Sums:
        """The same text of several groups of people is one."""
        counts: dict[str, int] = {}
        for part in parts:
            for text, count in zip(part.texts or ("",) * len(part.units[0]), part.units[0], strict=True):
                counts[text] = counts.get(text, 0) + int(count)
        texts = tuple(sorted(counts)) or ("",)
        found = np.array([counts.get(text, 0) for text in texts], dtype=object)
        return Sums(self.entries(), (found,), (found,), sum(part.count for part in parts), texts)

    def find_moves(self) -> Moves:
        """Of one person: so many counts change by one, twice as many when a person is replaced."""
        moved = float(self.rows * (2 if self.replaces else 1))
        return Moves(L1(moved), L2(moved), tight=False)

    def apart_refusal(self, dataset: str) -> str:
        return (
            "groups cannot be found out over several institutions: each would have to show what it has to the others. "
            "List the values, range(rv(P), [a, b | other]), and ask for a histogram"
        )

    def read_off(self, sums: Sums) -> dict[str, Sequence[Any]]:
        return {"text": list(sums.texts), "count": [int(count) for count in sums.units[0]]}

    def truth(self, sums: Sums) -> Numbers:
        return sums.moved(0)

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        return tuple(Figure.around(float(value), law) for value in np.ravel(noisy))

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        return ((law.deviation, law.half_width),)

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return variance

    def scale(self, size: float, people: float) -> float:
        return people

    def labels(self) -> tuple[Label, ...]:
        """Before anything is drawn there is one line, of a group that will be named."""
        return ({self.axes[0].variable: ""},)

    def words(self) -> str:
        return f"which values of {self.axes[0].variable} occur, and how many persons have each"
