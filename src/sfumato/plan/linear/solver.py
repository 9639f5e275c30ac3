"""Least noise under quadratic privacy constraints: two interior-point methods with certified duality gaps.

In:   vectors v that must have vᵀΣ⁻¹v ≤ 1, costs.
Out:  the cheapest Σ, free or of the form Σ_l z_l g_l g_lᵀ, with a lower bound on what any such Σ costs.
Not here: which vectors matter (plan/linear/working_set.py), people and outputs (plan/linear/query.py). Nothing here is
      trusted: the guarantee is computed afresh from the strategy that is used (core/events/linear.py).

A conic solver sees m×m matrix inequalities, one for each vector, and takes minutes at m = 200. Both programs are small
in their other variables, and their second derivatives are elementwise products of Gram matrices:

free Σ.  The dual is max 2 Tr Q^½ - Σλ with Q = Σ λ_i v_i v_iᵀ, λ ≥ 0; its slope is v_iᵀQ^{-½}v_i - 1, and Σ = Q^½ is
the primal point. The second derivative is -∫ (Uᵀ D_t U)∘² dt with D_t = e^{-t√q}/√q in the eigenbasis of Q, because
1/(a+b) = ∫ e^{-ta} e^{-tb} dt: a dozen nodes suffice for a Newton direction.

Σ_l z_l g_l g_lᵀ.  With P = GᵀΣ⁻¹V the slope of v_iᵀΣ⁻¹v_i in z_l is -P_li², and the second derivative of
Σ λ_i v_iᵀΣ⁻¹v_i is 2(GᵀΣ⁻¹G)∘(P diag(λ) Pᵀ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, get_lapack_funcs

from sfumato.lang.deadline import check_time

__all__ = ["FreeNoise", "PlacedNoise", "dual_bound", "least_covariance", "least_variances"]

_MOST_STEPS = 100
#: How much of the way to the boundary one step may go.
_REACH = 0.9


@dataclass(frozen=True, eq=False)
class FreeNoise:
    """Σ = vectors·diag(roots)·vectorsᵀ, feasible after scaling by `worst`; no Σ costs less than `bound`."""

    vectors: np.ndarray
    roots: np.ndarray
    multipliers: np.ndarray
    worst: float
    bound: float

    @property
    def value(self) -> float:
        return self.worst * float(self.roots.sum())

    @property
    def whitening(self) -> np.ndarray:
        """A square root of Σ⁻¹."""
        return self.vectors.T / np.sqrt(self.roots)[:, None]


def least_covariance(vectors: np.ndarray, tolerance: float = 1e-5) -> FreeNoise:
    """The Σ of least trace with vᵀΣ⁻¹v ≤ 1 for every column of `vectors`, which must span their space.

    For any λ ≥ 0, (Tr Q^½)²/Σλ is a lower bound, by weak duality at the best multiple of λ.

    >>> two = least_covariance(np.diag([1.0, 3.0]))
    >>> round(two.value, 3), round(two.bound, 3)
    (10.0, 10.0)
    """
    size = vectors.shape[1]
    multipliers = np.square(vectors).sum(axis=0)
    best, weight = None, 0.0
    for _ in range(_MOST_STEPS):
        at = _free_point(vectors, multipliers)
        best = at if best is None else _better_free(best, at)
        if best.value <= best.bound * (1 + tolerance):
            break
        if weight == 0:
            scale = (at.roots.sum() / multipliers.sum()) ** 2
            multipliers = multipliers * scale
            at = _free_point(vectors, multipliers)
            weight = 0.3 * float(at.roots.sum()) / size
        rotated = at.vectors.T @ vectors
        lengths = np.square(rotated / np.sqrt(at.roots)[:, None]).sum(axis=0)
        slope = lengths - 1 + weight / multipliers
        curvature = _free_curvature(rotated, at.roots)
        curvature[np.diag_indices(size)] += weight / multipliers**2
        step = _newton(curvature, slope)
        if step is None:
            break
        decrement = float(step @ slope)
        multipliers = multipliers + _longest(multipliers, step) * step
        if decrement < weight * max(1.0, 0.03 * size):
            weight *= 0.1
    assert best is not None
    return best


def _free_point(vectors: np.ndarray, multipliers: np.ndarray) -> FreeNoise:
    squares, basis = eigh((vectors * multipliers) @ vectors.T, driver="evd", check_finite=False)
    roots = np.sqrt(np.maximum(squares, squares[-1] * 1e-28))
    lengths = np.square((basis.T @ vectors) / np.sqrt(roots)[:, None]).sum(axis=0)
    bound = float(np.sqrt(np.maximum(squares, 0.0)).sum()) ** 2 / float(multipliers.sum())
    return FreeNoise(basis, roots, multipliers, float(lengths.max()), bound)


def _better_free(first: FreeNoise, second: FreeNoise) -> FreeNoise:
    cheaper = first if first.value <= second.value else second
    bound = max(first.bound, second.bound)
    return FreeNoise(cheaper.vectors, cheaper.roots, cheaper.multipliers, cheaper.worst, bound)


def _free_curvature(rotated: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Σ_ab u_ia u_ib u_ja u_jb / (s_a s_b (s_a + s_b)) by the trapezoidal rule in ln t, good to a few percent."""
    width = 0.9
    nodes = np.exp(np.arange(np.log(0.01 / roots[-1]), np.log(4 / roots[0]) + width, width))
    result = np.zeros((rotated.shape[1],) * 2)
    for node in nodes:
        gram = rotated.T @ (rotated * (np.exp(-node * roots) / roots)[:, None])
        result += width * node * gram * gram
    return result


def _newton(curvature: np.ndarray, slope: np.ndarray) -> np.ndarray | None:
    """Solution of a positive definite system, scaled to unit diagonal first; None if rounding made it indefinite."""
    scale = 1 / np.sqrt(np.diagonal(curvature))
    if not np.isfinite(scale).all():
        return None
    for ridge in (1e-14, 1e-11, 1e-8):
        matrix = curvature * scale[:, None] * scale
        matrix[np.diag_indices(len(scale))] += ridge
        try:
            return scale * cho_solve(cho_factor(matrix, check_finite=False), scale * slope, check_finite=False)
        except LinAlgError:
            continue
    return None


def _longest(point: np.ndarray, step: np.ndarray) -> float:
    return min(1.0, _REACH / max(1e-300, float(np.max(-step / point))))


@dataclass(frozen=True, eq=False)
class PlacedNoise:
    """Variances z of the generators, feasible after scaling by `worst`, and the multipliers of the vectors.

    `responses` is Σ⁻¹V at the point of the multipliers: with it the lower bound can be computed for more generators.
    """

    variances: np.ndarray
    worst: float
    value: float
    multipliers: np.ndarray
    responses: np.ndarray
    bound: float


class _Point:
    """Everything about one z: Σ, its inverse, and how generators and vectors meet in it."""

    def __init__(self, inputs: np.ndarray, vectors: np.ndarray, variances: np.ndarray) -> None:
        self.variances = variances
        split = inputs.shape[1]
        covariance = (inputs * variances[:split]) @ inputs.T
        covariance[np.diag_indices(len(covariance))] += variances[split:]
        factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        both = cho_solve((factor, True), np.hstack([inputs, vectors]), check_finite=False)
        self.inputs, self.raw_responses = both[:, :split], both[:, split:]
        self.lengths = np.einsum("ij,ij->j", vectors, self.raw_responses)
        self.responses = np.vstack([inputs.T @ self.raw_responses, self.raw_responses])
        self._factor, self._given = factor, inputs

    def gram(self) -> np.ndarray:
        """GᵀΣ⁻¹G for G = [inputs, 1]."""
        (invert,) = get_lapack_funcs(("potri",), (self._factor,))
        inverse = invert(self._factor, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        return np.block([[self._given.T @ self.inputs, self.inputs.T], [self.inputs, inverse]])


def dual_bound(
    solution: PlacedNoise, vectors: np.ndarray, inputs: np.ndarray, costs: np.ndarray
) -> tuple[float, np.ndarray]:
    """A lower bound that holds for all these inputs, solved with or not, and the dual load of each generator.

    vᵀΣ⁻¹v ≥ 2y·v - yᵀΣy for every y, so Σλ_i(2 y_i·v_i - 1) bounds the cost if Σ_i λ_i (g_l·y_i)² ≤ c_l for all l.
    At the best multiples of λ and y this is (Σ λ_i y_i·v_i)²/(Σλ · max_l Σ_i λ_i (g_l·y_i)²/c_l). A generator with the
    largest load is the one whose noise would pay most.
    """
    answers, multipliers = solution.responses, solution.multipliers
    loads = np.square(np.vstack([inputs.T @ answers, answers])) @ multipliers / costs
    gained = float(multipliers @ np.einsum("ij,ij->j", vectors, answers))
    return gained**2 / (float(multipliers.sum()) * float(loads.max())), loads


def _moved(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """All of them along their steps, as far as they all stay positive."""
    length = min(_longest(*pair) for pair in pairs)
    return [value + length * move for value, move in pairs]


def least_variances(inputs: np.ndarray, costs: np.ndarray, vectors: np.ndarray, tolerance: float = 1e-5) -> PlacedNoise:
    """The cheapest z ≥ 0 with vᵀΣ⁻¹v ≤ 1 for every column v, Σ = Σ_l z_l g_l g_lᵀ: a primal-dual interior-point method.

    The generators g are the columns of `inputs` and the unit vectors; `costs` is for both, in this order.

    >>> central = least_variances(np.empty((2, 0)), np.ones(2), np.array([[3.0], [4.0]]))
    >>> [round(float(one), 2) for one in central.variances * central.worst], round(central.bound, 2)
    ([21.0, 28.0], 49.0)
    """
    point = _start(inputs, vectors)
    variances, count = point.variances, sum(map(len, (costs, point.lengths)))
    slack = np.maximum(1 - point.lengths, 0.1)
    cost = float(costs @ variances)
    multipliers = 0.3 * cost / len(slack) / slack
    reduced = 0.3 * cost / len(costs) / variances
    best: PlacedNoise | None = None
    patience = 3
    for _ in range(_MOST_STEPS):
        check_time(f"placing noise for {len(inputs)} linear answers")
        squares = point.responses**2
        bound = _own_bound(point, multipliers, squares, costs)
        best = _better_placed(best, point, multipliers, bound, costs)
        if best.value <= best.bound * (1 + tolerance):
            break
        weight = float(slack @ multipliers + reduced @ variances) / count
        shortfall = costs - squares @ multipliers - reduced
        excess = point.lengths - 1 + slack
        curvature = 2 * point.gram() * ((point.responses * multipliers) @ point.responses.T)
        curvature += (squares * (multipliers / slack)) @ squares.T
        curvature[np.diag_indices(len(costs))] += reduced / variances

        # Where the bound lags behind the path, a centring step comes first: y moves with the ratios of tiny variances.
        lags = float(point.lengths.max() * (costs @ variances)) > bound * (1 + 3 * weight * count / cost)
        patience = patience - 1 if lags and patience else 3
        aim = weight * (1.0 if lags and patience else 0.07)
        push = (aim - multipliers * slack + multipliers * excess) / slack
        step = _newton(curvature, -shortfall + squares @ push + aim / variances - reduced)
        if step is None:
            break
        slack_step = -excess + squares.T @ step
        reduced_step = (aim - reduced * variances - reduced * step) / variances
        multiplier_step = (aim - multipliers * slack - multipliers * slack_step) / slack
        pairs = ((variances, step), (slack, slack_step), (reduced, reduced_step), (multipliers, multiplier_step))
        variances, slack, reduced, multipliers = _moved(pairs)
        try:
            point = _Point(inputs, vectors, variances)
        except LinAlgError:
            break
        cost = float(costs @ variances)
        slack = np.maximum(slack, 1 - point.lengths)
    assert best is not None
    return best


def _start(inputs: np.ndarray, vectors: np.ndarray) -> _Point:
    """Variances in proportion to what each generator has to hide, with room to every constraint."""
    norms = np.append(np.linalg.norm(inputs, axis=0), np.ones(len(inputs)))
    reach = np.abs(np.vstack([inputs.T @ vectors, vectors])).max(axis=1) / norms**3
    variances = np.maximum(reach, 1e-6 * float(np.max(reach * norms**2)) / norms**2)
    point = _Point(inputs, vectors, variances)
    return _Point(inputs, vectors, variances * (1.5 * float(point.lengths.max())))


def _own_bound(point: _Point, multipliers: np.ndarray, squares: np.ndarray, costs: np.ndarray) -> float:
    heaviest = float((squares @ multipliers / costs).max())
    return float(multipliers @ point.lengths) ** 2 / (float(multipliers.sum()) * heaviest)


def _better_placed(
    best: PlacedNoise | None, point: _Point, multipliers: np.ndarray, bound: float, costs: np.ndarray
) -> PlacedNoise:
    """The cheapest variances so far beside the multipliers of the best bound so far."""
    worst = float(point.lengths.max())
    value = worst * float(costs @ point.variances)
    if best is None or bound > best.bound:
        dual = (multipliers, point.raw_responses, bound)
    else:
        dual = (best.multipliers, best.responses, best.bound)
    if best is None or value < best.value:
        return PlacedNoise(point.variances, worst, value, *dual)
    return PlacedNoise(best.variances, best.worst, best.value, *dual)
