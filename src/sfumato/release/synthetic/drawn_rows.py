"""Rows of level codes from tables of shares: near what was asked for within every group, and in all of them together.

In:   which group each row is in, the shares of the levels within each group.
Out:  a level for each row. All of this is post-processing of what was published.
Not here: the law that the shares come from (release/synthetic/junction_tree.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["even_draws", "evened", "place"]

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
_TINY = 1e-300
#: What a group is taken to ask for that asks for nothing: it comes last.
_HARDLY = 1e-9
#: So many neighbouring groups of rows share out what their own shares leave over.
_BLOCK = 16


def place(codes: NDArray[np.int32], scope: Sequence[int], sizes: Sequence[int]) -> NDArray[np.int64]:
    """The place of each row's levels of these columns in their flattened table."""
    found = np.zeros(len(codes), np.int64)
    for column in scope:
        found *= sizes[column]
        found += codes[:, column]
    return found


def even_draws(group: NDArray[np.int64], weights: Numbers, generator: np.random.Generator) -> NDArray[np.int64]:
    """One cell per row by its group's weights: shares within a group are exact to 1, and over groups nearly so."""
    # Everything in the order of the groups: sorted searches are several times faster than scattered ones.
    order = np.argsort(group + generator.random(len(group)))
    ordered = group[order]
    sizes = np.bincount(group, minlength=len(weights))
    first = np.cumsum(sizes) - sizes
    alike = np.argsort(sizes, kind="stable")[np.count_nonzero(sizes == 0) :]  # neighbours with as many rows round alike
    within = np.zeros(len(weights))
    within[alike] = _spread_uniforms(len(alike), generator)
    uniform = (np.arange(len(group)) - first[ordered] + within[ordered]) / sizes[ordered]
    ends = np.minimum(np.cumsum(_shares(weights), axis=1), 1.0)
    ends[:, -1] = 1.0
    # One sorted search for all groups: group g owns the interval [g, g + 1).
    flat = (np.arange(len(weights))[:, None] + ends * (1 - 1e-12)).ravel()
    found = np.searchsorted(flat, ordered + uniform * (1 - 2e-12), side="right") - ordered * weights.shape[1]
    drawn = np.empty(len(group), np.int64)
    drawn[order] = np.clip(found, 0, weights.shape[1] - 1)
    return drawn


def _shares(weights: Numbers) -> Numbers:
    """Of each group, however little it weighs; alike where it weighs nothing.

    >>> _shares(np.array([[1e-310, 0.0], [3.0, 1.0]])).tolist()
    [[1.0, 0.0], [0.75, 0.25]]
    """
    sums = weights.sum(axis=1, keepdims=True)
    return np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), 1.0 / weights.shape[1])


def _spread_uniforms(number: int, generator: np.random.Generator) -> Numbers:
    """Uniforms spread evenly over each _BLOCK of neighbours, and over each _BLOCK of these blocks finer still.

    What is rounded up in one group is rounded down near by. The orders are random, so that two draws have nothing to
    do with each other.
    """
    blocks = -(-number // _BLOCK)
    order = np.arange(_BLOCK)
    coarse = generator.permuted(np.broadcast_to(order, (blocks, _BLOCK)), axis=1)
    many = -(-blocks // _BLOCK)
    fine = generator.permuted(np.broadcast_to(order[:, None], (many, _BLOCK, _BLOCK)), axis=1).reshape(-1, _BLOCK)
    inside = (np.take_along_axis(fine[:blocks], coarse, axis=1) + generator.random(coarse.shape)) / _BLOCK
    return ((coarse + inside) / _BLOCK).ravel()[:number]


def evened(drawn: Places, group: Places, weights: Numbers, generator: np.random.Generator) -> Places:
    """The same levels, but for a few rows: over all groups every level is now as frequent as the law has it, to one.

    Rows move from a level that is too frequent to one that is too rare, in groups drawn by how much their own shares
    ask for it: taking the first of them would give rare levels to the same groups again and again. Where the law has
    nothing at all for these groups, they stay as they were drawn.
    """
    levels = weights.shape[1]
    asked, counts = weights.sum(axis=0), np.bincount(drawn, minlength=levels)
    whole = float(asked.sum())
    if not whole > _TINY:
        return drawn
    surplus = counts - _wanted(counts, asked / whole * len(drawn), generator)
    if not surplus.any():
        return drawn
    sizes = np.bincount(group, minlength=len(weights))
    missing = sizes[:, None] * _shares(weights)
    missing -= np.bincount(group * levels + drawn, minlength=missing.size).reshape(missing.shape)
    made, rows_of = drawn.copy(), _rows_of(drawn, levels)
    for source, target, number in _moves(surplus):
        left = number
        while left:
            rows = generator.permutation(rows_of(source))
            rows = rows[(made[rows] == source) & (weights[group[rows], target] > 0)]
            here, first = np.unique(group[rows], return_index=True)  # of each group one row
            asks = np.maximum(missing[here, target], 0.0) * np.maximum(-missing[here, source], 0.0)
            late = generator.exponential(size=len(here)) / np.maximum(asks, _HARDLY)
            taken = rows[first[np.argsort(late)[:left]]]
            if not len(taken):
                break  # no group may have that level
            made[taken] = target
            missing[group[taken], source] += 1
            missing[group[taken], target] -= 1
            left -= len(taken)
    return made


def _rows_of(drawn: Places, levels: int) -> Callable[[int], Places]:
    """The rows that were drawn with a level."""
    order = np.argsort(drawn.astype(np.uint16) if levels <= 1 << 16 else drawn, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(drawn, minlength=levels))])
    return lambda level: order[ends[level] : ends[level + 1]]


def _moves(surplus: Places) -> Iterator[tuple[int, int, int]]:
    """Who gives to whom how many, in the order of the levels: of numbers no row moves farther than it must."""
    over, under = np.maximum(surplus, 0), np.maximum(-surplus, 0)
    sources, targets = np.repeat(np.arange(len(over)), over), np.repeat(np.arange(len(under)), under)
    pairs, numbers = np.unique(np.stack([sources, targets]), axis=1, return_counts=True)
    for (source, target), number in zip(pairs.T.tolist(), numbers.tolist(), strict=True):
        yield source, target, number


def _wanted(counts: Places, expected: Numbers, generator: np.random.Generator) -> Places:
    """Whole numbers next to what is expected, as near to the drawn ones as they may be: few rows move.

    >>> _wanted(np.array([0, 9]), np.array([0.2, 8.8]), np.random.default_rng(0)).tolist()
    [0, 9]
    """
    low, high = np.floor(expected + 1e-9).astype(np.int64), np.ceil(expected - 1e-9).astype(np.int64)
    wanted = np.clip(counts, low, high)
    left = int(counts.sum() - wanted.sum())
    way = 1 if left > 0 else -1
    room = np.flatnonzero((high if left > 0 else low) != wanted)
    late = generator.exponential(size=len(room)) / np.maximum(way * (expected - wanted)[room], _HARDLY)
    wanted[room[np.argsort(late)[: abs(left)]]] += way
    return wanted
