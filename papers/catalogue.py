"""The papers' experiments by name, and `reproduce`, which runs one and writes what it found.

In:   the id of a study, a folder, a seed. Out:  ID.csv (numbers), ID.png (figure), ID.json (numbers, settings,
versions, verdicts); table and verdicts on the terminal. Not here: the experiments (farokhi.py …), the command line
(commands.py).

All files are written beside their places and moved there at the end: an interrupted run leaves nothing.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from papers import basu_channels
from papers.basu_bins import DISCRETISATION
from papers.basu_centres import CENTRES
from papers.basu_means import POWER_MEANS
from papers.chaudhuri import TABLE1, TABLE2
from papers.chaudhuri_curves import FIG4, FIG5
from papers.chaudhuri_tradeoff import FIG2, FIG3
from papers.farokhi import ADULT, CANCER, LENDING
from papers.farokhi_regions import FIG1
from papers.farokhi_regions import FIG2 as FAROKHI_FIG2
from papers.farokhi_toy import TOY
from papers.park import FIG7_1
from papers.park_figures import FIG1_1, FIG5_2, TABLE7_1
from papers.park_points import FIG7_2
from papers.park_regions import FIG5_1
from papers.park_tables import TABLE7_2, TABLE7_3
from papers.study import Cell, Study, StudyResult, StudySettings, Verdict
from sfumato.core.tables import nearest
from sfumato.errors import InputError

__all__ = ["STUDIES", "Study", "StudyResult", "StudySettings", "Verdict", "find_study", "reproduce", "studies_table"]

#: Every study by its id. Listed by hand: a study that is forgotten here does not exist.
STUDIES: dict[str, Study] = {
    "farokhi-fig1": FIG1,
    "farokhi-fig2": FAROKHI_FIG2,
    "farokhi-toy": TOY,
    "farokhi-cancer": CANCER,
    "farokhi-adult": ADULT,
    "farokhi-lending": LENDING,
    "basu-centres": CENTRES,
    "chaudhuri-table1": TABLE1,
    "chaudhuri-table2": TABLE2,
    "chaudhuri-fig2": FIG2,
    "chaudhuri-fig3": FIG3,
    "chaudhuri-fig4": FIG4,
    "chaudhuri-fig5": FIG5,
    "park-fig1.1": FIG1_1,
    "park-fig5.1": FIG5_1,
    "park-fig5.2": FIG5_2,
    "park-fig7.1": FIG7_1,
    "park-fig7.2": FIG7_2,
    "park-table7.1": TABLE7_1,
    "park-table7.2": TABLE7_2,
    "park-table7.3": TABLE7_3,
    **basu_channels.STUDIES,
    "basu-discretisation": DISCRETISATION,
    "basu-power-means": POWER_MEANS,
}

_VERSIONS = ("sfumato", "numpy", "scipy", "scikit-learn", "pyarrow", "matplotlib")
_DOTS_PER_INCH = 150


def find_study(study_id: str) -> Study:
    """The study of that id, or an error that names the nearest ones."""
    if study_id in STUDIES:
        return STUDIES[study_id]
    raise InputError(
        f"There is no study {study_id!r}{nearest(study_id, STUDIES)}. "
        f"The studies are: {', '.join(STUDIES)}. Nothing was run."
    )


def reproduce(study_id: str, out: Path, *, seed: int = 0, quick: bool = False, console: Console) -> list[Path]:
    """Run a study and write its files into `out`; the paths written."""
    study = find_study(study_id)
    _refuse_bad_folder(out)
    console.print(Text(f"{study.id}: {study.title}", style="bold"))
    console.print(Text(study.reference, style="dim"))
    with _progress(console) as progress:
        settings = StudySettings(
            seed=seed, quick=quick, track=lambda steps, label: progress.track(steps, description=label)
        )
        result = study.run(settings)
    written = _write(study, result, settings, out)
    _print(study, result, written, console)
    return written


def studies_table() -> Table:
    """Ids and titles, for `--list`."""
    table = Table("id", "what it shows", "paper", title="Studies", title_justify="left")
    for study in STUDIES.values():
        table.add_row(study.id, Text(study.title), Text(study.reference))
    return table


def _progress(console: Console) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True)


def _refuse_bad_folder(out: Path) -> None:
    """Before minutes of work, not after."""
    existing = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise InputError(f"{existing} is a file and cannot hold the results: give another folder. Nothing was run.")
    if not os.access(existing, os.W_OK):
        raise InputError(f"{existing} cannot be written to: give another folder. Nothing was run.")


# Files.


def _write(study: Study, result: StudyResult, settings: StudySettings, out: Path) -> list[Path]:
    with _beside(out) as folder:
        paths = [folder / f"{study.id}.{kind}" for kind in ("csv", "png", "json")]
        _write_csv(result, paths[0])
        _write_figure(result, paths[1])
        paths[2].write_text(_report(study, result, settings), encoding="utf-8")
        for path in paths:
            os.replace(path, out / path.name)
    return [out / path.name for path in paths]


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """A folder inside `out`, on the same disk so that moving is one step; gone afterwards whatever happens."""
    new = not out.exists()
    folder = out / f".{secrets.token_hex(4)}.tmp"
    try:
        folder.mkdir(parents=True)
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if new and out.exists() and not any(out.iterdir()):
            out.rmdir()
        raise
    shutil.rmtree(folder)


def _write_csv(result: StudyResult, path: Path) -> None:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)


def _write_figure(result: StudyResult, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    result.figure(figure)
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def _report(study: Study, result: StudyResult, settings: StudySettings) -> str:
    report: dict[str, Any] = {
        "study": study.id,
        "title": study.title,
        "reference": study.reference,
        "settings": {"seed": settings.seed, "quick": settings.quick, **result.settings},
        "verdicts": [{"claim": v.claim, "of": v.of, "holds": v.holds, "finding": v.finding} for v in result.verdicts],
        "numbers": dict(result.numbers),
        "notes": list(result.notes),
        "columns": list(result.columns),
        "rows": [list(row) for row in result.rows],
        "versions": {"python": sys.version.split()[0], **{name: metadata.version(name) for name in _VERSIONS}},
        "publishable": False,  # seeded noise: an experiment on public data, not a release
    }
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


# The terminal.


def _print(study: Study, result: StudyResult, written: Sequence[Path], console: Console) -> None:
    columns, rows = result.shown or (result.columns, result.rows)
    table = Table(title=Text(study.title), title_justify="left")
    for name in columns:
        table.add_column(Text(name))
    for row in rows:
        table.add_row(*(Text(_cell(cell)) for cell in row))
    console.print(table)
    for verdict in result.verdicts:
        console.print(_verdict_line(verdict))
    for note in result.notes:
        console.print(Text(f"  note: {note}", style="dim"))
    console.print(Text(f"Written: {', '.join(map(str, written))}"))


def _verdict_line(verdict: Verdict) -> Text:
    mark = {True: ("✓ ", "green"), False: ("✗ ", "red"), None: ("? ", "yellow")}[verdict.holds]
    whose = "" if verdict.of == "paper" else "(ours) "
    return Text.assemble(mark, (whose, "dim"), str(verdict))


def _cell(cell: Cell) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
