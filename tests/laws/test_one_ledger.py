"""Whatever was published from one table, one ledger counts all of it: however folders, tables and ledgers are copied.

Random histories over a few folders: a folder is copied with its ledger, or with its table alone, in another format and
order; a budget is raised; the table is published from by a study, a release or a fit, with a ledger that is given by
its path or as an object. A plain record is kept of what came out, and compared with the ledgers' own files.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sfumato.core import REPLACE_ONE, Adjacency, Interval, PureDP, Schema
from sfumato.errors import LedgerError
from sfumato.learn import PrivateLogisticRegression
from sfumato.ledger import Ledger, store
from sfumato.release import LaplaceRelease
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan
from sfumato.run.tables import release_file

STUDY = """source(kept, 'kept.parquet'). each_row(kept, person(P)).
column(kept, age, age(P)). random(age(P)) :- person(P). range(age(P), 0, 110). missing(age(P), 50).
column(kept, pay, pay(P)). random(pay(P)) :- person(P). range(pay(P), 0, 1). missing(pay(P), 0).
dataset(people, domain(P, person(P))). privacy_requirement(openness(public), people, dp(1)).
sum(total, age(P), person(P)). publish(total, total, openness(public)).
"""
PLAN = make_plan(STUDY)
PERSON = Adjacency("person", "replace-one")


def by_study(file, book, out):
    run_plan(PLAN, {"kept": file}, book, grant=True)


def by_release(file, book, out):
    prepared = LaplaceRelease(Schema({"age": Interval(0, 110), "pay": Interval(0, 1)}), epsilon=1.0).prepare()
    release_file(file, prepared, out, book if isinstance(book, Ledger) else Ledger(book), "people", grant=True)


def by_fit(file, book, out):
    table = parquet.read_table(file) if file.suffix == ".parquet" else csv.read_csv(file)
    book = book if isinstance(book, Ledger) else Ledger(book)
    if ("people", "record") not in book.datasets():
        book.grant("people", PureDP(1.0))
    model = PrivateLogisticRegression(1.0, classes=[0, 1])
    rows = table.to_pandas() / [110, 1]
    model.fit(rows, np.arange(len(rows)) % 2, ledger=book, dataset="people")


def copied(folders, draw, place):
    """Another folder: with its ledger, or with the table alone, written anew."""
    old, new = draw.choice(folders), place / str(len(folders))
    if draw.random() < 0.6:
        shutil.copytree(old, new)
        return new
    new.mkdir()
    (file,) = old.glob("kept.*")
    table = parquet.read_table(file) if file.suffix == ".parquet" else csv.read_csv(file)
    table = table.take(draw.sample(range(table.num_rows), table.num_rows))
    if draw.random() < 0.5:
        csv.write_csv(table, new / "kept.csv")
    else:
        parquet.write_table(table, new / "kept.parquet")
    return new


def raised(folder):
    for name, unit in Ledger(folder / "ledger.db").datasets() if (folder / "ledger.db").exists() else ():
        Ledger(folder / "ledger.db").grant(name, PureDP(100.0, adjacency=Adjacency(unit, "replace-one")))


def history(seed, place, publish, length=12):
    """How often something was published, and all folders."""
    draw = random.Random(seed)
    folders, published = [place / "0"], 0
    folders[0].mkdir()
    rows = np.random.default_rng(seed)
    table = pa.table({"age": rows.integers(0, 110, 30) + 0.5, "pay": rows.random(30)})
    parquet.write_table(table, folders[0] / "kept.parquet")
    for turn in range(length):
        match draw.choice(["copy", "raise", "publish", "publish"]):
            case "copy":
                folders.append(copied(folders, draw, place))
            case "raise":
                raised(draw.choice(folders))
            case _:
                here = draw.choice(folders)
                (file,) = here.glob("kept.*")
                book = here / "ledger.db"
                try:
                    publish(file, Ledger(book) if draw.random() < 0.5 else book, place / f"out{turn}")
                    published += 1
                except LedgerError:
                    pass
    return published, folders


def counted(folder):
    if not (folder / "ledger.db").exists():
        return 0
    book = Ledger(folder / "ledger.db")
    return sum(record.action == "commit" for record in book.history())


WAYS = {"study": by_study, "release": by_release, "fit": by_fit}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))])
@pytest.mark.by_day(4)
def test_one_ledger_counts_all_that_was_published(seed, way, tmp_path):
    published, folders = history(seed, tmp_path, WAYS[way])
    assert max(map(counted, folders)) == published


@pytest.mark.parametrize("planted", ["check_elsewhere", "check_copies"])
@pytest.mark.slow
def test_a_look_that_is_left_out_is_found(planted, tmp_path, monkeypatch):
    for room in ("ledger.elsewhere", "run.accounts"):
        monkeypatch.setattr(f"sfumato.{room}.{planted}", lambda *given: None, raising=False)
    differ = []
    for seed in range(8):
        (tmp_path / str(seed)).mkdir()
        published, folders = history(seed, tmp_path / str(seed), by_study)
        differ.append(max(map(counted, folders)) < published)
    assert any(differ)


@pytest.mark.parametrize("number", [2, 3])
def test_of_copies_that_pay_at_the_same_moment_one_goes_on(number, tmp_path, monkeypatch):
    """All of them have evaluated their rows before any of them pays."""
    table = {"kept": pa.table({"age": [1.0, 2.0], "pay": [0.0, 1.0]})}
    run_plan(PLAN, table, tmp_path / "ledger.db", grant=True)
    Ledger(tmp_path / "ledger.db").grant("people", PureDP(100.0, adjacency=PERSON))
    together, reserve, told = threading.Barrier(number), Ledger.reserve, []

    def waited(self, *given, **words):
        together.wait(60)
        return reserve(self, *given, **words)

    def run(book):
        try:
            run_plan(PLAN, table, book)
        except LedgerError as error:
            told.append(str(error))

    books = [shutil.copy(tmp_path / "ledger.db", tmp_path / f"{place}.db") for place in range(number)]
    monkeypatch.setattr(Ledger, "reserve", waited)
    threads = [threading.Thread(target=run, args=(book,)) for book in books]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == number - 1
    assert all("copies of one ledger" in one for one in told)


def test_a_decision_to_ask_nobody_is_kept(tmp_path):
    """Who says beside=() has the two budgets that they asked for, and stands on no list."""
    table = {"kept": pa.table({"age": [1.0, 2.0], "pay": [0.0, 1.0]})}
    run_plan(PLAN, table, tmp_path / "one.db", grant=True)
    run_plan(PLAN, table, Ledger(tmp_path / "two.db", beside=()), grant=True)
    assert Ledger(tmp_path / "two.db").balance("people", "person").spent is not None


def test_a_copy_that_is_used_for_other_data_stops_nobody(tmp_path):
    """A folder is copied as a pattern and gets other rows: the first one's budget is not touched."""
    first = {"kept": pa.table({"age": [1.0, 2.0], "pay": [0.0, 1.0]})}
    run_plan(PLAN, first, tmp_path / "one.db", grant=True)
    Ledger(tmp_path / "one.db").grant("people", PureDP(3.0, adjacency=PERSON))
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    Ledger(tmp_path / "two.db").grant("others", PureDP(1.0, adjacency=REPLACE_ONE), sources=("rows\0other\0",))
    Ledger(tmp_path / "two.db").reserve("others", 1.0, sources=("rows\0other\0",))
    run_plan(PLAN, first, tmp_path / "one.db")


@pytest.mark.parametrize("unit", ["record", "hospital"])
def test_copies_share_one_budget_where_nobody_says_which_data_is_read(unit, tmp_path):
    """A plain `reserve`, a round's account, answers of OutputSVC: they name the account alone."""
    who = Adjacency(unit, "replace-one")
    Ledger(tmp_path / "one.db").grant("people", PureDP(1.0, adjacency=who))
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    Ledger(tmp_path / "one.db").reserve("people", 1.0)
    with pytest.raises(LedgerError, match="copies of one ledger"):
        Ledger(tmp_path / "two.db").reserve("people", 1.0)
    Ledger(tmp_path / "two.db").grant("people", PureDP(0.5, adjacency=who))  # the way out of two that differ


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENAMETOOLONG])
def test_a_ledger_that_is_out_of_reach_stops_nobody(error, tmp_path, monkeypatch):
    """A folder that may not be entered, a disk that is away: everything else this user has goes on."""
    away = tmp_path / "away" / "ledger.db"
    away.parent.mkdir()
    Ledger(away).grant("others", 1.0, sources=("rows\0other\0",))
    stat = os.stat

    def out_of_reach(path, *given, **words):
        if os.fspath(path) == str(away):
            raise OSError(error, os.strerror(error), str(path))
        return stat(path, *given, **words)

    monkeypatch.setattr(os, "stat", out_of_reach)
    book = Ledger(tmp_path / "ledger.db")
    book.grant("people", 1.0, sources=("rows\0own\0",))
    book.reserve("people", 1.0, sources=("rows\0own\0",))


def test_a_run_that_was_stopped_is_resumed_in_one_copy_alone(tmp_path):
    """Copied between its reservation and its noise: each copy would draw anew, and one charge pay for both."""
    own = ("rows\0own\0",)
    Ledger(tmp_path / "one.db").grant("people", 1.0, sources=own)
    Ledger(tmp_path / "one.db").reserve("people", 1.0, key="run", sources=own)
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    first = Ledger(tmp_path / "one.db")
    first.commit(first.reserve("people", 1.0, key="run", sources=own))
    with pytest.raises(LedgerError, match="copies of one ledger"):
        Ledger(tmp_path / "two.db").reserve("people", 1.0, key="run", sources=own)


@pytest.mark.parametrize("copies", [2, 3])
def test_of_copies_that_all_resumed_a_run_one_commits(copies, tmp_path):
    """Each has drawn before any of them commits: one publishes, and the others learn that they may not."""
    own = ("rows\0own\0",)
    Ledger(tmp_path / "0.db").grant("people", 1.0, sources=own)
    Ledger(tmp_path / "0.db").reserve("people", 1.0, key="run", sources=own)
    for place in range(1, copies):
        shutil.copy(tmp_path / "0.db", tmp_path / f"{place}.db")
    books = [Ledger(tmp_path / f"{place}.db") for place in range(copies)]
    resumed = [book.reserve("people", 1.0, key="run", sources=own) for book in books]
    random.Random(copies).shuffle(order := list(range(copies)))
    books[order[0]].commit(resumed[order[0]])
    for place in order[1:]:
        with pytest.raises(LedgerError, match=r"copies of one ledger.*Nothing was published here"):
            books[place].commit(resumed[place])
    assert [book.state(one.id) for book, one in zip(books, resumed, strict=True)].count("committed") == 1


def test_ledgers_that_are_made_in_the_same_moment_are_no_copies(tmp_path, monkeypatch):
    """Equal grants at one reading of the clock: fifty institutions on one machine, or a loop. Only files are copies."""

    class Stopped(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, tzinfo=tz)

    monkeypatch.setattr(store, "datetime", Stopped)
    books = [Ledger(tmp_path / f"{name}.db") for name in range(8)]
    for book in books:
        book.grant("people", PureDP(3.0), adjacency=PERSON)
    for book in books:
        book.reserve("people", [PureDP(1.0, adjacency=PERSON)], purpose="a trial")
    shutil.copy(tmp_path / "0.db", tmp_path / "copy.db")
    copied = Ledger(tmp_path / "copy.db")
    books[0].reserve("people", [PureDP(1.0, adjacency=PERSON)], purpose="another")
    with pytest.raises(LedgerError):
        copied.reserve("people", [PureDP(0.5, adjacency=PERSON)], purpose="a third")
