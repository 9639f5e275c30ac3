"""People who asked to be forgotten are taken out before anything is computed.

In:   forget(P) lines of a study, its tables.
Out:  the tables without their rows.
Not here: what was already published from them (evidence/trace.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sfumato.errors import DataError
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, Number, Term, Text, indicator
from sfumato.network.cells import equals
from sfumato.network.tables import TableRoom
from sfumato.network.text_files import TextTable

__all__ = ["forgotten_names", "without_forgotten"]


def forgotten_names(spec: Spec) -> frozenset[str]:
    """Who is to be forgotten, as their identifiers stand in the tables."""
    return frozenset(_name(entry.individual) for entry in spec.forgotten)


def _name(term: Term) -> str:
    match term:
        case Number(value=value) | Text(value=value):
            return str(value)
        case Compound(functor=functor, arguments=()):
            return functor
    raise DataError("forget(P) names one individual, for example forget(uma). Nothing was read.")


def without_forgotten(spec: Spec, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables, rows of forgotten individuals left out wherever a column identifies an individual.

    Read and compared as the evaluation does, by the text of the identifier; forget(3) also takes out 03 and 3.0.
    """
    people = {indicator(dataset.goal) for dataset in spec.datasets if isinstance(dataset.goal, Compound)}
    kept = dict(tables)
    columns: dict[str, list[str]] = {}
    for column in spec.columns:
        if indicator(column.atom) in people and column.table in kept:
            columns.setdefault(column.table, []).append(column.name)
    for table, names in columns.items():
        kept[table] = _filtered(table, kept[table], names, spec)
    return kept


def _filtered(name: str, table: Any, columns: Sequence[str], spec: Spec) -> pa.Table | TextTable:
    with TableRoom({name: table}, [name]) as room:
        room.types(name, columns)  # a column that is not there is refused by name
        named = [same for column in columns for entry in spec.forgotten for same in _same(column, entry.individual)]
        gone = " OR ".join(f"coalesce({same}, FALSE)" for same in named) or "FALSE"
        return room.selected(name, f"NOT ({gone})")


def _same(column: str, individual: Term) -> tuple[str, ...]:
    written = equals(column, _name(individual))
    return (written, equals(column, individual.value)) if isinstance(individual, Number) else (written,)
