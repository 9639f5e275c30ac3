"""Tables and views of a DuckDB file.

In:   the file, names of tables.
Out:  their rows, read in one transaction of a read-only connection that can reach nothing but the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, final

import pyarrow as pa

from sfumato.network.expression import sql_name
from sfumato.network.stores.spool import gathered
from sfumato.network.stores.store import FileStore, StoredRows, no_table, unreadable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["DuckDBFile"]

#: Rows that are handed over at once.
_BATCH = 100_000


@final
@dataclass(frozen=True)
class DuckDBFile(FileStore):
    """source(stays, 'hospital.duckdb', stays): a table or a view of the file, `schema.table` outside of `main`."""

    path: Path
    endings: ClassVar[tuple[str, ...]] = (".duckdb",)

    def read(self, names: Sequence[str]) -> dict[str, StoredRows]:
        with self._opened() as connection:
            return {name: self._rows(connection, name) for name in names}

    def tables(self) -> tuple[str, ...]:
        with self._opened() as connection:
            return tuple(_known(connection))

    def header(self, name: str) -> pa.Schema:
        with self._opened() as connection:
            return connection.sql(f"SELECT * FROM {self._quoted(connection, name)} LIMIT 0").to_arrow_table().schema

    @contextmanager
    def _opened(self) -> Iterator[DuckDBPyConnection]:
        import duckdb

        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_access": False,
        }
        try:
            with duckdb.connect(str(self.path), read_only=True, config=settings) as connection:
                connection.execute("BEGIN TRANSACTION READ ONLY")
                yield connection
                return
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            failed = type(error).__name__
        raise unreadable(self.path.name, failed)

    def _rows(self, connection: DuckDBPyConnection, name: str) -> StoredRows:
        reader = connection.sql(f"SELECT * FROM {self._quoted(connection, name)}").to_arrow_reader(_BATCH)
        rows = gathered(reader, reader.schema)
        return StoredRows(rows, f"{self.path}\0{name}")

    def _quoted(self, connection: DuckDBPyConnection, name: str) -> str:
        known = _known(connection)
        if name not in known:
            raise no_table(self.path.name, name, known)
        return ".".join(sql_name(part) for part in name.split("."))


def _known(connection: DuckDBPyConnection) -> list[str]:
    listed = connection.execute("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
    return [f"{schema}.{table}" if schema != "main" else table for schema, table in listed]
