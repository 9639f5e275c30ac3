"""A disk that takes nothing and processes that stay are waited for a while, and no longer."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.core import Interval, Schema
from sfumato.errors import DataError, LedgerLockedError, SfumatoError
from sfumato.ledger import Ledger
from sfumato.release import GaussianRelease
from sfumato.run import partition_release, run_key, tables
from sfumato.run.files import TableFile
from sfumato.run.partition import PartLayout

SCHEMA = Schema({"age": Interval(0, 100, null=0)})
PREPARED = GaussianRelease(SCHEMA, epsilon=2.0, delta=1e-6).prepare()


@pytest.fixture
def stuck():
    """What a write on a share that went away does, until the test is over."""
    over = threading.Event()
    yield over
    over.set()


def people(folder: Path) -> Path:
    path = folder / "people.parquet"
    parquet.write_table(pa.table({"age": [20.0, 30.0, 40.0] * 200}), path)
    return path


def test_a_table_on_a_disk_that_takes_nothing(tmp_path, monkeypatch, stuck):
    @contextmanager
    def writer(self, target):
        yield lambda table: stuck.wait(30)

    monkeypatch.setattr(TableFile, "writer", writer)
    monkeypatch.setattr(tables, "_WRITE_SECONDS", 0.2)
    monkeypatch.setattr(tables, "_GOODBYE_SECONDS", 0.1)
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(DataError, match="could not be written"):
        tables.release_file(people(tmp_path), PREPARED, tmp_path / "out", ledger, "people", grant=True)
    assert not (tmp_path / "out").exists()


def test_parts_on_a_disk_that_takes_nothing(tmp_path, monkeypatch, stuck):
    class Sink:
        is_open = True

        def write_table(self, *_: object, **__: object) -> None:
            stuck.wait(30)

    # A cluster that unpickled the class in this process has given it globals of its own.
    used = partition_release.ReleaseParts._write.__globals__
    monkeypatch.setitem(used, "new_sink", lambda *_: Sink())
    monkeypatch.setitem(used["_wait"].__globals__, "_WRITE_SECONDS", 0.2)
    (tmp_path / "people").mkdir()
    people(tmp_path / "people")
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(SfumatoError, match=r"taken nothing for 0\.2 s") as caught:
        partition_release.release_partitions(
            tmp_path / "people",
            PREPARED,
            tmp_path / "out",
            ledger,
            "people",
            layout=PartLayout(128, 2),
            engine="local",
            grant=True,
        )
    assert "The same command" in str(caught.value)


def test_a_key_that_is_removed_over_and_over(tmp_path, monkeypatch):
    monkeypatch.setattr(run_key.os.path, "samestat", lambda *_: False)
    with pytest.raises(LedgerLockedError, match="over and over"):
        run_key._locked(tmp_path / "key")
