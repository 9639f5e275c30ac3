"""prefer and forbid where statistics are planned: forbid binds, prefer is followed where it can be, and both are said.

In:   the requests of one observer.
Out:  the strategies that are left, those that are wished, a PlanError where forbid leaves no way.
Not here: tables, models and channels (plan/strategy.py), kinds of noise (plan/make.py), unknown names (lang/wishes.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.errors import PlanError
from sfumato.plan.individual_part import CORRELATED
from sfumato.plan.request import Request

__all__ = ["allowed_of", "check_central", "check_random_answer", "said_of_wishes", "wished_of"]

_STRATEGY_NAMES = {
    "input": "input noise",
    "output": "output noise",
    "cut": "noise on the way",
    "correlated": CORRELATED,
}


def preferred_by(requests: Sequence[Request]) -> list[str]:
    """All that is preferred, as often as it is."""
    return [name for request in requests for name in request.preferred]


def forbidden_by(requests: Sequence[Request]) -> set[str]:
    """All that is forbidden."""
    return {name for request in requests for name in request.forbidden}


def wished_of(requests: Sequence[Request]) -> frozenset[str]:
    """The strategies for one value per individual that prefer names."""
    named = {_STRATEGY_NAMES.get(name, "") for name in preferred_by(requests)}
    return frozenset(named & set(_STRATEGY_NAMES.values()))


def allowed_of(requests: Sequence[Request]) -> frozenset[str]:
    """The strategies for one value per individual that forbid leaves."""
    banned = {_STRATEGY_NAMES.get(name, name) for name in forbidden_by(requests)}
    left = frozenset(_STRATEGY_NAMES.values()) - banned
    if not left:
        first = requests[0]
        raise PlanError(
            f"{first.position}{first.name}: every way to publish it is forbidden ({', '.join(sorted(banned))}). Take "
            f"one forbid(…) back; there are {', '.join(_STRATEGY_NAMES)}. Nothing was planned and nothing was spent."
        )
    return left


def said_of_wishes(requests: Sequence[Request], taken: set[str]) -> str:
    """The end of a reason: whether what the study prefers was taken."""
    wished = wished_of(requests)
    if not wished:
        return ""
    return f"; the study prefers {' or '.join(sorted(wished))}" + (
        "" if taken <= wished else ", which cannot be used here"
    )


def check_central(request: Request) -> None:
    """A number about many individuals has one way: noise on the sum."""
    if "central" in request.forbidden:
        raise PlanError(
            f"{request.position}{request.name}: forbid({request.name}, central) leaves no way. A number about many "
            "individuals is published with noise on its sum; noise on every individual's own value is what publishing "
            "the variable itself gives (publish(Name, rv(P), Requirement)), to be summed by whoever reads it. Take the "
            "forbid(…) back, or publish the variable. Nothing was planned and nothing was spent."
        )


def check_random_answer(request: Request, node: str) -> None:
    """A random answer has one way."""
    if request.preferred or request.forbidden:
        raise PlanError(
            f"{request.position}{request.name} shows random answers of {node}, and there is one way to draw them. Take "
            "its prefer(…) and forbid(…) out. Nothing was planned and nothing was spent."
        )
