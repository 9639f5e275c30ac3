"""The caller's tables inside one DuckDB, and what the study says about their columns.

In:   table -> Arrow table, data frame or path, as the caller handed them in; the Spec.
Out:  TableRoom: a connection that can read these and nothing else; Layout: which columns identify, which carry values.
Not here: the queries (network/structure.py, network/evaluate.py).

A path in the study's text is never opened from here. Errors of the engine quote values, so they are dropped, not
chained. Types come from a schema and never from cells (network/plain.py, network/text_files.py). What does not fit into
memory goes to a private folder that is removed (network/spill.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from sfumato.core.cell import MOMENT
from sfumato.core.tables import nearest
from sfumato.errors import DataError, SchemaError
from sfumato.lang.spec import ROW, TABLE_ENDINGS, Column, Relation, RowLimit, Spec
from sfumato.lang.term import Compound, Variable, indicator
from sfumato.network.database import Database, borrowed
from sfumato.network.expression import sql_level, sql_name
from sfumato.network.plain import TEXT, Plain, Portion, number_text, plain_file, plain_table
from sfumato.network.stores.folder import read_files, read_folder
from sfumato.network.stores.spool import SpooledRows
from sfumato.network.stores.store import StoredRows
from sfumato.network.text_files import TextTable, read_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "FLOATS",
    "NUMBERS",
    "TEXT",
    "TableLayout",
    "TableRoom",
    "decimal_name",
    "layout_of",
    "name_text",
    "name_writing",
    "naming_columns",
    "number_text",
    "plain_type",
    "text_as_number",
    "text_name",
]

Answer = TypeVar("Answer")

#: Rows that are looked at together where a whole table is not.
_BATCH = 200_000

#: What the engine says of Ctrl-C, as a RuntimeError.
_INTERRUPTED = "Query interrupted"

#: The engine's names of what is a number.
NUMBERS = frozenset(
    (
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
        *("UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"),
    )
)
FLOATS = frozenset(("FLOAT", "DOUBLE"))
#: Types whose text names one thing; what is made of several values, or of several types, has no such text.
_NAMES = NUMBERS | {
    *("VARCHAR", "ENUM", "UUID", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    *("TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE", "NULL", TEXT),
}


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table as the study declares it: identity columns by the variable they bind, value columns, relations."""

    table: str
    public: bool
    identities: tuple[tuple[str, Column], ...]
    values: tuple[Column, ...]
    relations: tuple[Relation, ...]
    row_limit: RowLimit | None
    each_person: bool

    def identity(self, predicate: str) -> Column | None:
        """The column that names things of one kind, such as patient/1."""
        return next((column for _, column in self.identities if indicator(column.atom) == predicate), None)

    def naming(self, predicate: str) -> tuple[Column, ...]:
        """All columns that name things of one kind: of two people in one row, of a public table, there are two."""
        return tuple(dict.fromkeys(column for _, column in self.identities if indicator(column.atom) == predicate))

    def bound(self, variable: str) -> Column | None:
        """The column that binds a variable."""
        return next((column for name, column in self.identities if name == variable), None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every declared column once."""
        return tuple(dict.fromkeys([c.name for _, c in self.identities] + [c.name for c in self.values]))


def layout_of(spec: Spec, table: str) -> TableLayout:
    """What the study says about one table."""
    random = spec.random_predicates
    identities, values = [], []
    for column in (column for column in spec.columns if column.table == table):
        match column.atom:
            case atom if indicator(atom) in random:
                values.append(column)
            case Compound(arguments=(Variable(name=name),)):
                identities.append((name, column))
    return TableLayout(
        table,
        table in spec.public_tables,
        tuple(identities),
        tuple(values),
        tuple(relation for relation in spec.relations if relation.table == table),
        next((limit for limit in spec.row_limits if limit.table == table), None),
        any(one.table == table for one in spec.each_person),
    )


def plain_type(kind: str) -> str:
    """The name of a type without its parameters; the whole of it when it is made of other types.

    >>> plain_type("DECIMAL(18,3)"), plain_type("DECIMAL(18,3)[]"), plain_type("BIGINT[]"), plain_type('"NULL"')
    ('DECIMAL', 'DECIMAL(18,3)[]', 'BIGINT[]', 'NULL')
    """
    if kind.endswith("]"):
        return kind
    return kind.split("(", maxsplit=1)[0].strip().strip('"').upper()


class TableRoom:
    """An in-memory DuckDB that holds the named tables and no others. Use as a context manager."""

    def __init__(
        self,
        tables: Mapping[str, Any],
        wanted: Sequence[str],
        numbered: Collection[str] = (),
        naming: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        #: Tables without an identity column get one: the number of the row.
        self._numbered = frozenset(numbered)
        #: Columns that say whose a row is, by table: their whole numbers have one text, as 7 and as 7.0.
        self._naming = naming or {}
        #: Those of them that hold floating-point numbers, and the engine's type.
        self.decimal_names: dict[str, dict[str, str]] = {}
        #: Columns of text that are numbers where the study says so, by table.
        self.text: dict[str, frozenset[str]] = {}
        self._nested: dict[str, frozenset[str]] = {}
        self._plains: dict[str, Plain] = {}
        self._described: dict[str, dict[str, str]] = {}
        #: (table, column) of identifiers of which a pass found none absent (network/crowd.py).
        self.complete: set[tuple[str, str]] = set()
        # The engine folds the case of names; the study does not.
        self.names = {name: f"t{place}" for place, name in enumerate(wanted)}
        try:
            for name in wanted:
                if name not in tables:
                    raise SchemaError(
                        f"The table {name} is needed and was not handed in{nearest(name, list(tables))}. Give its path "
                        "or an Arrow table. Nothing was spent."
                    )
                self._plains[name] = _plain(name, tables[name])
            for name in wanted:
                self._add(name)
        except BaseException:
            self.close()
            raise

    @cached_property
    def _database(self) -> Database:
        return borrowed(self._files)

    @property
    def connection(self) -> DuckDBPyConnection:
        """The database, opened when it is first asked: a study without public tables is planned without one."""
        return self._database.connection

    @property
    def _files(self) -> list[Path]:
        return [path for plain in self._plains.values() for path in plain.files]

    def __enter__(self) -> TableRoom:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the tables and what was written aside; a second time nothing happens."""
        if "_database" in self.__dict__:
            self.__dict__.pop("_database").hand_back()

    def _add(self, name: str) -> None:
        plain = self._plains[name]
        self.text[name], self._nested[name] = plain.text, plain.nested
        if not plain.files:
            self._add_plain(name)
            return
        listed = ", ".join(sql_level(str(path)) for path in plain.files)
        # A column is what the files say: the name of a folder above them, such as age=7, would be everybody's cell.
        source = f"read_parquet([{listed}], hive_partitioning = false)"
        self._show(name, {column: sql_name(column) for column in plain.shown}, source)

    def _add_plain(self, name: str) -> None:
        plain, raw = self._plains[name], f"{self.names[name]}_raw"
        self._guarded(lambda: self.connection.register(raw, plain.source))
        self._show(name, plain.shown, raw)

    def _show(self, name: str, columns: Mapping[str, str], source: str) -> None:
        own = {column: text for column, text in columns.items() if column != ROW or name not in self._numbered}
        shown = ", ".join(f"{expression} AS {sql_name(column)}" for column, expression in own.items())
        if name in self._numbered:
            shown += f", row_number() OVER () AS {sql_name(ROW)}"
        view = f"SELECT {shown} FROM {source}"
        if named := self._named(name, view):
            texts = ", ".join(f"{text} AS {sql_name(column)}" for column, text in named.items())
            view = f"SELECT * REPLACE ({texts}) FROM ({view})"
        self._described.pop(self.names[name], None)
        if only := self._plains[name].only:
            view = f"SELECT * FROM ({view}) WHERE {only}"
        self.run(f"CREATE OR REPLACE VIEW {self.names[name]} AS {view}")

    def _named(self, name: str, view: str) -> dict[str, str]:
        """SQL for the text of columns that name people, where it is not what stands there.

        One absent cell makes decimals out of whole numbers, in pandas and in files it writes: the text of 7 would be
        7.0, and everybody in that file somebody else.
        """
        naming = dict.fromkeys((*self._naming.get(name, ()), *self._plains[name].naming))
        if not naming:
            return {}
        kinds = {row[0]: plain_type(str(row[1])) for row in self.run(f"DESCRIBE {view}")}
        self.decimal_names[name] = {one: kinds[one] for one in naming if kinds.get(one) in FLOATS}
        return {column: _NAMING[kind](sql_name(column)) for column in naming if (kind := kinds.get(column)) in _NAMING}

    def _read_plainly(self) -> bool:
        """Read through Arrow what the engine failed to read itself; whether there was such a thing."""
        native = [name for name, plain in self._plains.items() if plain.files]
        for name in native:
            self._plains[name] = replace(self._plains[name], files=())
        for name in native:
            self._add_plain(name)
        return bool(native)

    def has(self, table: str) -> bool:
        """Whether a table of ours was made before."""
        return bool(self.run(f"SELECT 1 FROM duckdb_tables() WHERE table_name = '{table}'"))

    def plain_columns(self, table: str, nested: bool = False) -> list[str]:
        """Every column that holds single values, declared or not; with `nested` those that do not."""
        return [column for column in self._columns(table) if (column in self._nested[table]) == nested]

    def _columns(self, table: str) -> dict[str, str]:
        """The engine's type of every column; it is asked once, for as long as the table is shown in the same way."""
        shown = self.names[table]  # friends' sums are shown beside a table's own columns, under another name (peers.py)
        if shown not in self._described:
            self._described[shown] = {row[0]: str(row[1]) for row in self.run(f"DESCRIBE {shown}")}
        return self._described[shown]

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """Run one statement of ours and give its rows."""
        return self._guarded(lambda: self.connection.execute(query).fetchall())

    def arrow(self, query: str) -> pa.Table:
        """Run one query of ours and give an Arrow table, listed words as text."""
        found = self._guarded(lambda: self.connection.sql(query).to_arrow_table())
        listed = [place for place, kind in enumerate(found.schema.types) if pa.types.is_dictionary(kind)]
        for place in listed:
            found = found.set_column(place, found.column_names[place], found.column(place).cast(pa.string()))
        return found

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Run one query of ours and give its rows a part at a time, in the order of the table, never all of them."""
        import duckdb

        given = 0
        while True:
            rest = f"SELECT * FROM ({query}) OFFSET {given}" if given else query
            reader = self._guarded(lambda rest=rest: self.connection.sql(rest).to_arrow_reader(_BATCH))
            try:
                for batch in reader:
                    yield batch
                    given += batch.num_rows
                return
            except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
                failed = _failed(error)
            if not self._read_plainly():
                raise _unreadable(failed)

    @contextmanager
    def held(self, name: str, table: pa.Table) -> Iterator[None]:
        """An Arrow table under a name of ours, for a while."""
        self.connection.register(name, table)
        try:
            yield
        finally:
            self.connection.unregister(name)

    def _guarded(self, action: Callable[[], Answer]) -> Answer:
        import duckdb

        # What the engine says when it fails may quote cells, so it is not repeated.
        try:
            return action()
        except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
            failed = _failed(error)
        if self._read_plainly():
            return self._guarded(action)
        raise _unreadable(failed)

    def types(self, table: str, columns: Sequence[str]) -> dict[str, str]:
        """The engine's type of each declared column; a missing one is refused by name."""
        found = self._columns(table)
        for column in columns:
            if column not in found:
                raise SchemaError(
                    f"The table {table} has no column {column}{nearest(column, list(found))}, which the study "
                    "declares. Nothing was spent."
                )
        return {column: self._plains[table].kind(column, found[column]) for column in columns}

    def alone(self, table: str) -> tuple[str, ...]:
        """The columns of identifiers that were found to be all there and all different, before the table was cut."""
        return self._plains[table].alone

    def whole(self, table: str) -> frozenset[str]:
        """The columns that hold whole numbers by somebody's word: public, as types are that no cell decides."""
        return self._plains[table].whole - self.text[table]

    def decimals(self, table: str) -> frozenset[str]:
        """The columns of floating-point numbers, of which a cell may be none."""
        return frozenset(name for name, kind in self._columns(table).items() if plain_type(kind) in FLOATS)

    def selected(self, table: str, condition: str) -> pa.Table | TextTable:
        """The rows of a table that satisfy a condition of ours, to be handed in again."""
        return self.again(table, self.arrow(f"SELECT * FROM {self.names[table]} WHERE {condition}"))

    def again(self, table: str, rows: pa.Table) -> pa.Table | TextTable:
        """Rows of a table, to be handed in as it was."""
        text, numbers = self.text[table], self._plains[table].numbers
        return TextTable(rows, text, numbers) if text else rows

    def check_identities(self, layout: TableLayout) -> None:
        """Whoever a row belongs to is told by the text of a cell, so the cell must be one value of one type."""
        for name, kind in self.types(layout.table, [column.name for _, column in layout.identities]).items():
            if plain_type(kind) not in _NAMES:
                raise SchemaError(
                    f"The column {name} of {layout.table} says whose a row is and is of type "
                    f"{plain_type(kind).split('(', maxsplit=1)[0]}. Convert it to text or to whole numbers. Nothing "
                    "was spent."
                )

    def check_same_identities(self, layouts: Sequence[TableLayout], predicate: str) -> None:
        """Individuals are recognised by the text of their identifier, and a decimal writes 1 as 1.0."""
        first: tuple[str, str] | None = None
        for table, column in ((one.table, column) for one in layouts for column in one.naming(predicate)):
            (kind,) = self.types(table, [column.name]).values()
            written = _written_as(kind)
            if first is not None and written != first[0]:
                raise SchemaError(
                    f"The columns {first[1]} and {column.name} of {table} name the same individuals, one as "
                    f"{first[0]} and the other as {written}: 1 and 1.0 would be two of them. Convert both to whole "
                    "numbers or to text. Nothing was spent."
                )
            first = first or (written, f"{column.name} of {table}")

    def numbers_in(self, table: str, column: str) -> bool:
        """Whether a column of a PUBLIC table holds numbers: by its type, or text that is numbers only."""
        kind = plain_type(self.types(table, [column])[column])
        if kind != TEXT:
            return kind in NUMBERS - {"BOOLEAN"}
        cell = sql_name(column)
        ((real,),) = self.run(
            f"SELECT bool_and(isfinite(TRY_CAST({cell} AS DOUBLE)) IS TRUE) FROM {self.names[table]} "
            f"WHERE {cell} IS NOT NULL"
        )
        return bool(real)


def _failed(error: Exception) -> str:
    """The kind of a failure of the engine; Ctrl-C is told as what it is, and so is what the engine did not say."""
    import duckdb

    if isinstance(error, duckdb.InterruptException) or str(error) == _INTERRUPTED:
        raise KeyboardInterrupt
    if not isinstance(error, duckdb.Error | pa.ArrowException):
        raise error
    return type(error).__name__


def _unreadable(failed: str) -> DataError:
    return DataError(
        f"The tables could not be evaluated ({failed}). Check that every declared column exists and has the declared "
        "type. Nothing was published and nothing was spent."
    )


def decimal_name(cell: str) -> str:
    """SQL for the text by which a floating-point cell names somebody or a group; what is no number names nothing.

    Of 32 bits it is that of the same number in 64, which it becomes where a word made objects of the column.
    """
    return f"(CASE WHEN NOT isnan({cell}) THEN {number_text(f'{cell}::DOUBLE')} END)"


def text_name(cell: str) -> str:
    """SQL for the text by which a cell of text names somebody, as it would be written if it stood in its file alone.

    pandas writes 7.0 for everybody's 7 where somebody's cell is absent, a midnight to everybody's day where somebody's
    has an hour, and .000 to everybody's hour where somebody's has a fraction of a second.
    """
    whole = f"suffix({cell}, '.0') AND regexp_full_match({cell}, '-?(0|[1-9][0-9]{{0,15}})[.]0')"
    moment = f"substr({cell}, 11, 1) = ' ' AND regexp_full_match({cell}, '{MOMENT}')"
    # Of a moment the zeros that end its fraction of a second, then a midnight.
    shorter = f"regexp_replace(regexp_replace({cell}, '([.][0-9]*?)0+$', '\\1'), '[.]$', '')"
    alone = f"regexp_replace({shorter}, ' 00:00:00$', '')"
    return f"(CASE WHEN {whole} THEN ({cell})[:-3] WHEN {moment} THEN {alone} ELSE {cell} END)"


def text_as_number(text: str) -> str:
    """SQL for text that may be a number: true is 1, false is 0, other words (yes, no, t) are none."""
    word = f"CASE lower(trim({text})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"coalesce(TRY_CAST({text} AS DOUBLE), {word})"


#: How a cell names somebody, where that is not how it is written.
_NAMING = {"FLOAT": decimal_name, "DOUBLE": decimal_name, "VARCHAR": text_name, TEXT: text_name}


def name_text(kind: str, cell: str) -> str:
    """SQL for the text by which a cell of a column of this type names somebody or a group (`core.cell.name_of`)."""
    return _NAMING.get(plain_type(kind), "{}::VARCHAR".format)(cell)


def name_writing(kind: str) -> str:
    """How `name_text` writes the names of such a column: names of two writings may differ and mean the same.

    Decimal numbers of fixed digits have texts of their own.

    >>> name_writing("BIGINT") == name_writing("DOUBLE") == name_writing("DECIMAL(9,0)"), name_writing("DECIMAL(5,2)")
    (True, 'DECIMAL(5,2)')
    """
    return kind if plain_type(kind) == "DECIMAL" and not kind.endswith(",0)") else "names"


def naming_columns(spec: Spec) -> dict[str, tuple[str, ...]]:
    """The columns that say whose a row is and what it is about."""
    tables = {column.table for column in spec.columns}
    return {table: tuple(one.name for _, one in layout_of(spec, table).identities) for table in tables}


def _written_as(kind: str) -> str:
    """How the text of an identifier looks, by the type of its column."""
    plain = plain_type(kind)
    if plain in FLOATS:
        return "floating-point numbers"
    return f"decimal numbers ({kind})" if plain == "DECIMAL" and not kind.endswith(",0)") else "whole numbers or text"


def _checked_path(name: str, given: Any) -> Path:
    path = Path(given)
    if path.suffix.lower() not in TABLE_ENDINGS:
        raise DataError(
            f"The table {name}: {path.name} is neither Parquet nor CSV. Convert it, or hand in an Arrow table."
        )
    if any(sign in str(path) for sign in "*?["):
        raise DataError(
            f"The table {name}: {path} has a *, ? or [ in it, which could name several files. Rename the file, or the "
            "folder that has it in its name. Nothing was spent."
        )
    if not path.is_file():
        raise DataError(f"The table {name}: there is no file {path.name}. Nothing was spent.")
    return path.resolve()


def _read(name: str, path: Path) -> Any:
    if path.is_dir():
        return read_folder(path, name)
    path = _checked_path(name, path)
    return plain_file(path) if path.suffix.lower() == ".parquet" else read_text(path)


def _plain(name: str, given: Any) -> Plain:
    if isinstance(given, Portion):
        return replace(_plain(name, given.table), only=given.only, naming=given.naming, alone=given.alone)
    if isinstance(given, StoredRows):
        given = given.rows
    if isinstance(given, tuple):  # files that are one table
        given = read_files([Path(path) for path in given], name)
    if isinstance(given, (str, Path)):
        given = _read(name, Path(given))
    if isinstance(given, TextTable):
        whole = _plain(name, given.table)
        text = frozenset(whole.shown if given.columns is None else given.columns)
        return replace(whole, text=text, numbers=given.numbers)
    if isinstance(given, SpooledRows):
        return replace(plain_file(given.path), held=given)
    return given if isinstance(given, Plain) else plain_table(given, name)
