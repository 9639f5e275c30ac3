"""Clauses that ask public tables about somebody else than the individual they are run for.

In:   a Spec.
Out:  problems: goals whose answer no run of a clause would know.
Not here: sums over others that a public relation names (network/peers.py), what is told of one (network/structure.py).

A clause is run for one individual of each public structure, and what public tables say of that one is told to it: every
row that names the individual, in whichever column. Rows that name others alone are not told, so a goal about them would
be false for everybody. A place of a predicate is *told* if all is known that holds of the individual in that place:
of a relation every column that names individuals, of a predicate of the study each place whose variable stands in a
told place of every goal that asks for individuals at all, however deep. By induction over derivations nothing is
missing there. A clause must have its own individual in a told place of every such goal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause, goals
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, Term, Variable, indicator, is_ground, show, variables
from sfumato.lang.vocabulary import AGGREGATES, STATEMENT, STRUCTURAL

__all__ = ["check_others"]

#: Where a declaration names what it is about.
_ABOUT = {
    **{"random/1": 0, "depends/3": 0, "cpd/2": 0, f"{STATEMENT}/2": 0, "dp_rv/2": 1, "personal_rv/2": 1},
    **{"instance_rv/3": 2, "dataset_instance/2": 1, "publish/3": 1, "observe/2": 1, "reveal/2": 1},
    **dict.fromkeys(AGGREGATES, 0),
}
_INSIDE = {",/2": (0, 1), ";/2": (0, 1), "\\+/1": (0,), "not/1": (0,), "findall/3": (1,)}


def check_others(spec: Spec) -> Iterator[Problem]:
    """Every goal of a declaration about others than its individual, by public tables."""
    if not any(one.table in spec.public_tables for one in spec.columns):
        return
    asked = _KnownPlaces(spec)
    for clause in spec.clauses:
        name = indicator(clause.head)
        if clause.body is not None and (name in STRUCTURAL or name in AGGREGATES or name == f"{STATEMENT}/2"):
            goal = asked.unknown(clause)
            if goal is not None and not _is_leak(spec, goal):
                through = asked.through(goal)
                yield _problem(clause, goal, through, asked.untold(through or goal))


def _is_leak(spec: Spec, goal: Compound) -> bool:
    """Somebody named in a private table, which is said of its own (lang/structure.py)."""
    return is_ground(goal) and not spec.table_predicates.get(indicator(goal), ("", True))[1]


def _problem(clause: Clause, goal: Compound, through: Term | None, untold: str | None) -> Problem:
    by = f" (by {_shown(through)})" if through is not None else ""
    message = (
        f"{_shown(goal)}{by} asks what public tables say of others than the individual it is about, and a clause is "
        "run for one individual: of others nothing is told, so this would be false for everybody"
    )
    way_out = (
        "Ask about the clause's own individual alone. What is so of others can be written beside each individual, "
        "into a column of the public table; a sum or mean of a private cell over others is findall(cost(Q), "
        "friend(P, Q), L)."
    )
    if untold is not None:
        message = (
            f"{_shown(goal)}{by} asks for {untold}, of which clauses are told nothing: it would be false for everybody"
        )
        way_out = (
            "Clauses are told what a relation says of an individual fed by a table and of something else: write what "
            "is so into a column, column(Table, kind, kind(K)), relation(Table, in(P, K)), and ask for in(P, vip). "
            "The goals of aggregates may ask for every relation of a table."
        )
    return Problem("error", "other-individuals", message, clause.at(goal), clause.text, way_out=way_out)


def _shown(goal: Term) -> str:
    return re.sub("_ +", "_", show(goal))


@dataclass(frozen=True)
class _KnownPlaces:
    """Which predicates ask for individuals, in which places they name them, and which of these are told."""

    spec: Spec

    @cached_property
    def _rules(self) -> dict[str, list[tuple[Compound, Term | None]]]:
        """The clauses of each predicate, `random(x(P))` as one of x/1."""
        found: dict[str, list[tuple[Compound, Term | None]]] = {}
        for clause in self.spec.clauses:
            called = _called(clause.head)
            if called is not None:
                found.setdefault(called[0], []).append((called[1], _apart(clause.body)))
        return found

    @cached_property
    def _every_rule(self) -> list[tuple[str, Compound, Term | None]]:
        return [(name, head, body) for name, own in self._rules.items() for head, body in own]

    @cached_property
    def _fed(self) -> dict[str, list[tuple[frozenset[int], bool]]]:
        """Of each predicate that tables feed with individuals the places that name them, and whether they are told."""
        people = {indicator(goals(dataset.goal)[0]) for dataset in self.spec.datasets}
        fed: dict[str, list[tuple[frozenset[int], bool]]] = {
            name: [(frozenset((0,)), True)] for name in people & self.spec.table_predicates.keys()
        }
        for one in self.spec.relations:
            naming = self._naming(one.table, people)
            named = [isinstance(part, Variable) and part.name in naming for part in one.atom.arguments]
            if any(named):
                # Of a relation of individuals and nothing else no class is made, and none of people written in facts.
                told = len(variables(one.atom)) > 1 and set(naming.values()) <= self.spec.table_predicates.keys()
                fed.setdefault(indicator(one.atom), []).append(
                    (frozenset(place for place, one in enumerate(named) if one), told)
                )
        return fed

    def _naming(self, table: str, people: Set[str]) -> dict[str, str]:
        """The variables of a table that name individuals, and as what."""
        named = [one for one in self.spec.columns if one.table == table and indicator(one.atom) in people]
        return {part.name: indicator(column.atom) for column in named for part in variables(column.atom)}

    @cached_property
    def _people(self) -> dict[str, frozenset[int]]:
        """The places of each predicate that name individuals; a predicate that asks without naming has none."""
        found = {name: frozenset().union(*(places for places, _ in fed)) for name, fed in self._fed.items()}
        before = None
        while found != before:
            before = dict(found)
            for name, head, body in self._every_rule:
                asking = [goal for goal in _goals(body) if goal[0] in found]
                if asking:
                    found[name] = found.get(name, frozenset()) | _named_by(head, asking, found)
        return found

    @cached_property
    def _told(self) -> Mapping[str, frozenset[int]]:
        """The told places of each predicate that asks for individuals: the most that hold together."""
        told = {
            name: places.intersection(*(own if known else () for own, known in self._fed.get(name, ())))
            for name, places in self._people.items()
        }
        rules = [one for one in self._every_rule if one[0] in told]
        before = None
        while told != before:
            before = dict(told)
            for name, head, body in rules:
                told[name] = frozenset(i for i in told[name] if self._covers(head.arguments[i], body, told))
        return told

    def _covers(self, individual: Term, body: Term | None, told: Mapping[str, frozenset[int]]) -> bool:
        if isinstance(individual, Variable):
            return self._missed(individual, body, told) is None
        return not any(name in told for name, _ in _goals(body))

    def _missed(self, individual: Term, body: Term | None, told: Mapping[str, frozenset[int]]) -> Compound | None:
        """The first goal that asks for individuals and does not have this one in a told place."""
        for name, goal in _goals(body):
            if name in told and not any(goal.arguments[i] == individual for i in told[name]):
                return goal
        return None

    def unknown(self, clause: Clause) -> Compound | None:
        """A goal of a declaration that asks about others than its individual."""
        body, told = _apart(clause.body), self._told
        asking = [(name, goal) for name, goal in _goals(body) if name in told]
        if not asking or body is None:
            return None
        about = clause.head.arguments[_ABOUT[indicator(clause.head)]]
        missed = [self._missed(one, body, told) for one in self._own(about, asking) or _given(body)]
        if not missed:
            return asking[0][1]
        return None if None in missed else missed[0]

    def _own(self, about: Term, asking: Sequence[tuple[str, Compound]]) -> list[Variable]:
        """The individuals whom a declaration is about."""
        people = {goal.arguments[i] for name, goal in asking for i in self._people[name]}
        if isinstance(about, Compound):  # a declaration holds for declared variables alone
            people |= {about.arguments[i] for i in self._people.get(f"random {indicator(about)}", ())}
        return [one for one in variables(about) if one in people]

    def untold(self, goal: Term) -> str | None:
        """The predicate, where tables feed it in a way of which clauses are told nothing."""
        name = indicator(goal)
        return name if any(not told for _, told in self._fed.get(name, ())) else None

    def through(self, goal: Compound) -> Term | None:
        """The first goal of the study's own clauses behind it that is not told."""
        seen: set[str] = set()
        while (called := _called(goal)) is not None and called[0] in self._rules and called[0] not in seen:
            seen.add(called[0])
            inner = (one for _, body in self._rules[called[0]] for one in _goals(body))
            missed = next((one for name, one in inner if name in self._told and not self._told[name]), None)
            if missed is None:
                return self._first_of_others(called[0])
            goal = missed
        return goal if seen else None

    def _first_of_others(self, name: str) -> Term | None:
        for head, body in self._rules[name]:
            for one in head.arguments:
                if isinstance(one, Variable) and (missed := self._missed(one, body, self._told)) is not None:
                    return missed
        return None


def _named_by(
    head: Compound, asking: Sequence[tuple[str, Compound]], found: Mapping[str, frozenset[int]]
) -> frozenset[int]:
    """The places of a head that stand in a place of its goals that names individuals."""
    named = {show(goal.arguments[i]) for name, goal in asking for i in found[name]}
    return frozenset(i for i, part in enumerate(head.arguments) if show(part) in named)


def _given(body: Term) -> list[Variable]:
    """Whom goals name. What is about nobody holds if it holds by somebody: of one individual, whom a goal must name."""
    given = [goal for one in goals(body) for _, goal in _goals(one) if indicator(one) not in ("\\+/1", "findall/3")]
    return [one for one in variables(body) if any(one in goal.arguments for goal in given)]


def _called(goal: Term) -> tuple[str, Compound] | None:
    """A predicate and its places; what is declared random is called by what it is."""
    if not isinstance(goal, Compound):
        return None
    if indicator(goal) == "random/1":
        inner = goal.arguments[0]
        return (f"random {indicator(inner)}", inner) if isinstance(inner, Compound) else None
    return None if indicator(goal) in _ABOUT else (indicator(goal), goal)


def _goals(body: Term | None) -> Sequence[tuple[str, Compound]]:
    """All goals of a body, those inside others too."""
    found: list[tuple[str, Compound]] = []
    waiting = [] if body is None else [body]
    while waiting:
        goal = waiting.pop(0)
        inside = _INSIDE.get(indicator(goal))
        if inside is not None and isinstance(goal, Compound):
            waiting = [goal.arguments[place] for place in inside] + waiting
        elif (called := _called(goal)) is not None:
            found.append(called)
    return found


def _apart(body: Term | None) -> Term | None:
    """The same with a name of its own for every `_`."""
    number = count(1)  # shown they all are _

    def named(term: Term) -> Term:
        if isinstance(term, Variable):
            return Variable("_" + " " * next(number)) if term.name == "_" else term
        if isinstance(term, Compound) and term.arguments:
            return Compound(term.functor, tuple(map(named, term.arguments)), term.position)
        return term

    return None if body is None else named(body)
