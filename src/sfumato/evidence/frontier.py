"""Loss against ε: what a publication would cost in accuracy under a stricter or a looser promise.

In:   a Plan, one of its publications.
Out:  Frontier: (ε, expected squared error) pairs with the settled point marked. No data.
Not here: deciding (plan/), drawing the curve (evidence/report_plots.py).

For fixed shares of the budget the variance of every draw is proportional to 1/μ² (Gaussian) or 1/ε² (Laplace). For
sums, counts and histograms the error is that variance; a mean's error stops at the width of its range. What is computed
from one individual's noisy values is simulated over the public ranges, as the planner does it, because it stops growing
where the noise fills the range; without the network there is no such curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sfumato.core import Guarantee, Pufferfish
from sfumato.errors import SfumatoError
from sfumato.evidence.drawn import Drawn, deviation_of, drawn_for
from sfumato.network.network import Network
from sfumato.plan.draw_law import LAWS, draw_law
from sfumato.plan.plan import Plan, Planned, Promise
from sfumato.plan.request import template_of

__all__ = ["Frontier", "frontier_of", "promise_of"]

_FACTORS = tuple(2.0 ** (step / 2) for step in range(-6, 7))


@dataclass(frozen=True)
class Frontier:
    """`points` are (ε, expected squared error) in ascending order of ε; `chosen` is the settled one.

    For tables, models and channels the planner's own predictions are taken, in the relative unit of its losses.
    """

    points: tuple[tuple[float, float], ...]
    chosen: tuple[float, float]
    delta: float
    noise: str  # empty where each point is a prediction of its own
    unit: str = "squared error"


def promise_of(plan: Plan, planned: Planned) -> Promise | None:
    """The promise to this publication's observer under its requirement."""
    alone = [promise for promise in plan.promises if promise.observers == (planned.observer,)]
    named = [promise for promise in alone if promise.requirement == planned.requirement]
    return next(iter(named or alone), None)


def frontier_of(plan: Plan, planned: Planned, network: Network | None = None) -> Frontier | None:
    """The curve of one publication; None where nothing is drawn for it, or its errors follow no such law."""
    promise = promise_of(plan, planned)
    needed = {*planned.cut, *(seen.node for seen in planned.seen)}
    acts = [act for act in drawn_for(plan, planned.observer) if act.serves(planned.name, needed)]
    laws = {act.law for act in acts}
    graph = network or plan.network
    if any(act.publication for act in acts):
        return _predicted(plan, planned, promise)
    known = len(laws) == 1 and laws <= LAWS.keys()
    if promise is None or not known or not (math.isfinite(planned.error) and planned.error > 0):
        return None
    law = laws.pop()
    errors: Callable[[float], float] | None = None
    if all(act.group is None or act.deviation is None for act in acts):
        errors = partial(_scaled_error, planned, plan)
    elif graph is not None and all(act.group is not None and act.deviation for act in acts):
        errors = partial(_simulated_error, planned, graph, acts, law)
    try:
        found = _curve(errors, promise.asked, law, planned.error) if errors else None
    except SfumatoError:
        return None
    return found if found is not None and _has_logarithms(found) else None


def _has_logarithms(frontier: Frontier) -> bool:
    """Whether it can be drawn: a promise so strict that its ε is 0 at the usual δ has no place on the axis."""
    numbers = [number for point in (frontier.chosen, *frontier.points) for number in point]
    return len(frontier.points) > 1 and all(0 < number < math.inf for number in numbers)


def _predicted(plan: Plan, planned: Planned, promise: Promise | None) -> Frontier | None:
    """A table, model or channel: the planner's own predictions, if there are at least two."""
    key = (planned.name, planned.observer)
    settled = next((curve for curve in plan.frontier if (curve.publication, curve.observer) == key), None)
    if settled is None or len(settled.points) < 2 or not all(loss > 0 for _, loss in settled.points):
        return None
    delta = promise.asked.stated[1] if promise else 0.0
    return Frontier(settled.points, settled.points[settled.chosen], delta, "", "predicted loss")


def _scaled_error(planned: Planned, plan: Plan, factor: float) -> float:
    """With noise `factor` times as wide."""
    caps = {name: question.ceiling for name, question in plan.questions.items()}
    return math.fsum(min(seen.error * factor**2, caps.get(seen.node, math.inf)) for seen in planned.seen)


def _simulated_error(planned: Planned, network: Network, acts: list[Drawn], law: str, factor: float) -> float:
    """With noise `factor` times as wide: the planner's own simulation, group by group."""
    names = list(dict.fromkeys(seen.node for seen in planned.seen))
    unit = draw_law(law).variance ** -0.5  # from a standard deviation to the law's scale
    total = 0.0
    for group in sorted({act.group for act in acts if act.group is not None}):
        template = template_of(network, network.groups[group], names, planned.observer)
        if template is None:
            continue
        own = [act for act in acts if act.group == group]
        scales = {}
        for node in {node for act in own for node in act.nodes} & set(template.order):
            deviation = deviation_of(act for act in own if node in act.nodes)
            scales[node] = factor * unit * (deviation or 0.0)
        shown = [name for name in names if name in template.order]
        total += math.fsum(template.predicted_errors(scales, shown, draw_law(law).name).values())
    return total


def _curve(errors: Callable[[float], float], asked: Guarantee, law: str, error: float) -> Frontier:
    chosen, delta = asked.stated
    widths = {chosen * factor: _width(asked, law, (chosen, delta), factor) for factor in _FACTORS}
    points = tuple((epsilon, errors(width)) for epsilon, width in widths.items())
    return Frontier(points, (chosen, error), delta, law)


def _width(asked: Guarantee, law: str, point: tuple[float, float], factor: float) -> float:
    """How many times as wide noise is where ε is multiplied by a factor."""
    own = draw_law(law)
    if not isinstance(asked, Pufferfish):
        return 1 / own.ratio(*point, factor)
    return own.scale(1.0, own.whole(asked.at(point[0] * factor))) / own.scale(1.0, own.whole(asked))
