"""Everything random in a plan in one form, whatever kind it is: for all that tells about a plan.

In:   a Plan.
Out:  Drawn: where noise goes, its law and scale, who sees it.
Not here: drawing (run/), what a draw costs (its Event, by core/compose.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sfumato.plan.act import Act
from sfumato.plan.draw_law import LAWS
from sfumato.plan.plan import Plan
from sfumato.questions.registry import kind_called

__all__ = ["Drawn", "deviation_of", "drawn_for"]


@dataclass(frozen=True)
class Drawn:
    """One random act. `deviation` is the noise's standard deviation on the node itself; None where noise goes to
    combinations of nodes, into a model, or is no added noise at all: then `cost` says what it is bounded by.
    `publication` is set where the act belongs to one publication alone."""

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
    cost: str = ""
    publication: str = ""
    altered: float | None = None  # of a random answer: how often it is not the network's own
    kind: str = ""

    @property
    def title(self) -> str:
        """Its law as it is called in a text."""
        return LAWS[self.law].title if self.law in LAWS else self.law

    @property
    def limit(self) -> float | None:
        """What who estimates without bias from this draw errs by at least (Cramér-Rao): 1/√(Fisher information).

        It is the scale, of Gaussian and of Laplace noise alike; of noise that several institutions draw together the
        scale is that of as many shares as nobody can be without.
        """
        return self.scale if self.deviation else None

    @property
    def row_by_row(self) -> bool:
        """Whether it is about one row for each individual, not a summary of all."""
        return self.group is not None or kind_called(self.kind).row_by_row

    @property
    def name(self) -> str:
        return ", ".join(self.nodes)

    def serves(self, publication: str, nodes: Iterable[str]) -> bool:
        """Whether a publication that needs these nodes rests on it."""
        if self.publication:
            return self.publication == publication
        return bool(set(nodes) & set(self.nodes))


def drawn_for(plan: Plan, observer: str | None = None) -> tuple[Drawn, ...]:
    """All of it, or what one observer gets to see."""
    everything = (*(_draw(draw) for draw in plan.draws), *(_act(act) for act in plan.acts))
    return tuple(one for one in everything if observer is None or observer in one.observers)


def _draw(draw: Any) -> Drawn:
    """A noisy node, a correlated strategy, or a random answer: told apart by what they carry."""
    candidate = getattr(draw, "candidate", None)
    outputs = getattr(candidate, "outputs", None)
    answer = hasattr(draw, "epsilon")
    added = outputs is None and not answer
    return Drawn(
        tuple(outputs) if outputs is not None else (draw.node,),
        "random answer" if answer else str(draw.noise),
        None if answer else draw.scale,
        None if answer else getattr(draw, "sensitivity", getattr(candidate, "unit_sensitivity", None)),
        int(getattr(draw, "dimension", 1)),
        math.sqrt(draw.variance) if added else None,
        tuple(draw.observers),
        draw.adjacency.unit,
        draw.dataset,
        draw.group,
        f"ε = {draw.epsilon:.4g}" if answer else "",
        altered=draw.scale if answer else None,
    )


def _act(act: Act) -> Drawn:
    named: list[str] = [
        str(name) for name in (*act.parameters.get("columns", ()), act.parameters.get("target")) if name
    ]
    nodes = tuple(dict.fromkeys(named))
    unit = act.guarantee.adjacency.unit if act.guarantee.adjacency else "record"
    return Drawn(
        nodes,
        f"{act.kind}, {act.strategy}",
        None,
        None,
        1,
        None,
        act.observers,
        unit,
        act.dataset,
        None,
        act.guarantee.describe(),
        act.name,
        kind=act.kind,
    )


def deviation_of(drawn: Iterable[Drawn]) -> float | None:
    """Of one number of a node when all these versions of it are combined by precision; of several groups the widest."""
    groups: dict[int | None, list[float]] = {}
    for one in drawn:
        if not one.deviation:
            return None
        groups.setdefault(one.group, []).append(one.deviation**-2)
    return max((math.fsum(precisions) ** -0.5 for precisions in groups.values()), default=None)
