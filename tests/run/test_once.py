"""One run of one mean, from the study's text to the finished folder: nothing is done twice."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from importlib import import_module

import pandas as pd
import pytest

from sfumato.evidence import verify
from sfumato.evidence.report import finish_folder
from sfumato.plan.plan import Plan
from sfumato.run.study_file import run_study

load, ground = (import_module(f"sfumato.{name}") for name in ("lang.load", "lang.ground"))

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
    holds = lambda certificate: verify(certificate).ok  # noqa: E731
    plan, _ = run_study(study, folder, folder / out, ledger, grant=True, holds=holds)
    assert finish_folder(plan, folder / out, ledger) == ()
    return plan


def test_load_logic_and_hash_of_one_mean(folder, counted):
    plan = published(folder, "out")
    # One individual, and two of them: that nobody's variables notice a second one is part of the promise.
    assert counted == {"load": 1, "logic": 2, "hash": 1}
    load.load(STUDY)  # the counting counts
    assert Plan.from_json(plan.to_json()).hash == plan.hash
    assert counted == {"load": 2, "logic": 3, "hash": 2}


def test_a_plan_has_one_digest(folder):
    """What plan.json, run.json and every certificate call the plan is the same."""
    plan = published(folder, "out")
    out = folder / "out"
    named = [json.loads(path.read_text())["plan_hash"] for path in sorted(out.glob("certificate*.json"))]
    named += [json.loads((out / "plan.json").read_text())["hash"], json.loads((out / "run.json").read_text())["plan"]]
    assert named == [plan.hash] * 4
