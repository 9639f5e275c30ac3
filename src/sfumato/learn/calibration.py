"""From a budget to noise: how strong to regularise, how much to perturb, what is recorded.

In:   ε, δ, an adjacency, a public size, width, a loss, a method.
Out:  TrainingPlan: strength, noise, solver tolerance and the events; made before any data is seen.
Not here: solving (learn/newton.py), the profile itself (core/events/learning.py), bounds (learn/bounds.py).
Proof: docs/proofs/objective_perturbation.md, docs/proofs/output_perturbation.md

Rows have norm at most 1 and slopes are at most 1. "Mean form" divides the objective by the public size N:

    (1/N) Σ loss + Λ·(½‖f‖² + penalty) + ⟨b, f⟩/N

so the strong convexity of the sum is N·Λ, whatever the public penalty is. Replacing one record moves the gradient of
the sum by at most 2, adding or removing one by at most 1.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from sfumato.core.events.event import Event, Repeated
from sfumato.core.events.joint import JointObjectiveEvent, corners_of, joint_delta, joint_shift
from sfumato.core.events.learning import ObjectiveDP, ObjectivePerturbationEvent
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import GaussianDP, PureDP
from sfumato.core.special import ndtr
from sfumato.errors import PrivacyParameterError
from sfumato.learn.joint_loss import JointLoss
from sfumato.learn.label_look import farthest_score, look_noise, look_share
from sfumato.learn.losses import LogisticLoss, Loss
from sfumato.learn.newton import attainable_tolerance, farthest_solution
from sfumato.learn.seeds import Seeds
from sfumato.learn.training_budget import TrainingBudget
from sfumato.learn.training_noise import TAIL_SHARE
from sfumato.mechanisms import Gaussian, Laplace, NormGamma

__all__ = ["Method", "TrainingPlan", "automatic_strength", "even_strength", "logistic_margin", "plan_training"]

Method = Literal["objective", "output"]

#: The mask's share of the Gaussian parameter: μ² adds, so a tenth of μ costs half a percent of the rest.
_MASK_SHARE = 1 / 10
#: The mask's share of ε where δ = 0, and where it would otherwise ask for more regularisation.
_PURE_SHARE, _LARGER_PURE_SHARE = 1 / 200, 1 / 50
#: What is kept back for the masks of several models.
_RESIDUAL_EPSILON, _RESIDUAL_DELTA = 1 / 200, 1 / 100
#: The standard deviation of the mask in every coefficient that `regularization="auto"` allows: it moves the margin of
#: a row of norm 1 by as much and costs at most half its square times the curvature in loss.
_WIDEST_MASK = 0.02
#: What twice the strength must leave of the mask at most, or no more strength is asked for.
_HARDLY_LESS = 0.9
#: Length of useful coefficients for rows of norm 1 is this times noise^(-1/3); see `automatic_strength`.
_TYPICAL_LENGTH, _TYPICAL_FOR_OUTPUT = 5.0, 16.0
#: `regularization="auto"` keeps the change of variables below this share of ε; a given strength may use half.
_AUTOMATIC_SHIFT, _LARGEST_SHIFT = 1 / 10, 1 / 2
#: Noise (in gradients) up to which two classes are held half as tightly, and from which on as tightly as said above.
_SHORT_NOISE, _LONG_NOISE = 0.01, 0.03
#: The logistic loss's largest margin, the noise (in gradients) up to which it has none; see `logistic_margin`.
_LARGEST_MARGIN, _WITHOUT_MARGIN = 2.0, 0.001
#: b is drawn on a grid this much finer than its scale asks for, since its rounding is hidden by the residual's noise.
_FINER = 2.0**-20


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that is settled before the data: the noise, the strength, the tolerance, and what it costs.

    `tilt` draws b (None for output perturbation); `mask` is added to the solution and hides the solver's residual, or
    the solution itself; `look` is the noise of a look at the labels beforehand, where there is one. `noise_length` is
    the expected length of the noise in the coefficients where the loss is flat. `given` is the strength that was asked
    for, None for the public rule; `regularization` is the one that is used.
    """

    method: Method
    budget: TrainingBudget
    regularization: float
    tolerance: float
    tilt: Gaussian | NormGamma | Laplace | None
    mask: Gaussian | NormGamma
    events: tuple[Event | Repeated, ...]
    proofs: tuple[str, ...]
    noise_length: float
    loss: Loss | JointLoss
    given: float | None = None
    look: Gaussian | Laplace | None = None

    def masked(self, solutions: np.ndarray, seeds: Seeds) -> np.ndarray:
        """The solutions with the mask's noise: Gaussian noise for all models at once, else for one after the other."""
        if isinstance(self.mask, Gaussian):
            return seeds.seeded(self.mask)(solutions)
        return np.stack([seeds.seeded(self.mask)(solution) for solution in solutions])

    def scored(self, released: np.ndarray, width: int) -> np.ndarray:
        """One row of coefficients for each score: as they are, or of all classes from their contrasts."""
        if isinstance(self.loss, JointLoss):
            return self.loss.basis @ released.reshape(self.loss.outputs, width)
        return released


def plan_training(
    budget: TrainingBudget,
    loss: Loss | JointLoss,
    method: Method,
    regularization: float | Literal["auto"] = "auto",
    *,
    even: bool = False,
) -> TrainingPlan:
    """The plan for `budget.models` jointly accounted linear models; `even`: "auto" is `even_strength` for two classes.

    >>> from sfumato.core import REPLACE_ONE
    >>> from sfumato.learn.losses import LogisticLoss
    >>> plan = plan_training(TrainingBudget(1.0, 1e-6, REPLACE_ONE, 10_000, 20), LogisticLoss(), "objective")
    >>> round(plan.regularization, 5), plan.tolerance < 1e-9
    (0.00011, True)
    """
    budget = replace(budget, outputs=loss.outputs)
    if method not in ("objective", "output"):
        raise PrivacyParameterError(f"method must be 'objective' or 'output', not {method!r}. Nothing was spent.")
    if regularization == "auto":
        alike = even and not isinstance(loss, JointLoss)
        strength = even_strength(budget, loss) if alike else automatic_strength(budget, loss, method)
    elif isinstance(regularization, int | float) and 0 < regularization <= sys.float_info.max:
        strength = float(regularization)
    else:
        raise PrivacyParameterError("regularization must be 'auto' or a number greater than 0. Nothing was spent.")
    if method == "objective":
        plan = _objective(budget, loss, strength, automatic=regularization == "auto")
    else:
        plan = _output(budget, loss, strength)
    return plan if regularization == "auto" else replace(plan, given=strength)


def automatic_strength(budget: TrainingBudget, loss: Loss | JointLoss, method: Method = "objective") -> float:
    """Λ for `regularization="auto"`: a rule of (size, width, ε, δ, loss, method, adjacency), never of the data.

    Objective perturbation: in directions where the data says little, noise b costs E‖b‖²/(2N²Λ) and shrinking
    coefficients of length F costs ΛF²/2; the sum is least at Λ = E‖b‖/(N·F). E‖b‖ is σ√d for Gaussian, d·scale
    for norm-gamma and √(2d)·scale for Laplace noise. Where the data does say something, less noise allows longer
    coefficients: F = 5·(E‖b‖/N)^(-1/3), so Λ = (E‖b‖/N)^(4/3)/5. The constants were fixed on loans, satellite images,
    the shuttle and synthetic tables.
    Hinge-like losses want margins of 1 where the logistic one wants several: F is smaller by √(¼/curvature).
    Output perturbation: noise of length v/Λ costs (tr H/d)·v²/(2Λ²) with tr H ≤ curvature; the sum is least at
    Λ³ = 2·curvature·v²/(d·F²), with F = 16.
    Two floors: ln(1 + curvature/(N·Λ)) stays below a tenth of ε, and Λ above 1/(10·N). Where the noise of two classes
    is shorter than 0.03 of a gradient, Λ and the first floor fall, to half of it from 0.01 on (`_tightness`).
    `plan_training` adds a third: the noise that hides the solver's residual stays below 0.02 in every coefficient.
    """
    if method == "output":
        budget = replace(budget, nonzeros=None)
    length = _unit_noise(budget, loss)  # of b, or of the noise on the solution times N·Λ
    share = length / budget.size
    flat = 1 / loss.score_curvature if isinstance(loss, JointLoss) else 0.25 / loss.largest_curvature
    smaller = min(1.0, math.sqrt(flat))
    tightness = 1.0
    if method == "objective":
        tightness = 1.0 if isinstance(loss, JointLoss) else _tightness(share)
        strength = tightness * share ** (4 / 3) / (_TYPICAL_LENGTH * smaller)
    else:
        squares = share**2 / (budget.width * (_TYPICAL_FOR_OUTPUT * smaller) ** 2)
        strength = (2 * loss.largest_curvature * squares) ** (1 / 3)
    return max(strength, _floor(budget, loss, tightness))


def even_strength(budget: TrainingBudget, loss: Loss | JointLoss) -> float:
    """Λ for two classes and features whose useful coefficients are alike, as those of additive models are.

    Where the data says nothing, noise of deviation s in every entry of the gradient leaves s/(N·Λ) in every
    coefficient. With Λ = s/N that is 1, about what useful ones are, whatever the budget, the size and the number of
    features; the rule for rows of any make asks for several times less. Fixed on loans, the shuttle and simulated
    tables of 4,000 to 60,000 rows. The floors are those of `automatic_strength`. Three and more classes keep that rule:
    a constant for each of them was held too tightly.

    >>> from sfumato.core import REPLACE_ONE
    >>> budget = TrainingBudget(1.0, 1e-6, REPLACE_ONE, 10_000, 100)
    >>> round(even_strength(budget, LogisticLoss()) / automatic_strength(budget, LogisticLoss()))
    5
    """
    length = _unit_noise(budget, loss)
    strength = length / (budget.size * math.sqrt(budget.coefficients))
    return max(strength, _floor(budget, loss, _tightness(length / budget.size)))


def _floor(budget: TrainingBudget, loss: Loss | JointLoss, tightness: float) -> float:
    return max(_strength_for_shift(budget, loss, _AUTOMATIC_SHIFT / tightness * budget.epsilon), 0.1 / budget.size)


def _tightness(share: float) -> float:
    """From ½, where noise is at most 0.01 of a gradient long, to 1, where it is 0.03.

    Much data that is held tightly learns its most frequent kinds of rows and misses the others. Half was better than
    all on average over loans, the shuttle, satellite images and simulated tables; folds of KDD were seen before
    it was fixed, so its figure for KDD (benchmarks/learn_kdd.py) is partly tuned.
    """
    steps = math.log(share / _SHORT_NOISE) / math.log(_LONG_NOISE / _SHORT_NOISE)
    return 2.0 ** (min(1.0, max(0.0, steps)) - 1)


def logistic_margin(budget: TrainingBudget) -> float:
    """The margin of the logistic loss under this budget, from 0 (much data) to 2 (much noise): a rule of public facts.

    By the share of a gradient that the noise is long: 0 up to 0.001, 1 at 0.0032, 2 from 0.01 on. Fixed on loans, the
    shuttle, satellite images and simulated tables of 600 to 60,000 rows (benchmarks/learn_margin.py), and frozen.

    >>> from sfumato.core import REPLACE_ONE
    >>> [logistic_margin(TrainingBudget(1.0, 1e-6, REPLACE_ONE, size, 10)) for size in (800, 100_000)]
    [2.0, 0.0]
    """
    share = _unit_noise(budget, LogisticLoss()) / budget.size
    return min(_LARGEST_MARGIN, max(0.0, 2 * math.log10(share / _WITHOUT_MARGIN)))


def _expm1(value: float) -> float:
    return math.expm1(min(value, 40.0))  # beyond, the floor is nothing


def _shift(budget: TrainingBudget, loss: Loss | JointLoss, strength: float) -> float:
    """What the change of variables from coefficients to noise can add to the privacy loss of one model."""
    if isinstance(loss, JointLoss):
        return joint_shift(loss.classes, loss.score_curvature, budget.size * strength) * (1 + 1e-12)
    return math.log1p(loss.largest_curvature / (budget.size * strength)) * (1 + 1e-12)


def _strength_for_shift(budget: TrainingBudget, loss: Loss | JointLoss, shift: float) -> float:
    """The strength at which the change of variables costs all models together this much."""
    if isinstance(loss, JointLoss):
        return loss.score_curvature / (loss.classes * budget.size * _expm1(shift / (loss.classes - 1)))
    return loss.largest_curvature / (budget.size * _expm1(shift / budget.models))


def _gradient(budget: TrainingBudget, loss: Loss | JointLoss) -> float:
    """The norm of one record's gradient, in units of its row's, that noise without Gaussian corners must hide."""
    return budget.noise.joint_gradient if isinstance(loss, JointLoss) else 1.0


def _unit_noise(budget: TrainingBudget, loss: Loss | JointLoss) -> float:
    """Expected length of the noise that hides a change of `budget.moved`, by the whole ε and δ."""
    if isinstance(loss, JointLoss):
        tilt = _joint_tilt(budget, loss, budget.epsilon, 0.0)[0] if budget.delta else budget.epsilon
        return budget.noise_length(_scale(budget, loss, tilt))
    models = budget.models
    ratio = gaussian_mu(budget.epsilon, budget.delta) / math.sqrt(models) if budget.delta else budget.epsilon / models
    return budget.noise_length(budget.moved * budget.slope / ratio)


@dataclass(frozen=True)
class _Shares:
    """How the budget is divided at a strength: what the change of variables takes, the rest between tilt and mask.

    `tilt`, `mask` and `look` are μ for Gaussian noise (`mask` for all models together) and ε for each model otherwise.
    """

    shift: float
    tilt: float
    mask: float
    look: float = 0.0


def _least_strength(budget: TrainingBudget, loss: Loss | JointLoss) -> float:
    """Alg. 2 with the single factor: the change of variables costs at most half of ε."""
    epsilon = budget.epsilon * (1 - _RESIDUAL_EPSILON)
    return _strength_for_shift(budget, loss, _LARGEST_SHIFT * epsilon) * (1 + 1e-12)


def _shares(budget: TrainingBudget, loss: Loss | JointLoss, strength: float, pure_share: float) -> _Shares:
    shift = _shift(budget, loss, strength)
    if not budget.delta:
        mask, look = budget.epsilon / budget.models * pure_share, budget.epsilon * _look_share(budget)
        tilt = (budget.epsilon / budget.models - mask - shift - look) * (1 - 1e-12)
        return _Shares(shift, tilt, mask * (1 - 1e-12), look * (1 - 1e-12))
    if isinstance(loss, JointLoss):
        return _Shares(shift, *_joint_tilt(budget, loss, budget.epsilon - shift, _MASK_SHARE))
    if budget.models > 1:
        epsilon, delta = budget.epsilon * (1 - _RESIDUAL_EPSILON), budget.delta * (1 - _RESIDUAL_DELTA)
        kept = gaussian_mu(budget.epsilon * _RESIDUAL_EPSILON, budget.delta * _RESIDUAL_DELTA)
        return _Shares(shift, _largest_mu(epsilon, delta, shift, budget.models), kept)
    rest = budget.epsilon - shift
    together = gaussian_mu(rest, budget.delta * (1 - 2 * TAIL_SHARE)) * (1 - 1e-12)
    look = math.sqrt(_look_share(budget))
    share = _mask_share(together, rest, budget.delta, math.hypot(_MASK_SHARE, look))
    tilt = together * math.sqrt(1 - share * share) * (1 - 1e-12)
    part = share * together / math.hypot(_MASK_SHARE, look) * (1 - 1e-12)
    return _Shares(shift, tilt, part * _MASK_SHARE, part * look)


def _look_share(budget: TrainingBudget) -> float:
    """What a look at the labels takes, of μ² or of a pure ε."""
    if not budget.constant:
        return 0.0
    whole = gaussian_mu(budget.epsilon, budget.delta) if budget.delta else budget.epsilon
    return look_share(whole, budget.size, pure=not budget.delta)


def _mask_share(together: float, rest: float, delta: float, share: float = _MASK_SHARE) -> float:
    """A tenth of μ, and what a look takes, or less where their own loss could exceed the rest of ε."""
    while ndtr(share * together / 2 - rest / (share * together)) > TAIL_SHARE * delta / 2:
        share /= 2
    return share


@lru_cache(maxsize=256)
def _joint_tilt(budget: TrainingBudget, loss: JointLoss, rest: float, mask_share: float) -> tuple[float, float]:
    """The largest μ of a row's noise, times `moved`, and of the mask beside it, that ε = shift + `rest` allows."""
    corners = corners_of(loss.classes, budget.adjacency.relation)
    delta = budget.delta * (1 - 2 * TAIL_SHARE)
    longest = corners[0][0]
    most = gaussian_mu(rest, delta)
    share = _mask_share(most, rest, budget.delta) if mask_share else 0.0

    def holds(together: float) -> bool:
        return joint_delta(corners, together * math.sqrt(1 - share * share) / longest, share * together, rest) <= delta

    low, high = gaussian_mu(rest, delta / (4.0 * loss.classes**2)) / 2, most
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    tilt = low * math.sqrt(1 - share * share) / longest * (1 - 1e-12)
    return budget.moved * tilt, share * low * (1 - 1e-12)


def _residual(
    budget: TrainingBudget, loss: Loss | JointLoss, strength: float, scale: float
) -> tuple[float, float, float]:
    """The solver's tolerance, by how much a solution can be off with it, and how long it can be."""
    longest = budget.longest_noise(scale) / budget.size
    if budget.constant and isinstance(loss, Loss):  # the centre is a linear term as well
        longest += strength * farthest_score(loss, budget.size) / budget.constant
    tolerance = attainable_tolerance(loss, budget.width, strength, longest, budget.most_rows, budget.penalty)
    # b on the grid, as a gradient.
    rounding = _tilt(budget, scale).grid / 2 * math.sqrt(budget.coefficients) / budget.size
    reach = farthest_solution(loss, strength, longest, budget.most_rows)
    return tolerance, (tolerance + rounding) / strength, reach


def _tilt(budget: TrainingBudget, scale: float) -> Gaussian | NormGamma | Laplace:
    return budget.noise.mechanism(scale, scale * _FINER, adjacency=budget.adjacency, dimension=budget.coefficients)


def _scale(budget: TrainingBudget, loss: Loss | JointLoss, tilt: float) -> float:
    return budget.moved * _gradient(budget, loss) * budget.slope / tilt * (1 + 1e-12)


def _quiet_strength(budget: TrainingBudget, loss: Loss | JointLoss, strength: float) -> tuple[float, float]:
    """The least strength from here on at which the mask is narrow enough, and the mask's share of a pure ε.

    The mask falls with the strength, and more so as the change of variables leaves more of ε: to keep the shares of
    the start is to be careful.
    """

    def deviation(at: float, shares: _Shares) -> float:
        _, residual, reach = _residual(budget, loss, at, _scale(budget, loss, shares.tilt))
        return math.sqrt(_mask(budget, 2 * residual, reach, shares.mask).error())

    pure_share = _PURE_SHARE
    shares = _shares(budget, loss, strength, pure_share)
    if deviation(strength, shares) <= _WIDEST_MASK:
        return strength, pure_share
    if not budget.delta:
        pure_share = _LARGER_PURE_SHARE
        shares = _shares(budget, loss, strength, pure_share)
    low = high = strength
    while (wide := deviation(high, shares)) > _WIDEST_MASK:
        if deviation(2 * high, shares) > _HARDLY_LESS * wide:  # a steep penalty's rounding does not fall with strength
            return high, pure_share
        low, high = high, 2 * high
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if deviation(middle, shares) <= _WIDEST_MASK else (middle, high)
    return high, pure_share


def _objective(budget: TrainingBudget, loss: Loss | JointLoss, strength: float, *, automatic: bool) -> TrainingPlan:
    strength, pure_share = max(strength, _least_strength(budget, loss)), _PURE_SHARE
    if automatic:
        strength, pure_share = _quiet_strength(budget, loss, strength)
    shares = _shares(budget, loss, strength, pure_share)
    scale = _scale(budget, loss, shares.tilt)
    tolerance, residual, reach = _residual(budget, loss, strength, scale)
    mask = _mask(budget, 2 * residual, reach, shares.mask)
    look = look_noise(shares.look, budget.adjacency, pure=not budget.delta) if shares.look else None
    looks = () if look is None else (look,)
    return TrainingPlan(
        "objective",
        budget,
        strength,
        tolerance,
        _tilt(budget, scale),
        mask,
        (*(one.event() for one in looks), *_events(budget, loss, strength, scale, mask)),
        (
            "joint_objective" if isinstance(loss, JointLoss) else "objective_perturbation",
            *(one.proof for one in (*looks, mask)),
        ),
        budget.noise_length(scale) / (budget.size * strength),
        loss,
        look=look,
    )


def _events(
    budget: TrainingBudget, loss: Loss | JointLoss, strength: float, scale: float, mask: Gaussian | NormGamma
) -> tuple[Event | Repeated, ...]:
    """What is recorded; the mask of a joint training with Gaussian noise is part of its event."""
    size, masks = budget.size * strength, _mask_events(mask, budget.models)
    if not isinstance(loss, JointLoss):
        event = ObjectivePerturbationEvent(
            budget.law, budget.slope, loss.largest_curvature, size, scale, adjacency=budget.adjacency
        )
        return (_times(event, budget.models), *masks)
    facts = (budget.law, loss.classes, budget.slope, loss.score_curvature, size, scale)
    if isinstance(mask, NormGamma):
        return (JointObjectiveEvent(*facts, adjacency=budget.adjacency), *masks)
    promise = (mask.event().guarantee().mu, budget.epsilon, budget.delta)  # type: ignore[attr-defined]
    return (JointObjectiveEvent(*facts, *promise, adjacency=budget.adjacency),)


def _output(budget: TrainingBudget, loss: Loss | JointLoss, strength: float) -> TrainingPlan:
    budget = replace(budget, nonzeros=None)  # the solution moves in any direction
    tolerance = attainable_tolerance(loss, budget.width, strength, 0.0, budget.most_rows, budget.penalty)
    sensitivity = budget.moved / (budget.size * strength) + 2 * tolerance / strength
    cost = gaussian_mu(budget.epsilon, budget.delta) if budget.delta else budget.epsilon / budget.models * (1 - 1e-12)
    mask = _mask(budget, sensitivity, farthest_solution(loss, strength, 0.0, budget.most_rows), cost)
    return TrainingPlan(
        "output",
        budget,
        strength,
        tolerance,
        None,
        mask,
        _mask_events(mask, budget.models),
        ("output_perturbation", mask.proof),
        budget.noise_length(mask.scale),
        loss,
    )


def _largest_mu(epsilon: float, delta: float, shift: float, models: int) -> float:
    """The largest μ for which `models` runs with this shift are (ε, δ)-DP together."""
    rest = epsilon - models * shift
    if models == 1:
        return gaussian_mu(rest, delta)
    # max(0, L) costs more than L alone, so μ/√models is a little too much: come down to where the profile holds.
    high = gaussian_mu(rest, delta) / math.sqrt(models)
    low = high / 2
    while ObjectiveDP(low, shift, models).delta(epsilon) > delta:
        low, high = low / 2, low
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (middle, high) if ObjectiveDP(middle, shift, models).delta(epsilon) <= delta else (low, middle)
    return low


def _mask(budget: TrainingBudget, sensitivity: float, reach: float, cost: float) -> Gaussian | NormGamma:
    """Noise for solutions that neighbours move by at most `sensitivity` each: μ = `cost` for all, or ε = `cost` each.

    Solutions up to `reach` must fit the 62 bits of the noise's grid, so neither sensitivity nor scale is negligible.
    """
    sensitivity = max(sensitivity, reach * 2.0**-34)
    if budget.delta:
        joint = sensitivity * math.sqrt(budget.models) * (1 + 1e-14)
        dimension = budget.models * budget.coefficients
        noise = Gaussian.for_guarantee(GaussianDP(cost), joint, budget.adjacency, dimension=dimension)
        return replace(noise, scale=max(noise.scale * (1 + 1e-12), reach * 2.0**-30))
    noise = NormGamma.for_guarantee(PureDP(cost), sensitivity, budget.adjacency, dimension=budget.coefficients)
    return replace(noise, scale=max(noise.scale, reach * 2.0**-30))


def _mask_events(mask: Gaussian | NormGamma, models: int) -> tuple[Event | Repeated, ...]:
    return (mask.event(),) if isinstance(mask, Gaussian) else (_times(mask.event(), models),)


def _times(event: Event, count: int) -> Event | Repeated:
    return event if count == 1 else Repeated(event, count)
