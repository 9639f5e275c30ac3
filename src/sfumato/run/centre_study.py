"""A study's aggregate as a round over several institutions.

In:   a plan of a study that declares centre(C) and holds(C, Table).
Out:  the Round that the institutions agree on.
Not here: what each way of sharing costs (run/publish*.py puts both designs among a plan's alternatives), the protocol
(centres/), the plan's own split of the budget (plan/).

The round keeps what the plan set aside for this publication and observer, no more: the same share of the requirement,
whether one institution or several hold the rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from sfumato.centres import Centre, Requirement, Round, plan_round
from sfumato.centres.statistics import Statistic, statistic_of_kind
from sfumato.core import Categories, Domain, Guarantee, Schema, compose
from sfumato.errors import InputError, PlanError
from sfumato.lang.term import match
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Network, Node
from sfumato.plan.plan import Plan, Planned

__all__ = ["centre_statistic", "round_for"]


def centre_statistic(network: Network, node: AggregateNode) -> Statistic:
    """What every institution sums for an aggregate of the study; columns are those of its own table."""
    if not node.question.everybody:
        raise PlanError(
            f"{node.name} counts only some individuals: across centres everybody counts. Make the condition a column "
            "of its own, write missing(RV, Value) for missing(RV, skip), or publish it centrally. Nothing was spent."
        )
    columns: dict[str, Domain] = {}
    tables: set[str] = set()
    for name in node.question.variables:
        value = network.node(name)
        if not isinstance(value, Node) or value.source is None or value.domain is None:
            raise PlanError(
                f"{node.name} sums {name}, which is no column with a range: across centres only columns are summed. "
                "Nothing was planned and nothing was spent."
            )
        columns[value.source.name] = _with_missing(value)
        tables.add(value.source.table)
    _check_rows(network, node, tables)
    goal = network.spec.dataset(node.dataset).goal
    identity = next(
        column.name
        for column in network.spec.columns
        if match(goal, column.atom) is not None and (not tables or column.table in tables)
    )
    rows = {"identity": identity, "rows_per_person": node.question.rows}
    kind = node.question.at_centres
    if kind is None:
        raise PlanError(
            f"{node.name} is a {node.question.form.functor}, which institutions cannot sum up. Publish it centrally. "
            "Nothing was planned and nothing was spent."
        )
    if not columns:  # the number of everybody needs a column that everybody has
        columns[identity] = Categories(("anybody",), unknown="anybody", null="anybody")
    return statistic_of_kind(kind)(schema=Schema(columns), **rows)


def _check_rows(network: Network, node: AggregateNode, tables: set[str]) -> None:
    """PlanError unless of a person's rows a sample counts: the one rule that centres follow (core/kept_rows.py)."""
    spec = network.spec
    other = [limit.table for limit in spec.row_limits if limit.table in tables and limit.keep != "sample"]
    other += [one.table for one in spec.each_person if one.table in tables]
    if other:
        raise PlanError(
            f"{node.name} sums rows of {other[0]} that are chosen by their order or averaged: across centres a sample "
            f"of each person's rows counts. Write rows_per_person({other[0]}, N, sample). Nothing was planned and "
            "nothing was spent."
        )


def _with_missing(value: Node) -> Domain:
    """The column's range, with the place that the study gives to missing and unlisted cells."""
    domain = value.domain
    assert domain is not None
    if value.missing is None:
        return domain
    if isinstance(domain, Categories):
        unknown = value.missing if domain.unknown is None else domain.unknown
        return dataclasses.replace(domain, null=value.missing, unknown=unknown)
    return dataclasses.replace(domain, null=value.missing)


def _share(plan: Plan, planned: Planned, node: str) -> Guarantee:
    """What the plan set aside for this node towards this observer."""
    draws = [draw for draw in plan.draws if draw.node == node and planned.observer in draw.observers]
    if not draws:
        raise PlanError(f"{planned.name}: {node} is not drawn centrally, so there is nothing to share among centres.")
    return compose([draw.event() for draw in draws])


def _requirement(plan: Plan, planned: Planned, node: AggregateNode) -> Requirement:
    share = _share(plan, planned, node.name)
    assert share.adjacency is not None
    return Requirement(share.adjacency, share)


def round_for(
    plan: Plan,
    publication: str,
    centres: Iterable[Centre],
    *,
    observer: str | None = None,
    most_patients: int = 1_000_000,
    colluders: int = 0,
    absences: int = 0,
) -> Round:
    """The round by which the centres publish one aggregate of the study together."""
    network = _network(plan)
    planned = plan.publication(publication, observer)
    sums = {node.name: node for node in network.aggregates}
    nodes = [sums[seen.node] for seen in planned.seen if seen.node in sums]
    if len(nodes) != 1:
        raise PlanError(f"{publication} shows {len(nodes)} aggregates; a round sums one. Name another publication.")
    members = tuple(centres)
    declared = {centre.name for centre in network.spec.centres}
    unknown = [centre.name for centre in members if declared and centre.name not in declared]
    if unknown:
        raise InputError(f"The study has no centre({unknown[0]}). It has: {', '.join(sorted(declared))}.")
    return plan_round(
        f"{plan.study}: {publication}",
        members,
        centre_statistic(network, nodes[0]),
        [_requirement(plan, planned, nodes[0])],
        most_patients=most_patients,
        colluders=colluders,
        absences=absences,
        plan_hash=plan.hash,
    )


def _network(plan: Plan) -> Network:
    if plan.network is None:
        raise InputError("A plan read from a file has no network: make it again from its study.")
    return plan.network
