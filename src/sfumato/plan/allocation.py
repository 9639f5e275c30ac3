"""Who gets how much of the budget: the split of requirements over the numbers that are drawn.

In:   blocks with their difficulty for each observer, budgets of observers and of colluding groups.
Out:  shares m[observer][block] of μ² (or of ε), which keep every budget exactly.
Not here: what a block is worth (plan/difficulty.py), drawing it (run/).
Proof: docs/proofs/allocation.md

A block drawn with a share m of μ² has expected squared error difficulty/m; with a share e of ε it has difficulty/e².
Where even no answer at all errs by no more than a known limit (a value in a public range), the error is taken as
difficulty/(m + c)ᵖ with c such that m = 0 gives the limit; budget then goes where it still buys something, but every
block keeps a part of an even share (`floors`). One observer: water-filling, m + c ∝ difficulty^(1/(p+1)). Several
observers and colluding groups: a small cone program; its answer only guides, because the shares are shrunk afterwards
until every budget holds in exact arithmetic, and where it is no better than shares that are feasible by construction
these are taken: a solver's status refuses no study.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from sfumato.errors import PrivacyParameterError

__all__ = ["Budget", "Shares", "split_budget"]

Difficulty = Mapping[str, Mapping[str, float]]
_NONE: Difficulty = {}

#: Every block gets at least this part of an even share: what is asked for is answered, however badly.
_FLOOR = 0.2
Shares = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Budget:
    """What a group of observers may learn together: the total of their shares. One observer is a group of one."""

    observers: frozenset[str]
    total: float


def split_budget(
    difficulty: Difficulty,
    budgets: Sequence[Budget],
    degree: int = 1,
    limits: Difficulty = _NONE,
    floors: Difficulty = _NONE,
) -> Shares:
    """Shares that minimise Σ difficulty/(m + c)ᵖ over observers and blocks, p the degree: 1 for μ² and 2 for ε.

    `floors` are what blocks get at least, as parts of their observer's budget (a fifth of an even share without them);
    where groups of observers collude they do not hold.

    A group of observers sees of every block the best version any of them sees, because versions are refinements of
    each other; so a group's total is the sum over blocks of its largest share.

    >>> split_budget({"public": {"mean": 4.0, "count": 1.0}}, [Budget(frozenset({"public"}), 0.75)])
    {'public': {'mean': 0.5, 'count': 0.25}}
    """
    _check(difficulty, budgets)
    offsets = _offsets(difficulty, limits, degree)
    totals = {o: min(budget.total for budget in budgets if o in budget.observers) for o in difficulty}
    shares = {
        o: _water_filling(blocks, offsets[o], totals[o], degree, floors.get(o, {}))
        for o, blocks in difficulty.items()
        if blocks
    }
    if all(_total(shares, one) <= Fraction(one.total) for one in budgets if len(one.observers) > 1):
        return _shrink(shares, budgets)
    feasible = _within_groups(shares, difficulty, totals, budgets)
    best = _cone_program(feasible, difficulty, offsets, totals, budgets, degree)
    candidates = [_shrink(one, budgets) for one in filter(None, (best, feasible))]
    return min(candidates, key=partial(_loss, difficulty=difficulty, offsets=offsets, power=degree))


def _offsets(difficulty: Difficulty, limits: Difficulty, power: int) -> dict[str, dict[str, float]]:
    return {
        observer: {
            name: (value / limits[observer][name]) ** (1 / power) if name in limits.get(observer, {}) else 0.0
            for name, value in blocks.items()
        }
        for observer, blocks in difficulty.items()
    }


def _check(difficulty: Mapping[str, Mapping[str, float]], budgets: Sequence[Budget]) -> None:
    for budget in budgets:
        if not (math.isfinite(budget.total) and budget.total > 0):
            raise PrivacyParameterError(
                "A budget must be a positive number. Nothing was planned and nothing was spent."
            )
    for observer, blocks in difficulty.items():
        if not any(observer in budget.observers for budget in budgets):
            raise PrivacyParameterError(f"{observer} has no budget: give it a privacy_requirement. Nothing was spent.")
        if any(not (math.isfinite(value) and value > 0) for value in blocks.values()):
            raise PrivacyParameterError("A difficulty must be positive and finite. Nothing was planned.")


def _water_filling(
    blocks: Mapping[str, float], offsets: Mapping[str, float], total: float, power: int, floors: Mapping[str, float]
) -> dict[str, float]:
    """min Σ k/(m + c)ᵖ subject to Σ m = total and m ≥ floor: m + c ∝ k^(1/(p+1)) above the floor."""
    least = {name: total * floors.get(name, _FLOOR / len(blocks)) for name in blocks}
    roots = {name: value ** (1 / (power + 1)) for name, value in blocks.items()}
    if not any(offsets.values()):
        level = total / math.fsum(roots.values())
        exact = {name: level * root for name, root in roots.items()}
        if all(exact[name] >= least[name] for name in blocks):
            return exact

    def filled(level: float) -> dict[str, float]:
        return {name: max(least[name], level * root - offsets[name]) for name, root in roots.items()}

    low, high = 0.0, (total + math.fsum(offsets.values())) / min(roots.values())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if math.fsum(filled(middle).values()) > total else (middle, high)
    return filled(low)


def _total(shares: Shares, budget: Budget) -> Fraction:
    """What the group pays, exactly."""
    largest: dict[str, float] = {}
    for observer in budget.observers & shares.keys():
        for name, share in shares[observer].items():
            largest[name] = max(share, largest.get(name, 0.0))
    return sum((Fraction(share) for share in largest.values()), Fraction(0))


def _shrink(shares: Shares, budgets: Sequence[Budget]) -> Shares:
    """The same shares, made smaller by the last digits until every budget holds as fractions."""
    for budget in budgets:
        while (total := _total(shares, budget)) > Fraction(budget.total):
            factor = min(float(Fraction(budget.total) / total), 1.0) * (1 - 1e-15)
            for observer in budget.observers & shares.keys():
                shares[observer] = {name: share * factor for name, share in shares[observer].items()}
    return shares


def _within_groups(
    alone: Shares, difficulty: Difficulty, totals: Mapping[str, float], budgets: Sequence[Budget]
) -> Shares:
    """What observers would choose alone, scaled into every group's budget: feasible for any numbers, but not the best.

    A group's total falls by at least the factor of its members, and an even split of the tightest budget is feasible,
    because a block that several observers see counts once; so is what lies between the two. A fifth of the even split
    keeps the floor.
    """
    asking = [budget for budget in budgets if budget.observers & alone.keys()]
    ratios = [(budget, Fraction(budget.total) / _total(alone, budget)) for budget in asking]
    even = min(totals.values()) / sum(len(blocks) for blocks in difficulty.values())
    found: Shares = {}
    for observer, blocks in alone.items():
        factor = float(min((ratio for budget, ratio in ratios if observer in budget.observers), default=Fraction(1)))
        found[observer] = {
            name: (1 - _FLOOR) * min(factor, 1.0) * share + _FLOOR * even for name, share in blocks.items()
        }
    return found


def _loss(shares: Shares, difficulty: Difficulty, offsets: Difficulty, power: int) -> float:
    return math.fsum(
        difficulty[observer][name] / (share + offsets[observer][name]) ** power
        for observer, blocks in shares.items()
        for name, share in blocks.items()
    )


#: Coefficients of some variables, and what their sum is at most.
_Row = tuple[dict[int, float], float]


def _solved(clarabel: Any, objective: np.ndarray, rows: Sequence[_Row], cones: Sequence[Any]) -> np.ndarray:
    from scipy import sparse

    size = len(objective)
    matrix = sparse.lil_matrix((len(rows), size))
    for number, (coefficients, _) in enumerate(rows):
        for column, value in coefficients.items():
            matrix[number, column] = value
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    bounds = np.array([bound for _, bound in rows])
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((size, size)), objective, matrix.tocsc(), bounds, cones, settings
    ).solve()
    return np.array(solution.x)


def _group_rows(
    budget: Budget, top: Mapping[str, int], share: Mapping[tuple[str, str], int], units: Mapping[tuple[str, str], float]
) -> Iterator[_Row]:
    """A group's largest shares fit into its budget, and none of its observers' is larger."""
    yield dict.fromkeys(top.values(), 1.0), 1.0
    for (observer, name), unit in units.items():
        if observer in budget.observers:
            yield {share[observer, name]: 1.0, top[name]: -budget.total / unit}, 0.0


def _cone_program(
    start: Shares,
    difficulty: Difficulty,
    offsets: Difficulty,
    totals: Mapping[str, float],
    budgets: Sequence[Budget],
    power: int,
) -> Shares | None:
    """min Σ k·t with t ≥ 1/(m + c)ᵖ as power cones; a group pays for the largest share of each block.

    Everything is measured in units of a feasible `start`, whose shares and costs are then 1: budgets and difficulties
    of very different size would otherwise leave the solver without digits. None where it finds no numbers at all.
    """
    clarabel: Any = import_module("clarabel")  # without type hints; a tenth of a second, and seldom needed
    units = {(observer, name): share for observer, blocks in start.items() for name, share in blocks.items()}
    pairs = list(units)
    size = 2 * len(pairs)
    share, cost = dict(zip(pairs, count(), strict=False)), dict(zip(pairs, count(len(pairs)), strict=False))
    rows: list[_Row] = []
    for budget in budgets:
        names = _names(start, budget)  # each has a largest share in the group, in units of the group's budget
        rows += _group_rows(budget, dict(zip(names, count(size), strict=False)), share, units)
        size += len(names)
    floor = _FLOOR * min(totals.values()) / len(pairs)
    rows.extend(({share[pair]: -1.0}, -floor / units[pair]) for pair in pairs)
    cones = [clarabel.NonnegativeConeT(len(rows))]
    weights = {}
    for observer, name in pairs:  # t^(1/(p+1)) · (m + c)^(p/(p+1)) ≥ 1, with m + c in units of what it is at the start
        unit = units[observer, name]
        whole = unit + offsets[observer][name]
        rows.extend(
            [
                ({cost[observer, name]: -1.0}, 0.0),
                ({share[observer, name]: -unit / whole}, offsets[observer][name] / whole),
                ({}, 1.0),
            ]
        )
        cones.append(clarabel.PowerConeT(1 / (power + 1)))
        weights[observer, name] = difficulty[observer][name] / whole**power
    objective = np.zeros(size)
    for pair, column in cost.items():
        objective[column] = weights[pair] / max(weights.values())
    values = _solved(clarabel, objective, rows, cones)[: len(pairs)] * list(units.values())
    if not np.isfinite(values).all():
        return None
    found: Shares = {}
    for (observer, name), value in zip(pairs, values, strict=True):
        found.setdefault(observer, {})[name] = max(float(value), floor)  # a solver that stops early may miss it
    return found


def _names(difficulty: Mapping[str, Mapping[str, float]], budget: Budget) -> list[str]:
    return sorted({name for observer in budget.observers & difficulty.keys() for name in difficulty[observer]})
