"""Questions over individuals as they are written: what stands in their places, and what is wrong there.

In:   a Spec; the questions' own forms (questions/form.py).
Out:  Problems; the variables and cut points that a place names.
Not here: bounds, cells and rows (network/gather.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sfumato.core.domain import Interval
from sfumato.core.text import AnyText
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause, goals
from sfumato.lang.term import Compound, ListTerm, Number, Position, Term, indicator, show, walk
from sfumato.lang.vocabulary import AGGREGATES
from sfumato.questions.bought import KINDS
from sfumato.questions.form import Place
from sfumato.questions.registry import QUESTIONS

if TYPE_CHECKING:
    from sfumato.lang.spec import Spec

__all__ = ["COMPARISONS", "Named", "check_questions", "named_in", "number_in"]

COMPARISONS = frozenset(["=/2", "\\=/2", "</2", ">/2", "=</2", ">=/2", "=:=/2", "=\\=/2", "==/2", "\\==/2"])
#: Places that hold variables, and whether there may be several.
_VARIABLES: dict[Place, bool] = {"value": False, "values": True, "cells": True, "groups": True}
#: Places that hold a list of numbers.
_LISTS: dict[Place, str] = {"edges": "the edges", "numbers": "the numbers"}


class Named(NamedTuple):
    """A variable in a place, with cut points of its own where it is written RV: [edge, edge]."""

    variable: Term
    edges: Term | None = None


def named_in(place: Place, term: Term | None) -> list[Named]:
    """The variables that stand in a place."""
    if term is None or place not in _VARIABLES:
        return []
    if place == "groups":
        term = term.arguments[0] if isinstance(term, Compound) and indicator(term) == "by/1" else ListTerm()
    items = term.items if isinstance(term, ListTerm) else (term,)
    return [Named(*one.arguments) if _has_edges(one) else Named(one) for one in items]  # type: ignore[union-attr]


def _has_edges(term: Term) -> bool:
    return isinstance(term, Compound) and indicator(term) == ":/2"


def number_in(term: Term) -> float | None:
    """The number that is written there, if one is."""
    if isinstance(term, Number):
        return float(term.value)
    if isinstance(term, Compound) and indicator(term) == "-/1" and isinstance(term.arguments[0], Number):
        return -float(term.arguments[0].value)
    return None


def check_questions(spec: Spec, domains: Iterable[str]) -> Iterator[Problem]:
    """Every problem of a question's name, goal, variables and numbers; `domains` are the datasets' goals."""
    known = list(domains)
    defined = {indicator(clause.head) for clause in spec.clauses} | set(spec.table_predicates)
    for clause in spec.clauses:
        if indicator(clause.head) in AGGREGATES:
            yield from _question(clause, spec.random_predicates, defined, known)
    yield from _texts(spec)
    yield from _unbounded(spec)
    yield from _beyond_ranges(spec)


#: What says of a variable what it is or to whom it belongs, and asks nothing of it.
_TOLD = frozenset({"random/1", "column/3", "range/2", "missing/2", "instance_rv/3"})


def _is_bought(domain: object) -> bool:
    return isinstance(domain, Interval) and domain.share is not None


def _needing_bounds(clause: Clause) -> Sequence[Term]:
    """The places of a clause at which a variable must have public bounds."""
    name, parts = indicator(clause.head), clause.head.arguments
    if name not in AGGREGATES:
        return parts if clause.body is None else (*parts, clause.body)
    usage = QUESTIONS[clause.head.functor].form.places(len(parts))
    free = {"goal", "value"} if clause.head.functor in KINDS else {"goal"}
    free |= {"cells"} if "edges" in usage else set()  # sorted by the cut points at the end
    return [part for place, part in zip(usage, parts, strict=True) if place not in free]


def _unbounded(spec: Spec) -> Iterator[Problem]:
    """A variable whose bounds are bought may be asked for by mean and sum, compared, and sorted by cut points."""
    bought = {indicator(one.atom_pattern) for one in spec.ranges if _is_bought(one.domain)}
    for clause in spec.clauses if bought else ():
        name = indicator(clause.head)
        places = () if name in _TOLD else _needing_bounds(clause)
        for term in (one for place in places for one in _without_edges(place) if indicator(one) in bought):
            shown = show(term)[:60]
            message = f"no bounds of {shown} are public, and {_what(name)} needs them"
            way_out = (
                f"Ask mean(Atom, {shown}, Goal) or sum(Atom, {shown}, Goal), which buy bounds; or declare its range, "
                f"range({shown}, Low, High)."
            )
            yield _problem(clause, term, "private-range", message, way_out)


def _beyond_ranges(spec: Spec) -> Iterator[Problem]:
    """Cut points beyond a declared range: left out and said where others split it, an error where none does."""
    ends = _declared_ends(spec)
    for clause in spec.clauses:
        for one in _cut_in(clause) if indicator(clause.head) in AGGREGATES else ():
            low, high = ends.get(indicator(one.variable), (-math.inf, math.inf))
            cuts = [cut for item in one.edges.items if (cut := number_in(item)) is not None]  # type: ignore[union-attr]
            if not all(low <= cut <= high for cut in cuts):
                yield _beyond_range(clause, one.variable, cuts, low, high)


def _beyond_range(clause: Clause, variable: Term, cuts: Sequence[float], low: float, high: float) -> Problem:
    listed = ", ".join(f"{cut:.15g}" for cut in cuts if not low <= cut <= high)
    split = any(low < cut < high for cut in cuts)
    message = f"cut points of {show(variable)[:60]} lie beyond its range from {low:.15g} to {high:.15g}: {listed}"
    message += ". They make no bins and are left out" if split else ". No cut point splits it"
    found = _problem(clause, variable, "cut-points", message, "Take them out, or declare a wider range.")
    return replace(found, severity="warning") if split else found


def _declared_ends(spec: Spec) -> dict[str, tuple[float, float]]:
    """The ends of every variable's ranges of numbers, where all of them are public."""
    found: dict[str, tuple[float, float]] = {}
    for one in spec.ranges:
        name, domain = indicator(one.atom_pattern), one.domain
        known = found.get(name, (math.inf, -math.inf))
        public = isinstance(domain, Interval) and domain.share is None
        ends = (domain.low, domain.high) if public else (-math.inf, math.inf)  # type: ignore[union-attr]
        found[name] = (min(known[0], ends[0]), max(known[1], ends[1]))
    return found


def _cut_in(clause: Clause) -> Iterator[Named]:
    """The variables of a question that a list of cut points sorts, each beside its list."""
    parts = clause.head.arguments
    placed = dict(zip(QUESTIONS[clause.head.functor].form.places(len(parts)), parts, strict=True))
    for place, term in placed.items():
        for one in named_in(place, term):
            edges = one.edges if one.edges is not None or place != "cells" else placed.get("edges")
            if isinstance(edges, ListTerm):
                yield Named(one.variable, edges)


def _what(name: str) -> str:
    """A predicate in words, where it is no question that somebody asks by that name."""
    return {"depends/3": "a formula", "publish/3": "what is published of it here"}.get(name, name)


def _without_edges(term: Term) -> Iterator[Term]:
    """Every part of a term but what is sorted by cut points of its own, which need no bounds."""
    if _has_edges(term):
        return
    yield term
    for part in term.items if isinstance(term, ListTerm) else term.arguments if isinstance(term, Compound) else ():
        yield from _without_edges(part)


def _depended_on(clause: Clause) -> Iterator[Term]:
    """Every term that what a clause says depends on; of groups/3 without the variable whose values it finds."""
    name, parts = indicator(clause.head), clause.head.arguments
    if name in _TOLD:
        return
    for place in (*(parts[2:] if name == "groups/3" else parts), *([clause.body] if clause.body else ())):
        yield from walk(place)


def _texts(spec: Spec) -> Iterator[Problem]:
    """A variable whose values nobody listed may be asked for by groups/3 and by nothing else."""
    open_ones = {indicator(one.atom_pattern) for one in spec.ranges if isinstance(one.domain, AnyText)}
    for clause in spec.clauses:
        name, parts = indicator(clause.head), clause.head.arguments
        asking = name == "groups/3"
        for term in (one for one in _depended_on(clause) if indicator(one) in open_ones):
            message = f"{show(term)[:60]} is a text of which no list is public, and {name} would depend on it"
            way_out = "Ask groups(Atom, rv(P), Goal) which values occur, or declare a list of categories."
            yield _problem(clause, term, "text", message, way_out)
        if asking and indicator(parts[1]) not in open_ones:
            message = f"{show(parts[1])[:60]} has a public range: there is nothing to find out"
            yield _problem(clause, parts[1], "text", message, "Use histogram, or declare range(rv(P), text).")


def _question(clause: Clause, random: Iterable[str], defined: set[str], domains: list[str]) -> Iterator[Problem]:
    name, parts = indicator(clause.head), clause.head.arguments
    placed = dict(zip(QUESTIONS[clause.head.functor].form.places(len(parts)), parts, strict=True))
    if not isinstance(placed["name"], Compound):
        yield _problem(clause, clause.head, "declaration", f"{name} needs a name such as meanAge", AGGREGATES[name])
    goal = placed["goal"]
    yield from _condition(clause, goal, random, defined)
    if not any(indicator(one) in domains for one in goals(goal)):
        yield _problem(
            clause,
            goal,
            "aggregate-domain",
            "the goal of this aggregate does not say whose individuals it runs over",
            f"Put the dataset's goal into it, for example {next(iter(domains), 'patient/1').split('/')[0]}(P).",
        )
    if "edges" in placed and len(named_in("cells", placed.get("cells"))) > 1:
        message = f"the edges at the end of a {clause.head.functor} are those of one variable, and several are listed"
        way_out = "Write them beside each variable: [age(P): [20, 65], sex(P)]."
        yield _problem(clause, placed["edges"], "several-values", message, way_out)
    for place, term in placed.items():
        yield from _shape(clause, place, term)
        for one in named_in(place, term):
            if not isinstance(one.variable, Compound) or indicator(one.variable) not in random:
                yield _problem(
                    clause,
                    one.variable,
                    "unknown-variable",
                    f"{show(one.variable)[:60]} is not a declared random variable",
                    "Aggregate a variable declared with random/1; put arithmetic into its CPF.",
                    nearest(indicator(one.variable), random),
                )


def _shape(clause: Clause, place: Place, term: Term) -> Iterator[Problem]:
    """One variable where one is meant, a list of numbers where edges are: nothing that stands there is left out."""
    functor = clause.head.functor
    if place == "groups" and not (isinstance(term, Compound) and indicator(term) == "by/1"):
        message = f"the groups of a {functor} are written by([rv(P)]), not {show(term)[:60]}"
        yield _problem(clause, term, "declaration", message, "Write by([sex(P)]) or by([age(P): [20, 65]]).")
    if place in _LISTS and not isinstance(term, ListTerm):
        yield _problem(
            clause,
            term,
            "declaration",
            f"{_LISTS[place]} of a {functor} must be a list of numbers, not {show(term)[:60]}",
            "Write them in increasing order: [0, 20, 40].",
        )
    yield from _named_shape(clause, place, term)


def _named_shape(clause: Clause, place: Place, term: Term) -> Iterator[Problem]:
    functor, named = clause.head.functor, named_in(place, term)
    if place in _VARIABLES and not _VARIABLES[place] and len(named) != 1:
        way_out = f"Declare one {functor} for each of them; moment2 gives the sums of their products."
        message = f"a {functor} is about one variable, and {len(named)} are listed"
        yield _problem(clause, term, "several-values", message, way_out)
    elif place in _VARIABLES and not named:
        yield _problem(clause, term, "several-values", f"this {functor} lists no variable", "List one or more.")
    if len({show(one.variable) for one in named}) < len(named):
        yield _problem(clause, term, "several-values", "a variable is listed twice", "List each once.")
    yield from _cut_points(clause, named)


def _cut_points(clause: Clause, named: Iterable[Named]) -> Iterator[Problem]:
    for one in named:
        if one.edges is not None and not isinstance(one.edges, ListTerm):
            message = f"the cut points of {show(one.variable)[:40]} must be a list of numbers"
            yield _problem(clause, one.edges, "declaration", message, "Write them in increasing order: [0, 20, 40].")


def _condition(clause: Clause, condition: Term, random: Iterable[str], defined: set[str]) -> Iterator[Problem]:
    """Literals and comparisons of an aggregate's goal; they are evaluated for each person, not called."""
    for goal in goals(condition):
        name = indicator(goal)
        if name in ("\\+/1", ";/2"):
            for part in goal.arguments:  # type: ignore[union-attr]
                yield from _condition(clause, part, random, defined)
        elif name not in COMPARISONS and name not in defined:
            hint = "Compare a random variable, as in age(P) > 65, or call a predicate fed by a table or by facts."
            message = f"{name} is not a comparison and no predicate of this study"
            yield _problem(clause, goal, "unknown-predicate", message, hint, nearest(name, defined))


def _problem(clause: Clause, term: Term, code: str, message: str, way_out: str, close: str | None = None) -> Problem:
    position = clause.at(term) or Position("study", 1, 1)
    return Problem("error", code, message, position, clause.text, nearest=close, way_out=way_out)
