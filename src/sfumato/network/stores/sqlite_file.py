"""Tables and views of an SQLite file.

In:   the file, names of tables.
Out:  their rows as text, read in one transaction of a read-only connection.

A column of SQLite may hold values of any type, cell by cell. So every column is handed over as text, like a column of a
CSV file, and the study says what is a number. A float is written with all its digits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final
from urllib.parse import quote

import pyarrow as pa

from sfumato.network.expression import sql_name
from sfumato.network.plain import text_of
from sfumato.network.stores.spool import gathered
from sfumato.network.stores.store import FileStore, StoredRows, no_table, unreadable
from sfumato.network.text_files import TextTable

__all__ = ["SQLiteFile"]

#: Rows that are turned into columns at once.
_BATCH = 50_000


@final
@dataclass(frozen=True)
class SQLiteFile(FileStore):
    """source(stays, 'hospital.sqlite', stays): a table or a view of the file."""

    path: Path
    endings: ClassVar[tuple[str, ...]] = (".sqlite", ".sqlite3", ".db")

    def read(self, names: Sequence[str]) -> dict[str, StoredRows]:
        with self._opened() as connection:
            return {name: self._rows(connection, name) for name in names}

    def tables(self) -> tuple[str, ...]:
        with self._opened() as connection:
            return tuple(_known(connection))

    def header(self, name: str) -> pa.Schema:
        with self._opened() as connection:
            cursor = self._cursor(connection, name, " LIMIT 0")
            return pa.schema([(entry[0], pa.null()) for entry in cursor.description])

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            address = f"file:{quote(str(self.path))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
                connection.text_factory = bytes  # bytes that are no text are cells like others
                connection.execute("BEGIN")
                yield connection
                return
        except sqlite3.Error as error:
            failed = type(error).__name__
        raise unreadable(self.path.name, failed)

    def _rows(self, connection: sqlite3.Connection, name: str) -> StoredRows:
        cursor = self._cursor(connection, name)
        columns = [entry[0] for entry in cursor.description]
        schema = pa.schema([(column, pa.string()) for column in columns])
        return StoredRows(TextTable(gathered(_batches(cursor, schema), schema)), f"{self.path}\0{name}")

    def _cursor(self, connection: sqlite3.Connection, name: str, end: str = "") -> sqlite3.Cursor:
        known = _known(connection)
        if name not in known:
            raise no_table(self.path.name, name, known)
        return connection.execute(f"SELECT * FROM {sql_name(name)}{end}")


def _known(connection: sqlite3.Connection) -> list[str]:
    listed = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    return [one.decode("utf-8", "replace") for (one,) in listed]


def _batches(cursor: sqlite3.Cursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while cells := cursor.fetchmany(_BATCH):
        yield pa.record_batch([text_of(column) for column in zip(*cells, strict=True)], schema=schema)
