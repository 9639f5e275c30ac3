"""Tables on every engine: the same bytes whoever writes them and however often, charged once, all or nothing."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from run import engine_faults
from sfumato.core import Categories, Interval, Schema
from sfumato.errors import (
    DataError,
    InputError,
    LedgerError,
    LedgerLockedError,
    SchemaError,
    SfumatoError,
    UndeclaredCellWarning,
)
from sfumato.evidence import verify
from sfumato.ledger import Ledger
from sfumato.mechanisms import TailoredNoise
from sfumato.mechanisms.bits import Bits, StreamKey
from sfumato.release import BoxRelease, Constraint, GaussianRelease, LaplaceRelease, WeakGuaranteeWarning
from sfumato.run import partition_release
from sfumato.run.engine import dask as engine_dask
from sfumato.run.engine.dask import DaskEngine
from sfumato.run.engine.engine import open_engine
from sfumato.run.partition import PartitionedTable, PartLayout
from sfumato.run.partition_release import ReleaseParts, release_partitions
from sfumato.run.run_key import RunKey, binding
from sfumato.run.staging import Staging

SCHEMA = Schema({"age": Interval(0, 100, null=0), "dose": Interval(-5, 5, null=0)})
MIXED = Schema({**SCHEMA.columns, "ill": Categories(["no", "yes"], unknown="no", null="no")})
PREPARED = GaussianRelease(SCHEMA, epsilon=2.0, delta=1e-6).prepare()
SMALL = PartLayout(block_rows=128, part_blocks=2)


def people(count: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table({"age": generator.uniform(0, 100, count), "dose": generator.uniform(-5, 5, count)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """1500 records in four files, one of them empty, cut at no round number."""
    (tmp_path / "people").mkdir()
    for number, rows in enumerate((401, 0, 699, 400)):
        parquet.write_table(people(rows, number), tmp_path / "people" / f"{number}.parquet", row_group_size=150)
    return tmp_path


@pytest.fixture
def mixed(folder: Path) -> Path:
    """The same with a category."""
    for path in (folder / "people").iterdir():
        table = parquet.read_table(path)
        answers = pa.array([("no", "yes", "unheard of")[at % 3] for at in range(table.num_rows)], pa.string())
        parquet.write_table(table.append_column("ill", answers), path, row_group_size=150)
    return folder


@pytest.fixture
def one_key(monkeypatch) -> StreamKey:
    """Every run draws the same secret: only so can the bytes of two runs be compared."""
    key = StreamKey.fresh()
    monkeypatch.setattr(StreamKey, "fresh", classmethod(lambda cls: key))
    return key


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def publish(folder: Path, name: str = "out", **options) -> Path:
    settings = {"layout": SMALL, "engine": "local", "grant": True, **options}
    prepared = settings.pop("prepared", PREPARED)
    ledger = settings.pop("ledger", None) or Ledger(folder / f"{name}.db", beside=())
    release_partitions(folder / "people", prepared, folder / name, ledger, "people", **settings)
    return folder / name


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


# The stream.


def test_streams_of_different_places_are_independent_and_secret():
    key = StreamKey.fresh()
    places = [(0,), (1,), ("0",), (0, "age"), (0, "dose"), ("0, 'age'",)]
    drawn = [Bits(key.at(*place)).words(64) for place in places]
    drawn += [Bits(key).words(64), Bits(StreamKey.fresh().at(0)).words(64)]
    assert len({words.tobytes() for words in drawn}) == len(drawn)
    assert key.export().hex() not in repr(key) + str(key) + repr([key.at(1)])
    assert PREPARED.keyed(key).acts[0].mechanism.publishable
    assert "StreamKey(…)" in repr(PREPARED.keyed(key))
    with pytest.raises(InputError):
        StreamKey(b"too short")


def test_keyed_noise_has_the_law_of_fresh_noise():
    """Two blocks of the same rows differ by noise of the declared scale, and so do two acts."""
    rows = pa.table({"age": np.full(40_000, 50.0), "dose": np.zeros(40_000)})
    keyed = PREPARED.keyed(StreamKey.fresh())
    first, second = keyed.apply(rows, 0), keyed.apply(rows, 1)
    for column, law in zip(("age", "dose"), PREPARED.noise.laws, strict=True):
        difference = first[column].to_numpy() - second[column].to_numpy()
        assert abs(difference.std() / (law.scale * np.sqrt(2)) - 1) < 0.02
    scaled = (first["age"].to_numpy() - 50) / 100, first["dose"].to_numpy() / 10
    assert abs(np.corrcoef(*scaled)[0, 1]) < 0.025
    again = keyed.apply(rows, 0)
    assert again.equals(first)


def test_a_tailored_channel_repeats_under_a_key_and_only_then():
    channel, key = TailoredNoise(Interval(0, 1), 2.0, bins=4), StreamKey.fresh()
    values = np.linspace(0, 1, 500)
    keyed = replace(channel, random_state=key.at(0))  # type: ignore[arg-type]
    assert np.array_equal(keyed(values), keyed(values))
    assert not np.array_equal(keyed(values), replace(channel, random_state=key.at(1))(values))  # type: ignore[arg-type]
    assert not np.array_equal(channel(values), channel(values))
    assert keyed.publishable


# The same bytes.


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "box", "tied", "clipped"])
@pytest.mark.by_day(1)
def test_partitions_do_not_show(mixed, one_key, kind):
    with pytest.warns(WeakGuaranteeWarning) if kind in ("box", "tied") else nullcontext():
        prepared = {
            "gaussian": lambda: GaussianRelease(MIXED, epsilon=2.0, delta=1e-6).prepare(),
            "laplace": lambda: LaplaceRelease(MIXED, epsilon=2.0, label="ill", label_epsilon=1.0).prepare(),
            "box": lambda: BoxRelease(MIXED, half_width=40.0, category_epsilon=1.0).prepare(),
            "tied": lambda: BoxRelease(
                MIXED, 40.0, category_epsilon=1.0, constraints=[Constraint({"age": 1.0})]
            ).prepare(),
            "clipped": lambda: GaussianRelease(MIXED, epsilon=2.0, delta=1e-6, label="ill", clip=True).prepare(),
        }[kind]()
    seen = [
        digests(publish(mixed, f"out{number}", partitions=number, prepared=prepared) / "table") for number in (1, 2, 7)
    ]
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) == 6


def test_files_of_another_cut_give_the_same_bytes(folder, one_key):
    """How the input was cut into files and row groups does not show either, only its rows do."""
    first = publish(folder, "first")
    whole = PartitionedTable.open(folder / "people")
    joined = pa.concat_tables([parquet.read_table(file) for file in whole.files])
    for file in whole.files:
        Path(file).unlink()
    parquet.write_table(joined.slice(0, 1000), folder / "people" / "a.parquet", row_group_size=77)
    parquet.write_table(joined.slice(1000), folder / "people" / "b.parquet")
    assert digests(publish(folder, "second") / "table") == digests(first / "table")


def test_engines_agree(folder, one_key, cluster):
    local, spread = publish(folder, "local"), publish(folder, "dask", engine=cluster, partitions=3)
    assert digests(local / "table") == digests(spread / "table")
    assert (local / "noise.json").read_bytes() == (spread / "noise.json").read_bytes()
    assert (local / "README.txt").read_bytes() == (spread / "README.txt").read_bytes()


def test_another_run_draws_other_noise(folder):
    """The audit of the tests above: without the fixed key nothing is the same."""
    one, two = publish(folder, "one"), publish(folder, "two")
    a, b = (parquet.read_table(made / "table")["age"].to_numpy() for made in (one, two))
    assert not np.any(a == b)


def test_release_is_complete_charged_and_certified(folder, engine):
    ledger = Ledger(folder / "ledger.db", beside=())
    seen = []
    out = publish(folder, ledger=ledger, engine=engine, progress=seen.append)
    table = parquet.read_table(out / "table")
    assert table.num_rows == sum(seen) == 1500
    assert table.column_names == list(SCHEMA.columns)
    assert verify(out / "certificate.json")
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve", "commit"]
    assert not list((folder / "ledger.db.keys").iterdir())
    assert not left_over(folder)
    assert stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE((out / "table").stat().st_mode) == 0o755
    with pytest.raises(LedgerError):
        publish(folder, "again", ledger=ledger, engine=engine)
    assert not (folder / "again").exists()
    assert not left_over(folder)
    assert not list((folder / "ledger.db.keys").iterdir())


# Retries, duplicates, lost workers.


def test_a_duplicated_task_writes_the_same_bytes(folder, cluster):
    """Forced speculation: every task twice, at the same time, into two folders and into one."""
    table, key = PartitionedTable.open(folder / "people"), StreamKey.fresh()
    parts = table.parts(SMALL)
    for name in ("one", "two", "both"):
        (folder / name).mkdir()
    tasks = {
        name: ReleaseParts(PREPARED.keyed(key), tuple(SCHEMA.columns), str(folder / name))
        for name in ("one", "two", "both")
    }
    futures = [cluster.client.submit(task, [part], pure=False) for task in tasks.values() for part in parts]
    futures += [cluster.client.submit(tasks["both"], [part], pure=False) for part in parts]
    cluster.client.gather(futures)
    assert digests(folder / "one") == digests(folder / "two") == digests(folder / "both")
    # Planted mistake: fresh noise at each attempt is what a retry must not do, and this comparison sees it.
    careless = ReleaseParts(PREPARED, tuple(SCHEMA.columns), str(folder / "two"))
    careless(parts)
    assert not set(digests(folder / "one").values()) & set(digests(folder / "two").values())


@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle_changes_nothing(folder, one_key, cluster, monkeypatch):
    calm = publish(folder, "calm")
    (folder / "marks").mkdir()
    ledger = Ledger(folder / "ledger.db", beside=())
    monkeypatch.setattr(
        partition_release, "ReleaseParts", lambda *a: engine_faults.DiesHalfWay(ReleaseParts(*a), str(folder / "marks"))
    )
    out = publish(folder, "out", engine=cluster, partitions=2, ledger=ledger)
    assert len(list((folder / "marks").iterdir())) == 2  # both partitions lost their worker once
    assert digests(out / "table") == digests(calm / "table")
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve", "commit"]
    assert not left_over(folder)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_partition_that_kills_every_worker_is_a_clean_error(folder, cluster, monkeypatch):
    (folder / "marks").mkdir()
    ledger = Ledger(folder / "ledger.db", beside=())
    with monkeypatch.context() as patch:
        patch.setattr(
            partition_release,
            "ReleaseParts",
            lambda *a: engine_faults.DiesHalfWay(ReleaseParts(*a), str(folder / "marks"), deaths=100),
        )
        with pytest.raises(SfumatoError, match=r"Nothing was published"):
            publish(folder, engine=cluster, partitions=1, ledger=ledger)
    assert not (folder / "out").exists()
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve"]  # drawn, so it counts
    publish(folder, engine="local", ledger=ledger)  # and resumes on another engine, paying nothing more
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve", "commit"]


# Interrupted and resumed.


def test_a_full_disk_is_an_error_and_the_run_resumes_at_no_cost(folder, one_key, monkeypatch):
    calm = publish(folder, "calm")
    ledger = Ledger(folder / "ledger.db", beside=())
    (folder / "marks").mkdir()
    monkeypatch.setattr(
        partition_release, "ReleaseParts", lambda *a: engine_faults.FullDisk(ReleaseParts(*a), str(folder / "marks"))
    )
    with pytest.raises(SfumatoError, match="disk is full") as caught:
        publish(folder, ledger=ledger)
    assert "ada" not in str(caught.value)
    assert caught.value.__context__ is None
    assert not (folder / "out").exists()
    assert ledger.balance("people").reserved is not None
    (key_file,) = (folder / "ledger.db.keys").iterdir()
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700
    (folder / "marks" / "room").touch()
    out = publish(folder, ledger=ledger)
    assert digests(out / "table") == digests(calm / "table")
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve", "commit"]
    assert not list((folder / "ledger.db.keys").iterdir())
    assert not left_over(folder)


def test_a_resumed_run_keeps_its_noise_and_its_finished_parts(folder, monkeypatch):
    """Without a fixed key: what the first attempt wrote is found again, byte for byte, in the publication."""
    ledger = Ledger(folder / "ledger.db", beside=())
    (folder / "marks").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(
            partition_release,
            "ReleaseParts",
            lambda *a: engine_faults.FullDisk(ReleaseParts(*a), str(folder / "marks")),
        )
        with pytest.raises(SfumatoError):
            publish(folder, ledger=ledger)
    (staging,) = folder.glob(".out.*.partial")
    assert stat.S_IMODE(staging.stat().st_mode) == 0o700
    first = digests(staging / "table")
    assert first
    (staging / "table" / "part-00001.parquet").unlink()  # lost, and drawn again the same
    out = publish(folder, ledger=ledger, partitions=1)
    assert {name: digests(out / "table")[name] for name in first} == first


def test_other_data_never_meets_the_same_noise(folder, monkeypatch):
    """A file that changed after an interruption makes another run: another key and another charge."""
    ledger = Ledger(folder / "ledger.db", beside=())
    ledger.grant("people", 10.0)
    ledger.grant("people", 10.0, note="room for two")
    prepared = LaplaceRelease(SCHEMA, epsilon=2.0).prepare()
    (folder / "marks").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(
            partition_release,
            "ReleaseParts",
            lambda *a: engine_faults.FullDisk(ReleaseParts(*a), str(folder / "marks")),
        )
        with pytest.raises(SfumatoError):
            publish(folder, ledger=ledger, prepared=prepared)
    parquet.write_table(people(401, seed=9), folder / "people" / "0.parquet", row_group_size=150)
    publish(folder, ledger=ledger, prepared=prepared)
    actions = [record.action for record in ledger.history("people")]
    assert actions == ["grant", "grant", "reserve", "reserve", "commit"]


def test_data_that_changes_while_it_is_read_publishes_nothing_and_burns_the_key(folder):
    ledger = Ledger(folder / "ledger.db", beside=())

    def touch(rows: int) -> None:
        os.utime(folder / "people" / "3.parquet", ns=(1, 1))

    with pytest.raises(DataError, match="changed while"):
        publish(folder, ledger=ledger, progress=touch)
    assert not (folder / "out").exists()
    assert not left_over(folder)
    assert not list((folder / "ledger.db.keys").iterdir())
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve"]


@pytest.mark.parametrize("moment", ["commit", "rename", "destroy"])
def test_a_crash_at_the_end_loses_nothing_and_costs_nothing_more(folder, monkeypatch, moment):
    """What was drawn and paid is what the next attempt publishes."""
    ledger = Ledger(folder / "ledger.db", beside=())
    prepared = LaplaceRelease(SCHEMA, epsilon=2.0).prepare()
    ledger.grant("people", 10.0)

    def crash(*args: object) -> None:
        raise KeyboardInterrupt

    target = {"commit": (Ledger, "commit"), "rename": (Staging, "_show"), "destroy": (RunKey, "destroy")}[moment]
    with monkeypatch.context() as patch:
        patch.setattr(*target, crash)
        with pytest.raises(KeyboardInterrupt):
            publish(folder, ledger=ledger, prepared=prepared)
    assert not (folder / "out").exists()
    (staging,) = folder.glob(".out.*.partial")
    drawn = digests(staging / "table")
    publish(folder, "out", ledger=ledger, prepared=prepared)
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve", "commit"]
    assert digests(folder / "out" / "table") == drawn
    assert left_over(folder) == []
    assert not list((folder / "ledger.db.keys").iterdir())


@pytest.mark.slow
def test_a_killed_process_is_resumed_by_the_same_command(folder):
    """SIGKILL between two parts, from outside."""
    SCHEMA.write(folder / "people.toml")
    code = (
        "import sys, time\n"
        "from sfumato.run import partition_release\n"
        "from sfumato.run.partition import PartLayout\n"
        "PartLayout.for_columns = classmethod(lambda cls, columns: cls(128, 2))\n"
        "write = partition_release.ReleaseParts._write\n"
        "def slowly(self, part):\n"
        "    if part.number == 3: print('drawing', flush=True); time.sleep(60)\n"
        "    return write(self, part)\n"
        "if sys.argv.pop() == 'slow': partition_release.ReleaseParts._write = slowly\n"
        "from sfumato.cli.app import main\n"
        "main()\n"
    )
    arguments = ["release", "people", "--schema", "people.toml", "--epsilon", "2", "--delta", "1e-6", "--out", "out"]
    command = [sys.executable, "-c", code, *arguments, "--ledger", "l.db", "--grant"]
    child = subprocess.Popen([*command, "slow"], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if "drawing" in line:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert not (folder / "out").exists()
    subprocess.run([*command, "fast"], cwd=folder, check=True, capture_output=True, timeout=110)
    assert parquet.read_table(folder / "out" / "table").num_rows == 1500
    assert [record.action for record in Ledger(folder / "l.db", beside=()).history("people")] == [
        "grant",
        "reserve",
        "commit",
    ]


# Refusals before anything is spent.


@pytest.mark.parametrize("difference", ["missing", "extra", "type", "order", "damaged"])
def test_a_file_that_differs_is_refused_by_name(folder, difference):
    table = people(50)
    changed = {
        "missing": lambda: table.drop_columns(["dose"]),
        "extra": lambda: table.append_column("name", pa.array(["Ada"] * 50)),
        "type": lambda: table.set_column(0, "age", table["age"].cast(pa.string())),
        "order": lambda: table.select(["dose", "age"]),
        "damaged": lambda: None,
    }[difference]()
    if changed is None:
        (folder / "people" / "2.parquet").write_bytes(b"PAR1 Ada")
    else:
        parquet.write_table(changed, folder / "people" / "2.parquet")
    ledger = Ledger(folder / "ledger.db", beside=())
    with pytest.raises(InputError, match=r"2\.parquet") as caught:
        publish(folder, ledger=ledger)
    assert "Ada" not in str(caught.value)
    assert not ledger.datasets()
    assert not left_over(folder)


@pytest.mark.by_day(1)
def test_values_without_a_place_get_one_on_every_engine_and_the_curator_is_told(folder, engine):
    strict = Schema({**SCHEMA.columns, "age": Interval(0, 100)})
    table = people(400, 3)
    holes = pa.array([None if at == 399 else 20.0 for at in range(400)], pa.float64())
    parquet.write_table(table.set_column(0, "age", holes), folder / "people" / "3.parquet")
    ledger = Ledger(folder / "ledger.db", beside=())
    prepared = GaussianRelease(strict, epsilon=2.0, delta=1e-6).prepare()
    with pytest.warns(UndeclaredCellWarning, match="age") as told:
        out = publish(folder, ledger=ledger, engine=engine, prepared=prepared)
    assert len(told) == 1
    assert [record.action for record in ledger.history("people")] == ["grant", "reserve", "commit"]
    assert "age: none was declared to be missing; such a cell counts as 50, the middle" in (
        out / "README.txt"
    ).read_text(encoding="utf-8")
    assert not left_over(folder)


def test_refusals(folder, tmp_path):
    ledger = Ledger(folder / "ledger.db", beside=())
    for file in (folder / "people").iterdir():
        parquet.write_table(people(0), file)
    with pytest.raises(DataError, match="no rows"):
        publish(folder, ledger=ledger)
    (folder / "empty").mkdir()
    with pytest.raises(DataError, match="no Parquet"):
        PartitionedTable.open(folder / "empty")
    with pytest.raises(DataError, match="does not exist"):
        PartitionedTable.open(folder / "nowhere")
    (folder / "empty" / "sex=f").mkdir()
    parquet.write_table(people(3), folder / "empty" / "sex=f" / "0.parquet")
    with pytest.raises(SchemaError, match="folder names"):
        PartitionedTable.open(folder / "empty")
    with pytest.raises(InputError, match="tcp://"):
        open_engine("spark")
    seeded = GaussianRelease(SCHEMA, epsilon=2.0, delta=1e-6, random_state=1).prepare()
    with pytest.raises(InputError, match="experiments"):
        publish(folder, ledger=ledger, prepared=seeded)
    assert not ledger.datasets()


def test_one_process_at_a_time_holds_a_key(folder):
    with RunKey.open(folder / "ledger.db", binding("a")), pytest.raises(LedgerLockedError):
        RunKey.open(folder / "ledger.db", binding("a"))
    with RunKey.open(folder / "ledger.db", binding("a")) as key:
        secret = key.key.export()
        key.renew()
        assert key.key.export() != secret
        assert secret.hex() not in key.path.read_text()
        key.destroy()
    assert not key.path.exists()


def test_any_address_is_read(folder, one_key):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for file in (folder / "people").iterdir():
        memory.pipe(f"/people/{file.name}", file.read_bytes())
    out = publish(folder)
    settings = {"layout": SMALL}
    try:
        release_partitions(
            "memory://people",
            PREPARED,
            folder / "far",
            Ledger(folder / "far.db", beside=()),
            "people",
            grant=True,
            **settings,
        )
    finally:
        memory.rm("/people", recursive=True)
    assert digests(folder / "far" / "table") == digests(out / "table")


# The engine itself.


@pytest.mark.filterwarnings("ignore")
def test_nobody_joins_the_workers_of_somebody_else(cluster):
    """Another user of the machine can reach the port. Without the certificate it is of no use."""
    distributed = pytest.importorskip("distributed")
    address = cluster.client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    with pytest.raises((OSError, TypeError)):
        distributed.Client(address, timeout="2s")
    with pytest.raises((OSError, TypeError)):
        distributed.Client(address.replace("tls://", "tcp://"), timeout="2s")


def test_results_come_with_their_place_and_errors_without_values(engine):
    assert dict(engine.map(engine_faults.slow_square, [1, 2, 3])) == {0: 1, 1: 4, 2: 9}
    with pytest.raises(SfumatoError) as caught:
        list(engine.map(engine_faults.quotes_a_value, [1815]))
    assert "1815" not in str(caught.value)
    assert "Ada" not in str(caught.value)


def test_a_client_that_failed_elsewhere_does_not_take_the_waiting_with_it(cluster):
    """Dask's own `as_completed` listens at the client made last, which may be somebody's that never came up."""
    from distributed import client as dask

    class Elsewhere:
        loop = None

    dask._set_global_client(Elsewhere())
    try:
        assert dict(cluster.map(engine_faults.slow_square, [1, 2, 3])) == {0: 1, 1: 4, 2: 9}
        assert cluster.sum(engine_faults.as_total, [1.0, 2.0]).values[0][0] == 3.0
    finally:
        dask._set_global_client(cluster.client)


def test_workers_that_are_gone_are_an_error_and_no_wait():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as nobody,
        distributed.Client(nobody, set_as_default=False) as client,
    ):
        engine = DaskEngine(client, patience=0.4)
        for work in (
            lambda: list(engine.map(engine_faults.slow_square, [1, 2, 3])),
            lambda: engine.sum(engine_faults.as_total, [1.0]),
        ):
            with pytest.raises(SfumatoError, match="0 workers are there and 0 work") as caught:
                work()
            assert "The same command" in str(caught.value)


class _Awaited:
    """What a client gives for a task: it ends when it is told to."""

    def __init__(self, key: str, value: int) -> None:
        self.key, self.value, self.told, self.told_of = key, value, None, False

    def add_done_callback(self, told) -> None:
        self.told = told

    def result(self, timeout: float) -> int:
        return self.value

    def release(self) -> None:
        pass


class _Scripted:
    """A client with one worker that does as written, however long a look takes: no clock of a busy machine decides.

    It works until it was looked at so many times, and then all that was not lost ends; the first `lost` of what it was
    given never end, and nobody works at them.
    """

    def __init__(self, looks: int = 0, lost: int = 0) -> None:
        self.looks, self.lost, self.given = looks, lost, []

    def map(self, function, tasks, key) -> list[_Awaited]:
        futures = [_Awaited(name, function(task)) for name, task in zip(key, tasks, strict=True)]
        self.given.append(futures)
        return futures

    def processing(self) -> dict[str, tuple[str, ...]]:
        self.looks -= 1
        if self.looks > 0:
            return {"worker": ("task",)}
        for future in self.given[-1][self.lost if len(self.given) == 1 else 0 :]:
            if not future.told_of:
                future.told_of = True
                future.told(future)
        return {}

    def nthreads(self) -> dict[str, int]:
        return {"worker": 1}

    def cancel(self, futures, force: bool) -> None:
        pass


@pytest.mark.parametrize("looks", [1, 30])
def test_a_task_longer_than_the_patience_is_waited_for(looks):
    """Thirty looks, each a quarter of the patience after the last one."""
    client = _Scripted(looks)
    assert dict(DaskEngine(client, patience=0.02).map(engine_faults.slow_square, [3])) == {0: 9}
    assert len(client.given) == 1


@pytest.mark.parametrize("lost", [1, 2, 3])
@pytest.mark.by_day(1)
def test_tasks_that_got_lost_are_handed_out_once_more(lost):
    """The scheduler never hears of the first attempt, as if its message had been lost."""
    client = _Scripted(lost=lost)
    assert dict(DaskEngine(client, patience=0.02).map(engine_faults.slow_square, [1, 2, 3])) == {0: 1, 1: 4, 2: 9}
    assert [len(futures) for futures in client.given] == [3, lost]


def test_tasks_lost_twice_are_an_error():
    client = _Scripted(lost=1)
    client.map = lambda function, tasks, key: [_Awaited(name, 0) for name in key]
    client.given = [[]]
    with pytest.raises(SfumatoError, match="1 of 1 tasks are open, 1 workers are there and 0 work"):
        list(DaskEngine(client, patience=0.02).map(engine_faults.slow_square, [1]))


def test_a_scheduler_that_does_not_answer_is_an_error(cluster, monkeypatch):
    monkeypatch.setattr(engine_dask, "_ANSWER", 0.2)
    engine = DaskEngine(cluster.client, patience=0.4)
    monkeypatch.setattr(engine, "_finished", lambda futures: iter(()))
    monkeypatch.setattr(cluster.client, "nthreads", lambda: time.sleep(2))
    with pytest.raises(SfumatoError, match="the scheduler does not answer"):
        list(engine.map(engine_faults.slow_square, [1]))
