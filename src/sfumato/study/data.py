"""Where a study's rows come from: files and data frames of any kind, looked at by name and type until a run.

In:   a path, or a pandas, polars or DuckDB table, anything with __arrow_c_stream__, a mapping of columns.
Out:  the names of its columns; tables by name for run_plan.
Not here: reading cells (network/tables.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import DataError, InputError
from sfumato.lang.problem import nearest
from sfumato.lang.spec import DATABASE_ENDINGS, Source

__all__ = ["as_table", "column_names", "data_of_run", "file_name", "in_database", "is_path"]


def is_path(data: Any) -> bool:
    """Whether data are given by where they lie."""
    return isinstance(data, str | os.PathLike)


def file_name(table: str, data: Any) -> str:
    """The file the study names: the last part of a path, or an invented one for what is in memory.

    >>> file_name("stays", "data/stays.csv"), file_name("stays", {"days": [1]})
    ('stays.csv', 'stays.parquet')
    """
    return Path(os.fspath(data)).name if is_path(data) else f"{table}.parquet"


def in_database(data: Any) -> bool:
    """Whether data are one table of a file with several."""
    return is_path(data) and Path(os.fspath(data)).suffix.lower() in DATABASE_ENDINGS


def column_names(data: Any) -> tuple[str, ...] | None:
    """The names of a frame's columns; None of a file, which is not opened before a run."""
    if data is None or is_path(data):
        return None
    names: Any = None
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        names = data.schema.names
    elif isinstance(data, Mapping):
        names = data.keys()
    else:
        names = getattr(data, "columns", None)
    if names is None and hasattr(data, "__arrow_c_stream__"):
        names = pa.table(data).column_names
    if names is None or callable(names):
        raise InputError(
            f"a {type(data).__name__} is no table. Give a path to a Parquet or CSV file, a pandas or polars frame, an "
            "Arrow table, a DuckDB relation or a mapping of columns"
        )
    return tuple(str(name) for name in names)


def as_table(data: Any) -> Any:
    """A frame as the run reads it: paths and Arrow tables as they are, everything else by the Arrow interface."""
    if is_path(data):
        return Path(data)
    if isinstance(data, pa.Table | Mapping):
        return data
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if hasattr(data, "to_arrow_table"):  # a DuckDB relation
        return data.to_arrow_table()
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc"):
        return pa.table(data)
    return data


def _as_declared(declared: Mapping[str, Any]) -> dict[str, Any]:
    missing = [name for name, data in declared.items() if data is None]
    if missing:
        raise DataError(f"The rows of {', '.join(missing)} are not known: run(data). Nothing was spent.")
    return _tables(declared)


def _from_folder(declared: Mapping[str, Any], files: Mapping[str, str], folder: Path) -> dict[str, Any] | Path:
    if all(data is None for data in declared.values()):
        return folder
    inside = {name: folder / files[name] for name, data in declared.items() if data is None or is_path(data)}
    return _tables({**declared, **inside})


def data_of_run(declared: Mapping[str, Any], files: Mapping[str, str], given: Any) -> dict[str, Any] | Path:
    """A table for every name: what the run is given, otherwise what the study was declared with.

    A folder for a study that was read from text is given back: the study's own sources say what lies in it.
    """
    if given is None:
        return _as_declared(declared)
    if is_path(given) and Path(given).is_dir():
        return _from_folder(declared, files, Path(given))
    if isinstance(given, Mapping) and set(given) >= set(declared):
        return _tables({name: given[name] for name in declared})
    if isinstance(given, Mapping):
        _check_named(declared, given)
    if len(declared) == 1:
        return _tables(dict.fromkeys(declared, given))
    raise DataError(
        f"This study has the tables {', '.join(declared)}. Give a folder with their files, or a mapping from each name "
        "to its table. Nothing was read and nothing was spent."
    )


def _check_named(declared: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse tables by names that the study does not have, or not all of them; columns by name are one table."""
    if not any(is_path(one) or _is_table(one) for one in given.values()):
        return
    wrong = [name for name in given if name not in declared]
    missing = [name for name in declared if name not in given]
    close = [
        f"{name!r} (did you mean {near!r}?)" if (near := nearest(str(name), missing)) else repr(name) for name in wrong
    ]
    told = f"There is no table {', '.join(close)} in this study. " if wrong else ""
    raise DataError(f"{told}The rows of {', '.join(missing)} are missing. Nothing was read and nothing was spent.")


def _is_table(data: Any) -> bool:
    """Whether a value is a table of its own, and no column."""
    return isinstance(data, Mapping | pa.RecordBatchReader) or any(hasattr(data, one) for one in _OF_TABLES)


#: What frames and tables have, and columns have not.
_OF_TABLES = ("columns", "column_names", "to_arrow_table")


def _tables(given: Mapping[str, Any]) -> dict[str, Any]:
    """Frames as the run reads them, files where they lie, of databases the table of the same name."""
    from sfumato.network.stores.store import located, read_stored

    places = {}
    for name, path in ((name, Path(data)) for name, data in given.items() if is_path(data)):
        if not path.exists():
            raise DataError(
                f"{path.parent.resolve()} has no file {path.name}, which the table {name!r} names. Nothing was read "
                "and nothing was spent."
            )
        file = f"{path.name}/" if path.is_dir() else path.name
        places[name] = located(Source(name, file, name), path.parent)
    return {name: as_table(data) for name, data in given.items() if name not in places} | read_stored(places)
