"""The sums of all products of two of some variables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import ClassVar, final

import numpy as np

from sfumato.core.norms import L1, L2
from sfumato.questions.form import Form
from sfumato.questions.grid import Grid, root_up, up
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Moves
from sfumato.questions.question import Label, Numbers, Question
from sfumato.questions.sums import Entry, Sums

__all__ = ["SumsOfProducts"]

#: Products of four numbers outside this range leave the floats.
_SMALLEST, _LARGEST = 1e-60, 1e60
_ROOT_TWO = math.sqrt(2)


@final
@dataclass(frozen=True, kw_only=True)
class SumsOfProducts(Question):
    """Σ x_i x_j for all i and j, drawn in units of each variable's largest absolute value.

    Off-diagonal entries are drawn once, times √2: the Euclidean norm of what is drawn is the matrix's Frobenius norm.

    >>> square = SumsOfProducts(values=("a(P)", "b(P)"), ranges=((0.0, 1.0), (0.0, 3.0)))
    >>> square.dimension, square.size, round(square.moves().l2, 6), round(square.moves().l1, 3)
    (3, 4, 2.0, 3.414)
    """

    form: ClassVar[Form] = Form(
        "moment2", (("name", "values", "goal"),), "the sums of all products of two of the variables", "moment2"
    )
    of_expectations: ClassVar[bool] = False

    def refusal(self) -> str:
        sizes = [max(abs(low), abs(high)) for low, high in self.ranges]
        if any(size and not _SMALLEST <= size <= _LARGEST for size in sizes):
            return (
                f"Second moments need values between {_SMALLEST:g} and {_LARGEST:g} in size. Measure them in another "
                "unit"
            )
        return ""

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations_with_replacement(range(len(self.values)), 2))

    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(self._grid(*pair), pair) for pair in self._pairs)

    def _grid(self, first: int, second: int) -> Grid | None:
        if not self.bounded:
            return None
        ends = [Fraction(a) * Fraction(b) for a in self.ranges[first] for b in self.ranges[second]]
        if first == second:
            low, high = self.ranges[first]
            ends = [Fraction(low) ** 2, Fraction(high) ** 2, *([Fraction(0)] if low <= 0 <= high else [])]
        return Grid.of(-up(-min(ends)), up(max(ends)))

    @property
    def _largest(self) -> Numbers:
        return np.array([max(abs(low), abs(high)) or 1.0 for low, high in self.ranges])

    def factors(self, pure: bool) -> tuple[float, ...]:
        sizes = self._largest
        return tuple(float((1.0 if i == j else _ROOT_TWO) / (sizes[i] * sizes[j])) for i, j in self._pairs)

    def find_moves(self) -> Moves:
        """The smaller of two bounds in each norm: that of the box of the entries, and that of two matrices of rank one.

        Tight where no product changes its sign: then all entries cross their ranges at once.
        """
        ends = [self._ends(place) for place in range(len(self._pairs))]
        reach = [max(abs(low), abs(high)) for low, high in ends]
        alone = sum(reach, Fraction(0)), sum((one * one for one in reach), Fraction(0))
        m = self.rows
        if not self.replaces:
            return Moves(L1(up(m * alone[0])), L2(root_up(m * m * alone[1])), self._attained)
        certain = self.everybody and m == 1
        widths = [high - low if certain else max(high, Fraction(0)) - min(low, Fraction(0)) for low, high in ends]
        box = sum(widths, Fraction(0)), sum((width * width for width in widths), Fraction(0))
        # Of a row's own values, not of expectations: those matrices need not be means of ones of rank one.
        first = min(box[0], 2 * alone[0] if self.expected else alone[0])
        second = min(box[1], 2 * alone[1])
        return Moves(L1(up(m * first)), L2(root_up(m * m * second)), self._attained)

    @property
    def _attained(self) -> bool:
        return all(low >= 0 for low, _ in self.ranges) or all(high <= 0 for _, high in self.ranges)

    def _ends(self, place: int) -> tuple[Fraction, Fraction]:
        """The least and the greatest that a row adds to a drawn number, exactly."""
        grid, factor = self._entries[place].grid, Fraction(self.factors(False)[place])
        assert grid is not None
        low, high = grid.ends
        return low * factor, high * factor

    def truth(self, sums: Sums) -> Numbers:
        return np.ravel(self._full(sums.vector))

    def _full(self, upper: Numbers) -> Numbers:
        size = len(self.values)
        matrix = np.zeros((size, size))
        matrix[np.triu_indices(size)] = upper
        return matrix + np.triu(matrix, 1).T

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        back = 1 / np.array(self.factors(pure))
        values, widths = np.ravel(self._full(np.ravel(noisy) * back)), np.ravel(self._full(back))
        return tuple(Figure.around(float(v), law.times(float(w))) for v, w in zip(values, widths, strict=True))

    def number(self, rows: Numbers, count: float | None = None, pure: bool = False, is_open: bool = False) -> Numbers:
        return rows[:, 0] / self.factors(pure)[0]

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        widths = np.ravel(self._full(1 / np.array(self.factors(pure))))
        return tuple((float(width) * law.deviation, float(width) * law.half_width) for width in widths)

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return variance * float(np.sum(self._full(1 / np.array(self.factors(pure))) ** 2))

    def scale(self, size: float, people: float) -> float:
        return max(float(np.max(self._largest)) ** 2 * people, 1e-300)

    def labels(self) -> tuple[Label, ...]:
        return tuple({"first": first, "second": second} for first in self.values for second in self.values)

    def parts(self) -> tuple[str, ...]:
        return tuple(f"{first} * {second}" for first in self.values for second in self.values)

    def words(self) -> str:
        return f"the sums, over {self.counted}, of all products of two of {', '.join(self.values)}"

    def law_words(self, noise: str, drawn: float, error: float, pure: bool = False) -> str:
        return (
            f"{noise} noise on each sum of products, in units of the attributes' ranges; the entries (i, j) and "
            "(j, i) carry the same noise. The matrix need not be positive semidefinite: project it before inverting."
        )
