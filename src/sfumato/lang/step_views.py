"""Who sees several steps of a study together: colluders, and everybody who sees what everyone sees.

In:   requirements, who colludes, the steps, every clause of the study.
Out:  what is wrong: a promise to several observers together that no step's plan would know of.
Not here: shares of a promise (lang/shares.py), what they see at one step (plan/settle.py).
Proof: docs/proofs/time_steps.md

Every step is planned by itself, with those who are shown something then. So of a group that colludes one member has to
be there at each of its steps, with the largest share: then the group sees at most that one's share each time, and its
whole promise in all. One observer has one promise about a dataset, since two would add up. What everyone sees counts
for each other observer, who has to be there when it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sfumato.core import Guarantee
from sfumato.errors import InputError
from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause
from sfumato.lang.spec import EVERYONE, Collusion, PrivacyRequirement
from sfumato.lang.steps import Step, shared_out, steps_of
from sfumato.lang.term import Position, Term, show

__all__ = ["views_over_steps"]

#: What an observer is promised of one dataset at a step, and the steps it is shown something of it.
_Shown = Mapping[str, tuple[Guarantee, frozenset[int]]]


def views_over_steps(
    requirements: Sequence[PrivacyRequirement],
    collusions: Sequence[Collusion],
    steps: Sequence[Step],
    clauses: Sequence[Clause],
) -> Iterator[Problem]:
    """What several observers would see together beyond the promise to them, because it is shown at different steps."""
    wholes = [_as_a_whole(one) for one in requirements]
    shares, _ = shared_out(wholes, steps, clauses)
    times = {one.name: steps_of(one, steps, clauses) for one in wholes}
    yield from _twice(shares, times)
    seen: dict[tuple[str, str, bool], frozenset[int]] = {}
    for one in shares:  # by whichever name: promises to several owners bind all that is shown of their things
        key = one.dataset, one.observer, one.owner is None
        seen[key] = seen.get(key, frozenset()) | times[one.name]
    kept: dict[tuple[str, str | None], dict[str, tuple[Guarantee, frozenset[int]]]] = {}
    for one in shares:
        if numbers := seen[one.dataset, one.observer, one.owner is None]:
            kept.setdefault((one.dataset, one.owner), {})[one.observer] = one.guarantee, numbers
    for (dataset, owner), shown in kept.items():
        yield from _colluding(shown, collusions)
        yield from _with_everyone(shown, requirements)
        if owner is not None:
            yield from _beside_things(dataset, owner, shown, kept.get((dataset, None), {}), collusions, requirements)


def _twice(own: Sequence[PrivacyRequirement], times: Mapping[Term, frozenset[int]]) -> Iterator[Problem]:
    """Two promises to one observer about the same people: what is shown under both adds up, at whichever steps."""
    first: dict[tuple[str, str, str | None], PrivacyRequirement] = {}
    for one in own:
        other = first.setdefault((one.observer, one.dataset, one.owner), one) if times[one.name] else one
        if other is not one:
            yield Problem(
                "error",
                "step",
                f"{one.observer} has two requirements on {one.dataset}, {show(other.name)} and {show(one.name)}, and "
                "sees what both publish, at whichever steps",
                one.position or Position("study", 1, 1),
                way_out="Put all of it under one requirement, whose promise is shared out over the steps.",
            )


def _colluding(shown: _Shown, collusions: Sequence[Collusion]) -> Iterator[Problem]:
    """Those who put together what they see at steps that no promise to one of them covers."""
    for group in collusions:
        members = {who: shown[who] for who in sorted(group.observers & shown.keys())}
        if len(members) > 1 and not any(_leads(who, members) for who in members):
            yield _problem(f"{' and '.join(members)} collude", members, group.position)


def _with_everyone(shown: _Shown, requirements: Sequence[PrivacyRequirement]) -> Iterator[Problem]:
    """Those who see what everyone sees at a step at which nothing is planned for them."""
    if EVERYONE not in shown:
        return
    place = _place(EVERYONE, requirements)
    for who in sorted(shown.keys() - {EVERYONE}):
        if not shown[EVERYONE][1] <= shown[who][1]:
            members = {EVERYONE: shown[EVERYONE], who: shown[who]}
            yield _problem(f"what everyone sees {who} sees too", members, place)


def _beside_things(
    dataset: str,
    owner: str,
    owners: _Shown,
    things: _Shown,
    collusions: Sequence[Collusion],
    requirements: Sequence[PrivacyRequirement],
) -> Iterator[Problem]:
    """Promises to owners beside promises about their things themselves: what is shown of a thing tells about both.

    Neither is a share of the other, so that none of those who collude leads: all are there at the same steps.
    """
    for who in sorted(owners.keys() & things.keys()):
        yield Problem(
            "error",
            "step",
            f"{who} has a requirement on {owner} and one on {dataset}, which are theirs, and sees what both publish, "
            "at whichever steps",
            _place(who, requirements),
            way_out=f"Publish all of it under the requirement on {owner}, whose promise is shared out over the steps.",
        )
    for some, others in ((owners, things), (things, owners)):
        if EVERYONE in some:
            yield from _with_everyone({**others, EVERYONE: some[EVERYONE]}, requirements)
    for group in collusions:
        members = {who: {**things, **owners}[who] for who in sorted(group.observers & {*things, *owners})}
        both = members.keys() & owners.keys() and members.keys() & things.keys()
        if both and len({numbers for _, numbers in members.values()}) > 1:
            yield _problem(f"{' and '.join(members)} collude", members, group.position)


def _place(who: str, requirements: Sequence[PrivacyRequirement]) -> Position:
    places = (one.position for one in requirements if one.observer == who and one.position is not None)
    return next(places, Position("study", 1, 1))


def _as_a_whole(requirement: PrivacyRequirement) -> PrivacyRequirement:
    return requirement if requirement.whole is None else replace(requirement, guarantee=requirement.whole, whole=None)


def _leads(who: str, members: _Shown) -> bool:
    """Whether the others are shown nothing without this one, and have no larger share."""
    share, numbers = members[who]
    return all(others <= numbers and _is_within(other, share) for other, others in members.values())


def _is_within(share: Guarantee, other: Guarantee) -> bool:
    try:
        return share == other or share.implies(other) is True
    except InputError:  # promises of different kinds are no shares of each other
        return False


def _problem(said: str, members: _Shown, position: Position | None) -> Problem:
    times = "; ".join(f"{who} at {', '.join(map(str, sorted(numbers)))}" for who, (_, numbers) in members.items())
    return Problem(
        "error",
        "step",
        f"{said}, each step is planned with those who are shown something then, and no promise to one of them covers "
        f"what they see in all ({times})",
        position or Position("study", 1, 1),
        way_out="Publish at the same steps what is for them, with one promise; or make them one observer.",
    )
