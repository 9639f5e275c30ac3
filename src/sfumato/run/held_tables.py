"""Tables that several centres hold: all parts together, one centre's own, or none of them.

In:   a study's sources and parts, a data folder.
Out:  tables by name, as network.evaluate takes them.
Not here: what a part is (lang/held.py), reading cells (network/).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import DataError, InputError, RefusedError
from sfumato.lang.spec import ROW, Source, Spec
from sfumato.network.stores.store import StoredRows, located, read_stored
from sfumato.network.tables import layout_of
from sfumato.network.text_files import TextTable

__all__ = ["all_tables", "check_sizes", "empty_tables", "own_tables"]

_NOTHING = "Nothing was read and nothing was spent."


def all_tables(spec: Spec, folder: Path) -> dict[str, Path | StoredRows]:
    """The files that a study's sources name, inside `folder` and nowhere else; of databases the rows, read once."""
    parts = {part.table for part in spec.parts}
    own = read_stored({source.table: located(source, folder) for source in spec.sources if source.table not in parts})
    return own | _joined_parts(spec, folder)


def _joined_parts(spec: Spec, folder: Path) -> dict[str, StoredRows]:
    """For a party that sees all rows: every table of several parts, put together."""
    found: dict[str, StoredRows] = {}
    for table in dict.fromkeys(part.table for part in spec.parts):
        files = tuple(_file(table, located(part.source, folder)) for part in spec.parts if part.table == table)
        if len({file.suffix.lower() for file in files}) > 1:
            raise DataError(f"The parts of {table} are of several kinds (CSV, Parquet). Convert one. {_NOTHING}")
        # The files themselves: a cell that gave one of them another type is read as in a folder of files.
        found[table] = StoredRows(files, "\n".join(str(file.resolve()) for file in files), files)
    return found


def _file(table: str, place: Any) -> Path:
    if not isinstance(place, Path) or place.is_dir():
        raise DataError(f"A part of {table} is no file: only CSV and Parquet files are put together here.")
    return place


def own_tables(spec: Spec, centre: str, data: Path) -> dict[str, Path | StoredRows]:
    """What one centre reads: its own part of every table, from its own folder; or from one file, if there is one table.

    Public tables are not among them: they travel with the round.
    """
    parts = {part.table: part.source for part in spec.parts if part.centre == centre}
    sources = [parts.get(one.table, one) for one in spec.sources if one.table not in spec.public_tables]
    names = [one.table for one in spec.sources if one.table not in spec.public_tables]
    if data.is_file():
        return {_only(names, data): data.resolve()}
    return read_stored(
        {name: located(_found(source, data, centre), data) for name, source in zip(names, sources, strict=True)}
    )


def _only(names: list[str], data: Path) -> str:
    if len(names) != 1:
        raise InputError(f"The study reads {', '.join(names)}: give a folder with all of them, not {data}.")
    return names[0]


def _found(source: Source, folder: Path, centre: str) -> Source:
    if not folder.is_dir():
        raise InputError(
            f"--data {folder}: there is no such folder or file. Give the folder in which {centre} keeps "
            f"{source.path}, or that file itself. Nothing was read and nothing was spent."
        )
    return source


def empty_tables(spec: Spec) -> dict[str, Any]:
    """Every private table without a row: what a coordinator knows of them."""
    found: dict[str, Any] = {}
    for source in spec.sources:
        if source.table not in spec.public_tables:
            layout = layout_of(spec, source.table)
            names = {*layout.columns, *(c.name for c in spec.columns if c.table == source.table)}
            if layout.row_limit is not None and layout.row_limit.column is not None:
                names.add(layout.row_limit.column)
            columns = {name: pa.array([], pa.string()) for name in sorted(names - {ROW})}
            found[source.table] = TextTable(pa.table(columns), None)
    return found


def check_sizes(spec: Spec, sizes: Mapping[str, int]) -> None:
    """A centre with more individuals than was said has no promise as a whole. How many it has is public there."""
    for one in spec.centre_promises:
        # Whoever no centre counts is refused when the study is read (lang/centre_units.py).
        if one.dataset not in sizes or sizes[one.dataset] > one.most:
            raise RefusedError(
                f"This centre has more than {one.most} individuals of {one.dataset}, and the study promises to protect "
                f"whole centres of at most so many. Write persons_per_centre({one.dataset}, N) with a larger N. "
                "Nothing left the centre and nothing was spent."
            )
