"""The cheapest (ε, δ)-private channel for given costs, by exact slacks.

In:   a cost for every (input, output), ε, δ, wanted means.
Out:  Solution, as from tailored_solver.py.
Not here: the pure case (tailored_solver.py), making the probabilities exact (tailored_repair.py).

For two inputs x, x' the slacks s_y ≥ (f_xy - e^ε f_x'y)₊ may sum to δ. Sharing δ out evenly over the outputs is
stricter than needed; sharing it over the inputs, as published, is wrong (with |X| = 2, |Y| = 50 and δ = 0.1 it allowed
a true δ of 0.98). Pairs of inputs are added as they are violated, since most never are. Clarabel
solves; its answer is repaired after.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InputError, PrivacyParameterError
from sfumato.mechanisms.tailored.solver import Solution, WantedMeans

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["MOST_INPUTS", "relaxed_channel"]

#: 41 inputs and outputs take eleven seconds of one core, 64 more than a minute.
MOST_INPUTS = 48
_ADDED = 40

Pair = tuple[int, int]


def relaxed_channel(costs: np.ndarray, epsilon: float, delta: float, moments: WantedMeans | None = None) -> Solution:
    """The (ε, δ)-private channel of least total cost.

    >>> costs = 1 - np.eye(3)
    >>> loose, strict = relaxed_channel(costs, 0.5, 0.1), relaxed_channel(costs, 0.5, 1e-6)
    >>> bool(loose.value < strict.value)
    True
    """
    inputs = len(costs)
    if inputs > MOST_INPUTS:
        raise PrivacyParameterError(
            f"With δ > 0 every pair of inputs has constraints of its own: {inputs} inputs are too many, "
            f"{MOST_INPUTS} are the limit. Ask for δ = 0 or fewer bins. Nothing was drawn."
        )
    pairs: list[Pair] = [pair for i, j in pairwise(range(inputs)) for pair in ((i, j), (j, i))]
    pairs += [pair for pair in ((0, inputs - 1), (inputs - 1, 0)) if pair not in pairs]
    while True:  # ends: every round adds pairs, and there are finitely many
        f, value, bound = _solve(costs, epsilon, delta, moments, pairs)
        excess = np.maximum(f[:, None, :] - math.exp(epsilon) * f[None, :, :], 0.0).sum(axis=2)
        known = set(pairs)
        worst = sorted(zip(*np.nonzero(excess > delta + 1e-9), strict=True), key=lambda pair: -excess[pair])
        fresh = [(int(i), int(j)) for i, j in worst if (int(i), int(j)) not in known]
        if not fresh:
            return Solution(f, value, bound, len(pairs))
        pairs += fresh[:_ADDED]


def _solve(
    costs: np.ndarray, epsilon: float, delta: float, moments: WantedMeans | None, pairs: list[Pair]
) -> tuple[np.ndarray, float, float]:
    import clarabel as solver  # 0.1 s to import, needed for δ > 0 only
    from scipy import sparse  # slow to load, and only δ > 0 needs it

    clarabel: Any = solver  # it has no type stubs

    inputs, outputs = costs.shape
    cells, slacks = inputs * outputs, len(pairs) * outputs
    soft = moments is not None and bool(np.isfinite(moments.penalty).all())
    biases = moments.wanted.size if moments is not None and soft else 0
    size = cells + slacks + biases
    scale = float(np.abs(costs).max()) or 1.0
    linear = np.concatenate([costs.ravel() / scale, np.zeros(slacks + biases)])
    penalty = moments.penalty.ravel() / scale if moments is not None and soft else np.zeros(0)
    quadratic = sparse.diags(np.concatenate([np.zeros(cells + slacks), penalty]), format="csc")
    equal, right = _equations(inputs, outputs, moments, size, cells + slacks if soft else None)
    below, limits = _inequalities(inputs, outputs, epsilon, delta, pairs, size)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.ZeroConeT(len(right)), clarabel.NonnegativeConeT(len(limits))]
    matrix = sparse.vstack([equal, below], format="csc")
    answer = clarabel.DefaultSolver(
        sparse.triu(quadratic, format="csc"), linear, matrix, np.concatenate([right, limits]), cones, settings
    ).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        raise InputError(
            "No (ε, δ)-private channel on these outputs has the wanted means. Give more outputs or a wider range of "
            "them, a larger epsilon, or bias='soft'."
        )
    f = np.maximum(np.array(answer.x[:cells]).reshape(inputs, outputs), 0.0)
    return f / f.sum(axis=1, keepdims=True), answer.obj_val * scale, answer.obj_val_dual * scale


def _equations(
    inputs: int, outputs: int, moments: WantedMeans | None, size: int, first_bias: int | None
) -> tuple[sparse.csc_matrix, np.ndarray]:
    from scipy import sparse  # slow to load, and only δ > 0 needs it

    blocks = [sparse.kron(sparse.eye(inputs), np.ones((1, outputs)))]
    right = [np.ones(inputs)]
    if moments is not None:
        blocks += [sparse.kron(sparse.eye(inputs), values[None, :]) for values in moments.values]
        right += list(moments.wanted)
    matrix = sparse.csc_matrix(sparse.vstack(blocks))
    matrix = sparse.csc_matrix(
        sparse.hstack([matrix, sparse.csc_matrix((inputs * len(blocks), size - inputs * outputs))])
    )
    if moments is not None and first_bias is not None:
        count = moments.wanted.size
        rows, columns = inputs + np.arange(count), first_bias + np.arange(count)
        matrix = matrix - sparse.csc_matrix((np.ones(count), (rows, columns)), shape=matrix.shape)
    return sparse.csc_matrix(matrix), np.concatenate(right)


def _inequalities(
    inputs: int, outputs: int, epsilon: float, delta: float, pairs: list[Pair], size: int
) -> tuple[sparse.csc_matrix, np.ndarray]:
    """f ≥ 0, s ≥ 0, s ≥ f_x - e^ε f_x', Σ s ≤ δ, all as matrix · variables ≤ limits."""
    from scipy import sparse  # slow to load, and only δ > 0 needs it

    cells, slacks = inputs * outputs, len(pairs) * outputs
    first, second = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    number = np.arange(slacks)
    output = number % outputs
    one, other = np.repeat(first, outputs) * outputs + output, np.repeat(second, outputs) * outputs + output
    # Divided by e^ε where that is large, so that no coefficient is.
    factor = math.exp(-epsilon)
    values = np.concatenate([np.full(slacks, factor), np.full(slacks, -1.0), np.full(slacks, -factor)])
    columns = np.concatenate([one, other, cells + number])
    relation = sparse.csc_matrix((values, (np.tile(number, 3), columns)), shape=(slacks, size))
    totals = sparse.csc_matrix((np.ones(slacks), (number // outputs, cells + number)), shape=(len(pairs), size))
    signs = -sparse.eye(cells + slacks, size, format="csc")
    limits = np.concatenate([np.zeros(cells + slacks), np.zeros(slacks), np.full(len(pairs), delta)])
    return sparse.csc_matrix(sparse.vstack([signs, relation, totals])), limits
