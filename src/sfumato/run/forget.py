"""People who asked to be forgotten are taken out before anything is computed, or one cell of theirs is.

In:   forget lines of a study and of the curator's own list, its tables.
Out:  the tables without what is forgotten.
Not here: what was already published from them (evidence/trace.py).

Where the number of people is public (replacing one) a forgotten person keeps one empty row: absent cells are among the
values over which every move is taken, and leaving shows in no published size. Where presence is protected (adding or
removing one) all rows go. A forgotten cell is an absent one, as the study says by missing/2.
Proof: docs/proofs/time_steps.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sfumato.core.places import Place, place_of
from sfumato.errors import DataError, StudyError
from sfumato.lang.declare import declare
from sfumato.lang.reader import read
from sfumato.lang.spec import Forgotten, Spec
from sfumato.lang.structure import check_forgotten
from sfumato.lang.term import indicator
from sfumato.network.evaluate import ID
from sfumato.network.expression import sql_name
from sfumato.network.forgotten import forgotten_cells, forgotten_name, forgotten_rows
from sfumato.network.tables import TableLayout, TableRoom, layout_of
from sfumato.network.text_files import TextTable

__all__ = ["forgotten_names", "listed", "read_forgotten", "unlisted", "without_forgotten"]


def read_forgotten(path: Place) -> tuple[Forgotten, ...]:
    """The forget lines of the curator's own list: a file that stays with the data and is no part of the study."""
    path = place_of(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path.name}: the list of who is forgotten cannot be read. Nothing was read or spent."
        ) from error
    clauses, problems = read(text, path.name)
    declared, more = declare(clauses)
    others = [clause for clause in clauses if clause.head.functor != "forget" or clause.body is not None]
    if problems or more or others:
        place = (*problems, *more, *others)[0].position
        message = f"{place}: a list of who is forgotten holds lines such as forget(uma). and forget(uma, age(uma))."
        raise StudyError(f"{message} Nothing was read and nothing was spent.", (*problems, *more))
    return tuple(declared.forgotten)


def listed(spec: Spec, forgotten: Sequence[Forgotten]) -> tuple[Forgotten, ...]:
    """The study's own forget lines and those of a list. StudyError where what somebody asked to be forgotten would be
    read all the same: one of the list is about no cell that is read, or it may name an owner of things."""
    problems = tuple(check_forgotten(spec, forgotten))
    if problems:
        message = "The list of who is forgotten cannot be kept. Nothing was read and nothing was spent."
        raise StudyError(message, problems)
    return (*spec.forgotten, *forgotten)


def forgotten_names(forgotten: Sequence[Forgotten]) -> frozenset[str]:
    """Whose rows are to be forgotten, as their identifiers stand in the tables."""
    return frozenset(forgotten_name(entry.individual) for entry in forgotten if entry.variable is None)


def without_forgotten(spec: Spec, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables without forgotten people and cells, wherever a column identifies an individual.

    Read and compared as the evaluation does, by the text of the identifier; forget(3) also takes out 03 and 3.0.
    """
    return {name: _kept(spec, name, table) for name, table in tables.items()}


def _kept(spec: Spec, name: str, table: Any) -> Any:
    layout = layout_of(spec, name)
    for dataset in spec.datasets:
        column = layout.identity(indicator(dataset.goal))
        if column is not None:
            present = dataset.adjacency.relation == "replace-one"
            table = _filtered(table, layout, column.name, spec, present)
    return table


def unlisted(spec: Spec, table: pa.Table) -> pa.Table:
    """A table with a row for each individual, those of forgotten people left out."""
    with TableRoom({"rows": table}, ["rows"]) as room:
        gone = forgotten_rows(ID, spec.forgotten)
        ids = room.arrow(f"SELECT NOT ({gone}) AS listed FROM {room.names['rows']}")
    return table.filter(ids["listed"])


def _filtered(table: Any, layout: TableLayout, person: str, spec: Spec, present: bool) -> pa.Table | TextTable:
    name = layout.table
    with TableRoom({name: table}, [name]) as room:
        room.types(name, [person])  # a column that is not there is refused by name
        columns = [row[0] for row in room.run(f"DESCRIBE {room.names[name]}")]
        whole, cells = forgotten_rows(person, spec.forgotten), forgotten_cells(spec, layout)
        if layout.public:  # who is in it, and what it says of whom, is known and shapes the plan; its values go
            cells = {one.name: f"({whole}) OR ({cells.get(one.name, 'FALSE')})" for one in layout.values}
            whole, present = "FALSE", False
        shown = ", ".join(_read_or_absent(column, cells.get(column)) for column in columns)
        query = f"SELECT {shown} FROM {room.names[name]} WHERE NOT ({whole})"
        if present:
            empty = ", ".join(sql_name(c) if c == person else f"NULL AS {sql_name(c)}" for c in columns)
            query += f" UNION ALL SELECT DISTINCT {empty} FROM {room.names[name]} WHERE {whole}"
        return room.again(name, room.arrow(query))


def _read_or_absent(column: str, forgotten: str | None) -> str:
    name = sql_name(column)
    return name if forgotten is None else f"CASE WHEN {forgotten} THEN NULL ELSE {name} END AS {name}"
