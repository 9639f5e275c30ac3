"""A study's network evaluated on many workers: each takes a share of the individuals, with all their rows.

In:   a network, its tables as files all workers can read, an engine.
Out:  the same Values as on one machine.
Not here: noise. It is added once, in the process that holds the ledger (run/study.py), so a repeated task repeats
nothing.

Individuals are dealt out by a hash of their identifier's text, in every table alike. So one person's rows meet in one
task whatever the files' order, and the sums are whole numbers: they do not depend on how many tasks there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sfumato.core.curator import told_to
from sfumato.errors import DataError
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, indicator
from sfumato.network.evaluate import ID, Values
from sfumato.network.expression import sql_name
from sfumato.network.network import Network
from sfumato.network.tables import TableRoom
from sfumato.network.told import tell_curator
from sfumato.run.engine.engine import Engine, open_engine
from sfumato.run.forget import without_forgotten

__all__ = ["evaluate_on"]


def evaluate_on(
    engine: str | Engine,
    network: Network,
    tables: Mapping[str, Any],
    tasks: int | None = None,
    row_keys: Mapping[str, bytes] | None = None,
    sums_only: bool = False,
) -> Values:
    """`network.evaluate(tables, row_keys)` by an engine's workers, in `tasks` shares of the individuals (or four)."""
    spec = network.spec
    shares = 4 if tasks is None else tasks
    if shares < 1:
        raise DataError("At least one task is needed. Nothing was read and nothing was spent.")
    if spec.numbered_tables:
        raise DataError(
            f"The rows of {', '.join(sorted(spec.numbered_tables))} have no identifier, so they cannot be dealt out to "
            "workers. Run with the local engine, or give the table an identity column. Nothing was spent."
        )
    if spec.peers:
        raise DataError(
            "In this study individuals hold each other's data, so they cannot be dealt out to workers. Run with the "
            "local engine. Nothing was read and nothing was spent."
        )
    private = [name for name in tables if name not in spec.public_tables]
    with TableRoom(tables, private) as room:
        tell_curator(room, network)
    crew = open_engine(engine)
    try:
        work = _Share(_sent(network), dict(tables), shares, dict(row_keys or {}), sums_only)
        found = dict(crew.map(work, list(range(shares))))
    finally:
        if crew is not engine:
            crew.close()
    return _together(network, [found[place] for place in range(shares)])


def _sent(network: Network) -> Network:
    """The network as it travels: without what it has worked out of itself on the way, some of which cannot."""
    return replace(network, spec=replace(network.spec))


@dataclass(frozen=True)
class _Share:
    """One share of the individuals, evaluated. The study was read where the run began, and nobody reads it again."""

    network: Network
    tables: dict[str, Any]
    shares: int
    row_keys: dict[str, bytes]
    sums_only: bool

    def __call__(self, place: int) -> Values:
        spec = self.network.spec
        mine = {name: _dealt(spec, name, table, place, self.shares) for name, table in self.tables.items()}
        with told_to(set()):  # the curator is told once, of all shares together
            kept = without_forgotten(spec, mine) if spec.forgotten else mine
            return self.network.evaluate(kept, self.row_keys, sums_only=self.sums_only)


def _dealt(spec: Spec, name: str, table: Any, place: int, shares: int) -> Any:
    """The rows of the individuals of one share; tables about nobody stay whole."""
    people = {indicator(dataset.goal) for dataset in spec.datasets if isinstance(dataset.goal, Compound)}
    owners = [column.name for column in spec.columns if column.table == name and indicator(column.atom) in people]
    if not owners or name in spec.public_tables:
        return table
    with TableRoom({name: table}, [name], naming={name: owners}) as room:
        room.types(name, owners)
        identity = f"{sql_name(owners[0])}::VARCHAR"
        return room.selected(name, f"hash({identity}) % {shares} = {place}")


def _together(network: Network, parts: list[Values]) -> Values:
    individuals = {
        name: pa.concat_tables([part.individuals[name] for part in parts], promote_options="permissive").sort_by(ID)
        for name in parts[0].individuals
    }
    rows = {
        name: pa.concat_tables([part.rows[name] for part in parts], promote_options="permissive")
        for name in parts[0].rows
    }
    sums = {
        node.name: node.question.total([part.aggregates[node.name] for part in parts]) for node in network.aggregates
    }
    return Values(individuals, rows, parts[0].shared, sums)
