"""The minimiser of a regularised loss, to a gradient norm that was promised beforehand, from sums over rows alone.

In:   a strength, a linear term, a public tolerance; for each question the sums at a point.
Out:  Minimiser: a point whose exact gradient has norm at most the tolerance, rounding error included.
Not here: how the sums are made (learn/stream_sums.py), what the tolerance costs (learn/calibration.py).
Proof: docs/proofs/objective_perturbation.md, "What the solver owes"

Objective: (1/size) Σ loss + strength·(½‖f‖² + penalty) + ⟨tilt, f⟩. It is strongly convex, so Newton's method with a
line search on the directional derivative arrives; with penalties as steep as are taken it was seen to take 125 steps. A
limit of 2000 keeps a run from going on for ever should floating point break the theorem: no model is published then.
One pass over the table answers the questions of all models that are still on their way. Scores are always computed from
the point itself, so every gradient can be certified as it comes. Rows in memory, in files, on workers and on a device
all go this one way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sfumato.errors import DataError
from sfumato.learn.joint_loss import JointLoss
from sfumato.learn.losses import Loss
from sfumato.learn.penalties import NO_PENALTY, PenaltyTerms
from sfumato.learn.rows import SUMMING

__all__ = [
    "LENGTHS",
    "MOST_ROWS_PER_SIZE",
    "Minimiser",
    "Objective",
    "SumsAsked",
    "SumsGiven",
    "attainable_tolerance",
    "farthest_solution",
    "minimise_together",
    "newton",
    "not_arrived",
]

_UNIT = 2.0**-53
#: More coefficients than this are solved by conjugate gradients instead of a Cholesky factor.
_DENSE = 3000
#: A kept Hessian serves as long as each step divides the gradient by at least this.
_GOOD_STEP = 8.0
#: Newton steps after which a run ends without a model; and steps of conjugate gradients for each.
_MOST_STEPS, _MOST_PRODUCTS = 2000, 200
#: From this step on each one lowers the objective for certain: bolder ones can go round in circles where slopes bend.
_CAREFUL_FROM = 30
#: Passes of one careful step, each of which at least halves where the derivative's zero may lie.
_LOOKS = 40
#: The most rows that are provided for where their number is private, in multiples of the public `size`.
MOST_ROWS_PER_SIZE = 10.0
#: The lengths that are looked at when a full step does not end where the derivative is small: 64, 32, … 2^-24.
LENGTHS = 2.0 ** -np.arange(-6.0, 25.0)


@dataclass(frozen=True)
class Minimiser:
    """`point`, and by how much its exact gradient can differ from zero; `steps` taken."""

    point: np.ndarray
    gradient_bound: float
    steps: int


def _rounding(
    loss: Loss | JointLoss,
    width: int,
    strength: float,
    point: float,
    tilt: float,
    rows_per_size: float,
    penalty: float = 0.0,
) -> float:
    """How far the computed gradient can be from the exact one, for a point and tilt of these norms.

    Sums over rows err by SUMMING units (rows of norm ≤ 1, slopes up to the loss's bound), scores are dot products of
    `width` terms, slopes move by the curvature times the scores' error and a few units of their own. `penalty` is the
    `rounding` of PenaltyTerms.
    """
    scores = loss.largest_curvature * (width + 12 + loss.outputs) * (1 + point)
    summed = rows_per_size * (loss.slope_bound * SUMMING + scores + loss.own_error)
    return 1.1 * _UNIT * (summed + (6 + penalty) * strength * point + 6 * tilt)


def attainable_tolerance(
    loss: Loss | JointLoss,
    width: int,
    strength: float,
    tilt: float,
    most_rows: float = MOST_ROWS_PER_SIZE,
    penalty: float = 0.0,
) -> float:
    """A public gradient tolerance that floating point reaches for every tilt up to `tilt` and `most_rows`·size rows.

    Four times the rounding error at the farthest solution leaves room to arrive.
    """
    reach = farthest_solution(loss, strength, tilt, most_rows)
    return 4 * _rounding(loss, width, strength, reach, tilt, most_rows, penalty)


def farthest_solution(
    loss: Loss | JointLoss, strength: float, tilt: float, most_rows: float = MOST_ROWS_PER_SIZE
) -> float:
    """A public bound of the norm of every solution whose tilt is at most `tilt`.

    Comparing with the origin, ½·strength·‖f‖² ≤ loss(0)·rows/size + ‖tilt‖‖f‖ at the minimum: a penalty is least there.
    """
    return (math.sqrt(2 * loss.at_zero * most_rows / strength) + 2 * tilt / strength) * (1 + 1e-12)


def not_arrived() -> DataError:
    """That the solver did not reach its tolerance; nothing of what it found is shown."""
    return DataError(
        "Training did not reach the accuracy that its privacy rests on, so no model is published. Check public_size, "
        "norm and regularization: they may be far from what the table is like."
    )


@dataclass(frozen=True)
class Objective:
    """(1/size) Σ loss + strength·(½‖f‖² + penalty) + ⟨tilt, f⟩ over `rows` rows of `width`, as known without them."""

    loss: Loss | JointLoss
    width: int
    rows: int
    size: float
    strength: float
    tilt: np.ndarray
    tolerance: float
    penalty: PenaltyTerms = NO_PENALTY

    def gradient(self, point: np.ndarray, pulled: np.ndarray) -> np.ndarray:
        shrunk = point + self.penalty.gradient(point) if self.penalty else point
        return pulled / self.size + self.strength * shrunk + self.tilt

    def bound(self, point: np.ndarray, norm: float) -> float:
        """The norm of the exact gradient is at most this."""
        lengths = float(np.linalg.norm(point)), float(np.linalg.norm(self.tilt))
        rounding = _rounding(
            self.loss, self.width, self.strength, *lengths, self.rows / self.size, self.penalty.rounding
        )
        return norm * (1 + (point.size + 4) * _UNIT) + rounding


@dataclass(frozen=True)
class SumsAsked:
    """Σ slope·row at `point`, and Σ curvature·row·rowᵀ if `hessian`; `model` says whose labels count as positive.

    With a `direction` instead: Σ slope·⟨row, direction⟩ at point + t·direction for each t of LENGTHS. With a `vector`:
    the Hessian's product with it.
    """

    model: int
    point: np.ndarray
    hessian: bool = False
    direction: np.ndarray | None = None
    vector: np.ndarray | None = None


@dataclass(frozen=True)
class SumsGiven:
    """`pulled` is the sum of slopes and rows, the sums along a direction, or a product with the Hessian."""

    pulled: np.ndarray
    gram: np.ndarray | None = None


Asking = Generator[SumsAsked, SumsGiven, Minimiser]
Solve = Callable[[np.ndarray], Generator[SumsAsked, SumsGiven, np.ndarray]]


def newton(objective: Objective, model: int = 0) -> Asking:
    """Yields questions, takes an Answer to each, returns the Minimiser.

    A Hessian is kept as long as each step divides the gradient by 8 or more. A full step after which the derivative
    along it is not half as large as before is replaced by a better one, found by one further pass that looks at all of
    LENGTHS: hinge losses with little strength would take hundreds of full steps. Neither makes sure that the objective
    falls; from the thirtieth step on each one does. Ends after 2000, without a model.
    """
    point, dense = np.zeros(objective.tilt.size), objective.tilt.size <= _DENSE
    solve: Solve | None = None
    last, least, steps, doubtful = math.inf, math.inf, 0, False
    answer = yield SumsAsked(model, point, dense)
    gradient = objective.gradient(point, answer.pulled)
    for _ in range(_MOST_STEPS):
        norm = float(np.linalg.norm(gradient))
        if not math.isfinite(norm):
            break
        bound = objective.bound(point, norm)
        if bound <= objective.tolerance:
            return Minimiser(point, bound, steps)
        slow, least = norm > last / _GOOD_STEP, min(least, norm)
        if not dense:
            solve = _by_products(objective, model, point)
        elif answer.gram is None and (solve is None or slow):
            answer = yield SumsAsked(model, point, True)
        if answer.gram is not None:
            solve = _by_factor(objective, answer.gram, point)
        assert solve is not None
        direction = -(yield from solve(gradient))
        if steps >= _CAREFUL_FROM:
            following, answer = yield from _carefully(objective, model, point, gradient, direction, least, dense)
        else:
            start = abs(float(gradient @ direction))
            following, answer = point + direction, None
            if not doubtful:  # where the last full step was no good, this one is likely not to be either
                answer = yield SumsAsked(model, following, dense and slow)
            if answer is None or abs(float(objective.gradient(following, answer.pulled) @ direction)) > 0.5 * start:
                along = (yield SumsAsked(model, point, direction=direction)).pulled
                length = _zero(_slopes(objective, point, direction, along))
                doubtful = length != 1.0
                if answer is None or doubtful:
                    following = point + length * direction
                    answer = yield SumsAsked(model, following, dense)
        gradient = objective.gradient(following, answer.pulled)
        point, last, steps = following, norm, steps + 1
    raise not_arrived()


def _carefully(
    objective: Objective,
    model: int,
    point: np.ndarray,
    gradient: np.ndarray,
    direction: np.ndarray,
    least: float,
    dense: bool,
) -> Generator[SumsAsked, SumsGiven, tuple[np.ndarray, SumsGiven]]:
    """The following point and its sums: with half the gradient of all points before, or a lower objective for certain.

    The derivative grows along the direction, so up to a length where it is not positive the objective falls. Such
    lengths are followed until the derivative is a tenth of what it was: where slopes bend sharply that is inside the
    bend, whose curvature the next direction then knows.
    """
    following = point + direction
    answer = yield SumsAsked(model, following, dense)
    if float(np.linalg.norm(objective.gradient(following, answer.pulled))) <= least / 2:
        return following, answer
    safe, step, goal = point, direction, 0.1 * float(gradient @ direction) / float(np.linalg.norm(direction))
    for _ in range(_LOOKS):
        along = (yield SumsAsked(model, safe, direction=step)).pulled
        slopes = _slopes(objective, safe, step, along) / float(np.linalg.norm(step))
        falling = np.flatnonzero(slopes <= 0)
        if not falling.size:  # the zero is nearer than the shortest length
            step = step * (LENGTHS[-1] / LENGTHS[0])
            continue
        at = int(falling[0])
        safe = safe + LENGTHS[at] * step
        if slopes[at] >= goal:
            break
        step = step * (LENGTHS[at] / LENGTHS[0] if at else 1.0)
    answer = yield SumsAsked(model, safe, dense)
    return safe, answer


def _slopes(objective: Objective, point: np.ndarray, direction: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The derivative along the direction at each of LENGTHS; it grows with the length (convexity)."""
    linear = float(objective.tilt @ direction) + objective.strength * float(point @ direction)
    slopes = sums / objective.size + linear + LENGTHS * (objective.strength * float(direction @ direction))
    if objective.penalty:
        slopes = slopes + objective.strength * objective.penalty.along(point, direction, LENGTHS)
    return slopes


def _zero(slopes: np.ndarray) -> float:
    """Where the derivative crosses zero, by a chord."""
    below = np.flatnonzero(slopes <= 0)
    if not below.size:  # shorter than the point's last digits: what is left of the slope is rounding
        return float(LENGTHS[-1])
    at = int(below[0])
    if at == 0 or slopes[at] == 0:
        return float(LENGTHS[at])
    share = -slopes[at] / (slopes[at - 1] - slopes[at])
    return float(LENGTHS[at] * (1 + share))


def _factored(hessian: np.ndarray) -> tuple[np.ndarray, bool]:
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


def _by_factor(objective: Objective, gram: np.ndarray, point: np.ndarray) -> Solve:
    hessian = gram / objective.size
    hessian[np.diag_indices_from(hessian)] += objective.strength
    objective.penalty.add_hessian(point, hessian, objective.strength)
    factor = _factored(hessian)

    def solve(vector: np.ndarray) -> Generator[SumsAsked, SumsGiven, np.ndarray]:
        return cho_solve(factor, vector, check_finite=False)
        yield  # a generator that asks nothing

    return solve


def _by_products(objective: Objective, model: int, point: np.ndarray) -> Solve:
    """Conjugate gradients: every product with the Hessian is one pass."""

    def solve(vector: np.ndarray) -> Generator[SumsAsked, SumsGiven, np.ndarray]:
        solution, residual = np.zeros_like(vector), vector.copy()
        direction, square = residual.copy(), float(residual @ residual)
        goal = 1e-6 * square
        for _ in range(_MOST_PRODUCTS):
            answer = yield SumsAsked(model, point, vector=direction)
            shrunk = direction + objective.penalty.times(point, direction) if objective.penalty else direction
            product = answer.pulled / objective.size + objective.strength * shrunk
            length = square / max(float(direction @ product), 1e-300)
            solution += length * direction
            residual -= length * product
            following = float(residual @ residual)
            if following <= goal:
                break
            direction, square = residual + following / square * direction, following
        return solution

    return solve


def minimise_together(
    objectives: Sequence[Objective], ask: Callable[[list[SumsAsked]], list[SumsGiven]]
) -> list[Minimiser]:
    """All models at once: every pass answers each model that is not done.

    >>> from sfumato.learn.losses import LogisticLoss
    >>> objective = Objective(LogisticLoss(), 1, 1, 1, 1.0, np.array([-2.0]), 1e-9)
    >>> quadratic = lambda asked: [SumsGiven(one.point, np.eye(1)) for one in asked]  # the loss is ½f²
    >>> [round(float(found.point[0]), 9) for found in minimise_together([objective], quadratic)]
    [1.0]
    """
    running = [newton(objective, model) for model, objective in enumerate(objectives)]
    found: dict[int, Minimiser] = {}
    questions = [next(one) for one in running]
    while questions:
        following = []
        for question, answer in zip(questions, ask(questions), strict=True):
            try:
                following.append(running[question.model].send(answer))
            except StopIteration as end:
                found[question.model] = end.value
        questions = following
    return [found[model] for model in range(len(objectives))]
