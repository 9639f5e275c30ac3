"""Sums of any statistic over a table of many files, on any engine: counts, histograms, products.

In:   a Parquet folder or address, the columns to read, a function of one batch that returns arrays.
Out:  the arrays summed over all batches, exactly: still private.
Not here: noise. A mechanism adds it once, to the finished sum, in this process; sums over rows repeat nothing if a task
      is repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.tables import nearest
from sfumato.errors import DataError, SchemaError
from sfumato.run.engine.engine import Engine, Total, open_engine
from sfumato.run.partition import PartitionedTable, PartLayout, TablePart, grouped

__all__ = ["batch_sums"]

BatchStatistic = Callable[[pa.Table], Sequence[Any]]


def batch_sums(
    source: str | os.PathLike[str],
    columns: Sequence[str],
    statistic: BatchStatistic,
    *,
    engine: str | Engine = "local",
    partitions: int | None = None,
    layout: PartLayout | None = None,
) -> list[np.ndarray]:
    """The statistic summed over the table, the same to the last digits for every engine and every cut.

    `statistic` must be a function of a module or a dataclass with `__call__`, so that workers can be sent it. What
    comes back was computed from private rows without noise.

    >>> import tempfile
    >>> from pyarrow import parquet
    >>> folder = tempfile.TemporaryDirectory()
    >>> parquet.write_table(pa.table({"age": [30.0, 50.0, 70.0]}), f"{folder.name}/0.parquet")
    >>> batch_sums(folder.name, ["age"], lambda batch: [batch.num_rows, batch["age"].to_numpy().sum()])
    [np.float64(3.0), np.float64(150.0)]
    >>> folder.cleanup()
    """
    table = PartitionedTable.open(source)
    for name in columns:
        if name not in table.column_names:
            raise SchemaError(f"{table.name} has no column {name!r}{nearest(name, table.column_names)}.")
    if table.total_rows == 0:
        raise DataError(f"{table.name} has no rows. Nothing was drawn and nothing was spent.")
    parts = table.groups_as_parts(layout or PartLayout.for_columns(len(columns)))
    crew = open_engine(engine)
    try:
        total = crew.sum(_SumBatches(tuple(columns), statistic), grouped(parts, partitions))
    finally:
        if crew is not engine:
            crew.close()
    table.check_unchanged()
    return total.values


@dataclass(frozen=True)
class _SumBatches:
    columns: tuple[str, ...]
    statistic: BatchStatistic

    def __call__(self, parts: Sequence[TablePart]) -> Total:
        pieces = (Total.of(self.statistic(block)) for part in parts for _, block in part.blocks(self.columns))
        result = next(pieces)  # every part has rows
        for piece in pieces:
            result = result.plus(piece)
        return result
