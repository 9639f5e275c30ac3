"""A folder of Parquet files, or of CSV files, as one table.

In:   the folder; files in it by name, hidden ones and other folders left out.
Out:  one table, the files one below the other in the order of their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import DataError
from sfumato.lang.spec import TABLE_ENDINGS
from sfumato.network.plain import Plain, plain_files
from sfumato.network.text_files import TextTable, header, read_text

__all__ = ["files_in", "read_files", "read_folder"]


def files_in(folder: Path) -> list[Path]:
    """The tables in a folder, by name; all of one kind."""
    found = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith((".", "_")))
    kinds = {path.suffix.lower() for path in found}
    if len(kinds) == 1 and kinds <= set(TABLE_ENDINGS):
        return found
    what = "holds no file" if not found else "holds files of several kinds, or of another kind"
    raise DataError(
        f"The folder {folder.name} {what}. Put the parts of one table into it, all of them ending in one of "
        f"{', '.join(TABLE_ENDINGS)}. Nothing was read and nothing was spent."
    )


def read_folder(folder: Path, name: str) -> Plain | TextTable:
    """The parts as one table. Private: no message quotes them."""
    return read_files(files_in(folder), name)


def read_files(files: Sequence[Path], name: str) -> Plain | TextTable:
    """Files of one kind as one table. Private: no message quotes them."""
    if files[0].suffix.lower() == ".parquet":
        return plain_files(files)
    names = header(files[0])
    for file in files[1:]:
        if header(file) != names:
            raise DataError(
                f"The table {name}: {file.name} has another header than {files[0].name}. Write the same names in the "
                "same order into the first line of every part. Nothing was read and nothing was spent."
            )
    return read_text(*files)
