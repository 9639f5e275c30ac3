"""Rows of a database on their way: a few in memory, many in a private file that is removed.

In:   batches of rows, as a connection hands them over.
Out:  an Arrow table, or SpooledRows: a Parquet file in a folder that nobody else may open (network/spill.py).
Not here: which rows, and at which moment they were there (the stores).

A study looks at its rows more than once, and a transaction should not be kept open meanwhile, nor millions of rows in
memory. The file goes when nobody holds its rows any more, and when the process is killed the next one removes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.network.spill import SpillFolder

__all__ = ["SpooledRows", "gathered", "whole"]

#: Bytes that are held before a file is begun.
_HELD = 64 << 20


class SpooledRows:
    """Rows in a Parquet file of ours; to another process they travel as a table."""

    def __init__(self, path: Path, folder: SpillFolder) -> None:
        self.path, self._folder = path, folder

    def table(self) -> pa.Table:
        """All rows at once."""
        from pyarrow import parquet

        return parquet.read_table(self.path)

    def __reduce__(self) -> Any:
        return _held, (self.table(),)


def _held(table: pa.Table) -> pa.Table:
    return table


def whole(rows: pa.Table | SpooledRows) -> pa.Table:
    """Gathered rows, all of them in memory."""
    return rows.table() if isinstance(rows, SpooledRows) else rows


def gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table | SpooledRows:
    """The rows of all batches, never more than some of them in memory.

    >>> one = pa.record_batch({"x": [1, 2]})
    >>> gathered([one, one], one.schema).num_rows
    4
    """
    held: list[pa.RecordBatch] = []
    size, waiting = 0, iter(batches)
    for batch in waiting:
        held.append(batch)
        size += batch.nbytes
        if size > _HELD:
            return _written(held, waiting, schema)
    return pa.Table.from_batches(held, schema)


def _written(held: list[pa.RecordBatch], waiting: Iterable[pa.RecordBatch], schema: pa.Schema) -> SpooledRows:
    from pyarrow import parquet

    folder = SpillFolder()
    path = folder.path / "rows.parquet"
    try:
        with parquet.ParquetWriter(path, schema, compression="lz4", write_statistics=False) as writer:
            writer.write_table(pa.Table.from_batches(held, schema))
            held.clear()
            for batch in waiting:
                held.append(batch)
                if sum(one.nbytes for one in held) > _HELD:
                    writer.write_table(pa.Table.from_batches(held, schema))
                    held.clear()
            writer.write_table(pa.Table.from_batches(held, schema))
    except BaseException:
        folder.close()
        raise
    return SpooledRows(path, folder)
