"""A study evaluated by workers gives what one machine gives, whatever the number of shares."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from plan.studies import COLLUDING
from sfumato.errors import SchemaError
from sfumato.lang import load
from sfumato.network.network import Network
from sfumato.plan.make import make_plan
from sfumato.run.engine.study import _sent, evaluate_on
from sfumato.run.study import run_plan

PEOPLE = 700
EXAMPLES = Path(__file__).parents[2] / "examples"


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


def test_the_study_is_read_once_and_travels_as_it_was_read(plan, tables, engine, monkeypatch):
    """No task reads it, whatever the number of shares; a network that was looked at from all sides travels too."""
    for module in ("sfumato.lang.load", "sfumato.network.build.build"):
        monkeypatch.setattr(module, lambda *_: pytest.fail("the study is read again"))
    assert plan.network.nodes
    assert plan.network.edges
    assert plan.network.spec.table_predicates is not None
    evaluate_on(engine, plan.network, tables, 3, sums_only=True)
    evaluate_on(engine, plan.network, tables, 2, sums_only=True)


@pytest.mark.parametrize("study", sorted(EXAMPLES.glob("*/study.pl")), ids=lambda path: path.parent.name)
def test_the_network_of_every_example_travels(study):
    try:
        network = Network.from_spec(load(study.read_text(encoding="utf-8")))
    except SchemaError:
        pytest.skip("it is made of its public tables")
    assert network.nodes
    assert pickle.loads(pickle.dumps(_sent(network))) == network


def test_sums_alone_are_the_same_on_every_engine(plan, tables, engine):
    found = evaluate_on(engine, plan.network, tables, 3, sums_only=True)
    here = plan.network.evaluate(tables)
    assert all(here.aggregates[name].same(found.aggregates[name]) for name in here.aggregates)
    assert found.individuals == {}
