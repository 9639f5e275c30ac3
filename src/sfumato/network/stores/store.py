"""A table that lies in a database: where it is, and how its rows are read once.

In:   source(Table, Path, Name) of a study, the data folder.
Out:  StoredRows: rows that were read, the place they came from; `located`, which finds the store of a source.
Not here: files (network/tables.py), what a cell means (network/cells.py), who pays (run/accounts.py).

A store is opened read-only and read whole in one transaction, before anything is reserved. Types come from the store's
own catalogue and never from cells; what has no plain type is handed over as text. No message quotes what the database
says when it fails: it may quote cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from sfumato.core.tables import nearest
from sfumato.errors import DataError
from sfumato.lang.spec import Source
from sfumato.network.stores.spool import SpooledRows
from sfumato.network.text_files import TextTable

__all__ = [
    "FileStore",
    "Located",
    "Store",
    "StoredRows",
    "file_store",
    "located",
    "no_table",
    "read_stored",
    "unreadable",
]


@dataclass(frozen=True)
class StoredRows:
    """Rows that were read from a store, and the place that an account is bound to.

    `parts` are the files they were put together from, each of which may have an account of its own.
    """

    rows: pa.Table | SpooledRows | TextTable | tuple[Path, ...] = field(repr=False)
    place: str
    parts: tuple[Path, ...] = ()


class Store(ABC):
    """One kind of place with several tables in it. Abstract; open as a context, in which nothing changes."""

    #: How a source of this kind is recognised: the endings of a file's name, or what stands before a colon.
    endings: ClassVar[tuple[str, ...]] = ()
    prefix: ClassVar[str] = ""

    @abstractmethod
    def read(self, names: Sequence[str]) -> dict[str, StoredRows]:
        """The named tables, all of them as they are at one moment."""


class FileStore(Store):
    """A database in one file, of which names and types can be told without reading a row. Abstract."""

    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """The names of its tables and views."""

    @abstractmethod
    def header(self, name: str) -> pa.Schema:
        """The columns of a table; of the type null where the file does not keep types. No row is read."""


@dataclass(frozen=True)
class Located:
    """A source inside a store: which store, which of its tables."""

    store: Store
    name: str


def located(source: Source, folder: Path) -> Path | Located:
    """The file or folder of a source, or the store it lies in; nothing is opened."""
    from sfumato.network.stores.far_files import FarFiles
    from sfumato.network.stores.postgresql import PostgreSQL

    for server in (PostgreSQL, FarFiles):
        if source.path.startswith(f"{server.prefix}:"):
            return Located(server.of(folder), source.path.partition(":")[2])
    path = _inside(source, folder)
    store = file_store(path)
    return path if store is None else Located(store, source.name or "")


def file_store(path: Path) -> FileStore | None:
    """The database that a file is by its ending; None for every other file. Nothing is opened."""
    from sfumato.network.stores.duckdb_file import DuckDBFile
    from sfumato.network.stores.sqlite_file import SQLiteFile

    kinds: tuple[type[DuckDBFile] | type[SQLiteFile], ...] = (DuckDBFile, SQLiteFile)
    return next((kind(path) for kind in kinds if path.suffix.lower() in kind.endings), None)


def _inside(source: Source, folder: Path) -> Path:
    base = folder.resolve()
    path = (base / source.path).resolve()
    if not path.is_relative_to(base):
        raise DataError(f"source({source.table}, …) points outside {folder}. Nothing was read and nothing was spent.")
    if path.is_dir() if source.path.endswith("/") else path.is_file():
        return path
    what = "folder" if source.path.endswith("/") else "file"
    raise DataError(
        f"{folder} has no {what} {source.path}, which source({source.table}, …) names. Put it there, or give another "
        "folder with --data. Nothing was read and nothing was spent."
    )


def read_stored(places: Mapping[str, Path | Located]) -> dict[str, Path | StoredRows]:
    """Files as they are; of every store all tables that are wanted, read at one moment."""
    found: dict[str, Path | StoredRows] = {}
    stores = dict.fromkeys(place.store for place in places.values() if isinstance(place, Located))
    for store in stores:
        mine = {
            table: place.name for table, place in places.items() if isinstance(place, Located) and place.store == store
        }
        rows = store.read(list(dict.fromkeys(mine.values())))
        found |= {table: rows[name] for table, name in mine.items()}
    return {table: place if isinstance(place, Path) else found[table] for table, place in places.items()}


def no_table(place: str, name: str, known: Sequence[str]) -> DataError:
    """The error for a table that a store does not have."""
    return DataError(
        f"{place} has no table or view {name}{nearest(name, list(known))}. Nothing was read and nothing was spent."
    )


def unreadable(place: str, failed: str) -> DataError:
    """What a database says when it fails may quote cells, so its message is not repeated."""
    return DataError(
        f"{place} could not be read ({failed}). Check that it is there, that nobody else has it open for writing, and "
        "that you may read it. Nothing was published and nothing was spent."
    )
