"""The `sfumato` command: each command is a thin call into a room.

In:   arguments.
Out:  readable text; exit code 0 if all is well, 1 if something was refused or does not hold, 2 for wrong usage.
Not here: any logic. Errors of the one tree are printed here, in one place.
"""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.cli.centres import register_centre_commands, run_over_centres
from sfumato.cli.ledger import granting, ledger_app
from sfumato.cli.privatize import privatize
from sfumato.cli.release import release
from sfumato.cli.reproduce import reproduce_command
from sfumato.cli.studio import studio
from sfumato.cli.synthesize import synthesize
from sfumato.errors import InputError, SfumatoError, UndeclaredCellWarning

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate
    from sfumato.evidence.verify import Check

__all__ = ["app", "main"]

app = typer.Typer(
    name="sfumato",
    help="Publish something about people without exposing them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
)
app.command("privatize")(privatize)
app.command("release")(release)
app.command("synthesize")(synthesize)
app.command("studio")(studio)
app.command("reproduce")(reproduce_command)
app.add_typer(ledger_app, name="ledger", help="What was granted and spent on which dataset.")


def _holds(certificate: Certificate) -> bool:
    from sfumato.evidence import verify as verify_certificate

    return verify_certificate(certificate).ok


register_centre_commands(app, _holds)


def _version(shown: bool) -> None:
    if shown:
        from importlib import metadata

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
def demo(out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("demo-output")) -> None:
    """One study on a real medical table: plan, publish, sum over hospitals, verify, audit, report."""
    from sfumato.demo import run_demo

    if not run_demo(out, Console()):
        raise typer.Exit(1)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A certificate, or a folder written by run, release or coordinate.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing; only the exit code counts.")] = False,
    study: Annotated[
        Path | None, typer.Option(help="The study of a folder: its sensitivities are derived again from it.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the study's public tables, if it has any.")] = None,
) -> None:
    """Check a certificate, or a whole release, without the data. Exit code 0 if it holds, 1 if it does not.

    The files that a certificate names are hashed again; of a certificate that came alone only what lies beside it.
    """
    from sfumato.evidence import verify as verify_certificate
    from sfumato.evidence.verify_files import verify_files

    if not file.exists():
        raise InputError(f"{file}: there is no such certificate or folder. Nothing was checked.")
    if file.is_dir():
        from sfumato.evidence.verify_plan import verify_folder
        from sfumato.lang import load
        from sfumato.run.study_file import public_tables

        public = public_tables(load(study), data or study.parent) if study is not None else None
        checks = verify_folder(file, study, public)
    else:
        checks = (*verify_certificate(file).checks, *verify_files(file, complete=False))
    ok = all(check.ok for check in checks)
    if not quiet:
        _show_checks(file, checks, ok)
    if not ok:
        raise typer.Exit(1)


def _show_checks(file: Path, checks: Sequence[Check], ok: bool) -> None:
    console = Console()
    table = Table("field", "", "finding", title=Text(str(file)), title_justify="left", box=None)
    for check in checks:
        found = "[green]holds[/]" if check.ok else "[red]FAILS[/]"
        table.add_row(Text(check.field), found if check.covered else "not covered", Text(check.sentence))
    console.print(table)
    what = "release" if file.is_dir() else "certificate"
    rest = "".join(f" Not covered: {check.field}." for check in checks if not check.covered)
    console.print(f"[green]The {what} holds.[/]" if ok else f"[red]The {what} does not hold.[/]", end="")
    console.print(Text(rest))


@app.command()
def check(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON record for editors.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of the public tables; the study's own if left out.")] = None,
) -> None:
    """Say everything that is wrong with a study, without private data. Exit code 0 if it can be planned, 1 if not."""
    from sfumato.cli.check import check_study

    if not check_study(study, as_json, data):
        raise typer.Exit(1)


@app.command()
def draw(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="An SVG, PNG or PDF file to write.")] = Path("graph.svg"),
    table: Annotated[list[str] | None, typer.Option(help="NAME=PATH of a public table; may be repeated.")] = None,
) -> None:
    """Draw who depends on whom, what is sensitive and who sees what. Private tables are not opened."""
    from sfumato.cli.draw import run_draw

    print(run_draw(study, out, table or ()))


@app.command()
def plan(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the plan to this JSON file.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the public tables; the study's own if left out.")] = None,
    size: Annotated[
        list[str] | None, typer.Option(help="NAME=NUMBER: how many individuals a dataset has, where that is public.")
    ] = None,
    at: Annotated[int | None, typer.Option("--at", help="The step to plan, of a study with steps.")] = None,
    inside: Annotated[
        str | None,
        typer.Option(metavar="CENTRE", help="What this centre publishes to those inside."),
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights", help="Also plan every publication at other weights, and show what that does.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Plan again whenever the file changes, until Ctrl-C.")] = False,
) -> None:
    """Decide where noise goes and how much, and predict every error. Private tables are not opened."""
    from sfumato.cli.study import next_command, read_sizes, show_plan, show_weights, watched, write_new
    from sfumato.run.aims import aims_of
    from sfumato.run.other_weights import other_weights
    from sfumato.run.study_file import plan_study

    console, sizes = Console(), read_sizes(size)

    def once() -> None:
        made = plan_study(study, data, sizes, at, inside)
        if out is not None:
            write_new(out, made.to_json())
        show_plan(made, console, aims_of(made, sizes))
        if weights:
            show_weights(other_weights(made, sizes), console)
        command = next_command(made, study, data, {"--at": at, "--inside": inside}, sizes)
        console.print(f"Next: {command}", markup=False, highlight=False, soft_wrap=True)

    if watch:
        watched(study, once, console)
    else:
        once()


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    out: Annotated[Path, typer.Option(help="New folder for results, certificates and the plan.")],
    data: Annotated[Path | None, typer.Option(help="Folder with the tables the study's sources name.")] = None,
    centres: Annotated[
        Path | None, typer.Option(help="Over several centres: the folder of the round (sfumato coordinate init).")
    ] = None,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where centres connect.")] = None,
    home: Annotated[Path, typer.Option(help="The coordinator's own folder.")] = Path("coordinator"),
    join_seconds: Annotated[float, typer.Option(help="How long to wait for centres to join.")] = 600.0,
    ledger: Annotated[
        Path | None, typer.Option(envvar="SFUMATO_LEDGER", help="The ledger file; default: beside the data.")
    ] = None,
    grant: Annotated[
        bool, typer.Option("--grant", help="Data that has no budget yet is granted exactly what this run needs.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Invented people, fixed noise, nothing charged, not for publication.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Publish what an interrupted run of the same plan left complete.")
    ] = False,
    size: Annotated[
        list[str] | None, typer.Option(help="NAME=NUMBER: how many individuals a dataset has, where that is public.")
    ] = None,
    at: Annotated[int | None, typer.Option("--at", help="The step to publish, of a study with steps.")] = None,
    inside: Annotated[
        str | None, typer.Option(metavar="CENTRE", help="Publish at this centre, from its own rows, to those inside.")
    ] = None,
    forgotten: Annotated[
        Path | None, typer.Option(help="A list of forget lines that stays with the data and in no published file.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Who evaluates the tables: local, dask, or a scheduler such as tcp://host:8786.")
    ] = "local",
) -> None:
    """Plan a study and publish it: results, certificates, the plan, a report and a README in one new folder."""
    from sfumato.cli.published import show_release
    from sfumato.cli.stages import staged
    from sfumato.cli.study import read_sizes
    from sfumato.cli.trace import folder_note
    from sfumato.evidence.report import finish_folder
    from sfumato.ledger.ledger import Ledger
    from sfumato.run.accounts import default_ledger
    from sfumato.run.study_file import public_tables, run_study

    console = Console()
    if centres is not None:
        others = {"--data": data, "--grant": grant, "--dry-run": dry_run, "--resume": resume, "--size": size}
        others |= {"--inside": inside, "--forgotten": forgotten, "--engine": engine}
        run_over_centres(console, study, centres, out, home, listen, join_seconds, at, others)
        return
    if data is None:
        raise InputError(
            f"Say where the tables are: sfumato run {shlex.quote(str(study))} --data FOLDER --out {out}. Over several "
            "centres: --centres ROUND. Nothing was run."
        )
    book = (ledger or default_ledger(data)).resolve()
    if not dry_run:
        console.print(f"ledger: {book}", highlight=False, markup=False, soft_wrap=True)
    with staged(console) as stage:  # on a terminal; elsewhere it is silent
        made, release = run_study(
            study,
            data,
            out,
            book if dry_run else Ledger(book),
            grant=granting(grant, console),
            dry_run=dry_run,
            resume=resume,
            sizes=read_sizes(size),
            at=at,
            inside=inside,
            forgotten=forgotten,
            engine=engine,
            tell=lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True),
            stage=stage,
            holds=_holds,
        )
    show_release(made, release, console)
    note = " (a dry run: not for publication, nothing charged)" if dry_run else ""
    console.print(f"{len(release.published)} publication(s) in {out}{note}", markup=False)
    assert made.network is not None  # it was planned just now
    public = public_tables(made.network.spec, data)
    missing = finish_folder(made, out, None if dry_run else book, tables=public, rehearsal=dry_run)
    console.print(folder_note(out, missing), soft_wrap=True, markup=False)
    if missing:
        raise typer.Exit(1)


@app.command()
def steps(
    study: Annotated[Path, typer.Argument(help="A study file with steps.")],
    data: Annotated[Path, typer.Option(help="Folder with the tables the study's sources name.")],
    ledger: Annotated[
        Path | None, typer.Option(envvar="SFUMATO_LEDGER", help="The ledger file; default: beside the data.")
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option(help="NAME=NUMBER: how many individuals a dataset has, where that is public.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="What this person's data are already part of, and what holds from now on.")
    ] = None,
    forgotten: Annotated[
        Path | None, typer.Option(help="The list of forget lines that later runs are made with.")
    ] = None,
) -> None:
    """Say what was published at which step, what is left, and whether the next step fits. Nothing is spent."""
    from sfumato.cli.steps import run_steps

    print(run_steps(study, data, ledger, size, person, forgotten), end="")


@app.command()
def view(
    folder: Annotated[Path, typer.Argument(help="A folder written by run.")],
    study: Annotated[Path, typer.Option(help="The study of the folder.")],
    data: Annotated[Path, typer.Option(help="Folder with the private tables: whoever can read them may ask.")],
    person: Annotated[str | None, typer.Option(help="Give this person what is theirs (personal_rv).")] = None,
    observer: Annotated[str | None, typer.Option(help="Give this observer what it knows exactly.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A new CSV file that only you can read; never in FOLDER.")
    ] = None,
    forgotten: Annotated[Path | None, typer.Option(help="The list of forget lines that was run with.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(envvar="SFUMATO_LEDGER", help="The ledger file; default: beside the data.")
    ] = None,
) -> None:
    """Give a person, or an observer, what is theirs exactly, from the private tables. Nothing of it is published."""
    from sfumato.cli.view import run_view

    print(run_view(folder, study, data, person, observer, out, forgotten, ledger), end="")


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="plan.json, a folder written by run, or a study file.")],
    reader: Annotated[
        str, typer.Option("--for", help="LAWYER, ANALYST or SUBJECT, or the name of one of the study's observers.")
    ] = "ANALYST",
    at: Annotated[int | None, typer.Option("--at", help="The step, of a study file with steps.")] = None,
    html: Annotated[Path | None, typer.Option(help="With --for LAWYER: write a page with lines to sign.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="The same as PDF, printed by a Chromium of this machine.")] = None,
    ledger: Annotated[Path | None, typer.Option(envvar="SFUMATO_LEDGER", help="The ledger file.")] = None,
) -> None:
    """Say in words what each observer will see, what they could still learn, and what else was considered."""
    from sfumato.cli.width import text_width
    from sfumato.evidence.explain import explain as explain_plan
    from sfumato.plan.plan import Plan
    from sfumato.run.study_file import plan_study

    if file.suffix == ".pl":
        made = plan_study(file, None, {}, at)
    else:
        made = Plan.read(file / "plan.json" if file.is_dir() else file)
    if html is not None or pdf is not None:
        from sfumato.cli.pages import write_lawyer_page

        print(write_lawyer_page(made, reader, file, html, pdf, ledger))
        return
    print(explain_plan(made, reader, file if file.is_dir() else None, text_width()), end="")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder written by run.")],
    study: Annotated[Path | None, typer.Option(help="The study, for the picture of its network.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the public tables; the study's own if left out.")] = None,
    ledger: Annotated[Path | None, typer.Option(envvar="SFUMATO_LEDGER", help="The ledger file.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Also print the page to this PDF, by a Chromium here.")] = None,
) -> None:
    """Write report.html and README.txt of a folder again, and say whether the folder is complete."""
    from sfumato.cli.trace import run_report

    text, complete = run_report(folder, study, data, ledger)
    print(text)
    if pdf is not None:
        from sfumato.cli.pages import print_page

        print(f"{print_page(folder / 'report.html', pdf)}: the same page, printed.")
    if not complete:
        raise typer.Exit(1)


@app.command()
def trace(
    result: Annotated[str, typer.Argument(help="A file in results/, a folder, or with --folder a publication's name.")],
    folder: Annotated[Path | None, typer.Option(help="The folder written by run.")] = None,
    study: Annotated[Path | None, typer.Option(help="The study, to name tables and columns too.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the public tables; the study's own if left out.")] = None,
    person: Annotated[
        str | None, typer.Option(help="What was already published from this person, and why that is bounded.")
    ] = None,
) -> None:
    """Say where a result came from and which requirement paid for it. Private tables are not opened."""
    from sfumato.cli.trace import run_trace

    print(run_trace(result, folder, study, data, person), end="")


@app.command()
def new(
    table: Annotated[
        Path, typer.Argument(help="A Parquet, CSV, DuckDB or SQLite file; names and types alone are read.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The study file to write.")] = Path("study.pl"),
    schema: Annotated[Path | None, typer.Option(help="Write a schema for `sfumato release` too.")] = None,
    person: Annotated[str | None, typer.Option(help="The column that says who a row is about.")] = None,
    each_row: Annotated[bool, typer.Option("--each-row", help="Every row is another person.")] = False,
    columns: Annotated[str | None, typer.Option(help="Only these columns: a,b,c. All of them if left out.")] = None,
    inside: Annotated[str | None, typer.Option("--table", help="Of a database: which of its tables.")] = None,
) -> None:
    """Begin a study from a table's column names and types, with marked gaps that `sfumato check` reports.

    Example: sfumato new stays.parquet --person patient_nbr --columns age,days
    """
    from sfumato.cli.new import run_new

    wanted = [name.strip() for name in columns.split(",") if name.strip()] if columns is not None else None
    ask = _which if sys.stdin.isatty() and sys.stdout.isatty() else None
    print(run_new(table, out, schema, person=person, each_row=each_row, columns=wanted, inside=inside, ask=ask))


def _which(question: str, names: Sequence[str]) -> str:
    return str(typer.prompt(f"{question} One of {', '.join(names)}", default=names[0]))


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


def _shown_warning(message: Warning | str, *place: Any) -> None:
    """A warning as a line of its own, without the line of a library's code that it came by."""
    Console(stderr=True).print(Text(f"warning: {message}"), highlight=False, soft_wrap=True)


def main() -> None:
    """The command: errors of the one tree become one readable message and exit code 1."""
    # A warning about a cell is for whoever sits here, and may not end the command: that would tell others of the cell.
    warnings.simplefilter("default", UndeclaredCellWarning)
    warnings.showwarning = _shown_warning
    try:
        app()
    except SfumatoError as error:
        # A study's own brackets are no markup.
        message = Text.assemble((type(error).__name__, "red"), f": {error}")
        Console(stderr=True).print(message, highlight=False, soft_wrap=True)
        sys.exit(130 if isinstance(error.__cause__, KeyboardInterrupt) else 1)
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted. Reservations already made in a ledger stay counted.")
        sys.exit(130)


if __name__ == "__main__":
    main()
