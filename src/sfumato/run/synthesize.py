"""Synthetic rows from file to file: counted batch by batch, charged, certified, all or nothing.

In:   a table file, a SyntheticRelease, a ledger.
Out:  a new folder with the rows, the noisy tables behind them, the certificate and a note for its readers.
Not here: what is measured and how rows are made (release/synthetic/), the formats (run/files.py).

Order of events: try all that could fail, count, reserve, draw, write, mark the folder as complete, commit, show it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sfumato.core.domain import told_to, warn_of
from sfumato.core.guarantee import ApproxDP, Guarantee
from sfumato.errors import DataError, InputError
from sfumato.ledger.ledger import Ledger
from sfumato.release.synthetic import Measured, SyntheticRelease
from sfumato.release.synthetic.counts import PairCounts
from sfumato.release.table import RECORD
from sfumato.run.accounts import Grant, table_sources
from sfumato.run.files import TableFile
from sfumato.run.interruption import paying
from sfumato.run.manifest import hashes, write_manifest
from sfumato.run.run_key import binding
from sfumato.run.staging import Staging, check_target, finish
from sfumato.run.tables import AGAIN, check_types, checked_columns, reserve

__all__ = ["synthesize_file"]

Progress = Callable[[int], None]
_BATCH_ROWS = 1 << 18
_FILES = ("table.parquet", "measured.parquet", "README.txt", "certificate.json")


def synthesize_file(
    source: Path,
    release: SyntheticRelease,
    out: Path,
    ledger: Ledger,
    dataset: str,
    *,
    progress: Progress = lambda rows: None,
    grant: Grant = False,
) -> Guarantee:
    """Publish invented rows in place of those of `source` into the new folder `out`; returns what was promised.

    One row is one person. `grant` lets data that has no budget yet get exactly what this release needs.
    """
    if release.random_state is not None or release.adjacency != RECORD:
        raise InputError(
            "A file is published without a random_state, and its number of rows is public: leave random_state out and "
            "adjacency at REPLACE_ONE. Nothing was spent."
        )
    file = TableFile.open(source)
    columns = checked_columns(file, release.schema)
    check_target(out)
    sources = table_sources(source)
    run = binding("synthetic", release.facts(), sources, dataset)
    promise = ApproxDP(release.epsilon, release.delta, adjacency=RECORD)
    if finish(out, run, ledger, AGAIN):
        return promise
    check_types(file, release.schema)
    heard: set[str] = set()
    room = 2 * source.stat().st_size + (1 << 20)
    with (
        paying(ledger, AGAIN) as payment,
        Staging.open(out, run, again=AGAIN, room=room, files=_FILES) as staging,
    ):
        with told_to(heard):
            counted = _counted(file, release, columns, progress)
        purpose = f"synthetic rows for {source.name}"
        payment.reservations += reserve(ledger, dataset, promise, purpose, sources=sources, grant=grant)
        payment.begin()
        made, facts = release.from_counts(counted, file.types(release.schema))
        _write(staging.folder, made.select(columns), facts)
        staging.complete(ledger, payment.reservations)
        payment.end()
        for reservation in payment.reservations:
            ledger.commit(reservation)
        staging.publish()
    warn_of(heard)
    return promise


def _counted(file: TableFile, release: SyntheticRelease, columns: list[str], progress: Progress) -> PairCounts:
    """All pairs of columns in one pass, before anything is reserved: noise needs nothing else of the table."""
    counted = release.empty_counts()
    for batch in file.batches(release.schema, columns, _BATCH_ROWS):
        counted.add(release.codes(batch))
        progress(batch.num_rows)
    if counted.rows == 0:
        raise DataError(f"{file.path.name} has no rows. Nothing was drawn and nothing was spent.")
    if not file.is_unchanged():
        raise DataError(f"{file.path.name} changed while it was being read. Run again. Nothing was spent.")
    return counted


def _write(folder: Path, made: pa.Table, facts: dict[str, Any]) -> None:
    parquet.write_table(made, folder / "table.parquet")
    parquet.write_table(measured_table(facts["measured"]), folder / "measured.parquet")
    lines = [
        f"This folder holds {made.num_rows} invented rows in place of a private table of as many records.",
        f"Promise: {facts['guarantee']}.",
        f"How they were made: {facts['plan']}; Gaussian noise on counts, then the most even law that fits them.",
        *facts["notes"],
        "",
        "Good for: trying out programs, teaching, models and tables of one or two columns. Not for: single people,",
        "rare combinations of three and more columns, intervals. For answers with an error take measured.parquet: the",
        "noisy counts the rows were made from, each with its standard error; they may be negative, and are unbiased.",
        "Checking it: sfumato verify FOLDER recomputes the promise and the hash of every file, without the data.",
    ]
    (folder / "README.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    named = write_manifest(folder, "manifest.json", hashes(folder))
    facts["certificate"].bound_to(named).write(folder / "certificate.json")


def measured_table(measured: Sequence[Measured]) -> pa.Table:
    """The noisy tables in one: table, first column and level, second column and level, count, standard error."""
    parts: dict[str, list[Any]] = {
        name: [] for name in ("table", "first", "first_level", "second", "second_level", "count", "standard_error")
    }
    for number, one in enumerate(measured):
        cells = list(itertools.product(*one.levels))
        second = one.columns[1] if len(one.columns) > 1 else None
        parts["table"] += [number] * len(cells)
        parts["first"] += [*one.columns[:1]] * len(cells)
        parts["first_level"] += [cell[0] for cell in cells]
        parts["second"] += [second] * len(cells)
        parts["second_level"] += [cell[1] if second else None for cell in cells]
        parts["count"] += np.ravel(one.counts).tolist()
        parts["standard_error"] += [one.standard_error] * len(cells)
    text = {name: pa.string() for name in ("first", "first_level", "second", "second_level")}
    return pa.table({name: pa.array(values, text.get(name)) for name, values in parts.items()})
