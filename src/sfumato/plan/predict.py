"""Errors and intervals before anything is drawn: what each published number will carry, and what that assumes.

In:   a dataset being settled (plan/settle.py), a request, its draws.
Out:  Seen: standard errors and half widths of 95 % intervals, with the assumption about sizes in the same line.
Not here: the errors of what was drawn (questions/intervals.py); both rest on the same laws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato.network.aggregate import tables_together
from sfumato.plan.discrete import SampleDraw
from sfumato.plan.draw import Draw, combined_variance, law_of
from sfumato.plan.individual_part import AnyDraw, IndividualPart
from sfumato.plan.linear.individual import LinearDraw, linear_law
from sfumato.plan.plan import Seen
from sfumato.plan.template import Numbers
from sfumato.questions.intervals import NoiseLaw
from sfumato.questions.question import Question

if TYPE_CHECKING:
    from sfumato.plan.request import Request
    from sfumato.plan.settle import Settling

__all__ = ["Predicting", "seen_of_one", "variance_of"]


def variance_of(name: str, draws: Sequence[AnyDraw]) -> float:
    """Of one number of a node, its draws combined by precision; 0 where there are none."""
    own = tuple(draw for draw in draws if isinstance(draw, Draw) and draw.node == name)
    return combined_variance(own) if own else 0.0


@dataclass(frozen=True)
class Predicting:
    """What one request will show of sums, and of what is computed from them."""

    settling: Settling
    request: Request
    draws: tuple[AnyDraw, ...]

    @property
    def _pure(self) -> bool:
        return self.settling.law.pure

    def seen(self, name: str) -> Seen:
        """One line of the plan."""
        if name not in self.settling.aggregates:
            return self._computed(name)
        question = self.settling.questions[name]
        size = self.settling.count_of(name)
        numbers = self._consistent.get(name) or question.predicted(self._law(name), size, self._pure)
        error = question.error(variance_of(name, self.draws), size, self._pure)
        if name in self._consistent:
            error = math.fsum(one**2 for one, _ in numbers)
        numbers_told, labels, counts = _by_kind(question, numbers)
        return Seen(
            name,
            error,
            max(width for _, width in numbers),
            question.size,
            "" if question.basis == "known" else self._noted(name, question, size),
            numbers_told,
            labels,
            question.basis,
            counts,
        )

    def _noted(self, name: str, question: Question, size: float) -> str:
        """What is assumed of sizes, and what else the errors may be where the values lie otherwise."""
        return f"{self._note(name)} {question.otherwise(self._law(name), size, self._pure)}".strip()

    @cached_property
    def _consistent(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """(standard error, half width) of tables that are made consistent with others of the publication."""
        own = [self.settling.aggregates[name] for name in self.request.nodes if name in self.settling.aggregates]
        found: dict[str, tuple[tuple[float, float], ...]] = {}
        for family in tables_together(own):
            found |= family.predicted({name: self._law(name) for name, _ in family.members})
        return found

    def _law(self, name: str) -> NoiseLaw:
        own = [draw for draw in self.draws if isinstance(draw, Draw) and draw.node == name and draw.group is None]
        return law_of(own) if own else NoiseLaw()

    def _behind(self, name: str) -> list[str]:
        settling = self.settling
        return [name] if name in settling.aggregates else sorted(settling.sums_behind(name, self.request))

    def _is_unknown(self, name: str) -> bool:
        """Whether nothing says how many count in a sum."""
        return not self.settling.aggregates[name].question.everybody and name not in self.settling.sizes

    def _computed(self, name: str) -> Seen:
        """Something computed from aggregates, simulated over them spread on their ranges."""
        errors = self._simulated(name)
        error, width = float(np.mean(errors**2)), _quantile(errors)
        note = f"Over aggregates spread on their ranges. {self._note(name)}".strip() if error else ""
        # n / n is 1 wherever it was simulated; what is said of it after the draw is said in its file.
        basis = "drawn" if self._scales(name) else "known"
        return Seen(name, error, width, 1, note, ((math.sqrt(error), width),), (), basis)

    def _scales(self, name: str) -> dict[str, float]:
        """How noisy each sum behind it is, in units of the noise; without those that are exact."""
        settling = self.settling
        scales = {}
        for other in self._behind(name):
            size = settling.count_of(other)
            error = settling.questions[other].error(variance_of(other, self.draws), size, self._pure)
            if error > 0:
                scales[other] = math.sqrt(error / settling.law.variance)
        return scales

    def _simulated(self, name: str) -> Numbers:
        settling = self.settling
        errors = settling.template_above(name).simulated_errors(self._scales(name), [name], settling.noise)[name]
        return np.where(np.isnan(errors), math.inf, errors)  # 0/0 may be anything

    def _note(self, name: str) -> str:
        """What a prediction assumes about sizes, and what it would be for others, in one line."""
        settling = self.settling
        unknown = [one for one in self._behind(name) if self._is_unknown(one)]
        guessed = settling.dataset not in settling.sizes
        if not unknown and not guessed:
            return f"For {settling.count_of(name):,.6g} contributions." if name in settling.aggregates else ""
        size, tenth = settling.size, settling.size / 10
        rows = max((settling.aggregates[one].question.rows for one in unknown), default=1)
        many, few = self._width_if(name, rows * size, unknown), self._width_if(name, tenth, unknown)
        if rows > 1:
            taken = max(settling.count_of(one) for one in unknown)
            return (
                f"For {taken:,.0f} contributions; ±{many:.4g} if all {size:,.6g} individuals have {rows} rows that "
                f"qualify, ±{few:.4g} if {tenth:,.6g} rows do."
            )
        if unknown:
            taken = f"For {size / 2:,.6g} of {size:,.6g}"
            return f"{taken}; ±{many:.4g} if all {size:,.6g} qualify, ±{few:.4g} if {tenth:,.6g} do."
        return f"±{many:.4g} if there are {size:,.6g}, ±{few:.4g} if there are {tenth:,.6g}."

    def _width_if(self, name: str, size: float, unknown: Sequence[str]) -> float:
        settling = self.settling
        sizes = {**settling.sizes, **dict.fromkeys(unknown, size)}
        other = replace(settling, sizes=sizes, size=settling.size if unknown else size)
        return replace(self, settling=other)._width(name)

    def _width(self, name: str) -> float:
        settling = self.settling
        if name not in settling.aggregates:
            return _quantile(self._simulated(name))
        return settling.questions[name].predicted(self._law(name), settling.count_of(name), self._pure)[0][1]


def _by_kind(
    question: Question, numbers: tuple[tuple[float, float], ...]
) -> tuple[tuple[tuple[float, float], ...], tuple[str, ...], tuple[int, ...]]:
    """Of numbers that are alike the first alone; else the first of each kind, the kinds, how many there are of each."""
    if len(set(numbers)) == 1:
        return numbers[:1], (), ()
    groups = question.alike()
    counts = tuple(count for _, count in groups)
    starts = np.cumsum([0, *counts[:-1]])
    labels = tuple(label for label, _ in groups)
    return tuple(numbers[start] for start in starts), labels, counts if max(counts, default=1) > 1 else ()


def _quantile(errors: Numbers) -> float:
    """What 95 of 100 errors stay below; one of them, because between infinite ones there is nothing."""
    return float(np.quantile(np.abs(errors), 0.95, method="higher"))


def seen_of_one(
    part: IndividualPart, name: str, simulated: tuple[float, float], draws: Sequence[AnyDraw], note: str
) -> Seen:
    """One number about each individual: noise put on itself has its own law; what is computed is simulated."""
    error, half_width = simulated
    law = _own_law(part.group, name, draws)
    if any(isinstance(draw, SampleDraw) and draw.node == name for draw in draws):
        return Seen(name, error, 1.0, 1, note, (), (), "answer")
    if law is None:
        return Seen(name, error, half_width, 1, note, ((math.sqrt(error), half_width),), (), "drawn")
    width = part.template.bounds[name].width
    pair = (min(law.deviation, width / 2), min(law.half_width, width))
    return Seen(name, error, pair[1], 1, note, (pair,), (), "known")


def _own_law(group: int, name: str, draws: Sequence[AnyDraw]) -> NoiseLaw | None:
    """Of the noise in a published number itself: its own draws, or the strategy it is read off."""
    here = [draw for draw in draws if draw.group == group]
    own = [draw for draw in here if isinstance(draw, Draw) and draw.node == name]
    return law_of(own) if own else _law_read_off(name, [draw for draw in here if isinstance(draw, LinearDraw)])


def _law_read_off(name: str, draws: Sequence[LinearDraw]) -> NoiseLaw | None:
    read = [draw for draw in draws if name in draw.candidate.outputs]
    return linear_law(read, name) if read else None
