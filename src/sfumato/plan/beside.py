"""What stands beside the promises of a plan: what is learned exactly, over how many steps and parts they are shared.

In:   a Plan.
Out:  Beside, plain values; the sentences are in templates/words.txt.
Not here: the promises themselves (evidence/facts.py), what else a plan says (plan/beforehand.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from sfumato.lang.spec import EVERYONE
from sfumato.plan.plan import Plan
from sfumato.plan.whole import whole_cost
from sfumato.wording import text

__all__ = ["Beside", "History", "LearnedExactly", "OwnerShare", "PartOf", "beside_of", "shared_sentences"]


@dataclass(frozen=True)
class LearnedExactly:
    """Who learns what without noise, by observe and reveal lines."""

    observer: str
    variables: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """Of a step of a history: over how many steps a promise is shared out, and what all of them together keep."""

    kind: ClassVar[str] = "history"
    step: int
    requirement: str
    shares: int
    whole: str


@dataclass(frozen=True)
class PartOf:
    """Where datasets divide the same people: what a promise is about, and what everything costs a whole person."""

    kind: ClassVar[str] = "part"
    name: str
    what: str
    by_people: bool
    asked: str
    who: str
    cost: str


@dataclass(frozen=True)
class OwnerShare:
    """Of things with owners: how many things of one owner may change at once."""

    kind: ClassVar[str] = "owner"
    observer: str
    owners: str
    unit: str
    most: int
    things: str
    asked: str


@dataclass(frozen=True)
class Beside:
    """All of it."""

    exact: tuple[LearnedExactly, ...]
    shared: tuple[History | PartOf | OwnerShare, ...]
    instances: tuple[str, ...]  # values that the study names as protected
    personal: tuple[str, ...]  # what individuals know of themselves

    def learned_by(self, observers: Collection[str]) -> tuple[LearnedExactly, ...]:
        """What concerns these observers; a promise towards everybody concerns every observer."""
        return tuple(one for one in self.exact if one.observer in observers or EVERYONE in observers)

    @property
    def knowing(self) -> tuple[str, ...]:
        """Who learns something exactly."""
        return tuple(sorted(one.observer for one in self.exact))


def beside_of(plan: Plan) -> Beside:
    """What stands beside the promises of this plan."""
    learned: dict[str, list[str]] = {}
    for observer, variable in plan.extras.get("exact", ()):
        learned.setdefault(observer, []).append(variable)
    return Beside(
        tuple(LearnedExactly(observer, tuple(variables)) for observer, variables in learned.items()),
        (*_history(plan), *_parts(plan), *(OwnerShare(*one) for one in plan.extras.get("owners", ()))),
        tuple(plan.extras.get("instances", ())),
        tuple(plan.extras.get("personal", ())),
    )


def shared_sentences(plan: Plan) -> tuple[str, ...]:
    """Over which steps, parts and owners the promises hold, in sentences; the template engine sleeps if there are none.

    >>> from types import SimpleNamespace
    >>> shared_sentences(SimpleNamespace(extras={}, publications=(), promises=()))
    ()
    """
    shared = beside_of(plan).shared
    return tuple(text("shared.txt", shared=shared).splitlines()) if shared else ()


def _history(plan: Plan) -> tuple[History, ...]:
    used = {planned.requirement for planned in plan.publications}
    return tuple(
        History(plan.extras["step"], name, shares, whole)
        for name, (shares, whole) in plan.extras.get("shares", {}).items()
        if name in used
    )


def _parts(plan: Plan) -> tuple[PartOf, ...]:
    found = []
    for name, (whole, what, by_people) in plan.extras.get("parts", {}).items():
        for promise in plan.promises:
            if all(one.endswith(f" ({name})") for one in promise.observers):
                who = " and ".join(one.removesuffix(f" ({name})") for one in promise.observers)
                cost = "" if by_people else whole_cost(plan, whole)
                found.append(PartOf(name, what, by_people, str(promise.asked), who, cost))
    return tuple(dict.fromkeys(found))
