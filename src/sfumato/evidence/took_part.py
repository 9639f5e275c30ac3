"""Who was in the sum of a release over centres, and the plan with the noise that was really drawn.

In:   a Plan, the folder of its release.
Out:  a sentence for the head of every page; the plan with the noise and the errors of those who took part.
Not here: the round itself (run/over_centres.py), which errors a text may tell (evidence/figures.py).
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.plan.plan import Plan, Planned, Seen

__all__ = ["as_drawn", "took_part"]


def took_part(folder: Path | None) -> str:
    """How many of the centres are in these numbers, by name; empty where there are no centres."""
    included, absent = _centres(folder)
    if not included:
        return ""
    away = f"; absent: {', '.join(absent)}" if absent else ""
    count = len(included) + len(absent)
    return f"{len(included)} of {count} centres took part: {', '.join(included)}{away}."


def as_drawn(plan: Plan, folder: Path | None) -> Plan:
    """The plan as it is where everybody took part. Who is absent brings neither people nor a share of the noise, so
    that the variance is that of the shares in the sum."""
    included, absent = _centres(folder)
    if not included or not absent:
        return plan
    factor = math.sqrt(len(included) / (len(included) + len(absent)))
    return replace(
        plan,
        draws=tuple(_draw(draw, len(included)) for draw in plan.draws),
        publications=tuple(_planned(planned, factor) for planned in plan.publications),
    )


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


def _planned(planned: Planned, factor: float) -> Planned:
    return replace(planned, seen=tuple(_seen(seen, factor) for seen in planned.seen))


def _seen(seen: Seen, factor: float) -> Seen:
    numbers = tuple((factor * error, factor * width) for error, width in seen.numbers)
    return replace(seen, error=factor**2 * seen.error, half_width=factor * seen.half_width, numbers=numbers)
