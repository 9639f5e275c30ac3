"""Who was in the sum of a release over centres, and the plan with the noise that was really drawn.

In:   a Plan, the folder of its release.
Out:  TookPart for the head of every page; the plan with the noise and the errors of those who took part.
Not here: the round itself (run/over_centres.py), which errors a text may tell (evidence/figures.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
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
    counted = {str(name): float(number) for name, number in _record(folder).get("individuals", {}).items()}
    if not included or not (absent or counted):
        return plan
    part = len(included) / (len(included) + len(absent))
    drawn = replace(plan, draws=tuple(_draw(draw, len(included), part, counted) for draw in plan.draws))
    return replace(drawn, publications=tuple(_planned(one, plan, drawn, part) for one in plan.publications))


def _centres(folder: Path | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who was in the sum and who was not, as run.json says; nobody where it says nothing."""
    record = _record(folder)
    return tuple(map(str, record.get("included", ()))), tuple(map(str, record.get("absent", ())))


def _record(folder: Path | None) -> Mapping[str, Any]:
    """What run.json says of the centres; nothing where it says nothing."""
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))["centres"] if folder else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return record if isinstance(record, dict) else {}


def _draw(draw: Any, included: int, part: float, counted: Mapping[str, float]) -> Any:
    sharing = getattr(draw, "sharing", None)
    if sharing is None:
        return draw
    individuals = counted.get(draw.dataset, part * sharing.times)
    return replace(draw, sharing=sharing.opened(included, individuals))


def _usual(planned: Planned, before: Plan, after: Plan, part: float) -> float:
    """By what the deviations of what a publication is made from changed."""
    pairs = zip(before.draws, after.draws, strict=True)
    own = [(old, new) for old, new in pairs if isinstance(old, Draw) and old.sharing and old.node in planned.cut]
    ratios = [new.variance / old.variance for old, new in own if isinstance(new, Draw)]
    return math.sqrt(max(ratios, default=part))


def _planned(planned: Planned, before: Plan, after: Plan, part: float) -> Planned:
    usual = _usual(planned, before, after, part)
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
