"""A public number belongs to a dataset or to an aggregate that the study has: a mistyped name is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato import make_plan
from sfumato.cli.app import app
from sfumato.errors import PlanError

STUDY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). missing(patients, never).
column(patients, age, age(P)).
random(age(P)) :- patient(P).
range(age(P), 0, 110).
rows_per_person(patients, 1).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(0.5)).
mean(old, age(P), (patient(P), age(P) > 70)).
publish(average, old, openness(public)).
"""
NAMES = ("people", "old")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.pl").write_text(STUDY, encoding="utf-8")
    parquet.write_table(pa.table({"id": range(50), "age": [50.0] * 50}), tmp_path / "patients.parquet")
    return tmp_path


def mistyped(seed):
    """A name with a letter too many, too few, or two in the wrong places; never one that there is."""
    random = np.random.default_rng(seed)
    letters = list(NAMES[seed % 2])
    place = int(random.integers(0, len(letters) - 1))
    match seed % 3:
        case 0:
            letters.insert(place, "x")
        case 1:
            del letters[place]
        case 2:
            letters[place], letters[place + 1] = letters[place + 1], letters[place]
    return "".join(letters)


@pytest.mark.parametrize("seed", range(6))
def test_a_name_that_the_study_does_not_have_is_refused_with_those_there_are(seed):
    name = mistyped(seed)
    assert name not in NAMES
    with pytest.raises(PlanError) as refused:
        make_plan(STUDY, sizes={"people": 100, name: 30})
    said = str(refused.value)
    assert repr(name) in said
    assert all(one in said for one in NAMES)
    assert said.endswith("Nothing was planned and nothing was spent.")


def test_names_of_datasets_and_of_aggregates_are_taken():
    plans = [make_plan(STUDY, sizes={"old": number}) for number in (10, 99)]
    widths = [plan.publication("average").seen[0].half_width for plan in plans]
    assert widths[0] > widths[1]
    assert make_plan(STUDY, sizes={"people": 100}).extras["sizes"] == {"people": 100.0}


@pytest.mark.parametrize("number", [0, -5, float("nan"), float("inf")])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_are_no_size_are_refused(name, number):
    with pytest.raises(PlanError, match=rf"size of {name} .*Nothing was planned"):
        make_plan(STUDY, sizes={name: number})


@pytest.mark.parametrize("words", [["plan"], ["run", "--grant"], ["run", "--dry-run"]])
def test_commands_refuse_it_and_spend_nothing(folder, words):
    more = [] if words == ["plan"] else ["--data", folder, "--out", folder / "out", "--ledger", folder / "ledger.db"]
    given = [words[0], folder / "study.pl", *words[1:], *more, "--size", "poeple=9"]
    done = CliRunner().invoke(app, list(map(str, given)))
    assert done.exit_code != 0
    said = " ".join(done.output.split()) + str(done.exception)
    assert "people" in said
    assert "nothing was spent" in said
    assert not (folder / "out").exists()
