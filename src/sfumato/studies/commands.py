"""`sfumato reproduce ID`: the papers' experiments at the command line.

In:   arguments.
Out:  what catalogue.reproduce prints and writes.
Not here: mounting (cli.py), how errors are printed (cli.py: they are left to rise).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sfumato.errors import InputError

__all__ = ["reproduce_command"]


def reproduce_command(
    study: Annotated[str | None, typer.Argument(metavar="ID", help="The study to run; see --list.")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write table, figure and JSON to.")] = Path("reproduced"),
    quick: Annotated[bool, typer.Option("--quick", help="Few rows and draws: seconds, and rough.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    listed: Annotated[bool, typer.Option("--list", help="List the studies and stop.")] = False,
) -> None:
    """Run an experiment of a paper again and say which of its claims hold."""
    from sfumato.studies.catalogue import STUDIES, reproduce, studies_table

    console = Console(highlight=False)
    if listed:
        console.print(studies_table())
        return
    if study is None:
        raise InputError(f"Say which study to run: {', '.join(STUDIES)}. Nothing was run.")
    reproduce(study, out, seed=seed, quick=quick, console=console)
