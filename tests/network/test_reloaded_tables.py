"""A table that somebody empties and fills again while a study begins is read with its old rows or with its new ones.

A transaction of PostgreSQL is given no row of a table that was emptied or exchanged after it began, and hears nothing.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from benchmarks.own_server import installed, postgresql
from sfumato.errors import DataError
from sfumato.network.stores import postgresql as store
from sfumato.network.stores.postgresql import PostgreSQL
from sfumato.network.text_files import TextTable

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra [postgresql] is not installed")

PARTS = "PARTITION BY LIST (c)"
MADE = (
    "DROP TABLE IF EXISTS stays, old, part CASCADE",
    "CREATE TABLE stays (id integer, v float8, c text) {how}",
    "CREATE TABLE {part} PARTITION OF stays FOR VALUES IN ('a')",
    "INSERT INTO stays SELECT g, 1, 'a' FROM generate_series(1, {rows}) g",
    "CREATE VIEW shown AS SELECT * FROM stays",
)
FILL = "INSERT INTO {table} SELECT g, 2, 'a' FROM generate_series(1, {rows}) g"
#: What somebody does, all of it in one transaction.
RELOADS = {
    "emptied": ["TRUNCATE stays", FILL],
    "exchanged": ["ALTER TABLE stays RENAME TO old", "CREATE TABLE stays (id integer, v float8, c text)", FILL],
    "written anew": ["ALTER TABLE stays ALTER v TYPE numeric USING 2"],
    "deleted": ["LOCK TABLE stays IN ACCESS EXCLUSIVE MODE", "DELETE FROM stays", FILL],
    "changed": ["UPDATE stays SET v = 2"],
    "a part": [
        "ALTER TABLE stays DETACH PARTITION part",
        "CREATE TABLE old PARTITION OF stays FOR VALUES IN ('a')",
        FILL,
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if (binaries := installed()) is None:
        pytest.skip("PostgreSQL's server is not installed")
    with postgresql(binaries) as address:
        yield address


def reloaded(server: str, seed: int) -> set[tuple[float, ...]]:
    """What was read, where it is neither the old rows, which hold 1, nor the new ones, which hold 2."""
    source = random.Random(seed)
    how = source.choice(list(RELOADS))
    shown = source.choice(["stays", "shown"]) if how in ("emptied", "deleted", "changed") else "stays"
    rows, part = source.randint(1, 2000), source.random() < 0.5 or how == "a part"
    with closing(dbapi.connect(server)) as connection, closing(connection.cursor()) as cursor:
        for statement in MADE:
            if (part or "PARTITION OF" not in statement) and (shown == "shown" or "VIEW" not in statement):
                made = PARTS if part else ""
                cursor.execute(statement.format(how=made, part="part", rows=rows))
        connection.commit()
        found: list[Any] = []
        reader = threading.Thread(target=lambda: found.append(PostgreSQL(server).read([shown])[shown].rows))
        statements = [statement.format(table="stays", rows=rows) for statement in RELOADS[how]]
        begins = source.randint(0, len(statements))
        for place, statement in enumerate([*statements, ""]):
            if place == begins:
                reader.start()
                time.sleep(source.choice([0, 0.2]))
            if statement:
                cursor.execute(statement)
        connection.commit()
        reader.join(60)
    table = found[0].table if isinstance(found[0], TextTable) else found[0]
    values = set(map(float, table["v"].to_pylist()))
    return set() if table.num_rows == rows and values in ({1.0}, {2.0}) else {(table.num_rows, *values)}


@pytest.mark.slow
def test_a_reloaded_table_has_its_old_rows_or_its_new_ones(server: str):
    assert {seed: found for seed in range(40) if (found := reloaded(server, seed))} == {}


@pytest.mark.slow
def test_one_that_is_emptied_whenever_it_is_read_is_refused(server: str, monkeypatch: pytest.MonkeyPatch):
    with closing(dbapi.connect(server, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
        for statement in ("DROP TABLE IF EXISTS stays, old, part CASCADE", "CREATE TABLE stays (id integer)"):
            cursor.execute(statement)
        begin = store._begin

        def emptied(reading: Any) -> None:
            begin(reading)
            reading.execute("SELECT 1")  # from here on it sees the past
            reading.fetchone()
            cursor.execute("TRUNCATE stays")

        monkeypatch.setattr(store, "_begin", emptied)
        with pytest.raises(DataError, match=r"stays.*emptied.*nothing was spent"):
            PostgreSQL(server).read(["stays"])


@pytest.mark.slow
def test_a_reader_who_does_not_ask_would_be_found(server: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "_REPLACED", "SELECT 0::bigint")
    assert any(reloaded(server, seed) for seed in range(40))
