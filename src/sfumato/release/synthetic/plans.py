"""Three ways to spend a promise on tables of counts, and what each is expected to reach.

In:   public sizes: how many levels each column has, how many rows there are, what noise a share of μ² buys.
Out:  Plan: shares of μ² for the first tables and for rounds of further pairs; Forecast: expected total variation.
Not here: drawing (release/synthetic/walk.py), which pairs a round takes (release/synthetic/selection.py).

pairs   every column beside the label, and alone for a little of it; columns independent given the label.
tree    the same, and a tree of pairs among the others.
rounds  the same, a tree, and the pairs that are still missed, as far as a junction tree can hold them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.release.synthetic.counts import pairs_within
from sfumato.release.synthetic.junction_tree import cells_of
from sfumato.release.synthetic.selection import PairChoice
from sfumato.release.synthetic.start import first_shares, start_scopes

__all__ = ["FIRST", "Forecast", "RowPlan", "RowRound", "best_plan", "forecasts", "plan_names", "typical_share"]

Deviation = Callable[[float], float]
Numbers = NDArray[np.float64]
#: What every plan spends on the first tables at least, of μ².
FIRST = 0.4
#: Above this many columns the second round costs minutes and gains little.
_MANY_COLUMNS = 80
#: What a plan misses although nothing is noisy, and how noise adds to it: set by hand after a run of each plan on four
#: public tables at ε from 0.1 to 3 (benchmarks/synthetic.py --plans), so that the plans change places where they did
#: there. A rule to choose by and to tell, not a bound; other tables may miss it by a factor of two.
_MISSED = {"pairs": 0.095, "tree": 0.030, "rounds": 0.012}
_NOISE = {"pairs": 0.15, "tree": 0.40, "rounds": 0.53}


@dataclass(frozen=True)
class RowRound:
    """Shares of μ² for scores and for tables, and what may be chosen."""

    scores: float
    tables: float
    choice: PairChoice


@dataclass(frozen=True)
class RowPlan:
    """How a promise is spent: a share of μ² on the first tables, then rounds."""

    name: str
    words: str
    first: float
    rounds: tuple[RowRound, ...] = ()

    def stages(self, edges: float) -> dict[str, float]:
        """The share of μ² of each part, known before anything is drawn; `edges` is that of bought ones."""
        found = {"edges": edges} if edges else {}
        found["first"] = (1 - edges) * self.first
        for number, one in enumerate(self.rounds, 1):
            found[f"scores {number}"] = (1 - edges) * one.scores
            found[f"tables {number}"] = (1 - edges) * one.tables
        return found


@dataclass(frozen=True)
class Forecast:
    """Expected mean total variation of the one- and two-way tables of a plan's rows; about, not at most.

    `known` is false where noise outweighs the counts: then nothing can be said. One column `alone` has no pairs. Of
    `few` numbers hardly any bins are expected: that is about bins alone, and what lies in them is then a guess.
    """

    plan: RowPlan
    one_way: float
    two_way: float
    known: bool
    alone: bool = False
    few: int = 0

    def __str__(self) -> str:
        if not self.known:
            return "the noise outweighs the counts: error unknown, up to 1"
        guess = f"; of {self.few} number(s) too few bins to tell mean or spread" if self.few else ""
        if self.alone:
            return f"total variation about {self.one_way:.3f}{guess}"
        two = max(self.one_way, self.two_way)  # tables of two columns are nowhere nearer than those of each
        return f"total variation about {self.one_way:.3f} for one column, about {two:.3f} for two{guess}"


def typical_share(levels: int) -> Numbers:
    """How a column is taken to be spread before anything is known of it: the k-th level k^-1.5 as often as the 1st."""
    share = np.arange(1, levels + 1) ** -1.5
    return share / share.sum()


def forecasts(
    sizes: Sequence[int], label: int | None, rows: float, deviation: Deviation, shares: Sequence[Numbers] | None = None
) -> tuple[Forecast, ...]:
    """Every plan that can be followed, with what is expected of it; by public sizes, or by noisy `shares` of columns.

    `deviation` says what standard error a count has for a share of μ².
    """
    spread = list(map(typical_share, sizes)) if shares is None else shares
    others = _others(len(sizes), label)
    candidates = [pair for pair in pairs_within(sizes) if label not in pair]
    each = deviation(0.35 / max(1, len(others) - 1))
    noise = [_variation(np.outer(spread[a], spread[b]), each, rows) for a, b in candidates]
    typical = float(np.mean(noise or [0.0]))
    drowned = [_drowned(sizes[a] * sizes[b], each, rows) for a, b in candidates]
    first = _first_errors(sizes, label, deviation)
    whole = label is not None and len(sizes) == 2 and bool(pairs_within(sizes, (label,)))
    found = []
    for plan in _plans(len(others), len(sizes), typical, bool(candidates)):
        one = [_variation(spread[at], error / math.sqrt(plan.first), rows) for at, error in first.items()]
        made = _forecast(plan, float(np.mean(one)), typical, drowned, alone=len(sizes) == 1)
        # Of two columns the one pair there is is measured itself.
        found.append(replace(made, two_way=made.one_way) if whole else made)
    return tuple(found)


def plan_names(sizes: Sequence[int], label: int | None) -> list[str]:
    """The plans that can be followed."""
    candidates = any(label not in pair for pair in pairs_within(sizes))
    return [plan.name for plan in _plans(len(_others(len(sizes), label)), len(sizes), 0.0, candidates)]


def _others(columns: int, label: int | None) -> list[int]:
    return [column for column in range(columns) if column != label]


def _forecast(plan: RowPlan, one: float, typical: float, drowned: Sequence[bool], *, alone: bool) -> Forecast:
    two = one if alone else min(1.0, _MISSED[plan.name] + _NOISE[plan.name] * typical)
    lost = one > 0.2 or (plan.name != "pairs" and np.mean(drowned) > 0.5)
    return Forecast(plan, one, two, not lost, alone)


def best_plan(found: Sequence[Forecast], wished: str | None = None) -> Forecast:
    """The wished one, or that of least expected two-way error."""
    left = [one for one in found if wished in (None, one.plan.name)]
    return min(left, key=lambda one: one.two_way)


def _plans(others: int, columns: int, typical: float, candidates: bool) -> list[RowPlan]:
    pairs = RowPlan("pairs", "columns beside the label", 1.0)
    if not candidates:
        return [pairs]
    forest = PairChoice(max(1, others - 1), 150_000, forest=True)
    tree = RowPlan("tree", "columns beside the label, then a tree of pairs", 0.6, (RowRound(0.05, 0.35, forest),))
    if columns > _MANY_COLUMNS:
        return [pairs, tree]
    # Where noise is short, pairs within the cliques that are held anyway cost next to nothing.
    more = (
        PairChoice(2 * others, 600_000, forest=False) if typical < 0.03 else PairChoice(others, 150_000, forest=False)
    )
    rounds = RowPlan(
        "rounds",
        "columns beside the label, a tree of pairs, then the pairs it misses",
        FIRST,
        (RowRound(0.05, 0.25, forest), RowRound(0.05, 0.25, more)),
    )
    return [pairs, tree, rounds]


def _first_errors(sizes: Sequence[int], label: int | None, deviation: Deviation) -> dict[int, float]:
    """The standard error of each column's counts by all first tables that hold it, if all of μ² went to these."""
    counted = pairs_within(sizes, () if label is None else (label,))
    shares = first_shares(sizes, label, start_scopes(len(sizes), label, counted))
    # A share of μ² weighs as much in precision; what stands beside a column is added up.
    return {
        at: deviation(math.fsum(one * size / cells_of(sizes, scope) for scope, one in shares.items() if at in scope))
        for at, size in enumerate(sizes)
    }


def _variation(shares: Numbers, deviation: float, rows: float) -> float:
    """Expected total variation of a table measured with this standard error: noise where it is below the counts."""
    noise = math.sqrt(2 / math.pi) * deviation / max(rows, 1.0)
    return min(1.0, 0.5 * float(np.minimum(noise, shares).sum()))


def _drowned(cells: int, deviation: float, rows: float) -> bool:
    """Whether the noise of such a table is as large as all its counts: then the prediction says nothing."""
    return math.sqrt(2 / math.pi) * deviation * cells > rows
