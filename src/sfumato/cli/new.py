"""`sfumato new TABLE`: a starter study from a table's header.

In:   a Parquet or CSV file or a folder of them, or a table of a DuckDB or SQLite file, of which only names and types of
      columns are read; of a folder those of its first file.
Out:  a study file, and a schema beside it where asked.
Not here: the text (lang/starter.py).

Of a Parquet file the schema is taken from its footer; statistics and dictionaries there, which hold values, are not
looked at. Of a CSV file the first line is read; types stay unknown, because telling them needs the rows. So they do in
SQLite, where a column may hold anything.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sfumato.core.alike_names import alike_names
from sfumato.errors import DataError, InputError
from sfumato.lang.problem import nearest
from sfumato.lang.proposals import could_be_person
from sfumato.lang.spec import DATABASE_ENDINGS, TABLE_ENDINGS
from sfumato.lang.starter import StarterColumn, starter_schema, starter_study
from sfumato.network.stores.folder import files_in
from sfumato.network.stores.store import file_store
from sfumato.network.text_files import check_separator

__all__ = ["header_of", "run_new"]

_LONGEST_HEADER = 1_000_000
#: How a study names the places that are no files here.
_ELSEWHERE = ("postgresql:", "fsspec:")
#: Files of a folder that are named where the one that was asked for is not there.
_MOST_NAMED = 8


def run_new(
    table: Path,
    out: Path,
    schema: Path | None = None,
    *,
    person: str | None = None,
    each_row: bool = False,
    columns: Sequence[str] | None = None,
    inside: str | None = None,
    ask: Callable[[str, Sequence[str]], str] | None = None,
) -> str:
    """Write the study (and the schema); files that exist are left alone. Returns what to print.

    `person` is the column that says who a row is about, `columns` those to write of (all if None). Where several
    columns could be the person `ask` is asked with their names; without it that is an error that names the option.
    `inside` names the table of a database; one that is alone need not be named.
    """
    inside = _table_inside(table, inside)
    found = header_of(table, inside)
    person = _person(table, found, person, each_row, ask)
    wanted = _wanted(table, found, columns, person, each_row)
    file = f"{table.name}/" if table.is_dir() else table.name
    text = starter_study(inside or _table_name(table), file, wanted, person, each_row)
    targets = [(out, text)]
    columns = [column.name for column in wanted]
    if schema is not None:
        targets.append((schema, starter_schema(table.name, wanted)))
    for path, _ in targets:
        if path.exists():
            raise InputError(f"{path} exists already and was left as it is. Choose another name with --out.")
    for path, text in targets:
        _write_new(path, text)
    names = " and ".join(str(path) for path, _ in targets)
    untyped = any(column.kind == "unknown" for column in wanted)
    types = " Types were not looked at: say which columns are categories." if untyped else ""
    return f"{names}: {len(columns)} column(s), no value read.{types} Fill in what is marked, then: sfumato check {out}"


def _nobody(table: Path, could: Sequence[str]) -> InputError:
    found_some = f"{len(could)} columns of {table.name} could say who a row is about: {', '.join(could)}"
    return InputError(
        f"{found_some if could else f'No column of {table.name} seems to say who a row is about'}. Say which with "
        f"--person {shlex.quote(could[0]) if could else 'COLUMN'}, or --each-row if every row is another person. "
        "Nothing was written."
    )


def _person(
    table: Path,
    found: Sequence[StarterColumn],
    person: str | None,
    each_row: bool,
    ask: Callable[[str, Sequence[str]], str] | None,
) -> str | None:
    names = [column.name for column in found]
    if person is not None and each_row:
        raise InputError("--person and --each-row contradict each other. Nothing was written.")
    if person is not None:
        _check_known(table, [person], names)
        return person
    could = could_be_person(names)
    if each_row or len(could) == 1:
        return None
    if ask is None:
        raise _nobody(table, could)
    answer = ask(f"Who is a row of {table.name} about?", could or names)
    _check_known(table, [answer], names)
    return answer


def _wanted(
    table: Path, found: Sequence[StarterColumn], columns: Sequence[str] | None, person: str | None, each_row: bool
) -> list[StarterColumn]:
    if columns is None:
        return list(found)
    _check_known(table, columns, [column.name for column in found])
    identity = [person] if person is not None else could_be_person(column.name for column in found)
    return [c for c in found if c.name in columns or (c.name in identity and not each_row)]


def _check_known(table: Path, asked: Sequence[str], names: Sequence[str]) -> None:
    for name in asked:
        if name not in names:
            close = nearest(name, names)
            hint = f" Did you mean {close}?" if close else f" It has: {', '.join(names)}."
            raise InputError(f"{table.name} has no column {name}.{hint} Nothing was written.")


def _table_inside(file: Path, inside: str | None) -> str | None:
    """The table of a database that is meant; None of every other file."""
    store = file_store(file) if file.is_file() else None
    if store is None:
        if inside is not None:
            raise InputError(f"{file.name} is no database: leave --table out. Nothing was written.")
        return None
    known = store.tables()
    if inside is None and len(known) == 1:
        return known[0]
    if inside not in known:
        wrong = f"has no table {inside}" if inside is not None else f"has {len(known)} tables"
        raise InputError(f"{file.name} {wrong}: {', '.join(known)}. Say which with --table NAME. Nothing was written.")
    return inside


def header_of(table: Path, inside: str | None = None) -> tuple[StarterColumn, ...]:
    """Names and types of a table's columns; of a database those of the table `inside`."""
    _check_there(table)
    if table.is_dir():
        table = files_in(table)[0]
    try:
        columns = _header(table, inside)
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{table.name} has no header that can be read ({type(error).__name__}). Give a .parquet, .csv, .duckdb or "
            ".sqlite file. Nothing was written."
        ) from error
    if not columns:
        raise DataError(f"{table.name} has no columns. Nothing was written.")
    if told := alike_names(inside or table.name, (column.name for column in columns)):
        raise DataError(f"{told}. Rename one. Nothing was written.")
    return columns


def _header(table: Path, inside: str | None) -> tuple[StarterColumn, ...]:
    store = file_store(table) if inside is not None else None
    if store is not None and inside is not None:
        return _columns(store.header(inside))
    return _csv_header(table) if table.suffix.lower() in (".csv", ".tsv") else _columns(_read_schema(table))


def _check_there(table: Path) -> None:
    if table.exists():
        return
    if str(table).startswith(_ELSEWHERE):
        raise InputError(
            f"sfumato new reads files of this machine, and {table} lies elsewhere. Begin from a file or folder with "
            "the same columns, and write the place into the study's source/2 afterwards (docs/howto/databases.md). "
            "Nothing was read and nothing was written."
        )
    folder = table.resolve().parent
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}. Check the path of the table. Nothing was written.")
    known = sorted(one.name for one in folder.iterdir() if one.suffix.lower() in (*TABLE_ENDINGS, *DATABASE_ENDINGS))
    there = f"There are {', '.join(known[:_MOST_NAMED])}." if known else "It holds no table at all."
    close = nearest(table.name, known)
    hint = f"Did you mean {close}?" if close else f"{there} Give the path of a Parquet, CSV, DuckDB or SQLite file."
    raise DataError(f"{folder} has no file {table.name}. {hint} Nothing was written.")


def _read_schema(table: Path) -> pa.Schema:
    return parquet.read_schema(table)


def _columns(schema: pa.Schema) -> tuple[StarterColumn, ...]:
    return tuple(StarterColumn(field.name, _kind(field.type), str(_shown(field.type))) for field in schema)


def _shown(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _kind(kind: pa.DataType) -> str:
    types = pa.types
    inner = _shown(kind)
    if types.is_integer(inner) or types.is_floating(inner) or types.is_decimal(inner):
        return "number"
    if types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner):
        return "category"
    if types.is_boolean(inner):
        return "number"  # false is 0, true is 1
    if types.is_null(inner):
        return "unknown"  # SQLite keeps no types
    return "time" if types.is_temporal(inner) else "other"


def _csv_header(table: Path) -> tuple[StarterColumn, ...]:
    separator = "\t" if table.suffix.lower() == ".tsv" else ","
    with table.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline(_LONGEST_HEADER)
    names = next(csv.reader([first], delimiter=separator), [])
    check_separator(table, names)
    if any(_looks_like_a_value(name) for name in names):
        raise DataError(
            f"The first line of {table.name} looks like a row, not like names of columns, and rows are private. Add a "
            "header line. Nothing was written."
        )
    return tuple(StarterColumn(name, "unknown") for name in names)


def _looks_like_a_value(name: str) -> bool:
    """Empty, a number, or a date: no name of a column."""
    return not name.strip() or re.fullmatch(r"[\s\d.,:+\-/eETZ%$€]+", name) is not None


def _table_name(table: Path) -> str:
    name = re.sub(r"\W+", "_", table.stem).strip("_") or "rows"
    return name[:1].lower() + name[1:] if name[0].isalpha() else f"table_{name}"


def _write_new(path: Path, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
