"""Release a table of many files on any engine: part by part, charged once, certified, all or nothing.

In:   a Parquet folder or address, a prepared release, a ledger, an engine.
Out:  a new folder: table/part-00000.parquet …, the noise law, the certificate, a note for readers.
Not here: one file on one machine (run/tables.py), the key of the run (run/run_key.py), parts (run/partition.py).

Noise is a function of the run's secret key and of the row block it is for, so whichever worker writes a part, and
however often, the same bytes come out. The order is: key on disk, reserve, draw and write into a hidden folder, check,
mark it as complete, commit, destroy the key, rename. Wherever it stops there is no output, or all of it, the ledger
counts every draw, and the same call goes on: with the same noise, or with what is complete already.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from sfumato.core.curator import told_to, warn_of
from sfumato.core.guarantee import Guarantee
from sfumato.core.places import Place, place_of
from sfumato.core.tables import nearest
from sfumato.errors import DataError, InputError, SchemaError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation
from sfumato.release.obfuscated import ObfuscatedRelease
from sfumato.release.table import PreparedTable
from sfumato.run.accounts import Grant, files_sources
from sfumato.run.engine.engine import Engine, open_engine
from sfumato.run.files import new_sink
from sfumato.run.partition import PartitionedTable, PartLayout, TablePart, grouped
from sfumato.run.run_key import RunKey, binding
from sfumato.run.staging import Staging, check_target, finish
from sfumato.run.tables import AGAIN, Progress, reserve, write_facts

__all__ = ["ReleaseParts", "check_columns", "check_workers", "part_name", "release_partitions"]

#: How long a disk may take nothing.
_WRITE_SECONDS = 600.0


def release_partitions(
    source: str | os.PathLike[str],
    prepared: PreparedTable,
    out: Place,
    ledger: Ledger,
    dataset: str,
    *,
    engine: str | Engine = "local",
    partitions: int | None = None,
    layout: PartLayout | None = None,
    progress: Progress = lambda rows: None,
    grant: Grant = False,
) -> Guarantee:
    """Publish the table at `source` into the new folder `out`; returns what was promised.

    `partitions` says how many tasks the work is cut into; it changes nothing in the result. Interrupted, the same call
    goes on where it stopped and costs nothing more, as long as plan and input are the same. `grant` lets data that has
    no budget yet get exactly what this release needs: a person's decision.
    """
    if not prepared.publishable:
        raise InputError("A release with a random_state is for experiments and is not written. Nothing was spent.")
    table, out = PartitionedTable.open(source), place_of(out)
    check_columns(table, prepared)
    check_target(out)
    if table.total_rows == 0:
        raise DataError(f"{table.name} has no rows. Nothing was drawn and nothing was spent.")
    layout = layout or PartLayout.for_columns(len(table.column_names))
    parts = table.parts(layout)
    bound_to = _bound_to(table, prepared, out, dataset, layout)
    if finish(out, bound_to, ledger, AGAIN, before=lambda: _forget_key(ledger, bound_to)):
        return prepared.guarantee
    crew = open_engine(engine)
    try:
        with RunKey.open(ledger.path, bound_to) as key:
            if key.resumed and _is_committed(ledger, key.run):
                key.renew()  # that run is over and paid, and its noise may not be drawn again: this is another run
            _release(
                crew, os.fspath(source), table, prepared, out, ledger, dataset, key, bound_to, parts, partitions,
                progress, grant,
            )  # fmt: skip
    finally:
        if crew is not engine:
            crew.close()
    return prepared.guarantee


def _release(
    crew: Engine,
    source: str,
    table: PartitionedTable,
    prepared: PreparedTable,
    out: Path,
    ledger: Ledger,
    dataset: str,
    key: RunKey,
    bound_to: str,
    parts: Sequence[TablePart],
    partitions: int | None,
    progress: Progress,
    grant: Grant,
) -> None:
    room = (1 << 20) + 9 * table.total_rows * len(table.column_names)
    names = [f"table/{part_name(parts[-1])}"]
    attempt = f"{bound_to}:{key.run}"
    with Staging.open(out, attempt, again=AGAIN, room=room, files=names, keep=True) as staging:
        reservations = _charge(ledger, dataset, prepared, key, crew, staging, source, table, grant)
        heard = _draw(
            crew,
            table,
            prepared,
            key,
            staging.folder,
            grouped(_unfinished(parts, staging.folder), partitions),
            progress,
        )
        _check_complete(table, parts, staging, key)
        write_facts(prepared, staging.folder, Path(table.name), table.total_rows)
        staging.complete(ledger, reservations)
        for reservation in reservations:
            ledger.commit(reservation)
        key.destroy()  # before anybody sees the table: whoever has both has the rows
        staging.publish()
    warn_of(heard)


def _forget_key(ledger: Ledger, bound_to: str) -> None:
    with RunKey.open(ledger.path, bound_to) as key:
        key.destroy()


@dataclass(frozen=True)
class ReleaseParts:
    """The task of a worker: publish some parts into `folder`. Doing it twice gives the same files.

    `prepared` holds the key of the run.
    """

    prepared: PreparedTable
    columns: tuple[str, ...]
    folder: str

    def __call__(self, parts: Sequence[TablePart]) -> tuple[int, frozenset[str]]:
        """How many rows, and what the curator is to be told: nobody reads a worker's warnings."""
        heard: set[str] = set()
        with told_to(heard):
            return sum(self._write(part) for part in parts), frozenset(heard)

    def _write(self, part: TablePart) -> int:
        """Draw here, write in a second thread; the file takes its name when it is complete."""
        target = Path(self.folder) / part_name(part)
        unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        sink: Any = None
        rows, writing = 0, None
        pool = ThreadPoolExecutor(1)
        try:
            for number, block in part.blocks(self.columns):
                published = self.prepared.apply(block, number)
                sink = sink or new_sink(unfinished, "parquet", published.schema)
                _wait(writing)
                writing = pool.submit(_written_down, sink, unfinished, published)
                rows += block.num_rows
            _wait(writing)
            sink.close()
            _flush(unfinished)
            os.replace(unfinished, target)
        finally:
            pool.shutdown(wait=writing is None or writing.done(), cancel_futures=True)
            if sink is not None and sink.is_open and (writing is None or writing.done()):
                _close_quietly(sink)
            unfinished.unlink(missing_ok=True)
        return rows


def check_columns(table: PartitionedTable, prepared: PreparedTable | ObfuscatedRelease) -> None:
    """Refuse a table whose columns are not those of the schema."""
    names, declared = table.column_names, list(prepared.schema.columns)
    missing = [name for name in declared if name not in names]
    extra = [name for name in names if name not in declared]
    if missing:
        raise SchemaError(
            f"{table.name} lacks the declared column(s) {', '.join(missing)}.{nearest(missing[0], names)} "
            "Nothing was drawn or spent."
        )
    if extra:
        raise SchemaError(
            f"{table.name} has column(s) the schema does not know: {', '.join(extra)}. Declare them or remove them "
            "from the files: undeclared means not published. Nothing was drawn or spent."
        )
    for name in declared:
        prepared.schema.columns[name].check_type(table.schema.field(name).type, name)


def _bound_to(table: PartitionedTable, prepared: PreparedTable, out: Path, dataset: str, layout: PartLayout) -> str:
    """Everything the published bytes depend on besides the key."""
    return binding(
        prepared.noise.to_json(),
        [event.to_dict() for event in prepared.events],
        prepared.plan,
        [prepared.clip, prepared.label, prepared.subject],
        [table.column_names, table.fingerprint, [layout.block_rows, layout.part_blocks]],
        [dataset, str(out.resolve())],
        _versions(),
    )


def _versions() -> dict[str, str]:
    """What turns the same bits into the same noise."""
    return {name: metadata.version(name) for name in ("sfumato", "numpy")}


@dataclass(frozen=True)
class _Visible:
    folder: str

    def __call__(self) -> tuple[bool, dict[str, str]]:
        return os.access(self.folder, os.W_OK | os.X_OK), _versions()


def check_workers(crew: Engine, staging: Path) -> None:
    """Every worker writes into the same folder, by the same versions."""
    answers = crew.everywhere(_Visible(str(staging / "table")))
    if not all(sees for sees, _ in answers):
        raise SfumatoError(
            f"A worker cannot write to {staging.parent}: choose --out in a folder that all workers share. Nothing was "
            "drawn or spent."
        )
    if any(versions != _versions() for _, versions in answers):
        raise SfumatoError(
            "The workers have other versions of sfumato or numpy than this process: retries might draw other noise. "
            "Install the same versions everywhere. Nothing was drawn or spent."
        )


def _charge(
    ledger: Ledger,
    dataset: str,
    prepared: PreparedTable,
    key: RunKey,
    crew: Engine,
    staging: Staging,
    source: str,
    table: PartitionedTable,
    grant: Grant,
) -> list[Reservation]:
    """The cost set aside, for workers that all see the hidden folder. What fails here fails before any draw."""
    try:
        (staging.folder / "table").mkdir(mode=0o700, exist_ok=True)
        check_workers(crew, staging.folder)
        purpose = f"whole-table release of {table.name}"
        return reserve(
            ledger, dataset, prepared.guarantee, purpose,
            sources=files_sources(source, table.files), grant=grant, key=key.run, resumed=key.resumed,
        )  # fmt: skip
    except BaseException:
        if not key.resumed:
            staging.discard()
            key.destroy()
        raise


def _is_committed(ledger: Ledger, run: str) -> bool:
    history = ledger.history()
    own = {record.reservation for record in history if record.action == "reserve" and record.key == run}
    return any(record.action == "commit" and record.reservation in own for record in history)


def part_name(part: TablePart) -> str:
    """The file of one part."""
    return f"part-{part.number:05d}.parquet"


def _unfinished(parts: Sequence[TablePart], staging: Path) -> list[TablePart]:
    """Parts without a complete file: an earlier attempt may have written some, with the same bytes."""
    return [part for part in parts if not (staging / "table" / part_name(part)).exists()]


def _draw(
    crew: Engine,
    table: PartitionedTable,
    prepared: PreparedTable,
    key: RunKey,
    staging: Path,
    tasks: list[tuple[TablePart, ...]],
    progress: Progress,
) -> set[str]:
    """What the curator is to be told."""
    task = ReleaseParts(prepared.keyed(key.key), tuple(table.column_names), str(staging / "table"))
    heard: set[str] = set()
    for _, (rows, told) in crew.map(task, tasks):
        progress(rows)
        heard |= told
    return heard


def _check_complete(table: PartitionedTable, parts: Sequence[TablePart], staging: Staging, key: RunKey) -> None:
    for part in parts:
        path = staging.folder / "table" / part_name(part)
        if not path.exists() or parquet.read_metadata(path).num_rows != part.rows:
            raise SfumatoError(
                "A part of the published table is missing: do all workers share the folder of --out? Nothing was "
                "published. The same command run again goes on, at no further cost."
            )
    for stray in (staging.folder / "table").glob(".*"):  # of attempts that were killed
        stray.unlink(missing_ok=True)
    try:
        table.check_unchanged()
    except DataError:
        # With other rows the same noise would show the difference: nothing of this attempt may be used again.
        staging.discard()
        key.destroy()
        raise


def _wait(writing: Future[Any] | None) -> None:
    if writing is None:
        return
    try:
        writing.result(timeout=_WRITE_SECONDS)
    except TimeoutError:
        raise SfumatoError(
            f"The disk of --out has taken nothing for {_WRITE_SECONDS:g} s. Nothing was published. The same command "
            "run again takes up where this one stopped, at no further cost."
        ) from None


def _written_down(sink: Any, path: Path, block: pa.Table) -> None:
    """On the disk, and not only in this machine's memory: else all blocks of a part are waited for at its end."""
    sink.write_table(block, row_group_size=block.num_rows)
    _flush(path)


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _close_quietly(sink: Any) -> None:
    with suppress(OSError, pa.ArrowException):  # the error that brought us here is the one to report
        sink.close()
