"""Synthetic rows from files to a folder: counted part by part, charged, certified, all or nothing.

In:   a table file, or a folder of Parquet and an engine; a SyntheticRelease; a ledger.
Out:  a new folder with the rows, the noisy tables behind them, the certificate and a note for its readers.
Not here: what is measured and how rows are made (release/synthetic/), the formats (run/files.py, run/partition.py).

Order of events: try all that could fail, count, tell what to expect, reserve, draw, write, mark the folder as complete,
commit, show it. Where edges are bought the table is counted a second time, between two draws.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa
from pyarrow import parquet

from sfumato.core.curator import told_to, warn_of
from sfumato.core.domain import Categories
from sfumato.core.guarantee import Guarantee
from sfumato.core.places import Place, place_of
from sfumato.core.schema import Schema
from sfumato.errors import DataError, InputError
from sfumato.ledger.ledger import Ledger
from sfumato.release.synthetic import SyntheticRelease
from sfumato.release.synthetic.counts import PairCounts
from sfumato.release.synthetic.levels import kind_by_domain
from sfumato.release.synthetic.page import marginals_page
from sfumato.release.synthetic.plans import Forecast
from sfumato.release.synthetic.release import Counting
from sfumato.release.synthetic.result import measured_table
from sfumato.run.accounts import Grant, files_sources, table_sources
from sfumato.run.engine.engine import Engine, open_engine
from sfumato.run.files import TableFile
from sfumato.run.interruption import paying
from sfumato.run.manifest import hashes, write_manifest
from sfumato.run.partition import PartitionedTable, PartLayout, TablePart
from sfumato.run.run_key import binding
from sfumato.run.staging import Staging, check_target, finish
from sfumato.run.tables import AGAIN, check_types, checked_columns, checked_names, reserve
from sfumato.wording import text

__all__ = ["synthesize_file"]

Progress = Callable[[int], None]
Tell = Callable[[Sequence[Forecast]], None]
_BATCH_ROWS = 1 << 18
_README_WIDTH = 110
_FILES = ("table.parquet", "measured.parquet", "marginals.html", "README.txt", "certificate.json")


def synthesize_file(
    source: str | os.PathLike[str],
    release: SyntheticRelease,
    out: Place,
    ledger: Ledger,
    dataset: str,
    *,
    engine: str | Engine = "local",
    progress: Progress = lambda rows: None,
    tell: Tell = lambda forecasts: None,
    say: Callable[[str], None] = lambda sentence: None,
    grant: Grant = False,
) -> Guarantee:
    """Publish invented rows in place of those of `source` into the new folder `out`; returns what was promised.

    One row is one person, or `release.people` says whose it is. `tell` hears what every plan is expected to reach and
    `say` what else there is to know before anything is reserved. `grant` lets data that has no budget yet get exactly
    what this release needs.
    """
    if release.random_state is not None or release.adjacency.relation != "replace-one":
        raise InputError(
            "A file is published without a random_state, and its number of rows is public: leave random_state out and "
            "adjacency at REPLACE_ONE. Nothing was spent."
        )
    table, out = _opened(source, release, engine, progress), place_of(out)
    kinds = table.kinds()
    release.check(kinds)
    check_target(out)
    run = binding("synthetic", release.facts(), table.sources, dataset)
    if finish(out, run, ledger, AGAIN):
        return release.promise
    heard: set[str] = set()
    with (
        paying(ledger, AGAIN) as payment,
        Staging.open(out, run, again=AGAIN, room=table.room, files=_FILES) as staging,
        told_to(heard),
    ):
        look = release.look(table.gather, kinds)
        rows = release.public_rows(look)  # refuses an empty table where everybody may know that it is empty
        table.check_before()
        if rows is not None:  # otherwise a forecast would tell how many there are
            tell(release.expected(rows, kinds))
        notes = release.notes_on_types(kinds)
        for sentence in notes:
            say(sentence)
        purpose = f"synthetic rows for {table.name}"
        payment.reservations += reserve(ledger, dataset, release.promise, purpose, sources=table.sources, grant=grant)
        payment.begin()
        made, facts = release.publish(look, table.gather)
        table.check_after()
        facts["notes"] += notes
        _write(staging.folder, made, facts)
        staging.complete(ledger, payment.reservations)
        payment.end()
        for reservation in payment.reservations:
            ledger.commit(reservation)
        staging.publish()
    warn_of(heard)
    return release.promise


class _Table(ABC):
    """Where the rows are. Abstract."""

    name: str
    sources: tuple[str, ...]
    room: int

    @abstractmethod
    def kinds(self) -> dict[str, pa.DataType]:
        """The types of the declared columns."""

    @abstractmethod
    def gather(self, counting: Counting) -> PairCounts:
        """All rows counted, in one pass."""

    @abstractmethod
    def check_before(self) -> None:
        """Refuse a table that changed while it was counted; nothing was spent yet."""

    @abstractmethod
    def check_after(self) -> None:
        """Refuse a table that changed after a draw; the charge stays."""


def _opened(
    source: str | os.PathLike[str], release: SyntheticRelease, engine: str | Engine, progress: Progress
) -> _Table:
    address = os.fspath(source)
    if engine == "local" and "://" not in address and not Path(address).is_dir():
        return _OneFile(TableFile.open(Path(address)), release, progress)
    if release.people is not None:
        raise InputError(
            "Several rows of one person may lie in several files: put them into one file to use people and "
            "rows_per_person. Nothing was spent."
        )
    return _Folder(address, PartitionedTable.open(address), release.schema, engine, progress)


#: Taking out the column that says whose a row is would leave each row protected, and no person.
_WHOSE = (
    " If one of them says whose a row is, leave it there and name it with --people (from Python people=): then persons "
    "are protected, else single rows."
)


@final
class _OneFile(_Table):
    """One .parquet or .csv file, read batch by batch; as a whole where rows of one person must be found."""

    def __init__(self, file: TableFile, release: SyntheticRelease, progress: Progress) -> None:
        self.file, self.release, self.progress = file, release, progress
        self.name, self.sources = file.path.name, table_sources(file.path, release.people or "")
        self.room = 2 * file.path.stat().st_size + (1 << 20)
        self._read = release.schema
        if release.people is not None:  # read as text, whatever stands there
            self._read = Schema({**release.schema.columns, release.people: Categories(("?",))})
        self._columns = checked_columns(file, self._read, _WHOSE if release.people is None else "")
        check_types(file, release.schema) if release.people is None else self._check_declared()
        self._kept: pa.Table | None = None

    def _check_declared(self) -> None:
        for name, kind in self.file.column_types().items():
            if name in self.release.schema.columns:
                self.release.schema.columns[name].check_type(kind, name)

    def kinds(self) -> dict[str, pa.DataType]:
        return self.file.types(self.release.schema)

    def gather(self, counting: Counting) -> PairCounts:
        if self.release.people is not None:
            if self._kept is None:
                self._kept = self.release.kept(pa.concat_tables(list(self._batches())))
            return counting(self._kept)
        counted = counting.empty()
        for batch in self._batches():
            counted = counted.plus(counting(batch))
            self.progress(batch.num_rows)
        return counted

    def _batches(self) -> Any:
        return self.file.batches(self._read, self._columns, _BATCH_ROWS)

    def check_before(self) -> None:
        if not self.file.is_unchanged():
            raise DataError(f"{self.name} changed while it was being read. Run again. Nothing was spent.")

    def check_after(self) -> None:
        self.file.check_unchanged()


@final
class _Folder(_Table):
    """A table of many Parquet files, counted part by part by whoever works."""

    def __init__(
        self, address: str, table: PartitionedTable, schema: Schema, engine: str | Engine, progress: Progress
    ) -> None:
        self.table, self.schema, self.engine, self.progress = table, schema, engine, progress
        checked_names(table.name, table.column_names, schema)
        for name, domain in schema.columns.items():
            domain.check_type(table.schema.field(name).type, name)
        self.name, self.sources = table.name, files_sources(address, table.files)
        self.room = (1 << 20) + 9 * table.total_rows * len(table.column_names)

    def kinds(self) -> dict[str, pa.DataType]:
        held, told = self.table.schema, self.table.told
        return {
            name: kind_by_domain(domain) if name in told else held.field(name).type
            for name, domain in self.schema.columns.items()
        }

    def gather(self, counting: Counting) -> PairCounts:
        parts = self.table.groups_as_parts(PartLayout.for_columns(len(self.schema.columns)))
        crew = open_engine(self.engine)
        try:
            counted = crew.sum(_CountPart(counting), parts) if parts else counting.empty()
        finally:
            if crew is not self.engine:
                crew.close()
        self.progress(self.table.total_rows)
        return counted

    def check_before(self) -> None:
        self.table.check_unchanged()

    def check_after(self) -> None:
        self.table.check_unchanged()


@dataclass(frozen=True)
class _CountPart:
    """The task of a worker: count one part. Doing it twice gives the same counts."""

    counting: Counting

    def __call__(self, part: TablePart) -> PairCounts:
        counted = self.counting.empty()
        for _, block in part.blocks([column.name for column in self.counting.levels]):
            counted = counted.plus(self.counting(block))
        return counted


def _write(folder: Path, made: pa.Table, facts: dict[str, Any]) -> None:
    parquet.write_table(made, folder / "table.parquet")
    parquet.write_table(measured_table(facts["measured"]), folder / "measured.parquet")
    page = marginals_page("Measured and generated counts", facts["measured"], facts["notes"])
    (folder / "marginals.html").write_text(page, encoding="utf-8")
    told = {"guarantee": facts["guarantee"], "plan": facts["forecast"].plan.words, "notes": facts["notes"]}
    said = text("synthetic_readme.txt", _README_WIDTH, rows=made.num_rows, **told)
    (folder / "README.txt").write_text(said, encoding="utf-8")
    named = write_manifest(folder, "manifest.json", hashes(folder))
    facts["certificate"].bound_to(named).write(folder / "certificate.json")
