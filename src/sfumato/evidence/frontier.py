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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from sfumato.core import Guarantee, Pufferfish
from sfumato.errors import SfumatoError
from sfumato.evidence.drawn import Drawn, deviation_of, drawn_for
from sfumato.network.network import Group, Network
from sfumato.plan.draw_law import LAWS, draw_law
from sfumato.plan.plan import Plan, Planned, Promise
from sfumato.plan.request import template_of
from sfumato.plan.template import Template

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
    acts = _acts_behind(plan, planned)
    if any(act.publication for act in acts):
        return _predicted(plan, planned, promise)
    law = _common_law(acts)
    if promise is None or law is None or not 0 < planned.error < math.inf:
        return None
    errors = _errors_of(plan, planned, network or plan.network, acts, law)
    if errors is None:
        return None
    try:
        found = _curve(errors, promise.asked, law, planned.error)
    except SfumatoError:
        return None
    return found if _has_logarithms(found) else None


def _acts_behind(plan: Plan, planned: Planned) -> list[Drawn]:
    needed = {*planned.cut, *(seen.node for seen in planned.seen)}
    return [act for act in drawn_for(plan, planned.observer) if act.serves(planned.name, needed)]


def _common_law(acts: Iterable[Drawn]) -> str | None:
    """The one law of added noise behind a publication; None where there are several, or another act."""
    laws = {act.law for act in acts}
    return laws.pop() if len(laws) == 1 and laws <= LAWS.keys() else None


def _errors_of(
    plan: Plan, planned: Planned, network: Network | None, acts: list[Drawn], law: str
) -> Callable[[float], float] | None:
    """The error by how many times as wide the noise is; None where neither scaling nor a simulation tells it."""
    if all(act.group is None or act.deviation is None for act in acts):
        return partial(_scaled_error, planned, plan)
    if network is not None and all(act.group is not None and act.deviation for act in acts):
        return partial(_simulated_error, planned, network, acts, law)
    return None


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
    total = 0.0
    for group in sorted({act.group for act in acts if act.group is not None}):
        own = [act for act in acts if act.group == group]
        total += _group_error(planned, network, network.groups[group], own, law, factor)
    return total


def _group_error(planned: Planned, network: Network, group: Group, acts: list[Drawn], law: str, factor: float) -> float:
    names = list(dict.fromkeys(seen.node for seen in planned.seen))
    template = template_of(network, group, names, planned.observer)
    if template is None:
        return 0.0
    unit = draw_law(law).variance ** -0.5  # from a standard deviation to the law's scale
    scales = {node: factor * unit * deviation for node, deviation in _deviations(acts, template).items()}
    shown = [name for name in names if name in template.order]
    return math.fsum(template.predicted_errors(scales, shown, draw_law(law).name).values())


def _deviations(acts: Sequence[Drawn], template: Template) -> dict[str, float]:
    """Of every node of a template that has noise the standard deviation of all of it."""
    noisy = {node for act in acts for node in act.nodes} & set(template.order)
    return {node: deviation_of(act for act in acts if node in act.nodes) or 0.0 for node in noisy}


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
