"""People who asked to be forgotten are taken out before anything is computed.

In:   forget(P) lines of a study, its tables.
Out:  the tables without their rows.
Not here: what was already published from them (evidence/trace.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from sfumato.errors import DataError
from sfumato.lang.spec import Column, Spec
from sfumato.lang.term import Compound, Number, Term, Text, indicator

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
    """The tables, rows of forgotten individuals left out wherever a column identifies an individual."""
    people = {indicator(dataset.goal) for dataset in spec.datasets if isinstance(dataset.goal, Compound)}
    names = sorted(forgotten_names(spec))
    kept = dict(tables)
    for column in spec.columns:
        if indicator(column.atom) in people and column.table in kept:
            kept[column.table] = _filtered(_arrow(kept[column.table]), column, names)
    return kept


def _filtered(table: pa.Table, column: Column, names: list[str]) -> pa.Table:
    if column.name not in table.column_names:
        return table
    told = table[column.name].cast(pa.string()).to_pylist()
    gone = set(names)
    return table.filter(pa.array([name not in gone for name in told], pa.bool_()))


def _arrow(table: Any) -> pa.Table:
    if isinstance(table, str | Path):
        path = Path(table)
        return csv.read_csv(path) if path.suffix.lower() == ".csv" else parquet.read_table(path)
    if isinstance(table, pa.Table):
        return table
    return pa.table(table) if isinstance(table, dict) else pa.Table.from_pandas(table)
