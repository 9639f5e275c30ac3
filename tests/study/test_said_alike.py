"""What is said of a plan is said alike by the terminal, by Python and by a notebook: no sentence is one's alone."""

import html
import io

import numpy as np
import pytest
from rich.console import Console

from sfumato import Categories, Interval, Study
from sfumato.cli.study import show_plan
from sfumato.run.aims import aims_of

ASKED = {
    "correlation": (["x", "y"], {}),
    "covariance": (["x", "y"], {}),
    "variance": ("x", {}),
    "moments": ("x", {}),
    "mean": ("x", {"by": "kind", "whole": True}),
    "sum": ("y", {"where": "kind == 'a'", "within": 0.001}),
    "histogram": ("x", {"edges": [0, 5, 10], "by": "kind"}),
    "quantiles": ("x", {"numbers": [0.1, 0.5]}),
    "outliers": (["x", "y"], {}),
    "synthetic": (["x", "kind"], {}),
}


def asking(chosen, readers: list[str], epsilon: float) -> Study:
    study = Study("alike").table(
        "t",
        person="id",
        rows_per_person=1,
        missing="never",
        columns={"x": Interval(0, 10), "y": Interval(-1, 1), "kind": Categories(["a", "b"])},
    )
    for reader in readers:
        study = study.promise(reader, epsilon=epsilon, delta=1e-3)
    for place, method in enumerate(chosen):
        columns, options = ASKED[method]
        study = study.ask(method, columns, to=readers[: 1 + place % 2], name=f"q{place}", **options)
    return study


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.by_day(2)
def test_the_terminal_python_and_a_notebook_say_the_same(seed):
    """Below the table every line of one is a line of the others."""
    generator = np.random.default_rng(seed)
    chosen = [*generator.choice(list(ASKED), 3, replace=False), ["correlation", "variance"][seed % 2]]
    study = asking(chosen, ["public", "doctor"], float(generator.choice([1.0, 20.0])))  # 20 is a weak promise
    plan = study.plan(size=500)
    console = Console(width=10_000, record=True, file=io.StringIO())
    show_plan(plan.plan, console, aims_of(plan.plan, {"t": 500.0}))
    terminal = {line.strip() for line in console.export_text().splitlines()}
    terminal = {line for line in terminal if " for " in line or line.startswith(("promise", "The promise", "assumed"))}
    python = set(str(plan).splitlines())
    assert terminal <= python
    table = {"for 500 people", *str(plan.lines).splitlines()}
    assert python - table <= terminal
    page = html.unescape(plan._repr_html_())
    told = [line for line in terminal if not line.startswith("promise to ")]  # of a notebook in a table of its own
    assert not [line for line in told if line not in page]
    assert any("Of variables whose standard deviations" in line or "Whatever the values" in line for line in told)


def test_questions_and_columns_have_the_names_that_they_got_in_python():
    study = (
        Study("named")
        .table("t", person="id", columns={"body mass": (10, 60), "age": (0, 110)}, missing="never")
        .promise("public", epsilon=1)
        .correlation(["body mass", "age"], to="public", name="mass by age")
    )
    said = str(study.plan(size=100))
    assert "mass by age for public: mass by age is the correlations of 'body mass', age over" in said
    assert not [word for word in ("massByAge", "bodyMass") if word in said]
