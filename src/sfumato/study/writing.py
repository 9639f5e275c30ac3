"""From calls to lines of the language, and from a text back to what later calls may name.

In:   columns, questions, promises as they were given.
Out:  Parts (all that a Study holds), Asked (one question) with the clauses that state it.
Not here: the calls themselves (study/builder.py), the questions there are (study/forms.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import Any

from sfumato.core.calendar import number_of_day, shown
from sfumato.core.calendar_ranges import Dates
from sfumato.core.domain import Categories, Interval, Scalar
from sfumato.core.text import AnyText
from sfumato.errors import InputError
from sfumato.lang.reader import goals, read
from sfumato.lang.spec import EVERYONE, Spec
from sfumato.lang.starter import functors
from sfumato.lang.term import Compound, ListTerm, Number, Term, Variable, called, indicator, show, substitute, walk
from sfumato.study.caller import Mark, refused
from sfumato.study.data import file_name, in_database
from sfumato.study.forms import Asking, BuilderMethod, Option
from sfumato.study.formula import DeclaredColumn, condition_of, constant_of, moment_of

__all__ = ["PEOPLE", "PERSON", "Asked", "Parts", "Written", "column_lines", "domain_of", "fresh", "listing"]
__all__ += [
    "dependence_text",
    "fairness_lines",
    "metric_text",
    "number_of",
    "number_text",
    "parts_of",
    "publications_of",
]
__all__ += ["said_of", "said_text", "table_lines", "unsaid_place"]

PEOPLE = "people"
PERSON = Compound("person", (Variable("P"),))


@dataclass(frozen=True)
class Written:
    """A question in the language: its clause, what is published of it, their conditions, whose levels it lists."""

    atom: str
    clause: str
    shown: str
    body: str
    listed: tuple[DeclaredColumn, ...]

    def lines(self, name: str, promises: Sequence[Term], *, new: bool) -> list[str]:
        """What states the question, unless that was done before, and publishes it under each promise."""
        stated = [f"{self.clause}{self.body}."] if self.clause and new else []
        return stated + [f"publish({show(Compound(name))}, {self.shown}, {show(one)}){self.body}." for one in promises]


@dataclass(frozen=True)
class Asked:
    """One question as it was asked."""

    form: BuilderMethod
    columns: tuple[DeclaredColumn, ...]
    groups: tuple[DeclaredColumn, ...]
    where: str | None
    options: Mapping[str, Any]
    #: The cut points of groups that are classes of numbers.
    cuts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Readable: method, columns, groups, condition."""
        words = [self.form.method, _listed([column.name for column in self.columns])]
        words += [f"by {_listed([column.name for column in self.groups])}"] if self.groups else []
        words += [f"where {' '.join(self.where.split())}"] if self.where else []
        return " ".join(word for word in words if word)

    def written(
        self, atom: str, find: Callable[[str], DeclaredColumn], known: Mapping[str, DeclaredColumn], person: Term
    ) -> Written:
        """The clauses. Groups that the language does not take as one question become one question each."""
        apart = () if self.form.by_itself else self.groups
        letters = [Variable(f"G{place}") for place in range(1, len(apart) + 1)]
        pairs = list(zip(apart, letters, strict=True))
        goal = [person, *([condition_of(self.where, known)] if self.where else [])]
        goal += [Compound("=", (column.variable, letter)) for column, letter in pairs]
        body = ", ".join(f"{listing(column)}({show(letter)})" for column, letter in pairs)
        asking = Asking(
            show(Compound(atom, tuple(letters))),
            _goal_text(goal),
            self.columns,
            self.groups if self.form.by_itself else (),
            {option.name: self._given(option) for option in self.form.options},
            find,
            self.cuts,
        )
        rule = f" :- {body}" if body else ""
        return Written(atom, self.form.clause(asking), self.form.shown(asking), rule, apart)

    def _given(self, option: Option) -> Any:
        given = self.options.get(option.name, option.default)
        if option.required and given is None:
            raise InputError(f"{option.name}= is missing")
        return given


@dataclass(frozen=True)
class Parts:
    """What the calls so far have said: the text, line by line, and what later calls may name."""

    lines: tuple[tuple[str, Mark | None], ...] = ()
    columns: Mapping[str, DeclaredColumn] = field(default_factory=lambda: MappingProxyType({}))
    tables: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    promises: Mapping[str, Term] = field(default_factory=lambda: MappingProxyType({}))
    questions: Mapping[str, Written | None] = field(default_factory=lambda: MappingProxyType({}))
    taken: frozenset[str] = frozenset()  # words of the language that stand for something already
    unsaid: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({})
    )  # what an absent cell would count as
    grouped: frozenset[str] = frozenset()  # columns whose categories the text lists
    people: str = PEOPLE
    person: Term = PERSON


# ── words of the language ────────────────────────────────────────────────────────────────────────────────────────────


def listing(column: DeclaredColumn) -> str:
    """The predicate that lists a column's values."""
    return f"{column.functor}Is"


def fresh(name: str, taken: Collection[str]) -> str:
    """A word for a column or a question that stands for nothing else yet."""
    base = functors([name])[name]
    found, number = base, 2
    while found in taken:
        found, number = f"{base}{number}", number + 1
    return found


def _goal_text(goal: Sequence[Term]) -> str:
    return show(goal[0]) if len(goal) == 1 else f"({', '.join(show(part, 999) for part in goal)})"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def dependence_text(people: str, households: int | None, memory: float | None, longest: int | None) -> str:
    """Who depends on whom, as a line; empty where nobody does."""
    if households is None and memory is None:
        if longest is not None:
            raise InputError("longest= is the length of a series and goes together with memory=")
        return ""
    if households is not None and (memory is not None or longest is not None):
        raise InputError("people depend on each other in households, or values in series: give one of the two")
    if households is not None:
        return f"correlated({people}, group, at_most({number_text(households)}))."
    length = "" if longest is None else f", {number_text(longest)}"
    return f"correlated({people}, chain(T, at(P, T){length}), memory({number_text(memory)}))."


def fairness_lines(name: str, group: str, measure: str, gap: float, on: str, confidence: float) -> list[str]:
    """What is asked of a classifier that treats groups alike."""
    wish, publication = show(Compound(f"fair {name}")), show(Compound(name))
    if not measure.isidentifier() or not on.isidentifier():
        raise InputError("measure= and on= are words, such as 'demographic_parity' and 'population'")
    return [
        f"fairness_requirement({wish}, {group}, {measure}({number_text(gap)})).",
        f"fair_rv({wish}, {publication}).",
        f"fairness_holds({wish}, on({on}), {number_text(confidence)}).",
    ]


def metric_text(epsilon: float | None, delta: float, mu: float | None, rho: float | None, tied: bool = False) -> str:
    if mu is not None:
        return f"gdp({number_text(mu)})"
    if rho is not None:
        return f"zcdp({number_text(rho)})"
    word = "pufferfish" if tied else "dp"
    return f"{word}({number_text(epsilon)}, {number_text(delta)})" if delta else f"{word}({number_text(epsilon)})"


def number_text(value: Any) -> str:
    return show(number_of(value))


def number_of(value: Any) -> Number:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(f"{value!r} is no number")
    number = float(value)
    return Number(int(number)) if number.is_integer() and abs(number) < 1e15 else Number(number)


def domain_of(name: str, given: Any) -> Interval | Categories | AnyText:
    """An Interval or Categories, also written (low, high), [a, b, c] and bool; str for text without a public list."""
    domain = _written_domain(name, given)
    if isinstance(domain, Interval) and domain.edges is not None:
        raise InputError(
            f"{name}: a study takes edges with the question, .histogram({name!r}, edges=[…]) or by={{{name!r}: […]}}; "
            "those of an Interval are for a schema, by which `sfumato synthesize` makes rows"
        )
    if isinstance(domain, Categories) and domain.scalar == "bool":
        null, unknown = (None if one is None else _truth_word(one) for one in (domain.null, domain.unknown))
        return Categories(tuple(_truth_word(value) for value in domain.values), null=null, unknown=unknown)
    return domain


def _written_domain(name: str, given: Any) -> Interval | Categories | AnyText:
    if given is str:
        return AnyText()
    if given is bool:
        return Categories((False, True))
    if isinstance(given, Interval | Categories):
        return given
    if isinstance(given, list | tuple):
        return _range_of(given) or Categories(tuple(given))
    raise InputError(
        f"{name}: a domain is Interval(low, high), Categories([…]), str or bool, not {type(given).__name__}"
    )


def _truth_word(value: Scalar) -> str:
    return "true" if value else "false"


def _range_of(given: Sequence[Any]) -> Interval | None:
    """(low, high) as numbers or days; None for anything else."""
    if isinstance(given, tuple) and len(given) == 3 and all(type(one) in (int, float) for one in given):
        raise InputError(
            f"{given!r} is no range, which has two ends: ({given[0]!r}, {given[-1]!r}). Of three categories write a "
            f"list, {list(given)!r}; what stands for an absent cell is Interval(low, high, null=…)"
        )
    if not isinstance(given, tuple) or len(given) != 2:
        return None
    if all(isinstance(end, (int, float)) for end in given):
        return Interval(*given)
    if None in given:
        raise InputError(
            f"a range has two ends, and {given!r} has one: state a public one, or buy both, Interval.private(0.1)"
        )
    return Dates(*given) if all(number_of_day(end) is not None for end in given) else None


def unsaid_place(column: DeclaredColumn) -> str | None:
    """Where a cell goes that is absent (or not listed) although nobody said what then; None where it is said."""
    match column.domain:
        case Interval(null=None) as domain:
            return shown(domain.middle, domain.calendar)
        case Categories(null=None, unknown=None, values=values):
            return repr(values[0])
    return None


def _ends_text(domain: Interval) -> str:
    if domain.share is not None:
        return f"private({number_text(domain.share)})"
    if domain.calendar:
        return f"{show(moment_of(domain.low, domain.calendar))}, {show(moment_of(domain.high, domain.calendar))}"
    return f"{number_text(domain.low)}, {number_text(domain.high)}"


def table_lines(parts: Parts, name: str, data: Any, person: str | None, rows_per_person: int) -> list[str]:
    """The lines of a study that declare a table and whose its rows are."""
    source, who = show(Compound(name)), show(parts.person)
    inside = f", {source}" if in_database(data) else ""
    lines = [f"source({source}, {show(Compound(file_name(name, data)))}{inside})."]
    if person is None:
        return [*lines, f"each_row({source}, {who})."]
    return [
        *lines,
        f"column({source}, {show(Compound(person))}, {who}).",
        f"rows_per_person({source}, {rows_per_person}).",
    ]


def column_lines(source: str, who: str, column: DeclaredColumn, missing: str | None, mark: Mark) -> list[str]:
    """The lines of a study that declare one column."""
    variable, domain = show(column.variable), column.domain
    assert domain is not None
    bounds, stands = _bounds_and_stand_in(column.name, domain, mark)
    return [
        f"column({source}, {show(Compound(column.name))}, {variable}).",
        f"random({variable}) :- {who}.",
        f"range({variable}, {bounds}).",
        f"missing({variable}, {stands or missing or 'never'}).",
    ]


def _bounds_and_stand_in(name: str, domain: Interval | Categories | AnyText, mark: Mark) -> tuple[str, str | None]:
    """What a column may hold, and what stands for a cell that it may not, as a study writes them."""
    if isinstance(domain, AnyText):
        return "text", None
    if isinstance(domain, Interval):
        unit, null = domain.calendar, domain.null
        stands = None if null is None else show(moment_of(float(null), unit) if unit else constant_of(null))
        return _ends_text(domain), stands
    listed = show(ListTerm(tuple(map(constant_of, domain.values))))
    if None not in (domain.null, domain.unknown) and domain.null != domain.unknown:
        raise refused(mark, f"{name}: in a study one category stands for absent and unlisted cells alike.")
    category = domain.null if domain.null is not None else domain.unknown
    stands = None if category is None else show(constant_of(category))
    return f"fold({listed})" if domain.fold else listed, stands


def parts_of(spec: Spec, text: str) -> Parts:
    """What later calls may name of a study that was written as text."""
    columns = _columns_of(spec)
    people, person = _people_of(spec)
    return Parts(
        lines=tuple((line, None) for line in text.removesuffix("\n").split("\n")),
        columns=MappingProxyType(columns),
        tables=MappingProxyType({source.table: None for source in spec.sources}),
        files=MappingProxyType({source.table: source.path for source in spec.sources}),
        promises=MappingProxyType({one.observer: one.name for one in spec.requirements}),
        questions=MappingProxyType({called(c.head.arguments[0]): None for c in spec.clauses if _publishes(c.head)}),
        taken=frozenset(_words(spec)),
        grouped=frozenset(name for name, column in columns.items() if f"{listing(column)}/1" in spec.listings),
        people=people,
        person=person,
    )


def _people_of(spec: Spec) -> tuple[str, Term]:
    if not spec.datasets:
        return PEOPLE, PERSON
    dataset = spec.datasets[0]
    return dataset.name, substitute(goals(dataset.goal)[0], {dataset.variable: Variable("P")})


def _columns_of(spec: Spec) -> dict[str, DeclaredColumn]:
    columns = {}
    for name, atom in ((one.name, one.atom) for one in spec.columns):
        if len(atom.arguments) == 1 and indicator(atom) in spec.random_predicates:
            domain = next((one.domain for one in spec.ranges if one.atom_pattern.functor == atom.functor), None)
            columns[name] = DeclaredColumn(name, atom.functor, domain)
    return columns


def publications_of(text: str) -> list[tuple[str, str]]:
    """Every publication of a text and who sees it."""
    clauses, _ = read(text)
    found: dict[tuple[str, str], None] = {}
    for head in (clause.head for clause in clauses if _publishes(clause.head)):
        name, _, requirement = head.arguments
        inner = requirement.arguments if isinstance(requirement, Compound) else ()
        found[called(name), called(inner[0]) if len(inner) == 1 else EVERYONE] = None
    return list(found)


def _publishes(head: Term) -> bool:
    return indicator(head) == "publish/3"


def _words(spec: Spec) -> Iterator[str]:
    """Every word that stands for something in a study's text."""
    for clause in spec.clauses:
        for term in (clause.head, *([clause.body] if clause.body is not None else [])):
            yield from (part.functor for part in walk(term) if isinstance(part, Compound))


def said_text(text: str) -> str:
    """A text of people as the language quotes it, on one line."""
    return show(Compound(" ".join("".join(letter if letter.isprintable() else " " for letter in text).split())))


def said_of(column: DeclaredColumn) -> str:
    """A column and what it may hold, in a few words."""
    match column.domain:
        case Interval(low=low, high=high):
            return f"{column.name} from {low:g} to {high:g}"
        case Categories(values=values):
            return f"{column.name} ({', '.join(map(str, values[:5]))}{', …' if len(values) > 5 else ''})"
    return column.name
