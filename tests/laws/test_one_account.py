"""One table has one account, by one column: whatever words, columns, companions, copies or ways of reading are tried.

Random histories of releases over a few small files, each of ε = 1, with grants that are never the reason of a refusal.
A plain record is kept beside them: which files each release has read, by which column. Then, for every file,

- all releases from it went by the same column, and
- the account that paid for the first of them has paid for every one of them.

`planted` takes a check away, and the same record finds it.
"""

from __future__ import annotations

import functools
import random
import shutil
from collections import defaultdict

import pytest

from sfumato.core import Adjacency, PureDP
from sfumato.errors import DataError, LedgerError
from sfumato.lang import load
from sfumato.ledger import elsewhere
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Books
from sfumato.plan.make import make_plan
from sfumato.run import accounts, held_tables
from sfumato.run.study import run_plan

PEOPLE, VISITS = 6, 3
NAMES = ("people", "folk")
PLENTY = PureDP(1000.0)

TABLE = """
source(FILE, 'FILE.csv'). column(FILE, COLUMN, person(P)). column(FILE, cost, FILE_cost(P)).
rows_per_person(FILE, 1). missing(FILE, never). random(FILE_cost(P)) :- person(P). range(FILE_cost(P), 0, 10).
"""
ASKED = """
dataset(NAME, domain(P, person(P))). privacy_requirement(open(public), NAME, dp(1)).
sum(total, FILE_cost(P), person(P)). publish(total, total, open(public)).
"""
PARTS = """
centre(north). centre(south). trusted(registry). holds(north, NORTH). holds(south, SOUTH).
source(NORTH, 'NORTH.csv'). column(NORTH, COLUMN, person(P)). column(NORTH, cost, cost(P)).
source(SOUTH, 'SOUTH.csv'). column(SOUTH, COLUMN, person(P)). column(SOUTH, cost, cost(P)).
rows_per_person(NORTH, 1). missing(NORTH, never). rows_per_person(SOUTH, 1). missing(SOUTH, never).
random(cost(P)) :- person(P). range(cost(P), 0, 10).
dataset(NAME, domain(P, person(P))). privacy_requirement(open(public), NAME, dp(1)).
sum(total, cost(P), person(P)). publish(total, total, open(public)). prefer(total, central).
"""


@functools.cache
def planned(read, column, name, joined):
    """The plan of a study that reads these files by this column, and which asks about the last of them."""
    if joined:
        text = PARTS.replace("NORTH", read[0]).replace("SOUTH", read[1])
    else:
        text = "".join(TABLE.replace("FILE", one) for one in read) + ASKED.replace("FILE", read[-1])
    return make_plan(load(text.replace("COLUMN", column).replace("NAME", name)))


def written(folder, chance):
    """Files of a few people with several visits each; some of the people are in several files."""
    files = ("first", "second", "third")
    for file in files:
        rows = [f"p{place // VISITS},v{file}{place},{chance.randint(0, 10)}" for place in range(PEOPLE * VISITS)]
        (folder / f"{file}.csv").write_text("id,visit,cost\n" + "\n".join(rows) + "\n")
    return files


def history(folder, chance, turns):
    """What was tried, and of what was made: the files, the column, who paid. Every history has a user of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE", str(folder / "state"))
        return _history(folder, chance, turns)


def _history(folder, chance, turns):
    files = written(folder, chance)
    books = [Ledger(folder / name, beside=None) for name in ("here.db", "there.db")]
    for book in books:
        for name in NAMES:
            book.grant(name, PLENTY, adjacency=Adjacency("person", "replace-one"))
    made = []
    for turn in range(turns):
        joined = chance.random() < 0.25
        read = tuple(chance.sample(files, 2 if joined else chance.choice((1, 1, 2))))
        column, name, book = chance.choice(("id", "visit")), chance.choice(NAMES), chance.choice(books)
        place = folder
        if chance.random() < 0.3:
            place = folder / f"copy{turn}"
            place.mkdir()
            for file in read:
                shutil.copy(folder / f"{file}.csv", place)
        before = {one: len(one.history()) for one in books}
        try:
            run_plan(planned(read, column, name, joined), place, book)
        except (LedgerError, DataError):
            assert all(len(one.history()) == number for one, number in before.items())  # a refusal leaves nothing
            continue
        new = book.history()[before[book] :]
        payers = {(book.path.name, one.dataset, one.unit) for one in new if one.action == "commit"}
        made.append((read, column, payers))
    return made


def broken(made):
    """The files of which the law does not hold."""
    columns, first, wrong = defaultdict(set), {}, set()
    for read, column, payers in made:
        for file in read:
            columns[file].add(column)
            wrong |= {file} if not first.setdefault(file, payers) <= payers or len(columns[file]) > 1 else set()
    return wrong


def test_one_table_has_one_account_by_one_column(tmp_path):
    made = 0
    for seed in (0, 1014):  # the last joins two tables that one account has by different columns
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = history(folder, random.Random(seed), turns=9)
        assert broken(found) == set(), f"seed {seed}: {found}"
        made += len(found)
    assert made > 2  # not everything was refused


@pytest.mark.slow
def test_one_table_has_one_account_by_one_column_in_long_histories(tmp_path):
    for seed in (*range(1, 4), *range(1000, 1100)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert broken(history(folder, random.Random(seed), turns=12)) == set(), f"seed {seed}"


def nothing(*_):
    return None


PLANTED = {
    "columns": [(accounts, "_check_neighbours", nothing), (Books, "neighbours", lambda self, sources: [])],
    "companions": [(room, "check_elsewhere", nothing) for room in (accounts, elsewhere)],
    "parts": [(held_tables, "StoredRows", lambda rows, place, parts: rows)],
}


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.slow
def test_a_check_that_is_taken_away_is_found(tmp_path, monkeypatch, planted):
    for owner, name, instead in PLANTED[planted]:
        monkeypatch.setattr(owner, name, instead)
    for seed in range(40):
        folder = tmp_path / str(seed)
        folder.mkdir()
        if broken(history(folder, random.Random(seed), turns=7)):
            return
    pytest.fail("no history broke the law")
