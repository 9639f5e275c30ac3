"""Release a whole table from file to file: streamed, charged, certified, all or nothing.

In:   a table file, a prepared release, a ledger.
Out:  a new folder with the published table, its noise law, its certificate and a note for its readers.
Not here: what noise (release/), the formats (run/files.py).

The cost is reserved before the first batch is read and committed when the folder is complete. What fails before that
leaves no output and keeps the charge; what fails later leaves the complete folder, and the same call publishes it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from sfumato.core.adjacency import Adjacency
from sfumato.core.curator import told_to, warn_of
from sfumato.core.guarantee import Guarantee
from sfumato.core.places import Place, place_of
from sfumato.core.schema import Schema
from sfumato.core.tables import nearest
from sfumato.errors import DataError, InputError, SchemaError, UnknownDatasetError
from sfumato.ledger.commands import grant_command
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation
from sfumato.release.table import RECORD, PreparedTable
from sfumato.run.accounts import Grant, first_grant, needed, table_sources
from sfumato.run.files import TableFile
from sfumato.run.interruption import paying
from sfumato.run.manifest import hashes, write_manifest
from sfumato.run.run_key import binding
from sfumato.run.staging import Staging, check_target, finish
from sfumato.wording import text

__all__ = ["check_types", "checked_columns", "checked_names", "release_file", "reserve", "write_facts"]

Progress = Callable[[int], None]
AGAIN = "run the same command again: it publishes what was drawn and costs nothing more."
#: Numbers in a batch: small enough for the memory of a laptop, large enough for numpy.
_BATCH_NUMBERS = 1 << 22
#: How long a disk may take nothing, and how long an end is waited for that cannot help any more.
_WRITE_SECONDS, _GOODBYE_SECONDS = 600.0, 5.0


def release_file(
    source: Place,
    prepared: PreparedTable,
    out: Place,
    ledger: Ledger,
    dataset: str,
    *,
    progress: Progress = lambda rows: None,
    grant: Grant = False,
) -> Guarantee:
    """Publish `source` into the new folder `out`; returns what was promised.

    `grant` lets data that has no budget yet get exactly what this release needs: a person's decision.
    """
    if not prepared.publishable:
        raise InputError("A release with a random_state is for experiments and is not written. Nothing was spent.")
    source, out = place_of(source), place_of(out)
    file = TableFile.open(source)
    columns = checked_columns(file, prepared.schema)
    check_target(out)
    sources = table_sources(source)
    run = binding(prepared.noise.to_json(), prepared.plan, [prepared.clip, prepared.label], sources, dataset)
    if finish(out, run, ledger, AGAIN):
        return prepared.guarantee
    rows = max(1024, _BATCH_NUMBERS // max(1, len(columns)))
    check_types(file, prepared.schema)
    heard: set[str] = set()
    table = f"table{source.suffix.lower()}"
    with (
        paying(ledger, AGAIN) as payment,
        Staging.open(out, run, again=AGAIN, room=2 * source.stat().st_size + (1 << 20), files=[table]) as staging,
    ):
        purpose = f"whole-table release of {source.name}"
        payment.reservations += reserve(ledger, dataset, prepared.guarantee, purpose, sources=sources, grant=grant)
        reservations = payment.reservations
        payment.begin()
        with told_to(heard):
            count = _stream(file, prepared, columns, rows, staging.folder / table, progress)
        if count == 0:
            for reservation in reservations:
                ledger.release(reservation)
            raise DataError(f"{source.name} has no rows. Nothing was drawn and nothing was spent.")
        file.check_unchanged()
        write_facts(prepared, staging.folder, source, count)
        staging.complete(ledger, reservations)
        payment.end()
        for reservation in reservations:
            ledger.commit(reservation)
        staging.publish()
    warn_of(heard)
    return prepared.guarantee


def checked_columns(file: TableFile, schema: Schema, way: str = "") -> list[str]:
    """The names of the file's columns, which must be the declared ones."""
    names = file.column_names()
    checked_names(file.path.name, names, schema, way)
    return names


def checked_names(table: str, names: Sequence[str], schema: Schema, way: str = "") -> None:
    """Refuse a table that has not the declared columns, or others beside them; `way` is a further way out of these."""
    declared = list(schema.columns)
    missing = [name for name in declared if name not in names]
    extra = [name for name in names if name not in declared]
    if missing:
        raise SchemaError(
            f"{table} lacks the declared column(s) {', '.join(missing)}{nearest(missing[0], names)}. "
            "Nothing was drawn or spent."
        )
    if extra:
        raise SchemaError(
            f"{table} has column(s) the schema does not know: {', '.join(extra)}. Declare them or remove them "
            f"from the file: undeclared means not published.{way} Nothing was drawn or spent."
        )


def check_types(file: TableFile, schema: Schema) -> None:
    """By what the file says of its columns; no cell is looked at before the charge, and none can be refused."""
    for name, kind in file.column_types().items():
        schema.columns[name].check_type(kind, name)


def _units(ledger: Ledger, dataset: str) -> list[str]:
    return [unit for name, unit in ledger.datasets() if name == dataset]


def reserve(
    ledger: Ledger,
    dataset: str,
    guarantee: Guarantee,
    purpose: str,
    *,
    sources: Sequence[str] = (),
    grant: Grant = False,
    key: str | None = None,
    resumed: bool = False,
) -> list[Reservation]:
    """Set the cost aside in every account it touches; a resumed run with its `key` finds what it set aside before.

    What protects the whole record protects its features too, so it is also charged where only features are accounted
    for. What protects features alone cannot be charged to an account of whole records: it needs a grant of its own.
    """
    first_grant(ledger, dataset, needed(guarantee), sources, grant)
    made: list[Reservation] = []
    try:
        bound = ledger.owners(sources)
        for name in dict.fromkeys(owner for owner, _ in bound) or [dataset]:
            for who in _touched(ledger, name, guarantee, [unit for owner, unit in bound if owner == name]):
                cost = guarantee.under(who)
                made.append(ledger.reserve(name, cost, purpose=purpose, key=key, sources=sources))
    except BaseException:
        for reservation in () if resumed else made:  # an earlier attempt may have drawn: what it set aside stays
            ledger.release(reservation)
        raise
    return made


def _touched(ledger: Ledger, dataset: str, guarantee: Guarantee, bound: Sequence[str]) -> list[Adjacency]:
    assert guarantee.adjacency is not None
    own, units = guarantee.adjacency.unit, _units(ledger, dataset)
    if own in units:
        touched = [own, *(unit for unit in units if own == RECORD.unit and unit.startswith("record's features"))]
    elif bound and not own.startswith(RECORD.unit):
        touched = bound  # the same people, in the account's own word
    else:
        raise UnknownDatasetError(
            f"{dataset} has a grant for {' and '.join(units)}, and none that lets a label be published as it is. Give "
            f"the label an ε, or grant it: `{grant_command(dataset, needed(guarantee), ledger.path)}`. Nothing was "
            "drawn or spent."
        )
    return [Adjacency(unit, "replace-one") for unit in touched]


def _stream(
    file: TableFile, prepared: PreparedTable, columns: list[str], rows: int, target: Path, progress: Progress
) -> int:
    """Read and draw here, write in a second thread: the two cost about the same.

    A disk that takes nothing for `_WRITE_SECONDS` (a share that went away) ends the wait, not only the write.
    """
    waiting: queue.Queue[pa.Table | None] = queue.Queue(maxsize=2)
    failure: list[BaseException] = []

    def write() -> None:
        ended = False
        try:
            with file.writer(target) as append:
                while (table := waiting.get()) is not None:
                    append(table)
                ended = True
        except BaseException as error:  # closing can fail too: a full disk shows when the footer is written
            failure.append(error)
        while not ended:  # let the reader finish its put
            ended = waiting.get() is None

    writer = threading.Thread(target=write, name="table writer", daemon=True)
    writer.start()
    count = 0
    try:
        for number, batch in enumerate(file.batches(prepared.schema, columns, rows)):
            if failure:
                break
            waiting.put(prepared.apply(batch, number), timeout=_WRITE_SECONDS)
            count += batch.num_rows
            progress(batch.num_rows)
    except queue.Full:
        failure.append(TimeoutError("the disk takes nothing"))
    finally:
        with suppress(queue.Full):
            waiting.put(None, timeout=_GOODBYE_SECONDS if failure else _WRITE_SECONDS)
        writer.join(timeout=_GOODBYE_SECONDS if failure else _WRITE_SECONDS)
    if writer.is_alive() and not failure:
        failure.append(TimeoutError("the disk takes nothing"))
    if failure:
        raise DataError(
            "The published table could not be written; nothing was published. The charge stays."
        ) from failure[0]
    return count


def write_facts(prepared: PreparedTable, folder: Path, source: Path, rows: int) -> None:
    """What stands beside a published table: the law of its noise and a README."""
    (folder / "noise.json").write_text(prepared.noise.to_json(), encoding="utf-8")
    said = text("table_readme.txt", prepared=prepared, rows=rows)
    (folder / "README.txt").write_text(said, encoding="utf-8")
    named = write_manifest(folder, "manifest.json", hashes(folder))
    prepared.certificate().bound_to(named).write(folder / "certificate.json")
