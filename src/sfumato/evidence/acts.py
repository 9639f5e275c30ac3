"""The plan's draws in one form, whatever kind they are: for everything that tells about a plan.

In:   a Plan.
Out:  Acts: where noise goes, its law and scale, who sees it.
Not here: drawing (run/), what a draw costs (its Event, by core/compose.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sfumato.plan.plan import Plan

__all__ = ["Act", "acts_of", "deviation_of"]


@dataclass(frozen=True)
class Act:
    """One random act. `deviation` is the noise's standard deviation on the node itself; None where the noise goes to
    combinations of nodes, or is no added noise at all."""

    nodes: tuple[str, ...]
    law: str
    scale: float | None
    sensitivity: float | None
    dimension: int
    deviation: float | None
    observers: tuple[str, ...]
    unit: str
    dataset: str
    group: int | None

    @property
    def name(self) -> str:
        return ", ".join(self.nodes)


def acts_of(plan: Plan, observer: str | None = None) -> tuple[Act, ...]:
    """All acts, or those one observer gets to see."""
    acts = (_act(draw) for draw in plan.draws)
    return tuple(act for act in acts if observer is None or observer in act.observers)


def _act(draw: Any) -> Act:
    candidate = getattr(draw, "candidate", None)
    outputs = getattr(candidate, "outputs", None)
    single = getattr(draw, "node", None)
    nodes = tuple(outputs) if outputs is not None else (single,) if single else ()
    sensitivity = getattr(draw, "sensitivity", getattr(candidate, "unit_sensitivity", None))
    variance = getattr(draw, "variance", None) if outputs is None else None
    return Act(
        nodes,
        str(getattr(draw, "noise", type(draw).__name__)),
        getattr(draw, "scale", None),
        sensitivity,
        int(getattr(draw, "dimension", 1)),
        math.sqrt(variance) if variance is not None else None,
        tuple(draw.observers),
        draw.adjacency.unit,
        draw.dataset,
        getattr(draw, "group", None),
    )


def deviation_of(acts: Iterable[Act]) -> float | None:
    """Of one number of a node when all these versions of it are combined by precision; of several groups the widest."""
    groups: dict[int | None, list[float]] = {}
    for act in acts:
        if not act.deviation:
            return None
        groups.setdefault(act.group, []).append(act.deviation**-2)
    return max((math.fsum(precisions) ** -0.5 for precisions in groups.values()), default=None)
