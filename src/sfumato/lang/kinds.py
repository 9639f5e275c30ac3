"""Who a column names, where the study says it by use: friend(P, Q) of whose Q a variable of patients is asked.

In:   columns, relations and datasets as they were declared, the clauses.
Out:  the columns, those whose things are individuals by what is asked of them under the individuals' own word.
Not here: what follows for noise (network/peers.py).

`column(fr, b, other(Q))` gives the second end of a relation a word of its own. If nothing else speaks of other/1 and a
clause collects cost(Q) over the relation, cost being declared for patients alone, then Q is a patient: no other reading
gives the clause a meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sfumato.lang.reader import Clause, goals
from sfumato.lang.spec import Column, Dataset, Relation
from sfumato.lang.term import Compound, Term, Variable, indicator, walk

__all__ = ["named_individuals"]


def named_individuals(
    columns: Sequence[Column], relations: Sequence[Relation], datasets: Sequence[Dataset], clauses: Sequence[Clause]
) -> list[Column]:
    """The same columns, with the individuals' word where no other reading gives a clause a meaning."""
    people = {indicator(goals(dataset.goal)[0]) for dataset in datasets}
    nameless = [one for one in columns if _is_nameless(indicator(one.atom), people, clauses)]
    owners = {indicator(head): goal for head, goal in _declared(clauses, people)}
    renamed: dict[tuple[str, str], Compound] = {}
    for what, asked in _collected(clauses):
        goal = owners.get(indicator(what))
        if goal is not None:
            for column, end in _second_ends(nameless, relations, asked):
                renamed[column.table, column.name] = Compound(goal.functor, end, column.atom.position)
    return [replace(one, atom=renamed.get((one.table, one.name), one.atom)) for one in columns]


def _second_ends(
    columns: Sequence[Column], relations: Iterable[Relation], asked: Compound
) -> Iterator[tuple[Column, tuple[Term, ...]]]:
    """The columns that hold Q where r(P, Q) is asked, with Q as the relation writes it."""
    for relation in relations:
        if indicator(relation.atom) == indicator(asked) and len(relation.atom.arguments) == 2:
            end = relation.atom.arguments[1:]
            yield from ((one, end) for one in columns if (one.table, one.atom.arguments) == (relation.table, end))


def _declared(clauses: Iterable[Clause], people: set[str]) -> Iterator[tuple[Term, Compound]]:
    """Variables of individuals: random(x(P)) :- patient(P)."""
    for clause in clauses:
        if indicator(clause.head) == "random/1":
            for goal in goals(clause.body):
                if indicator(goal) in people and isinstance(goal, Compound):
                    yield clause.head.arguments[0], goal


def _is_nameless(name: str, people: set[str], clauses: Sequence[Clause]) -> bool:
    """Whether nothing but a column says this word."""
    return name not in people and not _spoken_of(name, clauses)


def _conditions_of_parents(clauses: Iterable[Clause]) -> Iterator[Term]:
    for clause in clauses:
        if indicator(clause.head) == "depends/3":
            yield from goals(clause.body)


def _collected(clauses: Iterable[Clause]) -> Iterator[tuple[Compound, Compound]]:
    """x(Q) and r(P, Q) of every findall(x(Q), r(P, Q), L) that gives a variable its parents."""
    for goal in _conditions_of_parents(clauses):
        if isinstance(goal, Compound) and indicator(goal) == "findall/3":
            what, asked, _ = goal.arguments
            if isinstance(what, Compound) and isinstance(asked, Compound) and _is_of_the_other(what, asked):
                yield what, asked


def _is_of_the_other(what: Compound, asked: Compound) -> bool:
    return (
        len(asked.arguments) == 2 and what.arguments == asked.arguments[1:] and isinstance(what.arguments[0], Variable)
    )


def _spoken_of(kind: str, clauses: Iterable[Clause]) -> bool:
    """Whether anything but columns mentions a kind of thing."""
    heads = (clause for clause in clauses if clause.head.functor != "column")
    return any(
        indicator(part) == kind
        for clause in heads
        for term in (clause.head, clause.body)
        if term is not None
        for part in walk(term)
    )
