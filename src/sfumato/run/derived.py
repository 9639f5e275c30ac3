"""A plan derived again with all that carries its acts out: what plan/derive.py finds, and that every act can be made.

In:   a Plan, the Network of its study.
Out:  Findings, before anything is read or reserved.
Not here: promises, sensitivities, who shares noise (plan/derive.py); what was drawn in the end (run/publish.py).

A plan whose acts nobody can make as it says would be paid for first and fail afterwards. So every act is settled again
by its own strategy, within the guarantee it was given and for the plan's own size: what it says then is what the plan
has to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.network.network import Network
from sfumato.plan.act import Act
from sfumato.plan.derive import Finding, derive, is_alike
from sfumato.plan.plan import Plan
from sfumato.plan.shared_act import act_sharing, strategies_for
from sfumato.plan.strategy import Strategy, refusal
from sfumato.plan.wanted import asked_for, wanted_of

__all__ = ["derive_plan"]

#: A plan may hold any words: whatever they do to who reads them, they are not a strategy's own.
_NO_SENSE = (SfumatoError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def derive_plan(plan: Plan, network: Network) -> Iterator[Finding]:
    """What `derive` finds; where all of it is so, whether a known strategy makes of every act what the plan says."""
    fine = True
    for finding in derive(plan, network):
        fine = fine and finding.ok
        yield finding
    if fine:  # else an act may name no known kind, or hold any words at all
        yield from (_made(act, plan, network) for act in plan.acts)


def _made(act: Act, plan: Plan, network: Network) -> Finding:
    field = f"{act.readers}: draws of {act.name}"
    strategy = _strategy(act)
    if strategy is None:
        return Finding(field, False, "Nobody makes it in the way that the plan names.")
    if not _is_settled_so(act, strategy, plan, network):
        return Finding(field, False, "It would not be made by the numbers that the plan states.")
    stated = [event.to_dict() for event in act.events]
    if not is_alike(stated, _drawn(strategy, act)):
        return Finding(field, False, "What the plan says is drawn is not what would be.")
    return Finding(field, True, "What the plan says is drawn is what will be.")


def _strategy(act: Act) -> Strategy | None:
    """Who makes the act, alone or over the centres that share its noise."""
    from sfumato.run.publish import strategies_of  # estimators, for whoever has acts

    known = strategies_for(strategies_of(act.kind), act_sharing(act), (), ())
    return next((one for one in known if one.name == act.strategy), None)


def _is_settled_so(act: Act, strategy: Strategy, plan: Plan, network: Network) -> bool:
    """Whether the strategy accepts what is asked for, and would say of it what the act does."""
    try:
        wanted = wanted_of(asked_for(act, network)[0], network)
        if refusal(strategy, wanted, act.guarantee) is not None:
            return False
        settled = strategy.settle(wanted, act.guarantee, plan.extras["sizes"][act.dataset]).parameters
    except _NO_SENSE:
        return False
    return is_alike(settled, act.parameters)


def _drawn(strategy: Strategy, act: Act) -> list[dict[str, Any]] | None:
    """The events that follow from the act's parameters and guarantee; None where these say nothing sensible."""
    try:
        return [event.to_dict() for event in strategy.events_of(act)]
    except _NO_SENSE:
        return None
