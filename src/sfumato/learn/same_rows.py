"""What a ledger knows the rows of a fit by: the same rows have one account, whatever the caller calls them.

In:   X, as a fit is handed it.
Out:  sources, as run/accounts.py writes them for tables: of a table of numbers alone they are the same.
Not here: the ledger (ledger/), which rows are trained on (learn/table.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from sfumato.core.bag_of_rows import bag_text, lanes_of, mixed, numbers_hashed, words_hashed
from sfumato.core.cell import text_of
from sfumato.core.tables import at_rest
from sfumato.errors import DataError
from sfumato.learn.arrays import is_device_array, to_host

__all__ = ["row_sources"]

#: How Python, numpy and pandas write an absent cell.
_ABSENT = frozenset(("", "none", "nan", "nat", "<na>"))


def row_sources(X: Any) -> tuple[str, ...]:
    """One source for the bag of rows, in whatever order and in every form that a fit takes.

    >>> row_sources([[1, 2], [3, 4]]) == row_sources(np.array([[3.0, 4.0], [1.0, 2.0]]))
    True
    >>> row_sources([[1, 2], [3, 4]]) == row_sources([[1, 2], [3, 5]])
    False
    """
    rows = _of_sparse(X) if sparse.issparse(X) else _added(_columns(to_host(X) if is_device_array(X) else X))
    return (f"rows\0{bag_text(len(rows), lanes_of(rows))}\0",)


def _columns(X: Any) -> list[Any]:
    """The columns of a frame, an Arrow table, a dict of columns or a matrix."""
    X = at_rest(X)
    if isinstance(X, pa.Table):
        return [column.to_numpy() for column in X.columns]
    if isinstance(X, Mapping):
        return [_cells(column) for column in X.values()]
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return [np.asarray(X[name]) for name in X.columns]
    return _of_matrix(np.asarray(X))


def _of_matrix(matrix: np.ndarray) -> list[Any]:
    """The columns of an array: of its fields, where it has names."""
    if matrix.dtype.names is not None and matrix.ndim == 1:
        return [matrix[name] for name in matrix.dtype.names]
    return list(matrix.T) if matrix.ndim == 2 else []


def _cells(column: Any) -> Any:
    """A column of a dict; of a list each cell by itself, so that none decides how another is read."""
    if not isinstance(column, list | tuple):
        return np.asarray(column)
    cells = np.empty(len(column), dtype=object)
    cells[:] = column
    return cells


def _added(columns: list[Any]) -> NDArray[np.uint64]:
    if not columns:
        raise DataError(
            "A ledger knows rows by their content, and these it cannot read: pass a DataFrame, an Arrow table, a dict "
            "of columns or a matrix. Nothing was drawn and nothing was spent."
        )
    return np.asarray(np.sum([_hashed(column) for column in columns], axis=0, dtype=np.uint64))


def _hashed(column: Any) -> NDArray[np.uint64]:
    """Numbers by their value; anything else by its letters, without case."""
    try:
        return numbers_hashed(np.ascontiguousarray(column, dtype=np.float64))
    except (OverflowError, TypeError, ValueError):
        texts = [str(cell).strip().lower() for cell in column]
        kept = [None if text in _ABSENT else text_of(text) for text in texts]
        return np.broadcast_to(words_hashed(pa.array(kept, pa.string())), (len(kept),))


def _of_sparse(X: Any) -> NDArray[np.uint64]:
    """As the same matrix in full: cells that are not stored are zeros."""
    matrix: Any = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    rows = np.zeros(matrix.shape[0], dtype=np.uint64)
    stored = np.diff(matrix.indptr)
    np.add.at(rows, np.repeat(np.arange(len(stored)), stored), numbers_hashed(matrix.data))
    return rows + (matrix.shape[1] - stored).astype(np.uint64) * mixed(np.zeros(1, dtype=np.uint64))
