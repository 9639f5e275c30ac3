"""The few changes that matter: cutting planes around the interior-point methods of plan/linear/solver.py.

In:   what each person can change: one vector, or a box of several.
Out:  the cheapest noise against all of them, with a lower bound that holds whatever was left out.
Not here: the methods themselves (plan/linear/solver.py), the guarantee (core/events/linear.py).

Leaving a constraint out can only lower the optimum, so the bound of a smaller program stays a bound; the price of its
solution is scaled by the worst change of all. Worst changes are added until the two meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from sfumato.core.events.linear import MOST_VERTICES_OF, half_vertices
from sfumato.plan.linear.solver import FreeNoise, dual_bound, least_covariance, least_variances

__all__ = ["Changes", "FreeOptimum", "PlacedOptimum", "cheapest_covariance", "cheapest_variances"]

_MOST_ROUNDS = 40
#: Vectors, or input directions, with which a program starts beyond a few for each dimension.
_PLENTY = 250
_AT_ONCE = 200
#: What is further than this from its limit is left out of the next round; if it matters it comes back.
_PRESSING = 0.9


@dataclass(frozen=True, eq=False)
class Changes:
    """What one person can do to the output: `singles` are vectors (columns), `families` boxes spanned by columns.

    >>> boxes = Changes(np.empty((2, 0)), (np.eye(2),))
    >>> boxes.worst().squares
    array([2.])
    """

    singles: np.ndarray
    families: tuple[np.ndarray, ...] = ()

    def through(self, matrix: np.ndarray) -> Changes:
        return Changes(matrix @ self.singles, tuple(matrix @ family for family in self.families))

    def worst(self) -> Worst:
        """The largest squared length of each single and in each family (beyond 12 vectors: found by search)."""
        signs = tuple(map(_worst_signs, self.families))
        boxes = [float(np.square(family @ sign).sum()) for family, sign in zip(self.families, signs, strict=True)]
        return Worst(np.append(np.square(self.singles).sum(axis=0), boxes), signs)

    def start(self) -> np.ndarray:
        """Vectors that span everything: all singles if they are few, corners of each family."""
        corners = [family @ _spanning_signs(family.shape[1]) for family in self.families]
        return np.hstack([self.singles[:, self._few_singles()], *corners])

    def _few_singles(self) -> np.ndarray:
        count, most = self.singles.shape[1], 3 * len(self.singles) + _PLENTY
        if count <= most:
            return np.arange(count)
        norms = np.linalg.norm(self.singles, axis=0)
        _, pivots = qr(self.singles, mode="r", pivoting=True)  # type: ignore[misc]  # a pair in this mode
        spanning = pivots[: len(self.singles)]
        return np.union1d(spanning, np.argsort(-norms, kind="stable")[: most // 3])

    def violated(self, worst: Worst, above: float) -> np.ndarray:
        """The vectors of the worst offenders against `above`."""
        order = np.argsort(-worst.squares, kind="stable")[:_AT_ONCE]
        chosen = order[worst.squares[order] > above]
        count = self.singles.shape[1]
        boxes = [self.families[at - count] @ worst.signs[at - count] for at in chosen if at >= count]
        return np.column_stack([self.singles[:, chosen[chosen < count]], *boxes])


class Worst(NamedTuple):
    squares: np.ndarray
    signs: tuple[np.ndarray, ...]


def _worst_signs(family: np.ndarray) -> np.ndarray:
    size = family.shape[1]
    if size <= MOST_VERTICES_OF:
        corners = half_vertices(size)
        return corners[int(np.argmax(np.square(corners @ family.T).sum(axis=1)))]
    gram = family.T @ family
    leading = np.sign(np.linalg.eigh(gram)[1][:, -1])
    tried = [_climb(gram, start) for start in (np.where(leading == 0, 1.0, leading), np.ones(size))]
    return max(tried, key=lambda sign: float(sign @ gram @ sign))


def _climb(gram: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """One flip at a time while the length grows."""
    sign = sign.copy()
    for _ in range(50 * len(sign)):
        gains = np.diagonal(gram) - sign * (gram @ sign)
        at = int(np.argmax(gains))
        if gains[at] <= 1e-12 * abs(float(sign @ gram @ sign)):
            break
        sign[at] = -sign[at]
    return sign


def _spanning_signs(size: int) -> np.ndarray:
    """All plus, and one minus in each place but the first: `size` independent corners, one a column."""
    signs = np.ones((size, size))
    signs[np.arange(1, size), np.arange(1, size)] = -1.0
    return signs


class FreeOptimum(NamedTuple):
    """Σ with its price after scaling to all changes, and a lower bound."""

    noise: FreeNoise
    value: float
    bound: float


def cheapest_covariance(changes: Changes, tolerance: float) -> FreeOptimum:
    """The Σ of least trace against all `changes`, which must span their space.

    >>> best = cheapest_covariance(Changes(np.diag([1.0, 3.0])), 1e-6)
    >>> round(best.value, 4), round(best.bound, 4)
    (10.0, 10.0)
    """
    vectors = changes.start()
    best: FreeOptimum | None = None
    for _ in range(_MOST_ROUNDS):
        noise = least_covariance(vectors, tolerance / 2)
        whitening = noise.whitening
        worst = changes.through(whitening).worst()
        value = float(worst.squares.max()) * float(noise.roots.sum())
        bound = noise.bound if best is None else max(best.bound, noise.bound)
        cheaper = best is None or value < best.value
        best = FreeOptimum(noise, value, bound) if cheaper or best is None else best._replace(bound=bound)
        found = changes.violated(worst, noise.worst * (1 + tolerance / 4))
        if best.value <= best.bound * (1 + tolerance) or not found.size:
            break
        vectors = np.hstack([_needed(vectors, whitening), found])
    assert best is not None
    return best


def _needed(vectors: np.ndarray, whitening: np.ndarray) -> np.ndarray:
    """Without the vectors that press on nothing, where there are many."""
    if vectors.shape[1] <= 2 * len(vectors) + _AT_ONCE:
        return vectors
    lengths = np.square(whitening @ vectors).sum(axis=0)
    kept = vectors[:, lengths > _PRESSING * lengths.max()]
    return kept if np.linalg.matrix_rank(kept) == len(vectors) else vectors


class PlacedOptimum(NamedTuple):
    """Variances of the inputs and of the outputs with their price after scaling, and a lower bound."""

    inputs: np.ndarray
    outputs: np.ndarray
    value: float
    bound: float


def cheapest_variances(changes: Changes, inputs: np.ndarray, costs: np.ndarray, tolerance: float) -> PlacedOptimum:
    """Independent noise on the columns of `inputs` and on every output, the cheapest against all `changes`.

    >>> best = cheapest_variances(Changes(np.array([[3.0], [4.0]])), np.empty((2, 0)), np.ones(2), 1e-6)
    >>> round(best.value, 3)
    49.0
    """
    vectors, used = changes.start(), np.arange(min(inputs.shape[1], _PLENTY + len(inputs)))
    best: PlacedOptimum | None = None
    for _ in range(_MOST_ROUNDS):
        columns = np.append(used, inputs.shape[1] + np.arange(len(inputs)))
        noise = least_variances(inputs[:, used], costs[columns], vectors, tolerance / 2)
        bound, loads = dual_bound(noise, vectors, inputs, costs)
        variances = np.zeros(len(costs))
        variances[columns] = noise.variances
        whitening = _whitening(inputs, variances)
        worst = changes.through(whitening).worst()
        value = float(worst.squares.max()) * float(costs @ variances)
        best = _better(best, variances, inputs.shape[1], value, bound)
        found = changes.violated(worst, noise.worst * (1 + tolerance / 4))
        more = _heavy(loads[: inputs.shape[1]], float(loads[columns].max()) * (1 + tolerance / 4), used)
        if best.value <= best.bound * (1 + tolerance) or not (found.size or more.size):
            break
        vectors = np.hstack([_needed(vectors, whitening), found])
        used = np.append(_paying(used, loads, float(loads[columns].max())), more)
    assert best is not None
    return best


def _whitening(inputs: np.ndarray, variances: np.ndarray) -> np.ndarray:
    split = inputs.shape[1]
    covariance = (inputs * variances[:split]) @ inputs.T + np.diag(variances[split:])
    return np.linalg.inv(np.linalg.cholesky(covariance))


def _better(best: PlacedOptimum | None, variances: np.ndarray, split: int, value: float, bound: float) -> PlacedOptimum:
    if best is None:
        return PlacedOptimum(variances[:split], variances[split:], value, bound)
    bound = max(best.bound, bound)
    if value >= best.value:
        return best._replace(bound=bound)
    return PlacedOptimum(variances[:split], variances[split:], value, bound)


def _heavy(loads: np.ndarray, above: float, used: np.ndarray) -> np.ndarray:
    """Inputs left out whose noise would pay, the best first."""
    left_out = np.setdiff1d(np.arange(len(loads)), used)
    order = left_out[np.argsort(-loads[left_out], kind="stable")][:_AT_ONCE]
    return order[loads[order] > above]


def _paying(used: np.ndarray, loads: np.ndarray, largest: float) -> np.ndarray:
    """Without the inputs whose noise does not pay, where there are many."""
    return used if len(used) <= _AT_ONCE else used[loads[used] > _PRESSING * largest]
