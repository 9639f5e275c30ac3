"""Columns of every common kind as a few plain types that no value can break.

In:   an Arrow table or a Parquet file, a data frame, a mapping of arrays or lists.
Out:  what the engine is given, and the SQL that reads it: text, numbers, truth values.
Not here: CSV files (network/text_files.py), what a column is meant to hold (network/cells.py).

The type of a column is decided by a schema and never by a value, because a value that decided it would decide how
everybody's cells are read, or whether the run fails. A list of Python objects has no schema: it is text, like a column
of a CSV file. Text is handed over as bytes, since an engine that meets bytes that are no text fails; times as whole
numbers, since an engine that meets a time outside of its calendar fails. Both become text again by total rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.alike_names import alike_names
from sfumato.core.cell import NO_TEXT, name_of
from sfumato.core.cell import text_of as cell_text
from sfumato.core.tables import told_by_cells
from sfumato.errors import DataError
from sfumato.network.agreed import Agreed, agreed, first_other
from sfumato.network.expression import sql_name

__all__ = ["TEXT", "WRITTEN", "Plain", "Portion", "number_text", "plain_file", "plain_files", "plain_table", "text_of"]

#: The type of a column of a CSV file: text that may be meant as a number.
TEXT = "TEXT"
#: That of numbers written as text, because files of one table have other types of numbers.
WRITTEN = f"{TEXT}(DOUBLE)"
#: Microseconds in a unit of time.
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
#: Units of moments, by the number that stands beside one.
_UNITS = ("s", "ms", "us", "ns")
#: 0001-01-01 and 9999-12-31 in days since 1970-01-01.
_DAYS = (-719_162, 2_932_896)


@dataclass(frozen=True)
class Plain:
    """Something the engine can read without failing. `shown` is the SQL of each column, in order.

    `text` are the columns that hold text which may be meant as a number, `nested` those that hold no single values.
    """

    source: Any
    shown: Mapping[str, str]
    text: frozenset[str] = frozenset()
    nested: frozenset[str] = frozenset()
    #: Parquet files whose columns the engine reads itself as they are: several times as fast, and it fails where bytes
    #: that claim to be text are none. Then `source` is read instead, to the same end.
    files: tuple[Path, ...] = ()
    #: What must not go away while this is read.
    held: Any = None
    #: SQL that is true of the rows that are meant, in the columns as they are shown; "" for all of them.
    only: str = ""
    #: Columns that say whose a row is, whoever reads it.
    naming: tuple[str, ...] = ()
    #: Those of them whose cells were found to be all there and all different.
    alone: tuple[str, ...] = ()
    #: Columns of whole numbers by somebody's word, and not because no cell happens to be absent or a decimal.
    whole: frozenset[str] = frozenset()
    #: Those of `text` that hold numbers in every file, whole in some and decimals in others.
    numbers: frozenset[str] = frozenset()

    def kind(self, column: str, kind: str) -> str:
        """The type of a column that the engine has as `kind`."""
        return WRITTEN if column in self.numbers else TEXT if column in self.text else kind


@dataclass(frozen=True)
class Portion:
    """Some rows of a table: those of which a condition of ours holds. They are read as they are needed, never held.

    The condition may ask for the text of `naming` columns, which is the same for 7 and for 7.0. Of `alone` columns it
    was found, in the whole table, that every row has an identifier and no other row has it.
    """

    table: Any
    only: str
    naming: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


def plain_file(path: Path) -> Plain:
    """A Parquet file, read as it is needed."""
    return plain_files([path])


def plain_files(paths: Sequence[Path]) -> Plain:
    """Parquet files of one table, read as they are needed; a cell may have given one of them another type."""
    from pyarrow import parquet

    with suppress(pa.ArrowException, OSError):
        schemas = [parquet.read_schema(path) for path in paths]
        found = agreed(schemas)
        if found is None:
            raise _no_one_table(paths, schemas)
        _check_names(paths[0].name, found.schema.names)
        read = _dataset(paths, schemas, found)
        plain = _plain(read, found.schema, found.numbers)
        native = not found.differing and all(map(_is_native, found.schema.types)) and not any(map(_is_pattern, paths))
        whole = frozenset.intersection(*map(_whole, schemas)) - found.differing
        files = tuple(paths) if native else ()
        return replace(
            plain, shown={**plain.shown, **_shown_alike(plain, found)}, files=files, whole=whole, numbers=found.numbers
        )
    raise _unreadable(paths)


def _no_one_table(paths: Sequence[Path], schemas: Sequence[pa.Schema]) -> DataError:
    other, first = paths[first_other(schemas)].name, paths[0].name
    return DataError(
        f"{other} has other columns or types than {first}: they are no one table. Nothing was published and "
        "nothing was spent."
    )


def _unreadable(paths: Sequence[Path]) -> DataError:
    if len(paths) == 1:
        what = f"{paths[0].name} is no Parquet file that can be read"
    else:
        what = f"{paths[0].parent.name} holds a file that is no Parquet file that can be read"
    return DataError(f"{what}. Nothing was published and nothing was spent.")


def _as_read(found: Agreed) -> pa.Schema:
    """The types in which the columns are taken from every file."""
    stored = {one.name: pa.string() if one.name in found.numbers else _stored(one.type) for one in found.schema}
    return pa.schema([(one.name, stored[one.name] or one.type) for one in found.schema])


def _dataset(paths: Sequence[Path], schemas: Sequence[pa.Schema], found: Agreed) -> Any:
    """The files as one; beside a column stands how many bits a decimal has in a row's file, or a moment's unit."""
    from pyarrow import dataset as arrow_dataset  # brings pandas where it is installed
    from pyarrow.fs import LocalFileSystem

    stored, names = _as_read(found), [str(path) for path in paths]
    if not found.numbers | found.moments:
        return arrow_dataset.dataset(names, schema=stored, format="parquet")
    beside = {name: _beside(name, found) for name in found.numbers | found.moments}
    return arrow_dataset.FileSystemDataset.from_paths(
        names,
        schema=pa.schema([*stored, *(pa.field(mark, pa.int8()) for mark in beside.values())]),
        format=arrow_dataset.ParquetFileFormat(),
        filesystem=LocalFileSystem(),
        partitions=[_bits_said(schema, beside) for schema in schemas],
    )


def _beside(name: str, found: Agreed) -> str:
    """A name that no column has: it is longer than all of them."""
    names = found.schema.names
    return f"{'$' * max(map(len, names))}{names.index(name)}"


def _bits_said(schema: pa.Schema, beside: Mapping[str, str]) -> Any:
    """What holds of every row of a file with this schema."""
    from pyarrow import dataset as arrow_dataset

    def bits(name: str) -> int:
        kind = schema.field(name).type
        if pa.types.is_timestamp(kind):
            return _UNITS.index(kind.unit)
        return kind.bit_width if pa.types.is_floating(kind) else 0

    said = [arrow_dataset.field(mark) == pa.scalar(bits(name), pa.int8()) for name, mark in beside.items()]
    return reduce(and_, said)


def _shown_alike(plain: Plain, found: Agreed) -> dict[str, str]:
    """The SQL of columns that have another type in some file."""
    # As text, which keeps all digits of whole numbers.
    shown = {name: _written(name, _beside(name, found)) for name in found.numbers}
    for name in found.differing - found.numbers:
        one = _of_any_unit(name, _beside(name, found)) if name in found.moments else plain.shown[name]
        # An expression, so that no condition is tried on a file's own type.
        shown[name] = f"([{one}])[1]"
    return shown


def _of_any_unit(name: str, beside: str) -> str:
    """SQL for the text of a moment whose file says in which unit it is."""
    moments = [_moment(sql_name(name), pa.timestamp(unit)) for unit in _UNITS]
    cases = " ".join(f"WHEN {place} THEN {moment}" for place, moment in enumerate(moments))
    return f"(CASE {sql_name(beside)} {cases} END)"


def _written(name: str, beside: str) -> str:
    """SQL for the text of a number, which is the same in a file of decimals, and of decimals of 32 bits.

    Arrow writes 1e+10 of the decimal 10000000000, who would be somebody else, and 0.1 of 0.10000000149 in 32 bits.
    """
    text = f"nullif({sql_name(name)}, 'nan')"
    narrow, wide = (number_text(f"TRY_CAST({text} AS {kind})::DOUBLE") for kind in ("FLOAT", "DOUBLE"))
    return f"(CASE {sql_name(beside)} WHEN 32 THEN {narrow} WHEN 64 THEN {wide} ELSE {text} END)"


def _is_pattern(path: Path) -> bool:
    return any(sign in str(path) for sign in "*?[")


def _is_native(kind: pa.DataType) -> bool:
    """Types that the engine reads as `_shown` would show them."""
    if pa.types.is_dictionary(kind):
        return _is_native(kind.value_type)
    families = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_large_string)
    return kind in (pa.float32(), pa.float64()) or any(family(kind) for family in families)


def plain_table(table: Any, name: str) -> Plain:
    """An Arrow table, a data frame or a mapping."""
    if isinstance(table, pa.Table):
        return _from_arrow(table, name)
    if isinstance(table, Mapping) or (hasattr(table, "columns") and hasattr(table, "iloc")):
        return _from_columns(table, name)
    if hasattr(table, "__arrow_c_stream__"):
        # What a conversion says when it fails quotes cells, so it is neither repeated nor chained.
        made = None
        with suppress(Exception):
            made = pa.table(table)
        if made is not None:
            return _from_arrow(made, name)
    raise DataError(
        f"The table {name} is of a kind that cannot be read. Hand in a path, an Arrow table or a data frame. Nothing "
        "was published and nothing was spent."
    )


def _from_arrow(table: pa.Table, name: str, text: Iterable[str] = ()) -> Plain:
    _check_names(name, table.column_names)
    columns = [_as_stored(column) for column in table.columns]
    given = pa.table(columns, names=table.column_names)
    return _plain(given, table.schema, text)


def _check_names(table: str, names: Iterable[str]) -> None:
    if told := alike_names(table, names):
        raise DataError(f"{told}. Rename one. Nothing was published and nothing was spent.")


def _plain(source: Any, schema: pa.Schema, text: Iterable[str] = ()) -> Plain:
    shown = {field.name: _shown(sql_name(field.name), field.type) for field in schema}
    wide = [field.name for field in schema if pa.types.is_decimal256(_inner(field.type))]
    nested = frozenset(field.name for field in schema if _stored(field.type) is None)
    return Plain(source, shown, frozenset((*text, *wide)), nested, whole=_whole(schema))


def _whole(schema: pa.Schema) -> frozenset[str]:
    """Columns that a schema says hold whole numbers."""
    return frozenset(field.name for field in schema if pa.types.is_integer(field.type)) - told_by_cells(schema)


def number_text(number: str) -> str:
    """SQL for the text of a floating-point number; of a whole one without a point, as that of a whole number.

    Up to 10¹⁶, as `text_name` and `name_of` have it: from there on texts have an exponent.
    """
    whole = f"abs({number}) < 1e16 AND {number} = trunc({number})"
    return f"(CASE WHEN {whole} THEN {number}::BIGINT::VARCHAR ELSE {number}::VARCHAR END)"


# ── types ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _inner(kind: pa.DataType) -> pa.DataType:
    """The type of the values behind dictionaries, repetitions and names."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _inner(kind.value_type)
    return _inner(kind.storage_type) if isinstance(kind, pa.BaseExtensionType) else kind


def _is_bytes(kind: pa.DataType) -> bool:
    views = (pa.string_view(), pa.binary_view())
    families = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    return kind in views or pa.types.is_fixed_size_binary(kind) or any(family(kind) for family in families)


def _stored(kind: pa.DataType) -> pa.DataType | None:
    """The type a column is handed over as; None for values made of several values."""
    kind = _inner(kind)
    if _is_bytes(kind):
        return pa.large_binary()
    if pa.types.is_decimal(kind):
        return pa.string() if pa.types.is_decimal256(kind) else pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_temporal(kind):
        if pa.types.is_interval(kind):
            return None
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pa.types.is_float16(kind):
        return pa.float32()
    return kind if pa.types.is_primitive(kind) or pa.types.is_null(kind) else None


def _as_stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    stored = _stored(column.type)
    if stored is None:
        return pa.chunked_array([pa.nulls(len(column), pa.list_(pa.int8()))])
    return pa.chunked_array([_chunk(chunk, stored) for chunk in column.chunks], type=stored)


def _chunk(chunk: pa.Array, stored: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc  # a tenth of a second, and a study is checked without rows

    if isinstance(chunk, pa.ExtensionArray):
        return _chunk(chunk.storage, stored)
    if isinstance(chunk, pa.RunEndEncodedArray):
        return _chunk(pc.call_function("run_end_decode", [chunk]), stored)
    if isinstance(chunk, pa.DictionaryArray):
        words = _chunk(chunk.dictionary, stored)
        places = chunk.indices.cast(pa.int64(), safe=False)
        ends = [("greater_equal", pa.scalar(0)), ("less", pa.scalar(len(words)))]
        inside = pc.call_function("and", [pc.call_function(name, [places, end]) for name, end in ends])
        return words.take(pc.call_function("if_else", [inside, places, pa.scalar(None, pa.int64())]))
    if chunk.type == stored:
        return chunk
    if chunk.type == pa.string_view():
        chunk = chunk.cast(pa.binary_view())
    return chunk.cast(stored)


def _shown(cell: str, kind: pa.DataType) -> str:
    """SQL that turns what is stored into text, a number or a truth value; it fails for no value."""
    kind = _inner(kind)
    if _is_bytes(kind):
        return f"coalesce(TRY(decode({cell})), '{NO_TEXT}' || hex({cell}))"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _moment(cell, kind)
    if pa.types.is_time(kind):
        return _time_of_day(cell, kind)
    return f"{cell}::VARCHAR" if pa.types.is_temporal(kind) else cell


def _time_of_day(cell: str, kind: pa.DataType) -> str:
    """A time of day as ISO text; a number that is none behind a sign."""
    moment = (
        f"make_timestamp({cell} // 1000)"
        if kind.unit == "ns"
        else f"make_timestamp({cell}::BIGINT * {_MICROSECONDS[kind.unit]})"  # 32 bits hold no day of microseconds
    )
    most = 86_400 * 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit] - 1
    return f"(CASE WHEN {cell} BETWEEN 0 AND {most} THEN {moment}::TIME::VARCHAR ELSE '@' || {cell} END)"


def _moment(cell: str, kind: pa.DataType) -> str:
    """A date or a time of the years 1 to 9999 as ISO text; any other as its number behind a sign."""
    if kind == pa.date32():
        shown, ends = f"(DATE '1970-01-01' + {cell})", _DAYS
    elif kind == pa.date64():
        shown, ends = f"(DATE '1970-01-01' + ({cell} // 86400000)::INTEGER)", tuple(day * 86_400_000 for day in _DAYS)
    elif kind.unit == "ns":
        shown, ends = f"make_timestamp_ns({cell})", (-9_214_560_000 * 10**9, 9_214_646_400 * 10**9)
    else:
        unit = _MICROSECONDS[kind.unit]
        shown, ends = f"make_timestamp({cell} * {unit})", tuple(day * 86_400_000_000 // unit for day in _DAYS)
    # Asked first and not tried: some moments outside make the engine give up instead of failing.
    return f"(CASE WHEN {cell} BETWEEN {ends[0]} AND {ends[1]} THEN {shown}::VARCHAR ELSE '@' || {cell} END)"


# ── Python's own columns ─────────────────────────────────────────────────────────────────────────────────────────────


def _from_columns(table: Any, name: str) -> Plain:
    names, given = _names_and_columns(table)
    _check_names(name, map(str, names))
    columns, text = {}, []
    for key, values in zip(names, given, strict=True):
        typed = _typed(values)
        if typed is None:
            text.append(key)
            typed = pa.chunked_array([text_of(_listed(values, name))], pa.string())
        columns[key] = typed
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError(f"The columns of the table {name} differ in length. Nothing was spent.")
    # numpy, and pandas with it, choose a number's type by the cells they meet.
    by_cells = {
        key for key, values in zip(names, given, strict=True) if isinstance(getattr(values, "dtype", None), np.dtype)
    }
    plain = _from_arrow(pa.table(columns), name, text)
    return replace(plain, whole=plain.whole - by_cells)


def _names_and_columns(table: Any) -> tuple[list[str], list[Any]]:
    """Of a data frame, whose columns are counted because two may have one name, or of a mapping."""
    if not hasattr(table, "iloc"):
        return [str(key) for key in table], list(table.values())
    names = [str(key) for key in table.columns]
    return names, [table.iloc[:, place] for place in range(len(names))]


def _typed(values: Any) -> pa.ChunkedArray | None:
    """A column that has a type, as Arrow; None for Python objects, whose types are those of their values."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    kind = getattr(values, "dtype", None)
    if kind is None or getattr(values, "ndim", 1) != 1:
        return None
    if isinstance(kind, np.dtype) and kind.kind not in "biufmM":
        return None
    with suppress(Exception):  # text with half a surrogate: the slow way reads it, to the same end
        array = values.__arrow_array__() if hasattr(values, "__arrow_array__") else pa.array(values, from_pandas=True)
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    return None


def _listed(values: Any, name: str) -> Sequence[Any]:
    if isinstance(values, (str, bytes, Mapping)) or getattr(values, "ndim", 1) != 1 or not isinstance(values, Iterable):
        raise DataError(f"A column of the table {name} is no list of cells. Nothing was spent.")
    return list(values)


def text_of(cells: Sequence[Any]) -> pa.Array:
    """Cells of any Python type as text; what has no text is absent. No value makes it fail.

    A whole number is 7 as 7 and as 7.0, and a moment is written as the engine writes it: a word among decimals or
    moments makes objects of a typed column in pandas, and nobody else's text may change by that.

    >>> text_of(["m", 3, 2.5, 7.0, True, None, float("nan"), b"x", {}, 2**70]).to_pylist()
    ['m', '3', '2.5', '7', 'true', None, None, 'x', None, '1180591620717411303424']
    """
    with suppress(Exception):
        return pa.array(cells, pa.string())  # all of them text: the same result at once
    return pa.array([_text(cell) for cell in cells], pa.string())


def _text(cell: Any) -> str | None:
    return cell_text(cell) if isinstance(cell, (str, bytes)) else name_of(cell)
