"""Promises to whole centres, as promises to their individuals.

In:   declarations with dataset(D, domain(C, centre(C))), a requirement on D, persons_per_centre(People, N).
Out:  the requirement on the individuals that implies it, and what it was made from; problems.
Not here: whether a centre has no more individuals than that (run/centre_part.py), noise (plan/).
Proof: docs/proofs/centre_sums.md, "A whole centre"

A centre with at most N individuals is a group of N: what protects each of them N times as well protects the centre.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.core.one_of_several import for_one_of
from sfumato.lang.problem import Problem
from sfumato.lang.spec import CentrePromise, Dataset, PrivacyRequirement
from sfumato.lang.term import Position, indicator

if TYPE_CHECKING:
    from sfumato.lang.declared import Declared

__all__ = ["protect_centres", "uncounted"]

_CENTRE = "centre/1"


def protect_centres(declared: Declared) -> Iterator[Problem]:
    """Rewrites, in place, every requirement on centres."""
    units = {one.name: one for one in declared.datasets if indicator(one.goal) == _CENTRE}
    if units:
        yield from _rewrite_all(declared, units)


def _rewrite_all(declared: Declared, units: dict[str, Dataset]) -> Iterator[Problem]:
    people = [one for one in declared.datasets if one.name not in units]
    asked = [one for one in declared.requirements if one.dataset in units]
    declared.datasets = people
    declared.requirements = [one for one in declared.requirements if one not in asked]
    for requirement in asked:
        wrong = _wrong(declared, units[requirement.dataset], people) or _rewritten(declared, requirement, people[0])
        if wrong:
            yield _problem(wrong, requirement.position)


def _rewritten(declared: Declared, requirement: PrivacyRequirement, owner: Dataset) -> str | None:
    """Puts the requirement on one person in the place of that on a centre; why not, where there is none."""
    most = declared.persons_per_centre[owner.name]
    part = for_one_of(requirement.guarantee, most)
    if part is None:
        return "a promise to centres is dp(…), gdp(…) or zcdp(…)"
    declared.centre_promises.append(CentrePromise(requirement.name, requirement.guarantee, owner.name, most))
    declared.requirements.append(
        dataclasses.replace(requirement, dataset=owner.name, guarantee=part.under(owner.adjacency))
    )
    return None


def _wrong(declared: Declared, unit: Dataset, people: list[Dataset]) -> str:
    if len(people) != 1:
        return f"{unit.name} are centres, and {len(people)} datasets say whose rows they hold: there must be one"
    if unit.adjacency.relation != "replace-one" or people[0].adjacency.relation != "replace-one":
        return "a promise to centres needs datasets in which one is replaced: how many people a centre has is public"
    if people[0].name not in declared.persons_per_centre:
        return f"nothing says how many of {people[0].name} a centre has at most"
    return ""


def uncounted(declared: Declared) -> Iterator[Problem]:
    """Promises to centres with so many of somebody whom no centre counts: a public group, owners of things.

    Such a dataset has become one of everybody, or of the things; a centre would count nobody and take part.
    """
    known = {one.name for one in declared.datasets}
    places = {one.name: one.position for one in declared.requirements}
    for one in declared.centre_promises:
        if one.dataset not in known:
            yield Problem(
                "error",
                "centre-units",
                f"persons_per_centre({one.dataset}, {one.most}) counts a part of the individuals or the owners of "
                "things, and a centre knows how many individuals its own tables name",
                places.get(one.name) or Position("study", 1, 1),
                way_out="Declare one dataset of all individuals, dataset(people, domain(P, person(P))), or of the "
                "things, say persons_per_centre of it, and name the group in the goal: "
                "sum(s, x(P), (person(P), in(P, vip))).",
            )


def _problem(message: str, position: Position | None) -> Problem:
    way_out = (
        "Write dataset(people, domain(P, person(P))), dataset(hospitals, domain(C, centre(C))) and "
        "persons_per_centre(people, N)."
    )
    return Problem("error", "centre-units", message, position or Position("study", 1, 1), way_out=way_out)
