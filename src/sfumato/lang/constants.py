"""Which constants of a study can meet what a predicate says: those a clause compares with a cell of a public table.

In:   the clauses of a study.
Out:  the constants that one place of a predicate may be compared with, through variables, however many clauses between.
Not here: which of them a cell is (network/constants.py).

A word, a number and a text are three constants to the logic engine, and so are 7 and 7.0, whatever a column's type is.
Too many places are taken to meet, never too few: where two meet by accident a study is at worst asked to write one
constant in one way.
"""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.lang.arithmetic import ARITHMETIC
from sfumato.lang.reader import Clause
from sfumato.lang.term import Compound, ListTerm, Number, Term, Text, Variable, indicator
from sfumato.lang.vocabulary import AGGREGATES, FUNCTIONS, SHORT, STATIC

__all__ = ["Constants"]

_GOALS = frozenset((",/2", ";/2", "\\+/1", "not/1"))
#: Numbers are compared by value here: how they are written makes no difference.
_BY_VALUE = frozenset(("is/2", "</2", ">/2", "=</2", ">=/2", "=:=/2", "=\\=/2")) | ARITHMETIC | frozenset(FUNCTIONS)
#: What these relate may be anything: all that stands in one of them meets.
_RELATING = frozenset(
    (
        *("=/2", "\\=/2", "==/2", "\\==/2", "findall/3", "append/3", "member/2", "memberchk/2", "reverse/2", "last/2"),
        *("nth0/3", "nth1/3", "sort/2", "max_list/2", "min_list/2"),
    )
)

_Place = tuple[object, object]


class Constants:
    """The places of predicates and the variables of clauses, those that can hold the same thing put together."""

    def __init__(self, clauses: Iterable[Clause]) -> None:
        self._above: dict[_Place, _Place] = {}
        self._written: dict[_Place, list[Term]] = {}
        for number, clause in enumerate(clauses):
            name = indicator(clause.head)
            if name in STATIC or name in SHORT:
                continue
            # The goal of an aggregate is answered by tables and never compared by the engine.
            head = clause.head.arguments[0] if name in AGGREGATES else clause.head
            for term in (head, clause.body):
                if term is not None:
                    self._visit(number, term)
        self._met: dict[_Place, dict[tuple[type, object], Term]] = {}
        for place, terms in self._written.items():
            found = self._met.setdefault(self._top(place), {})
            found.update({(type(one), _key(one)): one for one in terms})

    def met_by(self, predicate: str, place: int) -> tuple[Term, ...]:
        """The constants that what stands at a place of functor/arity may be compared with."""
        return tuple(self._met.get(self._top((predicate, place)), {}).values())

    def _top(self, place: _Place) -> _Place:
        while (above := self._above.get(place, place)) != place:
            self._above[place] = self._above.get(above, above)
            place = above
        return place

    def _join(self, one: _Place, other: _Place) -> None:
        self._above[self._top(one)] = self._top(other)

    def _visit(self, clause: int, term: Term) -> None:
        if isinstance(term, ListTerm):
            for item in term.items:
                self._visit(clause, item)
        if not isinstance(term, Compound):
            return
        name = indicator(term)
        if name in _RELATING:
            self._relate(clause, term)
        for place, part in enumerate(term.arguments):
            if name not in _GOALS | _BY_VALUE | _RELATING:
                self._put(clause, (name, place), part)
            self._visit(clause, part)

    def _relate(self, clause: int, term: Compound) -> None:
        own = ((clause, id(term)), "")
        for part in term.arguments:
            self._put(clause, own, part)

    def _put(self, clause: int, place: _Place, part: Term) -> None:
        """Something stands at a place: a variable joins it with the variable's other places."""
        if isinstance(part, ListTerm):
            for item in part.items:
                self._put(clause, place, item)
        elif isinstance(part, Variable):
            if part.name != "_":
                self._join(place, ((clause, None), part.name))
        elif not isinstance(part, Compound) or not part.arguments:
            self._written.setdefault(place, []).append(part)


def _key(constant: Term) -> tuple[object, ...]:
    """What tells constants apart: 7 and 7.0 are equal to Python."""
    match constant:
        case Number(value=value):
            return (type(value), value)
        case Text(value=text):
            return (text,)
        case Compound(functor=functor):
            return (functor,)
    return ()
