"""Quantiles drawn themselves, all together, and counts around them from which their intervals follow.

In:   a question about quantiles, ε, an adjacency, a public guess at the number of rows.
Out:  JointQuestion: the acts, what they cost, what is expected of them, the published numbers.
Not here: the same question by noisy cumulative counts (quantile.py), which shares a budget with other sums.
Proof: docs/proofs/quantiles.md, "Intervals"

Seven tenths of ε draw places for the quantiles. The rest counts the rows between these and further places around them,
which lie where the drawn ones suggest: the places are good guesses, the counts say how good.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato import mechanisms
from sfumato.core import Adjacency, LaplaceEvent, PureDP, QuantilesEvent
from sfumato.core.events.quantiles import MOST_QUANTILES, gaps_of
from sfumato.questions.intervals import Figure
from sfumato.questions.quantile import LAPLACE_95, Quantiles

if TYPE_CHECKING:
    from sfumato.mechanisms import JointQuantiles, Laplace

__all__ = ["JointQuestion"]

#: The part of ε that draws places; the rest counts rows between them.
_PLACES = Fraction(7, 10)
#: Of so few quantiles more places around each are counted.
_FEW = 4


@dataclass(frozen=True)
class JointQuestion:
    """One group's quantiles at a pure ε.

    >>> from sfumato.core import REPLACE_ONE
    >>> from sfumato.questions.quantile import Median
    >>> half = Median(values=("x(P)",), ranges=((0.0, 10.0),), everybody=True)
    >>> asked = JointQuestion(half, 1.0, REPLACE_ONE, 10_000)
    >>> round(sum(event.guarantee().eps for event in asked.events), 9)
    1.0
    """

    question: Quantiles
    epsilon: float
    adjacency: Adjacency
    size: float

    @staticmethod
    def refused(question: Quantiles) -> str:
        """Why a question cannot be answered like this; empty if it can."""
        if question.parted > 1:
            return "each group would be drawn on its own: counts of all groups together have less noise"
        if len(question.wanted) > MOST_QUANTILES:
            return f"more than {MOST_QUANTILES} quantiles are better read off noisy cumulative counts"
        return ""

    # ── what is drawn ────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def chooser(self) -> JointQuantiles:
        asked = self.question
        low, high = asked.ranges[0]
        share = PureDP(float(_PLACES) * self.epsilon * (1 - 1e-12))
        return mechanisms.JointQuantiles.for_guarantee(
            share, asked.rows, self.adjacency, quantiles=asked.wanted, low=low, high=high, step=asked.step
        )

    @property
    def _rates(self) -> tuple[float, ...]:
        return (1 / 3, 1.0, 3.0, 9.0, 27.0, 81.0) if len(self.question.wanted) <= _FEW else (1.0, 3.0)

    @cached_property
    def steps(self) -> tuple[tuple[float, ...], ...]:
        """For the stretch below each wanted quantile and the one above the last: how far into it places are counted.

        As parts of the stretch, from either end: so far that the counts up to there can tell, and three times as far;
        for few quantiles, also nearer and farther, in case the rows are not spread as the drawn places suggest.
        """
        rates = self._rates
        bins = 1 + (2 * len(rates) + 1) * len(self.question.wanted)
        near = LAPLACE_95 * self._counter(bins).scale * math.sqrt(bins / 2) + math.sqrt(self.chooser.error())
        found = []
        for gap in gaps_of(self.question.wanted):
            parts = [rate * near / max(float(gap) * self.size, 1.0) for rate in rates]
            found.append(tuple(part for part in parts if part < 0.5))
        return tuple(found)

    @cached_property
    def counter(self) -> Laplace:
        places = len(self.question.wanted) + 2 * sum(map(len, self.steps))
        return self._counter(places + 1)

    def _counter(self, bins: int) -> Laplace:
        move = self.question.rows * (2.0 if self.question.replaces else 1.0)
        share = PureDP((1 - float(_PLACES)) * self.epsilon * (1 - 1e-12))
        return mechanisms.Laplace.for_guarantee(share, move, self.adjacency, dimension=bins)

    @property
    def events(self) -> tuple[QuantilesEvent, LaplaceEvent]:
        return self.chooser.event(), self.counter.event()  # type: ignore[return-value]

    # ── what is expected ─────────────────────────────────────────────────────────────────────────────────────────────

    def predicted(self) -> tuple[tuple[float, float], ...]:
        """(standard error, half width) of every wanted quantile, for rows spread evenly over the range."""
        from sfumato.mechanisms.joint_quantiles import rank_variances

        width = self.question.width
        spreads = np.sqrt(rank_variances(len(self.question.wanted), self.chooser.scale)) / max(self.size, 1.0)
        ways = [float(gap) * self._told(place) for place, gap in enumerate(gaps_of(self.question.wanted))]
        halves = [max(ways[place], ways[place + 1]) for place in range(len(spreads))]
        return tuple(
            (min(spread * width, width / 2), min(half * width, width))
            for spread, half in zip(spreads.tolist(), halves, strict=True)
        )

    def _told(self, place: int) -> float:
        """The part of a stretch after which the counts can tell, and all of it where there is none."""
        parts = [part for part, rate in zip(self.steps[place], self._rates, strict=False) if rate >= 1.0]
        return parts[0] if parts else 1.0

    # ── what is published ────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, counts: np.ndarray, count: float | None, random_state: int | None) -> tuple[Figure, ...]:
        """From how many rows lie at each place (private); `count` is their number where everybody knows it."""
        chooser = dataclasses.replace(self.chooser, random_state=random_state)
        chosen = chooser.choose_cells(np.repeat(np.arange(counts.size), counts))
        places = self._around(chosen, counts.size)
        below = np.concatenate([[0], np.cumsum(counts)[places], [counts.sum()]])
        seed = None if random_state is None else random_state + 1
        noisy = dataclasses.replace(self.counter, random_state=seed)(np.diff(below))
        return tuple(
            self._figure(share, int(cell), places, noisy, count)
            for share, cell in zip(self.question.wanted, chosen, strict=True)
        )

    def _around(self, chosen: np.ndarray, count: int) -> np.ndarray:
        """The drawn places and those counted beside them: nothing but public numbers and what was drawn."""
        ends = np.concatenate([[0], chosen, [count - 1]])
        found = list(chosen)
        for place, parts in enumerate(self.steps):
            low, high = int(ends[place]), int(ends[place + 1])
            for part in parts:
                step = math.ceil((high - low) * part)
                found += [low + step] if place else []
                found += [high - step] if place + 1 < len(self.steps) else []
        return np.unique(np.clip(found, 0, count - 1))

    def _figure(self, share: float, cell: int, places: np.ndarray, noisy: np.ndarray, count: float | None) -> Figure:
        """The places between which the quantile is: before the first that may, after the last that may not reach it."""
        grid, bins = self.chooser.grid, noisy.size
        below, before = np.cumsum(noisy)[:-1], np.arange(1, bins)
        if count is None:
            off = below - share * noisy.sum()
            spread = before * (1 - share) ** 2 + (bins - before) * share**2
        else:  # what the counts add up to is known
            off = below - before / bins * (noisy.sum() - count) - share * count
            spread = before * (bins - before) / bins
        reach = LAPLACE_95 * self.counter.scale * np.sqrt(2 * spread)
        may = np.flatnonzero(off > -reach)
        first = (int(may[0]) if may.size else places.size) - 1
        may_not = np.flatnonzero(off < reach)
        last = (int(may_not[-1]) if may_not.size else -1) + 1
        low = int(places[first]) if first >= 0 else 0
        high = int(places[last]) if last < places.size else grid.count - 1
        return self.question.figure_at(cell, low, high, LAPLACE_95)
