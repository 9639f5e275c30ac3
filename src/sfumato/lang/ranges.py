"""Ranges of numbers that are not two numbers: days, times of day, bounds that are bought.

In:   the last argument of range/2.
Out:  an Interval; None for what is another kind of range.
Not here: how days become numbers (lang/dates.py), lists and two numbers (lang/declare.py).
"""

from __future__ import annotations

from sfumato.core.domain import Interval
from sfumato.errors import SchemaError
from sfumato.lang.term import Compound, Number, Term, show

__all__ = ["interval_of"]


def interval_of(term: Term) -> Interval | None:
    """date(18262, 18627), time(0, 86399) or private(0.1).

    >>> interval_of(Compound("private", (Number(0.1),))).share
    0.1
    """
    match term:
        case Compound(functor=("date" | "time") as unit, arguments=(Number(value=low), Number(value=high))):
            return Interval(low, high, calendar=unit)
        case Compound(functor="private", arguments=(Number(value=share),)):
            return Interval.private(share)
        case Compound(functor="private", arguments=(share,)):
            raise SchemaError(f"the share of a budget must be a number, not {show(share)[:60]}")
    return None
