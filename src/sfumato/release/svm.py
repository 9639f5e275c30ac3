"""The regularised support vector machine of Farokhi's problem (2), solved exactly.

    min  1/2 |α|² + ρ/2 (β² + |ξ|²) + θ 1ᵀξ    subject to  yᵢ(αᵀxᵢ + β) ≥ 1 - ξᵢ,  ξ ≥ 0

In:   a matrix of numbers, labels ±1, the public ρ and θ.
Out:  RegularisedSVM: α, β, ξ, the multipliers ω, and by how much the optimality conditions fail.
Not here: noise that leaves this classifier unchanged (release/projector.py).

α, β, ξ are functions of the private data: they are private until a mechanism makes them public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin

from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, SfumatoError

__all__ = ["RegularisedSVM", "kkt_residual"]

_TOLERANCE = 1e-10
_LARGEST = 1e100
_BLOCK = 4096
_EPSILON = float(np.finfo(float).eps)
_MOST_ROUNDS, _MOST_STEPS = 100, 80
#: Up to this many rows a starting point costs more than it saves.
_SMALL = 5000
#: How fast the penalty grows, and how exactly early inner problems are solved: fewest steps on Adult and on noise.
_GROWTH, _LOOSE = 3.0, 0.1


class RegularisedSVM(ClassifierMixin, BaseEstimator):
    """Problem (2) to machine precision: retraining on data with the same optimality conditions gives the same answer.

    `fit` ends with `alpha_`, `beta_`, `xi_`, `omega_`, the `kkt_residual_` (relative, see `kkt_residual`) and the
    number of linear systems solved `n_iter_`; it raises SfumatoError rather than return a point whose residual is
    above 1e-10.

    >>> machine = RegularisedSVM(rho=1.0, theta=10.0).fit([[0.0], [2.0]], [-1, 1])
    >>> machine.alpha_.round(12), round(machine.beta_, 12)
    (array([1.]), -1.0)
    """

    classes_: ClassVar[np.ndarray] = np.array([-1, 1])

    def __init__(self, rho: float = 1e-3, theta: float = 1.0) -> None:
        self.rho = rho
        self.theta = theta

    def fit(self, X: Any, y: Any) -> RegularisedSVM:
        rho, theta = _positive(self.rho, "rho"), _positive(self.theta, "theta")
        values, labels = _matrix(X), _labels(y)
        if len(values) != len(labels):
            raise DataError("X and y differ in their number of rows. Give one label for each row.")
        with calm_threads(values.size):
            found = _solved(values, labels, rho, theta)
        if not found.residual <= _TOLERANCE:
            raise SfumatoError(
                "The support vector machine was not solved: its optimality conditions fail by "
                f"{found.residual:.1e} after {found.iterations} steps, and {_TOLERANCE:g} is asked for. "
                "Give columns of similar size, or a larger rho or smaller theta. Nothing was spent."
            )
        self.alpha_, self.beta_, self.xi_, self.omega_ = found.alpha, found.beta, found.xi, found.omega
        self.kkt_residual_, self.n_iter_, self.n_features_in_ = found.residual, found.iterations, values.shape[1]
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """αᵀx + β for each row."""
        values = _matrix(X)
        if values.shape[1] != self.n_features_in_:
            raise DataError(f"X has {values.shape[1]} columns; the machine was trained on {self.n_features_in_}.")
        return values @ self.alpha_ + self.beta_

    def predict(self, X: Any) -> np.ndarray:
        """+1 where αᵀx + β ≥ 0, else -1."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


def kkt_residual(
    values: np.ndarray,
    labels: np.ndarray,
    alpha: np.ndarray,
    beta: float,
    xi: np.ndarray,
    omega: np.ndarray,
    rho: float,
    theta: float,
) -> float:
    """The largest violation of (15), each relative to the size of the terms that must cancel in it.

    Stationarity is (15a), and ξ = max((ω - θ)/ρ, 0) in place of the paper's (15b), which is right for θ = 1 only.
    """
    signed, scale, size = omega * labels, np.zeros(len(alpha)), np.full(len(xi), 1 + abs(beta))
    for start in range(0, len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        block = np.abs(values[part])
        scale += omega[part] @ block
        size[part] += block @ np.abs(alpha)
    slack = labels * (values @ alpha + beta) - 1 + xi
    inside, tiny = theta + rho * xi, np.finfo(float).tiny  # inside = ω + ς
    either = np.maximum(inside, rho * size)  # (15b) in the unit of ω or of ξ: one rounding error of ξ is ρ of ω
    violations = (
        np.abs(alpha - signed @ values) / (scale + np.max(np.abs(alpha)) + tiny),
        abs(rho * beta - signed.sum()) / (rho * abs(beta) + omega.sum() + tiny),
        np.maximum(-slack, 0) / size,
        np.maximum(-omega, 0) / theta,
        np.maximum(-xi, 0),
        np.maximum(omega - inside, 0) / either,
        omega * np.abs(slack) / (inside * size),
        xi * np.abs(inside - omega) / (either * np.maximum(1, xi)),
    )
    return float(max(np.max(violation, initial=0.0) for violation in violations))


def _positive(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        raise InputError(f"{name} must be a finite number greater than 0. Nothing was spent.")
    return float(value)


def _matrix(X: Any) -> np.ndarray:
    try:
        values = np.ascontiguousarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        values = None
    if values is None:
        raise DataError("X must be a dense matrix of numbers.")
    if values.ndim != 2 or 0 in values.shape or np.ndim(X) != 2:
        raise DataError("X must be a matrix with at least one row and one column.")
    if not np.isfinite(values).all():
        raise DataError("X has missing or infinite values. Put them at a declared place, or drop their rows.")
    if max(values.max(), -values.min()) > _LARGEST:
        raise DataError(f"X has values beyond {_LARGEST:g}, whose squares floating point cannot add. Use larger units.")
    return values


def _labels(y: Any) -> np.ndarray:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataError("y must be one-dimensional.")
    if labels.dtype.kind not in "iuf" or not np.isin(labels, (-1, 1)).all():
        raise DataError("y must hold the labels -1 and 1 only. Map the two classes to them.")
    if len(np.unique(labels)) != 2:
        raise DataError("y has one class only. A classifier needs both labels, -1 and 1.")
    return labels.astype(np.float64)


# The method. With s = 1 - A(α, β), A = diag(y)[X 1], problem (2) is min 1/2 zᵀRz + Σ φ(sᵢ) with φ(s) = θs + ρs²/2
# for s > 0 and 0 below: strongly convex, piecewise quadratic, with a kink at the margin s = 0 where ω ∈ [0, θ]. An
# augmented Lagrangian removes the kink: for a penalty σ the inner problem is once differentiable and piecewise
# quadratic, so a semismooth Newton method with a line search ends after finitely many steps, and the multipliers then
# converge the faster the larger σ is (Li, Sun & Toh 2018). Everything is divided by θ, which puts ω of margin points
# into [0, 1], and X by a power of two.


class _Rows:
    """The matrix A = diag(y)[X/scale 1] without storing it."""

    def __init__(self, values: np.ndarray, labels: np.ndarray, scale: float | None = None) -> None:
        self.values, self.labels = values, labels
        squares = np.einsum("ij,ij->j", values, values)
        self.scale = scale or _power_of_two(math.sqrt(float(squares.sum()) / len(values)))
        self.columns = np.append(np.sqrt(squares) / self.scale, math.sqrt(len(labels)))
        self._forward: Any = values
        self._backward: Any = values.T
        # One-hot tables: a sparse product costs 1/20 of the dense one, which is bound by memory.
        if values.size > _BLOCK and np.count_nonzero(values) < values.size / 4:
            self._forward = csr_array(values)
            self._backward = csr_array(self._forward.T)

    def part(self, index: np.ndarray) -> _Rows:
        return _Rows(self.values[index], self.labels[index], self.scale)

    def shortfall(self, point: np.ndarray) -> np.ndarray:
        """1 - A z: how far each record is on the wrong side of its margin."""
        return 1 - self.times(point)

    def times(self, point: np.ndarray) -> np.ndarray:
        return self.labels * (self._forward @ (point[:-1] / self.scale) + point[-1])

    def weighted_sum(self, weights: np.ndarray) -> np.ndarray:
        """Aᵀ w."""
        signed = weights * self.labels
        return np.append(self._backward @ signed / self.scale, signed.sum())

    def dense(self, index: np.ndarray) -> np.ndarray:
        """Some rows of A."""
        rows = np.column_stack([self.values[index] / self.scale, np.ones(len(index))])
        return rows * self.labels[index, None]

    def gram(self, index: np.ndarray) -> np.ndarray:
        """AᵀA over some rows; the labels cancel."""
        size = self.values.shape[1]
        result = np.zeros((size + 1, size + 1))
        for start in range(0, len(index), _BLOCK):
            block = self.values[index[start : start + _BLOCK]]
            result[:size, :size] += block.T @ block
            result[size, :size] += block.sum(axis=0)
        result[:size, :size] /= self.scale**2
        result[size, :size] /= self.scale
        result[:size, size] = result[size, :size]
        result[size, size] = len(index)
        return result


@dataclass
class _State:
    """Where the iteration stands; `sigma` is the penalty, `settled` says that rounding allows no further step."""

    point: np.ndarray
    omega: np.ndarray
    sigma: float
    iterations: int = 0
    settled: bool = False


class _Machine:
    """min 1/2 zᵀRz - hᵀz + Σ φ(1 - A z), in units in which φ(s) = s + κs²/2 for s > 0."""

    def __init__(self, rows: _Rows, quadratic: np.ndarray, linear: np.ndarray, kappa: float) -> None:
        self.rows, self.quadratic, self.linear, self.kappa = rows, quadratic, linear, kappa
        self._inside = np.zeros(len(rows.labels), dtype=bool)
        self._gram_inside = np.zeros_like(quadratic)

    def multipliers(self, target: np.ndarray, sigma: float) -> np.ndarray:
        """ω after a step from `target` = ω + σ s: the proximal map of φ's conjugate."""
        share = self.kappa / (sigma + self.kappa)
        return np.where(target <= 1, np.maximum(target, 0), 1 + (target - 1) * share)

    def run(self, state: _State, until: float = math.inf) -> None:
        """Augmented Lagrangian steps until the margins are exact to rounding, or σ has reached `until`."""
        before = math.inf
        for _ in range(_MOST_ROUNDS):
            shortfall = self._minimise(state, exact=before < 1e-9)
            omega = self.multipliers(state.omega + state.sigma * shortfall, state.sigma)
            violation = float(np.max(np.abs(omega - state.omega))) / state.sigma
            state.omega = omega
            rounding = self._rounding(state.point)
            state.settled = violation <= rounding or (violation <= 64 * rounding and violation > before / 4)
            if state.settled or state.sigma >= until:
                break
            if violation > before / 50:
                state.sigma *= _GROWTH
            before = violation

    def sharpened(self, state: _State) -> np.ndarray:
        """The multipliers without the rounding error that a large σ or κ multiplies, by least squares."""
        shortfall = self.rows.shortfall(state.point)
        omega = np.where(shortfall > 0, 1 + self.kappa * shortfall, 0.0)
        margin = np.abs(shortfall) <= 64 * self._rounding(state.point)
        omega[margin] = np.clip(state.omega[margin], 0, 1)
        free = np.flatnonzero(margin & (omega > 0) & (omega < 1))
        if self.kappa > 1:  # ω = 1 + κs is then known less exactly than s: the inside may give way as well
            inside = np.flatnonzero(~margin & (shortfall > 0))
            free = np.append(free, inside[:: 1 + len(inside) // (20 * len(state.point))])
        if len(free):
            upper = np.where(margin[free], 1.0, math.inf)
            rest = self.quadratic @ state.point - self.linear - self.rows.weighted_sum(omega)
            unit = np.maximum(self.rows.columns, np.finfo(float).tiny)  # of each equation
            change = np.linalg.lstsq((self.rows.dense(free) / unit).T, rest / unit, rcond=1e-6)[0]
            omega[free] = np.clip(omega[free] + change, 0, upper)
        return omega

    def _rounding(self, point: np.ndarray) -> float:
        """What floating point adds to a typical margin."""
        typical = self.rows.columns * point / math.sqrt(len(self.rows.labels))
        return 4 * _EPSILON * (1 + float(np.linalg.norm(typical)))

    def _minimise(self, state: _State, exact: bool) -> np.ndarray:
        """Newton steps on the smooth inner problem, roughly at first; ends when the pieces no longer change."""
        sigma, shortfall, last_piece, error = state.sigma, self.rows.shortfall(state.point), None, math.inf
        for _ in range(_MOST_STEPS):
            target = state.omega + sigma * shortfall
            omega = self.multipliers(target, sigma)
            smooth = self.quadratic @ state.point - self.linear
            gradient = smooth - self.rows.weighted_sum(omega)
            middle = np.flatnonzero((target > 0) & (target <= 1))
            changed = self._move_inside(target > 1)
            step = -self._solve(middle, sigma, gradient)
            decrease = -float(gradient @ step)
            state.iterations += 1
            same_piece = not changed and last_piece is not None and np.array_equal(middle, last_piece)
            unit = self.rows.columns * float(np.linalg.norm(omega)) + np.abs(smooth) + np.finfo(float).tiny
            before, error = error, float(np.max(np.abs(gradient) / unit)) / _EPSILON
            if error <= 4 or (error > before / 2 and (same_piece or error <= 1e4)):
                # The last full step solved this piece, or only noise is left; one more removes its rounding error.
                state.point = state.point + step
                return self.rows.shortfall(state.point)
            moved = -self.rows.times(step)
            length = self._length(smooth, step, target, moved * sigma, sigma, decrease)
            state.point, shortfall = state.point + length * step, shortfall + length * moved
            last_piece = middle if length == 1.0 else None
            if not exact and decrease <= _LOOSE * float(np.sum((omega - state.omega) ** 2)) / sigma:
                break
        return shortfall

    def _move_inside(self, inside: np.ndarray) -> bool:
        """Bring the Gram matrix of the records inside the margin up to date by the rows that changed sides."""
        joined, left = np.flatnonzero(inside & ~self._inside), np.flatnonzero(self._inside & ~inside)
        if len(joined) + len(left) < np.count_nonzero(inside):
            self._gram_inside = self._gram_inside + self.rows.gram(joined) - self.rows.gram(left)
        else:
            self._gram_inside = self.rows.gram(np.flatnonzero(inside))
        self._inside = inside
        return bool(len(joined) or len(left))

    def _solve(self, middle: np.ndarray, sigma: float, gradient: np.ndarray) -> np.ndarray:
        weight = sigma * self.kappa / (sigma + self.kappa)
        hessian = self.quadratic + weight * self._gram_inside + sigma * self.rows.gram(middle)
        root = 1 / np.sqrt(np.diag(hessian))
        scaled = hessian * root * root[:, None]
        for power in range(-50, -20, 4):
            try:
                factor = cho_factor(scaled, check_finite=False)
            except LinAlgError:  # dependent columns under a tiny ridge: a larger one only shortens the step
                np.fill_diagonal(scaled, 1 + 2.0**power)
                continue
            return root * cho_solve(factor, root * gradient, check_finite=False)
        raise SfumatoError("The support vector machine was not solved: a linear system is singular. Nothing was spent.")

    def _length(
        self, smooth: np.ndarray, step: np.ndarray, target: np.ndarray, moved: np.ndarray, sigma: float, decrease: float
    ) -> float:
        """How far to go: 1 if the slope has nearly vanished there, else the zero of the (increasing) slope."""
        base, curvature = float(step @ smooth), float(step @ (self.quadratic @ step))

        def slope(length: float) -> float:
            return base + length * curvature + float(moved @ self.multipliers(target + length * moved, sigma)) / sigma

        low, high, slope_low, slope_high = 0.0, 1.0, -decrease, slope(1.0)
        if slope_high <= 0.1 * decrease:
            return 1.0
        length = 0.5
        for _ in range(30):
            width = high - low
            length = low - slope_low * width / (slope_high - slope_low)
            length = min(max(length, low + 0.1 * width), high - 0.1 * width)
            here = slope(length)
            if abs(here) <= 0.1 * decrease:
                break
            if here > 0:
                high, slope_high = length, here
            else:
                low, slope_low = length, here
        return length


def _power_of_two(value: float) -> float:
    return 2.0 ** round(math.log2(value)) if value > 1 / _LARGEST else 1.0


class _Solution(NamedTuple):
    alpha: np.ndarray
    beta: float
    xi: np.ndarray
    omega: np.ndarray
    iterations: int
    residual: float


def _solved(values: np.ndarray, labels: np.ndarray, rho: float, theta: float) -> _Solution:
    """α lies in the span of the rows: with fewer rows than columns the problem is solved in that span."""
    if len(values) >= values.shape[1]:
        alpha, beta, omega, iterations = _optimum(values, labels, rho, theta)
        candidates = (alpha,)
    else:
        basis, triangle = np.linalg.qr(values.T)
        alpha, beta, omega, iterations = _optimum(np.ascontiguousarray(triangle.T), labels, rho, theta)
        # The same vector twice: one exact in the margins, the other in columns much smaller than the rest.
        candidates = (basis @ alpha, (omega * labels) @ values)
    solutions = []
    for alpha in candidates:
        xi = np.maximum(1 - labels * (values @ alpha + beta), 0.0)
        residual = kkt_residual(values, labels, alpha, beta, xi, omega, rho, theta)
        solutions.append(_Solution(alpha, beta, xi, omega, iterations, residual))
    return min(solutions, key=lambda solution: solution.residual)


def _optimum(
    values: np.ndarray, labels: np.ndarray, rho: float, theta: float
) -> tuple[np.ndarray, float, np.ndarray, int]:
    """α, β, ω and the number of steps."""
    rows, kappa = _Rows(values, labels), rho / theta
    ridge = np.full(values.shape[1] + 1, 1 / (theta * rows.scale**2))
    ridge[-1] = kappa
    machine = _Machine(rows, np.diag(ridge), np.zeros(len(ridge)), kappa)
    # Below κ a penalty would hide the curvature that φ has by itself.
    state = _State(np.zeros(len(ridge)), np.zeros(len(labels)), max(1.0, kappa))
    if len(labels) > _SMALL:
        _approach(machine, state)
    machine.run(state)
    omega = theta * machine.sharpened(state)
    return state.point[:-1] / rows.scale, float(state.point[-1]), omega, state.iterations


def _approach(machine: _Machine, state: _State) -> None:
    """A starting point for many rows: a tenth of them, then all roughly, then those near the margin exactly."""
    rows, kappa = machine.rows, machine.kappa
    every_tenth = np.arange(0, len(rows.labels), 10)
    share = len(every_tenth) / len(rows.labels)
    sample = _Machine(rows.part(every_tenth), machine.quadratic * share, machine.linear, kappa)
    unit = state.sigma
    first = _State(state.point, np.zeros(len(every_tenth)), unit)
    sample.run(first, until=100 * unit)
    state.point, state.iterations, state.sigma = first.point, first.iterations, 8 * unit
    machine.run(state, until=300 * unit)
    if not state.settled:
        _near_margin(machine, state)


def _near_margin(machine: _Machine, state: _State) -> None:
    """Solve for the records near the margin; the others are taken to stay on their side of it, where φ is quadratic."""
    rows, kappa, width = machine.rows, machine.kappa, 20 / state.sigma
    shortfall = rows.shortfall(state.point)
    near = np.abs(shortfall) < width
    if np.count_nonzero(near) > len(near) / 4:
        return
    inside = ~near & (shortfall > 0)
    index = np.flatnonzero(near)
    quadratic = machine.quadratic + kappa * rows.gram(np.flatnonzero(inside))
    linear = machine.linear + rows.weighted_sum(np.where(inside, 1 + kappa, 0.0))
    local = _State(state.point, state.omega[index], state.sigma)
    _Machine(rows.part(index), quadratic, linear, kappa).run(local)
    state.iterations += local.iterations
    after = rows.shortfall(local.point)
    if np.any((after > 0) != (shortfall > 0), where=~near):
        return  # somebody crossed over: go on from where we were, with all records
    state.point, state.sigma = local.point, local.sigma
    state.omega = np.where(after > 0, 1 + kappa * after, 0.0)
    state.omega[index] = local.omega
