"""Objective perturbation of all classes at once: the record of one private training run with a softmax-like loss.

In:   the number of classes, bounds of one record's gradient and curvature, the strong convexity, the noise, the mask.
Out:  JointObjectiveEvent, which states an (ε, δ) and checks it against the proved profile.
Not here: two classes (core/events/learning.py), training (learn/), how events add up (core/compose.py).
Proof: docs/proofs/joint_objective.md

One record's gradient is a mixture of the K - 1 corners (e_k - e_y)xᵀ and 0. The privacy loss is convex in it, so it is
largest at a corner, or at a pair of corners for two records, and the profile is at most the sum over them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.core.checks import at_least_zero, positive, round_up
from sfumato.core.events.event import Event
from sfumato.core.events.objective_noise import ObjectiveNoiseName, objective_noise
from sfumato.core.gaussian import gaussian_delta
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.core.special import ndtr
from sfumato.errors import PrivacyParameterError

__all__ = ["JointObjectiveEvent", "corners_of", "joint_delta", "joint_shift"]


def corners_of(classes: int, relation: str) -> tuple[tuple[float, int], ...]:
    """(length, how many) of the corners by which neighbours' gradients can differ, for rows of norm 1.

    >>> corners_of(3, "add-remove")
    ((1.4142135623730951, 2),)
    """
    others = classes - 1
    if relation != "replace-one":
        return ((math.sqrt(2), others),)
    if classes == 2:
        return ((2 * math.sqrt(2), 1),)
    pairs = ((math.sqrt(6), others * (classes - 2)), (math.sqrt(2), 2 * others))
    return ((2 * math.sqrt(2), others), *pairs)


def joint_shift(classes: int, curvature: float, strength: float) -> float:
    """What the change of variables adds to the loss: the determinant of K - 1 directions, worst at equal chances."""
    return round_up((classes - 1) * math.log1p(curvature / (classes * strength)), 1e-15)


def joint_delta(corners: tuple[tuple[float, int], ...], moved: float, mask: float, rest: float) -> float:
    """δ at ε = shift + `rest` for noise that hides a row by `moved` and a Gaussian mask; 1 below the shift."""
    if rest < 0:
        return 1.0
    total = math.fsum(
        count * gaussian_delta(round_up(math.hypot(length * moved, mask), 1e-15), rest) for length, count in corners
    )
    beyond = float(ndtr(mask / 2 - rest / mask)) if mask else 0.0
    # A Gaussian loss has no end: a δ that underflows to 0 would claim a pure ε.
    return min(1.0, max(math.ulp(0.0), round_up(total + beyond, 1e-12)))


@dataclass(frozen=True)
class JointObjectiveEvent(Event):
    """The exact minimiser of Σ loss + ½·strength·‖W‖² + ⟨b, W⟩ over K × d with random b, and a Gaussian mask on it.

    The loss of a record is convex in the K scores, its gradient there p - e_y for chances p, its Hessian
    `curvature`·(diag p - ppᵀ). `slope` bounds the norm of a row (its L1 norm for "laplace"). b is N(0, scale²) in every
    coordinate ("gaussian"), or has density ∝ exp(-‖b‖₂/scale) ("norm-gamma") or ∝ exp(-‖b‖₁/scale) ("laplace").
    `mask` is the Gaussian parameter of what hides the solver's residual. With Gaussian noise the act is stated as
    (`at`, `delta`)-DP; without, at and mask are 0 and it is pure. `strength` and `scale` do not depend on the data, and
    under add-remove not on the number of records.
    """

    proof: ClassVar[str] = "joint_objective"

    noise: ObjectiveNoiseName
    classes: int
    slope: float
    curvature: float
    strength: float
    scale: float
    mask: float = 0.0
    at: float = 0.0
    delta: float = 0.0

    def _check(self) -> None:
        objective_noise(self.noise)
        if not isinstance(self.classes, int) or isinstance(self.classes, bool) or self.classes < 2:
            raise PrivacyParameterError("classes must be a whole number of at least 2.")
        for name in ("slope", "curvature", "strength", "scale"):
            positive(getattr(self, name), name)
        for name in ("mask", "at", "delta"):
            at_least_zero(getattr(self, name), name)
        self._check_delta()

    def _check_delta(self) -> None:
        if not self.is_gaussian:
            if self.mask or self.at or self.delta:
                raise PrivacyParameterError("Without Gaussian noise there is no mask and no delta in a joint training.")
        elif not 0 < self.delta < 1 or self.profile(self.at) > self.delta:
            raise PrivacyParameterError("This joint training does not keep the epsilon and delta it states.")

    @property
    def is_gaussian(self) -> bool:
        """Whether its noise is normal, so that its cost is a curve and not a pure ε."""
        return objective_noise(self.noise).is_gaussian

    @property
    def shift(self) -> float:
        return joint_shift(self.classes, self.curvature, self.strength)

    def profile(self, epsilon: float) -> float:
        """δ(ε) with Gaussian noise, for ε of at least the shift; 1 below."""
        corners = corners_of(self.classes, self.adjacency.relation)
        return joint_delta(corners, round_up(self.slope / self.scale, 1e-15), self.mask, epsilon - self.shift)

    def rdp(self, alpha: float) -> float:
        """Rényi ε with Gaussian noise: E e^{(α-1)·max(0, losses of corners)} ≤ 1 + the sum over corners."""
        moved = self.slope / self.scale
        exponents = [0.0]
        for length, count in corners_of(self.classes, self.adjacency.relation):
            exponents.append(math.log(count) + alpha * (alpha - 1) * (length * moved) ** 2 / 2)
        joint = float(np.logaddexp.reduce(exponents))
        return round_up(self.shift + joint / (alpha - 1) + alpha * self.mask**2 / 2, 1e-12)

    def guarantee(self) -> ApproxDP | PureDP:
        if self.is_gaussian:
            return ApproxDP(self.at, self.delta, adjacency=self.adjacency)
        records = 2 if self.adjacency.relation == "replace-one" else 1
        moved = round_up(records * objective_noise(self.noise).longest * self.slope / self.scale, 1e-15)
        return PureDP(round_up(moved + self.shift, 1e-15), adjacency=self.adjacency)
