"""`sfumato synthesize`: from file to file, charged once, verified without the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato import Ledger
from sfumato.cli.app import app
from sfumato.run.engine.dask import DaskEngine

SCHEMA = """
[columns.age]
kind = "interval"
low = 0
high = 110
null = 40
[columns."job title"]
kind = "categories"
values = ["clerk", "chef", "other"]
unknown = "other"
null = "other"
[columns.ill]
kind = "categories"
values = ["no", "yes"]
unknown = "no"
null = "no"
"""


@pytest.fixture
def people(tmp_path):
    generator = np.random.default_rng(0)
    age = generator.integers(0, 100, 3000)
    job = generator.choice(["clerk", "chef", "pilot"], 3000)
    ill = np.where(generator.random(3000) < 0.1 + age / 200, "yes", "no")
    frame = pd.DataFrame({"age": age, "job title": job, "ill": ill})
    frame.to_parquet(tmp_path / "people.parquet", index=False)
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def command(folder, name, out, *more):
    words = ["synthesize", str(folder / name), "--schema", str(folder / "schema.toml"), "--epsilon", "2"]
    words += ["--delta", "1e-6", "--label", "ill", "--out", str(folder / out), *more]
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("name", ["people.parquet", "people.csv"])
@pytest.mark.by_day(1)
def test_from_file_to_file(people, name):
    refused = command(people, name, "made")
    assert refused.exit_code == 1
    assert not (people / "made").exists()
    done = command(people, name, "made", "--grant")
    assert done.exit_code == 0, done.output
    made = parquet.read_table(people / "made" / "table.parquet").to_pandas()
    assert list(made.columns) == ["age", "job title", "ill"]
    assert len(made) == 3000
    assert set(made["job title"]) == {"clerk", "chef", "other"}
    measured = parquet.read_table(people / "made" / "measured.parquet").to_pandas()
    sums = measured[measured["table"] == 0]
    deviation = np.sqrt(len(sums)) * sums["standard_error"].iloc[0]
    assert abs(sums["count"].sum() - 3000) < 5 * deviation
    assert CliRunner().invoke(app, ["verify", str(people / "made")]).exit_code == 0


def test_the_budget_stops_a_second_one_and_the_first_is_charged_once(people):
    assert command(people, "people.parquet", "made", "--grant").exit_code == 0
    second = command(people, "people.parquet", "again", "--grant")
    assert second.exit_code == 1
    assert not (people / "again").exists()
    (charge,) = [one for one in Ledger(people / "sfumato-ledger.db").history() if one.action == "commit"]
    assert charge.dataset == "people"


def test_an_edited_row_is_found(people):
    assert command(people, "people.parquet", "made", "--grant").exit_code == 0
    table = people / "made" / "table.parquet"
    frame = parquet.read_table(table).to_pandas()
    frame.loc[0, "age"] = 109
    frame.to_parquet(table, index=False)
    assert CliRunner().invoke(app, ["verify", str(people / "made")]).exit_code == 1


def test_edges_come_from_a_file(people):
    (people / "edges.toml").write_text("age = [0, 18, 65, 110]\n")
    done = command(people, "people.parquet", "made", "--grant", "--edges", str(people / "edges.toml"))
    assert done.exit_code == 0, done.output
    measured = parquet.read_table(people / "made" / "measured.parquet").to_pandas()
    assert set(measured.loc[measured["first"] == "age", "first_level"]) == {"0 to 18", "18 to 65", "65 to 110"}
    (people / "edges.toml").write_text("age = 3\n")
    assert command(people, "people.csv", "other", "--edges", str(people / "edges.toml")).exit_code == 1


def test_what_to_expect_is_told_before_anything_is_spent(people):
    refused = command(people, "people.parquet", "made")  # no grant: nothing is reserved
    assert refused.exit_code == 1
    assert "plan tree" in refused.output
    assert "total variation about" in refused.output
    assert not Ledger(people / "sfumato-ledger.db").history()
    assert command(people, "people.parquet", "made", "--plan", "forest").exit_code == 1


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_folder_of_parts_gives_what_one_file_gives(people, engine, request, monkeypatch):
    """The same counts, hence the same law of the rows: compared by the measured total, whose error is known."""
    if engine == "dask":  # on workers that are there already
        cluster = request.getfixturevalue("cluster")
        monkeypatch.setattr(DaskEngine, "local", lambda workers=None: DaskEngine(cluster.client))
    frame = parquet.read_table(people / "people.parquet")
    (people / "parts").mkdir()
    for number, start in enumerate(range(0, 3000, 700)):
        parquet.write_table(frame.slice(start, 700), people / "parts" / f"{number}.parquet")
    done = command(people, "parts", "made", "--grant", "--engine", engine)
    assert done.exit_code == 0, done.output
    measured = parquet.read_table(people / "made" / "measured.parquet").to_pandas()
    sums = measured[measured["table"] == 0]
    assert abs(sums["count"].sum() - 3000) < 5 * np.sqrt(len(sums)) * sums["standard_error"].iloc[0]
    assert len(parquet.read_table(people / "made" / "table.parquet")) == 3000
    assert CliRunner().invoke(app, ["verify", str(people / "made")]).exit_code == 0


@pytest.mark.parametrize("name", ["people.parquet", "people.csv"])
def test_several_rows_of_one_person_are_charged_to_the_person(people, name):
    frame = parquet.read_table(people / "people.parquet").to_pandas()
    frame["who"] = [f"p{number // 6}" for number in range(3000)]
    frame.to_parquet(people / "people.parquet", index=False)
    frame.to_csv(people / "people.csv", index=False)
    undeclared = command(people, name, "made", "--grant")
    assert undeclared.exit_code == 1  # a column nobody declared
    done = command(people, name, "made", "--grant", "--people", "who", "--rows-per-person", "2")
    assert done.exit_code == 0, done.output
    assert "replacing one person" in done.output
    assert "of 1,000 rows" in done.output  # their number is private, what to expect of any number is not
    made = parquet.read_table(people / "made" / "table.parquet")
    assert "who" not in made.column_names
    assert 500 < len(made) < 1500  # 500 people with two rows each, as noisy counts tell it
    (people / "folder").mkdir()
    parquet.write_table(parquet.read_table(people / "people.parquet"), people / "folder" / "a.parquet")
    split = command(people, "folder", "other", "--grant", "--people", "who")
    assert split.exit_code == 1
    assert not (people / "other").exists()
