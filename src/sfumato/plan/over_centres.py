"""Which way a study over several institutions goes: every way settled, the one of least predicted loss taken.

In:   a study's centres and wishes; a function that settles all of it one way.
Out:  the settled study, the other ways among the alternatives of each publication with their errors.
Not here: the ways themselves (plan/sharing.py), seconds and bytes (run/publish_centres.py).

A study goes one way: its sums are opened together. prefer and forbid of any publication bind all of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from sfumato.errors import PlanError
from sfumato.lang.spec import Spec
from sfumato.lang.term import show
from sfumato.plan.mixed import Mixed
from sfumato.plan.plan import Considered, Planned
from sfumato.plan.request import Request
from sfumato.plan.sharing import Sharing, centres_of, check_left, ways_of
from sfumato.plan.wishes import forbidden_by, preferred_by

__all__ = ["assumed_of_centres", "needs_one_party", "settle_over_centres"]

Settle = Callable[[Sharing | None], list[Mixed]]
_CENTRAL = "central"
#: Where every publication's loss is this close it is one: the way that needs the least trust is taken.
_SAME = 1 + 1e-3


def assumed_of_centres(spec: Spec) -> list[str]:
    """What everybody who adds up over centres takes for granted."""
    names = centres_of(spec)
    if len(names) < 2:
        return []
    promised = [
        f"{show(one.name)} protects whole centres: {one.guarantee.describe()}, if any of them had other rows. Each has "
        f"at most {one.most} individuals of {one.dataset}, and refuses to take part if it has more; the promise to "
        "each of these is what is planned for."
        for one in spec.centre_promises
    ]
    within = [
        f"what {' and '.join(sorted(spec.inside))} may see inside a centre is not part of this plan: each centre "
        "publishes it from its own rows (sfumato run … --inside CENTRE), and its ledger counts both."
    ]
    alone = f"every individual has rows at one of the centres alone ({', '.join(names)})."
    return [alone, *promised, *(within if spec.inside else [])]


def needs_one_party(request: Request) -> PlanError:
    """What is no sum cannot be added up."""
    return PlanError(
        f"{request.position}{request.name} is made from the rows themselves, and no party sees the rows of all "
        "centres. Name who may see them, trusted(Party), or let each centre publish its own from a study of its own. "
        "Nothing was planned and nothing was spent."
    )


def _taken(settled: Mapping[Sharing | None, list[Mixed]], wished: list[str]) -> Sharing | None:
    """The first way of about the least error, in each publication, among those that are wished most.

    Not in their sum: one that says nothing whichever way is taken would hide what the others lose.
    """
    most = max(wished.count(_name(way)) for way in settled)
    losses = {
        way: [loss for mixed in one for loss in mixed.losses]
        for way, one in settled.items()
        if wished.count(_name(way)) == most
    }
    least = min(losses.values(), key=math.fsum)
    return next(way for way, own in losses.items() if all(a <= b * _SAME for a, b in zip(own, least, strict=True)))


def settle_over_centres(spec: Spec, requests: Sequence[Request], settle: Settle) -> list[Mixed]:
    """The study settled the way that its wishes and the errors decide."""
    ways = ways_of(spec)
    if len(ways) == 1:
        return settle(ways[0])
    banned, wished = forbidden_by(requests), preferred_by(requests)
    usable = _usable(ways, banned)
    check_left(_open_ways(usable, wished), banned, requests[0].position)
    settled, refusals = _settled(usable, settle)
    open_ways = _open_ways(settled, wished)
    if not open_ways:
        raise next(iter(refusals.values()))
    taken = _taken({way: settled[way] for way in open_ways}, wished)
    others = [way for way in ways if way != taken]
    why = _reasons(others, refusals, banned)
    return [_told(one, taken, others, settled, why, wished, place) for place, one in enumerate(settled[taken])]


def _usable(ways: Iterable[Sharing | None], banned: set[str]) -> tuple[Sharing | None, ...]:
    """Those that the study does not forbid and that its centres can go."""
    return tuple(way for way in ways if _name(way) not in banned and not (way and way.refusal()))


def _open_ways(ways: Iterable[Sharing | None], wished: Sequence[str]) -> tuple[Sharing | None, ...]:
    """Those that may be taken: some only where the study prefers them."""
    return tuple(way for way in ways if way is None or not way.only_preferred or way.way in wished)


def _settled(
    ways: Sequence[Sharing | None], settle: Settle
) -> tuple[dict[Sharing | None, list[Mixed]], dict[Sharing | None, PlanError]]:
    settled: dict[Sharing | None, list[Mixed]] = {}
    refusals: dict[Sharing | None, PlanError] = {}
    for way in ways:
        try:
            settled[way] = settle(way)
        except PlanError as refusal:  # what one way cannot do another may
            refusals[way] = refusal
    return settled, refusals


def _reasons(
    ways: Sequence[Sharing | None], refusals: Mapping[Sharing | None, PlanError], banned: set[str]
) -> dict[Sharing | None, str]:
    """Of each way that was not settled why, in one sentence."""
    found = {way: str(error).partition(". ")[0] for way, error in refusals.items()}
    found |= {way: text for way in ways if way is not None and (text := way.refusal())}
    return found | {way: "the study forbids it" for way in ways if _name(way) in banned}


def _name(way: Sharing | None) -> str:
    return way.way if way is not None else _CENTRAL


def _called(way: Sharing | None) -> str:
    return way.words if way is not None else "noise at the trusted party"


def _told(
    mixed: Mixed,
    taken: Sharing | None,
    others: Sequence[Sharing | None],
    settled: Mapping[Sharing | None, list[Mixed]],
    why: Mapping[Sharing | None, str],
    wished: Sequence[str],
    place: int,
) -> Mixed:
    """The same, each publication with the ways that were not taken and why."""
    found = []
    for planned in mixed.planned:
        considered = [_beside(planned, way, settled.get(way), why, place) for way in others]
        reason = planned.reason + _followed(taken, wished, why)
        alternatives = (*planned.alternatives, *(one for one in considered if one is not None))
        found.append(dataclasses.replace(planned, reason=reason, alternatives=alternatives))
    return dataclasses.replace(mixed, planned=tuple(found))


def _beside(
    mine: Planned, way: Sharing | None, settled: Sequence[Mixed] | None, why: Mapping[Sharing | None, str], place: int
) -> Considered | None:
    if not mine.cut:
        return None  # nobody can move it: every way gives the exact number
    if settled is None:
        return Considered(_called(way), None, why[way])
    theirs = next(one for one in settled[place].planned if (one.name, one.observer) == (mine.name, mine.observer))
    trust = way.trust if way is not None else "the party that sees all rows"
    ratio = f"{theirs.error / mine.error:.3g} times the error" if mine.error > 0 else "no better"
    return Considered(_called(way), theirs.error, f"{ratio}; one has to trust {trust}", theirs.cut)


def _followed(taken: Sharing | None, wished: Sequence[str], why: Mapping[Sharing | None, str]) -> str:
    named = [name for name in dict.fromkeys(wished) if name in ("local", "masks", "each_centre", _CENTRAL)]
    if not named:
        return ""
    wish = f"; the study prefers {' or '.join(named)}"
    if _name(taken) in named:
        return wish
    reasons = "; ".join(text for way, text in why.items() if _name(way) in named)
    return f"{wish}, which cannot be used here{f': {reasons}' if reasons else ''}"
