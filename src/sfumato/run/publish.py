"""Every strategy for what is no statistic, and how the acts of a plan are carried out.

In:   a Plan with acts, the evaluated network (private), a seed for dry runs.
Out:  Performed for each act; the events that were really drawn keep what was planned, or nothing is published.
Not here: the order of events of a run (run/study.py).
Proof: docs/proofs/portions.md
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sfumato.core import Categories, Interval, Schema, compose
from sfumato.errors import InputError, UnprovedError
from sfumato.network.evaluate import ID, Values
from sfumato.plan.act import Act
from sfumato.plan.plan import Plan
from sfumato.run.publish_base import Performed, Publisher, column_of
from sfumato.run.publish_channel import TailoredChannel
from sfumato.run.publish_learning import Equilibrium, Kernel, Objective, Outliers, Regression, Svm
from sfumato.run.publish_synthetic import Pairs, Rounds, Tree
from sfumato.run.publish_tables import GaussianTable, LaplaceTable, ObfuscatedTable

__all__ = ["STRATEGIES", "Columns", "columns_for", "perform"]

STRATEGIES: tuple[Publisher, ...] = (
    GaussianTable(),
    LaplaceTable(),
    ObfuscatedTable(),
    Pairs(),
    Tree(),
    Rounds(),
    Objective(),
    Svm(),
    Kernel(),
    Equilibrium(),
    Regression(),
    Outliers(),
    TailoredChannel(),
)


@dataclass(frozen=True)
class Columns:
    """What an act reads: private."""

    act: Act
    table: pa.Table = field(repr=False)
    identifiers: Sequence[Any] = field(repr=False)


def columns_for(plan: Plan, values: Values) -> tuple[Columns, ...]:
    """The columns of every act, each value put into its domain; done before anything is charged."""
    return tuple(_columns(act, values) for act in plan.acts)


def _columns(act: Act, values: Values) -> Columns:
    if not any((one.kind, one.name) == (act.kind, act.strategy) for one in STRATEGIES):
        raise InputError(
            f"{act.name}: no strategy for a {act.kind} is called {act.strategy!r}. Make the plan again with make_plan. "
            "Nothing was drawn and nothing was spent."
        )
    rows = act.parameters.get("row_table")
    table = values.individuals[act.dataset] if rows is None else values.rows[rows]
    if table.num_rows == 0:
        # Under replace-one the number of individuals is public.
        raise InputError(f"{act.name}: {act.dataset} has no individuals. Nothing was drawn and nothing was spent.")
    read: dict[str, pa.Array] = {}
    for name, domain in Schema.from_toml(act.parameters["schema"]).columns.items():
        assert isinstance(domain, Interval | Categories)
        read[name] = column_of(table[name].to_numpy(zero_copy_only=False), domain)
    whose = values.identifiers(act.dataset) if rows is None else table[ID].to_numpy(zero_copy_only=False)
    return Columns(act, pa.table(read), whose.tolist())


def perform(columns: Columns, random_state: int | None = None) -> Performed:
    """Carry out one act and check that what was drawn keeps the act's guarantee."""
    act = columns.act
    strategies: Mapping[tuple[str, str], Publisher] = {(one.kind, one.name): one for one in STRATEGIES}
    done = strategies[act.kind, act.strategy].perform(act, columns.table, columns.identifiers, random_state)
    planned = [event.to_dict() for event in act.events]
    if planned and planned != [event.to_dict() for event in done.events]:
        raise UnprovedError(f"{act.name}: what was drawn is not what was planned. Nothing was published.")
    cost = compose(done.events)
    if cost.adjacency != act.guarantee.adjacency or cost.implies(act.guarantee) is not True:
        raise UnprovedError(
            f"{act.name}: what was drawn costs {cost.describe()}, more than {act.guarantee.describe()}. Nothing was "
            "published; the ledger keeps the charge."
        )
    return dataclasses.replace(done, kind=act.kind)
