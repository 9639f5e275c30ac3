"""What belongs to one person, or is known to one observer, exactly: read from the tables when it is asked for.

In:   the plan of a release, its study's network, the tables, an identifier or an observer's name.
Out:  exact values for that person or observer alone.
Not here: what is published (run/view.py), how it is written and to whom (cli/view.py).

Personal values lie in the private tables and nowhere else: no run copies them, so that forgetting is leaving them out.
Whoever may read the tables may call this. Nothing of it is charged: it is what personal_rv, observe and reveal give
away, and no promise speaks of it (docs/proofs/observers.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import DataError, InputError
from sfumato.lang.spec import Spec
from sfumato.lang.term import Variable, indicator, match
from sfumato.network.cells import equals, named_so
from sfumato.network.convert import level_of
from sfumato.network.evaluate import ID, Values
from sfumato.network.expression import sql_name
from sfumato.network.network import Group, Network
from sfumato.network.tables import TableRoom, layout_of
from sfumato.plan.plan import Plan, Planned
from sfumato.plan.request import template_of
from sfumato.plan.template import Template
from sfumato.run.forget import unlisted, without_forgotten
from sfumato.run.study_files import Release, read_release

__all__ = ["Own", "observers_own", "persons_own"]


@dataclass(frozen=True)
class Own:
    """One variable of one person: the cells as they stand in the table, and the value it counts with.

    Of a table of which several rows of one person count, `counts_as` are the values of those that do.
    """

    variable: str
    cells: tuple[Any, ...]
    counts_as: Any


def persons_own(
    network: Network, tables: Mapping[str, Any], person: str, row_keys: Mapping[str, bytes] | None = None
) -> tuple[Own, ...]:
    """What personal_rv gives to one person. Only rows of that person are read, and none of a forgotten one.

    >>> from sfumato.lang import load
    >>> study = load('''
    ...     source(patients, 'patients.parquet'). column(patients, id, patient(P)). column(patients, age, age(P)).
    ...     rows_per_person(patients, 1). missing(patients, never). random(age(P)) :- patient(P).
    ...     range(age(P), 0, 110). dataset(people, domain(P, patient(P))). personal_rv(P, age(P)) :- patient(P).
    ...     privacy_requirement(openness(public), people, dp(1)). mean(m, age(P), patient(P)).
    ...     publish(average, m, openness(public)).
    ... ''')
    >>> rows = {"patients": {"id": ["uma", "eve"], "age": [41, 130]}}
    >>> persons_own(Network.from_spec(study), rows, "eve")
    (Own(variable='age(P)', cells=('130',), counts_as=110.0),)
    """
    if not any(group.personal for group in network.groups):
        raise InputError(
            "The study gives nobody anything: it has no personal_rv line. Write personal_rv(P, age(P)) :- patient(P)."
        )
    spec = network.spec
    mine = {name: _rows_of(spec, name, table, person) for name, table in tables.items()}
    values = network.evaluate(without_forgotten(spec, mine) if spec.forgotten else mine, row_keys)
    found: list[Own] = []
    for dataset, table in values.individuals.items():
        for place, group in enumerate(network.groups):
            rows = np.flatnonzero(values.membership(dataset) == place) if group.dataset == dataset else ()
            for row in rows:
                found += _variables(spec, group, values, table, int(row), mine, person)
    if not found:
        raise DataError(
            f"The tables hold nothing personal of {person}, or the study forgets it. Identifiers are compared as text."
        )
    return tuple(found)


def _variables(
    spec: Spec, group: Group, values: Values, table: pa.Table, row: int, mine: Mapping[str, Any], person: str
) -> Iterator[Own]:
    several = {name: rows for rows in values.rows.values() for name in rows.column_names}
    for name in group.personal:
        if name in table.column_names:
            yield Own(name, tuple(_cells(spec, group, name, mine, person)), table[name][row].as_py())
        elif name in several:
            counts_as = tuple(sorted(several[name][name].to_pylist(), key=str))
            yield Own(name, tuple(_cells(spec, group, name, mine, person)), counts_as)


def _cells(spec: Spec, group: Group, name: str, mine: Mapping[str, Any], person: str) -> list[Any]:
    """The raw cells behind a variable, row by row; none of what is computed, or of what is forgotten."""
    node = group.node(name)
    if node is None or node.source is None:
        return []
    kept = without_forgotten(spec, mine) if spec.forgotten else mine
    layout = layout_of(spec, node.source.table)
    others = match(node.source.atom, node.atom) or {}
    tests = [
        equals(column.name, level_of(others[variable], node.position))
        for variable, column in layout.identities
        if variable in others and not isinstance(others[variable], Variable)
    ]
    with TableRoom(kept, [layout.table]) as room:
        query = (
            f"SELECT {sql_name(node.source.name)} FROM {room.names[layout.table]} WHERE {' AND '.join(tests) or 'TRUE'}"
        )
        return [cell for (cell,) in room.run(query)]


def _rows_of(spec: Spec, name: str, table: Any, person: str) -> Any:
    """The rows of one person, where a table says whose they are; public tables stay whole, for the structure."""
    people = {indicator(dataset.goal) for dataset in spec.datasets}
    owners = [column.name for column in spec.columns if column.table == name and indicator(column.atom) in people]
    if not owners or name in spec.public_tables:
        return table
    with TableRoom({name: table}, [name]) as room:
        room.types(name, owners)
        tests = [test for owner in owners for test in named_so(owner, person)]
        chosen = " OR ".join(f"coalesce({test}, FALSE)" for test in tests)
        return room.selected(name, chosen)


# ── observers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def observers_own(plan: Plan, network: Network, values: Values, folder: Path, observer: str) -> dict[str, pa.Table]:
    """What an observer has: every cell it knows exactly, and publications put together with them. Dataset -> rows.

    A table of which several rows of one person count has a line for each of them, under its own name. `values` are
    those of the tables as they are now. What has noise comes from the release, never from the tables.
    """
    release = read_release(folder)
    listed = [planned for planned in plan.publications if planned.observer == observer and planned.listed]
    found: dict[str, pa.Table] = {}
    for dataset in values.individuals:
        found |= _own_of_dataset(network, values, dataset, observer, listed, release)
    if not found:
        raise InputError(f"The study has no observe or reveal line for {observer}: it knows nothing exactly.")
    return {name: _without_forgotten(network.spec, rows.sort_by(ID)) for name, rows in found.items()}


def _own_of_dataset(
    network: Network, values: Values, dataset: str, observer: str, listed: Sequence[Planned], release: Release
) -> dict[str, pa.Table]:
    """A line for each individual, and a table for every one of which several rows of one person count."""
    groups = _groups_of(network, dataset)
    if not any(group.known_to(observer) for _, group in groups):
        return {}
    columns = _known_cells(groups, values, dataset, observer)
    for planned in listed:
        columns |= _put_together(network, groups, values, dataset, planned, release[planned.name, observer])
    several = _known_rows(groups, values, dataset, observer)
    lines = pa.table({ID: values.individuals[dataset][ID], **columns})
    return {dataset: lines, **several} if columns or not several else several


def _groups_of(network: Network, dataset: str) -> list[tuple[int, Group]]:
    return [(place, group) for place, group in enumerate(network.groups) if group.dataset == dataset]


def _without_forgotten(spec: Spec, rows: pa.Table) -> pa.Table:
    return unlisted(spec, rows) if spec.forgotten else rows


def _known_cells(groups: list[tuple[int, Group]], values: Values, dataset: str, observer: str) -> dict[str, np.ndarray]:
    columns: dict[str, np.ndarray] = {}
    for place, group in groups:
        rows = values.membership(dataset) == place
        for name in sorted(group.known_to(observer)):
            if any(name in table.column_names for table in values.rows.values()):
                continue
            whole = values.column(name)
            columns.setdefault(name, np.full(len(whole), None, dtype=object))[rows] = whole[rows]
    return columns


def _known_rows(groups: list[tuple[int, Group]], values: Values, dataset: str, observer: str) -> dict[str, pa.Table]:
    """Of every table of which several rows of one person count those rows, with the cells that the observer knows."""
    whose = dict(zip(values.identifiers(dataset), values.membership(dataset), strict=True))
    found: dict[str, pa.Table] = {}
    for table, rows in values.rows.items():
        known = [set(group.known_to(observer)) & set(rows.column_names) for _, group in groups]
        if not any(known) or ID not in rows.column_names:
            continue
        at = np.array([whose.get(name, -1) for name in rows[ID].to_pylist()])
        columns: dict[str, np.ndarray] = {}
        for (place, _), names in zip(groups, known, strict=True):
            for name in sorted(names):
                shown = columns.setdefault(name, np.full(len(at), None, dtype=object))
                shown[at == place] = rows[name].to_numpy()[at == place]
        of_this = pa.array(np.isin(at, [place for place, _ in groups]))
        found[table] = pa.table({ID: rows[ID], **columns}).filter(of_this)
    return found


def _put_together(
    network: Network,
    groups: list[tuple[int, Group]],
    values: Values,
    dataset: str,
    planned: Planned,
    published: pa.Table,
) -> dict[str, np.ndarray]:
    """What a publication shows, computed from its noisy nodes and the cells that its observer knows."""
    whose = {str(name): row for row, name in enumerate(published[ID].to_pylist())}
    rows = np.array([whose.get(str(name), -1) for name in values.identifiers(dataset)])
    names = list(dict.fromkeys(seen.node for seen in planned.seen))
    columns: dict[str, np.ndarray] = {}
    for place, group in groups:
        template = template_of(network, group, names, planned.observer)
        if template is None:
            continue
        here = np.flatnonzero((values.membership(dataset) == place) & (rows >= 0))
        read = _read(template, published, values, here, rows[here])
        for name in (name for name in names if name in read):
            whole = columns.setdefault(name, np.full(len(rows), None, dtype=object))
            whole[here] = np.broadcast_to(read[name], here.shape)
    return columns


def _read(
    template: Template, published: pa.Table, values: Values, here: np.ndarray, shown_at: np.ndarray
) -> dict[str, np.ndarray]:
    """Every node of a template that is shown, follows from what is read, or is known, for the individuals `here`."""
    read: dict[str, np.ndarray] = {}
    for name in template.order:
        if (shown := _shown(published, name, shown_at)) is not None:
            read[name] = shown
        elif name in template.formulas:
            if all(parent in read for parent in template.parents[name]):
                read[name] = np.asarray(template.formulas[name].evaluate(read))
        elif name not in template.hidden:
            column = values.column(name)
            read[name] = column[here] if np.ndim(column) else column
    return read


def _shown(published: pa.Table, name: str, rows: np.ndarray) -> np.ndarray | None:
    """What the file has of a node for these rows; None where it is empty, as for nodes that other groups are shown."""
    if name not in published.column_names:
        return None
    found = published[name].take(pa.array(rows)).to_numpy()
    empty = all(one is None for one in found) if found.dtype.kind == "O" else bool(np.isnan(found).all())
    return None if empty else found
