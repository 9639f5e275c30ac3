"""What is told twice is told alike: a class in its file and in Python; and nothing is told that was asked for."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato import Dates, Interval, Study
from sfumato.cli.app import app
from sfumato.errors import UndeclaredCellWarning
from sfumato.questions.axis import Axis
from sfumato.questions.intervals import NoiseLaw
from sfumato.questions.quantile import Quantile
from sfumato.questions.sums import Sums


@pytest.mark.parametrize("seed", range(3))
def test_a_class_has_one_name_in_files_and_in_python(seed, tmp_path):
    generator = np.random.default_rng(seed)
    low, high = sorted(generator.integers(-50, 5_000_000, 2).tolist())
    cuts = sorted(set(generator.uniform(low, high, 4).tolist()))
    days = ["2020-01-01", *sorted({f"2020-0{month}-01" for month in generator.integers(2, 9, 3)}), "2020-12-31"]
    frame = pd.DataFrame({"x": generator.uniform(low, high, 60), "when": pd.date_range("2020-01-01", periods=60)})
    study = (
        Study("Classes")
        .table(
            "t",
            frame,
            person=None,
            columns={"x": Interval(low, high), "when": Dates(days[0], days[-1])},
            missing="never",
        )
        .promise("public", epsilon=50)
        .histogram("x", edges=cuts, to="public")
        .histogram("when", edges=days[1:-1], to="public")
    )
    release = study.plan(size=60).run(ledger=None, out=tmp_path / "out")
    for column in ("x", "when"):
        (file,) = (tmp_path / "out" / "results").glob(f"histogram_{column}*.json")
        in_file = [row[column] for row in json.loads(file.read_text())]
        assert in_file == release[f"histogram {column}"].to_dict()[column]
        assert len(set(in_file)) == len(in_file)
    assert in_file == [f"[{a}, {b})" for a, b in pairwise(days[:-1])] + [f"[{days[-2]}, {days[-1]}]"]


def test_classes_that_differ_in_the_seventh_digit_have_two_names():
    assert len(set(Axis("x(P)", cuts=(1234567.1, 1234567.2), low=0, high=2e6).cells)) == 3
    assert Axis("x(P)", cuts=(5.0,), low=-(2.0**31), high=2.0**31).cells == ("[, 5)", "[5, )")  # no bounds are public


STUDY = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 100).
column(t, c, c(P)). random(c(P)) :- p(P). range(c(P), [a, b]).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)).
mean(m, x(P), p(P), by([c(P)])). publish(one, m, o(pub)). publish(two, m, o(pub)).
step(1, publish(one)). step(2, forget(n3)). step(2, forget(n4, x(n4))). step(3, publish(two)).
"""


def told(folder, *words: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndeclaredCellWarning)
        done = CliRunner().invoke(app, list(words), env={"SFUMATO_STATE": str(folder / "state"), "COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return [str(one.message) for one in caught if one.category is UndeclaredCellWarning]


@pytest.mark.parametrize("absent", [False, True], ids=["complete", "one cell absent"])
@pytest.mark.by_day(1)
def test_forgetting_is_no_undeclared_cell(absent, tmp_path):
    """Who is forgotten leaves absent cells behind, by the study's own word; a cell that is really absent is told of."""
    values = [None if absent and n == 7 else float(n) for n in range(40)]
    rows = {"id": [f"n{n}" for n in range(40)], "x": values, "c": ["a", "b"] * 20}
    parquet.write_table(pa.table(rows), tmp_path / "t.parquet")
    (tmp_path / "study.pl").write_text(STUDY)
    (tmp_path / "leavers.pl").write_text("forget(n5). forget(n6, c(n6)).")
    run = ["run", str(tmp_path / "study.pl"), "--data", str(tmp_path), "--grant"]
    first = told(tmp_path, *run, "--at", "1", "--out", str(tmp_path / "one"))
    more = ["--forgotten", str(tmp_path / "leavers.pl")]
    later = told(tmp_path, *run, "--at", "3", "--out", str(tmp_path / "two"), *more)
    assert [len(first), len(later)] == ([1, 1] if absent else [0, 0])

    steps = ["steps", str(tmp_path / "study.pl"), "--data", str(tmp_path)]
    for person, words in (("n5", "reads no row of n5"), ("n6", "reads c(n6) as an absent cell")):
        said = CliRunner().invoke(app, [*steps, "--person", person, *more]).output
        assert words in " ".join(said.split())
        assert ("Later steps read the rows" in said) == (person == "n6")
    assert "n5" not in CliRunner().invoke(app, [*steps, *more]).output


@pytest.mark.parametrize("place", [1.0, 7.0, 13.0, 14.0])
@pytest.mark.parametrize("variance", [1e-6, 1.0, 100.0])
def test_the_error_of_a_quantile_is_never_nothing(place, variance):
    """Where all have one value the interval may be that value: it is known to within half a step all the same."""
    question = Quantile(values=("x(P)",), ranges=((1.0, 14.0),), numbers=(0.5, 0.9), everybody=True)
    counts = np.zeros(question.places.count, dtype=object)
    counts[int(question.places.cells_of([place])[0])] = 5000
    drawn = question.encode(Sums(question.entries(), (counts,), (counts,), 5000))
    for figure in question.figures(drawn, NoiseLaw(variance), 5000.0):
        assert figure.low <= place <= figure.high
        assert question.places.step / 4 < figure.standard_error < 1
