"""Examples of every question, and its sums by hand: a question without a row here makes discovery fail.

In:   a question; people, each a list of rows (values, cells).
Out:  EXAMPLES; Sums computed in plain Python, sharing no code with network/.
Not here: the laws (tests/laws/test_questions.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.questions.axis import Axis
from sfumato.questions.correlation import Correlation
from sfumato.questions.count import Count
from sfumato.questions.covariance import Covariance
from sfumato.questions.groups import FoundGroups
from sfumato.questions.histogram import Histogram
from sfumato.questions.marginals import Marginals
from sfumato.questions.mean import Mean
from sfumato.questions.moments import SumsOfProducts
from sfumato.questions.quantile import Median, Quantile
from sfumato.questions.question import Question
from sfumato.questions.sum import Sum
from sfumato.questions.sums import Sums
from sfumato.questions.variance import Variance

RELATIONS = ("replace-one", "add-remove")
SEX, AGE = Axis("sex(P)", ("f", "m", "x")), Axis("age(P)", (), (20.0, 65.0), 0.0, 110.0)
CAR, ONE = Axis("car(P)", ("no", "yes")), Axis("one(P)", ("always",))
RANGES = ((-2.0, 5.0), (3.0, 4.0), (-4.0, -1.0), (1e15, 1e15 + 1), (-1 / 3, 1 / 3))


class Row(NamedTuple):
    """A row that counts: its values, and the place of its cell on each axis."""

    values: tuple[float, ...]
    cells: tuple[int, ...]


def _about() -> Iterable[dict]:
    """Who contributes, how often, and what neighbours are."""
    for relation, (everybody, rows) in itertools.product(RELATIONS, ((False, 1), (False, 3), (True, 1))):
        yield {"relation": relation, "everybody": everybody, "rows": rows}


def _of_one(kind: type[Question], ranges=RANGES) -> list[Question]:
    return [kind(values=("x(P)",), ranges=(ends,), **about) for about in _about() for ends in ranges]


def _by_groups(kind: type[Question]) -> list[Question]:
    """Every individual is in one of several groups."""
    return [
        kind(values=("x(P)",), ranges=(ends,), axes=axes, **about)
        for about in _about()
        for ends in RANGES[:3]
        for axes in ((SEX,), (SEX, AGE))
    ]


_PAIRS = (
    ((0.0, 1.0), (0.0, 3.0)),
    ((-2.0, 5.0), (-1.0, 2.0)),
    ((0.5, 1.0), (0.0, 1.0)),
    ((-4.0, -1.0), (-3.0, 0.0)),
    ((-1.0, 1.0), (0.0, 1.0), (0.3, 1.0)),
    ((-1.0, 1.0),),
)


def _of_pairs(kind: type[Question]) -> list[Question]:
    return [
        kind(values=tuple(f"x{i}(P)" for i in range(len(ends))), ranges=ends, axes=axes, **about)
        for about in _about()
        for ends in (_PAIRS[1], _PAIRS[4])
        for axes in ((), (SEX,))
    ]


EXAMPLES: dict[type[Question], list[Question]] = {
    Count: [Count(axes=axes, **about) for about in _about() for axes in ((), (SEX,), (SEX, AGE))],
    Sum: _of_one(Sum) + _by_groups(Sum),
    Mean: _of_one(Mean) + _by_groups(Mean),
    SumsOfProducts: [
        SumsOfProducts(values=tuple(f"x{i}(P)" for i in range(len(ends))), ranges=ends, **about)
        for about in _about()
        for ends in _PAIRS
    ],
    Variance: _of_one(Variance) + _by_groups(Variance),
    Covariance: _of_pairs(Covariance),
    Correlation: _of_pairs(Correlation),
    Quantile: [
        Quantile(values=("x(P)",), ranges=((-2.0, 5.0),), numbers=(0.1, 0.5), step=0.1, **about)
        for about in _about()
        if about["rows"] == 1 or about["relation"] == "replace-one"
    ],
    Median: [Median(values=("x(P)",), ranges=((0.0, 9.0),), axes=(SEX,), step=1.0, relation=one) for one in RELATIONS],
    FoundGroups: [FoundGroups(axes=(Axis("city(P)"),), **about) for about in _about()],
    Marginals: [
        Marginals(axes=axes, whole=ways, **about)
        for about in _about()
        for axes in ((SEX, AGE), (SEX, AGE, CAR), (ONE, SEX, CAR))
        for ways in range(1, len(axes) + 1)
    ],
    Histogram: [Histogram(axes=axes, **about) for about in _about() for axes in ((SEX,), (AGE,), (SEX, AGE))],
}


def sums_by_hand(question: Question, rows: Sequence[Row]) -> Sums:
    """What is added up over rows: every contribution clipped and rounded to its grid, as the entries say."""
    units, counts = [], []
    for entry, size in zip(question.entries(), question.sizes(), strict=True):
        assert entry.grid is not None
        own, number = np.zeros(size, dtype=object), np.zeros(size, dtype=object)
        shape = [question.axes[axis].size for axis in entry.axes]
        for row in rows:
            place = 0
            for axis, length in zip(entry.axes, shape, strict=True):
                place = place * length + row.cells[axis]
            value = math.prod((Fraction(row.values[i]) - Fraction(c) for i, c in entry.centred), start=Fraction(1))
            exact = (value - Fraction(entry.grid.offset)) / Fraction(entry.grid.step)
            own[place] += min(max(round(exact), entry.grid.low), entry.grid.high)
            number[place] += 1
        units.append(own)
        counts.append(number)
    return Sums(question.entries(), tuple(units), tuple(counts), len(rows))


def people(question: Question, generator: np.random.Generator, extra: int = 40) -> list[list[Row]]:
    """Contents of one person's rows: all corners, nothing at all where that may be, and some in between."""
    cells = list(itertools.product(*(range(axis.size) for axis in question.axes)))
    ends = [(low, high, (low + high) / 2, *((0.0,) if low < 0 < high else ())) for low, high in question.ranges]
    corners = [Row(values, cell) for values in itertools.product(*ends) for cell in cells[:4]]
    found = [[row] * question.rows for row in corners]
    if not question.everybody:
        found.append([])
    for _ in range(extra):
        number = 1 if question.everybody else int(generator.integers(0, question.rows + 1))
        found.append([_random_row(question, cells, generator) for _ in range(number)])
    return found


def _random_row(question: Question, cells: list[tuple[int, ...]], generator: np.random.Generator) -> Row:
    values = tuple(float(generator.uniform(low, high)) for low, high in question.ranges)
    return Row(values, cells[int(generator.integers(len(cells)))])
