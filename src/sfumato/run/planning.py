"""make_plan with every strategy there is: statistics, tables, models, channels.

In:   a study in any form, public tables, public numbers.
Out:  Plan.
Not here: planning itself (plan/make.py), the strategies (run/publish.py), designs for centres (run/publish_centres.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from sfumato.plan.make import make_plan as plan_with
from sfumato.plan.strategy import Strategy

if TYPE_CHECKING:
    from sfumato.lang.spec import Spec
    from sfumato.network.network import Network
    from sfumato.plan.plan import Plan

__all__ = ["make_plan"]


def make_plan(
    study: Spec | Network | str | Path,
    tables: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, float] | None = None,
) -> Plan:
    """The plan of least predicted weighted loss that keeps every requirement; see sfumato.plan.make.make_plan."""
    plan = plan_with(study, tables, sizes=sizes, strategies=_WhenAsked())
    if plan.network is None or len(plan.network.spec.centres) < 2:
        return plan
    from sfumato.run.publish_centres import with_designs

    return with_designs(plan)


@final
class _WhenAsked(Sequence[Strategy]):
    """Every strategy there is. They stand on estimators, which a study of means and counts never needs to import."""

    def __getitem__(self, index: Any) -> Any:
        from sfumato.run.publish import STRATEGIES

        return STRATEGIES[index]

    def __len__(self) -> int:
        from sfumato.run.publish import STRATEGIES

        return len(STRATEGIES)
