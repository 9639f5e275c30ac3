"""Where a source may lie: a file or folder inside the data folder or at an address, a table of a database or server.

In:   a source as the study writes it.
Out:  why no run could read it, from its name alone.
Not here: reading it (network/stores/).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import PurePosixPath, PureWindowsPath

from sfumato.lang.spec import DATABASE_ENDINGS, TABLE_ENDINGS, Source

__all__ = ["server_names", "written_names", "wrong_path"]

_FAR = "fsspec:"
_PLAIN = r"[^\W\d][\w$]*"
_NAME = rf'(?:{_PLAIN}|"(?:[^"\0]|"")+")'
_SERVER_TABLE = re.compile(rf"postgresql:{_NAME}(\.{_NAME})?")


def server_names(written: str) -> list[str]:
    """The table of a server, its schema before it where one is written; blanks and signs stand in double quotes.

    >>> server_names('office."Stays 2024"'), server_names('"a.b"')
    (['office', 'Stays 2024'], ['a.b'])
    """
    found = re.findall(_NAME, written)
    return [name[1:-1].replace('""', '"') if name.startswith('"') else name for name in found]


def written_names(names: Iterable[str]) -> str:
    """How a study writes them.

    >>> print(written_names(["office", "Stays 2024"]))
    office."Stays 2024"
    """
    return ".".join(name if re.fullmatch(_PLAIN, name) else '"' + name.replace('"', '""') + '"' for name in names)


def _outside(path: str) -> str | None:
    if path.startswith(("/", "\\", "~")) or PureWindowsPath(path).drive:
        return "is not a path inside the data folder"
    if os.path.normpath(path).split(os.sep)[0] == os.pardir:
        return "lies outside the data folder"
    if any(sign in path for sign in "*?["):
        return "has one of the signs * ? [, which could name several files"
    return None


def _ending(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


def _no_table_file(source: Source) -> str | None:
    """Of what is no database: a folder, or a file that is a table by its ending."""
    if source.name is not None:
        return "names a table inside a file that is no database by its name"
    if source.path.endswith("/") or _ending(source.path) in TABLE_ENDINGS:
        return None
    return "is neither Parquet nor CSV by its name"


def wrong_path(source: Source) -> str | None:
    """Why no run could read it, from its name alone."""
    path = source.path
    if path.startswith("postgresql:"):
        return None if _SERVER_TABLE.fullmatch(path) and source.name is None else "names no table of the server"
    if path.startswith(_FAR):  # a database is a file of this machine
        return _outside(path.removeprefix(_FAR)) or _no_table_file(source)
    outside = _outside(path)
    if outside:
        return outside
    if _ending(path) in DATABASE_ENDINGS:
        return None if source.name else "is a database and does not say which of its tables"
    return _no_table_file(source)
