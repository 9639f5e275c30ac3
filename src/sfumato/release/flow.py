"""The largest total of rows such that no owner has too many of them: an exact integer flow.

In:   for every row two owners and a whole number that is not below 0; how many rows each kind of owner may have.
Out:  the largest Σ v over sets of rows that keep both limits.
Not here: what it is good for (release/owned.py).
Proof: docs/proofs/owners.md

The limits form a totally unimodular system, so the best choice of fractions of rows is a choice of rows, and the prices
that prove it are whole numbers. A linear program proposes both; they are accepted only if they agree exactly, in whole
numbers. Otherwise augmenting paths find the answer without any tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import DataError

__all__ = ["largest_total"]

Whole = NDArray[np.int64]


def largest_total(values: Sequence[int], owners: tuple[Sequence[int], Sequence[int]], most: tuple[int, int]) -> int:
    """The largest sum of values of rows of which no owner has more than `most`.

    `owners` are numbers from 0 on, for each row and each kind of owner.

    >>> largest_total([5, 4, 3], ([0, 0, 1], [0, 1, 1]), (1, 1))
    8
    """
    worth = np.asarray(values, dtype=np.int64)
    first, second = (np.asarray(one, dtype=np.int64) for one in owners)
    if not (worth.shape == first.shape == second.shape and worth.ndim == 1):
        raise DataError("Every row needs a value and two owners. Nothing was drawn and nothing was spent.")
    useful = worth > 0
    worth, first, second = worth[useful], first[useful], second[useful]
    if not worth.size:
        return 0
    if np.bincount(first).max() <= most[0] and np.bincount(second).max() <= most[1]:
        return int(worth.sum())  # every limit holds: all rows count
    proposed = _proposed(worth, first, second, most)
    return proposed if proposed is not None else _augmented(worth, first, second, most)


def _proposed(worth: Whole, first: Whole, second: Whole, most: tuple[int, int]) -> int | None:
    """The answer, if rows and prices that a linear program proposes prove each other; None otherwise."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    rows, people, others = np.arange(worth.size), int(first.max()) + 1, int(second.max()) + 1
    sides = [
        csr_array((np.ones(worth.size), (one, rows)), shape=(one.max() + 1, worth.size)) for one in (first, second)
    ]
    limits = np.concatenate([np.full(people, most[0]), np.full(others, most[1])])
    found = linprog(-worth.astype(float), A_ub=vstack(sides).tocsr(), b_ub=limits, bounds=(0, 1), method="highs-ds")
    if found.x is None:
        return None
    chosen = found.x > 0.5
    taken = np.concatenate(
        [np.bincount(first[chosen], minlength=people), np.bincount(second[chosen], minlength=others)]
    )
    prices = np.maximum(np.rint(-found.ineqlin.marginals), 0).astype(np.int64)
    rest = worth - prices[:people][first] - prices[people:][second]
    above = int((prices * limits).sum()) + int(np.maximum(rest, 0).sum())
    below = int(worth[chosen].sum())
    return below if (taken <= limits).all() and below == above else None


def _augmented(worth: Whole, first: Whole, second: Whole, most: tuple[int, int]) -> int:
    """One unit of flow after the other along the dearest path, until none gains: exact, and slow for many rows."""
    people, others = int(first.max()) + 1, int(second.max()) + 1
    free = [np.full(people, most[0]), np.full(others, most[1])]
    used = np.zeros(worth.size, dtype=bool)
    total = 0
    while True:
        gain, path = _dearest(worth, first, second, free, used)
        if gain <= 0:
            return total
        total += gain
        free[0][first[path[0]]] -= 1
        free[1][second[path[-1]]] -= 1
        used[path] = ~used[path]


def _dearest(
    worth: Whole, first: Whole, second: Whole, free: list[Whole], used: NDArray[np.bool_]
) -> tuple[int, list[int]]:
    """The path of rows, taken and given back in turn, that gains most; by relaxing all rows until nothing changes."""
    low = -(1 << 62)
    left = np.where(free[0] > 0, 0, low)
    right = np.full(free[1].size, low)
    came: dict[tuple[int, int], int] = {}
    changed = True
    while changed:
        changed = False
        for row in range(worth.size):
            here, there, value = int(first[row]), int(second[row]), int(worth[row])
            if not used[row] and left[here] > low and left[here] + value > right[there]:
                right[there], came[1, there], changed = left[here] + value, row, True
            if used[row] and right[there] > low and right[there] - value > left[here]:
                left[here], came[0, here], changed = right[there] - value, row, True
    ends = np.where(free[1] > 0, right, low)
    end = int(ends.argmax())
    if ends[end] <= 0:
        return 0, []
    return int(ends[end]), _followed(came, end, first, second)


def _followed(came: dict[tuple[int, int], int], end: int, first: Whole, second: Whole) -> list[int]:
    """The rows that led to the end, from the first to the last."""
    path, side, place = [], 1, end
    while (side, place) in came:
        row = came[side, place]
        path.append(row)
        side, place = (0, int(first[row])) if side == 1 else (1, int(second[row]))
    return path[::-1]
