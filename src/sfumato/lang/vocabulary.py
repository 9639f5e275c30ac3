"""The words of the language: which predicates declare something, which functions an expression may use.

In:   nothing.
Out:  the tables that the checks, the documentation test and the messages share.
Not here: what a declaration becomes (lang/declare.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sfumato.lang.term import Compound, ListTerm, Term, indicator
from sfumato.questions.kind import Kind
from sfumato.questions.registry import KINDS, QUESTIONS

if TYPE_CHECKING:
    from sfumato.lang.reader import Clause

__all__ = [
    "AGGREGATES",
    "CENTRE_WAYS",
    "DECLARATIONS",
    "DISTRIBUTIONS",
    "FUNCTIONS",
    "METRICS",
    "PUBLICATION_FORMS",
    "SHORT",
    "STATEMENT",
    "STATIC",
    "STRUCTURAL",
    "UNSPECIFIED",
    "published_kind",
    "published_variables",
    "random_predicates",
]

#: The functor of `Child | Parents`, an LBN's conditional dependency statement.
STATEMENT = "|"

#: The CPF of a statement for which no cpd was given.
UNSPECIFIED = "unspecified"

#: Declarations that are facts: read from the text, never derived.
STATIC = {
    "source/2": "source(Table, 'file')",
    "source/3": "source(Table, 'file.duckdb', table)",
    "column/3": "column(Table, name, atom(P))",
    "relation/2": "relation(Table, atom(P, Q))",
    "public/1": "public(Table)",
    "range/2": "range(rv(P), [category, category]), range(rv(P), [category, category | other]), "
    "range(rv(P), fold([category, category])) or range(rv(P), text)",
    "range/3": "range(rv(P), Low, High)",
    "missing/2": "missing(rv(P), Value), missing(rv(P), skip) or missing(rv(P), never); of all cells of a table "
    "missing(Table, skip) or missing(Table, never)",
    "rows_per_person/2": "rows_per_person(Table, N)",
    "rows_per_person/3": "rows_per_person(Table, N, first(column))",
    "each_person/2": "each_person(Table, mean)",
    "each_row/2": "each_row(Table, person(P))",
    "dataset/2": "dataset(Name, domain(P, goal(P)))",
    "adjacency/2": "adjacency(Dataset, add_remove)",
    "correlated/3": "correlated(Dataset, group(H, lives_in(P, H)), at_most(K))",
    "privacy_requirement/3": "privacy_requirement(Name, Dataset, dp(Epsilon, Delta))",
    "fairness_requirement/3": "fairness_requirement(Name, group(P), demographic_parity(Gap))",
    "fair_rv/2": "fair_rv(Name, Publication)",
    "fairness_holds/3": "fairness_holds(Name, on(population), Confidence)",
    "prefer/2": "prefer(Publication, [strategy, strategy])",
    "forbid/2": "forbid(Publication, strategy)",
    "weight/2": "weight(Publication, Number)",
    "nonnegative/1": "nonnegative(Publication)",
    "whole/1": "whole(Publication)",
    "within/2": "within(Publication, HalfWidth)",
    "same_person/2": "same_person(Dataset, Dataset)",
    "collude/1": "collude([observer, observer])",
    "about/2": "about(title, 'Stays in hospital') or about(purpose, 'What it is for')",
    "decided_by/2": "decided_by(Requirement, 'who, when')",
    "centre/1": "centre(Name)",
    "holds/2": "holds(Centre, Table)",
    "trusted/1": "trusted(Party)",
    "colluders/1": "colluders(N)",
    "persons_per_centre/2": "persons_per_centre(Dataset, N)",
    "inside/1": "inside(Observer)",
    "absences/1": "absences(N)",
    "forget/1": "forget(Individual)",
    "forget/2": "forget(Individual, rv(Individual))",
}

#: Declarations that may have conditions: derived by the logic engine.
STRUCTURAL = {
    "random/1": "random(rv(P)) :- conditions",
    "depends/3": "depends(rv(P), [parent(P)], CPF) :- conditions",
    "cpd/2": "cpd(rv(P), CPF) :- conditions",
    "dataset_instance/2": "dataset_instance(Dataset, Instance) :- conditions",
    "instance_rv/3": "instance_rv(Dataset, Instance, rv(P)) :- conditions",
    "dp_rv/2": "dp_rv(Requirement, rv(P)) :- conditions",
    "personal_rv/2": "personal_rv(P, rv(P)) :- conditions",
    "publish/3": "publish(Name, What, Requirement) :- conditions",
    "observe/2": "observe(Observer, rv(P)) :- conditions",
    "reveal/2": "reveal(Observer, rv(P)) :- conditions",
}

#: Questions over individuals, as their own forms say (questions/).
AGGREGATES = {name: text for question in QUESTIONS.values() for name, text in question.form.texts.items()}

#: Lines that stand for others (lang/short.py, lang/steps.py).
SHORT = {
    "table/4": "table(Table, 'file', person(P) = column, [column: low..high, word = column: [value, value]])",
    "step/2": "step(N, publish(Name)), step(N, reveal(Observer, rv(P))) :- conditions or step(N, forget(Individual))",
}

DECLARATIONS = {**SHORT, **STATIC, **STRUCTURAL, **AGGREGATES}

METRICS = {
    "dp/1": "dp(Epsilon)",
    "dp/2": "dp(Epsilon, Delta)",
    "renyi_dp/2": "renyi_dp(Alpha, Epsilon)",
    "gdp/1": "gdp(Mu)",
    "zcdp/1": "zcdp(Rho)",
    "pufferfish/1": "pufferfish(Epsilon)",
    "pufferfish/2": "pufferfish(Epsilon, Delta)",
}

#: What a CPF may be made of beside numbers and parents.
FUNCTIONS = frozenset(
    [
        "+/2",
        "-/2",
        "*/2",
        "//2",
        "**/2",
        "^/2",
        "-/1",
        "+/1",
        "exp/1",
        "log/1",
        "sqrt/1",
        "tan/1",
        "tanh/1",
        "abs/1",
        "min/2",
        "max/2",
        "min/1",
        "max/1",
        "sum/1",
        "mean/1",
        "clip/3",
        "pi/0",
        "e/0",
    ]
)
DISTRIBUTIONS = {
    "bernoulli/1": "bernoulli(Probability)",
    "normal/2": "normal(Mean, StandardDeviation)",
    "poisson/1": "poisson(Rate)",
    "exponential/1": "exponential(Rate)",
    "uniform/2": "uniform(Low, High)",
    "discrete/1": "discrete([value:probability, value:probability])",
    "lookup/2": "lookup([parent(P)], [row([value], CPF)])",
    "probability/1": "probability(rv(P) >= Number)",
}

#: What publish/3 may name beside a random variable or the probability/1 of a condition on one, as the kinds say.
PUBLICATION_FORMS = {name: text for kind in KINDS.values() for name, text in kind.texts().items()}

#: What prefer/2 and forbid/2 may name besides, of sums, where several centres hold the rows (plan/sharing.py).
CENTRE_WAYS = {
    "masks": "masked sums of the centres, with shares of the noise",
    "each_centre": "noise at each centre",
    "local": "noise at each individual, drawn by its centre",
}


def published_kind(what: Term) -> type[Kind] | None:
    """The kind of publication that a term is written as; None of a variable."""
    if isinstance(what, Compound) and indicator(what) in PUBLICATION_FORMS:
        return KINDS[what.functor]
    return None


def published_variables(what: Term) -> list[Term]:
    """The variables, or patterns of them, that a publication shows."""
    kind = published_kind(what)
    if kind is None or not isinstance(what, Compound):
        return [what]
    holds = kind.holds_variables(len(what.arguments))
    inner = (part for part, held in zip(what.arguments, holds, strict=True) if held)
    return [atom for part in inner for atom in (part.items if isinstance(part, ListTerm) else (part,))]


def random_predicates(clauses: Iterable[Clause]) -> frozenset[str]:
    """functor/arity of every random variable: what stands in random/1 and in the first place of an aggregate."""
    found = set()
    for clause in clauses:
        name = indicator(clause.head)
        if name == "random/1" or name in AGGREGATES:
            atom = clause.head.arguments[0]
            if isinstance(atom, Compound):
                found.add(indicator(atom))
    return frozenset(found)
