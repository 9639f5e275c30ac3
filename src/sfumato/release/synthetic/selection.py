"""Which pairs are worth a table: those the model misses by more than their noise would cost.

In:   noisy scores (how far each pair is from the model), the sizes of the tables, what the junction tree can hold.
Out:  the chosen pairs, best first. A function of published numbers alone: anybody can run it again.
Not here: the scores (release/synthetic/measure.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.release.synthetic.junction_tree import Scope, cells_needed, cells_of
from sfumato.release.synthetic.start import by_size, sampling_floor

__all__ = ["PairChoice", "chosen_pairs", "split_by_cells"]


@dataclass(frozen=True)
class PairChoice:
    """What a round may choose: at most `most` pairs, as a forest or not, in a junction tree of at most `cells`."""

    most: int
    cells: float
    forest: bool


def chosen_pairs(
    scores: Mapping[Scope, float],
    expected: Mapping[Scope, np.ndarray],
    error: float,
    noise: float,
    sizes: Sequence[int],
    held: Sequence[Scope],
    choice: PairChoice,
) -> list[Scope]:
    """Pairs by what a table of them would gain: the miss beyond chance, less a quarter of the noise it would bring.

    `error` is the standard error of the scores, `noise` that of one count if all `choice.most` tables are measured.
    """
    gain = {scope: score - sampling_floor(expected[scope]) for scope, score in scores.items()}
    cost = {scope: 0.5 * math.sqrt(2 / math.pi) * noise * cells_of(sizes, scope) for scope in scores}
    worth = [scope for scope in scores if gain[scope] > 2 * error and gain[scope] > cost[scope] and scope not in held]
    return _greedily(sorted(worth, key=lambda one: (cost[one] - gain[one], one)), sizes, held, choice)


def _greedily(wanted: Sequence[Scope], sizes: Sequence[int], held: Sequence[Scope], choice: PairChoice) -> list[Scope]:
    """As many of the wanted, first ones first, as make a forest (if it must be one) and fit into the cells."""
    group = list(range(len(sizes)))
    chosen: list[Scope] = []
    for scope in wanted:
        if len(chosen) >= choice.most:
            break
        ends = [_root(group, column) for column in scope]
        if choice.forest and ends[0] == ends[1]:
            continue
        if cells_needed(sizes, [*held, *chosen, scope]) > choice.cells:
            continue
        chosen.append(scope)
        group[ends[0]] = ends[1]
    return chosen


def _root(group: list[int], column: int) -> int:
    while group[column] != column:
        column = group[column]
    return column


def split_by_cells(scopes: Sequence[Scope], sizes: Sequence[int], share: float) -> dict[Scope, float]:
    """The share of each table: in proportion to cells^(2/3), which minimises the sum of their L1 errors.

    >>> split_by_cells([(0, 1), (1, 2)], [1, 8, 1], 1.0)
    {(0, 1): 0.5, (1, 2): 0.5}
    """
    return by_size({scope: cells_of(sizes, scope) for scope in scopes}, share)
