"""A study counts the rows of one moment: a file that is exchanged while it is read, at whichever look, ends the run."""

from __future__ import annotations

import os
import random
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sfumato.centres.card import PartyCard
from sfumato.errors import DataError
from sfumato.lang import load
from sfumato.ledger import Ledger
from sfumato.network.crowd import crowd_of
from sfumato.network.tables import TableRoom
from sfumato.plan.plan import Plan
from sfumato.run.centre_home import Home, RoundFolder
from sfumato.run.centre_part import _prepared
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

REST = """
column(t, id, person(P)). column(t, v, v(P)). rows_per_person(t, 1). missing(v(P), 0).
random(v(P)) :- person(P). range(v(P), 0, 10). dataset(people, domain(P, person(P))).
privacy_requirement(o(public), people, dp(1)). sum(q, v(P), person(P)). publish(p, q, o(public)).
"""
SOURCES = {"t.parquet": "t.parquet", "t.csv": "t.csv", "parts": "parts/", "more": "more/"}
#: A thousand people who add up to nothing, and one person who may add at most 10.
EVERYBODY = pa.table({"id": list(range(1000)), "v": [0.0] * 1000})
ONE = pa.table({"id": [7] * 1000, "v": [10.0] * 1000})


def written(table: pa.Table, path: Path) -> None:
    """In one step, as careful programs write."""
    fresh = path.with_name(".fresh")
    (csv.write_csv if path.suffix == ".csv" else parquet.write_table)(table, fresh)
    os.replace(fresh, path)


def fill(table: pa.Table, folder: Path, kind: str) -> None:
    """The table in its place; `more` is a folder that gets one file more when it is filled again."""
    if kind not in ("parts", "more"):
        written(table, folder / kind)
        return
    (folder / kind).mkdir(exist_ok=True)
    for place, start in enumerate((0, 500)):
        again = kind == "more" and (folder / kind / f"{place}.parquet").exists()
        written(table.slice(start, 500), folder / kind / f"{place + 2 * again}.parquet")


class Looks:
    """Every look of the engine at a table; at one of them the files are exchanged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, folder: Path, kind: str) -> None:
        self.seen, guarded = 0, TableRoom._guarded

        def looked(room, action):
            self.seen += 1
            if self.seen == at:
                fill(ONE, folder, kind)
            return guarded(room, action)

        monkeypatch.setattr(TableRoom, "_guarded", looked)


def prepared(folder: Path, kind: str) -> tuple[Plan, Ledger]:
    folder.mkdir()
    fill(EVERYBODY, folder, kind)
    return make_plan(load(f"source(t, '{SOURCES[kind]}')." + REST)), Ledger(folder / "ledger.db")


def all_looks(monkeypatch: pytest.MonkeyPatch, folder: Path, kind: str) -> int:
    plan, ledger = prepared(folder, kind)
    with monkeypatch.context() as patch:
        looks = Looks(patch, 0, folder, kind)
        release = run_plan(plan, folder, ledger, grant=True)
    assert abs(release["p"]["value"][0].as_py()) < 1000
    return looks.seen


def check_refused(monkeypatch: pytest.MonkeyPatch, folder: Path, kind: str, at: int) -> None:
    plan, ledger = prepared(folder, kind)
    with monkeypatch.context() as patch:
        Looks(patch, at, folder, kind)
        with pytest.raises(DataError, match=r"\d*t?\.(parquet|csv) changed while it was read.*nothing was spent"):
            run_plan(plan, folder, ledger, out=folder / "out", grant=True)
    assert not ledger.datasets()
    assert not (folder / "out").exists()


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.by_day(2)
def test_a_file_that_is_exchanged_at_some_look_ends_the_run(kind, tmp_path, monkeypatch):
    looks = all_looks(monkeypatch, tmp_path / "whole", kind)
    for number, at in enumerate(random.Random(kind).sample(range(1, looks + 1), 2)):
        check_refused(monkeypatch, tmp_path / f"run{number}", kind, at)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_a_file_that_is_exchanged_at_any_look_ends_the_run(kind, tmp_path, monkeypatch):
    for at in range(1, 1 + all_looks(monkeypatch, tmp_path / "whole", kind)):
        check_refused(monkeypatch, tmp_path / f"run{at}", kind, at)


def test_without_the_check_one_person_would_count_a_thousand_times(tmp_path, monkeypatch):
    """Whatever the two files hold, one person adds at most 10: with them exchanged it is 10,000."""
    plan, _ = prepared(tmp_path / "data", "t.parquet")

    def asked(*given):
        crowd = crowd_of(*given)
        fill(ONE, tmp_path / "data", "t.parquet")
        return crowd

    monkeypatch.setattr("sfumato.network.evaluate.crowd_of", asked)
    monkeypatch.setattr("sfumato.run.study.unchanged", lambda tables: nullcontext())
    assert run_plan(plan, tmp_path / "data", None)["p"]["value"][0].as_py() > 5000


def test_a_file_that_changes_before_or_after_the_run_does_not_matter(tmp_path):
    folder = tmp_path / "data"
    plan, ledger = prepared(folder, "t.parquet")
    written(ONE, folder / "t.parquet")
    release = run_plan(plan, folder, ledger, grant=True)
    written(EVERYBODY, folder / "t.parquet")
    assert abs(release["p"]["value"][0].as_py()) < 1000


def test_a_file_that_goes_away_is_told_as_one(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    plan, ledger = prepared(folder, "t.csv")
    guarded = TableRoom._guarded

    def looked(room, action):
        (folder / "t.csv").unlink(missing_ok=True)
        return guarded(room, action)

    monkeypatch.setattr(TableRoom, "_guarded", looked)
    with pytest.raises(DataError, match=r"no file t\.csv|t\.csv changed"):
        run_plan(plan, folder, ledger, grant=True)
    assert not ledger.datasets()


def test_a_centre_whose_file_is_exchanged_takes_no_part(tmp_path, monkeypatch):
    """Before anything leaves the centre: its sums go to the others as they were added up here."""
    study, centres = tmp_path / "study.pl", "centre(north). centre(south). colluders(0). absences(0).\n"
    study.write_text(f"source(t, 't.parquet').{REST}{centres}", encoding="utf-8")
    homes = [Home.make(tmp_path / name, name, address="localhost:1") for name in ("north", "south", "board")]
    north, south, board = (PartyCard.read(str(home.card_file)) for home in homes)
    shared = RoundFolder.make(study, [north, south], tmp_path / "round", board, {"people": 1000})
    data = tmp_path / "data"
    data.mkdir()
    fill(EVERYBODY, data, "t.parquet")

    def asked(*given):
        crowd = crowd_of(*given)
        fill(ONE, data, "t.parquet")
        return crowd

    ledger = Ledger(tmp_path / "ledger.db")
    monkeypatch.setattr("sfumato.network.evaluate.crowd_of", asked)
    with pytest.raises(DataError, match=r"t\.parquet changed while it was read.*nothing was spent"):
        _prepared(shared, homes[0], data, ledger, True, lambda told: None)
    assert not ledger.datasets()
