"""Who was in the sum of a release over centres, and the plan with the noise that was really drawn.

In:   a Plan, the folder of its release.
Out:  TookPart for the head of every page; the plan with the noise and the errors of those who took part.
Not here: the round itself (run/over_centres.py), which errors a text may tell (evidence/figures.py).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.plan.draw import Draw, law_of
from sfumato.plan.plan import Plan, Planned, Seen
from sfumato.questions.intervals import NoiseLaw

__all__ = ["TookPart", "as_drawn", "took_part"]


@dataclass(frozen=True)
class TookPart:
    """Which of the centres are in the numbers of a release, by name."""

    included: tuple[str, ...]
    absent: tuple[str, ...]


def took_part(folder: Path | None) -> TookPart | None:
    """Who was in the sum; None where there are no centres."""
    included, absent = _centres(folder)
    return TookPart(included, absent) if included else None


def as_drawn(plan: Plan, folder: Path | None) -> Plan:
    """The plan as it is where everybody took part. Who is absent brings neither people nor a share of the noise, so
    that the variance is that of the shares in the sum."""
    included, absent = _centres(folder)
    if not included or not absent:
        return plan
    drawn = replace(plan, draws=tuple(_draw(draw, len(included)) for draw in plan.draws))
    usual = math.sqrt(len(included) / (len(included) + len(absent)))
    return replace(drawn, publications=tuple(_planned(one, plan, drawn, usual) for one in plan.publications))


def _centres(folder: Path | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who was in the sum and who was not, as run.json says; nobody where it says nothing."""
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))["centres"] if folder else {}
        return tuple(map(str, record.get("included", ()))), tuple(map(str, record.get("absent", ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return (), ()


def _draw(draw: Any, included: int) -> Any:
    sharing = getattr(draw, "sharing", None)
    return draw if sharing is None else replace(draw, sharing=replace(sharing, included=included))


def _planned(planned: Planned, before: Plan, after: Plan, usual: float) -> Planned:
    seen = tuple(_seen(seen, planned.observer, before, after, usual) for seen in planned.seen)
    strategy = planned.strategy
    for old, new in zip(before.draws, after.draws, strict=True):
        ways = [getattr(draw, "sharing", None) for draw in (old, new)]
        if ways[0] is not None and ways[1] is not None:
            strategy = strategy.replace(ways[0].words, ways[1].words)
    return replace(planned, seen=seen, strategy=strategy)


def _seen(seen: Seen, observer: str, before: Plan, after: Plan, usual: float) -> Seen:
    """A line with the noise of fewer shares: by its own law where it was drawn itself, which a file has too; what is
    computed from drawn numbers changes as their deviation does, to first order."""
    old, new = (_law(plan, seen.node, observer) for plan in (before, after))
    error, width = usual, usual
    if old.deviation:
        error, width = new.deviation / old.deviation, new.half_width / old.half_width
    numbers = tuple((error * one, width * reach) for one, reach in seen.numbers)
    return replace(seen, error=usual**2 * seen.error, half_width=width * seen.half_width, numbers=numbers)


def _law(plan: Plan, node: str, observer: str) -> NoiseLaw:
    own = [one for one in plan.draws if isinstance(one, Draw) and one.node == node and observer in one.observers]
    return law_of(own) if own else NoiseLaw()
