"""A study evaluated by workers gives what one machine gives, whatever the number of shares."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from plan.studies import COLLUDING
from sfumato.errors import SchemaError, SfumatoError
from sfumato.lang import load
from sfumato.network.network import Network
from sfumato.plan.make import make_plan
from sfumato.run.engine import study as engine_study
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
@pytest.mark.by_day(1)
def test_shares_do_not_show(plan, tables, shares):
    assert same(plan.network.evaluate(tables), evaluate_on("local", plan.network, tables, shares))


@pytest.mark.by_day(1)
def test_engines_agree(plan, tables, engine):
    assert same(plan.network.evaluate(tables), evaluate_on(engine, plan.network, tables, 3))


@pytest.mark.by_day(1)
def test_a_plan_runs_on_an_engine_and_says_how_far_it_is(plan, tables, engine, tmp_path):
    told: list[str] = []
    book, out = tmp_path / "ledger.db", tmp_path / "out"
    release = run_plan(plan, tables, book, out=out, engine=engine, grant=True, stage=told.append)
    assert release["each"].num_rows == 650
    shares = [text for text in told if "shares" in text]
    assert shares
    assert re.fullmatch(r"evaluating the study: (\d+) of \1 shares, about 0 s left", shares[-1])


def test_a_forgotten_person_is_in_no_share(tables):
    plan = make_plan(COLLUDING + "forget(p3).\n", sizes={"people": PEOPLE})
    found = evaluate_on("local", plan.network, tables, 3)
    rows = {row["id"]: row for row in found.individuals["people"].to_pylist()}
    assert (rows["p3"]["age(P)"], rows["p3"]["bmi(P)"]) == (55.0, 35.0)  # an empty row: the middle of each range
    assert len(rows) == 650


@pytest.mark.by_day(1)
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
@pytest.mark.by_day(6)
def test_the_network_of_every_example_travels(study):
    try:
        network = Network.from_spec(load(study.read_text(encoding="utf-8")))
    except SchemaError:
        pytest.skip("it is made of its public tables")
    assert network.nodes
    assert pickle.loads(pickle.dumps(_sent(network))) == network


@pytest.mark.parametrize(
    ("kind", "shares"),
    [
        ("everybody once", 3),
        ("everybody once", 9),
        ("some twice", 3),
        ("nobody's rows", 2),
        ("texts", 2),
        ("out of order", 3),
    ],
)
@pytest.mark.by_day(1)
def test_a_folder_is_dealt_out_whatever_is_in_its_files(plan, tmp_path, kind, shares, monkeypatch):
    """Whole files where every identifier occurs once; by person where somebody may be in two of them."""
    ids = np.arange(300)
    if kind == "some twice":
        ids = np.where(ids == 299, 0, ids)
    if kind == "out of order":
        ids = ids[::-1]
    listed = [f"p{one}" if kind == "texts" else int(one) for one in ids]
    if kind == "nobody's rows":
        listed[::50] = [None] * 6
    rows = pa.table({"id": listed, "age": ids / 3.0, "bmi": 20 + ids / 30.0})
    for place, (start, size) in enumerate([(0, 120), (120, 0), (120, 30), (150, 150)]):
        parquet.write_table(rows.slice(start, size), tmp_path / f"{place}.parquet")
    dealt = []
    deal = engine_study._dealt_out
    monkeypatch.setattr(engine_study, "_dealt_out", lambda *given: dealt.append(deal(*given)) or dealt[-1])
    found = evaluate_on("local", plan.network, {"patients": tmp_path}, shares)
    assert same(plan.network.evaluate({"patients": tmp_path}), found)
    by_files = all(not getattr(share["patients"], "only", "") for share in dealt[0])
    assert by_files == (shares < 4 and kind in ("everybody once", "texts", "out of order"))


def test_a_worker_of_another_version_is_refused(plan, tables, engine, monkeypatch):
    """Another version may have another hash: somebody would be in two shares."""
    monkeypatch.setattr(engine_study, "_versions", Mock(side_effect=[{"duckdb": "9"}, *[{"duckdb": "8"}] * 9]))
    with pytest.raises(SfumatoError, match=r"other versions.*nothing was spent"):
        evaluate_on(engine, plan.network, tables, 2)


def test_a_person_column_that_is_not_there_is_refused_by_name(plan, tmp_path):
    parquet.write_table(pa.table({"age": [1.0], "bmi": [1.0]}), tmp_path / "t.parquet")
    with pytest.raises(SchemaError, match=r"no column id.*Nothing was spent"):
        evaluate_on("local", plan.network, {"patients": tmp_path / "t.parquet"}, 2)


@pytest.mark.by_day(1)
def test_sums_alone_are_the_same_on_every_engine(plan, tables, engine):
    found = evaluate_on(engine, plan.network, tables, 3, sums_only=True)
    here = plan.network.evaluate(tables)
    assert all(here.aggregates[name].same(found.aggregates[name]) for name in here.aggregates)
    assert found.individuals == {}
