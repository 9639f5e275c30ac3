"""What a study says of fairness: between whom, by which measure, of which publication, and how surely.

In:   the arguments of fairness_requirement/3, fair_rv/2 and fairness_holds/3.
Out:  declarations, the wish of one publication, and problems of those that fit nothing.
Not here: how a rule is made fair (core/fairness.py, docs/proofs/fairness.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sfumato.core import Categories
from sfumato.core.fairness import Fairness
from sfumato.errors import InputError
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.term import Compound, Number, Position, Term, called, indicator, match, show
from sfumato.questions.registry import kind_called

if TYPE_CHECKING:
    from sfumato.lang.spec import Spec

__all__ = ["MEASURES", "FairRv", "FairWish", "FairnessHolds", "FairnessRequirement", "check_fairness", "fair_wish"]
__all__ += ["fair_rv", "fairness_holds", "fairness_requirement"]

MEASURES = {
    "demographic_parity/1": "demographic_parity(Gap)",
    "equal_opportunity/1": "equal_opportunity(Gap)",
    "equalized_odds/1": "equalized_odds(Gap)",
}


@dataclass(frozen=True, slots=True)
class FairnessRequirement:
    """fairness_requirement(Name, Group, Measure): no gap above Measure's number between values of Group."""

    name: str
    group: Compound
    measure: str
    gap: float
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FairRv:
    """fair_rv(Name, Publication): the publication must satisfy the requirement."""

    name: str
    publication: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FairnessHolds:
    """fairness_holds(Name, on(population) or on(rows), Confidence)."""

    name: str
    where: str
    confidence: float
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True)
class FairWish:
    """All that is asked of one publication; `groups` come from the range of `group`."""

    requirement: FairnessRequirement
    holds: FairnessHolds

    def between(self, groups: Iterable[Any]) -> Fairness:
        one, holds = self.requirement, self.holds
        return Fairness(one.measure, one.gap, tuple(map(str, groups)), holds.where, holds.confidence)  # type: ignore[arg-type]  # checked there


def _name(term: Term, what: str) -> str:
    if isinstance(term, Compound):
        return called(term)
    raise InputError(f"{what} must be a name, not {show(term)[:60]}")


def fairness_requirement(given: tuple[Term, ...], position: Position | None) -> FairnessRequirement:
    name, group, measure = given
    if not isinstance(group, Compound) or not group.arguments:
        raise InputError(f"groups are the values of a variable such as sex(P), not {show(group)[:60]}")
    if indicator(measure) not in MEASURES or not isinstance(measure, Compound):
        raise InputError(f"{show(measure)[:60]} is no measure of fairness. There are: {', '.join(MEASURES.values())}")
    (gap,) = measure.arguments
    if not isinstance(gap, Number) or not 0 < gap.value < 1:
        raise InputError("a gap lies between 0 and 1; only a constant rule has a gap of 0, and every rule one of 1")
    return FairnessRequirement(_name(name, "a requirement"), group, measure.functor, float(gap.value), position)


def fair_rv(given: tuple[Term, ...], position: Position | None) -> FairRv:
    return FairRv(_name(given[0], "a requirement"), _name(given[1], "a publication"), position)


def fairness_holds(given: tuple[Term, ...], position: Position | None) -> FairnessHolds:
    name, place, confidence = given
    where = place.arguments[0] if isinstance(place, Compound) and indicator(place) == "on/1" else None
    if where is None or called(where) not in ("population", "rows"):
        raise InputError(f"it holds on(population) or on(rows), not {show(place)[:60]}")
    if not isinstance(confidence, Number) or not 0.5 <= confidence.value < 1:
        raise InputError("a confidence lies between 0.5 and 1, for instance 0.95")
    return FairnessHolds(_name(name, "a requirement"), called(where), float(confidence.value), position)


def fair_wish(spec: Spec, publication: str) -> FairWish | None:
    """What is asked of a publication; None where nothing is."""
    for one in spec.fair_rvs:
        if one.publication == publication:
            requirement = next(known for known in spec.fairness if known.name == one.name)
            return FairWish(requirement, next(known for known in spec.fairness_holds if known.name == one.name))
    return None


def check_fairness(spec: Spec) -> Iterator[Problem]:
    """Every declaration that fits nothing, or that leaves open what it means."""
    known = {one.name for one in spec.fairness}
    yield from _unknown(spec, known)
    yield from _twice(spec)
    heads = [clause.head for clause in spec.clauses if indicator(clause.head) == "publish/3"]
    published = {called(head.arguments[0]): head.arguments[1] for head in heads}
    for one in spec.fair_rvs:
        what = published.get(one.publication)
        if what is None:
            close = nearest(one.publication, published)
            yield _problem(
                spec, f"nothing is published as {one.publication}", one.position, "Name a publication.", close
            )
        elif not isinstance(what, Compound) or not kind_called(what.functor).may_be_fair:
            yield _problem(
                spec,
                f"{one.publication} is no classifier: only a rule that says yes or no can treat groups alike",
                one.position,
                "Publish classifier(label(P), [feature(P)]), or take the line out.",
            )
    for one in spec.fairness:
        yield from _unfinished(spec, one)


def _unfinished(spec: Spec, one: FairnessRequirement) -> Iterator[Problem]:
    if one.name not in {used.name for used in spec.fair_rvs}:
        yield _problem(
            spec, f"nothing has to satisfy {one.name}", one.position, f"Add fair_rv({one.name}, Publication)."
        )
    if one.name not in {said.name for said in spec.fairness_holds}:
        yield _problem(
            spec,
            f"nothing says of whom {one.name} must hold, and how surely",
            one.position,
            f"Add fairness_holds({one.name}, on(population), 0.95), or on(rows) for the people who are measured.",
        )
    if not any(isinstance(r.domain, Categories) and match(r.atom_pattern, one.group) is not None for r in spec.ranges):
        yield _problem(
            spec,
            f"the groups of {one.name} are not listed: {show(one.group)} has no range of categories",
            one.position,
            f"Declare range({show(one.group)}, [first, second]).",
        )


def _unknown(spec: Spec, known: set[str]) -> Iterator[Problem]:
    for one in (*spec.fair_rvs, *spec.fairness_holds):
        if one.name not in known:
            yield _problem(
                spec,
                f"the fairness requirement {one.name} is not declared",
                one.position,
                f"Declare it: fairness_requirement({one.name}, sex(P), demographic_parity(0.05)).",
                nearest(one.name, known),
            )


def _twice(spec: Spec) -> Iterator[Problem]:
    for listed, what in (
        ([one.name for one in spec.fairness], "is declared twice"),
        ([one.name for one in spec.fairness_holds], "is said twice to hold"),
        (
            [one.publication for one in spec.fair_rvs],
            "has two fairness requirements: where groups differ in how many have the label, parity and odds together "
            "leave next to nothing but constant rules",
        ),
    ):
        for name in sorted({name for name in listed if listed.count(name) > 1}):
            entries = (*spec.fair_rvs, *spec.fairness_holds, *spec.fairness)
            place = next(one.position for one in entries if name in (one.name, getattr(one, "publication", "")))
            yield _problem(spec, f"{name} {what}", place, "Keep one of them.")


def _problem(spec: Spec, message: str, position: Position | None, way_out: str, close: str | None = None) -> Problem:
    text = next((clause.text for clause in spec.clauses if clause.position == position), "")
    return Problem(
        "error", "fairness", message, position or Position("study", 1, 1), text, nearest=close, way_out=way_out
    )
