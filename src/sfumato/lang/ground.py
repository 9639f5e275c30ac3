"""Running a study's clauses: which variables there are, who depends on whom, what is seen and published.

In:   a Spec and logical facts (symbolic individuals, rows of public tables).
Out:  Grounding.
Not here: the engine itself (lang/engine.py), whether the result makes sense (lang/check.py).

Each declaring clause is asked by itself for the variables of its head, so an answer knows its clause, and a variable
that stays open in an aggregate keeps its name. A depends, dp_rv, personal_rv or instance_rv clause holds for the
declared variables only: `random(RV)` is its first condition, which is how the thesis' clauses over an unbound P are
meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sfumato.errors import StudyError
from sfumato.lang.deadline import check_time
from sfumato.lang.derivations import AggregateDeclaration, Dependency, DpRv, Grounding, Observation, Publication
from sfumato.lang.engine import EngineError, Program
from sfumato.lang.limits import GENEROUS, LimitReached, Limits, Meter
from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause, goals
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, ListTerm, Position, Term, called, indicator, match, substitute, variables, walk
from sfumato.lang.vocabulary import AGGREGATES, FUNCTIONS, STATEMENT, STRUCTURAL, UNSPECIFIED, published_kind
from sfumato.questions.form import Place
from sfumato.questions.registry import QUESTIONS

__all__ = [
    "Answer",
    "Derivation",
    "asked_clauses",
    "collect",
    "condition_of",
    "derive",
    "first_failure",
    "ground",
    "rules_of",
]

_VARIABLE = "$variable"
#: The argument that must be a declared random variable, by predicate.
_BOUND_BY = {
    "depends/3": 0,
    "cpd/2": 0,
    "dp_rv/2": 1,
    "personal_rv/2": 1,
    "instance_rv/3": 2,
    "observe/2": 1,
    "reveal/2": 1,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One solution of a declaring clause: its head with the values put in."""

    clause: Clause
    head: Compound


@dataclass(frozen=True, slots=True)
class Derivation:
    """All answers by predicate, and the clauses that could not be answered."""

    answers: tuple[Answer, ...]
    problems: tuple[Problem, ...]

    def of(self, *names: str) -> Iterator[Answer]:
        """The answers of some predicates in the order of the text."""
        return (answer for answer in self.answers if indicator(answer.clause.head) in names)


def ground(spec: Spec, facts: Sequence[Term] = (), limits: Limits = GENEROUS) -> Grounding:
    """The Grounding of a study for given facts; a StudyError names the clause that cannot be answered."""
    check_time("running the study's clauses")
    derivation = derive(spec, facts, Meter(limits))
    if derivation.problems:
        raise StudyError("The study cannot be grounded. Nothing was spent.", derivation.problems)
    return collect(derivation)


def derive(spec: Spec, facts: Sequence[Term], meter: Meter) -> Derivation:
    """Ask every declaring clause. One that fails is named and the others are still asked."""
    asked = asked_clauses(spec)
    answers: list[Answer] = []
    problems: list[Problem] = []
    program = Program([*rules_of(spec, asked), *_facts(facts)], empty=_always_defined(spec), meter=meter)
    for number, clause in asked:
        try:
            found = program.ask(_query(number, clause))
        except EngineError as error:
            problems.append(_engine_problem(clause, str(error)))
            continue
        except LimitReached as limit:
            problems.append(_limit_problem(clause, limit))
            break  # what is counted is counted for the whole study
        heads = dict.fromkeys(cast(Compound, substitute(clause.head, answer)) for answer in found)
        answers += [Answer(clause, head) for head in heads]
    return Derivation(tuple(answers), tuple(problems))


def collect(derivation: Derivation) -> Grounding:
    """Answers as declarations."""
    arguments = [(answer, answer.head.arguments) for answer in derivation.answers]

    def of(name: str) -> list[tuple[Answer, tuple[Term, ...]]]:
        return [(answer, parts) for answer, parts in arguments if indicator(answer.clause.head) == name]

    declared = dict.fromkeys(parts[0] for _, parts in of("random/1"))
    published = _published(derivation)
    chances = [one for one in published if _is_chance(one.what)]
    return Grounding(
        variables=tuple(declared | dict.fromkeys(one.what for one in chances)),
        dependencies=(*_dependencies(derivation), *(_chance(one.what, declared, one.position) for one in chances)),
        observed=tuple(dict.fromkeys(DpRv(a[0], a[1], answer.clause.position) for answer, a in of("dp_rv/2"))),
        publications=tuple(dict.fromkeys(published)),
        aggregates=tuple(dict.fromkeys(map(_aggregate, derivation.of(*AGGREGATES)))),
        personal=tuple(dict.fromkeys((a[0], a[1]) for _, a in of("personal_rv/2"))),
        instances=tuple(dict.fromkeys((str(a[0]), a[1], a[2]) for _, a in of("instance_rv/3"))),
        observations=_observed(derivation),
    )


def _published(derivation: Derivation) -> list[Publication]:
    lines = ((answer.head.arguments, answer.clause.position) for answer in derivation.of("publish/3"))
    return [Publication(called(a[0]), a[1], a[2], position) for a, position in lines]


def _observed(derivation: Derivation) -> tuple[Observation, ...]:
    lines = [*derivation.of("observe/2"), *derivation.of("reveal/2")]
    found = ((answer.head.arguments, answer.clause.position) for answer in lines)
    return tuple(dict.fromkeys(Observation(a[0], a[1], position) for a, position in found))


def first_failure(spec: Spec, clause: Clause, variable: Term, facts: Sequence[Term], meter: Meter) -> Term | None:
    """The first condition of a clause that has no solution for its random variable, with what is known by then.

    Only for messages: None where it cannot be said, or where the study's steps are used up.
    """
    if meter.spent:
        return None
    bound = match(clause.head.arguments[_BOUND_BY[indicator(clause.head)]], variable)
    conditions = [substitute(goal, bound or {}) for goal in goals(clause.body)]
    names = variables(ListTerm(tuple(conditions)))
    prefixes = [
        (Compound(f"${size}", names), _conjunction(conditions[:size])) for size in range(1, len(conditions) + 1)
    ]
    known: dict[str, Term] = {}
    try:
        program = Program([*rules_of(spec, ()), *_facts(facts), *prefixes], empty=_always_defined(spec), meter=meter)
        for goal, (query, _) in zip(conditions, prefixes, strict=True):
            answers = program.ask(query)
            if not answers:
                return substitute(goal, known)
            known = answers[0]
    except (EngineError, LimitReached):
        return None
    return None


def _conjunction(conditions: Sequence[Term]) -> Term:
    first, *rest = conditions
    return Compound(",", (first, _conjunction(rest))) if rest else first


def asked_clauses(spec: Spec) -> list[tuple[int, Clause]]:
    """The declaring clauses, each with its number."""
    return [(number, clause) for number, clause in enumerate(spec.clauses) if _is_asked(clause)]


def _is_asked(clause: Clause) -> bool:
    name = indicator(clause.head)
    return name in STRUCTURAL or name in AGGREGATES or name == f"{STATEMENT}/2"


def _query(number: int, clause: Clause) -> Compound:
    return Compound(f"${number}", variables(clause.head))


def rules_of(spec: Spec, asked: Iterable[tuple[int, Clause]]) -> Iterator[tuple[Compound, Term | None]]:
    """What the engine is given: head and body of every clause, of what is a variable, and of what is asked."""
    for clause in spec.clauses:
        name = indicator(clause.head)
        if name not in AGGREGATES and name != f"{STATEMENT}/2":
            yield clause.head, clause.body
        if name == "random/1" or name in AGGREGATES:
            yield Compound(_VARIABLE, clause.head.arguments[:1]), clause.body
    for number, clause in asked:
        yield _query(number, clause), condition_of(clause)


def condition_of(clause: Clause) -> Term | None:
    """The clause's body, behind the condition that its random variable is declared."""
    name = indicator(clause.head)
    bound: Term | None = None
    if name in _BOUND_BY:
        bound = clause.head.arguments[_BOUND_BY[name]]
    elif name == f"{STATEMENT}/2":
        bound = clause.head.arguments[0]
    elif name == "publish/3":
        bound = _published_variable(clause.head.arguments[1])
    # Given first where it can enumerate, and left out where nothing is open.
    if not isinstance(bound, Compound) or not variables(bound):
        return clause.body
    declared = Compound(_VARIABLE, (bound,))
    return declared if clause.body is None else Compound(",", (declared, clause.body))


def _is_variable(term: Term) -> bool:
    if not isinstance(term, Compound) or not term.arguments:
        return False
    return term.functor[0].isalpha() and indicator(term) not in FUNCTIONS


def _published_variable(what: Term) -> Term | None:
    """The random variable itself where a publication is one; tables and classifiers keep their person open."""
    if not isinstance(what, Compound):
        return None
    if indicator(what) == "probability/1":
        return next((part for part in walk(what.arguments[0]) if _is_variable(part)), None)
    kind = published_kind(what)
    return what if kind is None else what.arguments[0] if kind.is_answer else None


def _is_chance(what: Term) -> bool:
    return isinstance(what, Compound) and indicator(what) == "probability/1"


def _chance(what: Term, declared: Mapping[Term, None], position: Position | None) -> Dependency:
    """A published probability is a variable of its own, whose CPF is what is written."""
    parents = dict.fromkeys(part for part in walk(what) if part in declared)
    return Dependency(what, tuple(parents), what, position)


def _always_defined(spec: Spec) -> set[str]:
    """Predicates that exist even where no clause or row is there yet."""
    return {*spec.table_predicates, *STRUCTURAL, f"{_VARIABLE}/1"}


def _facts(facts: Iterable[Term]) -> list[tuple[Compound, None]]:
    return [(fact, None) for fact in facts if isinstance(fact, Compound)]


def _dependencies(derivation: Derivation) -> Iterator[Dependency]:
    found: dict[Dependency, None] = {}
    for answer in derivation.of("depends/3"):
        child, parents, cpf = answer.head.arguments
        items = parents.items if isinstance(parents, ListTerm) else (parents,)
        found[Dependency(child, items, cpf, answer.clause.position)] = None
    yield from found
    yield from _statements(derivation)


def _statements(derivation: Derivation) -> Iterator[Dependency]:
    """`Child | Parents` collects the parents of all its answers; its CPF comes from cpd/2."""
    parents: dict[Term, dict[Term, None]] = {}
    positions = {}
    for answer in derivation.of(f"{STATEMENT}/2"):
        child, wanted = answer.head.arguments
        positions.setdefault(child, answer.clause.position)
        parents.setdefault(child, {}).update(dict.fromkeys(goals(wanted)))
    given: dict[Term, list[tuple[Term, Answer]]] = {}
    for answer in derivation.of("cpd/2"):
        given.setdefault(answer.head.arguments[0], []).append((answer.head.arguments[1], answer))
    for child in dict.fromkeys([*parents, *given]):
        own = tuple(parents.get(child, {}))
        for cpf, answer in given.get(child, [(Compound(UNSPECIFIED), None)]):
            position = answer.clause.position if answer else positions[child]
            yield Dependency(child, own, cpf, position)


def _aggregate(answer: Answer) -> AggregateDeclaration:
    functor, parts = answer.head.functor, answer.head.arguments
    placed = dict(zip(QUESTIONS[functor].form.places(len(parts)), parts, strict=True))
    named: tuple[Place, ...] = ("name", "goal")
    given = tuple(item for item in placed.items() if item[0] not in named)
    return AggregateDeclaration(functor, placed["name"], placed["goal"], given, answer.clause.position)


def _limit_problem(clause: Clause, error: LimitReached) -> Problem:
    inside = f" in {error.predicate}" if error.predicate else ""
    return Problem(
        "error",
        "limit",
        f"this clause was stopped{inside}: {error.reason}",
        clause.position,
        clause.text,
        expected="conditions with finitely many answers",
        way_out="Look for a predicate that calls itself with ever larger terms, or move rows into a public table.",
    )


def _engine_problem(clause: Clause, reason: str) -> Problem:
    return Problem(
        "error",
        "logic",
        f"this clause cannot be answered: {reason}",
        clause.position,
        clause.text,
        way_out="Bind every variable before it is used in arithmetic or behind a negation.",
    )
