"""Loss against ε: what a publication would cost in accuracy under a stricter or a looser promise.

In:   a Plan, one of its publications.
Out:  Frontier: (ε, expected squared error) pairs with the settled point marked. No data.
Not here: deciding (plan/), drawing the curve (evidence/report_plots.py).

For fixed shares of the budget the variance of every draw is proportional to 1/μ² (Gaussian) or 1/ε² (Laplace), so the
whole curve follows from the settled point: exactly for sums, counts and histograms, to first order for means with a
noisy count and for what is computed from noisy values, whose error stops growing at the width of their range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.core import ApproxDP, GaussianDP, Guarantee, PureDP
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import SfumatoError
from sfumato.evidence.acts import acts_of
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.gaussian import largest_mu
from sfumato.plan.plan import Plan, Planned, Promise

__all__ = ["USUAL_DELTA", "Frontier", "frontier_of", "promise_of", "stated_point"]

#: δ at which an ε is named for promises that have none of their own, such as μ or ρ.
USUAL_DELTA = 1e-6
_LAWS = {"gaussian", "laplace"}
_FACTORS = tuple(2.0 ** (step / 2) for step in range(-6, 7))


@dataclass(frozen=True)
class Frontier:
    """`points` are (ε, expected squared error) in ascending order of ε; `chosen` is the settled one."""

    points: tuple[tuple[float, float], ...]
    chosen: tuple[float, float]
    delta: float
    noise: str


def promise_of(plan: Plan, planned: Planned) -> Promise | None:
    """The promise to this publication's observer under its requirement."""
    alone = [promise for promise in plan.promises if promise.observers == (planned.observer,)]
    named = [promise for promise in alone if promise.requirement == planned.requirement]
    return next(iter(named or alone), None)


def stated_point(guarantee: Guarantee) -> tuple[float, float]:
    """(ε, δ) as it was promised, or at a usual δ where the promise is a curve.

    >>> stated_point(ApproxDP(0.5, 1e-5)), stated_point(PureDP(1.0))
    ((0.5, 1e-05), (1.0, 0.0))
    """
    delta = USUAL_DELTA
    if isinstance(guarantee, PureDP | ApproxDP):
        delta = guarantee.delta_ if isinstance(guarantee, ApproxDP) else 0.0
    return guarantee.epsilon(delta), delta


def frontier_of(plan: Plan, planned: Planned) -> Frontier | None:
    """The curve of one publication; None where nothing is drawn for it or its noise has no such law."""
    promise = promise_of(plan, planned)
    kinds = {act.law for act in acts_of(plan, planned.observer) if _nodes(planned) & set(act.nodes)}
    if (
        promise is None
        or len(kinds) != 1
        or not kinds <= _LAWS
        or not (math.isfinite(planned.error) and planned.error > 0)
    ):
        return None
    noise = kinds.pop()
    try:
        return _scaled(planned.error, promise.asked, noise)
    except SfumatoError:
        return None


def _nodes(planned: Planned) -> set[str]:
    return {*planned.cut, *(seen.node for seen in planned.seen)}


def _scaled(error: float, asked: Guarantee, noise: str) -> Frontier:
    if noise == "gaussian":
        whole = largest_mu(asked)
        delta = asked.delta_ if isinstance(asked, ApproxDP) else USUAL_DELTA
        chosen = asked.eps if isinstance(asked, ApproxDP) else GaussianDP(whole).epsilon(delta)
        pairs = [(chosen * factor, gaussian_mu(chosen * factor, delta) / whole) for factor in _FACTORS]
    else:
        whole = largest_pure_epsilon(asked)
        chosen, delta = stated_point(asked)
        budgets = {factor: _pure(chosen * factor, delta) for factor in _FACTORS}
        pairs = [(chosen * factor, budget / whole) for factor, budget in budgets.items()]
    points = tuple((epsilon, error / ratio**2) for epsilon, ratio in pairs if ratio > 0)
    return Frontier(points, (chosen, error), delta, noise)


def _pure(epsilon: float, delta: float) -> float:
    return largest_pure_epsilon(ApproxDP(epsilon, delta)) if delta > 0 else epsilon
