"""`sfumato new`: a starter study from names and types, never from values."""

from __future__ import annotations

import datetime
import re
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.cli.new import header_of, run_new
from sfumato.cli.release import wide_noise
from sfumato.core.domain import Interval
from sfumato.core.schema import Schema
from sfumato.errors import DataError, InputError, SchemaError
from sfumato.lang import examine
from sfumato.lang.starter import StarterColumn, starter_study
from sfumato.network.text_files import read_text
from sfumato.plan.make import make_plan
from sfumato.release import LaplaceRelease
from sfumato.run.files import TableFile
from sfumato.run.study import run_plan


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people of 2024.parquet"
    columns = {
        "patient_id": ["SECRET-1", "SECRET-2", "SECRET-1"],
        "age": [71.25, 987654.0, 3.0],
        "Blood Pressure": pa.array([120, 987653, 80], pa.int32()),
        "ward": pa.array(["SECRETWARD", "b", "b"]).dictionary_encode(),
        "smoker": [True, False, True],
        "count": [1, 2, 987652],
        "born": [datetime.date(1987, 6, 5)] * 3,
    }
    parquet.write_table(pa.table(columns), path)
    return path


def written(table, tmp_path):
    run_new(table, tmp_path / "study.pl", tmp_path / "schema.toml")
    return (tmp_path / "study.pl").read_text(), (tmp_path / "schema.toml").read_text()


def test_no_value_reaches_the_files(table, tmp_path):
    study, schema = written(table, tmp_path)
    for secret in ("SECRET", "98765", "71.25", "1987"):
        assert secret not in study + schema
    assert "Blood Pressure" in study
    assert "born" in study


def test_the_files_depend_on_the_header_alone(table, tmp_path):
    first = written(table, tmp_path)
    values = parquet.read_table(table)
    parquet.write_table(values.slice(0, 0), table)
    (tmp_path / "again").mkdir()
    assert written(table, tmp_path / "again") == first


def test_check_reports_every_placeholder_and_nothing_else(table, tmp_path):
    study, _ = written(table, tmp_path)
    _, problems = examine(tmp_path / "study.pl")
    errors = [problem for problem in problems if problem.severity == "error"]
    lines = {number for number, line in enumerate(study.splitlines(), 1) if "fill_in(" in line and line[0] != "%"}
    assert lines == {problem.position.line for problem in errors if problem.code == "declaration"}
    # What else could be said follows from the missing promise, and is counted there.
    assert {problem.code for problem in errors} == {"declaration"}
    assert "that follow from it" in errors[-1].message


def test_filled_in_it_can_be_planned_and_run(table, tmp_path):
    study, _ = written(table, tmp_path)
    filled = (
        study.replace("fill_in(lowest)", "0")
        .replace("fill_in(highest)", "200")
        .replace("fill_in(categories)", "[a, b]")
        .replace("fill_in(first_day)", "date(1900, 1, 1)")
        .replace("fill_in(last_day)", "date(2030, 12, 31)")
        .replace("fill_in(epsilon)", "1.0")
        .replace("fill_in(delta)", "0.000001")
    )
    spec, problems = examine(filled)
    assert not [problem.describe() for problem in problems if problem.severity == "error"]
    release = run_plan(make_plan(spec), tmp_path, None, random_state=0)
    assert {one.name for one in release.published} >= {
        "ageMean",
        "smokerMean",
        "wardCounts",
        "bloodPressureMean",
        "bornMean",
    }


def test_a_boolean_is_zero_or_one(tmp_path):
    """Its mean is the share of true, up to noise that is small at this ε."""
    study = starter_study("t", "t.parquet", [StarterColumn("id", "category"), StarterColumn("yes", "number")])
    filled = study.replace("fill_in(lowest)", "0").replace("fill_in(highest)", "1")
    plan = make_plan(filled.replace("dp(fill_in(epsilon), fill_in(delta))", "gdp(60)"))
    rows = pa.table({"id": [str(i) for i in range(200)], "yes": np.arange(200) < 150})
    value = run_plan(plan, {"t": rows}, None, random_state=0)["yesMean"]["value"][0].as_py()
    assert value == pytest.approx(0.75, abs=0.02)


def test_the_schema_is_refused_until_it_is_filled_in(table, tmp_path):
    _, schema = written(table, tmp_path)
    assert set(tomllib.loads(schema)["columns"]) == {"age", "Blood Pressure", "ward", "smoker", "count", "born"}
    with pytest.raises(SchemaError):
        Schema.from_toml(schema)


def test_a_csv_gives_its_header_and_no_types(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,age,"sex, or gender"\nSECRET,71,f\n', encoding="utf-8")
    assert [(c.name, c.kind) for c in header_of(path)] == [(n, "unknown") for n in ("id", "age", "sex, or gender")]
    assert "SECRET" not in starter_study("a", "a.csv", header_of(path))


@pytest.mark.parametrize("first", ["p17,71,2024-01-05", "SECRET,71.5", "anna,,3"])
def test_a_csv_without_a_header_is_refused_in_silence(tmp_path, first):
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n{first}\n", encoding="utf-8")
    with pytest.raises(DataError) as refusal:
        header_of(path)
    for part in first.split(","):
        assert not part or part not in str(refusal.value)


@pytest.mark.parametrize(
    "name", ["count", "random", "Range", "9lives", "a'b", "x\ny", "Ünïcode", "", "mean", "a). forget(b", "%", "person"]
)
def test_any_column_name_gives_a_study_that_reads(name):
    columns = [StarterColumn("id", "category"), StarterColumn(name, "number"), StarterColumn(f"{name} ", "category")]
    _, problems = examine(starter_study("rows", "rows.parquet", columns))
    errors = [problem for problem in problems if problem.severity == "error"]
    assert {problem.code for problem in errors} == {"declaration"}, errors


def test_without_an_identifier_the_place_is_marked():
    text = starter_study("rows", "rows.parquet", [StarterColumn("age", "number")])
    assert "table(rows, 'rows.parquet', person(P) = fill_in('the column that says who a row is about'), [" in text


def test_nothing_is_overwritten_and_nonsense_is_refused(table, tmp_path):
    (tmp_path / "mine.pl").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        run_new(table, tmp_path / "mine.pl")
    assert (tmp_path / "mine.pl").read_text() == "mine"
    (tmp_path / "x.parquet").write_text("no parquet")
    with pytest.raises(DataError, match="no header"):
        run_new(tmp_path / "x.parquet", tmp_path / "y.pl")
    assert not (tmp_path / "y.pl").exists()
    done = CliRunner().invoke(app, ["new", str(table), "-o", str(tmp_path / "z.pl")])
    assert done.exit_code == 0
    assert "no value read" in done.output


@pytest.mark.parametrize(
    ("name", "functor"), [("Länge (Tage)", "längeTage"), ("Ärzte", "ärzte"), ("e\u0301tat", "état"), ("Größe", "größe")]
)
def test_letters_of_a_name_are_kept(name, functor):
    text = starter_study("t", "t.parquet", [StarterColumn("id", "category"), StarterColumn(name, "number")])
    assert f"missing({functor}(P), skip)." in text
    _, problems = examine(text)
    assert {problem.code for problem in problems if problem.severity == "error"} == {"declaration"}


def test_of_a_csv_it_is_said_that_types_are_not_known(tmp_path, table):
    path = tmp_path / "a.csv"
    path.write_text("id,age\nx,71\n", encoding="utf-8")
    said = run_new(path, tmp_path / "a.pl", tmp_path / "a.toml")
    assert "Types were not looked at" in said
    for text in ((tmp_path / "a.pl").read_text("utf-8"), (tmp_path / "a.toml").read_text("utf-8")):
        assert "names alone" in text
        assert "Types are not known" in text
    typed, _ = written(table, tmp_path)
    assert "Types are not known" not in typed


@pytest.mark.parametrize(("sign", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_named_wherever_a_csv_is_read(tmp_path, sign, word):
    path = tmp_path / "a.csv"
    path.write_text(f"id{sign}age\nSECRET{sign}71\n", encoding="utf-8")
    for read in (header_of, read_text, lambda one: TableFile.open(one).column_names()):
        with pytest.raises(DataError, match=f"separated by {word}") as refusal:
            read(path)
        assert "SECRET" not in str(refusal.value)


def test_the_schema_says_what_to_do_with_the_identifier_and_with_absent_cells(table, tmp_path):
    _, schema = written(table, tmp_path)
    assert "remove it from the file first" in schema
    assert "`sfumato synthesize` takes it with --people" in schema
    assert "# null = 0" in schema
    assert '# unknown = "b"' in schema


def test_yes_and_no_and_days_are_proposed_as_what_they_are(tmp_path):
    """The type says it alone. Yes and no are ready as they stand; days are shown as a schema reads them."""
    kinds = {"urgent": pa.bool_(), "admitted": pa.date32(), "seen": pa.timestamp("us")}
    parquet.write_table(pa.schema(kinds).empty_table(), tmp_path / "stays.parquet")
    run_new(tmp_path / "stays.parquet", tmp_path / "s.pl", tmp_path / "s.toml", each_row=True)
    text = (tmp_path / "s.toml").read_text("utf-8")
    for open_place, day in (('low = "FILL IN"', "low = 2020-01-01"), ('high = "FILL IN"', "high = 2021-01-01")):
        text = text.replace(open_place, day)
    schema = Schema.from_toml(text.replace("# null = ", "null = "))
    assert tuple(schema.columns["urgent"].values) == (False, True)
    assert schema.columns["admitted"].calendar == schema.columns["seen"].calendar == "date"


def test_an_open_place_of_a_schema_names_its_column():
    text = '[columns."Länge (Tage)"]\nkind = "interval"\nlow = "FILL IN"\nhigh = "FILL IN"\n'
    with pytest.raises(SchemaError, match=r"low and high of the column 'Länge \(Tage\)' still say FILL IN"):
        Schema.from_toml(text)


def test_noise_wider_than_its_column_is_said_with_what_to_do_instead():
    schema = Schema({"age": Interval(0, 110), "cost": Interval(0, 20000)})
    (first, second) = wide_noise(LaplaceRelease(schema, epsilon=0.5).prepare())
    assert "age: the noise is" in first
    assert "times the column's width" in first
    assert "sfumato synthesize" in second
    assert wide_noise(LaplaceRelease(schema, epsilon=50.0).prepare()) == []


@pytest.fixture
def stays(tmp_path):
    path = tmp_path / "stays.parquet"
    columns = {
        "encounter_id": [1, 2, 3],
        "patient_nbr": [7, 7, 8],
        "age": [71, 98765, 3],
        "hoursPerWeek": [1.0, 2.0, 3.0],
        "smokes": [True, False, True],
        "num_medications": [1, 2, 3],
    }
    parquet.write_table(pa.table(columns), path)
    return path


def new(*words: object):
    return CliRunner().invoke(app, ["new", *map(str, words)])


def test_where_several_columns_could_be_the_person_nobody_guesses(stays, tmp_path):
    with pytest.raises(InputError, match=r"encounter_id, patient_nbr\. Say which with --person"):
        run_new(stays, tmp_path / "a.pl")
    assert not (tmp_path / "a.pl").exists()
    assert new(stays, "-o", tmp_path / "a.pl").exit_code == 1
    assert new(stays, "-o", tmp_path / "a.pl", "--person", "patient_nbr").exit_code == 0
    assert "person(P) = patient_nbr, [" in (tmp_path / "a.pl").read_text()
    asked = []

    def ask(question, names):
        asked.append((question, tuple(names)))
        return "patient_nbr"

    run_new(stays, tmp_path / "b.pl", ask=ask)
    assert asked == [("Who is a row of stays.parquet about?", ("encounter_id", "patient_nbr"))]
    with pytest.raises(InputError, match="Did you mean patient_nbr"):
        run_new(stays, tmp_path / "c.pl", person="patientnbr")


def test_where_no_column_could_be_the_person_it_is_asked_for(tmp_path):
    path = tmp_path / "adult.parquet"
    parquet.write_table(pa.table({"age": [1], "num_children": [2]}), path)
    with pytest.raises(InputError, match=r"No column .* --person COLUMN, or --each-row"):
        run_new(path, tmp_path / "a.pl")
    assert not (tmp_path / "a.pl").exists()


def test_a_forgotten_identity_is_one_problem_however_many_lines_need_it():
    columns = [StarterColumn(f"x{number}", "number", "bool") for number in range(20)]
    filled = starter_study("t", "t.parquet", columns)
    filled = filled.replace("fill_in(epsilon)", "1").replace("fill_in(delta)", "0.000001")
    _, problems = examine(filled)
    assert [problem.code for problem in problems] == ["declaration", "table-variable"]
    assert re.search(r"… and \d\d problems that follow from it", problems[1].message)


def test_only_the_columns_that_are_wanted(stays, tmp_path):
    done = new(stays, "-o", tmp_path / "a.pl", "--person", "patient_nbr", "--columns", "age, smokes")
    assert done.exit_code == 0
    text = (tmp_path / "a.pl").read_text()
    assert "age(P)" in text
    assert "smokes(P)" in text
    assert "edications" not in text
    with pytest.raises(InputError, match="has no column wages"):
        run_new(stays, tmp_path / "b.pl", person="patient_nbr", columns=["wages"])


def test_ranges_are_proposed_from_names_and_types_alone(stays, tmp_path):
    run_new(stays, tmp_path / "a.pl", person="patient_nbr")
    first = (tmp_path / "a.pl").read_text()
    for line in ("    age: 0..120,", "    hoursPerWeek: 0..168,", "    smokes: 0..1"):
        assert line in first
    assert "fill_in(lowest)..fill_in(highest)" in first
    assert "98765" not in first
    parquet.write_table(parquet.read_table(stays).slice(0, 0), stays)
    run_new(stays, tmp_path / "b.pl", person="patient_nbr")
    assert (tmp_path / "b.pl").read_text() == first


def test_a_table_without_identifiers(stays, tmp_path):
    assert new(stays, "-o", tmp_path / "a.pl", "--each-row", "--columns", "age,smokes").exit_code == 0
    text = (tmp_path / "a.pl").read_text()
    assert "table(stays, 'stays.parquet', person(P), [" in text
    filled = text.replace("fill_in(epsilon)", "1").replace("fill_in(delta)", "0.000001")
    assert run_plan(make_plan(filled), tmp_path, None, random_state=0)["ageMean"].num_rows == 1
    with pytest.raises(InputError, match="contradict"):
        run_new(stays, tmp_path / "b.pl", person="patient_nbr", each_row=True)


def _database(path: Path, rows: int) -> None:
    """Two tables, one of which is asked for."""
    lines = ["CREATE TABLE other (a INTEGER)", "CREATE TABLE stays (id TEXT, age DOUBLE, SECRET TEXT)"]
    lines += [f"INSERT INTO stays VALUES ('p{number}', {number % 80}, 'cell')" for number in range(rows)]
    with closing(duckdb.connect(str(path)) if path.suffix == ".duckdb" else sqlite3.connect(path)) as connection:
        for line in lines:
            connection.execute(line)
        connection.commit()


@pytest.mark.parametrize("ending", [".duckdb", ".sqlite"])
def test_a_table_of_a_database_begins_a_study_that_runs(ending, tmp_path):
    """Names and types are read and no cell; the line that is written finds the rows again."""
    path = tmp_path / f"hospital{ending}"
    _database(path, 200)
    with pytest.raises(InputError, match=r"has 2 tables: other, stays\. Say which with --table NAME"):
        run_new(path, tmp_path / "study.pl")
    with pytest.raises(InputError, match="has no table stay: other, stays"):
        run_new(path, tmp_path / "study.pl", inside="stay")
    run_new(path, tmp_path / "study.pl", inside="stays", columns=["age"])
    text = (tmp_path / "study.pl").read_text()
    assert f"table(stays, 'hospital{ending}', person(P) = id, [" in text
    assert "cell" not in text
    kinds = [column.kind for column in header_of(path, "stays")]
    assert kinds == (["category", "number", "category"] if ending == ".duckdb" else ["unknown"] * 3)
    filled = text.replace("dp(fill_in(epsilon), fill_in(delta))", "gdp(60)")
    release = run_plan(make_plan(filled), tmp_path, None, random_state=0)
    assert release["ageMean"]["value"][0].as_py() == pytest.approx(np.mean(np.arange(200) % 80), abs=1)


def test_a_table_that_is_alone_need_not_be_named(tmp_path):
    with closing(sqlite3.connect(tmp_path / "one.db")) as connection:
        connection.execute("CREATE TABLE people (id TEXT, age INTEGER)")
    run_new(tmp_path / "one.db", tmp_path / "study.pl")
    assert "table(people, 'one.db', person(P) = id, [" in (tmp_path / "study.pl").read_text()
    with pytest.raises(InputError, match="is no database"):
        run_new(Path(__file__), tmp_path / "other.pl", inside="people")


def test_a_file_that_is_not_there_is_told_with_those_that_are(tmp_path):
    (tmp_path / "stays.csv").write_text("id,days\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no file stayz.csv. Did you mean stays.csv\? Nothing was written"):
        run_new(tmp_path / "stayz.csv", tmp_path / "study.pl")
    with pytest.raises(DataError, match=r"no file other.parquet. There are stays.csv. Give the path .* Nothing was"):
        run_new(tmp_path / "other.parquet", tmp_path / "study.pl")
    with pytest.raises(DataError, match=r"no folder .*nowhere. Check the path"):
        run_new(tmp_path / "nowhere" / "stays.csv", tmp_path / "study.pl")
    assert not (tmp_path / "study.pl").exists()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_study_of_a_folder_names_the_folder(tmp_path, ending):
    """Its columns are those of a study of one of its files; the source is the folder, and the study can be planned."""
    folder = tmp_path / "stays"
    folder.mkdir()
    for part in range(2):
        rows = pa.table({"patient_id": [f"p{part}"], "age": [70.0]})
        path = folder / f"{part}.{ending}"
        parquet.write_table(rows, path) if ending == "parquet" else csv.write_csv(rows, path)
    run_new(folder, tmp_path / "whole.pl")
    run_new(folder / f"0.{ending}", tmp_path / "part.pl")
    whole, part = ((tmp_path / name).read_text("utf-8") for name in ("whole.pl", "part.pl"))
    assert "'stays/'" in whole
    said = [re.findall(r"^    .*: .*fill_in.*$|^    age: .*$", text, re.M) for text in (whole, part)]
    assert said[0]
    assert said[0] == said[1]
    (folder / "note.txt").write_text("x")
    with pytest.raises(DataError, match=r"several kinds.*Nothing was read"):
        run_new(folder, tmp_path / "other.pl")


@pytest.mark.parametrize("place", ["postgresql:stays", "fsspec:stays.parquet"])
def test_a_place_elsewhere_is_told_what_to_do(tmp_path, place):
    with pytest.raises(InputError, match=r"lies elsewhere. Begin from a file.*nothing was written"):
        run_new(Path(place), tmp_path / "study.pl")
    assert not (tmp_path / "study.pl").exists()
