"""The error of each published number as every text tells it: one form, one rounding.

In:   Seen (before anything was drawn), or the rows of a published table.
Out:  Told: standard error and interval in figures of four digits.
Not here: computing them (questions/intervals.py, plan/predict.py), choosing which may be told where
(evidence/figures.py).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.plan.plan import Seen

__all__ = ["Told", "digits", "told_before", "told_of_rows"]


def digits(value: float) -> str:
    """Four digits, everywhere the same.

    >>> digits(1234.56), digits(0.0), digits(math.inf)
    ('1235', '0', 'unbounded')
    """
    return f"{value:.4g}" if math.isfinite(value) else "unbounded"


@dataclass(frozen=True)
class Told:
    """One number of a publication, or `count` of them that are alike."""

    node: str
    label: str
    count: int
    standard_error: float
    below: float  # how far the 95 % interval reaches to either side
    above: float
    note: str = ""
    wrong: float | None = None  # of a random answer: how often it is not the true one
    #: Whether its error follows from what is drawn: what is told before is for values spread evenly over their ranges.
    expected: bool = False
    #: Whether it is how far the shares of a column's levels are off in all: invented rows have no other error.
    shares: bool = False

    @property
    def name(self) -> str:
        return f"{self.node}, {self.label}" if self.label else self.node

    @property
    def error(self) -> str:
        return digits(self.standard_error) if self.wrong is None and not self.shares else "–"

    @property
    def within(self) -> str:
        """The 95 % interval around the value."""
        if self.wrong is not None:
            return f"an answer each, in {digits(100 * self.wrong)} % of cases altered by the noise"
        if self.shares:
            return f"shares of its levels about {digits(self.standard_error)} off in all"
        if math.isinf(self.below) and math.isinf(self.above):
            return "unbounded"
        if digits(self.below) == digits(self.above):
            return f"±{digits(self.above)}"
        return f"−{digits(self.below)} to +{digits(self.above)}"

    @property
    def sentence(self) -> str:
        """All of it in a line."""
        many = f", each of {self.count} numbers" if self.count > 1 else ""
        note = f" {self.note}" if self.note else ""
        if self.wrong is not None or self.shares:
            return f"{self.name}: {self.within}.{note}"
        if self.expected:
            return (
                f"{self.name}{many}: expected, for values spread evenly over their ranges: standard error "
                f"{self.error}; 95 % interval: value {self.within}.{note}"
            )
        return f"{self.name}{many}: standard error {self.error}; 95 % interval: value {self.within}.{note}"

    def times(self, factor: float) -> Told:
        """The same with the standard error and the interval multiplied."""
        ends = (factor * self.standard_error, factor * self.below, factor * self.above)
        return dataclasses.replace(self, standard_error=ends[0], below=ends[1], above=ends[2])


def told_before(seen: Seen) -> tuple[Told, ...]:
    """What a plan says of one of its lines; several where its numbers differ.

    >>> told_before(Seen("age", 4.0, 3.92))[0].within
    '±3.92'
    >>> told_before(Seen("age", 0.0001, 0.0196, basis="shares"))[0].sentence
    'age: shares of its levels about 0.01 off in all.'
    """
    if seen.basis == "answer":
        return (Told(seen.node, "", 1, math.sqrt(seen.error), 1.0, 1.0, seen.note, seen.error),)
    if len(seen.numbers) > 1:
        counts = seen.counts or (1,) * len(seen.numbers)
        notes = (*("",) * (len(seen.numbers) - 1), seen.note)
        return tuple(
            Told(seen.node, label, count, error, width, width, note, expected=seen.basis == "drawn")
            for label, count, (error, width), note in zip(seen.labels, counts, seen.numbers, notes, strict=True)
        )
    ends = (seen.standard_error, seen.half_width, seen.half_width)
    kind = {"expected": seen.basis == "drawn", "shares": seen.basis == "shares"}
    return (Told(seen.node, "", seen.size, *ends, seen.note, **kind),)


def told_of_rows(node: str, rows: Iterable[Mapping[str, Any]]) -> tuple[Told, ...]:
    """What a published table says of one node: one line if all its numbers have the same error."""
    found = [
        Told(node, row["part"], 1, row["standard_error"], row["value"] - row["low"], row["high"] - row["value"])
        for row in rows
    ]
    if len(found) > 1 and len({(one.error, one.within) for one in found}) == 1:
        first = found[0]
        return (Told(node, "", len(found), first.standard_error, first.below, first.above),)
    return tuple(found)
