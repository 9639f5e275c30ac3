"""`sfumato privatize`: one column in, one published column and its certificate out, nothing half-written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.cli.privatize import privatize_file
from sfumato.core import Interval
from sfumato.errors import DataError, InputError, PrivacyParameterError, UndeclaredCellWarning, UnfinishedError
from sfumato.evidence import verify
from sfumato.mechanisms import TailoredNoise


@pytest.fixture
def channel(tmp_path):
    path = tmp_path / "channel.json"
    TailoredNoise(Interval(0, 1), 2.0, bins=6).write(path)
    return path


@pytest.fixture
def private(tmp_path):
    path = tmp_path / "private.csv"
    values = np.random.default_rng(0).uniform(-0.5, 1.5, 500)
    csv.write_csv(pa.table({"a": values, "name": [f"person {at}" for at in range(500)]}), path)
    return path


def test_a_party_publishes_one_column(tmp_path, channel, private):
    out = tmp_path / "published.csv"
    promise, note, certificate = privatize_file(channel, private, out, "a")
    table = csv.read_csv(out)
    assert table.column_names == ["a"]
    assert np.isin(table["a"].to_numpy(), TailoredNoise.read(channel).outputs).all()
    assert verify(certificate).ok
    assert promise.startswith("2-DP")
    assert "nearest end" in note
    assert "person" not in out.read_text() + certificate.read_text()


def test_the_command_says_what_it_promises(tmp_path, channel):
    source, out = tmp_path / "one.parquet", tmp_path / "out.parquet"
    parquet.write_table(pa.table({"a": [0.1, 0.9, 5.0]}), source)
    result = CliRunner().invoke(app, ["privatize", "--channel", str(channel), str(source), str(out)])
    assert result.exit_code == 0, result.output
    assert "2-DP, under replacing one record" in result.output
    assert parquet.read_table(out).num_rows == 3


def test_two_runs_differ(tmp_path, channel, private):
    texts = []
    for name in ("first.csv", "second.csv"):
        privatize_file(channel, private, tmp_path / name, "a")
        texts.append((tmp_path / name).read_text())
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("column", "out", "error"),
    [("b", "out.csv", DataError), (None, "out.csv", InputError), ("a", "out.parquet", InputError),
     ("a", "no/out.csv", InputError), ("a", "private.csv", InputError)],
)  # fmt: skip
def test_refusals_leave_nothing_behind(tmp_path, channel, private, column, out, error):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(error) as caught:
        privatize_file(channel, private, tmp_path / out, column)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert "person" not in str(caught.value)


def test_a_party_may_refuse_a_weak_channel(tmp_path, channel, private):
    with pytest.raises(PrivacyParameterError, match="the most you allow"):
        privatize_file(channel, private, tmp_path / "out.csv", "a", most_epsilon=1.0)
    assert not (tmp_path / "out.csv").exists()
    privatize_file(channel, private, tmp_path / "out.csv", "a", most_epsilon=2.0)


def test_missing_values_have_a_place_and_only_the_party_is_told(tmp_path, channel):
    source = tmp_path / "gaps.csv"
    source.write_text("a\n0.5\n\n0.7\nNA\n")
    full = tmp_path / "full.csv"
    full.write_text("a\n0.5\n0.1\n0.7\n")
    with pytest.warns(UndeclaredCellWarning, match="'a' has a missing cell") as told:
        promise = privatize_file(channel, source, tmp_path / "out.csv", "a")
    assert len(told) == 1
    assert promise[:2] == privatize_file(channel, full, tmp_path / "other.csv", "a")[:2]
    assert len((tmp_path / "out.csv").read_text().splitlines()) == len(
        (tmp_path / "other.csv").read_text().splitlines()
    )


def test_a_column_of_another_type_is_refused_without_a_trace(tmp_path, channel):
    source = tmp_path / "text.parquet"
    parquet.write_table(pa.table({"a": ["person"]}), source)
    with pytest.raises(DataError, match="type string"):
        privatize_file(channel, source, tmp_path / "out.parquet", "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["channel.json", "text.parquet"]


def test_an_interruption_says_that_nothing_left_the_house(tmp_path, channel, private, monkeypatch):
    def stop(self, values):
        raise KeyboardInterrupt

    monkeypatch.setattr(TailoredNoise, "__call__", stop)
    out = tmp_path / "published.csv"
    words = ["privatize", "--channel", str(channel), "--column", "a", str(private), str(out)]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UnfinishedError)
    assert "handed to nobody" in str(result.exception)
    assert {path.name for path in tmp_path.iterdir()} == {"channel.json", "private.csv"}
