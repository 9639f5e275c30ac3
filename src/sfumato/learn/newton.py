"""The minimiser of a regularised loss, to a gradient norm that was promised beforehand.

In:   rows in the unit ball, signs of the labels, a loss, a linear term, a strength, a public tolerance.
Out:  Minimiser: a point whose exact gradient has norm at most the tolerance, rounding error included.
Not here: what the tolerance costs (learn/calibration.py).
Proof: docs/proofs/objective_perturbation.md, "What the solver owes"

Objective: (1/size) Σ loss(y_i⟨x_i, f⟩) + ½·strength·‖f‖² + ⟨tilt, f⟩. It is strongly convex, so Newton's method with a
line search on the directional derivative arrives; that it does was never seen to take a hundred steps. A limit of 500
keeps a run from going on for ever should floating point break the theorem: no model is published then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from sfumato.errors import DataError
from sfumato.learn.losses import Loss
from sfumato.learn.rows import SUMMING, UnitRows

__all__ = [
    "MOST_ROWS_PER_SIZE",
    "MOST_STEPS",
    "Minimiser",
    "attainable_tolerance",
    "farthest_solution",
    "minimise",
    "not_arrived",
]

_UNIT = 2.0**-53
#: More features than this are solved by conjugate gradients instead of a Cholesky factor.
_DENSE_FEATURES = 3000
#: A kept Hessian serves as long as each step divides the gradient by at least this.
_GOOD_STEP = 8.0
#: Strengths below this need Hessians in double precision.
_FINE_STRENGTH = 1e-6
#: Newton steps after which a run ends without a model.
MOST_STEPS = 500
#: The most rows that are provided for where their number is private, in multiples of the public `size`.
MOST_ROWS_PER_SIZE = 10.0


@dataclass(frozen=True)
class Minimiser:
    """`point`, and by how much its exact gradient can differ from zero; `steps` taken."""

    point: np.ndarray
    gradient_bound: float
    steps: int


def _rounding(
    rows: float, size: float, width: int, curvature: float, strength: float, point: float, tilt: float
) -> float:
    """How far the computed gradient can be from the exact one, for a point and tilt of these norms.

    Sums over rows err by SUMMING units (rows of norm ≤ 1, slopes ≤ 1), margins are dot products of `width` terms,
    slopes move by `curvature` times the margin's error and a few units of their own.
    """
    margins = curvature * (width + 12) * (1 + point)
    return 1.1 * _UNIT * (rows / size * (SUMMING + margins + 12) + 6 * strength * point + 6 * tilt)


def attainable_tolerance(
    loss: Loss, width: int, strength: float, tilt: float, most_rows: float = MOST_ROWS_PER_SIZE
) -> float:
    """A public gradient tolerance that floating point reaches for every tilt up to `tilt` and `most_rows`·size rows.

    Four times the rounding error at the farthest solution leaves room to arrive.
    """
    reach = farthest_solution(loss, strength, tilt, most_rows)
    return 4 * _rounding(most_rows, 1.0, width, loss.largest_curvature, strength, reach, tilt)


def farthest_solution(loss: Loss, strength: float, tilt: float, most_rows: float = MOST_ROWS_PER_SIZE) -> float:
    """A public bound of the norm of every solution whose tilt is at most `tilt`.

    Comparing with the origin, ½·strength·‖f‖² ≤ loss(0)·rows/size + ‖tilt‖‖f‖ at the minimum.
    """
    return (math.sqrt(2 * loss.at_zero * most_rows / strength) + 2 * tilt / strength) * (1 + 1e-12)


def minimise(
    rows: UnitRows, signs: np.ndarray, loss: Loss, strength: float, tilt: np.ndarray, size: float, tolerance: float
) -> Minimiser:
    """Newton's method until the gradient is certified to be at most `tolerance`.

    >>> rows = UnitRows(np.array([[1.0], [-1.0]]), norm=1.0)
    >>> from sfumato.learn.losses import LogisticLoss
    >>> found = minimise(rows, np.array([1.0, -1.0]), LogisticLoss(), 1.0, np.zeros(1), 2, 1e-9)
    >>> round(float(found.point[0]), 4), found.gradient_bound <= 1e-9
    (0.4011, True)
    """
    problem = _Problem(rows, signs, loss, strength, tilt, size)
    point, solve = np.zeros(rows.width), None
    margins, steps, last = np.zeros(rows.rows), 0, np.inf
    gradient = problem.gradient(point, margins)
    for _ in range(2 * MOST_STEPS):
        norm = float(np.linalg.norm(gradient))
        if not math.isfinite(norm):
            break
        bound = norm * (1 + (rows.width + 4) * _UNIT) + problem.rounding(point)
        if bound <= tolerance and problem.is_fresh:
            return Minimiser(point, bound, steps)
        if bound <= tolerance:  # margins were updated step by step: compute them anew before certifying
            margins, last = problem.margins(point), np.inf
            gradient = problem.gradient(point, margins, fresh=True)
            continue
        if solve is None or norm > last / _GOOD_STEP:
            solve = problem.solver(margins)
        direction = -solve(gradient)
        change = problem.margins(direction)
        length = problem.step(point, margins, direction, change, gradient)
        point, margins, last = point + length * direction, margins + length * change, norm
        gradient, steps = problem.gradient(point, margins), steps + 1
    raise not_arrived()


def not_arrived() -> DataError:
    """That the solver did not reach its tolerance; nothing of what it found is shown."""
    return DataError(
        "Training did not reach the accuracy that its privacy rests on, so no model is published. Check public_size, "
        "norm and regularization: they may be far from what the table is like."
    )


def _factor(hessian: np.ndarray) -> tuple[np.ndarray, bool]:
    """A Cholesky factor of the Hessian, with as much added to its diagonal as rounding demands.

    The factor only proposes steps, so this costs steps and no accuracy; an error would be an output that depends on the
    data.
    """
    extra, finite = 0.0, bool(np.isfinite(hessian).all())
    for _ in range(40 if finite else 0):
        try:
            return cho_factor(hessian + extra * np.eye(len(hessian)), overwrite_a=True, check_finite=False)
        except LinAlgError:
            extra = max(10 * extra, 1e-8 * float(np.trace(hessian)) / len(hessian))
    raise not_arrived()


class _Problem:
    """The objective and what Newton's method asks of it. Margins carry the label's sign."""

    def __init__(
        self, rows: UnitRows, signs: np.ndarray, loss: Loss, strength: float, tilt: np.ndarray, size: float
    ) -> None:
        self.rows, self.signs, self.loss = rows, signs, loss
        self.strength, self.tilt, self.size = strength, tilt, size
        self.is_fresh = True
        self._tilt_norm = float(np.linalg.norm(tilt))

    def rounding(self, point: np.ndarray) -> float:
        return _rounding(
            self.rows.rows,
            self.size,
            self.rows.width,
            self.loss.largest_curvature,
            self.strength,
            float(np.linalg.norm(point)),
            self._tilt_norm,
        )

    def margins(self, point: np.ndarray) -> np.ndarray:
        return self.signs * self.rows.times(point)

    def gradient(self, point: np.ndarray, margins: np.ndarray, *, fresh: bool | None = None) -> np.ndarray:
        # At the origin the margins are exact zeros.
        self.is_fresh = bool(fresh) or not point.any()
        pulled = self.rows.pull(self.signs * self.loss.slope(margins))
        return pulled / self.size + self.strength * point + self.tilt

    def solver(self, margins: np.ndarray):
        """A function that applies the inverse Hessian at these margins."""
        weights = self.loss.curvature(margins) / self.size
        if self.rows.width > _DENSE_FEATURES:
            return lambda vector: self._conjugate_gradients(weights, vector)
        # A Gram matrix in single precision errs by about a millionth, which must not exceed the strength.
        hessian = self.rows.gram(weights, np.float64 if self.strength < _FINE_STRENGTH else np.float32)
        hessian[np.diag_indices_from(hessian)] += self.strength
        factor = _factor(hessian)
        return lambda vector: cho_solve(factor, vector, check_finite=False)

    def _conjugate_gradients(self, weights: np.ndarray, vector: np.ndarray) -> np.ndarray:
        def apply(direction: np.ndarray) -> np.ndarray:
            direction = direction.ravel()
            return self.rows.pull(weights * self.rows.times(direction)) + self.strength * direction

        shape = (vector.size, vector.size)
        solution, _ = cg(LinearOperator(shape, matvec=apply, dtype=np.float64), vector, rtol=1e-3, maxiter=200)  # type: ignore[call-arg]
        return solution

    def step(
        self,
        point: np.ndarray,
        margins: np.ndarray,
        direction: np.ndarray,
        change: np.ndarray,
        gradient: np.ndarray,
    ) -> float:
        """A step length at which the derivative along the direction is a tenth of what it was at the start, or less.

        The derivative is increasing in the length (convexity), so doubling and bisection find one. Values of the
        objective are not compared: near the minimum they differ by less than their rounding. A full step that merely
        shrinks the derivative is not enough: hinge losses with little strength then take hundreds of steps.
        """
        start = float(gradient @ direction)
        linear = float(self.tilt @ direction) + self.strength * float(point @ direction)
        square = self.strength * float(direction @ direction)

        def derivative(length: float) -> float:
            slopes = self.loss.slope(margins + length * change)
            return float(slopes @ change) / self.size + linear + length * square

        low, high, length = 0.0, math.inf, 1.0
        for _ in range(60):
            slope = derivative(length)
            if abs(slope) <= 0.1 * abs(start):
                break
            low, high = (low, length) if slope > 0 else (length, high)
            length = 2 * length if math.isinf(high) else (low + high) / 2
            if high - low < 0.02 * length:  # what is left of the slope is rounding
                break
        return length
