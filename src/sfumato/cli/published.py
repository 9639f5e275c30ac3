"""What a run published, on the terminal: the numbers as they were drawn, each with its own interval.

In:   a plan that was run, its release.
Out:  tables and lines for the terminal.
Not here: predictions (cli/study.py), files (run/study_files.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.core.calendar import UNITS, told_names
from sfumato.plan.about import weak_promises
from sfumato.plan.beside import shared_sentences
from sfumato.plan.plan import Plan
from sfumato.run.study_files import Published, Release

__all__ = ["show_release"]

#: Numbers of one publication that are shown; all of them are in its file.
_MOST = 12
_NUMBERS = ("value", "low", "high")


def show_release(plan: Plan, release: Release, console: Console) -> None:
    """Print what was published, and the promises that were kept."""
    table = Table("publication", "observer", "about", "value", "95 % from", "to", box=None, pad_edge=False)
    for one in release.published:
        for place, (about, *numbers) in enumerate(_lines(one)):
            first = place == 0
            table.add_row(Text(one.name if first else ""), Text(one.observer if first else ""), Text(about), *numbers)
    console.print(table)
    for promise in plan.promises:
        console.print(f"promise to {' and '.join(promise.observers)}: {promise.asked}", markup=False)
    for sentence in shared_sentences(plan):
        console.print(sentence, markup=False, highlight=False)
    for sentence in weak_promises(plan):
        console.print(sentence, style="yellow", markup=False, highlight=False)


def _lines(one: Published) -> Iterator[tuple[str, str, str, str]]:
    """What a number is about, the number, the ends of its interval; of rows and models what they are."""
    if not {"part", *_NUMBERS} <= set(one.values.column_names):
        yield _what_it_is(one), "", "", ""
        return
    rows = one.values.slice(0, _MOST).to_pylist()
    several = len(set(one.values["node"].to_pylist())) > 1
    for row in rows:
        yield _line(row, several)
    if one.values.num_rows > len(rows):
        yield f"… and {one.values.num_rows - len(rows):,} more in its file", "", "", ""


def _what_it_is(one: Published) -> str:
    what = "a row for each individual" if one.of_individuals else "rows"
    return f"{one.values.num_rows:,} {what}" if one.values.num_rows else ", ".join(one.documents)


def _line(row: dict[str, Any], several: bool) -> tuple[str, str, str, str]:
    """One number; it is called by its node where there are `several`."""
    names = next((told_names(unit) for unit in UNITS if told_names(unit)[1] in row), _NUMBERS)
    about = row["part"] or (row["node"] if several else "") or _cell(row, names)
    value, low, high = (_shown(row[name]) for name in names)
    return str(about), value, low, high


def _cell(row: dict[str, Any], numbers: tuple[str, ...]) -> str:
    """The columns between a number's name and its value, such as the share of a quantile."""
    cells = {name: cell for name, cell in row.items() if name not in ("node", *numbers)}
    return ", ".join(f"{name} = {cell}" for name, cell in cells.items() if isinstance(cell, str) and cell)


def _shown(number: Any) -> str:
    if number is None or isinstance(number, str):  # a day or a time of day
        return number or "–"
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"
