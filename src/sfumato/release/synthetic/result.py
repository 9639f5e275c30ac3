"""What a synthetic release hands over: invented rows, and the noisy tables they were made from.

In:   what was drawn and what was made of it.
Out:  SyntheticTable, Measured; the noisy tables as one Arrow table for files.
Not here: how they were made (release/synthetic/release.py). From here on everything is post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.card import Card, Shown
from sfumato.core.certificate import Certificate
from sfumato.core.guarantee import Guarantee
from sfumato.errors import InputError
from sfumato.release.synthetic.plans import Forecast

__all__ = ["DECIMALS", "INVENTED", "Measured", "SyntheticTable", "measured_table", "one_way"]

#: How the note begins on numbers that are written with decimals for want of a word.
DECIMALS = "Written with decimals"
INVENTED = "Rows are invented: no row stands for a person, and no interval can be read off the rows alone."


@dataclass(frozen=True, eq=False)
class Measured:
    """One noisy table of counts, as it was drawn, and the counts of the same cells in the rows that were made.

    All errors are independent, with this standard error: the covariance matrix of `counts` is standard_error² times
    the identity.
    """

    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    counts: np.ndarray
    standard_error: float
    generated: np.ndarray


@dataclass(frozen=True, eq=False)
class SyntheticTable(Shown):
    """Invented rows and the public facts about them. No row stands for a person."""

    table: Any
    measured: tuple[Measured, ...]
    guarantee: Guarantee
    certificate: Certificate
    forecast: Forecast
    stages: Mapping[str, float]  # μ² of each part of the plan, as drawn
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> str:
        return self.forecast.plan.words

    def _card(self) -> Card:
        rows = [[", ".join(one.columns), one.counts.size, one.standard_error] for one in self.measured]
        facts = {"promise": str(self.guarantee), "made by": self.plan}
        head = ["measured together", "cells", "standard error"]
        return Card("Invented rows", facts, head, rows, list(self.notes))

    def __str__(self) -> str:
        return "\n".join([f"Guarantee: {self.guarantee}", f"Plan: {self.plan}", *self.notes])


def one_way(measured: Sequence[Measured], column: str) -> tuple[tuple[str, ...], np.ndarray, float]:
    """A column's levels, its counts by all tables that hold it, weighed by precision, and their standard error.

    >>> pair = Measured(("a", "b"), (("x", "y"), ("u", "v")), np.array([[3.0, 1.0], [2.0, 2.0]]), 1.0, np.zeros((2, 2)))
    >>> levels, counts, error = one_way([pair], "a")
    >>> counts.tolist(), round(error, 3)
    ([4.0, 4.0], 1.414)
    """
    held = [one for one in measured if column in one.columns]
    if not held:
        raise InputError(f"No measured table holds {column!r}.")
    sums, precisions = [], []
    for one in held:
        at = one.columns.index(column)
        away = tuple(axis for axis in range(one.counts.ndim) if axis != at)
        sums.append(one.counts.sum(axis=away))
        precisions.append(1 / (one.standard_error**2 * (one.counts.size / one.counts.shape[at])))
    total = math.fsum(precisions)
    weighed = sum(precision * counts for precision, counts in zip(precisions, sums, strict=True))
    levels = held[0].levels[held[0].columns.index(column)]
    return levels, np.asarray(weighed) / total, 1 / math.sqrt(total)


def measured_table(measured: Sequence[Measured]) -> pa.Table:
    """The noisy tables in one: table, first column and level, second column and level, count, standard error, rows."""
    names = ("table", "first", "first_level", "second", "second_level", "count", "standard_error", "generated")
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for number, one in enumerate(measured):
        cells = list(itertools.product(*one.levels))
        second = one.columns[1] if len(one.columns) > 1 else None
        parts["table"] += [number] * len(cells)
        parts["first"] += [*one.columns[:1]] * len(cells)
        parts["first_level"] += [cell[0] for cell in cells]
        parts["second"] += [second] * len(cells)
        parts["second_level"] += [cell[1] if second else None for cell in cells]
        parts["count"] += np.ravel(one.counts).tolist()
        parts["standard_error"] += [one.standard_error] * len(cells)
        parts["generated"] += np.ravel(one.generated).tolist()
    text = {name: pa.string() for name in ("first", "first_level", "second", "second_level")}
    table = pa.table({name: pa.array(values, text.get(name)) for name, values in parts.items()})
    return table.replace_schema_metadata({"covariance": "diagonal: standard_error squared; errors are independent"})
