"""Several promises about the same people: datasets that hold some of their variables, or some of the people.

In:   declared datasets and requirements.
Out:  one dataset for each kind of individual, its parts, requirements that name the part they are about.
Not here: whether a publication keeps to its part (plan/units.py).

`instance_rv` gives a dataset some variables of each individual, `domain(P, (patient(P), vip(P)))` some individuals by a
public condition. What one part's requirement publishes may rest on that part alone, so the promises of different parts
do not add up for what they are about; for a whole person they do, and the ledger counts whole persons.
Proof: docs/proofs/units.md
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause, goals
from sfumato.lang.spec import EVERYONE, Dataset, PrivacyRequirement
from sfumato.lang.term import Compound, Position, Term, children, indicator, show
from sfumato.lang.whose import Division

__all__ = ["Divided", "check_divisions", "divided"]


@dataclass(frozen=True)
class Divided:
    """Datasets of whole individuals, their parts, the requirements on them, and what is wrong."""

    datasets: tuple[Dataset, ...]
    divisions: tuple[Division, ...]
    requirements: tuple[PrivacyRequirement, ...]
    problems: tuple[Problem, ...] = ()


def divided(
    datasets: Sequence[Dataset], requirements: Sequence[PrivacyRequirement], clauses: Sequence[Clause]
) -> Divided:
    """The same datasets and requirements, those about parts of the same individuals put under one dataset."""
    listing = {show(c.head.arguments[0]) for c in clauses if indicator(c.head) == "instance_rv/3"}
    asked = {requirement.dataset for requirement in requirements}
    wholes: list[Dataset] = []
    parts: list[Division] = []
    problems: list[Problem] = []
    for family in _families(datasets):
        if not _has_parts(family, asked):
            wholes += family
            continue
        if (wrong := _wrong(family, listing)) is not None:
            problems.append(wrong)
            wholes += family
            continue
        whole = _whole(family[0], datasets)
        wholes.append(whole)
        parts += [Division(one.name, whole.name, _condition(one), one.variable, one.position) for one in family]
    where = {part.name: part for part in parts}
    problems += _seen_by_all(requirements, where)
    moved = tuple(_moved(one, where) for one in requirements)
    return Divided(tuple(wholes), tuple(parts), moved, tuple(problems))


def _kind(dataset: Dataset) -> str:
    """The predicate of the first goal: who the individuals are."""
    return indicator(goals(dataset.goal)[0])


def _condition(dataset: Dataset) -> tuple[Term, ...]:
    return tuple(goals(dataset.goal)[1:])


def _whole(dataset: Dataset, datasets: Sequence[Dataset]) -> Dataset:
    """The dataset of whole individuals behind a family: named after what they are."""
    goal = goals(dataset.goal)[0]
    assert isinstance(goal, Compound)
    taken = {one.name for one in datasets}
    name = goal.functor if goal.functor not in taken else f"all_{goal.functor}"
    return replace(dataset, name=name, goal=goal)


def _moved(requirement: PrivacyRequirement, parts: Mapping[str, Division]) -> PrivacyRequirement:
    """A requirement on a part: towards the same observer, as far as this part is concerned."""
    part = parts.get(requirement.dataset)
    if part is None:
        return requirement
    observer = f"{requirement.observer} ({part.name})"
    return replace(requirement, observer=observer, dataset=part.whole, division=part.name)


def _seen_by_all(requirements: Sequence[PrivacyRequirement], parts: Mapping[str, Division]) -> Iterator[Problem]:
    """What everyone sees of a part each other observer of it sees too, and nobody would count it for them."""
    for one in requirements:
        others = {other.observer for other in requirements if other.dataset == one.dataset} - {EVERYONE}
        if one.observer == EVERYONE and one.dataset in parts and others:
            yield Problem(
                "error",
                "parts",
                f"what everyone sees of {one.dataset} {' and '.join(sorted(others))} sees too, and of parts of "
                "the same people each observer's promise is counted by itself",
                one.position or Position("study", 1, 1),
                way_out="Name who sees it, as in openness(public), instead of everyone; or declare one dataset.",
            )


def _families(datasets: Sequence[Dataset]) -> list[list[Dataset]]:
    """Datasets of the same kind of individuals, side by side."""
    families: dict[str, list[Dataset]] = {}
    for dataset in datasets:
        families.setdefault(_kind(dataset), []).append(dataset)
    return list(families.values())


def _has_parts(family: Sequence[Dataset], asked: set[str]) -> bool:
    """Whether a family is one of parts: promises are made about several of it, or about some of the people."""
    used = [one for one in family if one.name in asked]
    return len(used) > 1 or any(len(goals(one.goal)) != 1 for one in family)


def _wrong(family: Sequence[Dataset], listing: set[str]) -> Problem | None:
    names = " and ".join(one.name for one in family)
    first = family[0]
    by_people = list(filter(_condition, family))
    by_cells = [one for one in family if one.name in listing]
    if {one.adjacency.relation for one in family} != {"replace-one"}:
        return _problem(
            first,
            f"{names} are parts of the same people, and who is among them is protected too: a person's "
            "presence belongs to no part",
            "Take adjacency(…, add_remove) out, or declare one dataset.",
        )
    if by_people and by_cells:
        return _problem(
            first, f"{names} divide the same people by groups and by variables at once", "Divide them in one way."
        )
    if len(family) in (len(by_people), len(by_cells)):
        return None
    return _holds_all(family, [*by_people, *by_cells])


def _holds_all(family: Sequence[Dataset], parts: Sequence[Dataset]) -> Problem:
    names = " and ".join(one.name for one in family)
    others = [one.name for one in family if one not in parts]
    way_out = (
        "Use one dataset for both; or say which variables each of them holds (instance_rv), or which people, by a "
        "public table (domain(P, (patient(P), vip(P))))."
    )
    wrong = (
        f"{names} are about the same individuals, and {' and '.join(others)} holds all of them: promises would add up"
    )
    return _problem(family[0], wrong, way_out)


def _problem(dataset: Dataset, message: str, way_out: str) -> Problem:
    position = dataset.position or Position("study", 1, 1)
    return Problem("error", "parts", message, position, way_out=way_out)


def check_divisions(
    parts: Sequence[Division], clauses: Sequence[Clause], private: Mapping[str, bool], random: frozenset[str]
) -> Iterator[Problem]:
    """Who belongs to which group must be public. `private` says of every predicate a table feeds whether it is not."""
    defined: dict[str, list[Clause]] = {}
    for clause in clauses:
        defined.setdefault(indicator(clause.head), []).append(clause)
    for part in parts:
        for goal in part.condition:
            secret = _secret(goal, defined, private, random)
            if secret is not None:
                yield Problem(
                    "error",
                    "private-group",
                    f"{part.name} are the people with {show(goal)}, which rests on private data ({secret}). Nobody can "
                    "be promised less for what nobody may know: two people across the border need the stricter "
                    "promise, any two on the lax side are two such pairs apart, so the lax promise would buy at most a "
                    "factor of 2, and the noise would tell who is on which side",
                    part.position or Position("study", 1, 1),
                    way_out="Declare the table that says it public, or promise everybody the same.",
                )


def _secret(
    goal: Term, defined: Mapping[str, Sequence[Clause]], private: Mapping[str, bool], random: frozenset[str]
) -> str | None:
    """A private predicate or a random variable that a condition rests on, wherever it stands in it."""
    waiting, seen = [goal], set()
    while waiting:
        for part in _parts(waiting.pop(), {*defined, *private}):
            name = indicator(part)
            if private.get(name) or name in random:
                return name
            if name not in seen:
                seen.add(name)
                waiting += [clause.body for clause in defined.get(name, ()) if clause.body is not None]
    return None


def _parts(goal: Term, predicates: Collection[str]) -> Iterator[Term]:
    """All that stands in a condition, but for the words that a predicate is asked about: `vip` of in(P, vip)."""
    yield goal
    for part in children(goal):
        is_word = isinstance(part, Compound) and not part.arguments
        if not (is_word and indicator(goal) in predicates):
            yield from _parts(part, predicates)
