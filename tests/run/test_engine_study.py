"""A study evaluated by workers gives what one machine gives, whatever the number of shares."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from plan.studies import COLLUDING
from sfumato.plan.make import make_plan
from sfumato.run.engine.study import evaluate_on
from sfumato.run.study import run_plan

PEOPLE = 700


@pytest.fixture(scope="module")
def plan():
    return make_plan(COLLUDING, sizes={"people": PEOPLE})


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    generator = np.random.default_rng(4)
    ids = [f"p{number % 650}" for number in range(PEOPLE)]  # some people have two rows
    path = tmp_path_factory.mktemp("data") / "patients.parquet"
    rows = {"id": ids, "age": generator.uniform(0, 120, PEOPLE), "bmi": generator.normal(27, 4, PEOPLE)}
    parquet.write_table(pa.table(rows), path)
    return {"patients": path}


def same(here, there) -> bool:
    sums = all(here.aggregates[name].same(there.aggregates[name]) for name in here.aggregates)
    people = all(table.sort_by("id").equals(there.individuals[name]) for name, table in here.individuals.items())
    return sums and people


@pytest.mark.parametrize("shares", [1, 2, 7])
def test_shares_do_not_show(plan, tables, shares):
    assert same(plan.network.evaluate(tables), evaluate_on("local", plan.network, tables, shares))


def test_engines_agree(plan, tables, engine):
    assert same(plan.network.evaluate(tables), evaluate_on(engine, plan.network, tables, 3))


def test_a_plan_runs_on_an_engine(plan, tables, engine, tmp_path):
    release = run_plan(plan, tables, tmp_path / "ledger.db", out=tmp_path / "out", engine=engine, grant=True)
    assert release["each"].num_rows == 650


def test_a_forgotten_person_is_in_no_share(tables):
    plan = make_plan(COLLUDING + "forget(p3).\n", sizes={"people": PEOPLE})
    found = evaluate_on("local", plan.network, tables, 3)
    rows = {row["id"]: row for row in found.individuals["people"].to_pylist()}
    assert (rows["p3"]["age(P)"], rows["p3"]["bmi(P)"]) == (55.0, 35.0)  # an empty row: the middle of each range
    assert len(rows) == 650


def test_a_process_reads_the_study_once(plan, tables, monkeypatch):
    """Whatever the number of shares: a task is rows, not a reading of the study."""
    from sfumato.run.engine import study

    calls: list[int] = []
    read, make = study.load, study.Network.from_spec
    monkeypatch.setattr(study, "load", lambda *given: (calls.append(0), read(*given))[1])
    monkeypatch.setattr(study.Network, "from_spec", lambda *given: (calls.append(1), make(*given))[1])
    study._read.cache_clear()
    study._network_of.cache_clear()
    evaluate_on("local", plan.network, tables, 7)
    assert calls == [0, 1]


def test_sums_alone_are_the_same_on_every_engine(plan, tables, engine):
    found = evaluate_on(engine, plan.network, tables, 3, sums_only=True)
    here = plan.network.evaluate(tables)
    assert all(here.aggregates[name].same(found.aggregates[name]) for name in here.aggregates)
    assert found.individuals == {}
