"""`sfumato reproduce ID`: the papers' experiments at the command line.

In:   arguments.
Out:  what the catalogue of experiments prints and writes.
Not here: the experiments. They lie in the folder papers/ of a checkout and are no part of what is installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sfumato.errors import InputError

__all__ = ["reproduce_command"]


def reproduce_command(
    study: Annotated[str | None, typer.Argument(metavar="ID", help="The study to run; see --list.")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write table, figure and JSON to.")] = Path("reproduced"),
    quick: Annotated[bool, typer.Option("--quick", help="Few rows and draws: seconds, and rough.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    every: Annotated[bool, typer.Option("--all", help="Run every study and write one page, index.html.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the studies and stop.")] = False,
) -> None:
    """Run an experiment of a paper again and say which of its claims hold."""
    catalogue = _catalogue()
    console = Console(highlight=False)
    if listed:
        console.print(catalogue.studies_table())
        return
    if every:
        if study is not None:
            raise InputError("Say either a study or --all. Nothing was run.")
        import_module("papers.page").reproduce_all(out, seed=seed, quick=quick, console=console)
        return
    if study is None:
        raise InputError(f"Say which study to run: {', '.join(catalogue.STUDIES)}; or --all. Nothing was run.")
    catalogue.reproduce(study, out, seed=seed, quick=quick, console=console)


def _catalogue() -> Any:
    """The experiments of the checkout that this code runs from."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / "papers" / "catalogue.py").is_file():
        raise InputError(
            "The papers' experiments are in the project's checkout and not in the installed package. Clone the "
            "repository, run `make demo` there once, then `.venv/bin/sfumato reproduce --list`. Nothing was run."
        )
    if str(checkout) not in sys.path:
        sys.path.append(str(checkout))
    return import_module("papers.catalogue")
