"""A study's network evaluated on many workers: each takes a share of the individuals, with all their rows.

In:   a network, its tables as files all workers can read, an engine.
Out:  the same Values as on one machine.
Not here: noise. It is added once, in the process that holds the ledger (run/study.py), so a repeated task repeats
nothing.

Individuals are dealt out by a hash of their identifier's text, in every table alike. So one person's rows meet in one
task whatever the files' order, and the sums are whole numbers: they do not depend on how many tasks there are. Every
task then reads every row once, to see whose it is. Where the only table of people is a folder of Parquet files and
every identifier was found to occur once, whole files are dealt out instead, and every row is read by one task.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.curator import told_to
from sfumato.errors import DataError, SfumatoError
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, indicator
from sfumato.network.crowd import Crowd, crowd_of
from sfumato.network.evaluate import ID, Values, evaluate, streams
from sfumato.network.expression import sql_name
from sfumato.network.network import Network
from sfumato.network.plain import Portion
from sfumato.network.stores.folder import files_in
from sfumato.network.tables import TableRoom, layout_of, naming_columns
from sfumato.network.told import tell_curator
from sfumato.run.engine.engine import Engine, open_engine
from sfumato.run.forget import without_forgotten

__all__ = ["evaluate_on"]


def _check_dealt(spec: Spec, tasks: int | None) -> None:
    """Whether individuals can be dealt out to workers."""
    if tasks is not None and tasks < 1:
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


def evaluate_on(
    engine: str | Engine,
    network: Network,
    tables: Mapping[str, Any],
    tasks: int | None = None,
    row_keys: Mapping[str, bytes] | None = None,
    sums_only: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> Values:
    """`network.evaluate(tables, row_keys)` by an engine's workers, in `tasks` shares (or one for each that works).

    `tell` hears how many shares are done and how long the others will take.
    """
    spec = network.spec
    _check_dealt(spec, tasks)
    private = [name for name in tables if name not in spec.public_tables]
    with TableRoom(tables, private, naming=naming_columns(spec)) as room:
        _check_owners(room, spec, private)
        if not streams(network, sums_only):
            tell_curator(room, network)
        crew = open_engine(engine)
        try:
            shares = _dealt_out(room, spec, tables, tasks or crew.width)
            work = _Share(_sent(network), shares, dict(row_keys or {}), sums_only, _versions())
            found = _heard(crew.map(work, list(range(len(shares)))), len(shares), tell)
        finally:
            if crew is not engine:
                crew.close()
        values = _together(network, [found[place] for place in range(len(shares))])
        if streams(network, sums_only):
            tell_curator(room, network, values.listed)
    return values


def _check_owners(room: TableRoom, spec: Spec, private: Iterable[str]) -> None:
    """A column that is not there is refused by name."""
    for name in private:
        if (owner := _owner(spec, name)) is not None:
            room.types(name, [owner])


def _heard(results: Iterator[tuple[int, Values]], number: int, tell: Callable[[str], None]) -> dict[int, Values]:
    """Every share's values; on the way it is told how far the work is."""
    began, found = time.monotonic(), {}
    for place, values in results:
        found[place] = values
        left = (time.monotonic() - began) / len(found) * (number - len(found))
        tell(f"evaluating the study: {len(found)} of {number} shares, about {left:.0f} s left")
    return found


def _sent(network: Network) -> Network:
    """The network as it travels: without what it has worked out of itself on the way, some of which cannot."""
    return replace(network, spec=replace(network.spec), given=None)


@dataclass(frozen=True)
class _Share:
    """One share of the individuals, evaluated. The study was read where the run began, and nobody reads it again."""

    network: Network
    shares: tuple[dict[str, Any], ...]
    row_keys: dict[str, bytes]
    sums_only: bool
    #: Who deals individuals out by another hash may count one twice and another never.
    versions: dict[str, str]

    def __call__(self, place: int) -> Values:
        if self.versions != _versions():
            raise SfumatoError(
                "A worker has other versions of sfumato or DuckDB than this process: it might deal people out in "
                "another way. Install the same versions everywhere. Nothing was published and nothing was spent."
            )
        spec, mine = self.network.spec, self.shares[place]
        with told_to(set()):  # the curator is told once, of all shares together
            kept = without_forgotten(spec, mine) if spec.forgotten else mine
            return evaluate(self.network, kept, self.row_keys, sums_only=self.sums_only, tell=False)


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in ("sfumato", "duckdb")}


def _dealt_out(room: TableRoom, spec: Spec, tables: Mapping[str, Any], shares: int) -> tuple[dict[str, Any], ...]:
    """The tables of every share; tables about nobody are whole in each."""
    owners = {name: owner for name in tables if (owner := _owner(spec, name)) is not None}
    if len(owners) == 1 and shares > 1:
        ((name, owner),) = owners.items()
        files = _whole_files(room, spec, name, tables[name], owner, shares)
        if files:
            return tuple({**tables, name: Portion(some, "", alone=(owner,))} for some in files)
    return tuple(
        {name: _portion(tables[name], owners.get(name), place, shares) for name in tables} for place in range(shares)
    )


def _owner(spec: Spec, name: str) -> str | None:
    """The column that says whose a row of a private table is."""
    people = {indicator(dataset.goal) for dataset in spec.datasets if isinstance(dataset.goal, Compound)}
    found = [column.name for column in spec.columns if column.table == name and indicator(column.atom) in people]
    return found[0] if found and name not in spec.public_tables else None


def _portion(table: Any, owner: str | None, place: int, shares: int) -> Any:
    """The rows of the individuals of one share."""
    if owner is None or shares == 1:
        return table
    return Portion(table, f"hash({sql_name(owner)}::VARCHAR) % {shares} = {place}", (owner,))


def _whole_files(room: TableRoom, spec: Spec, name: str, table: Any, owner: str, shares: int) -> list[tuple[str, ...]]:
    """Files of a folder by share, the largest first to whoever has least; none where one person may be in two."""
    if not isinstance(table, str | Path) or not Path(table).is_dir():
        return []
    paths = sorted(files_in(Path(table)), key=lambda path: path.stat().st_size, reverse=True)
    if len(paths) < shares or paths[0].suffix.lower() != ".parquet":
        return []
    if crowd_of(room, layout_of(spec, name), owner) != Crowd(None, False):
        return []
    piles: list[list[Path]] = [[] for _ in range(shares)]
    for path in paths:
        min(piles, key=lambda pile: sum(one.stat().st_size for one in pile)).append(path)
    return [tuple(map(str, sorted(pile))) for pile in piles]


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
    whole = frozenset.intersection(*(part.whole for part in parts))
    listed = frozenset.intersection(*(part.listed for part in parts))
    return Values(individuals, rows, parts[0].shared, sums, whole, listed)
