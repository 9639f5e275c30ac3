"""Tables and views of a PostgreSQL server.

In:   the connection (environment or sources.toml beside the data, never the study), names of tables.
Out:  their rows, read in one read-only transaction of isolation level repeatable read.

Whole numbers, floating-point numbers and truth values come as they are; decimal numbers as text that is meant as a
number, everything else as text, days and moments as ISO 8601 writes them, in UTC. So no value, such as an infinite
date, can make the reading fail. The database must
store its text as UTF-8: in other encodings one person's letters could decide whether a run fails. A view is read as the
server computes it; it should be a total function of its rows.

A transaction sees rows as they were when it began. Of a table that somebody emptied (TRUNCATE), wrote anew or exchanged
since then the server gives it no rows at all, and says nothing. So after the last row it is asked for such a table, and
where there was one everything is read again in another transaction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, final

import pyarrow as pa

from sfumato.errors import DataError
from sfumato.lang.paths import server_names, written_names
from sfumato.network.expression import sql_name
from sfumato.network.stores.addresses import address_of
from sfumato.network.stores.spool import gathered
from sfumato.network.stores.store import Store, StoredRows, no_table, unreadable
from sfumato.network.text_files import TextTable

__all__ = ["PostgreSQL"]

_VARIABLE = "SFUMATO_POSTGRESQL"
#: What the address leaves open: seconds to connect, and after which a server that went away is noticed.
_PATIENCE = {"connect_timeout": 30, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 6}
#: Somebody else's lock, and one whole table; as PostgreSQL writes times.
_LOCK, _READING = "60s", "1h"
_ENDED = {
    "42501": "this user has no right to read it",
    "55P03": f"somebody held a lock on it for {_LOCK}",
    "57014": f"it was not read within {_READING}",
    "57P01": "the server ended the connection",
    "08006": "the server ended the connection",
}
_WORDS = {
    "lock timeout": "55P03",
    "statement timeout": "57014",
    "read-only transaction": "25006",
    "permission denied": "42501",
    "terminating connection": "57P01",
    "closed the connection": "08006",
}
#: Why no connection was made, by the driver's words. They are not repeated: an address may hold a password.
_REFUSED = {
    "Connection refused": "no server answers there",
    "No such file": "no server answers there",  # a socket of this machine
    "certificate": "the certificate that sslmode asks for is not there or does not fit",
    "translate host name": "there is no such host",
    "timeout expired": "the server gave no answer in time",
    "no password supplied": "the server asks for a password, and neither the address nor ~/.pgpass has one",
    "authentication failed": "the server does not let this user in with this password",
    "pg_hba.conf": "the server lets nobody in from here with this user and database",
    "does not exist": "the server has no such user or no such database",
    "info string": "it is no address of PostgreSQL",
    "invalid": "it is no address of PostgreSQL",
}
#: How text is made of days and moments: as ISO 8601 writes them, and as UTF-8, whatever the server's, the role's or the
#: environment's own habit is. In another encoding one letter that it lacks would end the run.
_HABITS = {
    **{"client_encoding": "UTF8", "bytea_output": "hex"},
    **{"DateStyle": "ISO, YMD", "TimeZone": "UTC", "IntervalStyle": "iso_8601"},
}
_AS_THEY_ARE = frozenset(("smallint", "integer", "bigint", "real", "double precision", "boolean"))
#: A type of the server's own making (CREATE DOMAIN) is what it is made of, through however many of them.
_COLUMNS = """
WITH RECURSIVE based AS (
    SELECT a.attname, a.attnum, a.atttypid AS kind
    FROM pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attname, b.attnum, t.typbasetype FROM based b JOIN pg_type t ON t.oid = b.kind WHERE t.typtype = 'd'
)
SELECT b.attname::text, format_type(b.kind, NULL)::text
FROM based b JOIN pg_type t ON t.oid = b.kind WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
#: Tables that were read, each of which is locked until the end, and lie elsewhere than when the transaction began, or
#: were not there then: their old rows are gone and their new ones unseen. The catalogue's functions see the present,
#: its tables the past.
_REPLACED = """
SELECT count(*)::bigint FROM pg_locks l JOIN pg_database d ON d.oid = l.database LEFT JOIN pg_class c
ON c.oid = l.relation WHERE l.pid = pg_backend_pid() AND d.datname = current_database() AND l.locktype = 'relation'
AND CASE WHEN c.oid IS NULL THEN pg_get_indexdef(l.relation) IS NULL
    ELSE c.relkind IN ('r', 'm') AND c.relfilenode <> 0
        AND pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode END
"""
#: So often all tables are read before it is given up.
_READINGS = 5


@final
@dataclass(frozen=True)
class PostgreSQL(Store):
    """source(stays, 'postgresql:stays'): a table or a view, `schema.table` outside of the search path."""

    address: str = field(repr=False)
    prefix: ClassVar[str] = "postgresql"

    @classmethod
    def of(cls, folder: Path) -> PostgreSQL:
        """The server named in the environment (SFUMATO_POSTGRESQL) or in sources.toml of the data folder."""
        example = "postgresql://user@host/database"
        return cls(address_of(folder, cls.prefix, _VARIABLE, "PostgreSQL", example))

    def read(self, names: Sequence[str]) -> dict[str, StoredRows]:
        for _ in range(_READINGS):
            found = self._at_one_moment(names)
            if found is not None:
                return found
        raise DataError(
            f"PostgreSQL ({', '.join(names)}): a table was emptied or written anew whenever it was read, and then "
            "its rows are not seen. Run again when nobody writes it. Nothing was published and nothing was spent."
        )

    def _at_one_moment(self, names: Sequence[str]) -> dict[str, StoredRows] | None:
        """All tables in one transaction; None where it could not see the rows of one of them."""
        found: dict[str, StoredRows] = {}
        failures = _failures()
        connection = self._connected(failures)
        try:
            with closing(connection), closing(connection.cursor()) as cursor:
                _begin(cursor)
                server = self._server(cursor)
                for name in names:
                    found[name] = self._rows(cursor, server, name)
                cursor.execute(_REPLACED)
                return None if cursor.fetchone()[0] else found
        except failures as error:
            failed = _kind_of(error)
        reading = names[min(len(found), len(names) - 1)]
        raise unreadable(f"PostgreSQL ({reading})", failed)

    def _connected(self, failures: tuple[type[Exception], ...]) -> Any:
        """A connection; where there is none, why, in words of ours: the driver's may quote the address."""
        from adbc_driver_postgresql import dbapi

        try:
            return dbapi.connect(_patient(self.address))
        except failures as error:
            said = str(error)
        why = next((why for words, why in _REFUSED.items() if words in said), "it failed")
        raise DataError(
            f"PostgreSQL could not be read: no connection was made, because {why}. Its address is what {_VARIABLE} "
            "says, or sources.toml in the data folder: postgresql://user@host:port/database. Nothing was read and "
            "nothing was spent."
        )

    def _server(self, cursor: Any) -> str:
        """Which database this is, whatever the address says: the cluster's own number, and the name within it."""
        cursor.execute(
            "SELECT current_setting('server_encoding'), (SELECT system_identifier FROM pg_control_system())::text, "
            "current_database()::text"
        )
        encoding, cluster, database = cursor.fetchone()
        if encoding != "UTF8":
            raise DataError(
                f"The database stores its text as {encoding}, in which a single cell can make the reading fail. Copy "
                "the table into a UTF-8 database or into a Parquet file. Nothing was read and nothing was spent."
            )
        return f"postgresql\0{cluster}\0{database}"

    def _rows(self, cursor: Any, server: str, name: str) -> StoredRows:
        parts = server_names(name)
        quoted = ".".join(sql_name(part) for part in parts)
        cursor.execute(_COLUMNS, (quoted,))
        kinds = dict(cursor.fetchall())
        if not kinds:
            raise no_table("The database", name, _tables(cursor, parts[:-1]))
        shown = ", ".join(_expression(column, kind) for column, kind in kinds.items())
        cursor.execute("SELECT to_regclass($1)::oid::bigint", (quoted,))
        (number,) = cursor.fetchone()
        cursor.execute(f"SELECT {shown} FROM {quoted}")
        reader = cursor.fetch_record_batch()
        rows = gathered(reader, reader.schema)
        written = frozenset(column for column, kind in kinds.items() if kind == "numeric")
        return StoredRows(TextTable(rows, written) if written else rows, f"{server}\0{number}")


def _begin(cursor: Any) -> None:
    """A transaction in which nothing is written and nothing changes."""
    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK}'")
    cursor.execute(f"SET LOCAL statement_timeout = '{_READING}'")
    for name, value in _HABITS.items():
        cursor.execute(f"SET LOCAL {name} = '{value}'")


def _expression(column: str, kind: str) -> str:
    name = sql_name(column)
    return f"{name}::{kind if kind in _AS_THEY_ARE else 'text'} AS {name}"


def _tables(cursor: Any, schema: Sequence[str]) -> list[str]:
    """The tables that this user may read there, as a study writes them: of the schema, or of the search path."""
    cursor.execute(
        "SELECT table_name::text FROM information_schema.tables WHERE "
        + ("table_schema = $1" if schema else "table_schema = ANY(current_schemas(false))"),
        *([tuple(schema)] if schema else []),
    )
    return [written_names([*schema, name]) for (name,) in cursor.fetchall()]


def _failures() -> tuple[type[Exception], ...]:
    """What reading from a server may raise."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi  # noqa: F401  # both are needed
    except ImportError:
        raise DataError(
            "Reading from PostgreSQL needs its driver: pip install 'sfumato[postgresql]'. Nothing was read and "
            "nothing was spent."
        ) from None
    return Error, pa.ArrowException, OSError


def _kind_of(error: Exception) -> str:
    """The class of the failure and the server's five-letter code, which quote nothing."""
    code = getattr(error, "sqlstate", None) or ""
    if not re.fullmatch(r"[0-9A-Z]{5}", code):  # an error between two batches has lost its code; its words tell it
        code = next((known for words, known in _WORDS.items() if words in str(error)), "")
    why = _ENDED.get(code)
    name = f"{type(error).__name__}: {why}" if why else type(error).__name__
    return f"{name}, SQLSTATE {code}" if code else name


def _patient(address: str) -> str:
    """The address with a time limit for every wait that it does not bound itself; a URI or `key=value` words."""
    added = [f"{name}={value}" for name, value in _PATIENCE.items() if f"{name}=" not in address]
    if "://" not in address:
        return " ".join([address, *added])
    return address + ("&" if "?" in address else "?") + "&".join(added) if added else address
