"""A plan derived again with all that carries its acts out: what plan/derive.py finds, and that every act can be made.

In:   a Plan, the Network of its study.
Out:  Findings, before anything is read or reserved.
Not here: promises, sensitivities, who shares noise (plan/derive.py); what was drawn in the end (run/publish.py).

A plan whose acts nobody can make as it says would be paid for first and fail afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.network.network import Network
from sfumato.plan.act import Act
from sfumato.plan.derive import Finding, derive, is_alike
from sfumato.plan.plan import Plan
from sfumato.plan.shared_act import act_sharing, shared_event
from sfumato.plan.strategy import Strategy

__all__ = ["derive_plan"]


def derive_plan(plan: Plan, network: Network) -> Iterator[Finding]:
    """What `derive` finds; where all of it is so, whether a known strategy draws for every act what the plan says."""
    fine = True
    for finding in derive(plan, network):
        fine = fine and finding.ok
        yield finding
    if fine:  # else an act may name no known kind, or hold any words at all
        yield from map(_made, plan.acts)


def _made(act: Act) -> Finding:
    field = f"{act.readers}: draws of {act.name}"
    strategy = _strategy(act)
    if strategy is None:
        return Finding(field, False, "Nobody makes it in the way that the plan names.")
    stated = [event.to_dict() for event in act.events]
    if not is_alike(stated, _drawn(strategy, act)):
        return Finding(field, False, "What the plan says is drawn is not what would be.")
    return Finding(field, True, "What the plan says is drawn is what will be.")


def _strategy(act: Act) -> Strategy | None:
    """Who makes the act; nobody where it is shared by centres and not made from sums."""
    from sfumato.run.publish import strategies_of  # estimators, for whoever has acts

    shared = act_sharing(act) is not None
    known = (one for one in strategies_of(act.kind) if one.summed or not shared)
    return next((one for one in known if one.name == act.strategy), None)


def _drawn(strategy: Strategy, act: Act) -> list[dict[str, Any]] | None:
    """The events that follow from the act's parameters and guarantee; None where these say nothing sensible."""
    sharing = act_sharing(act)
    try:
        events = strategy.events_of(act)
        return [(event if sharing is None else shared_event(event, sharing)).to_dict() for event in events]
    except (SfumatoError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        return None  # a plan may hold any words: whatever they do, they are not a strategy's own
