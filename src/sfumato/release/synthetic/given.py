"""What a given table says beside its cells: the types that somebody stated, and whose a row is.

In:   a table of any kind, the schema.
Out:  stated_kinds; without_people, people_of.
Not here: cells and their levels (release/synthetic/levels.py), reading of tables (core/tables.py).
Proof: docs/proofs/synthetic.md, "Levels"
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.cell import name_of
from sfumato.core.domain import Interval
from sfumato.core.schema import Schema
from sfumato.core.tables import plain_type, typed_by_pandas, untyped_cells
from sfumato.errors import SchemaError
from sfumato.release.synthetic.levels import kind_by_domain

__all__ = ["people_of", "stated_kinds", "without_people"]


def stated_kinds(table: Any, arrow: pa.Table, schema: Schema) -> dict[str, pa.DataType]:
    """The type of every column as its maker says; where its cells could have told it, as its domain does.

    A column whose cells are whole numbers, but for one, must not be told from one without it: numpy and pandas choose
    a type by the cells they meet, so theirs says nothing, in a table of Arrow's or a file of theirs neither (pandas'
    own Int64, Arrow and polars do).
    """
    written = getattr(table, "schema", None)
    told = typed_by_pandas(written) if isinstance(written, pa.Schema) else frozenset()
    found = {}
    for name, domain in schema.columns.items():
        if name in told:
            found[name] = kind_by_domain(domain)
        elif isinstance(domain, Interval) and domain.calendar:
            found[name] = _calendar_kind(table, name) or kind_by_domain(domain)
        else:
            given = _by_name(table, name) if isinstance(table, Mapping) or hasattr(table, "iloc") else table
            found[name] = arrow.schema.field(name).type if _is_stated(given, name) else kind_by_domain(domain)
    return found


def _by_name(table: Any, name: str) -> Any:
    """A column by its name as text, as tables are read everywhere: 0 is "0"."""
    if isinstance(table, Mapping):
        return next(column for known, column in table.items() if str(known) == name)
    if hasattr(table, "iloc"):
        return table.iloc[:, [str(known) for known in table.columns].index(name)]
    if hasattr(table, "get_column_index"):  # polars has an error of its own
        return table.to_series(table.columns.index(name))
    return table[name]


def _is_stated(given: Any, name: str) -> bool:
    """Whether a column's type is somebody's word.

    Of pandas' types Arrow's are and those of nullable numbers, which begin with a capital. Its categories are not: they
    are of the type that the cells had.
    """
    if untyped_cells(given, name) is not None:
        return False
    kind = getattr(given, "dtype", None)
    return kind is None or hasattr(kind, "pyarrow_dtype") or str(kind)[:1].isupper()


def _calendar_kind(table: Any, name: str) -> pa.DataType | None:
    """Of days and times: what Arrow and polars state; elsewhere a cell that is no date may decide it."""
    with suppress(KeyError, ValueError, TypeError, IndexError):
        column = _by_name(table, name)
        stated = getattr(getattr(column, "dtype", None), "pyarrow_dtype", None)
        if isinstance(column, pa.ChunkedArray | pa.Array):
            stated = column.type
        elif stated is None and hasattr(column, "to_arrow"):
            stated = column.to_arrow().type
        if stated is not None:
            return plain_type(stated)
    return None


def without_people(table: Any, people: str | None) -> Any:
    """The table without the column of people, in its own kind."""
    if people is None:
        return table
    if isinstance(table, Mapping):
        return {name: values for name, values in table.items() if str(name) != people}
    if isinstance(table, pa.Table | pa.RecordBatch):
        return table.drop_columns([people]) if people in table.schema.names else table
    return _frame_without(table, people)


def _frame_without(frame: Any, people: str) -> Any:
    if isinstance(frame, np.ndarray):
        return frame[[name for name in frame.dtype.names if name != people]] if frame.dtype.names else frame
    if hasattr(frame, "iloc"):
        return frame.iloc[:, [at for at, name in enumerate(frame.columns) if str(name) != people]]
    return frame.drop(people) if people in frame.columns else frame


def people_of(table: Any, people: str) -> list[str | None]:
    """Whose each row is, by the name that all ways of writing it share; None of nobody's."""
    column = None
    with suppress(KeyError, ValueError, TypeError, IndexError, StopIteration):
        column = _by_name(table, people)
    if column is None:
        raise SchemaError(f"The table has no column {people!r} that says whose a row is. Nothing was spent.")
    listed = column.to_pylist() if isinstance(column, pa.ChunkedArray | pa.Array) else list(column)
    return [name_of(one) for one in listed]
