"""What can be asked of many individuals: one noun for what is summed up, drawn, published and told.

In:   public facts alone: ranges, cells, how many rows a person may have, the adjacency.
Out:  Question: what is added up, how far one individual moves it, how the answer is read off, in numbers and in words.
Not here: rows (network/), shares of a budget (plan/), noise (mechanisms/).
Proof: docs/proofs/aggregates.md, docs/proofs/intervals.md

A question is one final class in one file of this folder; everything else asks the class. A linear one (any public
matrix times whole-number sums, and post-processing) needs nothing but its file, its proof note and its row in
tests/laws/question_rows.py.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.adjacency import Relation
from sfumato.questions.axis import Axis
from sfumato.questions.form import Form
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Corner, Moves, moves_of_corners
from sfumato.questions.sums import Entry, Sums

__all__ = ["Basis", "Label", "Question"]

Numbers = NDArray[np.float64]
#: Where a published number stands: one column a variable, and the cell in it.
Label = dict[str, str]
#: What the error of a number rests on before it is drawn: nothing but the noise; the number of individuals, which will
#: be public; what will be drawn itself, such as the noisy size of a group.
Basis = Literal["known", "people", "drawn"]


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """A question about individuals of whom each adds at most `rows` rows. Abstract.

    `values` are the variables added up and `ranges` their public bounds, `axes` sort rows into cells. `everybody`: each
    individual adds exactly one row, whatever the data say. `expected`: rows add what they are expected to.
    """

    values: tuple[str, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    axes: tuple[Axis, ...] = ()
    rows: int = 1
    everybody: bool = False
    relation: Relation = "replace-one"
    expected: bool = False
    #: Where its value stands for a day or a time of day (core/calendar.py).
    calendar: str = ""

    form: ClassVar[Form]
    #: The note in docs/proofs/ that proves its moves.
    proof: ClassVar[str] = "aggregates"
    #: Whether squares or classes of the values are asked for, so that of random values expectations are not enough.
    of_expectations: ClassVar[bool] = True
    #: Whether its answer must be drawn itself: noise on its sums would not be enough.
    only_drawn: ClassVar[bool] = False
    #: The way by which its answer is drawn itself where it may be, as prefer/2 and forbid/2 name it.
    drawn_way: ClassVar[str] = ""
    #: Whether its answer is one of public places, a `step` apart.
    has_places: ClassVar[bool] = False
    #: Whether its cells are the texts that occur, of which no list is public.
    of_texts: ClassVar[bool] = False
    #: Whether a person counts once in each of its numbers, however many rows she has.
    counts_persons: ClassVar[bool] = False
    #: Whether it asks for a place among the values: of days it is a day.
    locates: ClassVar[bool] = False

    # ── public facts ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def variables(self) -> tuple[str, ...]:
        """Everything it reads of a row."""
        return tuple(dict.fromkeys((*self.values, *(axis.variable for axis in self.axes))))

    @property
    def bounded(self) -> bool:
        """Whether one individual's part has public limits."""
        return all(math.isfinite(low) and math.isfinite(high) for low, high in self.ranges)

    @property
    def replaces(self) -> bool:
        return self.relation == "replace-one"

    @property
    def cells(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def has_public_count(self) -> bool:
        """How many rows count is known to everybody."""
        return self.everybody and self.replaces and self.rows == 1

    @property
    def is_public(self) -> bool:
        """Nobody can move it: the number of individuals under replace-one, or a sum of constants."""
        return self.moves().l2 == 0.0

    @property
    def counts_cells(self) -> bool:
        """Whether its numbers are counts of cells, which are not below 0."""
        return False

    @property
    def draws_its_table(self) -> bool:
        """Whether what is drawn is one table of such counts itself (questions/family.py)."""
        return False

    @property
    def is_number(self) -> bool:
        """Whether it is one number, which a formula may read."""
        return self.size == 1

    def refusal(self) -> str:
        """Why nothing of it can be planned, beyond values without bounds; empty where there is no reason."""
        return ""

    @property
    def may_be_drawn(self) -> bool:
        """Whether its answer can be drawn itself as well as read off noisy sums: the planner compares both."""
        return False

    # ── what is added up, and how far one individual moves it ────────────────────────────────────────────────────────

    @abstractmethod
    def entries(self) -> tuple[Entry, ...]:
        """What is added up over individuals, in whole numbers of public grids."""

    def sizes(self) -> tuple[int, ...]:
        """How many cells each entry has."""
        return tuple(math.prod(self.axes[axis].size for axis in entry.axes) for entry in self.entries())

    def total(self, parts: Sequence[Sums]) -> Sums:
        """The sums of several groups of rows together; of none: of nobody."""
        return Sums.total(self.entries(), self.sizes(), parts)

    def factors(self, pure: bool) -> tuple[float, ...]:
        """By what each entry is multiplied before it is drawn; `pure` where the noise is measured in L1."""
        return (1.0,) * len(self.entries())

    def corners(self, pure: bool) -> tuple[Corner, ...]:
        """What a row that counts can add to the numbers drawn for its cell: points whose hull holds it."""
        raise NotImplementedError

    def moves(self) -> Moves:
        """How far one individual moves the drawn numbers. Proof: docs/proofs/aggregates.md"""
        return self._moves

    @cached_property
    def _moves(self) -> Moves:
        return self.find_moves()

    def find_moves(self) -> Moves:
        """The moves, computed once for each question."""
        # Chances add up to one but for rounding: there nobody's row counts for certain.
        certain = self.everybody and self.rows == 1 and not self.expected
        corners = self.corners(True), self.corners(False)
        return moves_of_corners(*corners, self.cells, self.rows, self.relation, certain)

    def met(self) -> tuple[Moves, Moves]:
        """The moves by who counts in one of two neighbours only, and by who counts in both; both at most `moves`.

        Proof: docs/proofs/disjoint_groups.md
        """
        return self.moves(), self.moves()

    def met_at_corners(self) -> tuple[Moves, Moves]:
        """The same, exactly, where all that a row can add is the hull of `corners`."""
        corners = self.corners(True), self.corners(False)
        alone = moves_of_corners(*corners, self.cells, self.rows, "add-remove", False)
        return alone, moves_of_corners(*corners, self.cells, self.rows, "replace-one", True)

    def apart_refusal(self, dataset: str) -> str:
        """Why several institutions cannot draw its answer, with the way out; nothing where they can, or add up sums."""
        return ""

    def written_apart(self) -> Question:
        """The same as one of several groups that a study writes as conditions of their own (network/apart.py)."""
        return self

    def read_off(self, sums: Sums) -> dict[str, Sequence[Any]]:
        """The columns that are read where its answer is drawn itself: `count`, and what else there is of each."""
        raise NotImplementedError(f"{type(self).__name__} is not drawn itself")

    @property
    def dimension(self) -> int:
        """How many numbers are added up."""
        return sum(self.sizes())

    def drawn_size(self, pure: bool) -> int:
        """How many numbers get noise."""
        return self.dimension

    def encode(self, sums: Sums, pure: bool = False) -> Numbers:
        """The numbers that get noise, all of one law: linear in the sums."""
        return np.concatenate([factor * sums.moved(place) for place, factor in enumerate(self.factors(pure))])

    # ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def truth(self, sums: Sums) -> Numbers:
        """The numbers it asks for, without noise."""

    @abstractmethod
    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        """Every published number with its own error and interval, when each drawn number carries noise of `law`.

        `count` is the public number of rows, where it is public.
        """

    @property
    def reads(self) -> int:
        """How many of the drawn numbers the first published one is read off."""
        return 1

    def is_open(self, noisy: Numbers, law: NoiseLaw) -> bool:
        """Whether nothing is known of it but its range."""
        return False

    def number(self, rows: Numbers, count: float | None = None, pure: bool = False, is_open: bool = False) -> Numbers:
        """The first published number for every row of drawn ones: what a formula takes of it."""
        return np.asarray(rows[:, 0], dtype=np.float64)

    # ── before the run ───────────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        """(standard error, half width of the interval) of every published number, for `size` rows that count."""

    def otherwise(self, law: NoiseLaw, size: float, pure: bool = False) -> str:
        """What the intervals may be for values that are not spread evenly; nothing where that makes no difference."""
        return ""

    @abstractmethod
    def error(self, variance: float, size: float, pure: bool = False) -> float:
        """Expected squared error, all published numbers together, when each drawn number has `variance`."""

    def influence(self, size: float, pure: bool = False) -> float:
        """Expected squared error for each unit of variance, while the noise is small."""
        return self.error(1e-12, size, pure) * 1e12

    @abstractmethod
    def scale(self, size: float, people: float) -> float:
        """The width of what one published number can be, when `size` rows of `people` individuals count."""

    def loss(self, variance: float, size: float, people: float, pure: bool = False) -> float:
        """Mean squared error of its numbers relative to their scale: a publication counts once."""
        return self.error(variance, size, pure) / self.size / self.scale(size, people) ** 2

    @property
    def ceiling(self) -> float:
        """No squared error of all numbers together is larger."""
        return math.inf

    @property
    def basis(self) -> Basis:
        """What the predicted errors rest on."""
        return "known"

    def bounds(self, size: float) -> tuple[float, float]:
        """Between which the first number is expected to lie, for predictions of what is computed from it."""
        return 0.25 * size, size

    def limits(self) -> tuple[float, float, str]:
        """Between which the first number lies whatever the data are, and why it may be infinite."""
        return -math.inf, math.inf, "it is a vector, not a number"

    # ── names and words ──────────────────────────────────────────────────────────────────────────────────────────────

    def labels(self) -> tuple[Label, ...]:
        """One line a published number: the variables of its cell, and the cell in each."""
        return tuple(
            {axis.variable: axis.cells[place] for axis, place in zip(self.axes, cell, strict=True)}
            for cell in product(*(range(axis.size) for axis in self.axes))
        )

    @cached_property
    def size(self) -> int:
        """How many numbers are published."""
        return len(self.labels())

    def parts(self) -> tuple[str, ...]:
        """What each published number is called, in order; one empty name where there is one number."""
        if self.size == 1:
            return ("",)
        cells = product(*(range(axis.size) for axis in self.axes))
        named = [[axis.label(place) for axis, place in zip(self.axes, cell, strict=True)] for cell in cells]
        return tuple(", ".join(texts) for texts in named)

    def alike(self) -> tuple[tuple[str, int], ...]:
        """Published numbers, one after the other, that have one predicted error: their name, and how many they are."""
        return tuple((part, 1) for part in self.parts())

    def tables(self) -> tuple[int, ...]:
        """How many published numbers, one after the other, are one table."""
        return (self.size,)

    @property
    def all_axes(self) -> tuple[int, ...]:
        return tuple(range(len(self.axes)))

    @property
    def each(self) -> str:
        """For which groups, in words; empty where there are none."""
        return f", for {' and '.join(axis.words for axis in self.axes)}" if self.axes else ""

    @property
    def counted(self) -> str:
        return "rows" if self.rows > 1 else "individuals"

    @abstractmethod
    def words(self) -> str:
        """What it asks, as "the mean of age(P) over individuals"; the condition is added by network/meaning.py."""

    def law_words(self, noise: str, drawn: float, error: float, pure: bool = False) -> str:
        """What was added to its numbers: the noise's name, its deviation as drawn, the largest standard error."""
        return (
            f"Published = exact + noise. The noise is {noise} with mean 0 and standard deviation {error:.4g}, "
            "independent for each number. Numbers may be negative or fractional: that is the noise."
        )

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"question": self.form.functor}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            found[item.name] = [axis.to_dict() for axis in value] if item.name == "axes" else _plain(value)
        return found

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Question:
        """The inverse of `to_dict` for this class; `question_from_dict` finds the class."""
        fields = {name: _tuples(value) for name, value in record.items() if name not in ("question", "axes")}
        return cls(**fields, axes=tuple(Axis.from_dict(axis) for axis in record["axes"]))


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, Sequence) and not isinstance(value, str) else value
