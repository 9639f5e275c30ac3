"""How far a run has come, on a terminal: its stages one after the other, and the time they take.

In:   the names of stages as they begin.
Out:  a bar that is gone when the run is done; nothing where nobody looks.
Not here: the stages themselves (run/study.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["staged"]

#: planning, reading the tables, evaluating the study, drawing noise, writing
_STAGES = 5


@contextmanager
def staged(console: Console) -> Iterator[Callable[[str], None]]:
    """A function to call when a stage begins; the bar has the stages that are done, and runs beside the clock."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task, begun = bar.add_task("", total=_STAGES), []

        def stage(name: str) -> None:
            bar.update(task, description=name, completed=min(len(begun), _STAGES))
            begun.append(name)

        yield stage
