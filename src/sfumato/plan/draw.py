"""One independent noisy version of one node: what will be drawn, how wide, and who gets to see it.

In:   a node's sensitivity, a share of the budget.
Out:  Draw, with its Event; the chain of draws that gives several observers versions of different accuracy.
Not here: drawing (run/), the split of the budget (plan/allocation.py).
Proof: docs/proofs/cut_placement.md (refinements), docs/proofs/gaussian.md, docs/proofs/laplace.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core import Adjacency, GaussianDP, PureDP
from sfumato.core.events.event import Event
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.plan.sharing import Noise, Sharing, mechanism_class, sharing_from_dict
from sfumato.questions.intervals import NoiseLaw
from sfumato.questions.moves import Moves

__all__ = ["Draw", "Noise", "combined_variance", "law_of", "refinements", "sensitivity_of"]


@dataclass(frozen=True)
class Draw:
    """Noise of `scale` on the `dimension` numbers of `node`, whose neighbours differ by at most `sensitivity`.

    The sensitivity is in L2 for Gaussian noise and in L1 for Laplace noise. With `sharing` several institutions draw
    it together.
    """

    node: str
    noise: Noise
    scale: float
    sensitivity: float
    dimension: int
    observers: tuple[str, ...]
    adjacency: Adjacency
    dataset: str = ""
    group: int | None = None  # of individuals alike in public; None for what sums up all of them
    sharing: Sharing | None = None

    def mechanism(self, random_state: int | None = None) -> Additive:
        if self.sharing is not None:
            facts = self.noise, self.scale, self.sensitivity, self.adjacency, self.dimension
            return self.sharing.mechanism(*facts, random_state)
        kind = Gaussian if self.noise == "gaussian" else Laplace
        return kind(self.scale, self.sensitivity, self.adjacency, self.dimension, random_state)

    def drawn(self, exact: np.ndarray, random_state: int | None) -> np.ndarray:
        """The exact numbers with noise. What several institutions draw is drawn here in rehearsals alone."""
        if self.sharing is None:
            return self.mechanism(random_state)(exact)
        assert random_state is not None, "centres draw their own noise"
        first = random_state * 10_007
        return exact + self.sharing.rehearsed(lambda place: self.mechanism(first + place), exact.size)

    def event(self) -> Event:
        return self.mechanism().event()

    @property
    def variance(self) -> float:
        """Of one number."""
        return self.mechanism().error() * (1.0 if self.sharing is None else self.sharing.times)

    @property
    def pure(self) -> bool:
        """Whether its noise is measured by the sum norm."""
        return self.noise == "laplace"

    @property
    def law(self) -> NoiseLaw:
        """Of the noise in one number."""
        if self.sharing is not None:
            return self.sharing.law(self.noise, self.scale, self.mechanism().error())
        return NoiseLaw(laplace=(self.scale,)) if self.pure else NoiseLaw(self.variance)

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
            "sharing": None if self.sharing is None else self.sharing.to_dict(),
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
            sharing_from_dict(record["sharing"]),
        )


def sensitivity_of(noise: Noise, moves: Moves) -> float:
    """The norm of a question's moves that a kind of noise is measured by."""
    return float(moves.l2 if noise == "gaussian" else moves.l1)


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
    noise: Noise,
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
        kind = mechanism_class(noise, sharing)
        scale = _scale(node, kind, noise, sensitivity, dimension, step, adjacency)
        draws.append(Draw(node, noise, scale, sensitivity, dimension, seen_by, adjacency, dataset, group, sharing))
        reached = share
    return tuple(draws)


def _scale(
    node: str,
    kind: type[Additive],
    noise: Noise,
    sensitivity: float,
    dimension: int,
    share: float,
    adjacency: Adjacency,
) -> float:
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise PrivacyParameterError(f"{node} has no finite sensitivity. Nothing was planned and nothing was spent.")
    below = math.nextafter(share, 0.0)  # the difference of two shares was rounded
    wanted = GaussianDP(math.sqrt(below) * (1 - 1e-15)) if noise == "gaussian" else PureDP(below)
    return kind.for_guarantee(wanted, sensitivity, adjacency, dimension=dimension).scale


def combined_variance(draws: tuple[Draw, ...]) -> float:
    """Variance of one number when the draws are combined by precision."""
    return 1 / math.fsum(1 / draw.variance for draw in draws)
