"""Columns of days and of times of day as columns of numbers, and back in the type they came in.

In:   an Arrow column of dates, timestamps, times of day or ISO 8601 text; "date" or "time", what its numbers stand for.
Out:  days since 1970-01-01 or seconds since midnight as float64, missing where a cell says none; and back.
Not here: one value (core/calendar.py), the same in SQL (network/cells.py).

No cell makes a column fail: text that says no day is missing. Timestamps with a zone are read in UTC.
"""

from __future__ import annotations

import numbers
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.calendar import number_of_day, number_of_time, shown
from sfumato.core.cell import number_of

__all__ = ["calendar_cell", "calendar_kind", "calendar_numbers", "calendar_values", "holds_calendar"]

_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def holds_calendar(kind: pa.DataType, unit: str) -> bool:
    """Whether cells of this type may say a day ("date") or a time of day ("time"); text may say either.

    >>> holds_calendar(pa.date32(), "date"), holds_calendar(pa.date32(), "time")
    (True, False)
    """
    if not unit:
        return False
    own = pa.types.is_date(kind) if unit == "date" else pa.types.is_time(kind)
    return own or pa.types.is_timestamp(kind) or _is_text(kind)


def calendar_kind(unit: str) -> pa.DataType:
    """The type of a column that has none of its own."""
    return pa.date32() if unit == "date" else pa.time32("s")


def calendar_cell(cell: Any, unit: str) -> float | None:
    """The number one Python object stands for, a number for itself; None for what says no day or time.

    >>> [calendar_cell(cell, "date") for cell in ("2020-01-31", datetime(2020, 1, 31, 8, 30), 3, "soon")]
    [18292.0, 18292.0, 3.0, None]
    """
    if isinstance(cell, numbers.Real) and not isinstance(cell, bool):
        return number_of(cell)
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    with suppress(ValueError, OverflowError, TypeError, AttributeError):  # pandas' NaT is a datetime that has no day
        if unit == "date":
            return number_of_day(cell)
        if isinstance(cell, str) and len(cell) > 8 and ":" in cell[8:]:
            cell = datetime.fromisoformat(cell)
        if isinstance(cell, datetime):
            cell = (cell.astimezone(UTC) if cell.tzinfo is not None else cell).time()
        return number_of_time(cell)
    return None


def calendar_numbers(column: pa.ChunkedArray, unit: str) -> pa.ChunkedArray:
    """Days or seconds of every cell; columns of numbers are left as they are.

    >>> calendar_numbers(pa.chunked_array([["2020-01-31", "soon"]]), "date").to_pylist()
    [18292.0, None]
    """
    kind = column.type
    if not holds_calendar(kind, unit):
        return column
    if _is_text(kind):
        return _of_text(column, unit)
    steps = _steps_a_day(kind)
    whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    raw = whole.fill_null(0).to_numpy()
    found = np.floor_divide(raw, steps) if unit == "date" else np.mod(raw, steps) * (_DAY / steps)
    return pa.chunked_array([pa.array(found.astype(np.float64), mask=column.is_null().to_numpy().astype(bool))])


def calendar_values(given: pa.Array, unit: str, kind: pa.DataType) -> pa.Array:
    """Whole days or seconds as cells of `kind`; of a type that cannot hold them, as dates or times of day.

    >>> calendar_values(pa.array([18292.0, None]), "date", pa.string()).to_pylist()
    ['2020-01-31', None]
    """
    if _is_number(kind):
        return given
    missing = given.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    whole = np.floor(np.where(missing, 0.0, given.fill_null(0.0).to_numpy(zero_copy_only=False))).astype(np.int64)
    if _is_text(kind):
        levels, place = np.unique(whole, return_inverse=True)
        words = pa.array([shown(float(level), unit) for level in levels], kind)
        return words.take(pa.array(place, mask=missing))
    held = kind if _fits(kind, unit) else calendar_kind(unit)
    scaled = whole * _steps_a_day(held) if unit == "date" else whole * (_steps_a_day(held) // _DAY)
    raw = pa.array(scaled, mask=missing)
    return raw.cast(pa.int32()).cast(held) if held.bit_width == 32 else raw.cast(held)


def _fits(kind: pa.DataType, unit: str) -> bool:
    return pa.types.is_time(kind) if unit == "time" else pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _steps_a_day(kind: pa.DataType) -> int:
    """How many units of the type make a day."""
    if pa.types.is_date(kind):
        return 1 if kind.bit_width == 32 else _DAY * 1000
    return _DAY * _PER_SECOND[kind.unit]


def _of_text(column: pa.ChunkedArray, unit: str) -> pa.ChunkedArray:
    listed = column.combine_chunks().dictionary_encode()
    words = pa.array([calendar_cell(word, unit) for word in listed.dictionary.to_pylist()], pa.float64())
    return pa.chunked_array([words.take(listed.indices)])


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
