"""Tables in files: CSV and Parquet, read and written in batches.

In:   a path and the public schema.
Out:  Arrow batches; a writer of the same format.
Not here: what is done to the batches (run/tables.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.errors import DataError

__all__ = ["TableFile"]

_ARROW = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_()}
_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}


@dataclass(frozen=True)
class TableFile:
    """A table on disk. Its fingerprint tells whether somebody changed it while it was read."""

    path: Path
    format: str
    fingerprint: tuple[int, int, int]

    @classmethod
    def open(cls, path: Path) -> TableFile:
        kind = _FORMATS.get(path.suffix.lower())
        if kind is None:
            raise DataError(f"{path.name}: only .parquet and .csv files are read. Nothing was drawn or spent.")
        if not path.is_file():
            raise DataError(f"{path} is not a file. Nothing was drawn or spent.")
        return cls(path, kind, _fingerprint(path))

    def check_unchanged(self) -> None:
        try:
            same = _fingerprint(self.path) == self.fingerprint
        except OSError:
            same = False
        if not same:
            raise DataError(
                f"{self.path.name} changed while it was being read; nothing was published. Noise had been drawn, so "
                "the charge stays. Copy the file aside and run again."
            )

    def column_names(self) -> list[str]:
        with _refusing(self.path):
            if self.format == "parquet":
                return parquet.read_schema(self.path).names
            with csv.open_csv(self.path) as reader:
                return reader.schema.names

    def row_count(self) -> int | None:
        """Known without reading for Parquet; the number of records is public under replace-one."""
        return parquet.read_metadata(self.path).num_rows if self.format == "parquet" else None

    def batches(self, schema: Schema, columns: list[str], rows: int) -> Iterator[pa.Table]:
        with _refusing(self.path):
            if self.format == "parquet":
                with parquet.ParquetFile(self.path, pre_buffer=False) as file:
                    for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=True):
                        yield pa.Table.from_batches([batch])
                return
            yield from self._csv_batches(schema, columns, rows)

    def _csv_batches(self, schema: Schema, columns: list[str], rows: int) -> Iterator[pa.Table]:
        """Types come from the schema, never from the values: inference would depend on the data."""
        types = {name: _arrow_type(schema.columns[name]) for name in columns}
        convert = csv.ConvertOptions(column_types=types, include_columns=columns, strings_can_be_null=True)
        read = csv.ReadOptions(block_size=max(1 << 20, rows * 16 * len(columns)))
        with csv.open_csv(self.path, read_options=read, convert_options=convert) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    @contextmanager
    def writer(self, path: Path) -> Iterator[Any]:
        """A function that appends tables to `path`, in this file's format."""
        sink: list[Any] = []

        def append(table: pa.Table) -> None:
            if not sink:
                sink.append(_new_sink(path, self.format, table.schema))
            sink[0].write_table(table)

        try:
            yield append
        finally:
            if sink:
                sink[0].close()


def _new_sink(path: Path, kind: str, schema: pa.Schema) -> Any:
    if kind == "csv":
        return csv.CSVWriter(path, schema)
    # Noisy numbers never repeat: dictionaries and statistics would cost time and say nothing.
    repeating = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return parquet.ParquetWriter(path, schema, use_dictionary=repeating, write_statistics=False)  # type: ignore[arg-type]


def _arrow_type(domain: Any) -> pa.DataType:
    if isinstance(domain, Interval):
        return pa.float64()
    assert isinstance(domain, Categories)
    return _ARROW[domain.scalar]


def _fingerprint(path: Path) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Arrow's messages may quote values: say what happened without them."""
    failed = False
    try:
        yield
    except (pa.ArrowException, OSError):
        failed = True
    if failed:
        raise DataError(
            f"{path.name} cannot be read as a table of the declared columns: it is damaged, or a column holds "
            "something other than its schema says. Nothing was published."
        )
