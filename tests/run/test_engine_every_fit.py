"""Every estimator is fitted on every engine, and is the estimator that memory gives."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laws.hostile import Hostile
from laws.test_ends import every_estimator, made
from sfumato.core import REPLACE_ONE
from sfumato.run.engine import fit as engine_fit
from sfumato.run.engine.fit import fit_table
from sfumato.run.partition import PartLayout

ROWS = 300
X = np.random.default_rng(0).uniform(-0.5, 0.5, (ROWS, 2))
LABELS = (X[:, 0] > 0).astype(int)
COLUMNS = ["c0", "c1"]
SMALL = PartLayout(block_rows=50, part_blocks=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("table")
    frame = pd.DataFrame({"c0": X[:, 0], "c1": X[:, 1], "y": LABELS})
    for number, part in enumerate((frame[:110], frame[110:110], frame[110:])):
        part.to_parquet(path / f"{number}.parquet", index=False)
    return path


def estimator(kind: type) -> Any:
    one = made(kind, Hostile(X, LABELS, REPLACE_ONE, ROWS, 1.0)).set_params(random_state=3)
    return one.set_params(classes=[0, 1]) if "classes" in one.get_params() else one


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", every_estimator(), ids=lambda kind: kind.__name__)
@pytest.mark.by_day(6)
def test_every_estimator_is_the_one_of_memory(folder, engine, kind):
    memory, there = estimator(kind), estimator(kind)
    memory.fit(pd.DataFrame(X, columns=COLUMNS), LABELS)
    fit_table(there, folder, "y", engine=engine, layout=SMALL)
    assert list(getattr(there, "feature_names_in_", COLUMNS)) == COLUMNS
    assert str(there.guarantee_) == str(memory.guarantee_)
    answer = "decision_function" if hasattr(memory, "decision_function") else "predict"
    frame = pd.DataFrame(X[:40], columns=COLUMNS)
    np.testing.assert_allclose(getattr(there, answer)(frame), getattr(memory, answer)(frame), rtol=1e-6, atol=1e-6)


def test_rows_that_do_not_fit_into_memory_are_refused_before_they_are_read(folder, monkeypatch):
    monkeypatch.setattr(engine_fit, "_MOST_GATHERED", 100)
    kind = next(one for one in every_estimator() if one.__name__ == "PrivateSVDD")
    with warnings.catch_warnings(), pytest.raises(engine_fit.DataError, match=r"needs its rows in memory.*by sums"):
        fit_table(estimator(kind), folder, None, columns=COLUMNS)
