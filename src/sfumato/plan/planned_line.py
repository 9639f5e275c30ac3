"""One line of the plan for each publication: where its noise goes, how far off it may be, and why it was taken.

In:   a settled dataset, a request, the draws its observer sees.
Out:  Planned.
Not here: choosing the noise (plan/settle.py), the numbers of a line (plan/predict.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.lang.term import show
from sfumato.plan.individual_part import AnyDraw, IndividualPart
from sfumato.plan.plan import Considered, Planned, Seen
from sfumato.plan.predict import Predicting, seen_of_one, variance_of
from sfumato.plan.request import Request
from sfumato.plan.sharing import Sharing, because, centres_of
from sfumato.plan.wishes import check_central, said_of_wishes

if TYPE_CHECKING:
    from sfumato.plan.settle import Settling

__all__ = ["planned_line"]

_LOCAL = (
    "every individual's own value gets noise before it is summed: nothing that run draws, but what everybody can on a "
    "machine of one's own (`sfumato privatize --channel`)"
)
#: What is said of a publication that needs no noise.
_EXACT, _PUBLIC = "exact: nobody can change it", "its value is public"


def planned_line(settling: Settling, request: Request, draws: Sequence[AnyDraw]) -> Planned:
    """What the plan says of one publication."""
    mine = [draw for draw in draws if request.observer in draw.observers]
    make = _of_individuals if request.of_individuals else _of_sums
    return make(settling, request, mine)


def _of_individuals(settling: Settling, request: Request, draws: Sequence[AnyDraw]) -> Planned:
    reader = settling.readers[request.observer]
    parts = [part for part in settling.individual_parts[reader] if set(request.nodes) & set(part.weights)]
    seen = _seen_of_individuals(settling, request, parts, draws)
    if not any(part.template.private for part in parts):
        return Planned(
            request.name,
            show(request.requirement.name),
            request.observer,
            _EXACT,
            (),
            seen,
            (),
            request.weight,
            _PUBLIC,
            request.position.strip(),
            listed=True,
        )
    return Planned(
        request.name,
        show(request.requirement.name),
        request.observer,
        f"{parts[0].strategy} ({settling.noise})",
        parts[0].cut,
        seen,
        parts[0].alternatives,
        request.weight,
        _why(settling, request, parts),
        request.position.strip(),
        listed=True,
    )


def _seen_of_individuals(
    settling: Settling, request: Request, parts: Sequence[IndividualPart], draws: Sequence[AnyDraw]
) -> tuple[Seen, ...]:
    seen: list[Seen] = []
    for part in parts:
        summaries = settling.simulated.of(settling.readers[request.observer], part, draws)
        note = _structure(settling, part) if len(parts) > 1 else ""
        names = [name for name in request.nodes if name in part.weights]
        seen += [seen_of_one(part, name, summaries[name], draws, note) for name in names]
    return tuple(seen)


def _why(settling: Settling, request: Request, parts: Sequence[IndividualPart]) -> str:
    budget = settling.total_of(request.observer, settling.guarantees[request.observer])
    reason = (
        f"of the ways simulated at the whole budget ({settling.law.currency} = {budget:.4g}) "
        "this one has the least weighted error"
    )
    asked = [one for one in settling.requests if one.observer == request.observer and one.of_individuals]
    return reason + said_of_wishes(asked, {part.strategy for part in parts})


def _structure(settling: Settling, part: IndividualPart) -> str:
    facts = settling.network.groups[part.group].structure
    if not facts:
        return "For individuals of no listed structure."
    return f"For individuals with {', '.join(map(show, facts))}."


def _drawn(settling: Settling, request: Request) -> tuple[str, ...]:
    """The sums behind a request that get noise."""
    behind = sorted({other for name in request.nodes for other in settling.sums_behind(name, request)})
    return tuple(name for name in behind if not settling.questions[name].is_public)


def _of_sums(settling: Settling, request: Request, draws: Sequence[AnyDraw]) -> Planned:
    seen = [Predicting(settling, request, tuple(draws)).seen(name) for name in request.nodes]
    drawn = _drawn(settling, request)
    if drawn and settling.sharing is None:
        check_central(request)
    way = settling.sharing.words if settling.sharing is not None else "central noise"
    chosen = Considered(way, math.fsum(one.error for one in seen), because("chosen", settling.sharing), drawn)
    return Planned(
        request.name,
        show(request.requirement.name),
        request.observer,
        f"{way} ({settling.noise})" if drawn else _EXACT,
        drawn,
        tuple(seen),
        (chosen, *_beside(settling, request, draws)),
        request.weight,
        _why_sums(settling, drawn),
        request.position.strip(),
    )


def _beside(settling: Settling, request: Request, draws: Sequence[AnyDraw]) -> list[Considered]:
    local = _local_error(settling, request, draws)
    if local is None or len(centres_of(settling.network.spec)) > 1:  # over centres it is a way of its own
        return []
    return [Considered("local noise", local, _LOCAL)]


def _why_sums(settling: Settling, drawn: Sequence[str]) -> str:
    reason = (settling.sharing or Sharing).reason
    others = {other for name in drawn if name in settling.bundles for other in settling.bundles[name].family.names}
    together = f"; {len(others)} sums of which nobody is part of all are paid for together" if others else ""
    return (because(reason, settling.sharing) if drawn else _PUBLIC) + together


def _local_error(settling: Settling, request: Request, draws: Sequence[AnyDraw]) -> float | None:
    """Noise of the same share on every individual's own contribution: n times the variance of one."""
    total = 0.0
    for name in request.nodes:
        if name not in settling.aggregates or settling.questions[name].is_public:
            return None
        question, count = settling.questions[name], settling.count_of(name)
        total += question.error(variance_of(name, draws) * count, count, settling.law.pure)
    return total
