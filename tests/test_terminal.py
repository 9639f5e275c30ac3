"""The terminal: completion, a plan that follows its file, what to do next."""

from __future__ import annotations

import io
import os
import subprocess
import sys

from rich.console import Console
from typer.testing import CliRunner

from sfumato.cli.app import app
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
