"""make_plan with every strategy there is: statistics, tables, models, channels.

In:   a study in any form, public tables, public numbers.
Out:  Plan.
Not here: planning itself (plan/make.py), the strategies (run/publish.py), prices of ways over centres
(run/publish_centres.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.lang.deadline import planning
from sfumato.lang.vocabulary import published_kind
from sfumato.plan.make import make_plan as plan_with
from sfumato.plan.make import network_of

if TYPE_CHECKING:
    from sfumato.lang.spec import Spec
    from sfumato.network.network import Network
    from sfumato.plan.plan import Plan
    from sfumato.plan.strategy import Strategy

__all__ = ["make_plan"]


def make_plan(
    study: Spec | Network | str | Path,
    tables: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, float] | None = None,
) -> Plan:
    """The plan of least predicted weighted loss that keeps every requirement; see sfumato.plan.make.make_plan."""
    with planning():
        network = network_of(study, tables)
        made = plan_with(network, sizes=sizes, strategies=_strategies(network))
        if not network.spec.centres:
            return made
        from sfumato.run.publish_centres import with_prices

        return with_prices(made)


def _strategies(network: Network) -> Sequence[Strategy]:
    """The strategies for tables, models and channels; their estimators are imported where one of these is published."""
    kinds = {kind for one in network.publications if (kind := published_kind(one.what)) is not None}
    ways = {*(node.question.form.ways for node in network.aggregates), *(kind.ways for kind in kinds)}
    found = sorted(one.name for one in ways if one.homes)
    if not found:
        return ()
    from sfumato.run.publish import strategies_of

    return strategies_of(*found)
