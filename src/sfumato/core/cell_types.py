"""Which Arrow types a domain reads, and what becomes of cells of other types.

In:   Arrow types, columns, lists of Python objects.
Out:  columns of one type; DataError about a type alone, never about a cell.
Not here: what the cells mean (core/domain.py), one cell without a type (core/cell.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.cell import number_of, text_of
from sfumato.core.tables import as_column
from sfumato.errors import DataError

__all__ = [
    "ARROW_TYPES",
    "HOLDS",
    "HOLDS_NATIVE",
    "as_numbers",
    "chunked",
    "column_at_once",
    "comparable",
    "fits_type",
    "holds_native_numbers",
    "holds_numbers",
    "integer_of",
    "truth_of",
    "wrong_type",
]


def holds_numbers(kind: pa.DataType) -> bool:
    """Numbers, and truth values, which are 0 and 1."""
    return _holds_integers(kind) or pa.types.is_boolean(kind)


def _holds_integers(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def holds_native_numbers(kind: pa.DataType) -> bool:
    """Numbers as Python writes them."""
    return holds_numbers(kind) and not pa.types.is_decimal(kind)


def _holds_strings(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


HOLDS = {"str": _holds_strings, "int": _holds_integers, "bool": pa.types.is_boolean}
#: Whole numbers of so many digits are floats.
_EXACT_DIGITS = 15
_PLAIN = {int, float, str, np.float64, np.float32, np.int64, np.int32, np.str_}
#: As Python writes them: a decimal would be rounded otherwise than its cell alone.
HOLDS_NATIVE = {
    "str": _holds_strings,
    "int": lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind),
    "bool": pa.types.is_boolean,
}
ARROW_TYPES = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_()}


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A type Arrow can look up exactly."""
    kind = column.type
    if pa.types.is_floating(kind):
        # Adding zero turns -0.0 into 0.0, which Arrow's hash tells apart.
        from pyarrow import compute as pc

        return pc.call_function("add", [column.cast(pa.float64()), pa.scalar(0.0)])
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    return column


def as_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Cells of numbers as floats, each the nearest one; NaN where a cell is missing.

    Arrow makes 0.30000000000000004 of the decimal 0.3 and 0.3 of 0.30, and others' cells may say how many digits there
    are.

    >>> as_numbers(pa.chunked_array([pa.array([0.3, 2.5]).cast(pa.decimal128(3, 1), safe=False)])).tolist()
    [0.3, 2.5]
    """
    kind = column.type
    if not pa.types.is_decimal(kind):
        # safe=False: an int64 beyond 2**53 is rounded to the nearest float instead of quoted in an Arrow error.
        return column.cast(pa.float64(), safe=False).to_numpy()
    if kind.precision > _EXACT_DIGITS or not 0 <= kind.scale <= _EXACT_DIGITS:
        return column.cast(pa.string()).cast(pa.float64()).to_numpy()
    # All digits as a whole number and a power of ten, both exact: the quotient is rounded once.
    return np.rint(column.cast(pa.float64()).to_numpy() * 10.0**kind.scale) / 10.0**kind.scale


def column_at_once(cells: Sequence[Any], name: str, native: Any) -> pa.ChunkedArray | None:
    """All cells at once where that gives the same as one by one: they are all of the wanted type or missing."""
    kinds = set(map(type, cells)) - {type(None)}
    # Other objects can even end the process inside Arrow; among numbers it takes True for 1.
    if not (kinds <= _PLAIN or kinds <= {bool}):
        return None
    with suppress(DataError):
        arrow = as_column(cells, name)
        return arrow if pa.types.is_null(arrow.type) or native(arrow.type) else None
    return None


def chunked(values: list[Any], kind: pa.DataType) -> pa.ChunkedArray:
    """A column of this type."""
    return pa.chunked_array([pa.array(values, kind)])


def truth_of(cell: Any) -> bool | None:
    """What is no truth value is missing, as in a text file."""
    if isinstance(cell, (bool, np.bool_)):
        return bool(cell)
    return {"true": True, "false": False}.get((text_of(cell) or "").strip().lower()) if _is_text(cell) else None


def integer_of(cell: Any, unlisted: int) -> int | None:
    """What is no number is missing, as in a text file; what is no whole number of 64 bits is `unlisted`."""
    if isinstance(cell, (bool, np.bool_)):
        return unlisted
    if isinstance(cell, (int, np.integer)):
        return int(cell) if -(2**63) <= cell < 2**63 else unlisted
    number = number_of(cell)
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() and -(2.0**63) <= number < 2.0**63 else unlisted


def _is_text(cell: Any) -> bool:
    return isinstance(cell, (str, bytes))


def fits_type(value: Any, kind: pa.DataType) -> bool:
    """Whether a column of this type can hold the value."""
    if pa.types.is_floating(kind):
        return int(float(value)) == value
    with suppress(pa.ArrowException, OverflowError):
        pa.scalar(value, type=kind)
        return True
    return False


def wrong_type(kind: pa.DataType, name: str, need: str) -> DataError:
    """The refusal of a column for its type; its cells are not looked at."""
    if pa.types.is_temporal(kind):
        way = "Declare Dates(first, last) or Times(first, last); in TOML an interval with low = 2020-01-01."
    else:
        way = "Convert the column, or declare a domain of its type."
    return DataError(f"Column {name!r} is of type {_family(kind)} and {need}. {way} Nothing was spent.")


def _family(kind: pa.DataType) -> str:
    # The full name of a nested or extension type can hold field names and parameters that nobody declared.
    simple = pa.types.is_primitive(kind) or _holds_strings(kind) or pa.types.is_decimal(kind)
    return str(kind) if simple else str(kind).split("<", 1)[0].split("[", 1)[0]
