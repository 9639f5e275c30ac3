"""Tables of every common kind, read as Arrow and given back as they came.

In:   a pandas or polars DataFrame, an Arrow Table, RecordBatch or stream, a dict of 1-D arrays,
      a structured or a plain 2-D numpy array; the Schema that says which columns are meant.
Out:  a pyarrow Table with exactly the declared columns, in schema order; `like` goes the other way.
Not here: what the values may be (core/domain.py), numbers for a model (core/schema.py).

pandas and polars are never imported here: a frame of theirs can only exist if its owner imported them.
No message quotes a value or counts rows: both are private. Errors of Arrow do quote values, so they are
dropped, not chained.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from sfumato.core.cell import text_of
from sfumato.errors import DataError, SchemaError

if TYPE_CHECKING:
    from sfumato.core.schema import Schema

__all__ = [
    "Extra",
    "as_arrow",
    "as_column",
    "at_rest",
    "like",
    "nearest",
    "plain_type",
    "told_by_cells",
    "typed_by_pandas",
    "untyped_cells",
]

Extra = Literal["refuse", "ignore"]

_CONVERSION_ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError)
_KINDS = "a pandas or polars DataFrame, a pyarrow Table, a dict of 1-D arrays or a 2-D numpy array"


def as_arrow(
    table: Any, schema: Schema, *, extra: Extra = "refuse", also: Mapping[str, str] = MappingProxyType({})
) -> pa.Table:
    """The declared columns of `table`, in schema order, as an Arrow table; typed values are left as they are.

    Columns of Python objects are read as their domains say, cell by cell: what one cell holds decides nothing about the
    others. A column whose type does not fit its domain is refused.

    A column that is not declared is refused, or left out unread with `extra="ignore"`. A plain 2-D array has
    no names: its columns are taken in schema order. The index of a pandas frame is not a column. A column that the
    table does not have by its declared name is looked for by the name in `also`.

    >>> from sfumato.core.domain import Interval
    >>> from sfumato.core.schema import Schema
    >>> schema = Schema({"age": Interval(0, 110)})
    >>> as_arrow({"age": [34, 71], "name": ["Ada", "Bo"]}, schema, extra="ignore").column_names
    ['age']
    """
    if extra not in ("refuse", "ignore"):
        raise SchemaError("extra must be 'refuse' or 'ignore'.")
    declared = list(schema.columns)
    names, pick = _open(table, declared)
    present = set(names)
    called = {name: name if name in present else also.get(name, name) for name in declared}
    _check_names(names, list(called.values()), extra)
    position = {name: at for at, name in enumerate(names)}
    columns = [schema.columns[name].read(pick(position[called[name]]), called[name]) for name in declared]
    if len({len(column) for column in columns}) > 1:
        raise DataError("The columns of the table differ in length. Nothing was spent.")
    return pa.Table.from_arrays(columns, names=declared)


def as_column(values: Any, name: str) -> pa.ChunkedArray:
    """One column as plain Arrow data: dictionaries decoded, NaN of numpy and pandas read as missing.

    >>> as_column(["f", None, "f"], "sex").null_count
    1
    """
    if isinstance(values, (str, bytes, Mapping)):
        raise DataError(f"Column {name!r}: a column is a 1-D array or a list, not a {type(values).__name__}.")
    if isinstance(values, np.ndarray):
        values = _native(values, name)
    with suppress(*_CONVERSION_ERRORS):
        return _plain(_chunked(values))
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":  # half a surrogate is no text; the others are
        return pa.chunked_array([pa.array([text_of(cell) for cell in values.tolist()], pa.string())])
    # Raised after the handler, so that not even __context__ holds the Arrow error with its quoted value.
    raise DataError(
        f"Column {name!r} cannot be read as one Arrow type. Give every value the same type "
        "(all numbers, all strings or all booleans). Nothing was spent."
    )


def untyped_cells(values: Any, name: str) -> Sequence[Any] | None:
    """The cells of a column whose only types are those of its cells (a list, an object array); None if it has a type.

    >>> untyped_cells([1, "x"], "age"), untyped_cells(np.array([1, 2]), "age")
    ([1, 'x'], None)
    """
    if isinstance(values, (list, tuple)):
        return values
    kind = getattr(values, "dtype", None)
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)  # of a pandas Categorical
    if isinstance(kind, np.dtype) and kind.kind == "O" and getattr(values, "ndim", 0) == 1:
        return list(values)
    if kind is None and isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping)):
        return None if _is_arrow(values) else list(values)
    return None


def _is_arrow(values: Any) -> bool:
    return isinstance(values, (pa.Array, pa.ChunkedArray)) or hasattr(values, "__arrow_c_stream__")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values without dictionary, run-end or view encoding.

    >>> plain_type(pa.dictionary(pa.int8(), pa.string_view()))
    DataType(large_string)
    """
    if pa.types.is_run_end_encoded(kind) or pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    return _without_view(kind)


def like(original: Any, table: pa.Table) -> Any:
    """`table` as the same kind of object as `original`: pandas for pandas, a dict of numpy arrays for a dict, …

    Values are never cast back: noisy integers may be floats. Nothing but the kind is taken from
    `original`; a pandas index, which may identify people, is replaced by 0, 1, 2, …. A stream gives a Table.

    >>> like({"age": [34]}, pa.table({"age": [33.5]}))
    {'age': array([33.5])}
    """
    if _is_frame(original, "pandas"):
        return table.to_pandas()
    if _is_frame(original, "polars"):
        return sys.modules["polars"].DataFrame(table)
    if isinstance(original, pa.RecordBatch):
        columns = [_one_array(column) for column in table.columns]
        return pa.RecordBatch.from_arrays(columns, schema=table.schema)
    if hasattr(original, "__arrow_c_stream__"):
        return table
    if isinstance(original, Mapping):
        return _as_arrays(table)
    if isinstance(original, np.ndarray):
        return _as_structured(original.dtype, table) if original.dtype.names else _as_matrix(original, table)
    raise _unreadable(original)


def at_rest(table: Any) -> Any:
    """A stream, a relation or a batch of Arrow as a Table, which can be read twice; anything else as it is.

    >>> at_rest(pa.table({"age": [34]}).to_reader()).num_rows
    1
    """
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table) or _is_frame(table, "pandas") or _is_frame(table, "polars"):
        return table
    streams = hasattr(table, "__arrow_c_stream__")
    whole = isinstance(table, pa.RecordBatchReader) or hasattr(table, "columns")  # one column alone streams too
    return _read_stream(table) if streams and whole else table


def nearest(name: str, known: Collection[str]) -> str:
    """A hint naming the known word closest to `name`, or nothing when none is close.

    >>> nearest("agee", ["age", "sex"])
    " (did you mean 'age'?)"
    """
    alike = [one for one in known if one.casefold() == name.casefold()]
    close = alike or difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _is_frame(table: Any, library: str) -> bool:
    return _is_of(table, library, "DataFrame")


def _is_of(value: Any, library: str, kind: str) -> bool:
    # An absent library cannot have made the value, so looking into sys.modules is enough.
    known = getattr(sys.modules.get(library), kind, None)
    return known is not None and isinstance(value, known)


def _open(table: Any, declared: list[str]) -> tuple[list[str], Callable[[int], Any]]:
    """The column names of a table and a way to pick one column; columns nobody picks are never converted."""
    if _is_frame(table, "pandas"):
        return [str(name) for name in table.columns], lambda position: table.iloc[:, position]
    if _is_frame(table, "polars"):
        return list(table.columns), table.to_series
    if isinstance(table, Mapping):
        columns = list(table.values())
        return [str(name) for name in table], columns.__getitem__
    if isinstance(table, np.ndarray):
        return _open_array(table, declared)
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif hasattr(table, "__arrow_c_stream__"):
        table = _read_stream(table)
    if not isinstance(table, pa.Table):
        raise _unreadable(table)
    return table.column_names, table.column


def _open_array(table: np.ndarray, declared: list[str]) -> tuple[list[str], Callable[[int], Any]]:
    fields = table.dtype.names
    if fields is not None:
        if table.ndim != 1:
            raise DataError(f"A structured array must have 1 dimension, this one has {table.ndim}.")
        return list(fields), lambda position: table[fields[position]]
    if table.ndim != 2:
        raise DataError(f"A plain array must have 2 dimensions (rows, columns), this one has {table.ndim}.")
    if table.shape[1] != len(declared):
        raise SchemaError(
            f"The array has {table.shape[1]} columns and the schema declares {len(declared)}. "
            "Columns of a plain array are taken in schema order: pass exactly those. Nothing was spent."
        )
    return declared, lambda position: table[:, position]


def _read_stream(table: Any) -> pa.Table:
    with suppress(*_CONVERSION_ERRORS):
        return pa.table(table)
    raise DataError(f"The Arrow stream of this {type(table).__name__} cannot be read as a table. Nothing was spent.")


def _unreadable(table: Any) -> DataError:
    return DataError(f"A {type(table).__name__} is not a table we can read. Pass {_KINDS}.")


def _refuse_twice(names: list[str]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise SchemaError(f"The table has more than one column named {_listed(twice)}. Rename them.")


def _check_names(names: list[str], declared: list[str], extra: Extra) -> None:
    _refuse_twice(names)
    present, wanted = set(names), set(declared)
    missing = [name for name in declared if name not in present]
    undeclared = [name for name in names if name not in wanted]
    if missing:
        listed = ", ".join(f"{name!r}{nearest(name, undeclared)}" for name in missing)
        raise SchemaError(
            f"The table lacks the declared column {listed}. Rename it, or leave it out of the schema with "
            "schema.without(…). Nothing was spent."
        )
    if undeclared and extra == "refuse":
        raise SchemaError(
            f"The table has columns the schema does not declare: {_listed(undeclared)}. Declare them, drop them, "
            'or pass extra="ignore" to leave them unread. Nothing was spent.'
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _native(values: np.ndarray, name: str) -> np.ndarray:
    """A 1-D array in the machine's byte order, the only one Arrow reads."""
    if values.ndim != 1:
        raise DataError(f"Column {name!r} must have 1 dimension, it has {values.ndim}.")
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _chunked(values: Any) -> pa.ChunkedArray:
    if isinstance(values, pa.ChunkedArray):
        return values
    # A pandas Series goes through pa.array, which alone reads its NaN as missing.
    if hasattr(values, "__arrow_c_stream__") and not _is_of(values, "pandas", "Series"):
        return pa.chunked_array(values)
    array = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values without dictionary, run-end or view encoding, which many Arrow kernels cannot take."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        from pyarrow import compute as pc

        return _plain(
            pa.chunked_array(
                [pc.call_function("run_end_decode", [chunk]) for chunk in column.chunks], type=kind.value_type
            )
        )
    if pa.types.is_dictionary(kind):
        return pa.chunked_array([_decoded(chunk) for chunk in column.chunks], type=_without_view(kind.value_type))
    return column if kind == _without_view(kind) else column.cast(_without_view(kind))


def _decoded(chunk: Any) -> pa.Array:
    words = chunk.dictionary.cast(_without_view(chunk.dictionary.type))
    return pa.DictionaryArray.from_arrays(chunk.indices, words).dictionary_decode()


def _without_view(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if kind == pa.string_view() else kind


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _as_arrays(table: pa.Table) -> dict[str, np.ndarray]:
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _as_matrix(original: np.ndarray, table: pa.Table) -> np.ndarray:
    if original.ndim != 2:
        raise _unreadable(original)
    arrays = list(_as_arrays(table).values())
    return np.column_stack(arrays) if arrays else np.empty((table.num_rows, 0))


def _as_structured(dtype: np.dtype, table: pa.Table) -> np.ndarray:
    arrays = _as_arrays(table)
    for name, array in arrays.items():
        was_text = dtype.names is not None and name in dtype.names and dtype[name].kind == "U"
        if was_text and table.column(name).null_count == 0:
            arrays[name] = array.astype(np.str_)
    records = np.empty(table.num_rows, dtype=[(name, array.dtype) for name, array in arrays.items()])
    for name, array in arrays.items():
        records[name] = array
    return records


def told_by_cells(schema: pa.Schema) -> frozenset[str]:
    """Columns of numbers whose type pandas took from their cells.

    In pandas one absent cell makes decimals of whole numbers, and so in the Parquet files it writes: whoever sees which
    type something has that was made of such a column would see that cell. pandas' own Int64 is somebody's word.

    >>> told_by_cells(pa.Table.from_pydict({"age": [1, 2]}).schema)
    frozenset()
    """
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    told = (field.name for field in schema if any(family(field.type) for family in numbers))
    return frozenset(told) & typed_by_pandas(schema)


def typed_by_pandas(schema: pa.Schema) -> frozenset[str]:
    """Columns of every kind whose type pandas took from their cells, by what it writes beside what it hands over.

    One cell makes text or dates of a column that has no other, and a longer one wider decimals.
    """
    written = (schema.metadata or {}).get(b"pandas")
    if written is None:
        return frozenset()
    stated: set[str] = set()
    with suppress(Exception):  # no text of a file is a reason to fail
        described = json.loads(written)["columns"]
        stated = {one["field_name"] for one in described if str(one["numpy_type"])[:1].isupper()}
    return frozenset(schema.names) - stated
