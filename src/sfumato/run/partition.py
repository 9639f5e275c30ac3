"""A table too large for one file or one machine: many Parquet files, cut into parts of a public size.

In:   a Parquet file, a folder of them, or any fsspec address (s3://…, gs://…, memory://…).
Out:  PartitionedTable: columns, rows, fingerprint; Part: a range of rows that a worker reads by itself, block by block.
Not here: who works on the parts (run/engine/), what is done to them (run/partition_release.py, run/engine/fit.py).

Rows are numbered across the files in the order of their names. Blocks and parts are cut at fixed row numbers, given by
the number of columns: neither how many workers there are nor how the files were cut can move them. The number of rows
of each file is public under replace-one, like the number of rows of the table.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from sfumato.core.tables import nearest, typed_by_pandas
from sfumato.core.whole_file import file_mark
from sfumato.errors import DataError, InputError, SchemaError
from sfumato.network.agreed import agreed, first_other
from sfumato.run.files import refusing

__all__ = ["PartLayout", "PartitionedTable", "Piece", "TablePart", "grouped"]

#: Numbers in a block of rows, the unit of noise: small enough for memory, large enough for numpy.
_BLOCK_NUMBERS = 1 << 22
_PART_BLOCKS = 8
_NOTHING = "Nothing was drawn or spent."


@dataclass(frozen=True)
class PartLayout:
    """Where rows are cut: blocks of `block_rows`, parts of `part_blocks` blocks. Public, and the same on every engine.

    >>> PartLayout.for_columns(20)
    PartLayout(block_rows=131072, part_blocks=8)
    """

    block_rows: int
    part_blocks: int = _PART_BLOCKS

    def __post_init__(self) -> None:
        for name in ("block_rows", "part_blocks"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1. {_NOTHING}")

    @classmethod
    def for_columns(cls, columns: int) -> PartLayout:
        rows = max(1024, _BLOCK_NUMBERS // max(1, columns))
        return cls(1 << (rows.bit_length() - 1))

    @property
    def part_rows(self) -> int:
        return self.block_rows * self.part_blocks


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` of one file."""

    path: str
    start: int
    stop: int


@dataclass(frozen=True)
class TablePart:
    """A fixed range of the table's rows, as a worker needs to know it."""

    number: int
    rows: int
    pieces: tuple[Piece, ...]
    layout: PartLayout
    #: The types by which all files of the table are read.
    schema: pa.Schema | None = None

    @property
    def first_block(self) -> int:
        return self.number * self.layout.part_blocks

    def blocks(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """(number, rows) of each block; all have `block_rows` rows but the last of the table."""
        waiting: list[pa.Table] = []
        held, number, size = 0, self.first_block, self.layout.block_rows
        for batch in self._batches(list(columns), size):
            waiting.append(batch)
            held += batch.num_rows
            while held >= size:
                joined = waiting[0] if len(waiting) == 1 else pa.concat_tables(waiting)
                yield number, joined.slice(0, size)
                waiting, held, number = [joined.slice(size)], held - size, number + 1
        if held:
            yield number, pa.concat_tables(waiting)

    def _batches(self, columns: list[str], size: int) -> Iterator[pa.Table]:
        for piece in self.pieces:
            with (
                refusing(Path(piece.path)),
                _opened(piece.path) as source,
                parquet.ParquetFile(source, pre_buffer=False) as file,
            ):
                yield from (self._alike(batch) for batch in _range(file, piece, columns, size))

    def _alike(self, batch: pa.Table) -> pa.Table:
        """The same rows by the table's types: what one file's cells made of its columns is not seen."""
        if self.schema is None:
            return batch
        kinds = pa.schema([self.schema.field(name) for name in batch.column_names])
        # A whole number beyond 2^53 is rounded as wherever it is read as a decimal, and no error quotes it.
        return batch if batch.schema.types == kinds.types else batch.cast(kinds, safe=False)


def _range(file: parquet.ParquetFile, piece: Piece, columns: list[str], size: int) -> Iterator[pa.Table]:
    """The rows of one piece, reading only the row groups that hold them."""
    groups, first, before = [], 0, 0
    for number in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        if before + rows > piece.start and before < piece.stop:
            first = before if not groups else first
            groups.append(number)
        before += rows
    skip, left = piece.start - first, piece.stop - piece.start
    for batch in file.iter_batches(batch_size=size, row_groups=groups, columns=columns, use_threads=True):
        kept = batch.slice(min(skip, batch.num_rows), left)
        skip, left = max(0, skip - batch.num_rows), left - kept.num_rows
        if kept.num_rows:
            yield pa.Table.from_batches([kept]).select(columns)
        if not left:
            return


@dataclass(frozen=True)
class PartitionedTable:
    """The files of one table, their columns and rows; nothing of their contents."""

    name: str
    files: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    schema: pa.Schema
    fingerprint: str
    #: Columns whose type a cell of some file may have told.
    told: frozenset[str] = frozenset()

    @classmethod
    def open(cls, source: str | os.PathLike[str]) -> PartitionedTable:
        """All Parquet files under `source`, by name. They must agree in their columns and types (network/agreed.py)."""
        address = os.fspath(source)
        files = _listed(address)
        if not files:
            raise DataError(f"{address} holds no Parquet file (.parquet or .pq). {_NOTHING}")
        facts = [_facts(file) for file in files]
        schemas = [schema for schema, _ in facts]
        found = agreed(schemas)
        if found is None:
            other = first_other(schemas)
            raise _another_table(files[0], schemas[0], files[other], schemas[other])
        groups = tuple(rows for _, rows in facts)
        told = found.numbers.union(*map(typed_by_pandas, schemas))
        return cls(_stem(address), tuple(files), groups, found.schema, _combined_fingerprint(files), told)

    @property
    def rows(self) -> list[int]:
        """Of each file."""
        return [sum(groups) for groups in self.groups]

    @property
    def total_rows(self) -> int:
        return sum(self.rows)

    @property
    def column_names(self) -> list[str]:
        return list(self.schema.names)

    def check_unchanged(self) -> None:
        try:
            same = _combined_fingerprint(self.files) == self.fingerprint
        except OSError:
            same = False
        if not same:
            raise DataError(
                f"A file of {self.name} changed while it was being read; nothing was published. If noise had been "
                "drawn, the charge stays. Copy the files aside and run again."
            )

    def parts(self, layout: PartLayout) -> list[TablePart]:
        """The table cut at every `part_rows` rows, across files; empty files belong to no part.

        >>> table = PartitionedTable("t", ("a", "b", "c"), ((3,), (), (2, 2)), pa.schema([]), "")
        >>> [[(p.path, p.start, p.stop) for p in part.pieces] for part in table.parts(PartLayout(2, 2))]
        [[('a', 0, 3), ('c', 0, 1)], [('c', 1, 4)]]
        """
        parts: list[TablePart] = []
        pieces: list[Piece] = []
        room = layout.part_rows
        for path, rows in zip(self.files, self.rows, strict=True):
            start = 0
            while start < rows:
                stop = min(rows, start + room)
                pieces.append(Piece(path, start, stop))
                room -= stop - start
                start = stop
                if room == 0:
                    parts.append(TablePart(len(parts), layout.part_rows, tuple(pieces), layout, self.schema))
                    pieces, room = [], layout.part_rows
        if pieces:
            parts.append(TablePart(len(parts), layout.part_rows - room, tuple(pieces), layout, self.schema))
        return parts

    def groups_as_parts(self, layout: PartLayout) -> list[TablePart]:
        """The table cut between row groups, at about `part_rows` rows: for sums, which do not care where it is cut.

        A part that begins inside a row group would decode what comes before it for nothing.
        """
        parts: list[TablePart] = []
        for path, groups in zip(self.files, self.groups, strict=True):
            start = stop = 0
            for rows in groups:
                stop += rows
                if stop - start >= layout.part_rows:
                    parts.append(TablePart(len(parts), stop - start, (Piece(path, start, stop),), layout, self.schema))
                    start = stop
            if stop > start:
                parts.append(TablePart(len(parts), stop - start, (Piece(path, start, stop),), layout, self.schema))
        return parts


def grouped(items: Sequence[Any], groups: int | None) -> list[tuple[Any, ...]]:
    """Consecutive items in at most so many groups of nearly equal length; one item in each if None.

    >>> grouped([1, 2, 3, 4, 5], 2)
    [(1, 2), (3, 4, 5)]
    """
    if groups is None:
        return [(item,) for item in items]
    if not isinstance(groups, int) or groups < 1:
        raise InputError(f"The number of partitions must be a whole number of at least 1. {_NOTHING}")
    count = min(groups, len(items))
    ends = [round(len(items) * number / count) for number in range(count + 1)] if count else [0]
    return [tuple(items[low:high]) for low, high in itertools.pairwise(ends)]


def _stem(address: str) -> str:
    return Path(address.rstrip("/").rsplit("/", 1)[-1]).stem or address


def _is_remote(address: str) -> bool:
    return "://" in address


def _remote(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise InputError(
            f"{address.split('://', 1)[0]}:// addresses need fsspec: pip install 'sfumato[dask]'. {_NOTHING}"
        ) from None
    try:
        return url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise InputError(f"{address.split('://', 1)[0]}:// cannot be opened here ({error}). {_NOTHING}") from None


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    if not _is_remote(path):
        yield path
        return
    system, inside = _remote(path)
    with system.open(inside, "rb") as stream:
        yield stream


def _listed(address: str) -> list[str]:
    """Files in the order of their names; hidden ones and Spark's or Dask's side files are left out."""
    return _listed_far(address) if _is_remote(address) else _listed_here(address)


def _listed_far(address: str) -> list[str]:
    system, inside = _remote(address)
    if not system.exists(inside):
        raise DataError(f"{address} does not exist. {_NOTHING}")
    names = [inside] if system.isfile(inside) else system.find(inside)
    return sorted(system.unstrip_protocol(name) for name in names if _is_table(name, inside))


def _listed_here(address: str) -> list[str]:
    root = Path(address)
    if not root.exists():
        raise DataError(f"{address} does not exist. {_NOTHING}")
    found = [root] if root.is_file() else [path for path in root.rglob("*") if path.is_file()]
    files = [path.resolve() for path in sorted(found) if _is_table(str(path), str(root))]
    if len({(path.stat().st_dev, path.stat().st_ino) for path in files}) < len(files):
        raise DataError(f"One file is in {address} twice, by a link: its records would be published twice. {_NOTHING}")
    return [str(path) for path in files]


def _is_table(name: str, root: str) -> bool:
    inside = name[len(root) :].strip("/").split("/")
    if any(part.startswith((".", "_")) for part in inside):
        return False
    table = name.lower().endswith((".parquet", ".pq"))
    if table and any("=" in part for part in inside[:-1]):
        raise SchemaError(
            "The folder names of this table hold columns (name=value). Write the files with these columns inside: a "
            f"column outside the files cannot be protected. {_NOTHING}"
        )
    return table


def _facts(path: str) -> tuple[pa.Schema, tuple[int, ...]]:
    """Columns and the rows of each row group, from the file's footer."""
    with refusing(Path(path)), _opened(path) as source, parquet.ParquetFile(source) as file:
        facts = file.metadata
        return file.schema_arrow, tuple(facts.row_group(n).num_rows for n in range(facts.num_row_groups))
    raise AssertionError("unreachable")


def _another_table(first: str, expected: pa.Schema, path: str, schema: pa.Schema) -> SchemaError:
    """Names and types that no cell of a column of numbers explains."""
    return SchemaError(
        f"{Path(path).name} {_difference(expected, schema)}, unlike {Path(first).name}. Write all files of a table "
        f"with the same columns and types. {_NOTHING}"
    )


def _difference(expected: pa.Schema, schema: pa.Schema) -> str:
    missing, extra = _without(expected.names, schema.names), _without(schema.names, expected.names)
    differing = [c for c in expected.names if c in schema.names and schema.field(c).type != expected.field(c).type]
    if missing:
        return f"lacks the column {missing[0]!r}{nearest(missing[0], extra)}"
    if extra:
        return f"has the column {extra[0]!r} that the others do not have"
    if differing:
        types = schema.field(differing[0]).type, expected.field(differing[0]).type
        return f"has {differing[0]!r} as {types[0]}, not {types[1]}"
    return "has its columns in another order"


def _without(columns: Sequence[str], others: Sequence[str]) -> list[str]:
    return [column for column in columns if column not in others]


def _combined_fingerprint(files: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for file in files:
        if _is_remote(file):
            system, inside = _remote(file)
            mark: Any = (system.size(inside), system.checksum(inside))
        else:
            mark = file_mark(Path(file))
        digest.update(repr((file, mark)).encode())
    return digest.hexdigest()
