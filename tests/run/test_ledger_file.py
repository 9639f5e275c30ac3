"""The ledger's file: exact among processes, whole after any crash, and closed to edits."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sfumato.core import (
    REPLACE_ONE,
    PureDP,
)
from sfumato.errors import (
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    OverspendError,
)
from sfumato.ledger import Ledger

CHILD = Path(__file__).with_name("ledger_crash_child.py")
POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes with SIGKILL")


def child(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# Several processes and threads


@POSIX
@pytest.mark.parametrize("attempt", range(3))
def test_eight_processes_share_one_grant_exactly(ledger, path, attempt):
    process = child("race", path.parent)
    _, errors = process.communicate(timeout=110)
    assert process.returncode == 0, errors
    said = sorted((path.parent / "acknowledged").read_text().split())
    assert said == ["overspend"] * 3 + ["spent"] * 5, said
    assert ledger.balance("survey").spent.epsilon(0.0) == 1.0


def test_threads_share_one_ledger_object(ledger):
    outcomes: list[str] = []

    def spend():
        try:
            ledger.commit(ledger.reserve("survey", 0.1))
            outcomes.append("spent")
        except OverspendError:
            outcomes.append("overspend")

    threads = [threading.Thread(target=spend) for _ in range(14)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["overspend"] * 4 + ["spent"] * 10


def test_many_may_make_the_same_ledger_at_once(path):
    errors: list[BaseException] = []

    def make():
        try:
            Ledger(path).grant("survey", 1.0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [record.action for record in Ledger(path).history()] == ["grant"] * 6
    assert os.listdir(path.parent) == ["ledger.db"]


# Crashes


@POSIX
def test_a_kill_at_any_step_never_forgets_what_was_drawn(tmp_path):
    process = child("steps", tmp_path)
    out, errors = process.communicate(timeout=110)
    assert process.returncode == 0, errors
    steps = json.loads(out)["steps"]
    assert steps > 30
    killed_at = {_check_after_crash(tmp_path / str(step)) for step in range(1, steps + 1)}
    assert {"row inserted", "transaction ended", "schema written", "file linked", None} <= killed_at


def _check_after_crash(folder: Path) -> str | None:
    lines = (folder / "acknowledged").read_text().splitlines()
    known = {line for line in lines if not line.startswith("killed")}
    ledger = Ledger(folder / "ledger.db")
    names = [name for name, _ in ledger.datasets()]
    assert ("granted" not in known) or names == ["survey"]
    if names:
        balance = ledger.balance("survey")
        counted = sum(part.epsilon(0.0) for part in (balance.spent, balance.reserved) if part)
        assert "noise drawn" not in known or counted == 0.4
        assert "committed" not in known or balance.spent == PureDP(0.4, adjacency=REPLACE_ONE)
        assert counted <= 0.4 or "released" not in known
        if balance.spent is None and "released" in known:
            again = ledger.reserve("survey", 0.4, key="run 1")  # a resumed run pays once
            ledger.commit(again)
            assert ledger.balance("survey").remaining == PureDP(0.6, adjacency=REPLACE_ONE)
    ledger.grant("survey", 2.0)
    assert ledger.reserve("survey", 0.1)
    return next((line.removeprefix("killed at ") for line in lines if line.startswith("killed")), None)


@POSIX
def test_a_kill_at_a_random_moment_never_forgets_what_was_drawn(tmp_path):
    """Also inside SQLite's own writing, where no hook reaches: a hot journal is left behind and rolled back."""
    choice = random.Random(7)
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("survey", 1e6)
    file = tmp_path / "acknowledged"
    for _ in range(3):
        before = file.stat().st_size if file.exists() else 0
        process = child("loop", tmp_path)
        while process.poll() is None and (not file.exists() or file.stat().st_size == before):
            time.sleep(0.01)
        time.sleep(choice.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        reopened = Ledger(tmp_path / "ledger.db")
        recorded = {(record.reservation, record.action) for record in reopened.history()}
        for line in file.read_text().split("\n")[:-1]:
            identity, word = line.split()
            assert (identity, {"drawn": "reserve", "committed": "commit"}[word]) in recorded


# The file


def test_the_file_is_private_and_alone(ledger, path):
    assert path.stat().st_mode & 0o777 == 0o600
    ledger.reserve("survey", 0.1)
    assert os.listdir(path.parent) == ["ledger.db"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET dataset = 'other' WHERE sequence = 1",
        "DELETE FROM entries WHERE sequence = 2",
        "INSERT OR REPLACE INTO entries SELECT 1, created, action, dataset, unit, reservation, body, hash FROM entries",
    ],
)
def test_sql_cannot_change_an_entry(ledger, path, statement):
    ledger.reserve("survey", 0.5)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE entries SET body = replace(body, '0.5', '0.1') WHERE sequence = 2", "row 2 was changed"),
        ("UPDATE entries SET created = '2001-01-01T00:00:00+00:00' WHERE sequence = 1", "row 1 was changed"),
        ("UPDATE entries SET dataset = x'00' WHERE sequence = 3", "row 3 was changed"),
        ("DELETE FROM entries WHERE sequence = 2", "row 2 is missing"),
        ("DELETE FROM entries WHERE sequence = 3", "row 3 is missing"),
        ("SELECT 1", "triggers were changed"),
    ],
)
@pytest.mark.parametrize("restored", [True, False], ids=["triggers restored", "triggers gone"])
def test_an_edited_file_is_found_and_the_row_named(ledger, path, statement, words, restored):
    ledger.commit(ledger.reserve("survey", 0.5))
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    for _, sql in triggers if restored else []:
        connection.execute(sql)
    connection.commit()
    connection.close()
    if restored and "triggers" in words:
        assert Ledger(path).balance("survey")
        return
    with pytest.raises(LedgerCorruptError, match=words) as caught:
        Ledger(path)
    assert "backup" in str(caught.value)


def test_an_open_ledger_notices_that_an_older_copy_was_put_back(ledger, path, tmp_path):
    shutil.copy(path, tmp_path / "older")
    ledger.reserve("survey", 0.5)
    shutil.copy(tmp_path / "older", path)
    with pytest.raises(LedgerCorruptError, match="row 2, seen a moment ago"):
        ledger.reserve("survey", 0.6)


def test_the_head_names_the_whole_history(ledger, path):
    before = ledger.head
    assert Ledger(path).head == before == ledger.history()[-1].hash
    ledger.reserve("survey", 0.5)
    assert ledger.head != before


def test_no_truncation_is_taken_for_a_ledger(ledger, path):
    for _ in range(30):
        ledger.release(ledger.reserve("survey", 0.5, purpose="x" * 300))
    whole = path.read_bytes()
    for length in (0, 1, 15, 16, 99, 100, 511, 512, 4095, 4096, 8192, 12288, len(whole) - 4096, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(LedgerCorruptError, match="is not an intact ledger"):
            Ledger(path)


def test_flipped_bytes_never_lower_what_is_spent(ledger, path):
    ledger.commit(ledger.reserve("survey", 0.5))
    whole = path.read_bytes()
    choice = random.Random(3)
    for _ in range(150):
        position = choice.randrange(len(whole))
        path.write_bytes(
            whole[:position] + bytes([whole[position] ^ (1 << choice.randrange(8))]) + whole[position + 1 :]
        )
        with suppress(LedgerError):
            assert Ledger(path).balance("survey").spent == PureDP(0.5, adjacency=REPLACE_ONE)


@pytest.mark.parametrize("kind", ["text", "other database", "newer version", "folder"])
def test_something_else_is_not_a_ledger(path, kind):
    if kind == "text":
        path.write_text("age;income\n" * 100)
    elif kind == "folder":
        path.mkdir()
    else:
        if kind == "newer version":
            Ledger(path)
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE people (age)" if kind == "other database" else "PRAGMA user_version = 99")
        connection.commit()
        connection.close()
    words = {"newer version": "Upgrade sfumato", "folder": "Check that it is a file"}.get(kind, "start a new ledger")
    with pytest.raises(LedgerError, match=words) as caught:
        Ledger(path)
    assert isinstance(caught.value, LedgerCorruptError) == (kind != "folder")


def test_a_missing_folder_or_file_says_what_to_do(tmp_path):
    with pytest.raises(LedgerError, match=r"does not exist.*Make it with `mkdir -p "):
        Ledger(tmp_path / "nowhere" / "ledger.db")
    with pytest.raises(LedgerError, match="sfumato ledger grant"):
        Ledger(tmp_path / "ledger.db", create=False)
    assert os.listdir(tmp_path) == []


def test_a_locked_ledger_says_so_and_changes_nothing(ledger, path):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    impatient = Ledger(path, timeout=0.1)
    with pytest.raises(LedgerLockedError, match=r"waited 0\.1 s.*timeout="):
        impatient.reserve("survey", 0.5)
    holder.execute("ROLLBACK")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerLockedError):
        Ledger(path, timeout=0.1)
    holder.execute("ROLLBACK")
    holder.close()
    assert len(impatient.history()) == 1


def test_a_faster_writer_makes_us_decide_again(ledger, path, monkeypatch):
    """Between our decision and our writing somebody with another list of ledgers spends: we must not overspend."""
    other, append = Ledger(path, beside=()), ledger._store.append

    def late(seen, draft):
        monkeypatch.setattr(ledger._store, "append", append)
        other.reserve("survey", 0.7)
        return append(seen, draft)

    monkeypatch.setattr(ledger._store, "append", late)
    with pytest.raises(OverspendError):
        ledger.reserve("survey", 0.5)
    assert ledger.balance("survey").reserved == PureDP(0.7, adjacency=REPLACE_ONE)
