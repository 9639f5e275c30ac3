"""make_plan with every strategy there is: statistics, tables, models, channels.

In:   a study in any form, public tables, public numbers.
Out:  Plan.
Not here: planning itself (plan/make.py), the strategies (run/publish.py), designs for centres (run/publish_centres.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.plan.make import make_plan as plan_with

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
    # Estimators are imported when a study is planned, not when the package is.
    from sfumato.run.publish import STRATEGIES
    from sfumato.run.publish_centres import with_designs

    return with_designs(plan_with(study, tables, sizes=sizes, strategies=STRATEGIES))
