"""Which tables and columns a study reads, and whether they are there: asked of names alone, before a cell is read.

In:   a Network, tables as a run is given them.
Out:  the tables that are read; SchemaError with every table and column that is not there.
Not here: reading cells (network/evaluate.py), what is wrong with a file (who reads it says so).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from sfumato.core.tables import nearest
from sfumato.errors import DataError, SchemaError
from sfumato.lang.spec import ROW, Column, Dataset
from sfumato.network.homes import homes_of
from sfumato.network.network import Network, Node
from sfumato.network.peers import peer_tables
from sfumato.network.plain import Plain, Portion
from sfumato.network.stores.folder import files_in
from sfumato.network.stores.spool import SpooledRows
from sfumato.network.stores.store import StoredRows
from sfumato.network.structure import fed_datasets, has_structure, identity_of
from sfumato.network.tables import layout_of
from sfumato.network.text_files import TextTable, header

__all__ = ["check_columns", "wanted_tables"]


def wanted_tables(network: Network, fed: Sequence[Dataset]) -> list[str]:
    """The tables that are read for the datasets that have any."""
    spec = network.spec
    wanted = {node.source.table for node in _nodes(network) if node.source is not None}
    wanted |= peer_tables(spec)
    wanted |= {member.table for node in network.aggregates for member in node.condition.members()}
    for dataset in fed:
        wanted |= {home.table for home in homes_of(spec, dataset)}
        if has_structure(spec, dataset):
            wanted |= {t for t in spec.public_tables if layout_of(spec, t).identity(identity_of(dataset))}
    return sorted(wanted)


def check_columns(network: Network, tables: Mapping[str, Any]) -> None:
    """Refuse tables without a column that is read, and say all of them: a schema holds nobody's data."""
    wanted = wanted_tables(network, fed_datasets(network.spec))
    absent = [sentence for table in wanted for sentence in _absent(network, table, tables)]
    if absent:
        raise SchemaError(
            f"{' '.join(absent)} Write the names as they stand in the tables, or hand in other tables. Nothing was "
            "spent."
        )


def _absent(network: Network, table: str, tables: Mapping[str, Any]) -> Iterator[str]:
    if table not in tables:
        yield (
            f"The table {table} is needed and was not handed in{nearest(table, list(tables))}: give its path or an "
            "Arrow table."
        )
        return
    known = _names(tables[table])
    if known is None:
        return
    for column in _read_columns(network, table):
        if column not in known:
            yield f"The table {table} has no column {column}{nearest(column, known)}, which the study declares."


def _read_columns(network: Network, table: str) -> list[str]:
    """The columns of a table that say whose a row is, and those that some variable is.

    A sum over peers is made when tables are read (network/peers.py): what is there is the cell that is summed.
    """
    layout = layout_of(network.spec, table)
    made = {peer.column for peer in network.spec.peers if peer.table == table}
    values = [one.name for one in _sources(network) if one.table == table and one.name not in made]
    names = dict.fromkeys([*(column.name for _, column in layout.identities), *values])
    return [name for name in names if name != ROW or table not in network.spec.numbered_tables]


def _sources(network: Network) -> list[Column]:
    """Where cells are read that some variable is, or that are summed over peers."""
    own = [node.source for node in _nodes(network) if node.source is not None]
    return [*own, *(peer.cell for peer in network.spec.peers)]


def _nodes(network: Network) -> Iterator[Node]:
    return chain(network.shared, *(group.nodes for group in network.groups))


def _names(given: Any) -> Collection[str] | None:
    """The names of a table's columns; None where they are not known without reading it, or it cannot be read."""
    match given:
        case StoredRows(rows=inner) | Portion(table=inner) | TextTable(table=inner):
            return _names(inner)
        case SpooledRows(path=path):
            return _names_in(path)
        case str() | Path():
            return _names_in(Path(given))
        case tuple():
            return _names(given[0]) if given else None
        case Plain(shown=shown):
            return list(shown)
    return _names_in_memory(given)


def _names_in_memory(given: Any) -> Collection[str] | None:
    if isinstance(given, pa.Table):
        return given.column_names
    columns = given if isinstance(given, Mapping) else getattr(given, "columns", None)
    return None if columns is None or callable(columns) else [str(name) for name in columns]


def _names_in(path: Path) -> Collection[str] | None:
    try:
        file = files_in(path)[0] if path.is_dir() else path
        if file.suffix.lower() == ".parquet":
            return parquet.read_schema(file).names
        return header(file) if file.suffix.lower() in (".csv", ".tsv") else None
    except (DataError, OSError, pa.ArrowException):
        return None
