"""What a refusal says to write is complete: written as it stands, it is no longer refused."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from sfumato import Categories, Interval, Study
from sfumato.errors import PlanError
from sfumato.run.planning import make_plan

ROWS = pd.DataFrame({"id": np.arange(90) % 40, "x": np.arange(90.0), "y": np.arange(90.0), "g": ["a", "b", "a"] * 30})
ACTS = {
    "classifier": lambda study: study.classifier("g", ["x", "y"], to="public"),
    "regression": lambda study: study.regression("y", ["x"], to="public"),
    "outliers": lambda study: study.outliers(["x", "y"], to="public"),
}


def study(rows: int, name: str = "stays") -> Study:
    columns = {"x": Interval(0, 90), "y": Interval(0, 90), "g": Categories(["a", "b"])}
    made = Study("T").table(name, ROWS, person="id", rows_per_person=rows, columns=columns, missing="never")
    return made.promise("public", epsilon=1, delta=1e-6)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("name", ["stays", "all stays"])
@pytest.mark.by_day(3)
def test_one_row_of_each_person_is_asked_for_in_full(act, name):
    with pytest.raises(PlanError) as told:
        ACTS[act](study(3, name)).plan(size=40)
    (rows,) = re.findall(r"Write rows_per_person=(\d) in \.table\('" + name + r"', …\)\. Nothing", str(told.value))
    ACTS[act](study(int(rows), name)).plan(size=40)

    text = ACTS[act](study(3, name)).to_text()
    with pytest.raises(PlanError) as told:
        make_plan(text)
    lines = re.search(r"Write (rows_per_person.*?\)\.) instead of (rows_per_person.*?\)\.)", str(told.value))
    assert lines
    assert lines[2] in text
    make_plan(text.replace(lines[2], lines[1]), sizes={name: 40})
    other = re.search(r"\(or (each_person.*?\)\.)", str(told.value))
    assert other
    make_plan(text.replace(lines[2], other[1]), sizes={name: 40})
