"""How many rows a table has, and some of them: of every kind of table that a fit takes.

In:   a matrix, a frame, an Arrow table, a dict of columns; places of rows.
Out:  row_count; rows_at: the rows at these places, in a table of the same kind.
Not here: what the cells mean (core/tables.py), which rows are chosen (learn/search.py, learn/fair.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

__all__ = ["row_count", "rows_at"]


def row_count(table: Any) -> int:
    """How many rows a table has.

    >>> row_count({"age": [34, 71, 50]}), row_count(np.zeros((2, 5))), row_count([[1.0], [2.0]])
    (3, 2, 2)
    """
    if sparse.issparse(table):  # of which some are dicts of cells
        return int(table.shape[0])
    if isinstance(table, Mapping):
        return len(next(iter(table.values()), ()))
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def rows_at(table: Any, places: Sequence[int] | np.ndarray) -> Any:
    """The rows at these places.

    >>> rows_at({"age": [34, 71, 50], "sex": ["f", "m", "f"]}, [2, 0])
    {'age': [50, 34], 'sex': ['f', 'f']}
    """
    if sparse.issparse(table):  # of which some cannot be asked for rows
        return table.tocsr()[places]
    if isinstance(table, Mapping):
        return {name: _cells_at(column, places) for name, column in table.items()}
    if hasattr(table, "iloc"):
        return table.iloc[places]
    if isinstance(table, pa.Table | pa.RecordBatch):
        return table.take(places)
    return table[places] if hasattr(table, "shape") else [table[place] for place in places]


def _cells_at(column: Any, places: Any) -> Any:
    """Some cells of a column, which has a type or is a list of objects: no cell decides how the others are read."""
    if hasattr(column, "iloc"):
        return column.iloc[places]
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column.take(places)
    return column[places] if isinstance(column, np.ndarray) else [column[place] for place in places]
