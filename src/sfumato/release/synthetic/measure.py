"""The only step of a synthetic release that draws privacy noise: Gaussian counts and Gaussian scores.

In:   exact counts, a total μ², who is protected.
Out:  noisy tables and scores, each with its Event; μ² never exceeds the total, whatever is chosen on the way.
Not here: what to measure next (release/synthetic/selection.py).
Proof: docs/proofs/synthetic.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.core.adjacency import Adjacency
from sfumato.core.events.event import Event
from sfumato.core.guarantee import GaussianDP
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms.elsewhere import Elsewhere
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.release.synthetic.counts import PairCounts
from sfumato.release.synthetic.junction_tree import CountTable, Scope

__all__ = ["Measurer"]


@dataclass(eq=False)
class Measurer:
    """Draws within a total of μ²; the filter of docs/proofs/synthetic.md is the line that refuses to go beyond it."""

    exact: PairCounts = field(repr=False)
    adjacency: Adjacency
    total: float
    most_rows: int = 1  # rows of one unit
    random_state: int | Elsewhere | None = None
    spent: float = 0.0
    events: list[Event] = field(default_factory=list)
    #: The part of the plan that is being drawn, and μ² by part.
    stage: str = "first"
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def replaces(self) -> bool:
        return self.adjacency.relation == "replace-one"

    def table(self, scope: Scope, share: float) -> CountTable:
        """The counts of `scope` for `share` of the total: a unit moves its rows between cells, or adds them."""
        return self.tables({scope: share})[0]

    def tables(self, shares: Mapping[Scope, float]) -> list[CountTable]:
        """Several tables at once, each for its share of the total."""
        exact = [self.exact[scope].astype(np.float64) for scope in shares]
        noises = [self._noise(self._move, one.size, share) for one, share in zip(exact, shares.values(), strict=True)]
        if isinstance(self.random_state, Elsewhere):
            drawn = self.random_state(noises, exact)
            deviations = [self.random_state.deviation(noise) for noise in noises]
        else:
            drawn = [noise(one) for noise, one in zip(noises, exact, strict=True)]
            deviations = [math.sqrt(noise.error()) for noise in noises]
        return [CountTable(*one) for one in zip(shares, drawn, deviations, strict=True)]

    @property
    def _move(self) -> float:
        """How far one unit moves a table in L2: all its rows out of one cell and as many into another."""
        return self.most_rows * (math.sqrt(2) if self.replaces else 1.0)

    def scores(self, expected: Mapping[Scope, NDArray[np.float64]], share: float) -> tuple[dict[Scope, float], float]:
        """How far each table is from what was expected, Σ|count − ⌊expected⌉|, and the standard error of these numbers.

        The expected counts are functions of what was published before. One row of a unit moves a table by at most 2 in
        L1 (1 if it is added), hence each score by at most that, and all together by √(number of scores) times that.
        """
        if isinstance(self.random_state, Elsewhere):
            raise PrivacyParameterError("Scores are no sums: nobody has all rows. Nothing was drawn for them.")
        scopes = list(expected)
        exact = np.array([np.abs(self.exact[scope] - np.rint(expected[scope])).sum() for scope in scopes])
        each = self.most_rows * (2.0 if self.replaces else 1.0)
        noise = self._noise(each * math.sqrt(len(scopes)), len(scopes), share)
        return dict(zip(scopes, noise(exact).tolist(), strict=True)), math.sqrt(noise.error())

    def deviation(self, share: float) -> float:
        """The standard error a table would have."""
        return self._move / math.sqrt(share * self.total)

    def _noise(self, sensitivity: float, dimension: int, share: float) -> Gaussian:
        wanted = share * self.total
        if not 0 < share <= 1 or self.spent + wanted > self.total * (1 + 1e-9):
            raise PrivacyParameterError("This would go beyond the promise. Nothing was drawn for it.")
        self.spent += wanted
        mu = GaussianDP(math.sqrt(wanted) * (1 - 1e-9))
        seed = self.random_state + len(self.events) if isinstance(self.random_state, int) else None
        noise = Gaussian.for_guarantee(
            mu, math.nextafter(sensitivity, math.inf), self.adjacency, dimension=dimension, random_state=seed
        )
        drawn = noise.event()
        self.events.append(drawn)
        self.stages[self.stage] = math.fsum([self.stages.get(self.stage, 0.0), drawn.mu**2])  # type: ignore[attr-defined]
        return noise

    def stage_event(self, share: float) -> Event:
        """All that may be drawn in one part of a plan, as one act: a function of its share alone.

        Acts of Σμ² ≤ μ² are together no more than one Gaussian act of μ.
        """
        wanted = GaussianDP(math.sqrt(share * self.total))
        return Gaussian.for_guarantee(wanted, self._move, self.adjacency, dimension=1).event()
