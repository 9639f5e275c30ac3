"""One run of one mean, from the study's text to the finished folder: nothing is done twice."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from importlib import import_module

import pandas as pd
import pytest

from sfumato.core import Adjacency, ApproxDP
from sfumato.errors import PlanError
from sfumato.evidence import verify
from sfumato.evidence.report import finish_folder
from sfumato.ledger.ledger import Ledger
from sfumato.plan.plan import Plan
from sfumato.run.study import run_plan
from sfumato.run.study_file import run_study

load, ground, derive, tables = (
    import_module(f"sfumato.{name}") for name in ("lang.load", "lang.ground", "plan.derive", "network.tables")
)

STUDY = """source(people, 'people.csv').
column(people, id, person(P)). rows_per_person(people, 1). missing(people, never).
column(people, age, age(P)).
random(age(P)) :- person(P).
range(age(P), 0, 100).
dataset(population, domain(P, person(P))).
privacy_requirement(census(public), population, dp(1, 0.000001)).
mean(m, age(P), person(P)).
publish(meanAge, m, census(public)).
"""


def counting(monkeypatch, found: Counter[str], place, name: str, word: str, counts=lambda *given: True) -> None:
    """Count the calls of a function that `counts` says are meant."""
    called = getattr(place, name)

    def counted(*given, **options):
        found[word] += counts(*given)
        return called(*given, **options)

    monkeypatch.setattr(place, name, counted)


@pytest.fixture
def counted(monkeypatch):
    """How often a study was read, its logic derived, a plan hashed, by whomever."""
    found: Counter[str] = Counter()
    counting(monkeypatch, found, load, "_examine", "load")
    counting(monkeypatch, found, ground, "Program", "logic")
    # Whatever has a study's digest in it is the text of a plan.
    counting(monkeypatch, found, hashlib, "sha256", "hash", lambda content=b"": b'"study_digest"' in content)
    return found


@pytest.fixture
def folder(tmp_path):
    pd.DataFrame({"id": range(50), "age": range(20, 70)}).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "study.pl").write_text(STUDY, encoding="utf-8")
    return tmp_path


def published(folder, out: str) -> Plan:
    """As `sfumato run` does it."""
    study, ledger = folder / "study.pl", folder / "ledger.db"
    plan, _ = run_study(study, folder, folder / out, ledger, grant=True, holds=lambda issued: verify(issued).ok)
    assert finish_folder(plan, folder / out, ledger) == ()
    return plan


def test_load_logic_and_hash_of_one_mean(folder, counted):
    plan = published(folder, "out")
    assert counted == {"load": 1, "logic": 1, "hash": 1}
    load.load(STUDY)  # the counting counts
    assert Plan.from_json(plan.to_json()).hash == plan.hash
    assert counted == {"load": 2, "logic": 2, "hash": 2}


def test_the_table_is_read_once_and_once_more_to_know_its_copies(folder, monkeypatch):
    """Data that is new to a ledger is looked at row by row before it gets an account: a copy in another format has one
    already (run/accounts.py). After that its bytes are known."""
    found: Counter[str] = Counter()
    counting(monkeypatch, found, tables.TableRoom, "_add", "read")
    published(folder, "out")
    assert found["read"] == 2
    found.clear()
    Ledger(folder / "ledger.db").grant("population", ApproxDP(9.0, 1e-5, adjacency=Adjacency("person", "replace-one")))
    published(folder, "again")
    assert found["read"] == 1


def test_what_is_run_is_derived_by_the_planner_and_before_it_is_drawn(folder, monkeypatch):
    """The second time guards what a plan became since: its mappings and arrays can be changed in their place, which
    neither makes another plan nor another hash. So the planner's own word is not taken for it."""
    found: Counter[str] = Counter()
    counting(monkeypatch, found, derive, "_publications", "derived")
    plan = published(folder, "out")
    assert found["derived"] == 2
    hashed = plan.hash
    plan.questions["m"] = dataclasses.replace(plan.questions["m"], ranges=((0.0, 1.0),))
    assert plan.hash == hashed
    with pytest.raises(PlanError, match="does not follow from its study"):
        run_plan(plan, folder, None, out=folder / "none")
    assert not (folder / "none").exists()


def test_a_plan_has_one_digest(folder):
    """What plan.json, run.json and every certificate call the plan is the same."""
    plan = published(folder, "out")
    out = folder / "out"
    named = [json.loads(path.read_text())["plan_hash"] for path in sorted(out.glob("certificate*.json"))]
    named += [json.loads((out / "plan.json").read_text())["hash"], json.loads((out / "run.json").read_text())["plan"]]
    assert named == [plan.hash] * 4
