"""Whole numbers whose type says nothing, as in files of pandas and CSV: by somebody's word the rows are whole too."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato import Categories, Interval, Schema
from sfumato.cli.app import app
from sfumato.errors import SchemaError
from sfumato.release import SyntheticRelease

SCHEMA = Schema({"days": Interval(1, 60), "ill": Categories(["no", "yes"])})
UNITS = {"days": [1, 2, 3, 4, 5, 6, 8, 10, 15, 30, 60]}


def stays(generator, rows=20_000):
    return pd.DataFrame(
        {
            "days": np.minimum(generator.geometric(0.27, rows), 60),
            "ill": np.where(generator.random(rows) < 0.3, "yes", "no"),
        }
    )


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("edges", [UNITS, {}], ids=["edges", "bought"])
def test_means_and_quantiles_are_those_of_whole_numbers(absent, edges):
    frame = stays(np.random.default_rng(len(edges)))
    true = frame["days"]
    if absent:  # one absent cell makes decimals of the whole column
        frame.loc[0, "days"] = np.nan
    for given in (frame, pa.Table.from_pandas(frame), {name: frame[name].to_numpy() for name in frame}):
        out = SyntheticRelease(SCHEMA, 3.0, 1e-6, label="ill", edges=edges, whole=["days"]).release(given)
        made = pa.table(dict(out.table)).to_pandas() if isinstance(out.table, dict) else out.table
        made = made.to_pandas() if isinstance(made, pa.Table) else made
        assert (made["days"] % 1 == 0).all()
        assert abs(made["days"].mean() - true.mean()) < 0.1
        assert made["days"].quantile(0.1) == true.quantile(0.1)
        assert not any("decimals" in note for note in out.notes)


def test_without_that_word_it_is_told_what_decimals_do():
    out = SyntheticRelease(SCHEMA, 3.0, 1e-6, edges=UNITS).release(stays(np.random.default_rng(1)))
    assert any("half a unit" in note and "days" in note for note in out.notes)
    assert out.table["days"].mean() - 3.7 > 0.3


def test_the_command_tells_before_it_spends_and_takes_the_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stays(np.random.default_rng(2)).to_csv("stays.csv", index=False)
    SCHEMA.write(tmp_path / "s.toml")
    base = ["synthesize", "stays.csv", "--schema", "s.toml", "--epsilon", "3", "--delta", "1e-6"]
    refused = CliRunner().invoke(app, [*base, "--out", "a"])  # no budget was granted
    assert refused.exit_code == 1
    assert "--whole COLUMN" in refused.output
    done = CliRunner().invoke(app, [*base, "--out", "a", "--whole", "days", "--grant"])
    assert done.exit_code == 0, done.output
    assert "--whole COLUMN" not in done.output
    assert pa.types.is_integer(parquet.read_schema("a/table.parquet").field("days").type)


@pytest.mark.parametrize("whole", [["ill"], ["dayz"], "days", ["dose"]])
def test_a_word_on_no_number_is_refused(whole):
    """Of the doses none is whole."""
    schema = Schema({**SCHEMA.columns, "dose": Interval(0.5, 0.8)})
    with pytest.raises(SchemaError, match=r"Nothing was spent\.$"):
        SyntheticRelease(schema, 1.0, 1e-6, whole=whole).check()


def test_truth_values_are_not_said_to_have_decimals():
    schema = Schema({"ill": Interval(0, 1)})
    assert SyntheticRelease(schema, 1.0, 1e-6).notes_on_types({"ill": pa.bool_()}) == ()
