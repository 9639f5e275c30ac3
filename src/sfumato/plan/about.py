"""What a plan is about, for a reader who opens only its file: title, purpose, who decided, which columns are read.

In:   a Spec; a Plan.
Out:  plain values for the plan's extras, and sentences about promises that promise little.
Not here: pages and texts (evidence/), what each number is (network/meaning.py).

All of it follows from the study's text. How many rows were left out, or cells absent, is private and stands nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.core import ApproxDP, Guarantee, Pufferfish, PureDP
from sfumato.core.calendar import shown
from sfumato.core.domain import Categories, Interval
from sfumato.lang.spec import Column, Spec
from sfumato.lang.term import Compound, indicator, show, walk
from sfumato.lang.vocabulary import AGGREGATES, STATEMENT
from sfumato.network.meaning import rule_of
from sfumato.plan.plan import Plan

__all__ = ["LARGEST_EPSILON", "about_of", "decided_of", "title_of", "weak_promises"]

#: Above it the odds about one individual may change 22,000-fold.
LARGEST_EPSILON = 10.0
#: So many categories are listed; of longer lists the number is told.
_LISTED = 8


def about_of(spec: Spec) -> dict[str, Any]:
    """What a study says of itself, and what it reads of whom."""
    told: dict[str, Any] = {one.topic: one.text for one in spec.about}
    if spec.decisions:
        told["decided"] = [[show(one.requirement), one.who] for one in spec.decisions]
    used = _used(spec)
    columns = [one for one in spec.columns if indicator(one.atom) in used & spec.random_predicates]
    told["columns"] = [[one.table, one.told, _domain(spec, one), _absent(spec, one)] for one in columns]
    tables = dict.fromkeys(one.table for one in columns)
    told["rows"] = [[table, _rows(spec, table)] for table in tables if table not in spec.public_tables]
    return told


def title_of(plan: Plan) -> str:
    """The study's title, or the name of its file."""
    return str(_about(plan).get("title", plan.study))


def decided_of(plan: Plan, requirement: str) -> str:
    """Who decided a promise; empty where the study does not say."""
    return "; ".join(who for name, who in _about(plan).get("decided", ()) if name == requirement)


def weak_promises(plan: Plan) -> tuple[str, ...]:
    """A sentence for each promise that lets a lot be learned: ε > 10, or δ of more than one in the number of people."""
    sizes: Mapping[str, float] = plan.extras.get("sizes", {})
    return tuple(
        f"The promise to {' and '.join(one.observers)} is weak: {sentence}"
        for one in plan.promises
        for sentence in _weak(one.asked, sizes.get(one.dataset))
    )


def _weak(asked: Guarantee, people: float | None) -> Iterator[str]:
    if not isinstance(asked, PureDP | ApproxDP | Pufferfish):
        return
    epsilon, delta = asked.stated
    if epsilon > LARGEST_EPSILON:
        yield f"ε = {epsilon:g}: odds about one person may change by a factor of e^{epsilon:g}. Usual is 1 or 2."
    if people is not None and delta > 1 / people:
        yield (
            f"δ = {delta:g} is more than 1 over the number of individuals ({people:,.0f}). Publishing one of them in "
            f"full would keep it. Take a δ far below {1 / people:.1g}."
        )


def _about(plan: Plan) -> Mapping[str, Any]:
    return plan.extras.get("about", {})


def _used(spec: Spec) -> set[str]:
    """functor/arity of all that the publications rest on, as far as the clauses say."""
    defining = {*AGGREGATES, "depends/3", "cpd/2", f"{STATEMENT}/2"}
    used = {
        name
        for clause in spec.clauses
        if indicator(clause.head) in ("publish/3", "dp_rv/2", "fairness_requirement/3")
        for name in _names(clause.head)
    }
    while True:
        more = {
            name
            for clause in spec.clauses
            if indicator(clause.head) in defining and indicator(clause.head.arguments[0]) in used
            for name in _names(clause.head)
        }
        if more <= used:
            return used
        used |= more


def _names(term: Compound) -> set[str]:
    return {indicator(part) for part in walk(term) if isinstance(part, Compound)}


def _domain(spec: Spec, column: Column) -> str:
    domain = spec.domain_of(column.atom)
    if isinstance(domain, Interval) and domain.share is not None:
        return "no public range; bounds are bought"
    if isinstance(domain, Interval):
        return f"{shown(domain.low, domain.calendar)} to {shown(domain.high, domain.calendar)}"
    if isinstance(domain, Categories):
        listed = ", ".join(map(str, domain.values[:_LISTED]))
        return f"{listed}, … ({len(domain.values)} categories)" if len(domain.values) > _LISTED else listed
    return "any text"


def _absent(spec: Spec, column: Column) -> str:
    said = spec.missing_of(column.atom)
    if said is None or said.rule == "value":
        return "counted as the study says" if said is None else f"counted as {said.value}"
    return "left out" if said.rule == "skip" else "none, by the author's word"


def _rows(spec: Spec, table: str) -> str:
    from sfumato.network.tables import layout_of  # not at the top: the words need no engine

    if table in spec.numbered_tables:
        return "each row is one individual, by the author's word; no row is left out"
    return f"{rule_of(layout_of(spec, table))}; all others are left out, and how many is not told"
