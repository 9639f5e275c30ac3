"""Parquet and CSV files at any address that fsspec opens: s3://, gs://, abfs://, https://, file://, memory://.

In:   the address of a place (environment or sources.toml beside the data, never the study), names of files or folders.
Out:  their rows, read once and put aside where they are many; refused if a file changed meanwhile.

Which kinds of address there are, and who may open them, is the user's fsspec: its packages, its configuration. A study
names files inside the place and cannot leave it. What such a library says when it fails is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, final

import pyarrow as pa

from sfumato.errors import DataError, SfumatoError
from sfumato.lang.spec import TABLE_ENDINGS
from sfumato.network.agreed import agreed, decimal_words, first_other
from sfumato.network.spill import SpillFolder
from sfumato.network.stores.addresses import address_of, place_of
from sfumato.network.stores.spool import gathered
from sfumato.network.stores.store import Store, StoredRows, unreadable
from sfumato.network.text_files import TextTable, header, read_text

__all__ = ["FarFiles"]

_VARIABLE = "SFUMATO_FSSPEC"
_BLOCK = 1 << 22


@final
@dataclass(frozen=True)
class FarFiles(Store):
    """source(stays, 'fsspec:stays.parquet'), source(stays, 'fsspec:stays/'): inside the place that was named."""

    address: str = field(repr=False)
    prefix: ClassVar[str] = "fsspec"

    @classmethod
    def of(cls, folder: Path) -> FarFiles:
        """The place named in the environment (SFUMATO_FSSPEC) or in sources.toml of the data folder."""
        what = "files elsewhere"
        return cls(address_of(folder, cls.prefix, _VARIABLE, what, "s3://bucket/folder"))

    def read(self, names: Sequence[str]) -> dict[str, StoredRows]:
        system, base = self._opened()
        try:
            found = {name: _files(system, base, name) for name in names}
            before = _marks(system, found)
            rows = {name: _rows(system, base, name, files) for name, files in found.items()}
            changed = _marks(system, found) != before
        except SfumatoError:
            raise
        except Exception as error:  # every kind of address has its own errors
            failed = type(error).__name__
        else:
            if changed:
                raise DataError(
                    "A file changed while it was read: some rows may be old and others new. Run again when nobody "
                    "writes. Nothing was published and nothing was spent."
                )
            return rows
        raise unreadable("A file at the address of fsspec", failed)

    def _opened(self) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs

            return url_to_fs(self.address)
        except ImportError:
            kind = self.address.partition("://")[0]
            raise DataError(
                f"Reading from {kind}:// needs fsspec and its package for {kind}: pip install fsspec (s3fs, gcsfs, "
                "adlfs …). Nothing was read and nothing was spent."
            ) from None
        except Exception as error:
            failed = type(error).__name__
        raise unreadable("The address of fsspec", failed)


def _files(system: Any, base: str, name: str) -> list[str]:
    """The files of one table, by name; all of one kind."""
    place = f"{base.rstrip('/')}/{name.rstrip('/')}"
    system.invalidate_cache()
    if not name.endswith("/"):
        if system.isfile(place):
            return [place]
        raise _missing(name)
    found = [file for file in system.find(place, maxdepth=1) if not file.rsplit("/", 1)[-1].startswith((".", "_"))]
    kinds = {PurePosixPath(file).suffix.lower() for file in found}
    if len(kinds) != 1 or not kinds <= set(TABLE_ENDINGS):
        raise _missing(name)
    return sorted(found)


def _missing(name: str) -> DataError:
    what = "folder with files of one kind" if name.endswith("/") else "file"
    return DataError(
        f"There is no {what} {name} at the address of fsspec. Put it there, or name another ({', '.join(TABLE_ENDINGS)}"
        "). Nothing was read and nothing was spent."
    )


def _marks(system: Any, found: dict[str, list[str]]) -> list[Any]:
    """What tells that a file is the one it was: its size, and its version or time as the place keeps it."""
    system.invalidate_cache()
    return [(system.size(file), system.checksum(file)) for files in found.values() for file in files]


def _rows(system: Any, base: str, name: str, files: list[str]) -> StoredRows:
    rows = _parquet(system, files) if files[0].lower().endswith(".parquet") else _text(system, files)
    return StoredRows(rows, place_of(system.unstrip_protocol(f"{base.rstrip('/')}/{name}")))


def _parquet(system: Any, files: list[str]) -> Any:
    from pyarrow import parquet

    schemas = []
    for file in files:
        with system.open(file, "rb") as stream:
            schemas.append(parquet.read_schema(stream))
    found = agreed(schemas)
    if found is None:
        other = files[first_other(schemas)]
        raise DataError(
            f"{other.rsplit('/', 1)[-1]} has other columns or types than {files[0].rsplit('/', 1)[-1]}: they are no "
            "one table. Nothing was published and nothing was spent."
        )
    kinds = [pa.string() if one.name in found.numbers else one.type for one in found.schema]
    schema = pa.schema(list(zip(found.schema.names, kinds, strict=True)))

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            with system.open(file, "rb") as stream, parquet.ParquetFile(stream) as opened:
                for batch in opened.iter_batches():
                    yield pa.RecordBatch.from_arrays(
                        [_as(*one) for one in zip(batch.columns, kinds, strict=True)], schema=schema
                    )

    rows = gathered(batches(), schema)
    return TextTable(rows, found.numbers, found.numbers) if found.numbers else rows


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A number as text where files of one table write it differently; a decimal that is none is absent."""
    if column.type == kind:
        return column
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    # A moment of smaller units is cut, and no error quotes it.
    return decimal_words(column) if pa.types.is_floating(column.type) else column.cast(kind, safe=False)


def _text(system: Any, files: list[str]) -> TextTable:
    folder = SpillFolder()
    try:
        paths = []
        for file in files:
            paths.append(folder.path / f"{len(paths)}{PurePosixPath(file).suffix.lower()}")
            with system.open(file, "rb") as stream, paths[-1].open("wb") as copy:
                while block := stream.read(_BLOCK):
                    copy.write(block)
        if any(header(path) != header(paths[0]) for path in paths[1:]):
            raise DataError(
                "The files of a folder have different headers. Write the same names in the same order into the first "
                "line of every part. Nothing was read and nothing was spent."
            )
        return read_text(*paths)
    finally:
        folder.close()
