"""What a ledger knows the rows of a fit by: the same rows have one account, whatever the caller calls them.

In:   X, as a fit is handed it.
Out:  sources, as run/accounts.py writes them for tables: of a table of numbers alone they are the same.
Not here: the ledger (ledger/), which rows are trained on (learn/table.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from sfumato.core.bag_of_rows import bag_text, lanes_of, mixed, numbers_hashed, words_hashed
from sfumato.learn.arrays import is_device_array, to_host

__all__ = ["row_sources"]

#: How Python, numpy and pandas write an absent cell.
_ABSENT = frozenset(("", "none", "nan", "nat", "<na>"))


def row_sources(X: Any) -> tuple[str, ...]:
    """One source for the bag of rows, in whatever order; none of what has no rows.

    >>> row_sources([[1, 2], [3, 4]]) == row_sources(np.array([[3.0, 4.0], [1.0, 2.0]]))
    True
    >>> row_sources([[1, 2], [3, 4]]) == row_sources([[1, 2], [3, 5]])
    False
    """
    rows = _of_sparse(X) if sparse.issparse(X) else _added(_columns(to_host(X) if is_device_array(X) else X))
    return () if rows is None else (f"rows\0{bag_text(len(rows), lanes_of(rows))}\0",)


def _columns(X: Any) -> Iterable[Any]:
    """The columns of a frame, an Arrow table or a matrix."""
    if isinstance(X, pa.Table):
        return [column.to_numpy() for column in X.columns]
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return [np.asarray(X[name]) for name in X.columns]
    matrix = np.asarray(X)
    return list(matrix.T) if matrix.ndim == 2 else []


def _added(columns: Iterable[Any]) -> NDArray[np.uint64] | None:
    hashed = [_hashed(column) for column in columns]
    return np.asarray(np.sum(hashed, axis=0, dtype=np.uint64)) if hashed else None


def _hashed(column: Any) -> NDArray[np.uint64]:
    """Numbers by their value; anything else by its letters, without case."""
    try:
        return numbers_hashed(np.ascontiguousarray(column, dtype=np.float64))
    except (TypeError, ValueError):
        texts = [str(cell).strip().lower() for cell in column]
        kept = [None if text in _ABSENT else text for text in texts]
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
