"""CSV files as tables of text: what a column is does not depend on what its cells hold.

In:   the path of a .csv or .tsv file with a header.
Out:  TextTable, every column text; `records`, the same line by line.
Not here: reading numbers out of text (network/cells.py), Parquet (network/tables.py).

Guessing types, separators or quotes looks at cells, and then one person's cell decides how everybody's are read, or
whether the run fails. So the rules are fixed. One line is one record: a quote that opens and does not close before the
line ends is a letter like any other, and no cell reaches into the next line. Comma (tab for .tsv), double quotes,
UTF-8; bytes that are no UTF-8 stand for themselves in hexadecimal digits. An empty cell is absent, a short record is
filled with absent cells, a long one loses its surplus, an empty line is no record. Every text is some table; nothing
but a file that cannot be opened or a header that is no header fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import csv

from sfumato.core.alike_names import alike_names
from sfumato.errors import DataError
from sfumato.network.stores.spool import gathered

__all__ = ["TextTable", "check_separator", "header", "read_text", "text_batches"]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
#: Records that become Arrow columns at once.
_BATCH = 50_000
#: Bytes that are read at once.
_BLOCK = 1 << 22
#: A quoted field closes before a separator or the end of the line; otherwise the quote is a letter. Possessive, so that
#: the time grows with the length of the line and not with its square.
_FIELDS = {
    separator: re.compile(rf'"((?:[^"]++|"")*+)"(?={separator}|$)|([^{separator}]*+)')
    for separator in _SEPARATORS.values()
}
#: A quoted cell without separators. The quote stands first, so that the search jumps from quote to quote.
_QUOTED = {
    separator: re.compile(rf'"(?<=[{separator}\n]")[^"{separator}\r\n]*+"(?=[{separator}\r\n]|\Z)'.encode())
    for separator in _SEPARATORS.values()
}


@dataclass(frozen=True)
class TextTable:
    """A table in which some columns are text that may be meant as numbers; all of them if none is named.

    `numbers` are those of them that hold nothing else. The table is Arrow's, or one that a store put aside
    (network/stores/spool.py).
    """

    table: Any
    columns: frozenset[str] | None = None
    numbers: frozenset[str] = frozenset()


def read_text(*paths: Path) -> TextTable:
    """The records of files with the same header, one below the other. Private: no message quotes them."""
    schema = pa.schema([(name, pa.string()) for name in header(paths[0])])
    return TextTable(gathered((batch for path in paths for batch in text_batches(path, schema.names)), schema))


def header(path: Path) -> list[str]:
    """The names in the first line."""
    with _opened(path) as file:
        first = file.readline().removeprefix(b"\xef\xbb\xbf")
    names = _record(first, _SEPARATORS[path.suffix.lower()])
    check_separator(path, names)
    if not names or "" in names or len(set(names)) < len(names):
        raise DataError(
            f"{path.name} has no header with one name per column. Write one name per column into the first line. "
            "Nothing was spent."
        )
    if told := alike_names(path.name, names):
        raise DataError(f"{told}. Rename one. Nothing was published and nothing was spent.")
    return names


_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


def check_separator(path: Path, names: Sequence[str]) -> None:
    """Refuse a header that is one name with another separator in it: the file is written differently."""
    separator = _SEPARATORS.get(path.suffix.lower(), ",")
    found = next((sign for sign in _OTHERS if sign != separator and len(names) == 1 and sign in names[0]), None)
    if found is not None:
        raise DataError(
            f"The columns of {path.name} are separated by {_OTHERS[found]}, and a {path.suffix.lower()} file needs "
            f"{_OTHERS[separator]}. Save it with {_OTHERS[separator]} between columns and a point in decimal numbers, "
            "or as Parquet. Nothing was written and nothing was spent."
        )


def text_batches(path: Path, columns: Sequence[str], rows: int = _BATCH) -> Iterator[pa.RecordBatch]:
    """The named columns, at most so many records at a time."""
    names, separator = header(path), _SEPARATORS[path.suffix.lower()]
    with _opened(path) as file:
        file.readline()
        for block in _blocks(file):
            batch = _at_once(block, names, columns, separator)
            batch = _line_by_line(block, names, columns, separator) if batch is None else batch
            yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Whole lines, about `_BLOCK` bytes of them."""
    while block := file.read(_BLOCK):
        yield block + file.readline()


def _at_once(block: bytes, names: list[str], columns: Sequence[str], separator: str) -> pa.RecordBatch | None:
    """A block of plain lines by Arrow's reader, which then follows our rules; None where a line is not plain.

    Plain: no quote but around a whole cell without separators, no return but at the end of a line, valid UTF-8, as many
    cells as the header.
    """
    block = b"\n" + block  # an empty line is no record, and behind it a byte order mark is text
    quotes = block.count(b'"')
    if quotes and quotes != 2 * len(_QUOTED[separator].findall(block)):
        return None
    if block.count(b"\r") != block.count(b"\r\n"):
        return None
    kinds = dict.fromkeys(columns, pa.string())
    with suppress(pa.ArrowException):
        table = csv.read_csv(
            pa.BufferReader(block),
            csv.ReadOptions(column_names=names, block_size=len(block) + 1),
            csv.ParseOptions(delimiter=separator, double_quote=False),
            csv.ConvertOptions(
                column_types=kinds, include_columns=list(columns), null_values=[""], strings_can_be_null=True
            ),
        )
        return table.combine_chunks().to_batches()[0] if table.num_rows else _record_batch([[] for _ in columns], kinds)
    return None


def _line_by_line(block: bytes, names: list[str], columns: Sequence[str], separator: str) -> pa.RecordBatch:
    lines = (line + b"\n" for line in block.removesuffix(b"\n").split(b"\n"))
    records = [record for line in lines if (record := _record(line, separator))]
    kinds = dict.fromkeys(columns, pa.string())
    return _record_batch([_column(records, names.index(column)) for column in columns], kinds)


def _record_batch(cells: list[list[str | None]], kinds: dict[str, pa.DataType]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(column, pa.string()) for column in cells], schema=pa.schema(list(kinds.items())))


def _opened(path: Path):
    try:
        return path.open("rb")
    except OSError as error:
        failed = type(error).__name__
    raise DataError(f"{path.name} could not be read ({failed}). Nothing was published and nothing was spent.")


def _record(line: bytes, separator: str) -> list[str]:
    """The fields of one line; none if it is empty."""
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    if not line:
        return []
    try:
        return _fields(line.decode(), separator)
    except UnicodeDecodeError:
        return [_readable(field) for field in _fields(line.decode("utf-8", "surrogateescape"), separator)]


def _fields(line: str, separator: str) -> list[str]:
    if '"' not in line:
        return line.split(separator)
    fields, start, pattern = [], 0, _FIELDS[separator]
    while True:
        found = pattern.match(line, start)
        assert found is not None  # the second form takes anything
        fields.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        if found.end() >= len(line):
            return fields
        start = found.end() + 1


def _readable(field: str) -> str:
    """A field as it is, or its bytes in hexadecimal digits behind a sign that no category and no number begins with."""
    try:
        field.encode()
        return field
    except UnicodeEncodeError:
        return "\ufffd" + field.encode("utf-8", "surrogateescape").hex().upper()


def _column(records: Sequence[list[str]], place: int) -> list[str | None]:
    return [(record[place] or None) if place < len(record) else None for record in records]
