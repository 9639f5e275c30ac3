"""Who a row is about is said by one column for each variable.

In:   columns as they are declared, and which predicates are random variables.
Out:  the logical columns of a table that name a variable; problems where two of them name the same, and where two
      columns hold the same random variable.
Not here: variables that no column names (lang/structure.py).

`column(homes, room, room(H)). column(homes, home, home(H)).` says that H is the room and that H is the home. Which of
both a relation means would hang on the order of the lines, and with it who belongs together and who owns what.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause
from sfumato.lang.spec import Column
from sfumato.lang.term import Position, Term, Variable, indicator, is_variant, show

__all__ = ["bound_twice", "naming", "read_twice"]


def naming(columns: Sequence[Column], table: str, variable: Term, random: Collection[str]) -> list[Column]:
    """The columns of `table` that say who `variable` is; those of random variables say something about it."""
    return [
        column
        for column in columns
        if column.table == table and column.atom.arguments == (variable,) and indicator(column.atom) not in random
    ]


def bound_twice(columns: Sequence[Column], random: Collection[str], clauses: Sequence[Clause]) -> Iterator[Problem]:
    """A second column that names what another one of its table names already."""
    text = {clause.position: clause.text for clause in clauses}
    for column in columns:
        match column.atom.arguments:
            case (Variable() as variable,) if indicator(column.atom) not in random:
                first = naming(columns, column.table, variable, random)[0]
                if first.name != column.name:
                    yield _twice(first, column, variable, text.get(column.position, "") if column.position else "")


def read_twice(columns: Sequence[Column], random: Collection[str], clauses: Sequence[Clause]) -> Iterator[Problem]:
    """A second column for a random variable that another one holds already."""
    text = {clause.position: clause.text for clause in clauses}
    cells = [column for column in columns if indicator(column.atom) in random]
    for place, column in enumerate(cells):
        first = next((one for one in cells[:place] if is_variant(one.atom, column.atom)), None)
        if first is not None:
            yield Problem(
                "error",
                "read-twice",
                f"{show(column.atom)} is read from {first.name} of {first.table} and from {column.name} of "
                f"{column.table}",
                column.position or Position("study", 1, 1),
                text.get(column.position, "") if column.position else "",
                way_out="Keep one of the columns, or give each a variable of its own.",
            )


def _twice(first: Column, second: Column, variable: Variable, text: str) -> Problem:
    atom = show(second.atom)
    return Problem(
        "error",
        "bound-twice",
        f"{first.name} and {second.name} of {second.table} both say who {variable.name} is: {show(first.atom)}, {atom}",
        second.position or Position("study", 1, 1),
        text,
        way_out=f"If {second.name} is a value of {variable.name}, declare it: random({atom}) :- {show(first.atom)}. "
        f"with range({atom}, …). If it names something else, give that a variable of its own.",
    )
