"""The first mistakes of somebody who publishes a file: each is told with its own way out."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato import Categories, Interval, Schema
from sfumato.cli.app import app
from sfumato.errors import SchemaError
from sfumato.run.accounts import default_ledger

SCHEMA = Schema({"age": Interval(0, 100), "ill": Categories(["no", "yes"])})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    table = {"who": [f"p{one}" for one in range(40)], "age": generator.uniform(0, 100, 40), "ill": ["no", "yes"] * 20}
    parquet.write_table(pa.table(table), tmp_path / "stays.parquet")
    SCHEMA.write(tmp_path / "s.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(*arguments):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 1
    return " ".join(f"{result.output} {result.exception or ''}".split())


PROMISE = ("--schema", "s.toml", "--epsilon", "1", "--delta", "1e-6", "--out", "made", "--grant")


@pytest.mark.parametrize("command", ["synthesize", "release"])
def test_a_table_that_is_not_there_is_not_to_be_made_a_folder(folder, command):
    said = told(command, "nosuch.parquet", *PROMISE)
    assert "nosuch.parquet is not a file" in said
    assert "mkdir" not in said
    assert "nosuch.parquet/" not in said  # no ledger in a folder of that name either
    assert default_ledger("nosuch.parquet") == default_ledger("stays.parquet") == default_ledger(".")


def test_the_column_of_people_is_not_to_be_thrown_away(folder):
    """Without it each row is protected, and nobody who has several."""
    assert "--people" in told("synthesize", "stays.parquet", *PROMISE)
    assert "--people" not in told("release", "stays.parquet", *PROMISE)
    wider = Schema({**SCHEMA.columns, "dose": Interval(0, 1)})
    wider.write(folder / "s.toml")
    assert "--people" not in told("synthesize", "stays.parquet", *PROMISE)  # this is about a column that is not there


def test_a_schema_that_is_not_there_is_not_called_unreadable(folder):
    with pytest.raises(SchemaError, match="no such schema file"):
        Schema.read("nosuch.toml")
    (folder / "latin.toml").write_bytes(b"\xe9")
    with pytest.raises(SchemaError, match="UTF-8"):
        Schema.read("latin.toml")


def test_what_is_not_there_is_not_called_false(folder):
    """A mistyped name is no certificate that fails."""
    said = told("verify", "nosuch")
    assert "there is no such certificate" in said
    assert "does not hold" not in said
    (folder / "wrong.json").write_text(json.dumps({}))
    assert "does not hold" in told("verify", "wrong.json")


def test_a_folder_without_a_study_says_where_its_explanation_is(folder):
    assert CliRunner().invoke(app, ["synthesize", "stays.parquet", "--people", "who", *PROMISE]).exit_code == 0
    for command in ("explain", "report"):
        said = told(command, "made")
        assert "made/README.txt" in said
        assert "sfumato verify made" in said
        assert "Errno" not in said + told(command, "nosuch")


STUDY = """
source(t, 't.parquet'). column(t, id, person(P)). rows_per_person(t, 1).
column(t, age, age(P)). random(age(P)) :- person(P). range(age(P), 0, 100). missing(age(P), 50).
dataset(people, domain(P, person(P))). {unit}
privacy_requirement(o(public), people, dp(1)).
median(mid, age(P), person(P)). publish(mid, mid, o(public)).
"""


@pytest.mark.parametrize(
    ("unit", "people", "size", "told"),
    [
        ("", 4000, [], True),
        ("", 1500, [], False),
        ("", 4000, ["--size", "people=4000"], False),
        ("adjacency(people, add_remove).", 4000, [], False),
    ],
)
def test_a_plan_for_another_number_of_people_is_told_where_that_number_is_public(unit, people, size, told, folder):
    table = {"id": [f"p{one}" for one in range(people)], "age": np.random.default_rng(1).uniform(0, 100, people)}
    parquet.write_table(pa.table(table), folder / "t.parquet")
    (folder / "study.pl").write_text(STUDY.format(unit=unit), encoding="utf-8")
    done = CliRunner().invoke(app, ["run", "study.pl", "--data", ".", "--out", "out", "--grant", *size])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert (f"--size people={people}" in said.replace(" --out", "")) == told
    assert (f"{people:,} individuals" in said) == told
