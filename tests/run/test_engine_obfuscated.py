"""An obfuscated table of many files trains to the machine of the private one, whoever wrote its parts."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.core import Categories, Interval, Schema
from sfumato.errors import DataError, InputError, SfumatoError
from sfumato.mechanisms.bits import StreamKey
from sfumato.release import ObfuscatedRelease, RegularisedSVM
from sfumato.run import partition_obfuscated
from sfumato.run.partition import PartLayout
from sfumato.run.partition_obfuscated import _Noise, _WeighNoise, release_obfuscated

SCHEMA = Schema({"a": Interval(-9, 9), "b": Interval(-9, 9), "c": Interval(-9, 9), "y": Categories(["no", "yes"])})
RELEASE = ObfuscatedRelease(SCHEMA, label="y", variance=4.0, rho=0.1, theta=1.0, accept_no_dp=True)
SMALL = PartLayout(block_rows=64, part_blocks=2)


@pytest.fixture
def folder(tmp_path):
    """700 records; the first file holds one class only, as a table sorted by its label does."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(700, 3))
    labels = np.sort(rows[:, 0] + generator.normal(size=700) > 0)
    (tmp_path / "in").mkdir()
    for number, part in enumerate(np.array_split(np.arange(700), [150, 420])):
        columns = {name: rows[part, at] for at, name in enumerate("abc")}
        table = pa.table({**columns, "y": pa.array(np.where(labels[part], "yes", "no").tolist())})
        parquet.write_table(table, tmp_path / "in" / f"{number}.parquet")
    return tmp_path


def machine(path) -> RegularisedSVM:
    table = parquet.read_table(path)
    values = np.column_stack([table[name].to_numpy() for name in "abc"])
    return RegularisedSVM(0.1, 1.0).fit(values, np.where(table["y"].to_numpy() == "yes", 1, -1))


def test_the_machine_stays_and_partitions_do_not_show(folder, monkeypatch, engine):
    key = StreamKey.fresh()
    monkeypatch.setattr(StreamKey, "fresh", classmethod(lambda cls: key))
    tables = []
    for count in (1, 2, 7):
        promise = release_obfuscated(
            folder / "in", RELEASE, folder / f"{count}", engine=engine, partitions=count, layout=SMALL
        )
        assert "NO PRIVACY GUARANTEE" in str(promise)
        tables.append(parquet.read_table(folder / f"{count}" / "table"))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    before, after = machine(folder / "in"), machine(folder / "1" / "table")
    assert np.allclose(after.alpha_, before.alpha_, atol=1e-9)
    assert np.allclose(after.omega_, before.omega_, atol=1e-7)
    moved = tables[0]["b"].to_numpy() - parquet.read_table(folder / "in")["b"].to_numpy()
    assert 1.5 < moved.std() < 2.2  # nearly all of the variance is there
    record = json.loads((folder / "1" / "certificate.json").read_text())
    assert "guarantee" in record
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("ends", [1.0, 3.0, 9.0])
def test_noise_may_lead_out_of_the_intervals(folder, ends):
    """What is published is what is looked at: a number clipped for the look would train another machine."""
    columns = {**dict.fromkeys("abc", Interval(-ends, ends)), "y": SCHEMA.columns["y"]}
    release = ObfuscatedRelease(Schema(columns), label="y", variance=4.0, rho=0.1, theta=1.0, accept_no_dp=True)
    release_obfuscated(folder / "in", release, folder / "out", layout=SMALL)
    published = parquet.read_table(folder / "out" / "table")
    assert max(abs(published[name].to_numpy()).max() for name in "abc") > ends or ends == 9.0


def test_the_two_sums_do_not_depend_on_the_cut(folder):
    from sfumato.run.engine.engine import LocalEngine
    from sfumato.run.partition import PartitionedTable, grouped

    table = PartitionedTable.open(folder / "in")
    parts = table.parts(SMALL)
    shares = partition_obfuscated._RowShares.of(parts, np.linspace(-1, 1, 700))
    weigh = _WeighNoise(_Noise(StreamKey.fresh(), 2.0, 3))
    seen = [LocalEngine().sum(weigh, grouped(shares.of_parts, count)).values for count in (1, 2, 7)]
    for sums, squares in seen:
        assert np.abs(sums - seen[0][0]).max() <= 1e-14 * np.abs(seen[0][0]).max()
        assert abs(squares - np.sum(np.linspace(-1, 1, 700) ** 2)) < 1e-10


def test_a_wrong_projection_is_not_published(folder, monkeypatch):
    """The planted mistake: noise that the machine can see. The check of the classifier refuses it."""
    monkeypatch.setattr(partition_obfuscated, "unit_vector", lambda vector: np.ones(len(vector)) / np.sqrt(len(vector)))
    with pytest.raises(SfumatoError, match="another classifier"):
        release_obfuscated(folder / "in", RELEASE, folder / "out", layout=SMALL)
    assert not (folder / "out").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_refusals(folder, monkeypatch):
    monkeypatch.setattr(partition_obfuscated, "MOST_NUMBERS", 100)
    with pytest.raises(InputError, match="in memory"):
        release_obfuscated(folder / "in", RELEASE, folder / "out")
    monkeypatch.undo()
    (folder / "in" / "1.parquet").unlink()
    (folder / "in" / "2.parquet").unlink()
    with pytest.raises(DataError, match="two classes"):
        release_obfuscated(folder / "in", RELEASE, folder / "out", layout=SMALL)
