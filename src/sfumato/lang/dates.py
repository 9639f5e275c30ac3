"""date(2020, 1, 31) and time(8, 30) in a study: numbers, and ranges that say what these stand for.

In:   clauses as they were read.
Out:  the same with every day as the days since 1970-01-01 and every time as the seconds since midnight; a range of days
      is range(RV, date(Low, High)).
Not here: the calendar (core/calendar.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, time

from sfumato.core.calendar import number_of_day, number_of_time
from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause
from sfumato.lang.term import Compound, ListTerm, Number, Term, indicator, show, walk

__all__ = ["with_numbers"]

_DAYS, _TIMES = "date/3", ("time/2", "time/3")


def with_numbers(clauses: Iterable[Clause]) -> tuple[tuple[Clause, ...], list[Problem]]:
    """Every clause; what is no day of the calendar, and a range from a day to a number, is left out and said."""
    found: list[Clause] = []
    problems: list[Problem] = []
    for clause in clauses:
        wrong = next(_wrong(clause), None)
        if wrong is not None:
            problems.append(wrong)
        else:
            head = _range(clause.head) if indicator(clause.head) == "range/3" else _arguments(clause.head)
            body = None if clause.body is None else _arguments(clause.body)
            assert isinstance(head, Compound)
            found.append(Clause(head, body, clause.position, clause.text))
    return tuple(found), problems


def _wrong(clause: Clause) -> Iterator[Problem]:
    for term in (*walk(clause.head), *(walk(clause.body) if clause.body is not None else ())):
        if _unit(term) and _number(term) is None:
            way_out = "Write date(Year, Month, Day) or time(Hour, Minute)."
            yield _problem(clause, f"{show(term)} is no {_unit(term)}", way_out)
    if indicator(clause.head) == "range/3":
        kinds = {_unit(end) for end in clause.head.arguments[1:]}
        if len(kinds) > 1:
            yield _problem(clause, "a range has two days, two times or two numbers", "Write both ends alike.")


def _problem(clause: Clause, message: str, way_out: str) -> Problem:
    return Problem("error", "declaration", message, clause.position, clause.text, way_out=way_out)


def _unit(term: Term) -> str:
    """date or time, where whole numbers say one."""
    if not isinstance(term, Compound) or not all(isinstance(one, Number) for one in term.arguments):
        return ""
    return "date" if indicator(term) == _DAYS else "time" if indicator(term) in _TIMES else ""


def _number(term: Term) -> Number | None:
    assert isinstance(term, Compound)
    parts = [one.value for one in term.arguments if isinstance(one, Number) and isinstance(one.value, int)]
    try:
        day = term.functor == "date"
        found = number_of_day(date(*parts)) if day else number_of_time(time(*parts[:3]))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return Number(int(found)) if found is not None and len(parts) == len(term.arguments) else None


def _range(head: Term) -> Term:
    assert isinstance(head, Compound)
    variable, *ends = head.arguments
    unit = _unit(ends[0])
    numbers = tuple(_replaced(end) for end in ends)
    return Compound("range", (variable, Compound(unit, numbers)) if unit else (variable, *numbers), head.position)


def _arguments(term: Term) -> Term:
    """A goal stays a goal, whatever it is called; what stands in it is read."""
    match term:
        case Compound(functor=functor, arguments=parts) if functor in (",", ";", "\\+"):
            return Compound(functor, tuple(_arguments(part) for part in parts), term.position)
        case Compound() if term.arguments:
            return Compound(term.functor, tuple(_replaced(part) for part in term.arguments), term.position)
    return term


def _replaced(term: Term) -> Term:
    if _unit(term):
        return _number(term) or term
    match term:
        case Compound() if term.arguments:
            return Compound(term.functor, tuple(_replaced(part) for part in term.arguments), term.position)
        case ListTerm() if term.items:
            return ListTerm(tuple(_replaced(part) for part in term.items))
    return term
