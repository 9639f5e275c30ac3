"""Histograms of the same rows, published together: made consistent with each other and with the public number of rows.

In:   the questions of one publication, and which rows each is about.
Out:  Family: every number with its own error and interval, before the run and after; unbiased, and at no cost.
Not here: the least squares (questions/consistency.py), tables planned together (questions/marginals.py).
Proof: docs/proofs/marginals.md
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.questions.axis import Axis
from sfumato.questions.consistency import DrawnTables
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.question import Numbers, Question
from sfumato.questions.residual import Subset, Workload

__all__ = ["Family", "families"]


@dataclass(frozen=True)
class Family:
    """Questions that count cells of different axes, over the same rows, by their names.

    >>> from sfumato.questions.histogram import Histogram
    >>> age, sex = Axis("age(P)", levels=("young", "old")), Axis("sex(P)", levels=("f", "m"))
    >>> both = {"ages": Histogram(axes=(age,)), "cells": Histogram(axes=(age, sex))}
    >>> (shared,) = families(both, dict.fromkeys(both, "everybody"))
    >>> found = shared.predicted(dict.fromkeys(both, NoiseLaw(1.0)))
    >>> [round(pairs[0][0], 3) for pairs in found.values()]  # of 1 each before they were weighed together
    [0.816, 0.816]
    """

    members: tuple[tuple[str, Question], ...]

    @cached_property
    def _axes(self) -> tuple[Axis, ...]:
        return tuple(dict.fromkeys(axis for _, question in self.members for axis in question.axes))

    @cached_property
    def tables(self) -> dict[str, Subset]:
        """Which axes each member is about, by their places."""
        place = {axis: number for number, axis in enumerate(self._axes)}
        return {name: tuple(sorted(place[axis] for axis in question.axes)) for name, question in self.members}

    @cached_property
    def _workload(self) -> Workload:
        return Workload(tuple(axis.size for axis in self._axes), tuple(self.tables.values()))

    def _measured(self, laws: Mapping[str, NoiseLaw]) -> DrawnTables:
        variances = tuple(laws[name].variance for name, _ in self.members)
        public = all(question.has_public_count for _, question in self.members)
        return DrawnTables(self._workload, tuple(self.tables.values()), variances, public)

    def _left(self, laws: Mapping[str, NoiseLaw]) -> dict[str, NoiseLaw]:
        """The law of what is left of the noise in each member's cells."""
        measured = self._measured(laws)
        drawn = {self.tables[name]: laws[name] for name, _ in self.members}
        return {name: measured.law(table, drawn) for name, table in self.tables.items()}

    def figures(
        self, noisy: Mapping[str, Numbers], laws: Mapping[str, NoiseLaw], count: float | None = None
    ) -> dict[str, tuple[Figure, ...]]:
        """Every published number, when each drawn number of a member carries its law; `count` where it is public."""
        given = {self.tables[name]: self._sorted(name, np.asarray(noisy[name])) for name, _ in self.members}
        found = self._measured(laws).estimate(given, count)
        left = self._left(laws)
        return {
            name: tuple(Figure.around(value, left[name]) for value in self._as_asked(name, found[table]).tolist())
            for name, table in self.tables.items()
        }

    def predicted(self, laws: Mapping[str, NoiseLaw]) -> dict[str, tuple[tuple[float, float], ...]]:
        """(standard error, half width of the interval) of every published number."""
        left = self._left(laws)
        return {
            name: ((left[name].deviation, left[name].half_width),) * question.size for name, question in self.members
        }

    # A member's axes stand in the order of the study, those of a table in the order of the family.

    def _order(self, name: str) -> list[int]:
        question = dict(self.members)[name]
        place = {axis: number for number, axis in enumerate(self._axes)}
        return sorted(range(len(question.axes)), key=lambda axis: place[question.axes[axis]])

    def _sorted(self, name: str, flat: Numbers) -> Numbers:
        sizes = [axis.size for axis in dict(self.members)[name].axes]
        return flat.reshape(sizes).transpose(self._order(name))

    def _as_asked(self, name: str, table: Numbers) -> Numbers:
        return table.transpose(np.argsort(self._order(name))).reshape(-1)


def families(questions: Mapping[str, Question], rows: Mapping[str, Hashable]) -> tuple[Family, ...]:
    """The questions that count cells, put together where they are about the same `rows`.

    A table that is asked for twice, with other noise, starts a family of its own.
    """
    found: dict[tuple[Hashable, ...], dict[str, Question]] = {}
    for name, question in questions.items():
        if not question.draws_its_table:
            continue
        same = (rows[name], question.rows, question.everybody, question.relation, question.expected)
        others = [set(other.axes) for other in found.get((*same, 0), {}).values()]
        found.setdefault((*same, others.count(set(question.axes))), {})[name] = question
    return tuple(Family(tuple(members.items())) for members in found.values())
