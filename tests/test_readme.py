"""What the README shows runs as shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from shown import run_shown

README = (Path(__file__).parents[1] / "README.md").read_text()


EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_there_are_examples():
    assert EXAMPLES


def test_the_first_python_example_runs_in_a_process_of_its_own(tmp_path):
    asked = [sys.executable, "-c", EXAMPLES[0]]
    run = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("number", range(1, len(EXAMPLES)))
def test_every_python_example_runs(number, tmp_path, monkeypatch):
    run_shown(EXAMPLES[number], tmp_path, monkeypatch)


def test_every_command_named_exists():
    named = set(re.findall(r"`sfumato (\w+)", README))
    assert named
    for command in named:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0, command
    assert CliRunner().invoke(app, ["nonesuch", "--help"]).exit_code != 0
