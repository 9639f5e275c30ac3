"""A mean or a sum of a variable without a public range: bounds are bought, then what is clipped to them is drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, final

import numpy as np

from sfumato.core.domain import Interval
from sfumato.questions.axis import Axis
from sfumato.questions.form import Form
from sfumato.questions.grid import CELL, Grid
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.mean import Mean
from sfumato.questions.moves import Corner, Moves
from sfumato.questions.question import Basis, Label, Numbers, Question
from sfumato.questions.sum import Sum
from sfumato.questions.sums import Entry, Sums
from sfumato.questions.ways import Ways

__all__ = ["KINDS", "Bought", "power_axis"]

#: The least power of two that is told from 0, and the one that everything lies below.
_LEAST, _MOST = -20, 31
_STEP = 2.0**-31
_GRID = Grid(0.0, _STEP, -(2**62), 2**62)
_POWERS = tuple(2.0**power for power in range(_LEAST, _MOST))
_CUTS = (*(-power for power in reversed(_POWERS)), *_POWERS)
_EDGES = (-Interval.WIDEST, *_CUTS, Interval.WIDEST)
_ZERO = len(_POWERS)  # the place of what cannot be told from 0

#: What can be asked of such a variable.
KINDS: dict[str, type[Mean] | type[Sum]] = {"mean": Mean, "sum": Sum}


def power_axis(variable: str) -> Axis:
    """Signed powers of two: what cannot be told from 0, and [2^k, 2^(k+1)) on either side of it."""
    return Axis(variable, (), _CUTS, -Interval.WIDEST, Interval.WIDEST)


@final
@dataclass(frozen=True, kw_only=True)
class Bought(Question):
    """Of `kind`, over bounds that `share` of its budget is spent on. Its first axis is that of the powers.

    What is added up is how many rows there are of each power, and their sum: from these the sum of what is clipped to
    any two powers follows exactly. Further axes are groups: bounds are bought once, over all of them, and every group
    is clipped to the same ones. It is drawn itself (run/publish_bought.py).

    >>> question = Bought(values=("x(P)",), axes=(power_axis("x(P)"),), share=0.1)
    >>> question.bounds_of(np.array([0.0] * 80 + [900.0] + [0.0] * 22), 50.0)
    (256.0, 512.0)
    """

    form: ClassVar[Form] = Form(
        "bought",
        (),
        "a mean or a sum between bounds that are bought",
        "bought",
        Ways(
            "bought",
            {"bounds": "bounds first, then what is clipped to them"},
            ("sfumato.run.publish_bought",),
            summed=True,
            unforetold="a number between bounds that are bought with it, its error is foretold in their width alone",
        ),
    )
    proof: ClassVar[str] = "private_ranges"
    only_drawn: ClassVar[bool] = True

    kind: Literal["mean", "sum"] = "mean"
    share: float = 0.1

    def refusal(self) -> str:
        if self.expected:
            return "bounds are bought for values that people have, and here they are random. Ask about a column"
        return ""

    def entries(self) -> tuple[Entry, ...]:
        return Entry(_GRID, (0,), self.all_axes), Entry(CELL, (), self.all_axes)

    @property
    def powers(self) -> int:
        """How many cells the powers are."""
        return self.axes[0].size

    @property
    def groups(self) -> tuple[Axis, ...]:
        return self.axes[1:]

    def by_power(self, counts: Numbers) -> Numbers:
        """How many rows there are of each power, whatever their group."""
        return np.asarray(counts).reshape(self.powers, -1).sum(axis=1)

    def apart_refusal(self, dataset: str) -> str:
        if self.relation == "replace-one":
            return ""
        return (
            "over several institutions bounds are bought where everybody knows how many individuals there are, which "
            f"adjacency({dataset}, add_remove) keeps secret. Declare its range, or leave that adjacency out"
        )

    def read_off(self, sums: Sums) -> dict[str, Sequence[Any]]:
        units, counts = ([int(one) for one in sums.units[place]] for place in (0, 1))
        return {"sum": units, "count": counts}

    def corners(self, pure: bool) -> tuple[Corner, ...]:
        """Of the counts of powers alone: the sums behind them are never drawn."""
        return ((Fraction(1),),)

    def bounds_of(self, noisy: Numbers, threshold: float) -> tuple[float, float] | None:
        """The ends of the outermost powers whose noisy count reaches the threshold; None where none does."""
        found = np.flatnonzero(np.asarray(noisy) >= threshold)
        if not len(found):
            return None
        first, last = int(found[0]), int(found[-1])
        low = 0.0 if first == _ZERO else _EDGES[first]
        high = 0.0 if last == _ZERO else _EDGES[last + 1]
        return (low, high) if low < high else (0.0, _POWERS[0])

    def between(self, low: float, high: float) -> Mean | Sum:
        """The question about what is clipped to these bounds."""
        return KINDS[self.kind](
            values=self.values,
            ranges=((low, high),),
            axes=self.groups,
            rows=self.rows,
            everybody=self.everybody,
            relation=self.relation,
        )

    def clipped(
        self, low: float, high: float, units: Sequence[int], counts: Sequence[int]
    ) -> list[tuple[Fraction, int]]:
        """Of each group Σ x over its rows, every x moved to the nearer bound where it lies outside; and how many."""
        several = len(units) // self.powers
        return [_clipped(low, high, units[group::several], counts[group::several]) for group in range(several)]

    def encoded(self, asked: Mean | Sum, groups: Sequence[tuple[Fraction, int]], pure: bool) -> Numbers:
        """What is drawn for the question about clipped values, as its own `encode` would give it."""
        grid = asked.entries()[0].grid
        assert grid is not None
        totals = [float(total - count * Fraction(grid.offset)) for total, count in groups]
        numbers = (totals, [float(count) for _, count in groups])
        drawn = zip(numbers, asked.factors(pure), strict=False)
        return np.concatenate([np.array(one) * factor for one, factor in drawn])

    def truth(self, sums: Sums) -> Numbers:
        """Without bounds: of nobody 0."""
        found = self.clipped(-Interval.WIDEST, Interval.WIDEST, list(sums.units[0]), list(sums.units[1]))
        return np.array(
            [float(total / count) if self.kind == "mean" and count else float(total) for total, count in found]
        )

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        raise NotImplementedError  # it is drawn itself

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        """In units of the width of the bounds, which are not known before."""
        return self._within.predicted(law, size, pure)

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        return self._within.error(variance, size, pure)

    def scale(self, size: float, people: float) -> float:
        return self._within.scale(size, people)

    @property
    def is_number(self) -> bool:
        return False

    @property
    def basis(self) -> Basis:
        return "drawn"

    def labels(self) -> tuple[Label, ...]:
        return tuple({**label, "clipped_from": "", "clipped_to": ""} for label in self._within.labels())

    def parts(self) -> tuple[str, ...]:
        return self._within.parts()

    @cached_property
    def _within(self) -> Mean | Sum:
        """The same between any bounds."""
        return self.between(-0.5, 0.5)

    @cached_property
    def counted_moves(self) -> Moves:
        """How far one individual moves the counts of powers, of all groups together."""
        return dataclasses.replace(self, axes=self.axes[:1]).find_moves()

    def words(self) -> str:
        asked = f"the {self.kind} of {self.values[0]} over {self.counted}{self._within.each}"
        return f"{asked}, clipped to bounds that are bought with it"


def _clipped(low: float, high: float, units: Sequence[int], counts: Sequence[int]) -> tuple[Fraction, int]:
    total, step = Fraction(0), Fraction(_STEP)
    for place, (unit, count) in enumerate(zip(units, counts, strict=True)):
        if place == _ZERO and low <= 0 <= high:
            continue
        if _EDGES[place + 1] <= low or (place == _ZERO and high > 0):
            total += count * Fraction(low)
        elif _EDGES[place] >= high or place == _ZERO:
            total += count * Fraction(high)
        else:
            total += unit * step
    return total, sum(counts)
