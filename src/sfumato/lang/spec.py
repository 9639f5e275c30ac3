"""What a study wants: declarations that never mention an individual's data.

In:   declarations read from a study file (lang/load.py).
Out:  Spec, and by `Spec.ground` the random variables, dependencies and publications its clauses derive.
Not here: reading (lang/reader.py), the checks (lang/check.py), running the logic (lang/ground.py), expressions and
          zones (network/).

Adjacency: `dataset(Name, domain(P, Goal))` protects one individual of the goal's kind, replaced by another one;
`adjacency(Name, add_remove)` protects presence too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from sfumato.core import Adjacency, Categories, Guarantee, Interval
from sfumato.core.text import AnyText
from sfumato.errors import InputError
from sfumato.lang.correlated import Correlated
from sfumato.lang.derivations import Grounding
from sfumato.lang.fair import FairnessHolds, FairnessRequirement, FairRv
from sfumato.lang.institutions import CentrePromise, DeclaredCentre, HeldPart, Holds
from sfumato.lang.term import Compound, Position, Term, indicator, is_ground, match, variables

if TYPE_CHECKING:
    from sfumato.lang.about import About, Decision
    from sfumato.lang.problem import Problem
    from sfumato.lang.reader import Clause
    from sfumato.lang.steps import Step
    from sfumato.lang.whose import Division, Owner

__all__ = [
    "DATABASE_ENDINGS",
    "EVERYONE",
    "ROW",
    "TABLE_ENDINGS",
    "CentrePromise",
    "Collusion",
    "Column",
    "Dataset",
    "DeclaredCentre",
    "EachPerson",
    "Forbidden",
    "Forgotten",
    "HeldPart",
    "Holds",
    "Keep",
    "Missing",
    "MissingRule",
    "Nonnegative",
    "Peer",
    "Preference",
    "PrivacyRequirement",
    "Range",
    "Relation",
    "RowLimit",
    "Source",
    "Spec",
    "Weight",
    "Within",
]

#: The observer of a requirement whose name carries none.
EVERYONE = "everyone"

#: The column that stands for "this row" in a table whose every row is one individual; no file is asked for it.
ROW = "$row"

#: How the name of a column begins that no table has (network/peers.py).
_COMPUTED = re.compile(r"\$[0-9]+ ")

#: How the name of a table's file ends.
TABLE_ENDINGS = (".parquet", ".csv", ".tsv")

#: How the name of a database's file ends.
DATABASE_ENDINGS = (".duckdb", ".sqlite", ".sqlite3", ".db")

Keep = Literal["sample", "first", "last"]

MissingRule = Literal["value", "skip", "never"]


@dataclass(frozen=True, slots=True)
class Source:
    """source(Table, Path) or source(Table, Path, Name): where a table's rows are; `name` is that inside a database."""

    table: str
    path: str
    name: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """column(Table, Name, Atom): a cell is the random variable Atom, or, if Atom is logical, an identity."""

    table: str
    name: str
    atom: Compound
    position: Position | None = field(default=None, compare=False)

    @property
    def told(self) -> str:
        """Its name for readers; of a column that is computed, what it holds.

        >>> Column("t", "$0 sum of cost over friend", Compound("sum of cost over friend")).told
        'sum of cost over friend'
        """
        return self.name.partition(" ")[2] if _COMPUTED.match(self.name) else self.name


@dataclass(frozen=True, slots=True)
class Relation:
    """relation(Table, Atom): every row of Table asserts Atom, its variables bound by the identity columns."""

    table: str
    atom: Compound
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Range:
    """range(RV, Low, High), range(RV, [category, …]) or range(RV, text): what everybody may know of its values."""

    atom_pattern: Compound
    domain: Interval | Categories | AnyText
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Missing:
    """missing(RV, Value): what stands for an absent cell, or for one that is not listed.

    missing(RV, skip): people without the cell are left out of what reads it. missing(RV, never): the author's word that
    it does not happen; `value` is None then. missing(Table, …) says so of all cells of a table that are not named.
    """

    atom_pattern: Compound
    value: float | str | int | None
    rule: MissingRule = "value"
    position: Position | None = field(default=None, compare=False)

    @property
    def of_table(self) -> bool:
        """Whether it may be about all cells of a table: these have no value in common."""
        return self.rule != "value" and not self.atom_pattern.arguments


@dataclass(frozen=True, slots=True)
class RowLimit:
    """rows_per_person(Table, N, Which): at most N rows of one individual are used, and which ones.

    `keep` is "sample" (a keyed hash of the row decides), "first" or "last" (the order of `column` does).
    """

    table: str
    maximum: int
    keep: Keep = "sample"
    column: str | None = None
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class EachPerson:
    """each_person(Table, mean): an individual counts once, with the mean of all her rows."""

    table: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Dataset:
    """dataset(Name, domain(Variable, Goal)) with the adjacency it stands for."""

    name: str
    variable: str
    goal: Term
    adjacency: Adjacency
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PrivacyRequirement:
    """privacy_requirement(Name, Dataset, Metric): one budget towards one observer.

    Of a study with steps `guarantee` is the share of the step that is asked for, and `whole` the promise about all
    `shares` of them.
    """

    name: Term
    observer: str
    dataset: str
    guarantee: Guarantee
    whole: Guarantee | None = field(default=None, kw_only=True)
    shares: int = field(default=1, kw_only=True)
    #: The part of the dataset it is about, where datasets divide the same people (lang/divisions.py).
    division: str | None = field(default=None, kw_only=True)
    #: The owners it protects, where it is about things of theirs (lang/owners.py), and what was promised to them.
    owner: str | None = field(default=None, kw_only=True)
    owned: str = field(default="", kw_only=True)
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Peer:
    """A column that is computed: for each individual the sum or mean of a cell of those a public relation names.

    Made where the public tables are read (network/peers.py); no study writes one.
    """

    table: str
    column: str
    atom: Compound
    cell: Column
    whose: str
    relation: str
    mean: bool
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Preference:
    """prefer(Publication, [strategy, …]): these first."""

    publication: str
    strategies: tuple[str, ...]
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Forbidden:
    """forbid(Publication, strategy): these never."""

    publication: str
    strategies: tuple[str, ...]
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Weight:
    """weight(Publication, Value): how much this publication's error counts beside the others'."""

    publication: str
    value: float
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Nonnegative:
    """nonnegative(Publication): its counts are moved to the nearest ones that are not below 0."""

    publication: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Whole:
    """whole(Publication): its numbers are published as whole numbers, the ends of intervals rounded outwards."""

    publication: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Within:
    """within(Publication, HalfWidth): the error one can live with, as half the width of a 95 % interval."""

    publication: str
    half_width: float
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Collusion:
    """collude([observer, …]): these observers put together what they see."""

    observers: frozenset[str]
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """forget(Individual): rows that must not be read again; forget(Individual, RV): one cell of them."""

    individual: Term
    variable: Term | None = None
    position: Position | None = field(default=None, compare=False)


#: Groundings that a Spec keeps; a study with many public structures has one for each.
_KEPT = 4


@dataclass(frozen=True)
class Spec:
    """A study's wishes, checked. Made by `sfumato.load`.

    >>> from sfumato.lang import load
    >>> spec = load('''
    ...     source(patients, 'patients.parquet').
    ...     column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
    ...     column(patients, age, age(P)).
    ...     random(age(P)) :- patient(P).
    ...     range(age(P), 0, 110).
    ...     dataset(people, domain(P, patient(P))).
    ...     privacy_requirement(openness(public), people, dp(0.5)).
    ...     mean(meanAge, age(P), patient(P)).
    ...     publish(average, meanAge, openness(public)).
    ... ''')
    >>> print(spec.requirements[0].guarantee)
    0.5-DP, under replacing one patient
    >>> [str(name) for name in spec.ground([Compound("patient", (spec.symbolic("people"),))]).variables]
    ["age('$patient_1')"]
    """

    name: str
    path: str | None
    text: str = field(repr=False)
    digest: str
    sources: tuple[Source, ...] = ()
    columns: tuple[Column, ...] = ()
    relations: tuple[Relation, ...] = ()
    public_tables: frozenset[str] = frozenset()
    ranges: tuple[Range, ...] = ()
    missing: tuple[Missing, ...] = ()
    row_limits: tuple[RowLimit, ...] = ()
    each_person: tuple[EachPerson, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    divisions: tuple[Division, ...] = ()
    owners: tuple[Owner, ...] = ()
    #: Pairs of datasets of owners that may hold the same person.
    same_people: tuple[tuple[str, str], ...] = ()
    correlations: tuple[Correlated, ...] = ()
    requirements: tuple[PrivacyRequirement, ...] = ()
    peers: tuple[Peer, ...] = ()
    fairness: tuple[FairnessRequirement, ...] = ()
    fair_rvs: tuple[FairRv, ...] = ()
    fairness_holds: tuple[FairnessHolds, ...] = ()
    preferences: tuple[Preference, ...] = ()
    forbidden: tuple[Forbidden, ...] = ()
    weights: tuple[Weight, ...] = ()
    nonnegative: tuple[Nonnegative, ...] = ()
    whole: tuple[Whole, ...] = ()
    aims: tuple[Within, ...] = ()
    collusions: tuple[Collusion, ...] = ()
    about: tuple[About, ...] = ()
    decisions: tuple[Decision, ...] = ()
    centres: tuple[DeclaredCentre, ...] = ()
    holds: tuple[Holds, ...] = ()
    #: Parties that may see the rows of every centre.
    trusted: tuple[str, ...] = ()
    #: How many centres may pool what they know with all readers, and how many may stay away from a sum.
    colluders: int = 0
    absences: int = 0
    #: What each centre calls its part of a table that several hold (lang/held.py).
    parts: tuple[HeldPart, ...] = ()
    #: Promises to whole centres (lang/centre_units.py).
    centre_promises: tuple[CentrePromise, ...] = ()
    #: Observers within a centre: they see what it publishes from its own rows alone (lang/inside.py).
    inside: tuple[str, ...] = ()
    #: The centre whose own study this is; None for that of all centres.
    at_home: str | None = None
    forgotten: tuple[Forgotten, ...] = ()
    steps: tuple[Step, ...] = ()
    #: The step that is asked for; None where everything holds at once.
    step: int | None = None
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    clauses: tuple[Clause, ...] = field(default=(), compare=False, repr=False)
    #: What was derived, by its facts: the check, the network and a second plan ask for the same.
    derived: dict[tuple[Term, ...], Grounding] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def numbered_tables(self) -> frozenset[str]:
        """Tables whose every row is one individual, by the author's word (each_row/2)."""
        return frozenset(column.table for column in self.columns if column.name == ROW)

    def ground(self, facts: Iterable[Term] = ()) -> Grounding:
        """Run the study's clauses on its own facts and the given ones: symbolic individuals, rows of public tables."""
        from sfumato.lang.ground import ground  # the logic engine is loaded when it is first needed

        given = tuple(facts)
        found = self.derived.get(given) or ground(self, given)
        if len(self.derived) < _KEPT:
            self.derived[given] = found
        return found

    def symbolic(self, dataset: str, number: int = 1) -> Term:
        """The constant that stands for any individual of one public structure; no study can write this name."""
        for declared in self.datasets:
            if declared.name == dataset:
                return Compound(f"${declared.adjacency.unit}_{number}")
        raise InputError(f"The study has no dataset named {dataset!r}. Nothing was run and nothing was spent.")

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name."""
        for declared in self.datasets:
            if declared.name == name:
                return declared
        raise InputError(f"The study has no dataset named {name!r}. Nothing was run and nothing was spent.")

    def column_of(self, atom: Term) -> Column | None:
        """The column whose cells a variable is: of several that fit the most special, lab(P, na) before lab(P, T)."""
        fitting = [column for column in self.columns if match(column.atom, atom) is not None]
        return min(fitting, key=lambda column: len(set(variables(column.atom))), default=None)

    def domain_of(self, atom: Term) -> Categories | Interval | AnyText | None:
        """The declared values of a variable."""
        return next((one.domain for one in self.ranges if match(one.atom_pattern, atom) is not None), None)

    def missing_of(self, atom: Term) -> Missing | None:
        """What the study says about absent cells of a variable: about it alone, or about its whole table."""
        for declared in self.missing:
            if match(declared.atom_pattern, atom) is not None:
                return declared
        tables = {column.table for column in self.columns if match(column.atom, atom) is not None}
        return next((one for one in self.missing if one.of_table and one.atom_pattern.functor in tables), None)

    def requirement(self, name: Term) -> PrivacyRequirement:
        """The requirement of that name."""
        for declared in self.requirements:
            if declared.name == name:
                return declared
        raise InputError(f"The study has no requirement named {name}. Nothing was run and nothing was spent.")

    @cached_property
    def random_predicates(self) -> frozenset[str]:
        """functor/arity of every random variable: heads of random/1 and of aggregates."""
        from sfumato.lang.vocabulary import random_predicates

        return random_predicates(self.clauses)

    @cached_property
    def listings(self) -> Mapping[str, tuple[Term, ...]]:
        """functor/1 of a predicate the study lists in facts alone -> its things (drug(d1). drug(d2).)."""
        found: dict[str, list[Term] | None] = {}
        for clause in self.clauses:
            name, own = indicator(clause.head), found.setdefault(indicator(clause.head), [])
            if len(clause.head.arguments) != 1 or clause.body is not None or not is_ground(clause.head):
                found[name] = None
            elif own is not None:
                own.append(clause.head.arguments[0])
        return MappingProxyType({name: tuple(dict.fromkeys(own)) for name, own in found.items() if own})

    @cached_property
    def table_predicates(self) -> Mapping[str, tuple[str, bool]]:
        """functor/arity of a logical predicate fed by a table -> (table, whether all its tables are public).

        An identity column whose predicate the study itself defines, such as drug(D) beside the facts drug(d1) and
        drug(d2), feeds nothing: rows with other values are left out and the structure stays what the study says.
        """
        random = self.random_predicates
        written = {indicator(clause.head) for clause in self.clauses}
        fed: dict[str, tuple[str, bool]] = {}
        for declared in (*self.columns, *self.relations):
            name = indicator(declared.atom)
            if isinstance(declared, Relation) or (name not in random and name not in written):
                table, public = fed.get(name, (declared.table, True))
                fed[name] = (table, public and declared.table in self.public_tables)
        return MappingProxyType(fed)
