"""`sfumato synthesize`: a table file in, a folder of invented rows out.

In:   arguments.
Out:  a call of run/synthesize.py with a progress bar.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from sfumato.cli.ledger import granting
from sfumato.core.schema import Schema
from sfumato.errors import SchemaError

if TYPE_CHECKING:
    from sfumato.release.synthetic import SyntheticRelease
    from sfumato.release.synthetic.plans import Forecast

__all__ = ["synthesize"]


def synthesize(
    source: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="The private table: a .parquet or .csv file, a folder of Parquet, s3://…"),
    ],
    schema: Annotated[Path, typer.Option(help="Public bounds and categories of its columns (TOML).")],
    epsilon: Annotated[float, typer.Option(help="ε for one row.")],
    delta: Annotated[float, typer.Option(help="δ for one row, such as 1e-6.")],
    out: Annotated[Path, typer.Option(help="New folder for the rows, the noisy tables and the certificate.")],
    label: Annotated[str | None, typer.Option(help="The column that others will want to predict.")] = None,
    edges: Annotated[
        Path | None, typer.Option(help="TOML with public bin edges, one line a column: age = [0, 18, 65, 110].")
    ] = None,
    absent: Annotated[
        list[str] | None, typer.Option(help="A column whose missing values are a level of their own; may be repeated.")
    ] = None,
    whole: Annotated[
        list[str] | None,
        typer.Option(help="A column of whole numbers whose type does not say so (pandas, CSV); may be repeated."),
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(help="The column that says whose a row is; it is not published, and people are protected."),
    ] = None,
    rows_per_person: Annotated[
        int, typer.Option(help="With --people: how many rows of one person count. The noise grows with it.")
    ] = 1,
    plan: Annotated[
        str | None, typer.Option(help="pairs, tree or rounds; default: the one of least expected error.")
    ] = None,
    equal_bins: Annotated[
        bool,
        typer.Option("--equal-bins", help="Numbers without edges are cut into 16 equal parts; no edges are bought."),
    ] = False,
    rows: Annotated[int | None, typer.Option(help="How many rows to make; default: as many as the table has.")] = None,
    engine: Annotated[
        str, typer.Option(help="Who counts: local, dask (workers on this machine), or a scheduler at tcp://host:8786.")
    ] = "local",
    ledger: Annotated[
        Path | None, typer.Option("--ledger", envvar="SFUMATO_LEDGER", help="The ledger file; default: beside TABLE.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Name in the ledger; default: the file's name.")] = None,
    grant: Annotated[
        bool, typer.Option("--grant", help="Data that has no budget yet is granted exactly what this release needs.")
    ] = False,
) -> None:
    """Publish invented rows that keep the table's one- and two-way tables and its link to the label.

    Example: sfumato synthesize people.parquet --schema people.toml --epsilon 1 --delta 1e-6 --label income --out made
    --grant
    """
    from sfumato.cli.progress import row_progress
    from sfumato.ledger.ledger import Ledger
    from sfumato.release.synthetic import SyntheticRelease
    from sfumato.run.accounts import default_ledger
    from sfumato.run.interruption import told_when_interrupted
    from sfumato.run.synthesize import synthesize_file

    console = Console()
    release = SyntheticRelease(
        Schema.read(schema),
        epsilon,
        delta,
        label=label,
        edges={} if edges is None else _read_edges(edges),
        absent=tuple(absent or ()),
        whole=tuple(whole or ()),
        people=people,
        rows_per_person=rows_per_person,
        plan=plan,
        buy_edges=not equal_bins,
        rows=rows,
    )
    place = (ledger or default_ledger(source)).resolve()
    console.print(f"ledger: {place}", highlight=False, markup=False, soft_wrap=True)
    if release.people is not None:
        _tell_by_rows(console, release)
    allowed = granting(grant, console)
    with row_progress(console, "counting") as bar:
        task = bar.add_task("counting", total=None)
        book = Ledger(place)
        name = dataset or Path(source).stem
        with told_when_interrupted():
            promise = synthesize_file(
                source, release, out, book, name, engine=engine, progress=lambda n: bar.advance(task, n),
                tell=lambda forecasts: _tell(console, forecasts), grant=allowed,
                say=lambda said: console.print(said, highlight=False, markup=False, soft_wrap=True),
            )  # fmt: skip
    console.print(
        Text.assemble(
            "Published ",
            (str(out), "bold"),
            ": table.parquet, measured.parquet, marginals.html, certificate.json, README.txt",
        )
    )
    console.print(f"Promise: {promise}", highlight=False, markup=False)
    said = (out / "README.txt").read_text(encoding="utf-8").split("\n\n")[0]
    console.print(said, highlight=False, markup=False, soft_wrap=True)
    console.print(f"Next: sfumato verify {out}", highlight=False, markup=False)


def _tell(console: Console, forecasts: Sequence[Forecast]) -> None:
    """What to expect, before anything is spent."""
    from sfumato.release.synthetic.plans import best_plan

    best = best_plan(forecasts)
    for one in forecasts:
        mark = "taken" if one is best else "not taken"
        console.print(f"plan {one.plan.name} ({mark}): {one}", highlight=False, markup=False, soft_wrap=True)


def _tell_by_rows(console: Console, release: SyntheticRelease) -> None:
    """The same where the number of rows is private: for several numbers."""
    from sfumato.release.synthetic.plans import best_plan

    for rows in (1_000, 10_000, 100_000, 1_000_000):
        best = best_plan(release.expected(rows))
        said = f"of {rows:,} rows, plan {best.plan.name}: {best}"
        console.print(said, highlight=False, markup=False, soft_wrap=True)


def _read_edges(path: Path) -> dict[str, list[Any]]:
    try:
        return {name: list(values) for name, values in tomllib.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError):
        raise SchemaError(
            f"{path} is no TOML of bin edges such as: age = [0, 18, 65, 110]. Nothing was spent."
        ) from None
