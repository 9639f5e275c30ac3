"""A centre's table as numbers within public bounds, whatever its cells hold.

In:   a table of any common kind, its schema.
Out:  a matrix as Schema.encode makes it; the text of identities. No cell makes it fail.
Not here: where a cell goes (core/domain.py), which rows count (core/kept_rows.py), what is summed (statistics.py).

A round that fails because of a cell tells that there is such a cell. So every cell has a place, the one it has
everywhere (core/domain.py). A column of text where numbers are declared is read cell by cell, and what is no number is
missing. Only a column that is not there, or whose type is that of dates or lists, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.cell import name_of
from sfumato.core.schema import Schema
from sfumato.core.tables import as_column, nearest, untyped_cells
from sfumato.errors import DataError

__all__ = ["placed_rows", "texts_of"]


def placed_rows(schema: Schema, table: Any) -> np.ndarray:
    """The rows as a matrix with entries in [0, 1].

    >>> from sfumato.core.domain import Interval
    >>> placed_rows(Schema({"age": Interval(0, 100, null=50)}), {"age": ["25", "old", None, 1e9]}).ravel()
    array([0.25, 0.5 , 0.5 , 1.  ])
    """
    columns = {name: _column(table, name, position) for position, name in enumerate(schema.columns)}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise DataError("The columns of the table differ in length. Nothing was sent.")
    rows = np.zeros((lengths.pop(), schema.width))
    for name, domain in schema.columns.items():
        column = columns[name]
        if untyped_cells(column, name) is None:
            arrow = as_column(column, name)
            column = arrow if domain.accepts(arrow.type) else _cells(arrow)
        domain.fill(rows[:, schema.slices[name]], column, name, 1.0)
    return rows


def texts_of(table: Any, name: str) -> list[str | None]:
    """A column as text: people are told apart by the text of their identifier. Missing ones are None."""
    column = _column(table, name, None)
    cells = untyped_cells(column, name)
    return [name_of(cell) for cell in (_cells(as_column(column, name)) if cells is None else cells)]


def _column(table: Any, name: str, position: int | None) -> Any:
    """One column of whatever kind of table, unread."""
    if isinstance(table, np.ndarray) and table.dtype.names is None:
        if table.ndim != 2 or position is None or position >= table.shape[1]:
            raise DataError("A plain array needs two dimensions and the columns of the schema. Nothing was sent.")
        return table[:, position]
    names = _names(table)
    if name not in names:
        raise DataError(f"The table has no column {name!r}{nearest(name, names)}. Nothing was sent.")
    column: Any = table[name]
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if _is_foreign(column):
        raise DataError(
            f"Column {name!r} holds neither numbers nor text nor truth values: its type says so. Convert the column, "
            "for instance a date to days since a public date. Nothing was sent."
        )
    return column


def _is_foreign(column: Any) -> bool:
    """Decided by the column's type, never by its cells."""
    if isinstance(column, pa.Array):
        kind = column.type
        return pa.types.is_temporal(kind) or pa.types.is_nested(kind)
    return getattr(getattr(column, "dtype", None), "kind", "O") in "mMcV"


def _names(table: Any) -> list[str]:
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    if isinstance(table, np.ndarray):
        return list(table.dtype.names or ())
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if names is None:
        raise DataError("A table is needed: a DataFrame, an Arrow table or a dict of columns. Nothing was sent.")
    return [str(name) for name in names]


def _cells(column: pa.ChunkedArray) -> Sequence[Any]:
    """Python objects; text as bytes, because bytes that are no text would fail."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    return column.to_pylist()
