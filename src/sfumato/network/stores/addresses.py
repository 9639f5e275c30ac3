"""Where a server or a bucket is: said by the environment or beside the data, and never by a study.

In:   the data folder, what is looked for.
Out:  the address; the one name of a place that may be written in many ways.
Not here: opening it (the stores).
"""

from __future__ import annotations

import os
import posixpath
import tomllib
from pathlib import Path

from sfumato.errors import DataError

__all__ = ["address_of", "place_of"]

#: Beside the data; holds addresses and is read by nobody else.
_FILE = "sources.toml"
#: Kinds of address that are files of this machine.
_HERE = frozenset(("file", "local"))


def address_of(folder: Path, section: str, variable: str, what: str, example: str) -> str:
    """The address in the environment's `variable`, or in `section` of sources.toml in the data folder."""
    if address := os.environ.get(variable):
        return address
    path = folder / _FILE
    try:
        address = tomllib.loads(path.read_text(encoding="utf-8")).get(section, {}).get("address")
    except (OSError, ValueError, AttributeError):
        address = None
    if isinstance(address, str):
        return address
    raise DataError(
        f"A source lies in {what} and nobody said where that is. Set {variable} to its address, or write it into "
        f'{path}: [{section}] and below it address = "{example}". Nothing was read and nothing was spent.'
    )


def place_of(address: str) -> str:
    """One name for a place, however its address is written: of a file of this machine, where it really lies.

    >>> place_of("s3://bucket/./north/../stays.parquet"), place_of("file:///data//stays.parquet")
    ('s3://bucket/stays.parquet', '/data/stays.parquet')
    """
    kind, mark, rest = address.partition("://")
    if mark and kind not in _HERE:
        return f"{kind}://{posixpath.normpath(rest)}"
    return str(Path(rest if mark else address).resolve())
