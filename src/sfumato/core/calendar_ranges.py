"""Ranges of days and of times of day, where a domain stands.

In:   the first and the last day or time, as such or as text.
Out:  an Interval whose numbers stand for days since 1970-01-01 or seconds since midnight.
Not here: one day or time (core/calendar.py), columns of them (core/calendar_columns.py).
"""

from __future__ import annotations

from typing import Any

from sfumato.core.calendar import Unit, number_of_day, number_of_time
from sfumato.core.domain import Interval
from sfumato.errors import SchemaError

__all__ = ["Dates", "Times"]


def Dates(first: Any, last: Any, *, null: Any = None) -> Interval:  # it stands where a domain stands
    """Days from `first` to `last`, as dates or as texts such as "2020-01-31".

    Read from columns of dates, timestamps and text. Synthetic rows have days again; what gets noise is a number, days
    since 1970-01-01.

    >>> Dates("2020-01-01", "2020-12-31").width
    365.0
    """
    return _interval("date", number_of_day, first, last, null)


def Times(first: Any = "00:00", last: Any = "23:59:59", *, null: Any = None) -> Interval:
    """Times of day from `first` to `last`, as texts such as "08:30".

    >>> Times("08:00", "16:00").width
    28800.0
    """
    return _interval("time", number_of_time, first, last, null)


def _interval(unit: Unit, read: Any, first: Any, last: Any, null: Any) -> Interval:
    ends = [None if one is None else read(one) for one in (first, last, null)]
    for given, number in zip((first, last, null), ends, strict=True):
        if given is not None and number is None:
            way = "2020-01-31" if unit == "date" else "08:30"
            raise SchemaError(f"{given!r} is no {unit}. Write it as {way!r}. Nothing was spent.")
    low, high, absent = ends
    assert low is not None
    assert high is not None
    if not low < high:
        raise SchemaError(f"A range of {unit}s begins before it ends, and {first} is not before {last}.")
    return Interval(low, high, null=absent, calendar=unit)
