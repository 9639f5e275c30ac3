"""A centre's table as numbers within public bounds, whatever its cells hold.

In:   a table of any common kind, its schema.
Out:  a matrix as Schema.encode makes it; the text of identities. No cell makes it fail.
Not here: which rows count (core/kept_rows.py), what is summed (statistics.py).

A round that fails because of a cell tells that there is such a cell. So every cell has a place: a number outside its
interval is clipped; text that is no number, and a missing cell, take the declared `null`, else the middle of the
interval; a category that is not listed takes the declared `unknown`, a missing one the declared `null`, and where none
is declared they are counted in no category. Only a column that is not there, or whose type is that
of dates or lists, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.core.tables import nearest
from sfumato.errors import DataError

__all__ = ["number_of", "placed_rows", "texts_of"]


def placed_rows(schema: Schema, table: Any) -> np.ndarray:
    """The rows as a matrix with entries in [0, 1].

    >>> placed_rows(Schema({"age": Interval(0, 100)}), {"age": ["25", "old", None, 1e9]}).ravel()
    array([0.25, 0.5 , 0.5 , 1.  ])
    """
    columns = {name: _column(table, name, position) for position, name in enumerate(schema.columns)}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise DataError("The columns of the table differ in length. Nothing was sent.")
    rows = np.zeros((lengths.pop(), schema.width))
    for name, domain in schema.columns.items():
        target = rows[:, schema.slices[name]]
        if isinstance(domain, Interval):
            target[:, 0] = (_numbers(domain, columns[name]) - domain.low) / domain.width
        elif isinstance(domain, Categories):
            codes = _positions(domain, columns[name])
            target[codes >= 0, codes[codes >= 0]] = 1.0
    return rows


def texts_of(table: Any, name: str) -> list[str | None]:
    """A column as text: people are told apart by the text of their identifier. Missing ones are None."""
    return [None if _absent(cell) else str(cell) for cell in _cells(_column(table, name, None))]


def number_of(cell: Any) -> float:
    """The number a cell holds or spells, or NaN."""
    if _absent(cell):
        return math.nan
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return {"true": 1.0, "false": 0.0}.get(str(cell).strip().lower(), math.nan)


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


def _cells(column: Any) -> Sequence[Any]:
    if isinstance(column, pa.Array):
        return column.to_pylist()
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _numbers(domain: Interval, column: Any) -> np.ndarray:
    values = _fast_numbers(column)
    if values is None:
        values = np.array([number_of(cell) for cell in _cells(column)], dtype=np.float64)
    middle = domain.low + domain.width / 2 if domain.null is None else domain.null
    return np.clip(np.where(np.isnan(values), middle, values), domain.low, domain.high)


def _fast_numbers(column: Any) -> np.ndarray | None:
    """The column as floats where its type says that it holds numbers; None where cells have to be read one by one."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64) if column.dtype.kind in "fiub" else None
    if isinstance(column, pa.Array) and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return None


def _positions(domain: Categories, column: Any) -> np.ndarray:
    """The position of each cell's category, -1 for none."""
    known: dict[Any, int] = {}
    cells = _cells(column)
    found = np.empty(len(cells), dtype=np.int64)
    for place, cell in enumerate(cells):
        try:
            found[place] = known[type(cell), cell]
        except KeyError:
            found[place] = known[type(cell), cell] = _position(domain, cell)
        except TypeError:  # a cell that cannot be looked up is no category
            found[place] = _member(domain, domain.unknown)
    return found


def _position(domain: Categories, cell: Any) -> int:
    if _absent(cell):
        return _member(domain, domain.null)
    wanted: Any = str(cell) if domain.scalar == "str" else number_of(cell)
    if domain.scalar == "bool" and not isinstance(cell, bool | np.bool_ | str):
        return _member(domain, domain.unknown)  # 1 is not true
    for place, value in enumerate(domain.values):
        if value == wanted:
            return place
    return _member(domain, domain.unknown)


def _member(domain: Categories, value: Any) -> int:
    return -1 if value is None else domain.values.index(value)


def _absent(cell: Any) -> bool:
    if isinstance(cell, float | np.floating):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in _NOTHING


#: What pandas calls a missing cell.
_NOTHING = ("NAType", "NaTType")
