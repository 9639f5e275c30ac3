"""Edges that are bought: a fine noisy histogram of each number nobody has cut, and the bins it suggests.

In:   the public ends of an interval; noisy counts between fine public edges.
Out:  the fine edges; bins of about equal weight, values that stand out alone; the shape inside them.
Not here: the noise (release/synthetic/measure.py). What follows from noisy counts is post-processing.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Interval
from sfumato.release.synthetic.inside import Inside
from sfumato.release.synthetic.levels import DEFAULT_BINS, Levels

__all__ = ["FEWEST_BINS", "MORE_BINS", "fine_levels", "leaves_few", "with_bought_edges"]

Numbers = NDArray[np.float64]
#: Fine cells: this many equal ones, and steps of √2 towards zero.
_EVEN, _STEPS = 64, 40
#: A bin should hold this many times the standard error of its own count.
_WORTH = 3.0
#: As many bins are asked for at least; noise may leave fewer.
FEWEST_BINS = 4
#: More bins than a column has that is cut evenly: around values that stand out.
MORE_BINS = 24


def fine_levels(column: Levels) -> Levels:
    """The column cut so finely that any reasonable bins can be put together from it; a function of its ends alone."""
    assert isinstance(column.domain, Interval)
    low, high = column.domain.low, column.domain.high
    zero = min(max(0.0, low), high)
    halves = column.domain.width * 2.0 ** (-np.arange(2, _STEPS) / 2)
    steps = np.array([float(f"{step:.3g}") for step in halves])  # as a person would write them
    inner = np.concatenate([np.linspace(low, high, _EVEN + 1), zero + steps, zero - steps])
    if column.whole:
        whole = np.arange(np.ceil(low), np.floor(high) + 1) if column.domain.width <= 8 * _EVEN else np.rint(inner)
        inner = np.unique(whole)
    inner = np.append(inner, column.forced)
    inner = np.unique(inner[(inner > low) & (inner < high)])
    points = [low, high, *([zero] if low < zero < high else [])]
    if column.whole:
        points = [edge for edge in column.forced if edge == high]
    edges = np.sort(np.concatenate([[low, high], inner, points]))
    return dataclasses.replace(column, edges=tuple(_at_most_twice(edges).tolist()), inside=None)


def _at_most_twice(edges: Numbers) -> Numbers:
    values, times = np.unique(edges, return_counts=True)
    return np.repeat(values, np.minimum(times, 2))


def with_bought_edges(fine: Levels, counts: Numbers, deviation: float, most: int) -> Levels:
    """At most `most` bins of about equal weight, fewer where the noise would drown them; numbers lie in them as the
    counts say."""
    listed = counts[: fine.listed]
    total = max(float(listed.sum()), 1.0)
    # The count of one of b bins has the error σ√(cells/b): b is as large as keeps total/b above _WORTH of these.
    bins = int(np.clip((total / (_WORTH * deviation * math.sqrt(fine.listed))) ** 2, FEWEST_BINS, DEFAULT_BINS))
    wanted = max(total / bins, 4 * deviation)
    edges = _edges(fine, listed, wanted, deviation)
    while len(edges) - 1 > max(most, len(fine.forced) + 2):
        wanted *= 1.25
        edges = _edges(fine, listed, wanted, deviation)
    made = dataclasses.replace(fine, edges=edges)
    return dataclasses.replace(made, inside=Inside.stepwise(fine.ends(), _quieter(fine, made, listed, deviation)))


def leaves_few(fine: Levels, rows: float, deviation: float) -> bool:
    """Whether noise is expected to leave numbers that are spread evenly over the fine cells fewer than FEWEST_BINS."""
    cells = max(1.0, fine.listed / FEWEST_BINS)
    return fine.listed >= FEWEST_BINS and rows / FEWEST_BINS < 4 * deviation * math.sqrt(cells)


def _edges(fine: Levels, counts: Numbers, wanted: float, deviation: float) -> tuple[float, ...]:
    """Bins between the edges that must be, and between the two ends."""
    edges = np.array(fine.edges)
    parts = [0, *np.flatnonzero(np.isin(edges[1 : len(counts)], fine.forced)) + 1, len(counts)]
    begins = [
        first + at
        for first, beyond in itertools.pairwise(parts)
        for at in _cut(edges[first:beyond], counts[first:beyond], wanted, deviation)
    ]
    return (*edges[begins].tolist(), float(edges[-1]))


def _cut(begins: Numbers, counts: Numbers, wanted: float, deviation: float) -> list[int]:
    """The first cells of bins: a new one wherever enough is gathered, and around a cell that is enough alone.

    Counts stand as they are, those below zero too, against the noise of all that are gathered: else the noise of empty
    cells would add up to a bin of nothing.
    """
    found, gathered, cells = [0], 0.0, 0
    for at, weight in enumerate(counts):
        if cells and weight >= wanted and begins[at] > begins[found[-1]]:
            found.append(at)
            gathered, cells = 0.0, 0
        gathered += weight
        cells += 1
        if gathered >= max(wanted, 4 * deviation * math.sqrt(cells)) and at + 1 < len(counts):
            found.append(at + 1)
            gathered, cells = 0.0, 0
    if gathered < max(wanted, 4 * deviation * math.sqrt(max(cells, 1))) / 4 and len(found) > 2:
        found.pop()
    return found


def _quieter(fine: Levels, made: Levels, counts: Numbers, deviation: float) -> Numbers:
    """Fine counts drawn towards a smooth spread over their bin, half by half: where the halves differ by more than
    noise they stay so, and inside each the same again. A long tail is so cut as finely as its counts can tell."""
    ends = fine.ends()
    wide = np.diff(ends) > 0
    bins = np.clip(np.searchsorted(made.edges, fine.edges[:-1], side="right") - 1, 0, made.listed - 1)
    totals = np.maximum(np.bincount(bins[wide], counts[wide], minlength=made.listed), 0.0)
    smooth = Inside.smooth(made.ends(), totals)
    spread = np.diff(np.interp(ends, smooth.places, smooth.below)) + 1e-15 * np.diff(ends)
    quiet = np.zeros(len(counts))
    for number in range(made.listed):
        cells = (bins == number) & wide
        if not cells.any() or totals[number] == 0:
            continue
        quiet[cells] = _halved(counts[cells], spread[cells], float(totals[number]), deviation**2)
    return quiet


def _beyond(count: float, variance: float) -> float:
    return count * max(0.0, 1 - variance / count**2) if count else 0.0


def _halved(counts: Numbers, spread: Numbers, total: float, variance: float) -> Numbers:
    """`total` over the cells: in two halves as `spread` says, moved by what their counts say beyond their noise.

    A half that holds less than its own noise gives way to the other: else noise alone would fill the end of a tail.
    """
    size = len(counts)
    if size == 1 or total <= 0:
        return total * spread / spread.sum()
    half = size // 2
    share = float(spread[:half].sum() / spread.sum())
    away = float(counts[:half].sum() - share * counts.sum())
    noise = variance * (half * (1 - share) ** 2 + (size - half) * share**2)
    kept = max(0.0, 1 - noise / away**2) if away else 0.0
    left = min(max(share * total + kept * away, 0.0), total)
    seen = [_beyond(left, half * variance), _beyond(total - left, (size - half) * variance)]
    left = total * seen[0] / sum(seen) if sum(seen) > 0 else share * total
    halves = ((counts[:half], spread[:half], left), (counts[half:], spread[half:], total - left))
    return np.concatenate([_halved(*half, variance) for half in halves])
