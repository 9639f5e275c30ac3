"""Tables that lie in databases and folders give the numbers that the same rows give as a file."""

from __future__ import annotations

import gc
import os
import random
import signal
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from benchmarks.own_server import installed, postgresql
from sfumato.errors import DataError, SchemaError, StudyError
from sfumato.lang import load
from sfumato.lang.paths import written_names
from sfumato.ledger import Ledger
from sfumato.network.stores.duckdb_file import DuckDBFile
from sfumato.network.stores.postgresql import PostgreSQL
from sfumato.network.stores.spool import gathered
from sfumato.network.stores.sqlite_file import SQLiteFile
from sfumato.network.stores.store import StoredRows
from sfumato.run.accounts import table_sources
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan, tables_in

REST = """
column(t, id, person(P)). column(t, v, v(P)). column(t, c, c(P)). each_person(t, mean).
missing(v(P), 1). missing(c(P), x).
random(v(P)) :- person(P). random(c(P)) :- person(P).
range(v(P), 0, 10). range(c(P), [x, y | other]).
dataset(people, domain(P, person(P))).
privacy_requirement(o(public), people, dp(1, 0.000001)).
mean(q1, v(P), person(P)). sum(q2, v(P), (person(P), c(P) = x)). histogram(q3, c(P), person(P)).
publish(p1, q1, o(public)). publish(p2, q2, o(public)). publish(p3, q3, o(public)).
"""
SOURCES = {
    "csv": "source(t, 't.csv').",
    "parquet": "source(t, 't.parquet').",
    "duckdb": "source(t, 't.duckdb', rows).",
    "view": "source(t, 't.duckdb', shown).",
    "sqlite": "source(t, 't.sqlite', rows).",
    "parquet folder": "source(t, 'parts/').",
    "csv folder": "source(t, 'texts/').",
}


def random_table(seed: int, people: int = 40) -> pd.DataFrame:
    source = random.Random(seed)
    rows = [
        {
            "id": f"p{source.randrange(people)}",
            "v": source.choice([None, source.uniform(-3, 14), 1e300, 0.1 + 0.2]),
            "c": source.choice(["x", "y", "zebra", None, "X"]),
            "Odd name; --": source.randrange(5),
        }
        for _ in range(2 * people)
    ]
    return pd.DataFrame(rows)


def store(table: pd.DataFrame, folder: Path) -> None:
    """The same rows everywhere."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    parquet.write_table(arrow, folder / "t.parquet")
    csv.write_csv(arrow, folder / "t.csv")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", arrow)
        connection.execute("CREATE TABLE rows AS FROM given")
        connection.execute("CREATE VIEW shown AS SELECT * FROM rows ORDER BY v")
    with closing(sqlite3.connect(folder / "t.sqlite")) as other:
        table.to_sql("rows", other, index=False)
    for name in ("parts", "texts"):
        (folder / name).mkdir()
    half = len(table) // 2
    for place, part in enumerate((arrow.slice(0, half), arrow.slice(half))):
        parquet.write_table(part, folder / "parts" / f"{place}.parquet")
        csv.write_csv(part, folder / "texts" / f"{place}.csv")


def exact_values(source: str, folder: Path) -> dict[str, object]:
    plan = make_plan(load(source + REST))
    assert plan.network is not None
    values = plan.network.evaluate(tables_in(plan, folder))
    sums = values.aggregates.items()
    return {name: tuple(one for place in range(len(sum_.entries)) for one in sum_.exact(place)) for name, sum_ in sums}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.by_day(1)
def test_the_same_rows_give_the_same_sums_wherever_they_lie(tmp_path, seed):
    table = random_table(seed)
    store(table, tmp_path)
    found = {name: exact_values(source, tmp_path) for name, source in SOURCES.items()}
    assert all(one == found["parquet"] for one in found.values()), found
    # The mean of a person's values; whoever has none is taken as missing(v(P), 1) says.
    truth = table["v"].clip(0, 10).groupby(table["id"]).mean().fillna(1).mean()
    total = float(found["parquet"]["q1"][0]) / table["id"].nunique()  # type: ignore[index]
    assert total == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("name", ["duckdb", "sqlite", "parquet folder"])
@pytest.mark.by_day(1)
def test_a_run_charges_the_account_of_the_data_it_read(tmp_path, name):
    store(random_table(1), tmp_path)
    plan = make_plan(load(SOURCES[name] + REST))
    ledger = Ledger(tmp_path / "ledger.db")
    release = run_plan(plan, tmp_path, ledger, out=tmp_path / "out", grant=True)
    assert len(release.published) == 3
    assert [account for account, _ in ledger.datasets()] == ["people"]
    other = make_plan(load((SOURCES[name] + REST).replace("people", "persons")))
    run_plan(other, tmp_path, ledger, out=tmp_path / "again", random_state=0)  # a dry run costs nothing
    with pytest.raises(Exception, match="nothing left"):
        run_plan(other, tmp_path, ledger, out=tmp_path / "third", grant=True)
    assert [account for account, _ in ledger.datasets()] == ["people"]


def test_a_copy_of_the_rows_in_another_order_is_the_same_data():
    table = pa.table({"id": ["a", "b", "c"], "v": [1.0, 2.0, None]})
    turned = table.take(pa.array([2, 0, 1]))
    other = pa.table({"id": ["a", "b", "c"], "v": [1.0, 2.0, 3.0]})
    rows = [
        set(table_sources(StoredRows(one, place), "id")) for one, place in ((table, "x"), (turned, "y"), (other, "z"))
    ]
    assert rows[0] & rows[1]
    assert not rows[0] & rows[2]


def test_reading_changes_nothing_and_reaches_nothing_else(tmp_path):
    store(random_table(2), tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "t.duckdb", tmp_path / "t.sqlite")}
    DuckDBFile(tmp_path / "t.duckdb").read(["rows"])
    SQLiteFile(tmp_path / "t.sqlite").read(["rows"])
    assert before == {path: path.read_bytes() for path in before}
    with duckdb.connect(str(tmp_path / "far.duckdb")) as connection:
        connection.execute(f"CREATE VIEW far AS FROM read_csv('{tmp_path / 't.csv'}')")
    with pytest.raises(DataError, match="could not be read"):
        DuckDBFile(tmp_path / "far.duckdb").read(["far"])


def test_cells_of_any_type_in_one_column_of_sqlite(tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE rows (id TEXT, v REAL, c TEXT)")
        cells = [3.5, "3.5", b"\xff", "nan", 2**60, None, "", 1e308]
        connection.executemany("INSERT INTO rows VALUES (?, ?, 'x')", [(str(i), cell) for i, cell in enumerate(cells)])
    values = exact_values(SOURCES["sqlite"], tmp_path)
    assert values["q3"] == (8, 0, 0)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("source(t, 't.duckdb').", "does not say which of its tables"),
        ("source(t, 't.csv', rows).", "no database by its name"),
        ("source(t, 'postgresql:').", "names no table"),
        ("source(t, 'postgresql:a b').", "names no table"),
        ("source(t, '../parts/').", "outside the data folder"),
        ("source(t, 't.xlsx').", "neither Parquet nor CSV"),
    ],
)
def test_wrong_sources_are_refused_by_name(source, message):
    with pytest.raises(StudyError, match=message):
        load(source + REST)


def test_refusals_say_what_is_missing_and_quote_no_cell(tmp_path, monkeypatch):
    monkeypatch.delenv("SFUMATO_POSTGRESQL", raising=False)
    store(random_table(3), tmp_path)
    plan = make_plan(load("source(t, 't.duckdb', row)." + REST))
    with pytest.raises(DataError, match=r"no table or view row.*rows"):
        tables_in(plan, tmp_path)
    (tmp_path / "t.sqlite").write_bytes(b"no database at all, and a name: Anna" * 100)
    with pytest.raises(DataError, match="could not be read") as caught:
        tables_in(make_plan(load(SOURCES["sqlite"] + REST)), tmp_path)
    assert "Anna" not in str(caught.value)
    with pytest.raises(DataError, match=r"SFUMATO_POSTGRESQL.*sources.toml"):
        tables_in(make_plan(load("source(t, 'postgresql:rows')." + REST)), tmp_path)
    (tmp_path / "parts" / "note.txt").write_text("x")
    with pytest.raises(DataError, match="several kinds"):
        exact_values(SOURCES["parquet folder"], tmp_path)
    (tmp_path / "parts" / "note.txt").unlink()
    parquet.write_table(pa.table({"id": ["a"]}), tmp_path / "parts" / "9.parquet")
    with pytest.raises(DataError, match="other columns or types"):
        exact_values(SOURCES["parquet folder"], tmp_path)


def test_a_folder_whose_name_could_be_several_is_named_with_the_way_out(tmp_path):
    folder = tmp_path / "year [2024]"
    folder.mkdir()
    store(random_table(1), folder)
    plan = make_plan(load(SOURCES["parquet"] + REST))
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(DataError, match=r"year \[2024\].*the folder that has it in its name.*Nothing was spent"):
        run_plan(plan, folder, ledger, grant=True)
    assert not ledger.datasets()


def test_a_server_that_says_nothing_is_not_waited_for(tmp_path):
    """It takes the connection and is silent. Where the address says nothing, the time limits are ours."""
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra [postgresql] is not installed")
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(DataError, match="could not be read"):
            PostgreSQL(f"postgresql://nobody@{place}/none?connect_timeout=2").read(["rows"])
    from adbc_driver_manager import AdbcStatusCode

    asked: list[str] = []

    def connect(address: str) -> None:
        asked.append(address)
        raise dbapi.OperationalError("nobody", status_code=AdbcStatusCode.IO)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbapi, "connect", connect)
        for address in ("postgresql://a@b/c", "postgresql://a@b/c?sslmode=disable", "host=b dbname=c"):
            with pytest.raises(DataError):
                PostgreSQL(address).read(["rows"])
    assert [one[: one.index("connect_timeout=30")][-1] for one in asked] == ["?", "&", " "]
    assert all("keepalives_idle=" in one for one in asked)


# ── a real server ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a PostgreSQL of our own on a free port."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra [postgresql] is not installed")
    if (binaries := installed()) is None:
        pytest.skip("PostgreSQL's server is not installed")
    with postgresql(binaries) as address:
        yield address


@pytest.fixture
def filled(server, monkeypatch) -> Callable[[str], None]:
    from adbc_driver_postgresql import dbapi

    monkeypatch.setenv("SFUMATO_POSTGRESQL", server)

    def run(statements: str) -> None:
        with closing(dbapi.connect(server, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
            for statement in statements.split(";\n"):
                if statement.strip():
                    cursor.execute(statement)

    return run


HOSTILE = """
DROP TABLE IF EXISTS rows CASCADE;
CREATE TABLE rows
  (id text, v numeric, c text, day date, seen timestamptz, ok boolean, tags text[], "Odd "" name" integer);
INSERT INTO rows SELECT 'p' || (g % 400),
  CASE g % 7 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 1e40 ELSE g % 13 END,
  CASE g % 4 WHEN 0 THEN 'x' WHEN 1 THEN NULL WHEN 2 THEN E'\\u0001 Ω' ELSE 'y' END,
  CASE g % 3 WHEN 0 THEN 'infinity' ELSE '2020-02-29' END::date,
  '-infinity', g % 2 = 0, ARRAY['a', NULL], g FROM generate_series(1, 1000) g;
CREATE VIEW shown AS SELECT * FROM rows WHERE v IS NULL OR v IS NOT NULL;
"""


@pytest.mark.slow
def test_a_server_gives_the_numbers_that_a_file_gives(filled, tmp_path):
    filled(HOSTILE)
    from_table = exact_values("source(t, 'postgresql:rows').", tmp_path)
    from_view = exact_values("source(t, 'postgresql:public.shown').", tmp_path)
    assert from_table == from_view
    ids = [f"p{g % 400}" for g in range(1, 1001)]
    numbers = [{0: None, 1: "NaN", 2: "1e40"}.get(g % 7, str(g % 13)) for g in range(1, 1001)]
    words = [{0: "x", 1: None, 2: "\x01 Ω"}.get(g % 4, "y") for g in range(1, 1001)]
    csv.write_csv(pa.table({"id": ids, "v": numbers, "c": words}), tmp_path / "t.csv")
    assert from_table == exact_values(SOURCES["csv"], tmp_path)


KINDS = ["smallint", "integer", "bigint", "real", "double precision", "boolean", "numeric", "numeric(9, 2)", "text"]


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
def test_a_type_of_the_servers_own_is_what_it_is_made_of(filled, server, tmp_path, nested):
    """Columns of domains, and of domains of domains, are read as those of the types beneath."""
    cells = ["'t'" if kind == "boolean" else "'1'" for kind in KINDS]
    made = "DROP TABLE IF EXISTS own, plain;\n"
    for place, kind in enumerate(KINDS):
        made += f"DROP DOMAIN IF EXISTS inner{place}, outer{place} CASCADE;\nCREATE DOMAIN inner{place} AS {kind};\n"
        made += f"CREATE DOMAIN outer{place} AS inner{place} CHECK (value IS NOT NULL);\n"
    name = "outer" if nested else "inner"
    for table, kinds in (("own", [f"{name}{place}" for place in range(len(KINDS))]), ("plain", KINDS)):
        made += f"CREATE TABLE {table} ({', '.join(f'c{place} {kind}' for place, kind in enumerate(kinds))});\n"
        made += f"INSERT INTO {table} VALUES ({', '.join(cells)});\n"
    filled(made)
    own, plain = PostgreSQL(server).read(["own", "plain"]).values()
    assert own.rows.columns == plain.rows.columns == {"c6", "c7"}
    assert own.rows.table == plain.rows.table


DAYS = """
column(t, id, person(P)). column(t, day, day(P)). column(t, hour, hour(P)). rows_per_person(t, 1).
missing(day(P), date(2020, 6, 1)). missing(hour(P), time(12, 0)).
random(day(P)) :- person(P). random(hour(P)) :- person(P).
range(day(P), date(2020, 1, 1), date(2020, 12, 31)). range(hour(P), time(0, 0), time(23, 59, 59)).
dataset(people, domain(P, person(P))). privacy_requirement(o(public), people, dp(1, 0.000001)).
mean(q1, day(P), person(P)). mean(q2, hour(P), person(P)). publish(p1, q1, o(public)). publish(p2, q2, o(public)).
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "text"])
def test_days_of_a_server_are_those_of_a_file_whatever_its_habits(filled, server, tmp_path, kind):
    """A role that writes days as Germans do, in Tokyo's time; infinite days are absent cells."""
    moments = ["2020-02-29 23:30:00", "2020-12-31 00:00:00", "1999-05-05 07:08:09", None, "infinity"]
    listed = ", ".join(f"({g}, {'NULL' if m is None else repr(m)})" for g, m in enumerate(moments))
    cast = "timestamptz" if kind == "timestamptz" else "timestamp"
    shown = "to_char(m, 'YYYY-MM-DD HH24:MI:SS')" if kind == "text" else f"m::{kind}"
    filled(f"SET timezone = 'UTC';\nDROP TABLE IF EXISTS days;\nCREATE TABLE days AS SELECT id, {shown} AS day, "
           f"m::time AS hour FROM (SELECT id, m::{cast} AS m FROM "
           f"(VALUES {listed}) AS g(id, m)) AS one;\n")  # fmt: skip
    filled("ALTER ROLE tester SET datestyle = 'German';\nALTER ROLE tester SET timezone = 'Asia/Tokyo';\n")
    try:
        found = _day_sums("source(t, 'postgresql:days').", tmp_path)
    finally:
        filled("ALTER ROLE tester RESET ALL;\n")
    days = [None if m in (None, "infinity") else m[:10] for m in moments]
    hours = [None if m in (None, "infinity") else m[11:19] for m in moments]
    csv.write_csv(pa.table({"id": list(range(len(moments))), "day": days, "hour": hours}), tmp_path / "t.csv")
    assert found == _day_sums("source(t, 't.csv').", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("habit", ["role", "address", "environment"])
@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1251", "SQL_ASCII"])
def test_text_of_a_server_is_what_it_holds_whatever_encoding_is_usual(filled, server, monkeypatch, habit, encoding):
    """In LATIN1 there is no Ω, in WIN1251 no é: neither ends the run, and none is read as another letter."""
    words = ["plain", "caf\u00e9", "\u03a9", "\u0416", "\U0001f642", "\u65e5\u672c"]
    listed = ", ".join(f"({place}, '{word}')" for place, word in enumerate(words))
    filled(f"DROP TABLE IF EXISTS words;\nCREATE TABLE words AS SELECT * FROM (VALUES {listed}) AS w(id, word);\n")
    if habit == "role":
        filled(f"ALTER ROLE tester SET client_encoding = '{encoding}';\n")
    if habit == "environment":
        monkeypatch.setenv("PGCLIENTENCODING", encoding)
    address = f"{server}?client_encoding={encoding}" if habit == "address" else server
    try:
        found = PostgreSQL(address).read(["words"])["words"]
    finally:
        monkeypatch.delenv("PGCLIENTENCODING", raising=False)
        filled("ALTER ROLE tester RESET ALL;\n")
    assert found.rows.sort_by("id")["word"].to_pylist() == words


def _day_sums(source: str, folder: Path) -> list[object]:
    plan = make_plan(load(source + DAYS))
    assert plan.network is not None
    values = plan.network.evaluate(tables_in(plan, folder))
    return [sums.exact(0) for sums in values.aggregates.values()]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["Stays 2024", "stays.of north", 'a "b"', "Größe"])
def test_a_table_of_any_name_is_read(filled, tmp_path, table):
    quoted = '"' + table.replace('"', '""') + '"'
    filled(
        f'CREATE SCHEMA IF NOT EXISTS "Odd one";\nDROP TABLE IF EXISTS "Odd one".{quoted};\n'
        f"CREATE TABLE \"Odd one\".{quoted} AS SELECT 'p' || g AS id, 2.0::float8 AS v, 'x' AS c "
        "FROM generate_series(1, 50) g;\n"
    )
    written = written_names(["Odd one", table])
    found = exact_values(f"source(t, 'postgresql:{written}').", tmp_path)
    assert found["q3"] == (50, 0, 0)
    wrong = written_names(["Odd one", table + "x"])
    with pytest.raises(DataError, match=r"did you mean"):
        exact_values(f"source(t, 'postgresql:{wrong}').", tmp_path)


@pytest.mark.slow
def test_a_server_that_refuses_is_told_clearly_and_nothing_is_spent(filled, server, tmp_path, monkeypatch):
    filled(HOSTILE)
    plan = make_plan(load("source(t, 'postgresql:row')." + REST))
    with pytest.raises(DataError, match=r"no table or view row.*rows"):
        tables_in(plan, tmp_path)
    filled("DROP ROLE IF EXISTS guest;\nCREATE ROLE guest LOGIN;\n")
    monkeypatch.setenv("SFUMATO_POSTGRESQL", server.replace("tester@", "guest@"))
    plan = make_plan(load("source(t, 'postgresql:rows')." + REST))
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(DataError, match="42501"):
        run_plan(plan, tmp_path, ledger, grant=True)
    monkeypatch.setenv("SFUMATO_POSTGRESQL", "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(DataError, match="could not be read"):
        run_plan(plan, tmp_path, ledger, grant=True)
    assert not ledger.datasets()


@pytest.mark.slow
def test_a_connection_that_is_cut_while_rows_flow_is_told_and_nothing_is_spent(filled, tmp_path, monkeypatch):
    """The server ends the connection between two batches; a column that went away is missed by its name."""
    filled("DROP TABLE IF EXISTS many;\nCREATE TABLE many AS SELECT g::text AS id, g::float8 AS v, 'x' AS c, "
           "repeat('y', 200) AS more FROM generate_series(1, 300000) g;\n")  # fmt: skip
    plan = make_plan(load("source(t, 'postgresql:many')." + REST))
    ledger = Ledger(tmp_path / "ledger.db")

    def cut(batches, schema):
        def until_cut():
            for place, batch in enumerate(batches):
                if place == 1:
                    filled("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid();\n")
                yield batch

        return gathered(until_cut(), schema)

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.network.stores.postgresql.gathered", cut)
        with pytest.raises(DataError, match=r"could not be read.*[Nn]othing was spent"):
            run_plan(plan, tmp_path, ledger, grant=True)
    assert not ledger.datasets()
    filled("ALTER TABLE many DROP COLUMN v;\n")
    with pytest.raises(SchemaError, match=r"no column v.*Nothing was spent"):
        run_plan(plan, tmp_path, ledger, grant=True)
    filled("ALTER TABLE many ADD COLUMN v float8;\n")
    run_plan(plan, tmp_path, ledger, grant=True)
    assert [name for name, _ in ledger.datasets()] == ["people"]


@pytest.mark.slow
def test_a_server_process_killed_while_rows_flow_is_told_and_the_retry_is_charged_once(filled, tmp_path, monkeypatch):
    """kill -9 of the process that serves the connection: PostgreSQL ends all others and recovers by itself."""
    filled("DROP TABLE IF EXISTS many;\nCREATE TABLE many AS SELECT g::text AS id, g::float8 AS v, 'x' AS c, "
           "repeat('y', 200) AS more FROM generate_series(1, 300000) g;\nCHECKPOINT;\n")  # fmt: skip
    plan = make_plan(load("source(t, 'postgresql:many')." + REST))
    ledger = Ledger(tmp_path / "ledger.db")

    def killed(batches, schema):
        def until_killed():
            for place, batch in enumerate(batches):
                if place == 1:
                    for pid in _backends(os.environ["SFUMATO_POSTGRESQL"]):
                        os.kill(pid, signal.SIGKILL)
                yield batch

        return gathered(until_killed(), schema)

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.network.stores.postgresql.gathered", killed)
        with pytest.raises(DataError, match=r"could not be read.*[Nn]othing was spent"):
            run_plan(plan, tmp_path, ledger, grant=True)
    assert not ledger.datasets()
    end = time.monotonic() + 60
    while True:
        try:
            run_plan(plan, tmp_path, ledger, grant=True)
            break
        except DataError:  # it still recovers
            assert time.monotonic() < end
            time.sleep(0.2)
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve", "commit"]


def _backends(address: str) -> list[int]:
    """The processes that serve other connections than this one."""
    from adbc_driver_postgresql import dbapi

    query = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    with closing(dbapi.connect(address)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(query)
        return [pid for (pid,) in cursor.fetchall()]


@pytest.mark.parametrize("kind", ["csv", "csv folder", "duckdb", "sqlite"])
@pytest.mark.by_day(1)
def test_rows_that_are_put_aside_give_the_same_sums_and_leave_nothing(tmp_path, monkeypatch, kind):
    store(random_table(4), tmp_path)
    held = exact_values(SOURCES[kind], tmp_path)
    monkeypatch.setattr("sfumato.network.stores.spool._HELD", 100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert exact_values(SOURCES[kind], tmp_path) == held
    gc.collect()
    assert not list(tmp_path.glob("sfumato-spill-*"))


@pytest.mark.slow
def test_nothing_can_be_written_through_the_connection(filled, server, tmp_path):
    filled(HOSTILE)
    filled(
        "CREATE OR REPLACE FUNCTION leave() RETURNS text LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE left_behind (); "
        "RETURN 'p'; END $$;\nCREATE OR REPLACE VIEW writes AS SELECT leave() AS id, 1.0 AS v, 'x' AS c;\n"
    )
    with pytest.raises(DataError, match="25006"):  # read_only_sql_transaction
        PostgreSQL(server).read(["writes"])


@pytest.mark.slow
def test_a_table_that_somebody_locks_is_not_waited_for(filled, server, monkeypatch):
    from adbc_driver_postgresql import dbapi

    filled(HOSTILE)
    monkeypatch.setattr("sfumato.network.stores.postgresql._LOCK", "200ms")
    with closing(dbapi.connect(server)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("LOCK TABLE rows IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DataError, match=r"somebody held a lock.*55P03"):
            PostgreSQL(server).read(["rows"])
        connection.rollback()
    assert PostgreSQL(server).read(["rows"])


@pytest.mark.slow
def test_a_million_rows_of_a_server(filled, tmp_path):
    filled(
        "DROP TABLE IF EXISTS many;\nCREATE TABLE many AS SELECT g AS id, (g % 11)::float8 AS v, "
        "CASE g % 3 WHEN 0 THEN 'x' ELSE 'y' END AS c FROM generate_series(1, 1000000) g;\n"
    )
    found = exact_values("source(t, 'postgresql:many').", tmp_path)
    assert found["q3"] == (333333, 666667, 0)
    assert found["q1"] == (sum(min(g % 11, 10) for g in range(1, 1_000_001)),)
