"""One line a table: what it becomes.

In:   clauses as they were read.
Out:  the same with every table/4 in its place written out: source, column or each_row, random, range.
Not here: what these declare (lang/declare.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause
from sfumato.lang.spec import DATABASE_ENDINGS
from sfumato.lang.term import Compound, ListTerm, Position, Term, Variable, indicator, show
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
            found += [_clause(clause, head, body) for head, body in _lines(clause)]
    return tuple(found), problems


def _clause(clause: Clause, head: Compound, body: Term | None) -> Clause:
    """A line that stands in the table's, at its own place and with the text of that place alone."""
    place = head.position or clause.position
    lines = clause.text.splitlines()
    own = place.line - clause.position.line
    return Clause(head, body, place, lines[own].strip() if 0 < own < len(lines) else clause.text)


def _wrong(clause: Clause) -> str:
    _, _, who, columns = clause.head.arguments
    person = _person(who)
    if person is None:
        return f"who a row is about is written person(P) = column, or person(P) alone, not {show(who)[:60]}"
    if not isinstance(columns, ListTerm) or not columns.items:
        return "the columns of a table are a list of column: values"
    for item in columns.items:
        if _column(item) is None:
            return f"a column is written name: low..high or name: [value, value], not {show(item)[:60]}"
    return ""


def _column(item: Term) -> tuple[Compound, Compound, Term] | None:
    """The variable's word, the column and what may stand in it: column: domain, or word = column: domain."""
    word, rest = item.arguments if isinstance(item, Compound) and indicator(item) == "=/2" else (None, item)
    if not isinstance(rest, Compound) or indicator(rest) != ":/2":
        return None
    column, domain = rest.arguments
    word = column if word is None else word
    if not isinstance(word, Compound) or not isinstance(column, Compound) or word.arguments or column.arguments:
        return None
    return word, column, domain


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
        who = column if _is_name(person) else person
    one = isinstance(who, Compound) and len(who.arguments) == 1 and isinstance(who.arguments[0], Variable)
    return who if one and isinstance(who, Compound) else None


def _lines(clause: Clause) -> Iterator[tuple[Compound, Term | None]]:
    table, file, who, columns = clause.head.arguments
    person, at = _person(who), clause.position
    assert person is not None
    assert isinstance(columns, ListTerm)
    # Of a database the table of the same name is meant.
    inside = (table,) if isinstance(file, Compound) and PurePath(file.functor).suffix in DATABASE_ENDINGS else ()
    yield Compound("source", (table, file, *inside), at), None
    yield _whose(table, who, person, at), None
    for item in columns.items:
        found = _column(item)
        assert found is not None
        word, column, domain = found
        here = word.position or at  # what is wrong with a column is told at its own line
        variable = Compound(word.functor, person.arguments, here)
        yield Compound("column", (table, column, variable), here), None
        yield Compound("random", (variable,), here), person
        yield Compound("range", (variable, *_ends(domain)), here), None


def _whose(table: Term, who: Term, person: Compound, at: Position) -> Compound:
    """Which column says who a row is about, or that every row is about somebody else."""
    if isinstance(who, Compound) and indicator(who) == "=/2":
        named = who.arguments[0] if person is who.arguments[1] else who.arguments[1]
        return Compound("column", (table, named, person), at)
    return Compound("each_row", (table, person), at)


def _ends(domain: Term) -> tuple[Term, ...]:
    """low..high is read as two numbers, boolean as two words; every other form is that of range/2."""
    if isinstance(domain, Compound) and indicator(domain) == "-/2":
        return domain.arguments
    if isinstance(domain, Compound) and indicator(domain) == "boolean/0":
        return (ListTerm((Compound("false"), Compound("true"))),)
    return (domain,)
