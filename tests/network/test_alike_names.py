"""Columns that differ in capital letters alone are refused by name, as early as the names are known; other refusals."""

import datetime
import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato import Study, make_plan
from sfumato.cli.app import app
from sfumato.cli.new import run_new
from sfumato.core.alike_names import alike_names
from sfumato.errors import DataError, SfumatoError, StudyError
from sfumato.ledger import Ledger
from sfumato.run.study import run_plan

STUDY = """
table(stays, 'stays.csv', person(P) = id, [x: 0..10]).
rows_per_person(stays, 1). missing(stays, never).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(1)).
mean(m, x(P), person(P)).
publish(m, m, openness(public)).
"""


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.by_day(20)
def test_names_are_alike_when_two_of_them_are(seed):
    """Compared with every pair of names."""
    draw = random.Random(seed)
    known = ["a", "A", "b", "straße", "STRASSE", "c", "D", "É", "é", "x"]
    names = [draw.choice(known) for _ in range(draw.randint(1, 5))]
    pairs = [(one, two) for place, two in enumerate(names) for one in names[:place] if one.lower() == two.lower()]
    told = alike_names("t", names)
    folded = any(one.casefold() == two.casefold() for place, two in enumerate(names) for one in names[:place])
    assert (told is not None) == folded
    if pairs and len({name.lower() for name in names}) == len({name.casefold() for name in names}):
        assert any(f"{one!r}" in told and f"{two!r}" in told for one, two in pairs)


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_frame_is_refused_where_it_is_given(made):
    table = made({"id": [1, 2], "Alter": [3, 4], "ALTER": [4, 5], "x": [1, 2]})
    with pytest.raises(StudyError, match="stays has 'Alter' and 'ALTER'") as told:
        Study("s").table("stays", table, person="id", columns={"x": (0, 10)}, missing="never")
    assert "Nothing was planned and nothing was spent" in str(told.value)


def test_two_columns_of_one_name_are_named():
    frame = pd.DataFrame([[1, 3, 4, 1], [2, 4, 5, 2]], columns=["id", "Alter", "Alter", "x"])
    with pytest.raises(StudyError, match="stays has two columns of one name, 'Alter'"):
        Study("s").table("stays", frame, person="id", columns={"x": (0, 10)}, missing="never")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_refused_by_name_when_a_study_is_begun_and_when_it_is_run(ending, tmp_path):
    table = pa.table({"id": ["1", "2"], "Alter": [3, 4], "ALTER": [4, 5], "x": [1, 2]})
    file = tmp_path / f"stays.{ending}"
    if ending == "csv":
        file.write_text("id,Alter,ALTER,x\n1,3,4,1\n2,4,5,2\n", encoding="utf-8")
    else:
        parquet.write_table(table, file)
    with pytest.raises(DataError, match=r"stays\.\w+ has 'Alter' and 'ALTER'"):
        run_new(file, tmp_path / "study.pl")
    plan = make_plan(STUDY.replace("stays.csv", file.name))
    with pytest.raises(DataError, match=r"stays(\.\w+)? has 'Alter' and 'ALTER'"):
        run_plan(plan, tmp_path, tmp_path / "ledger.db", grant=True)


def frame() -> pd.DataFrame:
    return pd.DataFrame({"id": [1, 2], "g": ["a", "b"], "x": [1, 2]})


def told_of(columns, ask, epsilon=1):
    def asked():
        study = Study("s").table("stays", frame(), person="id", columns=columns, missing="never")
        return ask(study.promise("p", epsilon=epsilon)).plan(size=2)

    with pytest.raises(SfumatoError) as told:
        asked()
    return str(told.value)


def test_a_regression_on_categories_offers_the_classifier():
    told = told_of({"x": (0, 10), "g": ["a", "b"]}, lambda study: study.regression("g", ["x"], to="p"))
    assert "ask for a .classifier('g', …)" in told
    assert ".histogram('g')" in told_of({"x": (0, 10), "g": ["a", "b"]}, lambda study: study.mean("g", to="p"))


def test_a_tuple_of_three_numbers_is_no_range():
    told = told_of({"x": (0, 50, 110)}, lambda study: study.mean("x", to="p"))
    assert "(0, 50, 110) is no range, which has two ends: (0, 110)" in told
    Study("s").table("stays", frame(), person="id", columns={"x": [0, 50, 110]}, missing="never")


def test_an_epsilon_of_0_is_told_once():
    told = told_of({"x": (0, 10)}, lambda study: study.mean("x", to="p"), epsilon=0)
    assert told.count("othing was") == 2  # planned, spent
    assert "epsilon must be greater than 0" in told


def test_an_unknown_account_names_those_there_are(tmp_path):
    book = Ledger(tmp_path / "ledger.db", beside=())
    book.grant("people", 1.0)
    with pytest.raises(SfumatoError, match="There are grants for 'people'"):
        book.history("xyz")


def test_a_study_is_begun_with_times_of_day(tmp_path):
    times = pa.array([datetime.time(8, 30), datetime.time(23, 0)], pa.time64("us"))
    parquet.write_table(pa.table({"id": ["1", "2"], "Uhrzeit": times}), tmp_path / "stays.parquet")
    run_new(tmp_path / "stays.parquet", tmp_path / "study.pl", person="id")
    text = (tmp_path / "study.pl").read_text(encoding="utf-8")
    assert "uhrzeit = 'Uhrzeit': time(0, 0)..time(23, 59, 59)" in text
    assert "left out: Uhrzeit" not in text
    filled = text.replace("fill_in(epsilon)", "1").replace("fill_in(delta)", "0.000001")
    (tmp_path / "study.pl").write_text(filled, encoding="utf-8")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "study.pl")])
    assert done.exit_code == 0, done.output
