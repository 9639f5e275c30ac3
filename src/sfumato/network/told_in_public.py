"""What public tables said when a study's network was built, and whether they still say it.

In:   a Spec, the public tables it is built from or run with.
Out:  a digest of each of them; the network of the tables that are run with.
Not here: whether a plan follows from that network (run/derived.py).

Who is whose friend, who owns what and who is alike decide how far one person's data reach: a promise that was planned
with one table says nothing about another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.lang.spec import Spec
from sfumato.network.tables import TableRoom, layout_of, naming_columns

if TYPE_CHECKING:
    from sfumato.network.network import Network

__all__ = ["network_with", "public_digests", "structural_tables", "with_other_public"]


def structural_tables(spec: Spec) -> list[str]:
    """The public tables that name individuals or things: those a network is built from."""
    return sorted(table for table in spec.public_tables if layout_of(spec, table).identities)


def public_digests(spec: Spec, tables: Mapping[str, Any]) -> dict[str, str]:
    """What the tables say of which a network is built, in any order of rows; of those handed in."""
    owners = {owner.table for owner in spec.owners}
    names = sorted({*structural_tables(spec), *owners} & tables.keys())
    if not names:
        return {}
    with TableRoom(tables, names, naming=naming_columns(spec)) as room:
        return {name: _digest(room, name) for name in names}


def _digest(room: TableRoom, name: str) -> str:
    ((rows, hashes),) = room.run(f"SELECT count(*), sum(hash(t)::HUGEINT) FROM {room.names[name]} t")
    return f"{rows} rows, {hashes or 0}"


def with_other_public(network: Network, tables: Mapping[str, Any]) -> list[str]:
    """The public tables that say something else than when the network was built."""
    if network.given is None or not network.public:
        return []
    now = public_digests(network.given, {name: tables[name] for name in network.public if name in tables})
    return [name for name, digest in now.items() if digest != network.public[name]]


def network_with(network: Network, tables: Mapping[str, Any]) -> Network:
    """The network of the same study with the public tables as they are now."""
    assert network.given is not None
    made = type(network).from_spec(network.given, tables)
    return replace(made, spec=replace(made.spec, forgotten=network.spec.forgotten))
