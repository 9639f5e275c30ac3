"""One run of one mean reads its study once, derives nothing twice, and hashes its plan once."""

from __future__ import annotations

from collections import Counter
from importlib import import_module

import pandas as pd
import pytest

from sfumato.run.study_file import run_study

load, ground, plans = (import_module(f"sfumato.{name}") for name in ("lang.load", "lang.ground", "plan.plan"))

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


@pytest.fixture
def counted(monkeypatch):
    """How often a study was read, its logic derived for each set of facts, a plan hashed."""
    found: Counter[object] = Counter()
    read, program, sha256 = load._examine, ground.Program, plans.hashlib.sha256

    def reading(text, *rest):
        found["load"] += 1
        return read(text, *rest)

    def deriving(clauses, **options):
        found["logic", tuple(clauses)] += 1
        return program(clauses, **options)

    def hashing(content):
        found["hash"] += 1
        return sha256(content)

    monkeypatch.setattr(load, "_examine", reading)
    monkeypatch.setattr(ground, "Program", deriving)
    monkeypatch.setattr(plans, "hashlib", type("hashlib", (), {"sha256": staticmethod(hashing)}))
    return found


def test_one_run_of_one_mean(tmp_path, counted):
    pd.DataFrame({"id": range(50), "age": range(20, 70)}).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "study.pl").write_text(STUDY, encoding="utf-8")
    plan, _ = run_study(tmp_path / "study.pl", tmp_path, tmp_path / "out", tmp_path / "ledger.db", grant=True)
    logic = {key: times for key, times in counted.items() if isinstance(key, tuple)}
    # One individual, and two of them: that nobody's variables notice a second one is part of the promise.
    assert len(logic) == 2
    assert set(logic.values()) == {1}
    assert counted["load"] == 1
    assert counted["hash"] == 1
    load.load(STUDY)
    assert counted["load"] == 2  # the counting counts
    assert plans.Plan.from_json(plan.to_json()).hash == plan.hash
    assert counted["hash"] == 2
