"""CSV files as tables of text: what a column is does not depend on what its cells hold.

In:   the path of a .csv or .tsv file with a header.
Out:  TextTable, every column text.
Not here: reading numbers out of text (network/cells.py), Parquet (network/tables.py).

Guessing types, separators or quotes looks at cells, and then one person's cell decides how everybody's are read, or
whether the run fails. So the rules are fixed: comma (tab for .tsv), double quotes, UTF-8 with replacements, an empty
cell is absent, a short record is filled with absent cells, a long one loses its surplus. Every text is some table;
nothing but a file that cannot be opened or a header that is no header fails.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa

from sfumato.errors import DataError

__all__ = ["TextTable", "read_text"]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
#: Records that become Arrow columns at once.
_BATCH = 50_000


@dataclass(frozen=True)
class TextTable:
    """A table whose cells are text and may be meant as numbers."""

    table: pa.Table


def read_text(path: Path) -> TextTable:
    """The file's records. Private: no message quotes them."""
    limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a long cell must not stop the run
    failed = None
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return TextTable(_table(path, csv.reader(file, delimiter=_SEPARATORS[path.suffix.lower()])))
    except (OSError, csv.Error) as error:
        failed = type(error).__name__
    finally:
        csv.field_size_limit(limit)
    raise DataError(f"{path.name} could not be read ({failed}). Nothing was published and nothing was spent.")


def _table(path: Path, records: Iterator[list[str]]) -> pa.Table:
    names = next(records, [])
    if not names or len(set(names)) < len(names):
        raise DataError(
            f"{path.name} has no header with one name per column. Write one name per column into the first line. "
            "Nothing was spent."
        )
    schema = pa.schema([(name, pa.string()) for name in names])
    batches = []
    while chunk := list(islice(records, _BATCH)):
        filled = [record for record in chunk if record]
        columns = [pa.array(_column(filled, place), pa.string()) for place in range(len(names))]
        batches.append(pa.record_batch(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _column(records: Sequence[list[str]], place: int) -> list[str | None]:
    return [(record[place] or None) if place < len(record) else None for record in records]
