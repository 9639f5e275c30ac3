"""kill -9 of a worker or of the scheduler: the same result after the retry, or a clear error; one charge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from run import engine_faults
from sfumato.core import Interval, Schema
from sfumato.errors import SfumatoError
from sfumato.ledger import Ledger
from sfumato.plan.make import make_plan
from sfumato.release import GaussianRelease, SyntheticRelease
from sfumato.run import partition_release, synthesize
from sfumato.run.engine import study as engine_study
from sfumato.run.engine.dask import DaskEngine
from sfumato.run.engine.study import evaluate_on
from sfumato.run.partition import PartLayout
from sfumato.run.partition_release import ReleaseParts, release_partitions
from sfumato.run.study import run_plan

STUDY = """
source(t, 't.parquet'). column(t, id, p(P)). column(t, x, x(P)). rows_per_person(t, 1). missing(t, never).
random(x(P)) :- p(P). range(x(P), 0, 1). dataset(d, domain(P, p(P))). privacy_requirement(r(pub), d, dp(1)).
mean(m, x(P), p(P)). publish(m, m, r(pub)).
histogram(h, [x(P): [0.25, 0.5]], p(P)). publish(h, h, r(pub)).
"""
PATIENCE = 60.0
SCHEDULER = """
from distributed import LocalCluster
cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, host="127.0.0.1",
                       protocol="tcp://", dashboard_address="127.0.0.1:0")
print(cluster.scheduler_address, flush=True)
import time
time.sleep(600)
"""


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = {"id": np.arange(500), "x": np.random.default_rng(1).random(500)}
    parquet.write_table(pa.table(rows), folder / "t.parquet")
    return folder


@pytest.fixture
def marks(tmp_path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def actions(ledger: Ledger, name: str) -> list[str]:
    return [record.action for record in ledger.history(name)]


@contextmanager
def scheduler() -> Iterator[tuple[str, subprocess.Popen]]:
    """The address of a scheduler with one worker, in a process of its own."""
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.Popen(
        [sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip(), child
    finally:
        child.kill()
        child.wait(timeout=PATIENCE)
        child.stdout.close()


def kill_when_it_works(child: subprocess.Popen, marks: Path) -> threading.Thread:
    def kill() -> None:
        end = time.monotonic() + PATIENCE
        while not list(marks.iterdir()) and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    return killer


@pytest.mark.slow
def test_a_worker_killed_in_a_study_changes_no_sum_and_is_charged_once(cluster, data, marks, tmp_path, monkeypatch):
    plan = make_plan(STUDY, sizes={"d": 500})
    tables = {"t": data / "t.parquet"}
    calm = evaluate_on("local", plan.network, tables, 3, sums_only=True)
    share = engine_study._Share
    monkeypatch.setattr(engine_study, "_Share", lambda *given: engine_faults.DiesOnce(share(*given), str(marks)))
    hit = evaluate_on(cluster, plan.network, tables, 3, sums_only=True)
    assert list(marks.iterdir())
    assert all(calm.aggregates[name].same(hit.aggregates[name]) for name in calm.aggregates)
    for mark in marks.iterdir():
        mark.unlink()
    ledger = Ledger(tmp_path / "ledger.db")
    run_plan(plan, data, ledger, out=tmp_path / "out", engine=cluster, grant=True)
    assert list(marks.iterdir())
    assert actions(ledger, "d") == ["grant", "reserve", "commit"]


@pytest.mark.slow
def test_a_worker_killed_while_it_counts_changes_no_count_and_is_charged_once(
    cluster, data, marks, tmp_path, monkeypatch
):
    """Synthetic rows are made of counts of pairs: the same ones, whoever died."""
    (data / "rows").mkdir()
    generator = np.random.default_rng(2)
    for number in range(3):
        part = pa.table({"a": generator.random(200), "b": generator.random(200)})
        parquet.write_table(part, data / "rows" / f"{number}.parquet")
    schema = Schema({"a": Interval(0, 1, null=0), "b": Interval(0, 1, null=0)})
    seen, count, gather = [], synthesize._CountPart, synthesize._Folder.gather

    def watched(folder, counting):
        seen.append((folder, counting, gather(folder, counting)))
        return seen[-1][2]

    ledger = Ledger(tmp_path / "ledger.db")
    with monkeypatch.context() as patch:
        patch.setattr(synthesize._Folder, "gather", watched)
        patch.setattr(synthesize, "_CountPart", lambda *given: engine_faults.DiesOnce(count(*given), str(marks)))
        release = SyntheticRelease(schema, epsilon=1.0, delta=1e-6)
        out = tmp_path / "out"
        synthesize.synthesize_file(data / "rows", release, out, ledger, "rows", engine=cluster, grant=True)
    assert list(marks.iterdir())
    assert actions(ledger, "rows") == ["grant", "reserve", "commit"]
    for folder, counting, counts in seen:
        folder.engine = "local"
        np.testing.assert_equal(asdict(counts), asdict(folder.gather(counting)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_killed_in_a_study_is_a_clear_error_and_nothing_is_spent(data, marks, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    plan = make_plan(STUDY, sizes={"d": 500})
    ledger = Ledger(tmp_path / "ledger.db")
    share = engine_study._Share
    with scheduler() as (address, child), monkeypatch.context() as patch:
        patch.setattr(engine_study, "_Share", lambda *given: engine_faults.WaitsToBeKilled(share(*given), str(marks)))
        engine = DaskEngine(DaskEngine.join(address).client, patience=2.0)
        killer = kill_when_it_works(child, marks)
        began = time.monotonic()
        with pytest.raises(SfumatoError, match="Nothing was published"):
            run_plan(plan, data, ledger, out=tmp_path / "out", engine=engine, grant=True)
        assert time.monotonic() - began < 2 * PATIENCE
        killer.join(PATIENCE)
        engine.client.close(timeout=5)
    assert not ledger.datasets()
    assert not (tmp_path / "out").exists()
    run_plan(plan, data, ledger, out=tmp_path / "out", grant=True)
    assert actions(ledger, "d") == ["grant", "reserve", "commit"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_killed_in_a_release_is_gone_on_with_at_no_further_cost(data, marks, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    (data / "people").mkdir()
    parquet.write_table(pa.table({"x": np.random.default_rng(3).random(400)}), data / "people" / "0.parquet")
    prepared = GaussianRelease(Schema({"x": Interval(0, 1, null=0)}), epsilon=1.0, delta=1e-6).prepare()
    ledger = Ledger(tmp_path / "ledger.db")

    def publish(engine) -> None:
        release_partitions(
            data / "people", prepared, tmp_path / "out", ledger, "people", engine=engine, grant=True,
            layout=PartLayout(128, 1),
        )  # fmt: skip

    with scheduler() as (address, child), monkeypatch.context() as patch:
        patch.setattr(
            partition_release,
            "ReleaseParts",
            lambda *given: engine_faults.WaitsToBeKilled(ReleaseParts(*given), str(marks)),
        )
        engine = DaskEngine(DaskEngine.join(address).client, patience=2.0)
        killer = kill_when_it_works(child, marks)
        with pytest.raises(SfumatoError, match=r"Nothing was published.*at no further cost"):
            publish(engine)
        killer.join(PATIENCE)
        engine.client.close(timeout=5)
    assert actions(ledger, "people") == ["grant", "reserve"]
    publish("local")
    assert parquet.read_table(tmp_path / "out" / "table").num_rows == 400
    assert actions(ledger, "people") == ["grant", "reserve", "commit"]
