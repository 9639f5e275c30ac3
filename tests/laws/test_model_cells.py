"""A published model treats absent and unlisted cells as its study says, and knows the study's own columns."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sfumato import Categories, Interval, Study
from sfumato.cli.app import app
from sfumato.core.curator import UndeclaredCellWarning
from sfumato.learn import load
from sfumato.learn.model_document import model_from_text
from sfumato.plan.wanted import follows_study

AGE, TOWN, CODE, ILL = 'Alter "ca."', "Stadt (Wohnort)", "Code", "ill?"
TOWNS = ["Bern", "Genève", "St. Gallen", "?"]


def people(generator: np.random.Generator, rows: int = 400) -> pd.DataFrame:
    """With absent cells in every column, and with towns and codes that no list has; codes rise with age."""
    frame = pd.DataFrame(
        {AGE: generator.uniform(0, 100, rows).round(1), TOWN: generator.choice([*TOWNS, "Oz", "Ur"], rows)}
    )
    frame[CODE] = (1 + frame[AGE] // 17 + generator.integers(-1, 2, rows)).clip(1, 6)
    frame[ILL] = np.where(generator.random(rows) < frame[AGE] / 100, "yes", "no")
    for name in (AGE, TOWN, CODE):
        frame.loc[generator.random(rows) < 0.2, name] = None
    frame[CODE] = frame[CODE].astype("Int64")
    return frame


def rules(generator: np.random.Generator) -> tuple[float, str, int]:
    return float(generator.integers(0, 101)), str(generator.choice(TOWNS)), int(generator.integers(1, 5))


def filled(frame: pd.DataFrame, stands: tuple[float, str, int], other: str | None = None) -> pd.DataFrame:
    """By plain pandas: what stands for absent cells, and for unlisted ones (`other` where that is another word)."""
    age, town, code = stands
    made = frame.copy()
    made[TOWN] = made[TOWN].fillna(town).where(lambda column: column.isin(TOWNS), other or town)
    made[CODE] = made[CODE].fillna(code).where(lambda column: column.isin([1, 2, 3, 4]), code)
    return made.assign(**{AGE: made[AGE].fillna(age)})


def study_of(frame: pd.DataFrame, stands: tuple[float, str, int], kind: str) -> Study:
    age, town, code = stands
    columns = {
        AGE: Interval(0, 100, null=age),
        TOWN: Categories(TOWNS, null=town, unknown=town),
        CODE: Categories([1, 2, 3, 4], null=code, unknown=code),
        ILL: ["no", "yes"],
    }
    study = Study("cells").table("people", frame, person=None, columns=columns, missing="never")
    study = study.promise("public", epsilon=50, delta=1e-6)
    if kind == "classifier":
        return study.classifier(ILL, [AGE, TOWN, CODE], to="public", name="model")
    if kind == "regression":
        return study.regression(AGE, [TOWN, CODE], to="public", name="model")
    return study.outliers([AGE], to="public", name="model")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.by_day(1)
def test_absent_and_unlisted_cells_count_as_the_study_says(seed, tmp_path):
    """The model of the release, the file of the run, and a saved copy; each by both names of a column."""
    generator = np.random.default_rng(seed)
    kind = ("classifier", "regression", "outliers")[seed % 3]
    frame, stands = people(generator), rules(generator)
    plan = study_of(frame, stands, kind).plan(size=len(frame))
    release = plan.run(ledger=None, out=tmp_path / "out")
    model = release.model("model")
    model.save(tmp_path / "model.json")
    (written,) = (tmp_path / "out" / "results").glob("model*.json")
    new = people(generator, 200)
    drawn = model.decision_function(filled(new, stands))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UndeclaredCellWarning)
        for one in (model, load(tmp_path / "model.json"), load(written)):
            assert (one.decision_function(new) == drawn).all()
            other = {own: name for name, own in load(written).also.items()}
            assert (one.decision_function(new.rename(columns=other)) == drawn).all()
    forgotten = model.decision_function(filled(new, (50.0, TOWNS[0], 1)))
    assert (forgotten != drawn).any()  # none of these seeds declares what happens anyway


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.by_day(1)
def test_a_list_that_ends_in_another_word_has_a_rule_of_its_own_for_absent_cells(seed, tmp_path):
    """In the language: unlisted towns are '?', absent ones what missing(…) says."""
    generator = np.random.default_rng(seed)
    frame, stands = people(generator), rules(generator)
    text = study_of(frame, stands, "classifier").to_text()
    listed = "'St. Gallen', '?'"
    assert listed in text
    text = text.replace(listed, "'St. Gallen' | '?'")
    model = _published(text, frame, tmp_path)
    new = people(generator, 200)
    assert (model.decision_function(new) == model.decision_function(filled(new, stands, "?"))).all()


def _published(text: str, frame: pd.DataFrame, folder: Path):
    (folder / "data").mkdir()
    frame.to_parquet(folder / "data" / "people.parquet", index=False)
    (folder / "study.pl").write_text(text, encoding="utf-8")
    words = ["run", str(folder / "study.pl"), "--data", str(folder / "data"), "--out", str(folder / "out")]
    done = CliRunner().invoke(app, [*words, "--size", f"people={len(frame)}", "--grant", "--ledger", str(folder / "l")])
    assert done.exit_code == 0, done.output
    (written,) = (folder / "out" / "results").glob("model*.json")
    return load(written)


def test_older_files_are_still_read_and_acts_say_what_is_done_with_cells():
    frame = people(np.random.default_rng(0))
    release = study_of(frame, (48.0, "?", 2), "outliers").plan(size=len(frame)).run(ledger=None)
    text = release.model("model").to_text()
    older = {key: value for key, value in json.loads(text).items() if key != "also"}
    assert dict(model_from_text(json.dumps(older)).also) == {}
    plan = release.planned.plan
    (act,) = plan.acts
    assert follows_study(act, plan.network)
    without = {key: value for key, value in act.parameters.items() if key != "cells"}
    for forged in (without, {**act.parameters, "cells": {}}):
        assert not follows_study(type(act).from_dict({**act.to_dict(), "parameters": forged}), plan.network)
