"""Strategies as data: what a way to publish accepts, what it is predicted to cost, and the act it settles on.

In:   what is wanted, a guarantee to keep, a public number of individuals.
Out:  Prediction; `choose`, which takes the cheapest strategy that prefer and forbid leave.
Not here: concrete strategies: rooms that may import estimators register them (run/publish.py); how a budget is split
over publications (plan/portions.py).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sfumato.core import Guarantee, NoGuarantee
from sfumato.core.events.event import Event, Repeated
from sfumato.errors import PlanError, SfumatoError
from sfumato.lang.vocabulary import CENTRE_WAYS
from sfumato.plan.act import Act
from sfumato.plan.plan import Considered, Seen
from sfumato.plan.wanted import Wanted

#: The end of an error's message; a plan that lists it as a reason says it once.
_NOTHING_HAPPENED = re.compile(r"\s*Nothing was (?:planned|run|drawn|spent)[^.]*\.\s*$")

__all__ = ["Choice", "Prediction", "Strategy", "choose", "refusal"]


@dataclass(frozen=True)
class Prediction:
    """What is known before anything is spent, from public facts alone.

    `loss` is the expected squared error over a squared scale, the unit in which publications are weighed against each
    other; `seen` says the same in each variable's own unit.
    """

    loss: float
    seen: tuple[Seen, ...]
    seconds: float = 0.0
    bytes_sent: float = 0.0
    note: str = ""


class Strategy(ABC):
    """A candidate way to publish one kind of thing. Abstract."""

    name: ClassVar[str]
    kind: ClassVar[str]
    #: What is published, in plain words about {columns} and {target}; empty where a question has its own.
    words: ClassVar[str] = ""
    #: What may go wrong that no public fact tells of: such a strategy is taken where it is preferred, or alone is left.
    risk: ClassVar[str] = ""
    #: Whether every number it draws is a sum over individuals: then several institutions can draw it together.
    summed: ClassVar[bool] = False
    #: Of how many individuals several institutions may draw it: whatever they say has to end, and to fit into memory.
    most_shared: ClassVar[int] = 50_000_000
    #: Whether it is made for several institutions and no match for others where one party has all rows.
    only_shared: ClassVar[bool] = False

    @abstractmethod
    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        """None, or the reason why it cannot be used here."""

    @abstractmethod
    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        """Its error under `guarantee` for `size` individuals, from public facts alone."""

    @abstractmethod
    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        """The act that keeps `guarantee`: the same whenever it is asked again, by whoever runs or verifies a plan."""

    def events_of(self, act: Act) -> tuple[Event | Repeated, ...]:
        """What an act of this strategy draws, by its parameters and its guarantee; nothing where rows decide that.

        Whoever runs or verifies a plan compares what it says with this.
        """
        return ()


@dataclass(frozen=True)
class Choice:
    """The chosen strategy with its prediction, and all that were considered."""

    strategy: Strategy
    prediction: Prediction
    considered: tuple[Considered, ...] = field(default=())
    reason: str = ""


def _predicted(strategy: Strategy, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction | str:
    """What is expected of a strategy, or in words why it cannot be used."""
    reason = refusal(strategy, wanted, guarantee)
    if reason is not None:
        return reason
    try:
        return strategy.predict(wanted, guarantee, size)
    except SfumatoError as error:
        return _NOTHING_HAPPENED.sub("", str(error)).rstrip(". ")


def _tried(
    strategies: Sequence[Strategy], wanted: Wanted, guarantee: Guarantee, size: float
) -> tuple[list[tuple[Strategy, Prediction]], list[Considered]]:
    """What can be used, the best first, and why the rest cannot."""
    refused: list[Considered] = []
    usable: list[tuple[Strategy, Prediction]] = []
    for strategy in strategies:
        predicted = _predicted(strategy, wanted, guarantee, size)
        if isinstance(predicted, str):
            refused.append(Considered(strategy.name, None, predicted))
        else:
            usable.append((strategy, predicted))
    return sorted(usable, key=lambda pair: (bool(pair[0].risk), pair[1].loss)), refused


def choose(wanted: Wanted, strategies: Sequence[Strategy], guarantee: Guarantee, size: float) -> Choice:
    """The strategy of least predicted loss among those that are preferred, or among all if none of these can be used.

    Those with a `risk` come after all others. A strategy without a guarantee is listed and never chosen.
    """
    own = [strategy for strategy in strategies if strategy.kind == wanted.kind]
    if not own:
        raise PlanError(
            f"{wanted.request.position}{wanted.name}: nobody registered a strategy for a {wanted.kind}. Plan with "
            "sfumato.run.planning.make_plan, which knows them. Nothing was spent."
        )
    usable, refused = _tried(own, wanted, guarantee, size)
    wished = [pair for pair in usable if pair[0].name in wanted.request.preferred]
    if not usable:
        raise PlanError(
            f"{wanted.request.position}{wanted.name}: no strategy is left for {wanted.kind}(…). "
            + " ".join(f"{other.strategy}: {other.reason}." for other in refused)
            + " Nothing was planned and nothing was spent."
        )
    chosen, prediction = (wished or usable)[0]
    considered = [_considered(pair, prediction, chosen) for pair in usable]
    return Choice(chosen, prediction, (*considered, *refused), _reason(wanted, wished, usable))


def refusal(strategy: Strategy, wanted: Wanted, guarantee: Guarantee) -> str | None:
    """Why a strategy cannot be used for this; None where it can."""
    if isinstance(guarantee, NoGuarantee):
        return "nothing is promised"
    if strategy.name in wanted.request.forbidden:
        return "forbidden by the study"
    return strategy.accepts(wanted, guarantee)


def _error(prediction: Prediction) -> float:
    return sum(seen.error for seen in prediction.seen)


def _considered(pair: tuple[Strategy, Prediction], best: Prediction, chosen: Strategy) -> Considered:
    strategy, prediction = pair
    if strategy is chosen:
        reason = "chosen"
    elif strategy.risk and prediction.loss <= best.loss:
        reason = f"only if the study prefers it: {strategy.risk}"
    else:
        ratio = prediction.loss / best.loss if best.loss > 0 else float("inf")
        reason = f"{ratio:.3g} times the loss (relative squared error) predicted for the chosen one"
    return Considered(strategy.name, _error(prediction), reason, (), prediction.seconds, prediction.bytes_sent)


def _reason(wanted: Wanted, wished: Sequence[object], usable: Sequence[tuple[Strategy, Prediction]]) -> str:
    preferred = [name for name in wanted.request.preferred if name not in (*CENTRE_WAYS, "central")]
    if wished:
        return "the study prefers it" + (" and it has the least predicted loss of those" if len(wished) > 1 else "")
    best = f"of {len(usable)} usable strateg{'y' if len(usable) == 1 else 'ies'} it has the least predicted loss"
    best += " among those without a risk of their own" if any(strategy.risk for strategy, _ in usable) else ""
    return f"{best}; what the study prefers cannot be used here" if preferred else best
