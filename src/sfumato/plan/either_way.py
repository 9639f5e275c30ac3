"""Answers that can be drawn themselves or read off noisy sums: both settled with all that shares their promise.

In:   the requests of one dataset, a function that settles them.
Out:  the dataset settled the way of the smaller weighted loss, the other way among the alternatives.
Not here: which answers have two ways (plan/request.py, questions/), settling (plan/make.py).

A drawn answer has a portion of the budget for itself; an answer read off sums shares noise with the other sums. Which
is better depends on all publications under the promise, so all of them are predicted both ways. A way that makes one of
them more than 1.2 times as noisy as an even split does is taken only where the other does so too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction

from sfumato.core import ApproxDP, PureDP
from sfumato.errors import PlanError
from sfumato.plan.mixed import Mixed
from sfumato.plan.plan import Considered, Planned
from sfumato.plan.portions import FAIR, as_point, portion_of
from sfumato.plan.request import Request, as_acted

__all__ = ["settle_either_way"]

_READ, _DRAWN = "read off noisy sums", "drawn"
#: The part of a budget that is held back where acts are composed may make an error this much larger.
_HELD_BACK = 256 / 255 * 1.01
#: By how much drawn answers for several readers have to be better.
_SEVERAL = 2.0

Settle = Callable[[tuple[Request, ...]], Mixed]
#: Of every observer the one that stands for all who see the same (plan/readers.py).
Readers = Mapping[str, str]


def settle_either_way(requests: tuple[Request, ...], settle: Settle, readers: Readers) -> Mixed:
    """The requests of these readers settled with every answer that has two ways read off sums, or all drawn.

    What the study prefers binds; what it costs all that shares the promise is told beside it.
    """
    found = _settled(requests, settle, readers)
    bound = [one.name for one in requests if one.bound]
    free = tuple(map(_read, requests))
    with suppress(PlanError):  # where sums cannot be planned, nothing else could have been taken
        if bound:
            return _told(found, _settled(free, settle, readers), f"{', '.join(dict.fromkeys(bound))} {_READ}", "")
    return found


def _read(request: Request) -> Request:
    """The same, read off noisy sums where the study alone has it drawn."""
    return dataclasses.replace(request, level="aggregate", preferred=(), bound=False) if request.bound else request


def _settled(requests: tuple[Request, ...], settle: Settle, readers: Readers) -> Mixed:
    both = [(one.observer, one.name) for one in requests if one.either]
    if not both:
        return settle(requests)
    found: dict[str, Mixed] = {}
    refusals: list[PlanError] = []
    for way, drawn in ((_READ, []), (_DRAWN, both)):
        try:
            found[way] = settle(as_acted(requests, drawn))
        except PlanError as refusal:  # what one way cannot do the other may
            refusals.append(refusal)
    if len(found) == 2:
        named = ", ".join(dict.fromkeys(name for _, name in both))
        return _better(found, named, requests, settle, readers)
    if not found:
        raise refusals[0]
    return found.popitem()[1]


def _better(
    found: dict[str, Mixed], named: str, requests: tuple[Request, ...], settle: Settle, readers: Readers
) -> Mixed:
    """The way of the smaller loss, unless it alone is unfair to one of the publications.

    What is drawn for several readers adds up in the ledger, where versions of the same sums do not: it has to halve
    the loss.
    """
    worth = _SEVERAL if len(set(readers.values())) > 1 else 1.0
    way, other = sorted(found, key=lambda one: found[one].loss * (worth if one == _DRAWN else 1.0))
    reason = ""
    if _is_unfair(found[way], found[other], requests, settle, readers) and not _is_unfair(
        found[other], found[way], requests, settle, readers
    ):
        way, other = other, way
        reason = f", and one publication is more than {FAIR:g} times as noisy as in an even split"
    return _told(found[way], found[other], f"{named} {other}", reason)


def _is_unfair(mine: Mixed, other: Mixed, requests: tuple[Request, ...], settle: Settle, readers: Readers) -> bool:
    """Whether a publication that is better the other way is beyond 1.2 times its error in an even split.

    Of (ε, δ) alone there are parts: a curve is divided in other ways for sums than for acts.
    """
    if not all(isinstance(one.requirement.guarantee, PureDP | ApproxDP) for one in requests):
        return False
    better = {(one.observer, one.name): one.error for one in other.planned}
    worse = {(one.observer, one.name): one.error for one in mine.planned if one.error > better[one.observer, one.name]}
    for request in requests:
        if (request.observer, request.name) in worse:
            alone = _at(request, _even_part(request, requests, readers))
            with suppress(PlanError):  # what cannot be planned so is no measure
                even = _settled((alone,), settle, {request.observer: request.observer}).planned[0].error
                if worse[request.observer, request.name] > (FAIR * _HELD_BACK) ** 2 * even:
                    return True
    return False


def _even_part(request: Request, requests: tuple[Request, ...], readers: Readers) -> Fraction:
    """The part of its reader's budget that a publication has in an even split, by the roots of the weights."""
    mine = readers[request.observer]
    each = {one.name: one.weight ** (1 / 3) for one in requests if readers[one.observer] == mine}
    return Fraction(each[request.name] / math.fsum(each.values()))


def _at(request: Request, part: Fraction) -> Request:
    """The same request with a part of its budget, were nothing else published."""
    own = portion_of(as_point(request.requirement.guarantee, request.name), part)
    return dataclasses.replace(request, requirement=dataclasses.replace(request.requirement, guarantee=own))


def _told(mine: Mixed, other: Mixed, called: str, reason: str) -> Mixed:
    """The same, each publication with the error that it would have the other way."""
    theirs = {(one.observer, one.name): one for one in other.planned}
    ratio = f"; all losses together are {other.loss / mine.loss:.3g} times those here" if mine.loss > 0 else ""
    return dataclasses.replace(
        mine,
        planned=tuple(_beside(one, theirs[one.observer, one.name], called, ratio + reason) for one in mine.planned),
    )


def _beside(mine: Planned, theirs: Planned, called: str, reason: str) -> Planned:
    own = f"{theirs.error / mine.error:.3g} times the squared error here" if mine.error > 0 else "no better"
    considered = Considered(f"{called}: {theirs.strategy}", theirs.error, own + reason, theirs.cut)
    return dataclasses.replace(mine, alternatives=(*mine.alternatives, considered))
