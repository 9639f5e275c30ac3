"""Runs at the same moment, each with a ledger of its own: of one table at most one of them is paid for.

Every run has looked for the account elsewhere before any of them opens one, as when several people are asked for a
first grant at once. What binds data looks again, alone (ledger/known_ledgers.py).
"""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sfumato.errors import SfumatoError, UnknownDatasetError
from sfumato.ledger.known_ledgers import known_ledgers, remember_ledger
from sfumato.ledger.ledger import Ledger
from sfumato.run import charges
from sfumato.run.accounts import table_sources
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

STUDY = """source(kept, 'kept.parquet'). column(kept, id, person(P)). rows_per_person(kept, 1).
column(kept, age, age(P)). random(age(P)) :- person(P). range(age(P), 0, 110). missing(age(P), 50).
dataset(people, domain(P, person(P))). privacy_requirement(openness(public), people, dp(0.5)).
sum(total, age(P), person(P)). publish(total, total, openness(public)).
"""


def at_once(folder, seed, monkeypatch):
    """What each run published or why not, and the sources of the table."""
    generator = np.random.default_rng(seed)
    runs = int(generator.integers(2, 4))
    table = pa.table({"id": generator.integers(0, 2**40, 30), "age": generator.integers(0, 110, 30)})
    together, found = threading.Barrier(runs), {}
    monkeypatch.setattr(charges, "first_grant", _all_together(charges.first_grant, together))

    def run(number: int) -> None:
        here = folder / str(number)
        turned = table.take(np.random.default_rng(number).permutation(30))
        file = here / ("kept.csv" if number % 2 else "kept.parquet")
        csv.write_csv(turned, file) if number % 2 else parquet.write_table(turned, file)
        ledger = here / "ledger.db"
        if number in rides:  # an account of this name is there already, for other data: nobody is asked
            Ledger(ledger).grant("people", 2.0, adjacency=plan.row_cost("people").adjacency)
        try:
            found[number] = run_plan(plan, {"kept": file}, ledger, grant=True)
        except SfumatoError as error:
            found[number] = error

    plan = make_plan(STUDY)
    rides = set(np.flatnonzero(generator.random(runs) < 0.5).tolist())
    for number in range(runs):
        (folder / str(number)).mkdir()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, table_sources(table, "id")


def _all_together(look, together):
    """A first look after which everybody waits until all have looked; a first grant is asked for in the middle."""

    def looked(ledger, dataset, total, sources, grant, why):
        def asked(question: str) -> bool:
            together.wait(60)
            return True

        known = bool(ledger.datasets())
        look(ledger, dataset, total, sources, asked, why)
        if known:
            together.wait(60)

    return looked


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
@pytest.mark.by_day(1)
def test_one_table_is_paid_for_by_one_of_them(seed, tmp_path, monkeypatch):
    found, sources = at_once(tmp_path, seed, monkeypatch)
    failed = [one for one in found.values() if isinstance(one, SfumatoError)]
    assert len(failed) == len(found) - 1
    assert all(isinstance(one, UnknownDatasetError) for one in failed), failed
    owning = [number for number in found if Ledger(tmp_path / str(number) / "ledger.db").owners(sources)]
    assert [number for number in found if not isinstance(found[number], SfumatoError)] == owning


def test_without_the_second_look_it_is_found(tmp_path, monkeypatch):
    for room in ("run.accounts", "ledger.elsewhere"):
        monkeypatch.setattr(f"sfumato.{room}.check_elsewhere", lambda *given: None)
    found, _ = at_once(tmp_path, 0, monkeypatch)
    assert sum(not isinstance(one, SfumatoError) for one in found.values()) > 1


@pytest.mark.parametrize("name", ["a\nb", "a\x85b", "a\u2028b", "a\udcffb", '"a"', "a b"])
def test_the_list_holds_whatever_a_ledger_is_called(name, tmp_path):
    other = tmp_path / "other.db"
    remember_ledger(tmp_path / name / "ledger.db")
    remember_ledger(other)
    remember_ledger(other)
    assert known_ledgers() == [(tmp_path / name / "ledger.db").resolve(), other.resolve()]


@pytest.mark.parametrize("broken", [b'"/half a li', b"12", b"\xff\xfe", b'"\\ud8', b"[]"])
def test_a_line_that_cannot_be_read_hides_no_other_ledger(broken, tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path))
    remember_ledger(tmp_path / "first.db")
    with (tmp_path / "ledgers.txt").open("ab") as file:
        file.write(broken + b"\n")
    remember_ledger(tmp_path / "second.db")
    assert {tmp_path / "first.db", tmp_path / "second.db"} <= set(known_ledgers())
