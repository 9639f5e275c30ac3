"""Whether the files of a run stayed as they were from its first look at them to its last.

In:   tables as a run is given them, before anything is read of them.
Out:  an error, before anything is spent, where a file or the list of a folder's files is another at the end.
Not here: releases of whole tables (run/files.py, run/partition.py); databases and files elsewhere, whose rows are read
once (network/stores/).

A study looks at a file several times: who has several rows, what they add up to, which account it has. A file that is
exchanged in between is counted by rules that hold for the other one: of somebody who had one row there a thousand would
count here, whatever the study says of rows per person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.core.whole_file import file_mark
from sfumato.errors import DataError
from sfumato.network.plain import Portion
from sfumato.network.stores.folder import files_in
from sfumato.network.stores.store import StoredRows
from sfumato.network.text_files import TextTable

__all__ = ["unchanged"]

#: Every file by its place; None of what cannot be looked at, which whoever reads it says.
_Marks = dict[Path, tuple[int, int, int] | None]


@contextmanager
def unchanged(tables: Mapping[str, Any]) -> Iterator[None]:
    """What is read of these tables meanwhile is of one moment; DataError if a file of theirs changed."""
    before = _marks(tables)
    yield
    after = _marks(tables)
    others = dict(before.items() ^ after.items())
    if not others:
        return
    other = min(others)
    raise DataError(
        f"{other.name} changed while it was read: some numbers would be of old rows and others of new ones. Run again "
        "when nobody writes. Nothing was published and nothing was spent."
    )


def _marks(tables: Mapping[str, Any]) -> _Marks:
    return {path: _mark(path) for table in tables.values() for path in _files(table)}


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        return file_mark(path)
    except OSError:
        return None


def _files(table: Any) -> Iterable[Path]:
    """The files that a table is read from whenever it is looked at."""
    match table:
        case StoredRows(rows=inner) | Portion(table=inner) | TextTable(table=inner):
            return _files(inner)
        case tuple():
            return map(Path, table)
        case str() | Path():
            return _in_place(Path(table))
    return ()


def _in_place(path: Path) -> list[Path]:
    """A file, or a folder's files: one more or one less is a change, too."""
    try:
        return files_in(path) if path.is_dir() else [path]
    except (DataError, OSError):  # a folder that is no table any more
        return []
