"""A known joint law of a few individuals: how far apart one secret moves the one number that is published.

In:   a Network whose study declares correlated(D, known, joint([...])).
Out:  the network with promises for the distance between conditional laws (Wasserstein of infinite order).
Not here: that distance (core/dependence.py), its proof (docs/proofs/pufferfish.md).

Such promises do not compose: two numbers that tell nothing each may tell everything together. So one number is
published, once, and the ledger seals the account.

A law names nobody: its rows are tried with invented people, so nothing of the study may tell one individual from
another, neither another table nor a fact, and everybody has one row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sfumato.core import Guarantee, Known, Pufferfish
from sfumato.errors import DataError
from sfumato.lang.correlated import Correlated
from sfumato.lang.spec import Spec
from sfumato.lang.term import indicator
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Network
from sfumato.network.refusal import refusal
from sfumato.network.tables import TableLayout, layout_of

__all__ = ["check_number", "with_known"]

#: Each different table of the law is evaluated once.
_MOST = 512


def with_known(network: Network, tables: Mapping[str, Any]) -> Network:
    """The network whose promises know the joint law; itself where none is declared."""
    for one in network.spec.correlations:
        if one.kind == "known":
            network = _refined(network, one, tables)
    return network


def _refined(network: Network, one: Correlated, tables: Mapping[str, Any]) -> Network:
    node = _only_number(network, one)
    _check_alike(network, one, node)
    numbers = _numbers(network, one, node, tables)
    law = Known.of(one.rows, numbers, float(node.question.moves().l2))
    requirements = tuple(
        dataclasses.replace(r, guarantee=_about(r.guarantee, law)) if r.dataset == one.dataset else r
        for r in network.spec.requirements
    )
    return dataclasses.replace(network, spec=dataclasses.replace(network.spec, requirements=requirements))


def _about(promise: Guarantee, law: Known) -> Guarantee:
    if not isinstance(promise, Pufferfish):
        return promise
    return Pufferfish(promise.eps, promise.delta_, law, adjacency=promise.adjacency)


def _only_number(network: Network, one: Correlated) -> AggregateNode:
    """The one number that is published of the dataset."""
    zones = [zone for zone in network.zones if zone.dataset == one.dataset]  # one a promise
    seen = [name for zone in zones for name in zone.observed]
    found = [node for node in network.aggregates if node.name in seen]
    plain = set(map(len, (seen, found, zones, network.publications))) == {1}
    if not plain or network.exact or not _is_one_number(found[0]):
        raise refusal(
            one.position,
            f"Of a dataset with a known law one number is published, once: what two of {one.dataset} tell together is "
            "not the sum of what each tells (of two fair coins neither one nor whether they agree tells the other, and "
            "both do).",
            "Publish one sum, mean or count to one observer who learns nothing exactly, or declare group or chain, "
            "whose promises add up.",
        )
    return found[0]


def _check_alike(network: Network, one: Correlated, node: AggregateNode) -> None:
    """Whoever the individuals are, the number is the same function of what the law speaks of."""
    groups = [group for group in network.groups if group.dataset == one.dataset]
    if len(network.spec.sources) > 1 or len(groups) != 1 or groups[0].structure or node.condition.members():
        raise refusal(
            one.position,
            f"A joint law names nobody, and the study tells individuals of {one.dataset} apart, by another table or by "
            "facts: how far one of them moves the number would depend on which row of the law is whose.",
            "Ask about the one private table alone, or declare group or chain, whose promises hold whoever is who.",
        )
    if node.unbounded:
        raise refusal(
            one.position,
            f"The number of {one.dataset} has no bounds: {node.unbounded}.",
            "Declare the range of what is added up.",
        )


def _is_one_number(node: AggregateNode) -> bool:
    """Whether one number gets noise, the same whatever the noise; what has no bounds is refused for that."""
    question = node.question
    if node.unbounded:
        return True
    one = question.drawn_size(False) == question.drawn_size(True) == 1 and not question.only_drawn
    return one and float(question.moves().l1) == float(question.moves().l2)


def _numbers(network: Network, one: Correlated, node: AggregateNode, tables: Mapping[str, Any]) -> tuple[float, ...]:
    """What the number is for every row of the law."""
    spec = network.spec
    table, identity, cell = _home(spec, one)
    known: dict[tuple[str | float, ...], float] = {}
    found = []
    for values, _ in one.rows:
        key = tuple(sorted(values, key=str))  # whoever has them
        if key not in known:
            if len(known) >= _MOST:
                raise refusal(
                    one.position, f"The law has more than {_MOST} different tables.", "Declare group instead."
                )
            people = [f"{number:06d}" for number in range(len(key))]
            rows = pa.table({identity: people, cell: pa.array(list(key))})
            sums = network.evaluate({**tables, table: rows}).aggregates[node.name]
            known[key] = float(node.question.encode(sums)[0])
        found.append(known[key])
    return tuple(found)


def _home(spec: Spec, one: Correlated) -> tuple[str, str, str]:
    """The table of the individuals, its identity column and the one column the law speaks of."""
    goal = indicator(spec.dataset(one.dataset).goal)
    own = _own_table(spec, one, goal)
    _check_one_row(own, one)
    identity = own.identity(goal)
    assert identity is not None
    return own.table, identity.name, own.values[0].name


def _own_table(spec: Spec, one: Correlated, goal: str) -> TableLayout:
    """The one private table of the individuals, with one column of values."""
    private = [layout_of(spec, source.table) for source in spec.sources if source.table not in spec.public_tables]
    own = [layout for layout in private if layout.identity(goal) is not None]
    if len(own) != 1 or len(own[0].values) != 1 or len(own[0].identities) != 1 or own[0].table in spec.numbered_tables:
        raise refusal(
            one.position,
            f"A joint law speaks of one column: of {one.dataset} there must be one private table, with identifiers and "
            "one declared column of values.",
            "Declare that column alone.",
        )
    return own[0]


def _check_one_row(own: TableLayout, one: Correlated) -> None:
    limit = own.row_limit
    if own.each_person or limit is None or limit.maximum != 1:
        raise refusal(
            one.position,
            f"A joint law speaks of one value of each individual, and {own.table} may hold several rows of one.",
            f"Write rows_per_person({own.table}, 1).",
        )


def check_number(spec: Spec, dataset: str, individuals: int) -> None:
    """As many individuals as the law speaks of; their number is public."""
    for one in spec.correlations:
        if one.kind == "known" and one.dataset == dataset and len(one.rows[0][0]) != individuals:
            raise DataError(
                f"The joint law of {dataset} speaks of {len(one.rows[0][0])} individuals, and the table has another "
                "number. Nothing was drawn and nothing was spent."
            )
