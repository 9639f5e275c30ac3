"""The same mathematics written out as dense matrices over the whole domain: shares no code with the product."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np

Subset = tuple[int, ...]


def random_workload(chance: random.Random, largest: int = 200) -> tuple[tuple[int, ...], tuple[Subset, ...]]:
    """Levels per column and wanted tables: all K-way ones, or any tables."""
    while True:
        sizes = tuple(chance.choice([1, 2, 2, 3, 4, 5]) for _ in range(chance.randint(1, 5)))
        if math.prod(sizes) <= largest and math.prod(sizes) > 1:
            break
    subsets = [t for k in range(len(sizes) + 1) for t in itertools.combinations(range(len(sizes)), k)]
    if chance.random() < 0.7:
        ways = chance.randint(1, len(sizes))
        return sizes, tuple(t for t in subsets if len(t) == ways)
    return sizes, tuple(chance.sample(subsets[1:], chance.randint(1, min(5, len(subsets) - 1))))


def counting(sizes: tuple[int, ...], table: Subset) -> np.ndarray:
    """The matrix that makes the table's counts of the whole domain's."""
    made = np.ones((1, 1))
    for column, levels in enumerate(sizes):
        made = np.kron(made, np.eye(levels) if column in table else np.ones((1, levels)))
    return made


def workload_matrix(sizes: tuple[int, ...], tables: tuple[Subset, ...]) -> np.ndarray:
    return np.vstack([counting(sizes, table) for table in tables])


def records(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, sizes)))


def tables_of(sizes: tuple[int, ...], tables: tuple[Subset, ...], rows: list[tuple[int, ...]]) -> dict:
    """Counts, one row after the other."""
    made = {table: np.zeros([sizes[c] for c in table], dtype=np.int64) for table in tables}
    for row in rows:
        for table in tables:
            made[table][tuple(row[c] for c in table)] += 1
    return made


def least_squares(
    matrix: np.ndarray, variances: np.ndarray, drawn: np.ndarray, facts: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Best linear unbiased x of y = Bx + noise with exact facts Cx = c, and its covariance, by pseudo-inverses.

    Only what B and C determine is meant: compare B x and B K Bᵀ.
    """
    base = np.linalg.pinv(facts) @ values if len(facts) else np.zeros(matrix.shape[1])
    free = np.eye(matrix.shape[1]) - np.linalg.pinv(facts) @ facts if len(facts) else np.eye(matrix.shape[1])
    scaled = (matrix @ free) / np.sqrt(variances)[:, None]
    inverse = np.linalg.pinv(scaled, rcond=1e-10)
    found = base + free @ inverse @ ((drawn - matrix @ base) / np.sqrt(variances))
    half = free @ inverse
    return found, half @ half.T
