"""Days and times of day as numbers, and numbers as days and times of day.

In:   a day, a time, or a text that says one.
Out:  days since 1970-01-01; seconds since midnight; and back.
Not here: whole columns (core/calendar_columns.py, and in SQL network/cells.py), ranges of days as domains
(core/calendar_ranges.py), how studies write them (lang/dates.py).
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal, get_args

__all__ = ["UNITS", "Unit", "number_of_day", "number_of_time", "shown", "told", "told_names"]

#: What a number stands for where it stands for no number.
Unit = Literal["date", "time"]
UNITS: tuple[Unit, ...] = get_args(Unit)

_START = date(1970, 1, 1)
_DAY = 86_400


def number_of_day(given: Any) -> float | None:
    """Days since 1970-01-01; None for what says no day.

    >>> number_of_day("1970-01-31"), number_of_day(date(1969, 12, 31)), number_of_day("soon")
    (30.0, -1.0, None)
    """
    if isinstance(given, datetime):
        given = (given.astimezone(UTC) if given.tzinfo is not None else given).date()
    if isinstance(given, date):
        return float((given - _START).days)
    try:
        return number_of_day(datetime.fromisoformat(given)) if isinstance(given, str) else None
    except ValueError:
        return None


def number_of_time(given: Any) -> float | None:
    """Seconds since midnight; None for what says no time of day.

    >>> number_of_time("08:30"), number_of_time(time(0, 0, 1)), number_of_time("noon")
    (30600.0, 1.0, None)
    """
    if isinstance(given, str):
        try:
            given = time.fromisoformat(given)
        except ValueError:
            return None
    return given.hour * 3600.0 + given.minute * 60 + given.second if isinstance(given, time) else None


def shown(number: float, unit: str) -> str:
    """A number as the day or the time of day it is nearest to; every other one with its digits.

    >>> shown(18292.4, "date"), shown(30600.2, "time"), shown(2.5, "")
    ('2020-01-31', '08:30:00', '2.5')
    """
    if unit == "date" and math.isfinite(number) and abs(number) < 700_000:
        return (_START + timedelta(days=math.floor(number + 0.5))).isoformat()
    if unit == "time" and math.isfinite(number):
        seconds = min(max(math.floor(number + 0.5), 0), _DAY)
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{number:g}"


def told_names(unit: str) -> tuple[str, str, str]:
    """The columns of `told`."""
    return unit, f"{unit}_low", f"{unit}_high"


def told(value: float, low: float, high: float, unit: str) -> dict[str, str]:
    """The columns that tell a number and its interval as days or times; the ends rounded outwards.

    >>> told(18292.4, 18291.9, 18293.2, "date")
    {'date': '2020-01-31', 'date_low': '2020-01-30', 'date_high': '2020-02-02'}
    """
    if not unit:
        return {}
    ends = math.floor(low) if math.isfinite(low) else low, math.ceil(high) if math.isfinite(high) else high
    return dict(zip(told_names(unit), (shown(one, unit) for one in (value, *ends)), strict=True))
