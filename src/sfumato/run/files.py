"""Tables in files: CSV and Parquet, read and written in batches.

In:   a path and the public schema.
Out:  Arrow batches; a writer of the same format.
Not here: what is done to the batches (run/tables.py), the rules of CSV text (network/text_files.py).

Types come from the schema, never from the values. Text that is no number where the schema declares numbers is a missing
value, as in a study: no cell makes the reading fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import csv, parquet

from sfumato.core.calendar_columns import calendar_kind
from sfumato.core.cell_types import ARROW_TYPES
from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.core.tables import typed_by_pandas
from sfumato.core.whole_file import file_mark
from sfumato.errors import DataError
from sfumato.network.cells import word_as_listed
from sfumato.network.expression import sql_name
from sfumato.network.tables import text_as_number
from sfumato.network.text_files import header, text_batches
from sfumato.release.synthetic.levels import kind_by_domain

__all__ = ["TableFile", "kind_of", "new_sink", "refusing"]

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
        return cls(path, kind, file_mark(path))

    def is_unchanged(self) -> bool:
        """Whether the file is still the one that was opened."""
        try:
            return file_mark(self.path) == self.fingerprint
        except OSError:
            return False

    def check_unchanged(self) -> None:
        if not self.is_unchanged():
            raise DataError(
                f"{self.path.name} changed while it was being read; nothing was published. Noise had been drawn, so "
                "the charge stays. Copy the file aside and run again."
            )

    def column_names(self) -> list[str]:
        if self.format == "csv":
            return header(self.path)
        with refusing(self.path):
            return parquet.read_schema(self.path).names

    def types(self, schema: Schema) -> dict[str, pa.DataType]:
        """What the declared columns hold: as the file says, and by their domains where cells could have told it."""
        if self.format == "csv":
            return {name: kind_of(domain) for name, domain in schema.columns.items()}
        told, held = self._typed_by_pandas(), self.column_types()
        return {name: kind_by_domain(domain) if name in told else held[name] for name, domain in schema.columns.items()}

    def _typed_by_pandas(self) -> frozenset[str]:
        with refusing(self.path):
            return typed_by_pandas(parquet.read_schema(self.path))
        raise AssertionError("unreachable")

    def column_types(self) -> dict[str, pa.DataType]:
        """What the file says of its columns; text files say nothing, there the schema does."""
        if self.format == "csv":
            return {}
        with refusing(self.path):
            return {field.name: field.type for field in parquet.read_schema(self.path)}

    def row_count(self) -> int | None:
        """Known without reading for Parquet; the number of records is public under replace-one."""
        return parquet.read_metadata(self.path).num_rows if self.format == "parquet" else None

    def batches(self, schema: Schema, columns: list[str], rows: int) -> Iterator[pa.Table]:
        with refusing(self.path):
            if self.format == "parquet":
                with parquet.ParquetFile(self.path, pre_buffer=False) as file:
                    for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=True):
                        yield pa.Table.from_batches([batch])
                return
            yield from self._csv_batches(schema, columns, rows)

    def _csv_batches(self, schema: Schema, columns: list[str], rows: int) -> Iterator[pa.Table]:
        shown = ", ".join(f"{_read(sql_name(name), schema.columns[name])} AS {sql_name(name)}" for name in columns)
        with duckdb.connect(config={"temp_directory": ""}) as room:
            for batch in text_batches(self.path, columns, rows):
                room.register("batch", pa.Table.from_batches([batch]))
                yield room.sql(f"SELECT {shown} FROM batch").to_arrow_table()

    @contextmanager
    def writer(self, path: Path) -> Iterator[Any]:
        """A function that appends tables to `path`, in this file's format."""
        sink: list[Any] = []

        def append(table: pa.Table) -> None:
            if not sink:
                sink.append(new_sink(path, self.format, table.schema))
            sink[0].write_table(table)

        try:
            yield append
        finally:
            if sink:
                sink[0].close()


def new_sink(path: Path, kind: str, schema: pa.Schema) -> Any:
    """A writer of CSV or Parquet."""
    if kind == "csv":
        return csv.CSVWriter(path, schema)
    # Noisy numbers never repeat: dictionaries and statistics would cost time and say nothing.
    repeating = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return parquet.ParquetWriter(path, schema, use_dictionary=repeating, write_statistics=False)  # type: ignore[arg-type]


def _read(cell: str, domain: Any) -> str:
    """SQL that reads text as the schema means it; what cannot be read is missing."""
    if isinstance(domain, Interval) and domain.calendar:
        return cell
    if isinstance(domain, Categories) and domain.scalar != "int":
        if domain.scalar == "str":
            return word_as_listed(cell, domain)
        return f"CASE {text_as_number(cell)} WHEN 1 THEN TRUE WHEN 0 THEN FALSE END"
    return text_as_number(cell)


def kind_of(domain: Any) -> pa.DataType:
    """The type of what is made of a column of text, whose own type says nothing."""
    if isinstance(domain, Categories):
        return ARROW_TYPES[domain.scalar]
    calendar = domain.calendar if isinstance(domain, Interval) else ""
    return calendar_kind(calendar) if calendar else pa.float64()


@contextmanager
def refusing(path: Path) -> Iterator[None]:
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
