"""The recipes of docs/architecture.md, followed: what is one file there is one file here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.laws.question_rows import EXAMPLES
from tests.laws.test_questions import wrong_moves
from tests.recipes.questions.total import TwofoldTotal

HERE = Path(__file__).parent
#: The fixture's one line of the law table.
ROW = {TwofoldTotal: [TwofoldTotal(values=("x(P)",), ranges=((-1.0, 3.0),), rows=2)]}


def followed(folder: Path, *engines: str) -> dict:
    command = [sys.executable, "-m", "tests.recipes.follow", str(folder), *engines]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def check(found: dict) -> None:
    assert found["planned"] == ["twice"]
    assert found["failures"] == []
    assert all(value == pytest.approx(found["truth"], abs=1) for value in found["values"].values())
    assert "twice the sum of age(P)" in found["explained"]
    assert found["vocabulary"]
    assert "twofold(" in found["text"]
    assert "twice the sum of a variable" in found["help"].lower()
    assert found["round trip"]


def test_a_question_is_one_file_and_an_engine_one_class(tmp_path):
    found = followed(tmp_path)
    check(found)
    assert set(found["values"]) == {"local", "backward"}


@pytest.mark.slow
def test_a_question_of_one_file_runs_on_dask(tmp_path):
    found = followed(tmp_path, "dask")
    check(found)
    assert "dask" in found["values"]


def test_the_law_table_takes_its_one_line():
    ((kind, examples),) = ROW.items()
    assert kind not in EXAMPLES
    assert all(wrong_moves(one) == [] for one in examples)
