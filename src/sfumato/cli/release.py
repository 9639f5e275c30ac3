"""`sfumato release`: a table file in, a published folder out.

In:   arguments.
Out:  a call of run/tables.py with a progress bar.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from sfumato.cli.ledger import granting
from sfumato.core.domain import Interval
from sfumato.core.schema import Schema
from sfumato.errors import PrivacyParameterError

if TYPE_CHECKING:
    from sfumato.core.guarantee import Guarantee
    from sfumato.release.table import PreparedTable

__all__ = ["release", "wide_noise"]


class _Method(StrEnum):
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    BOX = "box"


def release(
    source: Annotated[
        str,
        typer.Argument(metavar="IN", help="The private table: a .parquet or .csv file, a folder of Parquet, s3://…"),
    ],
    schema: Annotated[Path, typer.Option(help="Public bounds and categories of its columns (TOML).")],
    out: Annotated[Path, typer.Option(help="New folder for the published table, its noise law and certificate.")],
    epsilon: Annotated[float | None, typer.Option(help="ε for the features of one record.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ for the features of one record.")] = None,
    method: Annotated[_Method, typer.Option(help="Which noise.")] = _Method.GAUSSIAN,
    label: Annotated[str | None, typer.Option(help="The label column, published as it is unless it has an ε.")] = None,
    label_epsilon: Annotated[float | None, typer.Option(help="ε for the label, on top of --epsilon.")] = None,
    adversary_error: Annotated[
        float | None, typer.Option(help="Instead of ε: an unbiased attacker's total squared error, in column widths.")
    ] = None,
    trade_off: Annotated[float | None, typer.Option(help="Instead of ε: λ of the optimal noise.")] = None,
    category_epsilon: Annotated[
        float | None, typer.Option(help="ε shared by categorical columns, without --epsilon.")
    ] = None,
    half_width: Annotated[float, typer.Option(help="For box noise: half the box, in column widths.")] = 20.0,
    ordered: Annotated[
        list[str] | None,
        typer.Option(
            help="For box noise: columns whose order published rows keep, as start,end. Say it once an order."
        ),
    ] = None,
    clip: Annotated[bool, typer.Option("--clip", help="Put published numbers back into their public range.")] = False,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", envvar="SFUMATO_LEDGER", help="The ledger file; default: beside IN.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Name of the dataset in the ledger; default: the file's name.")
    ] = None,
    grant: Annotated[
        bool, typer.Option("--grant", help="Data that has no budget yet is granted exactly what this release needs.")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="Who works: local, dask (workers on this machine), or a scheduler at tcp://host:8786.")
    ] = "local",
    partitions: Annotated[
        int | None, typer.Option(help="Into how many tasks a folder is cut. It changes nothing in the result.")
    ] = None,
) -> None:
    """Publish a whole table: every record with noise, streamed from file to file, charged and certified.

    Example: sfumato release people.parquet --schema people.toml --epsilon 2 --delta 1e-6 --label income --out published
    --grant
    """
    # Two seconds of imports, needed by no other command.

    from sfumato.cli.progress import row_progress
    from sfumato.ledger.ledger import Ledger
    from sfumato.release.box import WeakGuaranteeWarning
    from sfumato.run.accounts import default_ledger
    from sfumato.run.files import TableFile
    from sfumato.run.interruption import told_when_interrupted
    from sfumato.run.partition import PartitionedTable
    from sfumato.run.partition_release import release_partitions
    from sfumato.run.tables import release_file

    console = Console()
    declared = Schema.read(schema)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WeakGuaranteeWarning)
        prepared = _prepare(
            method, declared, epsilon, delta, label, label_epsilon, adversary_error, trade_off, category_epsilon,
            half_width, clip, ordered or [],
        )  # fmt: skip
    # Before anything is spent.
    _tell(console, (*(str(warning.message) for warning in caught), *wide_noise(prepared)), "yellow")
    path = Path(source)
    place = (ledger or default_ledger(source)).resolve()
    console.print(f"ledger: {place}", highlight=False, markup=False, soft_wrap=True)
    allowed = granting(grant, console)
    one_file = engine == "local" and partitions is None and _is_file(source)
    rows = TableFile.open(path).row_count() if one_file else PartitionedTable.open(source).total_rows
    with row_progress(console, "releasing") as bar:
        task = bar.add_task("rows", total=rows)
        book, name = Ledger(place), dataset or path.stem
        if one_file:
            with told_when_interrupted():
                release_file(
                    path, prepared, out, book, name, progress=lambda done: bar.advance(task, done), grant=allowed
                )
        else:
            with told_when_interrupted(_kept(name, prepared.guarantee, place)):
                release_partitions(
                    source, prepared, out, book, name, engine=engine, partitions=partitions,
                    progress=lambda done: bar.advance(task, done), grant=allowed,
                )  # fmt: skip
    table = f"table{path.suffix.lower()}" if one_file else "table/part-….parquet"
    console.print(
        Text.assemble("Published ", (str(out), "bold"), f": {table}, noise.json, certificate.json, README.txt")
    )
    _tell(console, (f"Promise: {prepared.guarantee}", *prepared.notes))


def _is_file(source: str) -> bool:
    """Whether it names one file on this machine, and neither a folder nor a place elsewhere."""
    return "://" not in source and not Path(source).is_dir()


def _tell(console: Console, sentences: Iterable[str], style: str | None = None) -> None:
    for sentence in sentences:
        console.print(sentence, style=style, highlight=False, markup=False)


def _kept(dataset: str, promise: Guarantee, ledger: Path) -> str:
    """Of parts that are drawn one by one: each has its own stream, so that going on draws nothing twice."""
    from sfumato.ledger.commands import settle_command

    unit = promise.adjacency.unit if promise.adjacency else "record"
    return (
        "Interrupted. Parts that are finished are kept, and what was reserved stays reserved. The same command goes on "
        "from there at no further cost. To give up, and record it as spent: "
        f"`{settle_command(dataset, unit, ledger)}`."
    )


def wide_noise(prepared: PreparedTable) -> list[str]:
    """A sentence for each column whose single cells say nothing any more: noise wider than all it can hold."""
    found = []
    for name, law in zip(prepared.noise.columns, prepared.noise.laws, strict=True):
        domain = prepared.schema.columns.get(name)
        ratio = math.sqrt(law.variance()) / domain.width if isinstance(domain, Interval) else 0.0
        if ratio > 1:
            found.append(
                f"{name}: the noise is {ratio:.2g} times the column's width. For such a promise publish statistics "
                "(sfumato new, sfumato run) or synthetic rows (sfumato synthesize) instead."
            )
    return found


def _prepare(
    method: _Method,
    schema: Schema,
    epsilon: float | None,
    delta: float | None,
    label: str | None,
    label_epsilon: float | None,
    adversary_error: float | None,
    trade_off: float | None,
    category_epsilon: float | None,
    half_width: float,
    clip: bool,
    ordered: list[str],
) -> PreparedTable:
    from sfumato.release import BoxRelease, GaussianRelease, LaplaceRelease

    common = {"label": label, "label_epsilon": label_epsilon, "clip": clip}
    if method is _Method.BOX:
        orders = [tuple(name.strip() for name in one.split(",")) for one in ordered]
        return BoxRelease(
            schema,
            half_width=half_width,
            trade_off=trade_off or 0.0,
            category_epsilon=category_epsilon,
            constraints=orders,
            **common,
        ).prepare()
    if ordered:
        raise PrivacyParameterError(
            "Only box noise keeps columns in order: say --method box, or leave --ordered out and sort what was "
            "published, which costs nothing. Nothing was drawn or spent."
        )
    if method is _Method.LAPLACE:
        if epsilon is None:
            raise PrivacyParameterError("Laplace noise needs --epsilon. Nothing was drawn or spent.")
        return LaplaceRelease(schema, epsilon=epsilon, delta=delta or 0.0, **common).prepare()
    return GaussianRelease(
        schema,
        epsilon=epsilon,
        delta=delta,
        adversary_error=adversary_error,
        trade_off=trade_off,
        category_epsilon=category_epsilon,
        **common,
    ).prepare()
