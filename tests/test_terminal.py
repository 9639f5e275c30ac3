"""The terminal: completion, a plan that follows its file, what to do next."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet
from rich.console import Console
from typer.testing import CliRunner

from sfumato import Study
from sfumato.cli.app import app
from sfumato.cli.stages import staged
from sfumato.cli.study import watched
from sfumato.errors import PlanError

STUDY = """
source(t, 't.parquet'). column(t, id, person(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- person(P). range(x(P), 0, 100).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(0.5, 0.000001)).
mean(m, x(P), person(P)). publish(average, m, openness(public)).
within(average, 0.1).
"""


def test_a_plan_ends_with_what_to_do_next_and_says_what_an_aim_takes(tmp_path):
    (tmp_path / "study.pl").write_text(STUDY)
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "study.pl"), "--size", "people=1000"], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert "wider than the ±0.1 one can live with. It needs ε" in text
    assert "Next: sfumato run" in text


@pytest.mark.parametrize("size", ["people=48842", "people=1234.5"])
def test_the_next_command_makes_the_same_plan(tmp_path, size):
    """What shaped the plan is said again: without the size another one would be run."""
    study, plans = tmp_path / "study.pl", (tmp_path / "a.json", tmp_path / "published" / "plan.json")
    study.write_text(STUDY.replace("'t.parquet'", "'t.csv'"))
    (tmp_path / "t.csv").write_text("id,x\n1,3\n2,4\n")
    done = CliRunner().invoke(app, ["plan", str(study), "--size", size, "--out", str(plans[0])])
    (line,) = [line for line in done.output.splitlines() if line.startswith("Next: sfumato run")]
    words = shlex.split(line.removeprefix("Next: sfumato "))
    assert words[words.index("--size") + 1] == size
    followed = CliRunner().invoke(app, [*words, "--dry-run"])
    assert followed.exit_code == 0, followed.output
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in plans)
    assert first == second


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_what_is_said_in_words_fits_the_terminal(tmp_path, columns):
    (tmp_path / "study.pl").write_text(STUDY)
    (tmp_path / "t.parquet").write_bytes(b"")
    run = ["run", str(tmp_path / "study.pl"), "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--dry-run"]
    assert CliRunner().invoke(app, run).exit_code == 0
    folder = str(tmp_path / "out")
    asked = [["explain", folder, "--for", reader] for reader in ("LAWYER", "SUBJECT", "ANALYST", "public")]
    asked += [["trace", folder], ["trace", folder, "--person", "uma"]]
    for words in asked:
        done = CliRunner().invoke(app, words, env={"COLUMNS": str(columns)})
        assert done.exit_code == 0, done.output
        # A hash or a path is one word, and stays whole.
        longest = max(len(line) for line in done.output.splitlines() if len(line.split()) > 2)
        assert min(columns, 100) - 25 < longest <= min(columns, 100), words


def test_watching_plans_again_after_a_change_and_survives_what_is_wrong(tmp_path):
    study = tmp_path / "study.pl"
    study.write_text("first")
    planned: list[str] = []

    def once() -> None:
        planned.append(study.read_text())
        if planned[-1] == "second, wrong":
            raise PlanError("No plan. Nothing was spent.")

    steps = iter(["", "second, wrong", "", "third!", "stop"])

    def wait(_: float) -> None:
        step = next(steps)
        if step == "stop":
            raise KeyboardInterrupt
        if step:
            study.write_text(step)

    console = Console(record=True, width=80, file=io.StringIO())
    watched(study, once, console, wait)
    assert planned == ["first", "second, wrong", "third!"]
    said = console.export_text()
    assert "PlanError: No plan." in said
    assert "Stopped. Nothing was spent." in said


def test_a_shell_can_complete_commands():
    environment = {**os.environ, "_SFUMATO_COMPLETE": "complete_bash", "COMP_WORDS": "sfumato l", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'sfumato'; from sfumato.cli.app import main; main()"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ledger" in done.stdout.split()


def test_after_a_run_the_terminal_shows_what_was_drawn_and_no_prediction(tmp_path):
    """Every number of the files, and nothing for 1,000 people whom nobody spoke of."""
    more = "histogram(h, x(P), person(P), [10, 20, 30]). publish(table, h, openness(public)).\n"
    (tmp_path / "study.pl").write_text(STUDY + more)
    parquet.write_table(pa.table({"id": range(300), "x": [float(n % 90) for n in range(300)]}), tmp_path / "t.parquet")
    words = ["run", str(tmp_path / "study.pl"), "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--grant"]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "160", "SFUMATO_STATE": str(tmp_path / "state")})
    assert done.exit_code == 0, done.output
    drawn = [
        row for file in (tmp_path / "out" / "results").glob("*.public.json") for row in json.loads(file.read_text())
    ]
    assert len(drawn) == 5
    for row in drawn:
        assert " ".join(f"{row[name]:,.6g}" for name in ("value", "low", "high")) in " ".join(done.output.split())
    said = [line for line in done.output.splitlines() if not line.startswith("assumed: ")]  # and that it was, for noise
    assert not [line for line in said if "1,000" in line or "1000" in line]


def test_a_plan_in_python_says_first_for_how_many_people_it_is():
    frame = {"id": [1, 2], "x": [1.0, 2.0]}
    study = Study("T").table("t", frame, person="id", columns={"x": (0, 9)}, missing="never")
    study = study.promise("public", epsilon=1).mean("x", to="public")
    assert str(study.plan()).startswith("for 1,000 people (assumed; .plan(size=N) tells it)\n")
    assert str(study.plan(size=70_000)).startswith("for 70,000 people\n")
    assert "for 1,000 people (assumed" in study.plan()._repr_html_()


def test_a_bar_says_how_far_how_fast_and_how_long():
    from rich.progress import Task

    from sfumato.cli.progress import RateColumn, row_progress

    written, clock = io.StringIO(), [0.0]
    with row_progress(Console(file=written, force_terminal=True, width=120), "counting") as bar:
        bar.get_time = lambda: clock[0]
        task = bar.add_task("rows", total=1_000_000)
        for _ in range(4):
            clock[0] += 1.0
            bar.advance(task, 50_000)
        bar.refresh()
        shown: Task = bar.tasks[0]
        assert str(RateColumn().render(shown)) == "50,000 rows/s"
        assert shown.time_remaining == 16
    assert "200000/1000000" in written.getvalue()
    assert "rows/s" in written.getvalue()


def test_a_run_shows_its_stages_on_a_terminal_and_nothing_elsewhere():
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
        with staged(console) as stage:
            for name in ("planning", "reading the tables", "evaluating the study", "drawing noise", "writing"):
                stage(name)
        said = console.file.getvalue()  # type: ignore[attr-defined]
        assert ("writing" in said and "4/5" in said) == terminal
