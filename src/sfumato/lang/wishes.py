"""Wishes about publications held against what there is: prefer, forbid, weight, collude name things that exist.

In:   a Spec whose clauses were read.
Out:  problems; a warning for a promise that says little. A wish that nothing can follow is an error: whoever wrote it
      would believe it was followed.
Not here: following them (plan/make.py, plan/settle.py, plan/strategy.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from sfumato.core import ApproxDP, Pufferfish, PureDP
from sfumato.core.domain import Interval
from sfumato.lang.about import unknown_decisions
from sfumato.lang.correlated import Correlated
from sfumato.lang.fair import check_fairness
from sfumato.lang.inside import check_inside
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import goals
from sfumato.lang.spec import Forbidden, Preference, Spec
from sfumato.lang.term import Compound, Position, Term, called, indicator, show, variables
from sfumato.lang.vocabulary import AGGREGATES, CENTRE_WAYS, published_kind
from sfumato.questions.bought import KINDS, Bought
from sfumato.questions.registry import QUESTIONS, WAYS
from sfumato.questions.ways import AGGREGATE, VARIABLE, Ways

__all__ = ["check_wishes"]


def check_wishes(spec: Spec) -> Iterator[Problem]:
    """Every wish about something that does not exist, or that contradicts another."""
    yield from _publications(spec)
    yield from _strategies(spec)
    yield from _contradictions(spec)
    yield from _aims(spec)
    yield from _observers(spec)
    yield from _correlations(spec)
    yield from unknown_decisions(spec)
    yield from check_fairness(spec)
    yield from _weak_promises(spec)
    yield from check_inside(spec)


def _problem(
    spec: Spec, code: str, message: str, position: Position | None, way_out: str, close: str | None = None
) -> Problem:
    place = position or Position("study", 1, 1)
    text = next((clause.text for clause in spec.clauses if clause.position == position), "")
    return Problem("error", code, message, place, text, nearest=close, way_out=way_out)


def _published(spec: Spec) -> dict[str, list[Term]]:
    """What is published under each name."""
    found: dict[str, list[Term]] = {}
    for clause in spec.clauses:
        if indicator(clause.head) == "publish/3":
            found.setdefault(called(clause.head.arguments[0]), []).append(clause.head.arguments[1])
    return found


def _publications(spec: Spec) -> Iterator[Problem]:
    published = _published(spec)
    for one in (*spec.preferences, *spec.forbidden, *spec.weights, *spec.aims, *spec.nonnegative, *spec.whole):
        if one.publication not in published:
            yield _problem(
                spec,
                "unknown-publication",
                f"nothing is published under the name {one.publication}",
                one.position,
                "Correct the name, or add publish(Name, What, Requirement).",
                nearest(one.publication, published),
            )


def _strategies(spec: Spec) -> Iterator[Problem]:
    """prefer and forbid name ways to publish what stands under the name."""
    published = _published(spec)
    for one in (*spec.preferences, *spec.forbidden):
        kinds = {_ways(spec, what) for what in published.get(one.publication, [])}
        known = _known_ways(spec, kinds)
        for name in one.strategies if kinds else ():
            if name not in known:
                yield _unknown(spec, one, name, kinds, known)
            elif name == "central" and isinstance(one, Preference):
                yield from _trusting_nobody(spec, one)


def _known_ways(spec: Spec, kinds: set[Ways]) -> dict[str, str]:
    """What may be preferred or forbidden where such kinds are published, and what it means."""
    known = dict(chain(*(kind.words.items() for kind in kinds)))
    if spec.centres and ("central" in known or any(kind.summed for kind in kinds)):
        return {"central": "noise at a trusted party", **known, **CENTRE_WAYS}
    return known


def _trusting_nobody(spec: Spec, one: Preference) -> Iterator[Problem]:
    """Noise of one party is preferred, and the rows of the centres are shown to no party."""
    if spec.centres and not spec.trusted:
        message = f"{one.publication}: no party is trusted with the rows of all centres, so no noise is central"
        way_out = f"Name one, trusted(Party), or prefer one of {', '.join(CENTRE_WAYS)}."
        yield _problem(spec, "no-trusted-party", message, one.position, way_out)


def _unknown(
    spec: Spec, one: Preference | Forbidden, name: str, kinds: Iterable[Ways], known: dict[str, str]
) -> Problem:
    called = _told(kinds, " and ")
    elsewhere = [ways for ways in WAYS.values() if name in ways.words]
    what = f"a way to publish {_told(elsewhere, ' or ')}, not {called}"
    ways = ", ".join(f"{way} ({text})" for way, text in known.items())
    return _problem(
        spec,
        "unknown-strategy",
        f"{name} is {what if elsewhere else 'no strategy'}: {one.publication} publishes {called}",
        one.position,
        f"There are {ways}." if known else f"There is one way to publish {called}: take this line out.",
        nearest(name, known),
    )


def _told(kinds: Iterable[Ways], word: str) -> str:
    return word.join(ways.called for ways in sorted(kinds, key=lambda ways: ways.name))


def _ways(spec: Spec, what: Term) -> Ways:
    kind = published_kind(what)
    if kind is not None:
        return kind.ways
    for clause in spec.clauses:
        if indicator(clause.head) in AGGREGATES and indicator(clause.head.arguments[0]) == indicator(what):
            bought = clause.head.functor in KINDS and indicator(clause.head.arguments[1]) in _without_bounds(spec)
            return (Bought if bought else QUESTIONS[clause.head.functor]).form.ways
    return VARIABLE if indicator(what) in _of_individuals(spec) else AGGREGATE


def _without_bounds(spec: Spec) -> set[str]:
    """functor/arity of the variables whose bounds are bought."""
    ranges = [one for one in spec.ranges if isinstance(one.domain, Interval) and one.domain.share is not None]
    return {indicator(one.atom_pattern) for one in ranges}


def _of_individuals(spec: Spec) -> set[str]:
    """functor/arity of the variables that belong to individuals."""
    domains = {indicator(goal) for dataset in spec.datasets for goal in goals(dataset.goal)}
    found = set()
    for clause in spec.clauses:
        if indicator(clause.head) != "random/1":
            continue
        atom = clause.head.arguments[0]
        people = {v for goal in goals(clause.body) if indicator(goal) in domains for v in variables(goal)}
        if isinstance(atom, Compound) and people.intersection(variables(atom)):
            found.add(indicator(atom))
    return found


def _contradictions(spec: Spec) -> Iterator[Problem]:
    forbidden = {(one.publication, name) for one in spec.forbidden for name in one.strategies}
    for one in spec.preferences:
        for name in one.strategies:
            if (one.publication, name) in forbidden:
                yield _problem(
                    spec,
                    "contradiction",
                    f"{name} is preferred and forbidden for {one.publication}",
                    one.position,
                    "Keep one of the two.",
                )
    seen: set[str] = set()
    for weight in spec.weights:
        if weight.publication in seen:
            yield _problem(spec, "twice", f"{weight.publication} has two weights", weight.position, "Keep one of them.")
        seen.add(weight.publication)


def _aims(spec: Spec) -> Iterator[Problem]:
    """An aim is about numbers with an interval, and there is one for each publication."""
    published = _published(spec)
    seen: set[str] = set()
    for one in spec.aims:
        if one.publication in seen:
            message = f"{one.publication} has two errors that one can live with"
            yield _problem(spec, "twice", message, one.position, "Keep one of them.")
        seen.add(one.publication)
        kinds = {_ways(spec, what) for what in published.get(one.publication, [])}
        for kind in sorted((kind for kind in kinds if not kind.numbers), key=lambda kind: kind.name):
            what = kind.unforetold or f"a {kind.name}, which has no interval"
            yield _problem(
                spec,
                "no-interval",
                f"{one.publication} publishes {what}: nothing foretells whether it is within {one.half_width:g}",
                one.position,
                "Take the line out, or publish a number whose range is public.",
            )


def _observers(spec: Spec) -> Iterator[Problem]:
    observers = {requirement.observer for requirement in spec.requirements}
    for one in spec.collusions:
        for observer in sorted(one.observers - observers):
            yield _problem(
                spec,
                "unknown-observer",
                f"no requirement speaks of the observer {observer}",
                one.position,
                "Name it in a requirement: privacy_requirement(privacy(observer), Dataset, dp(Epsilon)).",
                nearest(observer, observers),
            )


def _correlations(spec: Spec) -> Iterator[Problem]:
    """Who depends on whom matters to a promise of that kind, and must not be a secret itself."""
    promised = {one.dataset for one in spec.requirements if isinstance(one.guarantee, Pufferfish)}
    for one in spec.correlations:
        if not spec.divisions:
            yield from _correlation(spec, one, promised)
        else:
            yield _problem(
                spec,
                "divided",
                f"{one.dataset} has promises for parts of it, and who is in one part may depend on who is in another",
                one.position,
                "Make one promise about whole individuals, or take the line out.",
            )


def _correlation(spec: Spec, one: Correlated, promised: set[str]) -> Iterator[Problem]:
    if one.dataset not in promised:
        yield _problem(
            spec,
            "no-effect",
            f"no promise about {one.dataset} speaks of those who depend on each other",
            one.position,
            f"Promise it: privacy_requirement(Name, {one.dataset}, pufferfish(Epsilon, Delta)), or take the line "
            "out: dp(…) counts what one individual's own data add.",
        )
    if one.kind == "known" and spec.steps:
        yield _problem(
            spec,
            "known-twice",
            "of a dataset with a known law one number is published, once, and the study has steps",
            one.position,
            "Take the steps out, or declare group or chain, whose promises add up.",
        )
    if one.kind == "chain" and (table := _several_rows(spec, one.dataset)):
        yield _problem(
            spec,
            "series-of-rows",
            f"each individual of {one.dataset} is one value of a series, and {table} may hold several rows of one",
            one.position,
            f"Make each row an individual, each_row({table}, …), in Python person=None and unit='day'; or write "
            f"rows_per_person({table}, 1).",
        )
    goal = indicator(one.goal) if one.kind == "group" and one.goal is not None else ""
    if goal and not spec.table_predicates.get(goal, ("", False))[1]:
        yield _problem(
            spec,
            "private-groups",
            f"who belongs together must be public, and {goal} is not read from a public table",
            one.position,
            f"Declare relation(Table, …) and public(Table), or, at your own word, "
            f"correlated({one.dataset}, group, at_most({one.bound:g})).",
        )


def _several_rows(spec: Spec, dataset: str) -> str | None:
    """A table that may hold several rows of one individual."""
    goal = indicator(spec.dataset(dataset).goal)
    tables = {column.table for column in spec.columns if indicator(column.atom) == goal}
    many = [*(one.table for one in spec.row_limits if one.maximum > 1), *(one.table for one in spec.each_person)]
    return next((table for table in many if table in tables), None)


#: Above these a promise says little: odds may change 22,000-fold, or one person in a thousand may be published in full.
_LARGEST_EPSILON, _LARGEST_DELTA = 10.0, 1e-3


def _weak_promises(spec: Spec) -> Iterator[Problem]:
    text = {clause.position: clause.text for clause in spec.clauses}
    for one in spec.requirements:
        if not isinstance(one.guarantee, (PureDP, ApproxDP, Pufferfish)):
            continue
        said = []
        epsilon, delta = one.guarantee.stated
        if epsilon > _LARGEST_EPSILON:
            said.append(f"ε = {epsilon:g}: odds about one individual may change by a factor of e^ε")
        if delta > _LARGEST_DELTA:
            said.append(f"δ = {delta:g}: publishing each individual in full with this probability would keep it")
        if said:
            yield Problem(
                "warning",
                "weak-promise",
                f"{show(one.name)} promises little ({'; '.join(said)})",
                one.position or Position("study", 1, 1),
                text.get(one.position, "") if one.position else "",
                way_out="Usual are ε up to 1 or 2 and δ far below 1 over the number of individuals.",
            )
