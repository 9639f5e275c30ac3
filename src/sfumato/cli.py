"""The `sfumato` command: each command is a thin call into a room.

In:   arguments.
Out:  readable text; exit code 0 if all is well, 1 if something was refused or does not hold, 2 for wrong usage.
Not here: any logic. Errors of the one tree are printed here, in one place.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sfumato.errors import SfumatoError
from sfumato.run.ledger_commands import ledger_app
from sfumato.run.release_command import release
from sfumato.studies.commands import reproduce_command

__all__ = ["app", "main"]

app = typer.Typer(
    name="sfumato",
    help="Publish something about people without exposing them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("release")(release)
app.command("reproduce")(reproduce_command)
app.add_typer(ledger_app, name="ledger", help="What was granted and spent on which dataset.")


def _version(shown: bool) -> None:
    if shown:
        print(f"sfumato {metadata.version('sfumato')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Publish something about people without exposing them."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("demo-output"),
) -> None:
    """Walk through the main job on a small invented table: calibrate, publish, certify, verify, audit."""
    from sfumato.studies.demo import run_demo

    if not run_demo(out, Console()):
        raise typer.Exit(1)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A certificate, as written by sfumato.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing; only the exit code counts.")] = False,
) -> None:
    """Check a certificate without the data. Exit code 0 if it holds, 1 if it does not."""
    from sfumato.evidence import verify as verify_certificate

    result = verify_certificate(file)
    if not quiet:
        console = Console()
        table = Table("field", "", "finding", title=str(file), title_justify="left", box=None)
        for field, ok, sentence in result.checks:
            table.add_row(field, "[green]holds[/]" if ok else "[red]FAILS[/]", sentence)
        console.print(table)
        console.print("[green]The certificate holds.[/]" if result.ok else "[red]The certificate does not hold.[/]")
    if not result.ok:
        raise typer.Exit(1)


@app.command()
def calibrate(
    epsilon: Annotated[float, typer.Option(help="ε of the wanted guarantee.")],
    sensitivity: Annotated[float, typer.Option(help="How far one change can move the value.")],
    delta: Annotated[float, typer.Option(help="δ of the wanted guarantee; 0 for pure privacy.")] = 0.0,
) -> None:
    """How much noise a guarantee needs, law by law."""
    from sfumato.core import REPLACE_ONE, ApproxDP, PureDP
    from sfumato.mechanisms import Gaussian, Laplace

    wanted = ApproxDP(epsilon, delta) if delta > 0 else PureDP(epsilon)
    table = Table("law", "scale", "standard deviation", "sensitivity is in")
    if delta > 0:
        gaussian = Gaussian.for_guarantee(wanted, sensitivity, REPLACE_ONE)
        table.add_row("Gaussian", f"{gaussian.scale:.6g}", f"{gaussian.error() ** 0.5:.6g}", "L2")
    laplace = Laplace.for_guarantee(wanted, sensitivity, REPLACE_ONE)
    table.add_row("Laplace", f"{laplace.scale:.6g}", f"{laplace.error() ** 0.5:.6g}", "L1")
    console = Console()
    console.print(
        f"{wanted.describe()} for a value of sensitivity {sensitivity:g}, under the adjacency of that sensitivity"
    )
    console.print(table)


def main() -> None:
    """Entry point: errors of the one tree become one readable message and exit code 1."""
    try:
        app()
    except SfumatoError as error:
        Console(stderr=True).print(f"[red]{type(error).__name__}[/]: {error}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted. Reservations already made in a ledger stay counted.")
        sys.exit(130)


if __name__ == "__main__":
    main()
