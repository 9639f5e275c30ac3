"""The rows of a large table dealt out by whose they are: read once, however many shares.

In:   a query over a table, SQL for a share's number, how many shares.
Out:  one Arrow table after the other, everybody in one of them with all rows; or nothing, where types would change.
Not here: what is done to the rows of a share (network/rows.py).

Each share read from the table itself would be a scan of all rows, so that time would grow with their square. What is
dealt lies in a private folder until all shares are done (network/spill.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from sfumato.network.spill import SpillFolder
from sfumato.network.tables import TableRoom

__all__ = ["dealt", "travels"]


def travels(room: TableRoom, query: str) -> bool:
    """Whether every column of a query has the same type, and so the same text, after it lay outside of the engine."""
    kinds = _kinds(room, f"({query})")
    with room.held("travelling", room.arrow(f"SELECT * FROM ({query}) LIMIT 0")):
        return _kinds(room, "travelling") == kinds


def _kinds(room: TableRoom, source: str) -> list[tuple[str, str]]:
    return [(str(row[0]), str(row[1])) for row in room.run(f"DESCRIBE SELECT * FROM {source}")]


def dealt(room: TableRoom, query: str, place: str, count: int) -> Iterator[pa.Table]:
    """The rows of a query in `count` shares, told apart by `place`, SQL for a whole number below `count`."""
    folder = SpillFolder()
    try:
        files = [folder.path / f"{number}" for number in range(count)]
        _deal(room, f"SELECT *, ({place})::INTEGER AS place FROM ({query})", files)
        for file in files:
            if file.exists():
                with pa.OSFile(str(file)) as source:
                    share = ipc.open_stream(source).read_all()
                file.unlink()
                yield share
    finally:
        folder.close()


def _deal(room: TableRoom, query: str, files: Sequence[Path]) -> None:
    """Every row into the file of its share, by the last column; a share that nobody is in has no file."""
    options = ipc.IpcWriteOptions(compression="lz4")
    with ExitStack() as stack:
        open_files: dict[int, ipc.RecordBatchStreamWriter] = {}
        for batch in room.batches(query):
            places = batch.column(batch.num_columns - 1).to_numpy()
            order = np.argsort(places, kind="stable")
            rows = batch.select(range(batch.num_columns - 1)).take(pa.array(order))
            ends = np.searchsorted(places[order], np.arange(len(files) + 1))
            for number, (start, stop) in enumerate(itertools.pairwise(ends)):
                if start < stop:
                    if number not in open_files:
                        sink = stack.enter_context(pa.OSFile(str(files[number]), "wb"))
                        new = ipc.new_stream(sink, rows.schema, options=options)
                        open_files[number] = stack.enter_context(new)
                    open_files[number].write_batch(rows.slice(start, stop - start))
