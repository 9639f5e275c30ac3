"""Which errors a text may tell: those of the plan, or of the published numbers themselves.

In:   a publication of a plan, the folder of its release.
Out:  Told, the same for README.txt, the report, explain and trace.
Not here: computing errors (questions/intervals.py), their form (plan/told.py).

What the error of a number rests on decides. Noise alone, or the public number of individuals: that error is told to
everybody. What was drawn, such as the noisy size of a group: that error is as much a result as the number itself, and
an interval that ends at the end of a public range tells the number. It is told to the observer whose result it is, who
asked for it by name; every page that others may read has the plan's range, with the assumption it rests on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from sfumato.evidence.files import published_files
from sfumato.plan.plan import Planned, Seen
from sfumato.plan.told import Told, told_before, told_of_rows

__all__ = ["told_of"]

_IN_FILE = "Each number's own standard_error, low and high are in its file."


def told_of(planned: Planned, folder: Path | None = None, *, own: bool = False) -> tuple[Told, ...]:
    """Every line of a publication. `own` says that the reader is the observer, or holds the file anyway."""
    rows = _rows(planned, folder) if folder is not None else {}
    return tuple(told for seen in planned.seen for told in _line(seen, rows.get(seen.node, ()), own, bool(folder)))


def _line(seen: Seen, rows: Sequence[Mapping[str, Any]], own: bool, run: bool) -> tuple[Told, ...]:
    before = told_before(seen)
    if rows and seen.basis == "drawn" and own:
        return told_of_rows(seen.node, rows)
    if rows and seen.basis == "people":
        # Its interval may end at the end of the range, which would tell the value: the law's own width is told.
        (guess,) = before
        factor = rows[0]["standard_error"] / guess.standard_error if guess.standard_error else 1.0
        (found,) = (guess.times(factor),)
        return (Told(found.node, found.label, found.count, rows[0]["standard_error"], found.below, found.above),)
    if run and seen.basis == "drawn":
        last = before[-1]
        note = f"{last.note} {_IN_FILE}".strip()
        return (
            *before[:-1],
            dataclasses.replace(last, note=note),
        )
    return before


def _rows(planned: Planned, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each node in the publication's table of aggregates; nothing for tables of individuals."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in published_files(folder).get((planned.name, planned.observer), ()):
        if not name.endswith(".parquet"):
            continue
        try:
            table = parquet.read_table(folder / name)
        except (OSError, pa.ArrowException):
            return {}
        if {"node", "standard_error", "low"} <= set(table.column_names):
            for row in table.to_pylist():
                found.setdefault(row["node"], []).append(row)
    return found
