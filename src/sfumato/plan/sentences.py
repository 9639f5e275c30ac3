"""What a publication is about, in sentences that plan, report, explanation and README share.

In:   a Plan; a settled publication, the network.
Out:  sentences: whose identifiers are shown, what each number is, what somebody learns exactly.
Not here: errors in words (evidence/figures.py), what a number is (network/meaning.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator

from sfumato.lang.fair import fair_wish
from sfumato.lang.spec import EVERYONE
from sfumato.lang.term import show
from sfumato.network.meaning import meaning_of
from sfumato.network.network import Network
from sfumato.plan.plan import Plan, Planned
from sfumato.plan.request import template_of

__all__ = ["LISTED", "NONNEGATIVE", "exact_sentences", "history_sentences", "part_sentences", "with_meaning"]

#: Said of every publication with a row for each individual.
LISTED = (
    "Who is listed is shown as it is: each row stands beside its individual's identifier, and no noise hides that "
    "somebody is in the data. What is protected is what the data say about them."
)


#: Said of counts that were moved.
NONNEGATIVE = (
    "Every table was moved to the nearest one without negative counts that has the same total, as the study asks "
    "(nonnegative): its numbers are biased, small ones upwards and large ones downwards, and different tables need not "
    "agree any more. standard_error, low and high are those of the unbiased numbers, the ends cut at 0."
)


#: Said of numbers that were rounded.
WHOLE = (
    "Its numbers are rounded to whole ones, as the study asks (whole): the ends of intervals outwards, so that these "
    "hold as before, and standard_error counts what rounding adds."
)


def exact_sentences(plan: Plan, observers: Collection[str] | None = None) -> tuple[str, ...]:
    """Who learns what without noise, by observe and reveal lines: all of it, or what concerns these observers.

    A promise towards everybody concerns every observer.
    """
    found: dict[str, list[str]] = {}
    for observer, variable in plan.extras.get("exact", ()):
        if observers is None or observer in observers or EVERYONE in observers:
            found.setdefault(observer, []).append(variable)
    return tuple(
        f"{observer} learns {', '.join(variables)} exactly, by an observe or reveal line of the study: no noise hides "
        f"it, and nothing is promised towards {observer} about it, nor about what follows from it."
        for observer, variables in found.items()
    )


def history_sentences(plan: Plan) -> tuple[str, ...]:
    """Of a step of a history: over how many steps each promise is shared out, and what all of them together keep."""
    used = {planned.requirement for planned in plan.publications}
    return tuple(
        f"This is step {plan.extras['step']} of a history. {name} promises {whole} about everything that its {shares} "
        f"step{'s' if shares != 1 else ''} publish{'es' if shares == 1 else ''} together; what is stated here is this "
        "release's share of it."
        for name, (shares, whole) in plan.extras.get("shares", {}).items()
        if name in used
    )


def part_sentences(plan: Plan) -> tuple[str, ...]:
    """Where datasets divide the same people: what each promise is about, and what holds for a whole person."""
    found = []
    for name, (whole, what, by_people) in plan.extras.get("parts", {}).items():
        about = f"people with {what}, a public group" if by_people else f"{what} of each individual"
        own = [promise for promise in plan.promises if all(one.endswith(f" ({name})") for one in promise.observers)]
        for promise in own:
            who = " and ".join(one.removesuffix(f" ({name})") for one in promise.observers)
            found.append(
                f"{name} is {about}. As far as only that changes, {promise.asked} holds for everything {who} sees, "
                f"under whichever requirement. {_whole_of(plan, whole, by_people)}"
            )
    return (*dict.fromkeys(found), *_owner_sentences(plan))


def _owner_sentences(plan: Plan) -> Iterator[str]:
    """Of things with owners: why what holds for one thing holds for all things of one owner."""
    for observer, owners, unit, most, things, asked in plan.extras.get("owners", ()):
        yield (
            f"Each {things} belongs to one of {owners} by a public table, in which no {unit} has more than {most}. The "
            f"noise is so wide that everything of {most} of them may change at once and {asked} still holds towards "
            f"{observer}."
        )


def _whole_of(plan: Plan, whole: str, by_people: bool) -> str:
    if by_people:
        return "Who is in which group is public; a replaced person stays in theirs."
    return f"For all data of one individual at once it is what everything costs together: {plan.cost(whole)}."


def _known(planned: Planned, network: Network) -> tuple[str, ...]:
    """Where an observer knows some of the cells behind what it is shown: what the file holds, and what it is for."""
    names = [seen.node for seen in planned.seen] if planned.listed else []
    templates = [template_of(network, group, names, planned.observer) for group in network.groups]
    known = sorted(frozenset().union(*(one.observed for one in templates if one is not None)))
    if not known or not planned.cut:
        return ()
    cells, noisy, shown = ", ".join(known), ", ".join(planned.cut), ", ".join(dict.fromkeys(names))
    return (
        f"{planned.observer} knows {cells} exactly, so no noise is spent on it: the file holds {noisy} with noise, and "
        f"{planned.observer} computes {shown} from it and from what it knows, as sfumato view does. The error stated "
        "is that of the result.",
    )


def with_meaning(planned: Planned, network: Network) -> Planned:
    """The publication with all that must be known to read it; it stays in the plan's file, which has no network."""
    listed = (*((LISTED,) if planned.listed else ()), *_known(planned, network))
    meaning = meaning_of(network, (seen.node for seen in planned.seen))
    moved = any(one.publication == planned.name for one in network.spec.nonnegative)
    rounded = any(one.publication == planned.name for one in network.spec.whole)
    said = (*((NONNEGATIVE,) if moved else ()), *((WHOLE,) if rounded else ()), *_fair(planned, network))
    return dataclasses.replace(planned, about=(*listed, *meaning, *said))


def _fair(planned: Planned, network: Network) -> tuple[str, ...]:
    """Between whom a rule has to be fair, how surely, and what that costs in general."""
    wish = fair_wish(network.spec, planned.name)
    if wish is None:
        return ()
    one, holds = wish.requirement, wish.holds
    people = "in the population" if holds.where == "population" else "among the people it is measured on"
    return (
        f"It has to be fair ({one.name}): {one.measure.replace('_', ' ')} between values of {show(one.group)} within "
        f"{one.gap:g} {people}, with confidence {100 * holds.confidence:g} %. It is learned on one portion of the "
        "people and measured, with noise, on another; a part of its answers then becomes the same for everybody, as "
        "large as fairness needs. Its error is that part of the error of a constant, and the rest of its own.",
    )
