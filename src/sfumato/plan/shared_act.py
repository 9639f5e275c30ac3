"""Acts over several institutions: any strategy whose numbers are sums over individuals, its noise drawn by all of them.

In:   a strategy for one place, how the institutions share the noise.
Out:  SharedStrategy: the same strategy as the planner knows it; the noise of an act as the institutions draw it.
Not here: the ways themselves (plan/sharing.py), carrying an act out (run/course.py).
Proof: docs/proofs/centre_acts.md
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import final

from sfumato.core import ApproxDP, Guarantee
from sfumato.core.events.centre import SharedEvent, SharedGaussianEvent
from sfumato.core.events.event import Event, GaussianEvent, Repeated
from sfumato.errors import PlanError
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.plan.act import Act
from sfumato.plan.draw import Draw
from sfumato.plan.draw_law import draw_law
from sfumato.plan.over_centres import needs_one_party
from sfumato.plan.plan import Plan
from sfumato.plan.request import Request
from sfumato.plan.sharing import Masks, NoiseAtEveryone, Sharing, sharing_from_dict
from sfumato.plan.strategy import Prediction, Strategy
from sfumato.plan.wanted import Wanted

__all__ = [
    "SharedStrategy",
    "act_sharing",
    "is_shared_as_stated",
    "shared_event",
    "sharing_of",
    "strategies_for",
    "together",
]

#: The event of shares charges 1e-12 of μ for their rounding, and rounds up itself.
_ROOM = 1 + 4e-12


def act_sharing(act: Act) -> Sharing | None:
    """How the noise of an act is shared; None where one party draws all of it."""
    return sharing_from_dict(act.parameters.get("sharing"))


def sharing_of(plan: Plan) -> Sharing | None:
    """How the plan's noise is shared; None where one party draws all of it."""
    drawn = (draw.sharing for draw in plan.draws if isinstance(draw, Draw))
    return next((one for one in (*drawn, *map(act_sharing, plan.acts)) if one is not None), None)


def together(noise: Additive, sharing: Sharing) -> Additive:
    """The same noise as the institutions draw it. Only Gaussian noise is drawn so for acts."""
    if not isinstance(noise, Gaussian):
        raise PlanError("Only Gaussian noise is shared among centres here. Nothing was planned and nothing was spent.")
    assert noise.adjacency is not None
    scale = noise.scale * (_ROOM if isinstance(sharing, Masks) else 1.0)
    facts = scale, noise.sensitivity, noise.adjacency, noise.dimension or 1, None
    return sharing.mechanism(draw_law("gaussian"), *facts)


def shared_event(event: Event | Repeated, sharing: Sharing) -> Event:
    """What is recorded where the institutions draw together what one party would have recorded so."""
    assert isinstance(event, GaussianEvent)
    noise = Gaussian(event.scale, event.sensitivity, event.adjacency, event.dimension)
    return together(noise, sharing).event()


def is_shared_as_stated(act: Act) -> bool:
    """Whether every event of an act is of noise that exactly those draw whom its sharing names.

    A certificate takes from its events how many may collude: they say no more than the shares that are drawn bear.
    """
    sharing = act_sharing(act)
    if sharing is None:
        return not any(isinstance(_once(event), SharedEvent) for event in act.events)
    return not isinstance(sharing, NoiseAtEveryone) and all(_is_drawn_so(event, sharing) for event in act.events)


def _once(event: Event | Repeated) -> Event:
    return event.event if isinstance(event, Repeated) else event


def _is_drawn_so(event: Event | Repeated, sharing: Sharing) -> bool:
    if not isinstance(event, GaussianEvent | SharedGaussianEvent):
        return False
    facts = event.scale, event.sensitivity, event.adjacency, event.dimension, None
    drawn = sharing.mechanism(draw_law("gaussian"), *facts)
    return drawn.event() == event


def strategies_for(
    strategies: Sequence[Strategy], sharing: Sharing | None, acting: Sequence[Request], kinds: Sequence[str]
) -> Sequence[Strategy]:
    """The strategies of one way to go over the centres; PlanError where a kind of act has none."""
    if sharing is None:
        return [one for one in strategies if not one.only_shared]
    if isinstance(sharing, NoiseAtEveryone):
        raise PlanError(
            "noise at each individual is drawn for numbers, not for tables and models. Take each_centre or masks. "
            "Nothing was planned and nothing was spent."
        )
    for request, kind in zip(acting, kinds, strict=True):
        if not any(one.summed for one in strategies if one.kind == kind):
            raise needs_one_party(request)
    return [SharedStrategy(one, sharing) for one in strategies]


@final
class SharedStrategy(Strategy):
    """A strategy of one place, carried out by several institutions of which each sees its own rows alone."""

    def __init__(self, strategy: Strategy, sharing: Sharing) -> None:
        self.name, self.kind, self.risk = strategy.name, strategy.kind, strategy.risk  # type: ignore[misc]
        self._strategy, self._sharing = strategy, sharing

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        if not self._strategy.summed:
            return "it is not made from sums, and no party sees the rows of all centres"
        if not isinstance(guarantee, ApproxDP) or not guarantee.delta_ > 0:
            return "its noise is Gaussian over centres, which needs a δ, and none is promised"
        if wanted.fairness is not None:
            return "a fair rule is drawn where all rows are"
        return self._strategy.accepts(wanted, guarantee)

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        # Losses are functions of variance/size²: more noise is like fewer people.
        return self._strategy.predict(wanted, guarantee, max(1.0, size / math.sqrt(self._sharing.times)))

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        act = self._strategy.settle(wanted, guarantee, size)
        shared = dataclasses.replace(act, parameters={**act.parameters, "sharing": self._sharing.to_dict()})
        return dataclasses.replace(shared, events=self.events_of(shared))

    def events_of(self, act: Act) -> tuple[Event, ...]:
        return tuple(shared_event(event, self._sharing) for event in self._strategy.events_of(act))
