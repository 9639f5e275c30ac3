"""The cheapest private channel for given costs: a primal-dual interior point method that knows the problem's shape.

In:   a cost for every (input, output), ε, δ, and what the mean of every use should be.
Out:  Solution: probabilities, their cost, and a lower bound on the cost of every private channel.
Not here: where the costs come from (tailored_design.py), making the probabilities exact (tailored_repair.py).
Reference: Basu, Ch. 5, (5.27)-(5.38), with the column maximum over inputs only and a two-sided bias.

    minimise    Σ C_xy f_xy + ½ Σ Q_jx b_jx²
    subject to  Σ_y f_xy = 1,   Σ_y A_jy f_xy - b_jx = a_jx,   e^-ε M_y ≤ f_xy ≤ M_y

Each f_xy meets one M_y and the few multipliers of its row, so a Newton step is one linear system in M alone: a dense
k × k matrix built in O(k²) numbers. General solvers do not see that: on k = 400 Clarabel took 29 s and PIQP 9 s.
Privacy never rests on this file: whatever comes out is repaired and certified in whole numbers.

With δ > 0 the channel is f = (1-δ)·g + δ·h, g private by ε alone and h free to tell the truth: (ε, δ)-private whatever
h is, and g and h are found together. Every pair of inputs could have slacks of its own instead; that program has k³ of
them, took a minute at k = 20, and gained 1.2 % at most at δ = 0.05, 0.03 % at 0.001 (tests). What it could gain is
bounded by `lower_bound`, for every design. Sharing δ out over the inputs, as published, is wrong: with |X| = 2,
|Y| = 50 and δ = 0.1 it allowed a true δ of 0.98.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sfumato.errors import InputError

__all__ = ["Solution", "WantedMeans", "lower_bound", "optimal_channel"]

_ROUNDS = 120
_PATIENCE = 12
_STEP = 0.995


@dataclass(frozen=True)
class WantedMeans:
    """Wanted means: Σ_y values[j, y] f_xy = wanted[j, x] + b_jx; b_jx² costs penalty[j, x]/2, infinite means b = 0."""

    values: np.ndarray
    wanted: np.ndarray
    penalty: np.ndarray


@dataclass(frozen=True)
class Solution:
    """A channel that is feasible up to rounding, its cost, a lower bound on the cost of any private channel.

    `private` is followed but for a share δ of the time, and `free` then. `reached` is a lower bound on the cost of
    channels made in this way: what is left of it says how well the solver did.
    """

    private: np.ndarray
    free: np.ndarray
    delta: float
    value: float
    bound: float
    reached: float
    rounds: int

    @property
    def probabilities(self) -> np.ndarray:
        return (1 - self.delta) * self.private + self.delta * self.free

    @property
    def gap(self) -> float:
        """By how much the channel may be worse than the best, relative to its cost."""
        return max(0.0, self.value - self.bound) / max(abs(self.value), 1e-300)


def optimal_channel(
    costs: np.ndarray, epsilon: float, moments: WantedMeans | None = None, tolerance: float = 1e-9, delta: float = 0.0
) -> Solution:
    """The ε-private channel of least total cost; with δ, the best one of those that are free with probability δ.

    >>> solution = optimal_channel(1 - np.eye(4), 1.0)
    >>> bool(abs(solution.value - 4 * 3 / (3 + np.e)) < 1e-6)  # randomised response is optimal for this cost
    True
    >>> bool(abs(optimal_channel(1 - np.eye(4), 1.0, delta=0.25).value - 0.75 * solution.value) < 1e-6)
    True
    """
    scale = float(np.abs(costs).max()) or 1.0
    solver = _Solver(costs / scale, math.exp(-epsilon), _scaled(moments, costs.shape, scale), delta)
    rounds = solver.run(tolerance)
    solver.check_moments()
    private, free = solver.feasible()
    bound, reached = solver.bounds()
    return Solution(private, free, delta, solver.value(private, free) * scale, bound * scale, reached * scale, rounds)


def _scaled(moments: WantedMeans | None, shape: tuple[int, int], scale: float) -> WantedMeans:
    if moments is None:
        return WantedMeans(np.zeros((0, shape[1])), np.zeros((0, shape[0])), np.ones((0, shape[0])))
    size = np.abs(moments.values).max(axis=1, keepdims=True)
    size[size == 0] = 1.0
    return WantedMeans(moments.values / size, moments.wanted / size, moments.penalty * size**2 / scale)


class _Solver:
    """Mehrotra's predictor and corrector. Index x for inputs, y for outputs, j for the equations of a row.

    The free channel has no columns where δ = 0. Its sums are its own equations, the means are met together.
    """

    def __init__(self, costs: np.ndarray, least: float, moments: WantedMeans, delta: float) -> None:
        self.costs, self.least, self.moments, self.delta = costs, least, moments, delta
        inputs, outputs = costs.shape
        freely = outputs if delta else 0
        self.rows = np.vstack([np.ones(outputs), (1 - delta) * moments.values])
        self.free_rows = np.vstack([np.zeros(outputs), delta * moments.values])[:, :freely]
        self.own_costs, self.free_costs = (1 - delta) * costs, delta * costs[:, :freely]
        self.wanted = np.vstack([np.ones(inputs), moments.wanted]).T
        with np.errstate(divide="ignore"):
            self.slack = np.vstack([np.zeros(inputs), 1 / moments.penalty]).T
        self.hard = self.slack == 0
        self.f = np.full((inputs, outputs), 1 / outputs)
        self.top = np.full(outputs, 2 / (1 + least) / outputs)
        # Kept beside f and the tops: as differences they would lose their digits near the end.
        self.below, self.above = self.f - least * self.top, self.top - self.f
        self.free = np.full(self.free_costs.shape, 1 / outputs)
        self.multiplier = np.zeros((inputs, len(self.rows)))
        self.multiplier[:, 0] = self.own_costs.min(axis=1)
        self.free_multiplier = delta * costs.min(axis=1)
        start = max(float(np.abs(costs).mean()), 1e-3)
        self.low = np.full_like(self.f, start)
        self.high = np.full_like(self.f, start * least + 1e-3)
        self.free_low = np.full_like(self.free, start * delta)

    def run(self, tolerance: float) -> int:
        """Until the gap is closed or the arithmetic is exhausted; the best point seen is kept."""
        best, least_gap, least_infeasible = math.inf, math.inf, math.inf
        stalled, rounds, kept = 0, 0, self._state()
        for _ in range(_ROUNDS):
            rounds += 1
            gap, infeasible = self._residuals()
            # The gap may grow for long while the equations are being met: either one falling is progress.
            stalled = 0 if gap < 0.9 * least_gap or infeasible < 0.9 * least_infeasible else stalled + 1
            least_gap, least_infeasible = min(least_gap, gap), min(least_infeasible, infeasible)
            merit = max(gap / self._size(), infeasible / 10)
            if merit <= best:
                best, kept = merit, self._state()
            worn_out = best < 1e-6 and merit > 100 * best  # rounding has taken over
            if best < tolerance or stalled > _PATIENCE or worn_out or not self._step():
                break
        self.__dict__.update(kept)
        return rounds

    def _state(self) -> dict[str, np.ndarray]:
        names = ("f", "top", "below", "above", "free", "multiplier", "free_multiplier")
        return {name: getattr(self, name).copy() for name in names}

    def _size(self) -> float:
        """What the gap is measured by; a cost far below every single one counts as zero."""
        return max(1e-7, abs(float((self.own_costs * self.f).sum() + (self.free_costs * self.free).sum())))

    def _residuals(self) -> tuple[float, float]:
        self.dual = self.own_costs - self.multiplier @ self.rows - self.low + self.high
        self.dual_top = (self.least * self.low - self.high).sum(axis=0)
        self.free_dual = self.free_costs - self.multiplier @ self.free_rows - self.free_low
        self.free_dual -= self.free_multiplier[:, None]
        self.primal = self.wanted - self._met() - self.slack * self.multiplier
        self.free_primal = (1 - self.free.sum(axis=1)) * bool(self.delta)
        items = (self.dual, self.dual_top, self.free_dual, self.primal, self.free_primal)
        return self._complement(), max(float(np.abs(item).max(initial=0.0)) for item in items)

    def _met(self) -> np.ndarray:
        """What the equations of each row add up to."""
        return self.f @ self.rows.T + self.free @ self.free_rows.T

    def _complement(self) -> float:
        return float(sum((dual * value).sum() for value, dual in self._sides()))

    def _sides(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """What must not be negative, each with its multiplier."""
        return (self.below, self.low), (self.above, self.high), (self.free, self.free_low)

    def _step(self) -> bool:
        system = _System(self)
        if not system.solvable:
            return False
        count = 2 * self.f.size + self.free.size
        mean = self._complement() / count
        guess = system.solve([-dual * value for value, dual in self._sides()])
        primal, dual = self._lengths(guess)
        after = sum(
            float(((held + dual * pull) * (value + primal * change)).sum())
            for (value, held), (change, pull) in zip(self._sides(), guess.sides(), strict=True)
        )
        target = mean * min(1.0, max(after / count / mean, 0.0)) ** 3
        move = system.solve(
            [
                target - held * value - pull * change
                for (value, held), (change, pull) in zip(self._sides(), guess.sides(), strict=True)
            ]
        )
        primal, dual = self._lengths(move)
        if not math.isfinite(primal + dual) or max(primal, dual) < 1e-10:
            return False
        self.f += primal * move.f
        self.top += primal * move.top
        self.multiplier += dual * move.multiplier
        self.free_multiplier += dual * move.free_multiplier
        for (value, held), (change, pull) in zip(self._sides(), move.sides(), strict=True):
            np.add(value, primal * change, out=value)
            np.add(held, dual * pull, out=held)
        return True

    def _lengths(self, move: _Move) -> tuple[float, float]:
        both = list(zip(self._sides(), move.sides(), strict=True))
        primal = min(_reach(value, change) for (value, _), (change, _) in both)
        dual = min(_reach(held, pull) for (_, held), (_, pull) in both)
        if np.any(self.slack > 0):  # a quadratic term ties the two
            primal = dual = min(primal, dual)
        return min(1.0, _STEP * primal), min(1.0, _STEP * dual)

    def check_moments(self) -> None:
        """Equations that no private channel on these outputs satisfies."""
        missed = np.abs(np.where(self.hard, self.wanted - self._met(), 0.0))[:, 1:]
        if missed.size and float(missed.max()) > 1e-5:
            raise InputError(
                "No private channel on these outputs was found that has the wanted means: the outputs must reach "
                "further than the inputs. Give more outputs or a wider range of them, a larger epsilon, or bias='soft'."
            )

    def feasible(self) -> tuple[np.ndarray, np.ndarray]:
        """The private and the free channel, clipped and with rows that sum to one."""
        clipped = np.maximum(self.below, 0.0) + self.least * np.maximum(self.top, 0.0)
        private = clipped / clipped.sum(axis=1, keepdims=True)
        if not self.delta:
            return private, private
        free = np.maximum(self.free, 0.0)
        return private, free / free.sum(axis=1, keepdims=True)

    def value(self, private: np.ndarray, free: np.ndarray) -> float:
        probabilities = (1 - self.delta) * private + self.delta * free
        biases = probabilities @ self.moments.values.T - self.moments.wanted.T
        soft = np.where(np.isfinite(self.moments.penalty), self.moments.penalty, 0.0).T
        return float((self.costs * probabilities).sum() + (soft * biases**2).sum() / 2)

    def bounds(self) -> tuple[float, float]:
        """Lower bounds on the cost of every private channel, and of every one made in this way."""
        multiplier = np.hstack([self.multiplier[:, :1] / (1 - self.delta), self.multiplier[:, 1:]])
        return lower_bound(self.costs, self.least, self.moments, multiplier, self.delta)


def lower_bound(
    costs: np.ndarray, least: float, moments: WantedMeans, multiplier: np.ndarray, delta: float
) -> tuple[float, float]:
    """Bounds on the least cost of (ε, δ)-private channels, and of those that are free with probability δ.

    Any multipliers give them (docs/proofs/tailored_noise.md, "How far from the best"). With t_xy = C_xy - Σ_j μ_jx B_jy
    the first multiplier of each row, that of Σ_y f = 1, is lowered until Σ_x (e^-ε t₊ - t₋) ≥ 0 for every output.
    """
    rows = np.vstack([np.ones(costs.shape[1]), moments.values])
    reduced = costs - multiplier @ rows

    def holds(shift: float) -> bool:
        moved = reduced + shift
        return bool(np.all(np.where(moved > 0, least * moved, moved).sum(axis=0) >= 0))

    low, high = 0.0, 1e-16
    while not holds(high):
        low, high = high, high * 4
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    others = multiplier[:, 1:].T
    total = float((multiplier[:, 0] - high).sum() + (moments.wanted * others).sum())
    total -= float((others**2 / moments.penalty).sum()) / 2
    if not delta:
        return total, total
    reduced += high
    return total - delta * _most_told(reduced), total + delta * float(reduced.min(axis=1).sum())


def _most_told(reduced: np.ndarray) -> float:
    """Σ over pairs of inputs of max_y λ_xx'y, where λ_xx'y = t₋_xy t₊_x'y / Σ_x' t₊_x'y is what δ must pay for."""
    falls, rises = np.maximum(-reduced, 0.0), np.maximum(reduced, 0.0)
    totals = rises.sum(axis=0)
    shares = rises / np.where(totals > 0, totals, 1.0)
    return float(sum((row * shares).max(axis=1).sum() for row in falls))


@dataclass(frozen=True)
class _Move:
    f: np.ndarray
    top: np.ndarray
    multiplier: np.ndarray
    free_multiplier: np.ndarray
    below: np.ndarray
    above: np.ndarray
    free: np.ndarray
    low: np.ndarray
    high: np.ndarray
    free_low: np.ndarray

    def sides(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        return (self.below, self.low), (self.above, self.high), (self.free, self.free_low)


class _System:
    """The Newton system at a point, eliminated down to the column maxima and factorised once for both solves."""

    def __init__(self, at: _Solver) -> None:
        self.at = at
        low, high = at.low / at.below, at.high / at.above
        self.stiffness = low + high
        self.share = (at.least * low + high) / self.stiffness
        inner = (at.rows[None, :, :] / self.stiffness[:, None, :]) @ at.rows.T
        inner += self._eliminate_free()
        inner += at.slack[:, :, None] * np.eye(len(at.rows))
        inner += 1e-14 * inner[:, :1, :1] * np.eye(len(at.rows))
        self.rows_of = at.rows[None, :, :] * self.share[:, None, :]
        try:
            self.root = np.linalg.inv(np.linalg.cholesky(inner))
        except np.linalg.LinAlgError:
            self.solvable = False
            return
        whitened = (self.root @ self.rows_of).reshape(-1, at.f.shape[1])
        matrix = whitened.T @ whitened
        diagonal = (low * high / self.stiffness).sum(axis=0) * (1 - at.least) ** 2
        matrix[np.diag_indices_from(matrix)] += diagonal + 1e-14 * np.trace(matrix) / len(matrix)
        try:
            self.factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            self.solvable = False
            return
        self.solvable = True

    def _eliminate_free(self) -> np.ndarray:
        """What the free channel adds to the equations of the means, once its own sums are taken care of.

        About its mean: near the end one output has nearly all the weight, and as a difference nothing would be left.
        """
        at = self.at
        self.loose = at.free / at.free_low
        self.loose_sums = np.maximum(self.loose.sum(axis=1), 1e-300)
        self.free_means = self.loose @ at.free_rows.T / self.loose_sums[:, None]
        self.centred = at.free_rows[None, :, :] - self.free_means[:, :, None]
        return (self.centred * self.loose[:, None, :]) @ self.centred.swapaxes(1, 2)

    def solve(self, targets: list[np.ndarray]) -> _Move:
        at = self.at
        low_target, high_target, free_target = targets
        from_low, from_high = low_target / at.below, high_target / at.above
        force = from_low - from_high - at.dual
        free_force = free_target / at.free - at.free_dual
        rest = at.primal - (force / self.stiffness) @ at.rows.T
        rest -= np.einsum("xjy,xy->xj", self.centred, free_force * self.loose)
        rest -= self.free_means * at.free_primal[:, None]
        solved = np.einsum("xij,xkj,xk->xi", self.root.swapaxes(1, 2), self.root.swapaxes(1, 2), rest)
        right = -at.dual_top - (at.least * from_low - from_high).sum(axis=0) + (self.share * force).sum(axis=0)
        right += np.einsum("xjy,xj->y", self.rows_of, solved)
        top = cho_solve(self.factor, right, check_finite=False)
        pulled = np.einsum("xjy,y->xj", self.rows_of, top)
        multiplier = solved - np.einsum("xij,xkj,xk->xi", self.root.swapaxes(1, 2), self.root.swapaxes(1, 2), pulled)
        f = (force + multiplier @ at.rows) / self.stiffness + self.share * top
        free_multiplier = (at.free_primal - (free_force * self.loose).sum(axis=1)) / self.loose_sums
        free_multiplier -= (multiplier * self.free_means).sum(axis=1)
        free = (free_force + multiplier @ at.free_rows + free_multiplier[:, None]) * self.loose
        below, above = f - at.least * top, top - f
        low = (low_target - at.low * below) / at.below
        high = (high_target - at.high * above) / at.above
        free_low = (free_target - at.free_low * free) / at.free
        return _Move(f, top, multiplier, free_multiplier, below, above, free, low, high, free_low)


def _reach(values: np.ndarray, move: np.ndarray) -> float:
    """How far one can go before a value becomes zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(move < 0, -values / move, np.inf)
    return float(ratio.min(initial=math.inf))
