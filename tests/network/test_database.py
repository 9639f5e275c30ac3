"""A database lent to one room after the other holds nothing of the room before."""

from __future__ import annotations

import os

import pytest

from sfumato.network.database import borrowed, close_idle
from sfumato.network.tables import TableRoom

_SEEN = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"


@pytest.fixture(autouse=True)
def fresh():
    close_idle()
    yield
    close_idle()


def _messy(room):
    room.run("CREATE TABLE kept AS SELECT 41 AS age")
    room.run("CREATE TEMP TABLE aside AS SELECT 42 AS age")
    room.run("CREATE SCHEMA s")
    room.run("CREATE SEQUENCE numbers")
    room.run("CREATE MACRO plus_one(x) AS x + 1")
    room.connection.register("given", room.arrow("SELECT 43 AS age"))
    return room.connection


def test_the_next_room_sees_nothing():
    with TableRoom({"p": {"id": ["a"]}}, ["p"]) as room:
        first = _messy(room).execute("SELECT current_setting('temp_directory')").fetchall()
    with TableRoom({"q": {"id": ["b"]}}, ["q"]) as room:
        assert room.run("SELECT current_setting('temp_directory')") == first  # the same database: the law is not idle
        assert sorted(room.run(_SEEN)) == [("t0",), ("t0_raw",)]
        assert room.run("SELECT id FROM t0") == [("b",)]
        for word in ("kept", "aside", "given"):
            with pytest.raises(Exception, match="could not be evaluated"):
                room.run(f"SELECT * FROM {word}")
        _messy(room)  # every name is free again


def test_two_rooms_at_once_are_two_databases():
    with TableRoom({"p": {"id": ["a"]}}, ["p"]) as one, TableRoom({"p": {"id": ["b"]}}, ["p"]) as other:
        _messy(one)
        assert ("kept",) not in other.run(_SEEN)
        assert (one.run("SELECT id FROM t0"), other.run("SELECT id FROM t0")) == ([("a",)], [("b",)])


def test_a_room_left_in_the_middle_of_reading_is_cleared():
    rows = {"p": {"id": list(range(300_000))}}
    with TableRoom(rows, ["p"]) as room:
        reader = room.batches("SELECT id FROM t0")
        next(reader)
    with TableRoom({"q": {"id": ["b"]}}, ["q"]) as room:
        assert sorted(room.run(_SEEN)) == [("t0",), ("t0_raw",)]


def test_a_database_that_cannot_be_cleared_is_closed():
    broken = borrowed()
    broken.connection.execute("USE memory")
    broken.connection.execute(
        "DETACH "
        + broken.connection.execute(
            "SELECT database_name FROM duckdb_databases() WHERE database_name LIKE 'room%'"
        ).fetchall()[0][0]
    )
    place = broken.spill.path
    broken.hand_back()
    assert not place.exists()
    assert borrowed() is not broken


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork among threads: those of other tests
def test_a_forked_child_opens_its_own():
    with TableRoom({"p": {"id": ["a"]}}, ["p"]) as room:
        room.run("SELECT 1")
    child = os.fork()
    if child == 0:
        with TableRoom({"p": {"id": ["b"]}}, ["p"]) as room:
            os._exit(0 if room.run("SELECT id FROM t0") == [("b",)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
