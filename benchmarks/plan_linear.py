"""Placing noise for linear queries: time, certified gap, and the comparison with local and central privacy.

In:   made-up matrices; with cvxpy installed also its conic program for the hybrid.
Out:  one line for each number beside the bar it must keep.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sfumato.core import ApproxDP, gaussian_mu
from sfumato.core.certificate import Certificate
from sfumato.evidence.verify import verify
from sfumato.plan import Placement, place_noise

WANTED = ApproxDP(1.0, 1e-5)
Line = tuple[str, str, str, bool]


def errors_of(placed: Placement) -> dict[str, float]:
    return {placed.name: placed.error} | {other.name: other.error for other in placed.alternatives}


def worst_gap(placed: Placement) -> float:
    return max(placed.gap, *(other.gap for other in placed.alternatives))


def timed(matrix: np.ndarray, name: str, limit: float) -> Iterator[Line]:
    """All five placements together, certified, and then verified from the certificate."""
    start = time.perf_counter()
    placed = place_noise(matrix, WANTED, 1.0)
    seconds = time.perf_counter() - start
    yield f"{name}: all placements", f"{seconds:.2f} s", f"<= {limit:g} s", seconds <= limit
    yield f"{name}: largest gap", f"{worst_gap(placed):.1e}", "<= 1e-4", worst_gap(placed) <= 1e-4
    start = time.perf_counter()
    certificate = Certificate.issue(subject="bench", events=placed.events(), proofs=["linear_placement"])
    ok = verify(certificate).ok
    yield f"{name}: issue and verify", f"{time.perf_counter() - start:.2f} s", "verified", ok


def random_question(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[int] | None]:
    outputs, inputs = (int(size) for size in generator.integers(1, 16, 2))
    kind = generator.integers(4)
    if kind == 0:
        matrix = generator.normal(size=(outputs, inputs))
    elif kind == 1:
        matrix = generator.uniform(size=(outputs, inputs))
    elif kind == 2:
        matrix = (generator.uniform(size=(outputs, inputs)) < 0.5).astype(float)
    else:
        matrix = np.tril(np.ones((max(outputs, inputs),) * 2))[:outputs, :inputs]
    matrix[0, 0] = 1.0
    owners = [int(who) for who in generator.integers(0, inputs, inputs)] if generator.integers(2) else None
    return matrix, generator.uniform(0.1, 3.0, inputs), owners


def against_the_classics(count: int = 1000) -> Iterator[Line]:
    """Never worse than the better of local and central privacy; correlated never worse than hybrid."""
    lost = wider = 0
    gains, gap = [], 0.0
    start = time.perf_counter()
    for seed in range(count):
        matrix, width, owners = random_question(np.random.default_rng(seed))
        placed = place_noise(matrix, WANTED, width, owners)
        errors = errors_of(placed)
        better = min(errors["local"], errors["central"])
        lost += errors["hybrid"] > better
        wider += errors["correlated"] > errors["hybrid"]
        gains.append(placed.error / better)
        gap = max(gap, worst_gap(placed) if placed.sensitivity_rule == "vertices" else 0.0)
    seconds = time.perf_counter() - start
    yield f"{count} random A: hybrid worse than local or central", str(lost), "0", lost == 0
    yield f"{count} random A: correlated worse than hybrid", str(wider), "0", wider == 0
    yield f"{count} random A: largest gap", f"{gap:.1e}", "<= 1e-4", gap <= 1e-4
    yield f"{count} random A: error / better classic, median", f"{np.median(gains):.3f}", "", True
    yield f"{count} random A: time for each", f"{seconds / count * 1e3:.0f} ms", "", True


def conic_hybrid(matrix: np.ndarray) -> float:
    cvxpy: Any = import_module("cvxpy")
    outputs, inputs = matrix.shape
    eta, xi = cvxpy.Variable(inputs, nonneg=True), cvxpy.Variable(outputs, nonneg=True)
    covariance = matrix @ cvxpy.diag(eta) @ matrix.T + cvxpy.diag(xi)
    limits = [cvxpy.matrix_frac(column, covariance) <= 1 for column in matrix.T]
    program = cvxpy.Problem(cvxpy.Minimize(np.square(matrix).sum(axis=0) @ eta + cvxpy.sum(xi)), limits)
    return float(program.solve(solver="CLARABEL")) / gaussian_mu(1.0, 1e-5) ** 2


def against_a_conic_solver() -> Iterator[Line]:
    if find_spec("cvxpy") is None:
        return
    worst, ours, theirs = 0.0, 0.0, 0.0
    for seed in range(10):
        matrix = np.random.default_rng(seed).uniform(size=(12, 16))
        start = time.perf_counter()
        placed = place_noise(matrix, WANTED, 1.0, placements=("input", "output"))
        middle = time.perf_counter()
        conic = conic_hybrid(matrix)
        theirs += time.perf_counter() - middle
        ours += middle - start
        worst = max(worst, abs(errors_of(placed)["hybrid"] / conic - 1))
    yield "hybrid beside the conic optimum, 10 of 12x16", f"{worst:.1e}", "<= 1e-3", worst <= 1e-3
    yield "time beside cvxpy with Clarabel", f"{ours / theirs:.3f}", "", True


def main() -> None:
    generator = np.random.default_rng(0)
    table = Table("linear queries", "measured", "bar", "kept")
    lines = [
        *timed(generator.normal(size=(200, 100)), "m=200, n=100", 1.0),
        *timed(generator.normal(size=(1000, 200))[:, generator.integers(0, 200, 5000)], "m=1000, n=5000", 20.0),
        *against_a_conic_solver(),
        *against_the_classics(),
    ]
    for name, measured, bar, kept in lines:
        table.add_row(name, measured, bar, "yes" if kept else "NO")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
