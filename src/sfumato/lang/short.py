"""One line a table: what it becomes.

In:   clauses as they were read.
Out:  the same with every table/4 in its place written out: source, column or each_row, random, range.
Not here: what these declare (lang/declare.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause
from sfumato.lang.term import Compound, ListTerm, Term, Variable, indicator, show
from sfumato.lang.vocabulary import SHORT

__all__ = ["written_out"]


def written_out(clauses: Iterable[Clause]) -> tuple[tuple[Clause, ...], list[Problem]]:
    """Every clause, those of table/4 written out at the same place; what cannot be read is left out and said."""
    found: list[Clause] = []
    problems: list[Problem] = []
    for clause in clauses:
        if indicator(clause.head) != "table/4" or clause.body is not None:
            found.append(clause)
            continue
        wrong = _wrong(clause)
        if wrong:
            problems.append(_problem(clause, wrong))
        else:
            found += [Clause(head, body, clause.position, clause.text) for head, body in _lines(clause)]
    return tuple(found), problems


def _wrong(clause: Clause) -> str:
    _, _, who, columns = clause.head.arguments
    person = _person(who)
    if person is None:
        return f"who a row is about is written person(P) = column, or person(P) alone, not {show(who)[:60]}"
    if not isinstance(columns, ListTerm) or not columns.items:
        return "the columns of a table are a list of column: values"
    for item in columns.items:
        if not (isinstance(item, Compound) and indicator(item) == ":/2" and _is_name(item.arguments[0])):
            return f"a column is written name: low..high or name: [value, value], not {show(item)[:60]}"
    return ""


def _problem(clause: Clause, message: str) -> Problem:
    return Problem(
        "error",
        "declaration",
        message,
        clause.position,
        clause.text,
        expected=SHORT["table/4"],
        way_out="Write table(stays, 'stays.parquet', patient(P) = id, [days: 1..14, ward: [north, south]]).",
    )


def _is_name(term: Term) -> bool:
    return isinstance(term, Compound) and not term.arguments


def _person(who: Term) -> Compound | None:
    """person(P), whichever way it is written."""
    if isinstance(who, Compound) and indicator(who) == "=/2":
        person, column = who.arguments
        who = person if _is_name(column) else column
    one = isinstance(who, Compound) and len(who.arguments) == 1 and isinstance(who.arguments[0], Variable)
    return who if one and isinstance(who, Compound) else None


def _lines(clause: Clause) -> Iterator[tuple[Compound, Term | None]]:
    table, file, who, columns = clause.head.arguments
    person, at = _person(who), clause.position
    assert person is not None
    assert isinstance(columns, ListTerm)
    yield Compound("source", (table, file), at), None
    if isinstance(who, Compound) and indicator(who) == "=/2":
        yield Compound("column", (table, who.arguments[1], person), at), None
    else:
        yield Compound("each_row", (table, person), at), None
    for item in columns.items:
        assert isinstance(item, Compound)
        name, domain = item.arguments
        assert isinstance(name, Compound)
        variable = Compound(name.functor, person.arguments, at)
        yield Compound("column", (table, name, variable), at), None
        yield Compound("random", (variable,), at), person
        yield Compound("range", (variable, *_ends(domain)), at), None


def _ends(domain: Term) -> tuple[Term, ...]:
    """low..high is read as two numbers, boolean as two words; every other form is that of range/2."""
    if isinstance(domain, Compound) and indicator(domain) == "-/2":
        return domain.arguments
    if isinstance(domain, Compound) and indicator(domain) == "boolean/0":
        return (ListTerm((Compound("false"), Compound("true"))),)
    return (domain,)
