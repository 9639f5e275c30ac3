"""`sfumato studio [STUDY]`: the page where a study is written, turned and published.

In:   a study file, or a folder that holds one.
Out:  an address on this machine; the page until Ctrl-C.
Not here: the page (studio/).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sfumato.errors import InputError

__all__ = ["studio"]


def studio(
    study: Annotated[
        Path, typer.Argument(help="A study file, or a folder with one; it is made when it is saved.")
    ] = Path(),
    data: Annotated[Path | None, typer.Option(help="Folder of the tables; the study's own if left out.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(envvar="SFUMATO_LEDGER", help="The ledger file; default: beside the data.")
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option(help="NAME=NUMBER: how many individuals a dataset has, where that is public.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open a page on this machine: write a study, turn ε, see what it costs, publish. Only Publish reads data."""
    from sfumato.cli.study import read_sizes

    try:
        from sfumato.studio.app import serve
    except ImportError:
        raise InputError(
            "The studio needs two more packages: pip install 'sfumato[studio]'. Nothing was opened."
        ) from None
    console = Console()

    def show(address: str) -> None:
        console.print(f"The studio is open at {address}", highlight=False, markup=False, soft_wrap=True)
        console.print("The address works once, on this machine alone. Ctrl-C ends it.", highlight=False)

    serve(_study_in(study), data, ledger, read_sizes(size), show=show, browse=browser)
    console.print("Studio closed. What was saved is saved; no run was under way.")


def _study_in(place: Path) -> Path:
    if not place.is_dir():
        return place
    found = sorted(place.glob("*.pl"))
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise InputError(f"{place} has several studies: {names}. Say which: sfumato studio {found[0]}")
    return found[0] if found else place / "study.pl"
