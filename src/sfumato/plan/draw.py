"""One independent noisy version of one node: what will be drawn, how wide, and who gets to see it.

In:   a node's sensitivity, a share of the budget.
Out:  Draw, with its Event; the chain of draws that gives several observers versions of different accuracy.
Not here: drawing (run/), the split of the budget (plan/allocation.py).
Proof: docs/proofs/cut_placement.md (refinements), docs/proofs/gaussian.md, docs/proofs/laplace.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.core import Adjacency
from sfumato.core.events.event import Event
from sfumato.core.events.together import TogetherEvent
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms.additive import Additive
from sfumato.plan.draw_law import NoiseName, draw_law
from sfumato.plan.laws.law import DrawLaw
from sfumato.plan.sharing import Sharing, mechanism_class, sharing_from_dict
from sfumato.questions.intervals import NoiseLaw

__all__ = ["Apart", "Draw", "combined_variance", "events_of", "law_of", "refinements"]


@dataclass(frozen=True)
class Apart:
    """That a draw is one of several sums of which one individual is part of some at once only (network/apart.py).

    `alone` is how far an individual moves it who is part of it in one of two neighbours, `inside` one who is in both;
    `cells` are the places, among those of the family, in which it counts.
    """

    family: str
    alone: float
    inside: float
    cells: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"family": self.family, "alone": self.alone, "inside": self.inside, "cells": list(self.cells)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Apart:
        return cls(record["family"], record["alone"], record["inside"], tuple(record["cells"]))


@dataclass(frozen=True)
class Draw:
    """Noise of `scale` on the `dimension` numbers of `node`, whose neighbours differ by at most `sensitivity`.

    The sensitivity is in L2 for Gaussian noise and in L1 for Laplace noise.
    """

    node: str
    noise: NoiseName
    scale: float
    sensitivity: float
    dimension: int
    observers: tuple[str, ...]
    adjacency: Adjacency
    dataset: str = ""
    group: int | None = None  # of individuals alike in public; None for what sums up all of them
    apart: Apart | None = None  # where its cost is counted together with that of others
    sharing: Sharing | None = None  # where several institutions draw it together

    def mechanism(self, random_state: int | None = None) -> Additive:
        facts = self.scale, self.sensitivity, self.adjacency, self.dimension, random_state
        return self.kind.mechanism(*facts) if self.sharing is None else self.sharing.mechanism(self.kind, *facts)

    def drawn(self, exact: np.ndarray, random_state: int | None) -> np.ndarray:
        """The exact numbers with noise. What several institutions draw is drawn here in rehearsals alone."""
        if self.sharing is None:
            return self.mechanism(random_state)(exact)
        assert random_state is not None, "centres draw their own noise"
        first = random_state * 10_007
        return exact + self.sharing.rehearsed(lambda place: self.mechanism(first + place), exact.size)

    @property
    def kind(self) -> DrawLaw:
        """What draws of this law have in common."""
        return draw_law(self.noise)

    def event(self) -> Event:
        return self.mechanism().event()

    @cached_property
    def variance(self) -> float:
        """Of one number."""
        return self.mechanism().error() * (1.0 if self.sharing is None else self.sharing.times)

    @property
    def pure(self) -> bool:
        """Whether its noise is measured by the sum norm."""
        return self.kind.pure

    @cached_property
    def law(self) -> NoiseLaw:
        """Of the noise in one number."""
        if self.sharing is not None:
            return self.kind.summed(self.scale, self.mechanism().error(), self.sharing.times)
        return self.kind.noise(self.scale, self.variance)

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "noise": self.noise,
            "scale": self.scale,
            "sensitivity": self.sensitivity,
            "dimension": self.dimension,
            "observers": list(self.observers),
            "adjacency": self.adjacency.to_dict(),
            "dataset": self.dataset,
            "group": self.group,
            **({"apart": self.apart.to_dict()} if self.apart is not None else {}),
            **({"sharing": self.sharing.to_dict()} if self.sharing is not None else {}),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Draw:
        return cls(
            record["node"],
            record["noise"],
            record["scale"],
            record["sensitivity"],
            record["dimension"],
            tuple(record["observers"]),
            Adjacency.from_dict(record["adjacency"]),
            record["dataset"],
            record["group"],
            Apart.from_dict(record["apart"]) if "apart" in record else None,
            sharing_from_dict(record["sharing"]) if "sharing" in record else None,
        )


def law_of(draws: Sequence[Draw]) -> NoiseLaw:
    """The law of the noise in one number of a node when its versions are combined by precision, as run/view.py does."""
    precisions = [1 / draw.variance for draw in draws]
    total = math.fsum(precisions)
    law = NoiseLaw()
    for draw, precision in zip(draws, precisions, strict=True):
        law = law.plus(draw.law.times(precision / total))
    return law


def refinements(
    node: str,
    noise: NoiseName,
    sensitivity: float,
    dimension: int,
    shares: Mapping[str, float],
    adjacency: Adjacency,
    dataset: str = "",
    group: int | None = None,
    sharing: Sharing | None = None,
) -> tuple[Draw, ...]:
    """Draws by which every observer's view of the node costs its share of μ² (Gaussian) or of ε (Laplace).

    Observers in ascending order of their share: the first draw is seen by all, each further one by those who may know
    more. Seeing the longest list costs what its last observer's share says, so colluding adds nothing.

    >>> from sfumato.core import REPLACE_ONE
    >>> first, second = refinements("mean", "gaussian", 1.0, 1, {"doctor": 1.0, "public": 0.25}, REPLACE_ONE)
    >>> first.observers, round(first.scale, 2), second.observers, round(second.scale, 2)
    (('doctor', 'public'), 2.0, ('doctor',), 1.15)
    """
    draws: list[Draw] = []
    reached = 0.0
    for share in sorted(set(shares.values())):
        step = share - reached
        # A step this small buys nothing: those observers share the version below.
        if step <= share * 1e-4:
            continue
        seen_by = tuple(sorted(observer for observer, own in shares.items() if own >= share))
        scale = _scale(node, draw_law(noise), sensitivity, dimension, step, adjacency, sharing)
        made = Draw(node, noise, scale, sensitivity, dimension, seen_by, adjacency, dataset, group, sharing=sharing)
        draws.append(made)
        reached = share
    return tuple(draws)


def _scale(
    node: str,
    law: DrawLaw,
    sensitivity: float,
    dimension: int,
    share: float,
    adjacency: Adjacency,
    sharing: Sharing | None,
) -> float:
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise PrivacyParameterError(f"{node} has no finite sensitivity. Nothing was planned and nothing was spent.")
    below = math.nextafter(share, 0.0)  # the difference of two shares was rounded
    kind = mechanism_class(law, sharing)
    return kind.for_guarantee(law.guarantee(below), sensitivity, adjacency, dimension=dimension).scale


def combined_variance(draws: tuple[Draw, ...]) -> float:
    """Variance of one number when the draws are combined by precision."""
    return 1 / math.fsum(1 / draw.variance for draw in draws)


def events_of(draws: Iterable[Any]) -> tuple[Event, ...]:
    """What was drawn: one event for each draw, and one for all those of a bundle that the same people see."""
    found: dict[Any, list[Any]] = {}
    for place, draw in enumerate(draws):
        apart = draw.apart if isinstance(draw, Draw) else None
        key = place if apart is None else (draw.dataset, apart.family, draw.noise, draw.observers)
        found.setdefault(key, []).append(draw)
    return tuple(
        own[0].event() if len(own) == 1 and isinstance(key, int) else _together(own) for key, own in found.items()
    )


def _together(draws: Sequence[Draw]) -> Event:
    sums: list[tuple[float, float, float, float, int]] = []
    cells: dict[int, list[int]] = {}
    for place, draw in enumerate(draws):
        event: Any = draw.event()
        assert draw.apart is not None
        scale = event.scale * (1.0 if draw.sharing is None else draw.sharing.certain)
        sums.append((draw.apart.alone, draw.apart.inside, scale, event.grid, event.dimension))
        for cell in draw.apart.cells:
            cells.setdefault(cell, []).append(place)
    sets = tuple(sorted({tuple(own) for own in cells.values()}))
    return TogetherEvent(draws[0].noise, tuple(sums), sets, adjacency=draws[0].adjacency)
