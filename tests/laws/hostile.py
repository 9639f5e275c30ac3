"""Hostile tables for every estimator: huge, tiny, constant, lonely, one-sided, empty, misdescribed.

In:   a seed.
Out:  a table, labels, and the public facts somebody might state about it.
Not here: the law (tests/laws/test_ends.py).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.core.adjacency import Adjacency

HUGE = np.finfo(np.float64).max


@dataclass(frozen=True)
class Hostile:
    table: Any
    labels: np.ndarray
    adjacency: Adjacency
    public_size: int
    norm: float | None


def hostile(seed: int) -> Hostile:
    rng = random.Random(seed)
    draw = np.random.default_rng(seed)
    rows, columns = rng.choice([1, 2, 3, 40, 300]), rng.choice([0, 1, 1, 2, 5])
    table = _numbers(rng, draw, rows, columns)
    for _ in range(rng.choice([0, 0, 1, 2])):  # a few people who mean ill
        if columns:
            table[rng.randrange(rows)] = rng.choice([HUGE, -HUGE, 1e308, 1e200, 1e-310, 5e-324, 0.0]) * rng.choice(
                [1.0, draw.choice([-1.0, 1.0], columns)]
            )
    labels = draw.integers(0, 2, rows) if rng.random() < 0.7 else np.full(rows, rng.randint(0, 1))
    given: Any = table
    if columns and rng.random() < 0.3:
        given = rng.choice([sparse.csr_array, sparse.csc_array])(table)
        if rng.random() < 0.5:
            given = _with_repeats(sparse.csr_array(table), rng)
    size = max(1, int(rows * rng.choice([1, 1, 0.01, 0.2, 50])))
    return Hostile(
        given, labels, rng.choice([REPLACE_ONE, REPLACE_ONE, ADD_REMOVE]), size, rng.choice([1.0, 1.0, None])
    )


def _numbers(rng: random.Random, draw: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    kind = rng.choice(["usual", "usual", "zero", "constant", "huge", "tiny", "subnormal", "twins"])
    usual = draw.uniform(-0.5, 0.5, (rows, columns))
    match kind:
        case "zero":
            return np.zeros((rows, columns))
        case "constant":
            return np.full((rows, columns), rng.choice([1.0, -3.0, 1e150]))
        case "huge":
            return usual * 2 * rng.choice([HUGE, 1e305, 1e160])
        case "tiny":
            return usual * 1e-200
        case "subnormal":
            return usual * 1e-315
        case "twins":
            return np.repeat(usual[:1], rows, axis=0)
    return usual


def _with_repeats(table: sparse.csr_array, rng: random.Random) -> sparse.csr_array:
    """One row more entries that are stored twice and cancel each other."""
    data = np.concatenate([table.data, [big := rng.choice([1e20, 1e300]), -big]])
    indices = np.concatenate([table.indices, [0, 0]])
    pointers = table.indptr.copy()
    pointers[-1] += 2
    return sparse.csr_array((data, indices, pointers), shape=table.shape)
