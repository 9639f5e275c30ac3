"""Accuracy against the number of rows: private logistic regression and SVC beside a fit without noise.

Run: python benchmarks/learn_growth.py [--full]. Normal rows, 119 features, labels by a noisy linear rule, ε = 1,
δ = 1e-6, replace-one. Rows are made block by block from their seeds and kept in bytes, as multiples of 1/32, so that
five million of them take 600 MB; the fit without noise minimises the same loss over the same blocks. --full: up to
5,000,000 rows.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator

import numpy as np

from sfumato.learn import PrivateLogisticRegression, PrivateSVC
from sfumato.learn.stream import fit_by_sums
from sfumato.learn.stream_sums import SumOfRows
from sfumato.run.engine.engine import Total

WIDTH, NOISE, BLOCK = 119, 0.3, 8192
#: Rows, and how far below the fit without noise ε = 1 may end.
BARS = ((20_000, 0.015), (200_000, 0.003), (5_000_000, 0.001))
DIRECTION = np.random.default_rng(0).normal(size=WIDTH)
DIRECTION /= np.linalg.norm(DIRECTION)


def block(seed: int, number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in units of 1/32, as bytes, and their labels."""
    generator = np.random.default_rng([seed, number])
    normal = generator.standard_normal((rows, WIDTH), dtype=np.float32)
    kept = np.clip(np.rint(32 * normal), -127, 127).astype(np.int8)
    return kept, (kept / 32 @ DIRECTION + NOISE * generator.standard_normal(rows) > 0).astype(np.int8)


class Blocks:
    """The passes of a table whose blocks are opened one at a time."""

    def __init__(self, rows: int, seed: int) -> None:
        self.rows, self.columns, self.passes = rows, WIDTH, 0
        starts = range(0, rows, BLOCK)
        self._blocks = [block(seed, number, min(BLOCK, rows - start)) for number, start in enumerate(starts)]

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return ((matrix / 32, codes) for matrix, codes in self._blocks)

    def total(self, statistic: SumOfRows) -> list[np.ndarray]:
        self.passes += 1
        result = None
        for matrix, codes in self:
            piece = Total.of(statistic(matrix, codes))
            result = piece if result is None else result.plus(piece)
        assert result is not None
        return result.values

    def check_unchanged(self) -> None:
        """Nobody else holds the blocks."""


def without_noise(blocks: Blocks) -> np.ndarray:
    """Coefficients of the logistic loss without noise and next to no penalty, by Newton's method."""
    point = np.zeros(WIDTH)
    while True:
        gradient, hessian = np.zeros(WIDTH), 1e-6 * blocks.rows * np.eye(WIDTH)
        for matrix, codes in blocks:
            chance = 1 / (1 + np.exp(-np.clip(matrix @ point, -500, 500)))
            gradient += matrix.T @ (chance - codes)
            scaled = (matrix * np.sqrt(chance * (1 - chance))[:, None]).astype(np.float32)
            hessian += scaled.T @ scaled
        step = np.linalg.solve(hessian, gradient)
        point = point - step
        if np.linalg.norm(step) < 1e-3 * np.linalg.norm(point):
            return point


def main(*, full: bool) -> bool:
    table, codes = (np.concatenate(parts) for parts in zip(*Blocks(200_000, 10**6), strict=True))
    print(f"{WIDTH} features, epsilon 1, delta 1e-6, {len(codes)} test rows")
    met = True
    for rows, bar in BARS if full else BARS[:2]:
        start = time.perf_counter()
        blocks = Blocks(rows, 1)
        plain = float(np.mean((table @ without_noise(blocks) > 0) == codes))
        print(f"{rows:>9} rows: without noise {plain:.4f} ({time.perf_counter() - start:.0f} s)", flush=True)
        for kind in (PrivateLogisticRegression, PrivateSVC):
            start, blocks.passes = time.perf_counter(), 0
            model = kind(1.0, 1e-6, norm=math.sqrt(WIDTH), classes=[0, 1], random_state=0)
            score = fit_by_sums(model, blocks).score(table, codes)
            ok = plain - score <= bar
            met &= ok or kind is PrivateSVC
            print(
                f"{'ok  ' if ok else 'MISS'}      {kind.__name__:27s} {score:.4f}, {plain - score:+.4f} below (bar "
                f"{bar}); mask {math.sqrt(model.plan_.mask.error()):.1g}; {blocks.passes} passes, "
                f"{time.perf_counter() - start:.0f} s",
                flush=True,
            )
    return met


if __name__ == "__main__":
    sys.exit(not main(full="--full" in sys.argv[1:]))
