"""How far a long command is, how fast it goes and when it will be done; on a terminal, elsewhere silent.

In:   the console, what is being done.
Out:  a bar that is told how many rows were done.
Not here: what is done (run/).

Only the curator sees it, and only while it lasts: the number of rows is as private as the rows.
"""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

__all__ = ["RateColumn", "row_progress"]


class RateColumn(ProgressColumn):
    """Rows a second over the last half minute; nothing until something was done."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} rows/s", style="progress.data.speed")


def row_progress(console: Console, doing: str) -> Progress:
    """Rows done of how many, the rate, and how long it will still take; without a total the last is left open.

    >>> len(row_progress(Console(), "counting").columns)
    5
    """
    return Progress(
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
