"""Newton's method that asks for sums and sees no rows: for tables that are read anew for every step.

In:   a strength, a linear term, a public tolerance; for each question the sums at a point.
Out:  the same Minimiser as learn/newton.py: a point whose exact gradient is at most the tolerance, certified.
Not here: how the sums are made (learn/stream_sums.py), one table in memory (learn/newton.py).
Proof: docs/proofs/objective_perturbation.md, "What the solver owes"

One pass over the table answers the questions of all models that are still on their way. Margins are always computed
from the point itself, so every gradient is fresh and can be certified as it comes. Sums of blocks are added with their
rounding errors, so the bound for one machine holds here too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from sfumato.errors import InputError
from sfumato.learn.newton import _GOOD_STEP, _UNIT, MOST_STEPS, Minimiser, _factor, _rounding, not_arrived

__all__ = ["LENGTHS", "Answer", "Objective", "Question", "minimise_together", "newton"]

#: The lengths that are looked at when a full step is too long, halved from one to the next.
LENGTHS = 2.0 ** -np.arange(31)
#: More features than this make the Hessian of a partition too large to send around.
MOST_FEATURES = 4000


@dataclass(frozen=True)
class Objective:
    """(1/size) Σ loss + ½·strength·‖f‖² + ⟨tilt, f⟩ over `rows` rows, as far as it is known without them."""

    width: int
    rows: int
    size: float
    curvature: float
    strength: float
    tilt: np.ndarray
    tolerance: float

    def __post_init__(self) -> None:
        if self.width > MOST_FEATURES:
            raise InputError(
                f"{self.width} features are more than the {MOST_FEATURES} a fit by sums can hold. Use fewer, or fit in "
                "memory. Nothing was spent."
            )

    def gradient(self, point: np.ndarray, pulled: np.ndarray) -> np.ndarray:
        return pulled / self.size + self.strength * point + self.tilt

    def bound(self, point: np.ndarray, norm: float) -> float:
        """The norm of the exact gradient is at most this."""
        rounding = _rounding(
            self.rows,
            self.size,
            self.width,
            self.curvature,
            self.strength,
            float(np.linalg.norm(point)),
            float(np.linalg.norm(self.tilt)),
        )
        return norm * (1 + (self.width + 4) * _UNIT) + rounding


@dataclass(frozen=True)
class Question:
    """Σ slope·row at `point`, and Σ curvature·row·rowᵀ if `hessian`; `model` says whose labels count as positive.

    With a `direction` instead: Σ slope·⟨row, direction⟩ at point + t·direction for each t of LENGTHS.
    """

    model: int
    point: np.ndarray
    hessian: bool
    direction: np.ndarray | None = None


@dataclass(frozen=True)
class Answer:
    """`pulled` is the sum of slopes and rows, or the sums along a direction."""

    pulled: np.ndarray
    gram: np.ndarray | None


Asked = tuple[np.ndarray, bool, np.ndarray | None]


def newton(objective: Objective) -> Generator[Asked, Answer, Minimiser]:
    """Yields (point, whether the Hessian is wanted, a direction or None), takes an Answer, returns the Minimiser.

    A Hessian is kept as long as each step divides the gradient by 8 or more. A full step that does not shrink the
    derivative along it is shortened by one further pass, which looks at all of LENGTHS. It ends after MOST_STEPS,
    without a model.
    """
    point, solve, last, steps, shortened = np.zeros(objective.width), None, np.inf, 0, False
    answer = yield point, True, None
    gradient = objective.gradient(point, answer.pulled)
    for _ in range(MOST_STEPS):
        norm = float(np.linalg.norm(gradient))
        if not np.isfinite(norm):
            break
        bound = objective.bound(point, norm)
        if bound <= objective.tolerance:
            return Minimiser(point, bound, steps)
        slow = norm > last / _GOOD_STEP
        if answer.gram is None and (solve is None or slow):
            answer = yield point, True, None
        if answer.gram is not None:
            solve = _solver(objective, answer.gram)
        assert solve is not None
        direction = -solve(gradient)
        allowed, lengths = 0.5 * abs(float(gradient @ direction)), [1.0]
        if shortened:  # the last full step was too long, and this one is likely to be: look before going
            lengths = _lengths(objective, point, direction, (yield point, False, direction).pulled, allowed)
        following, length = point, 1.0
        while lengths:
            length = lengths.pop(0)
            following = point + length * direction
            answer = yield following, slow or length < 1, None
            gradient = objective.gradient(following, answer.pulled)
            if float(gradient @ direction) <= allowed:
                break
            if length == 1.0:
                lengths = _lengths(objective, point, direction, (yield point, False, direction).pulled, allowed)
        point, last, steps, shortened = following, norm, steps + 1, length < 1
    raise not_arrived()


def _lengths(
    objective: Objective, point: np.ndarray, direction: np.ndarray, sums: np.ndarray, allowed: float
) -> list[float]:
    """Step lengths to try, the best first. The derivative grows with the length, for the objective is convex."""
    linear = float(objective.tilt @ direction) + objective.strength * float(point @ direction)
    slopes = sums / objective.size + linear + LENGTHS * (objective.strength * float(direction @ direction))
    fitting = np.flatnonzero(slopes <= allowed)
    if not fitting.size:  # shorter than the point's last digits: what is left of the slope is rounding
        return [float(LENGTHS[-1])]
    at = int(fitting[0])
    if at == 0 or slopes[at] >= 0:
        return [float(LENGTHS[at])]
    # Between this length and twice it the derivative crosses zero: go there, along the chord.
    share = -slopes[at] / (slopes[at - 1] - slopes[at])
    return [float(LENGTHS[at] * (1 + share)), float(LENGTHS[at])]


def _solver(objective: Objective, gram: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    hessian = gram / objective.size
    hessian[np.diag_indices_from(hessian)] += objective.strength
    factor = _factor(hessian)
    return lambda vector: cho_solve(factor, vector, check_finite=False)


def minimise_together(
    objectives: Sequence[Objective], ask: Callable[[list[Question]], list[Answer]]
) -> list[Minimiser]:
    """All models at once: every pass answers each model that is not done.

    >>> objective = Objective(1, 1, 1, 1.0, 1.0, np.array([-2.0]), 1e-9)
    >>> quadratic = lambda asked: [Answer(one.point, np.eye(1)) for one in asked]  # the loss is ½f²
    >>> [round(float(found.point[0]), 9) for found in minimise_together([objective], quadratic)]
    [1.0]
    """
    running = [newton(objective) for objective in objectives]
    found: dict[int, Minimiser] = {}
    questions = [Question(model, *next(one)) for model, one in enumerate(running)]
    while questions:
        following = []
        for question, answer in zip(questions, ask(questions), strict=True):
            try:
                following.append(Question(question.model, *running[question.model].send(answer)))
            except StopIteration as end:
                found[question.model] = end.value
        questions = following
    return [found[model] for model in range(len(objectives))]
