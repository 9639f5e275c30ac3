"""The thesis' own allocation (4.54), for comparison only: what it claims beside what is proved. It certifies nothing.

In:   a template, the observed nodes, a wanted (ε, δ).
Out:  the noise that the printed constraint asks for, its claim, and the δ that the cut rule can prove for that noise.
Not here: anything that is published (plan/individual.py decides that).
Reference: Basu 2024, eq. (4.9), (4.54), (4.55); errors in it: variances are squared where they should not be, slopes
are taken at one point, covariances are dropped, noise of observed nodes is credited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.core import ApproxDP, NoGuarantee
from sfumato.core.gaussian import gaussian_delta, gaussian_mu
from sfumato.errors import PlanError
from sfumato.plan.cuts import enumerate_cuts
from sfumato.plan.template import Numbers, Template

__all__ = ["PublishedAllocation", "published_allocation"]


@dataclass(frozen=True)
class PublishedAllocation:
    """Noise of one `scale` on every private, intermediate and observed node, as (4.55) asks for it."""

    scale: float
    claimed: ApproxDP
    proved_delta: float
    guarantee: NoGuarantee

    def __str__(self) -> str:
        return (
            f"noise of scale {self.scale:.4g} everywhere: (4.55) claims δ = {self.claimed.delta_:.3g} at "
            f"ε = {self.claimed.eps:g}; the cut rule proves δ ≤ {self.proved_delta:.3g}"
        )


def published_allocation(
    template: Template,
    observed: tuple[str, ...],
    wanted: ApproxDP,
    here: Mapping[str, float] | None = None,
    there: Mapping[str, float] | None = None,
) -> PublishedAllocation:
    """The least equal noise that satisfies (4.55) between the inputs `here` and `there`, as printed.

    Left out, the inputs are the two ends of every private range. The printed sum runs over intermediate and observed
    nodes; each term is (f(x') - f(x))² over the SQUARE of the node's linearised variance.
    """
    low = {name: template.bounds[name].low for name in template.inputs}
    high = {name: template.bounds[name].high if name in template.private else low[name] for name in low}
    first, second = _values(template, {**low, **(here or {})}), _values(template, {**high, **(there or {})})
    squares = {name: (second[name] - first[name]) ** 2 for name in template.touched if name in template.formulas}
    slopes = _slopes_at(template, first)
    bound = gaussian_mu(wanted.eps, wanted.delta_) ** 2

    def printed_sum(variance: float) -> float:
        total: dict[str, float] = {}
        for name in template.order:
            inherited = math.fsum(slopes[name].get(parent, 0.0) ** 2 * total[parent] for parent in slopes[name])
            total[name] = inherited + (variance if name in template.touched else 0.0)
        return math.fsum(square / total[name] ** 2 for name, square in squares.items())

    smallest, largest = 1e-12, 1.0
    while printed_sum(largest) > bound:
        largest *= 4
        if largest > 1e40:
            raise PlanError("The printed constraint (4.55) has no solution here. Nothing was planned.")
    for _ in range(200):
        middle = math.sqrt(smallest * largest)
        smallest, largest = (middle, largest) if printed_sum(middle) > bound else (smallest, middle)
    scale = math.sqrt(largest)
    mu = math.sqrt(min(_cut_costs(template, observed, scale), default=math.inf))
    proved = gaussian_delta(mu, wanted.eps) if 0 < mu < 1e6 else float(mu > 0)
    reason = "allocation (4.54) linearises and squares variances; it is shown for comparison"
    return PublishedAllocation(scale, wanted, proved, NoGuarantee(reason))


def _cut_costs(template: Template, observed: tuple[str, ...], scale: float) -> list[float]:
    cuts = enumerate_cuts(template.parents, template.private, observed)
    return [math.fsum((template.sensitivity(node, cut).value / scale) ** 2 for node in cut) for cut in cuts]


def _values(template: Template, inputs: Mapping[str, float]) -> dict[str, float]:
    arrays: dict[str, Numbers] = {name: np.array([value]) for name, value in inputs.items()}
    return {name: float(np.ravel(value)[0]) for name, value in template.evaluate(arrays).items()}


def _slopes_at(template: Template, values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Derivatives of every node by its parents at one point, as (4.7) takes them."""
    slopes: dict[str, dict[str, float]] = {}
    for name in template.order:
        slopes[name] = {}
        formula = template.formulas.get(name)
        if formula is None:
            continue
        for parent in template.parents.get(name, ()):
            step = max(template.bounds[parent].width, 1e-9) * 1e-6
            ends = []
            for sign in (1, -1):
                moved = {**values, parent: values[parent] + sign * step}
                ends.append(float(np.ravel(formula.evaluate({key: np.array([v]) for key, v in moved.items()}))[0]))
            slopes[name][parent] = (ends[0] - ends[1]) / (2 * step)
    return slopes
