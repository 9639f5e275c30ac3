"""`sfumato ledger`: readable at 80 columns, adjacency wherever ε is, errors left to rise."""

from __future__ import annotations

import json
import re
import sys

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import main
from sfumato.cli.ledger import ledger_app
from sfumato.core import (
    ApproxDP,
    NoGuarantee,
)
from sfumato.errors import (
    SfumatoError,
)
from sfumato.ledger import Ledger


def run_command(*arguments: object):
    return CliRunner().invoke(ledger_app, [str(argument) for argument in arguments], env={"COLUMNS": "80"})


def test_commands_show_what_happened(path):
    assert run_command("grant", "survey", "--epsilon", 1, "--delta", 0.001, "--ledger", path).exit_code == 0
    granted = run_command(
        "grant", "[b]visits", "--rho", 0.5, "--unit", "person", "--relation", "add-remove", "--ledger", path
    )
    assert "adding or removing one person" in " ".join(granted.output.split())
    Ledger(path).reserve("survey", ApproxDP(0.2, 0.0), purpose="mean age")
    Ledger(path).reserve("[b]visits", NoGuarantee("as in 2016"), accept_no_guarantee=True)
    shown = run_command("show", "--ledger", path).output
    for words in (
        "survey",
        "under replacing one record",
        "(1, 0.001)-DP",
        "(0.8, 0.001)-DP",
        "[b]visits",
        "NO PRIVACY",
    ):
        assert words in shown
    assert "visits" not in run_command("show", "survey", "--ledger", path).output
    assert "mean age" in run_command("history", "--ledger", path).output
    for output in (shown, run_command("history", "--ledger", path).output):
        assert max(map(len, output.splitlines())) <= 80
    records = json.loads(run_command("history", "survey", "--json", "--ledger", path).output)
    assert [record["action"] for record in records] == ["grant", "reserve"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("grant", "survey"),
        ("grant", "survey", "--mu", 1, "--rho", 1),
        ("grant", "survey", "--mu", 1, "--delta", "1e-6"),
        ("grant", "survey", "--epsilon", "nan"),
    ],
)
def test_command_errors_rise_as_ours(path, arguments):
    result = run_command(*arguments, "--ledger", path)
    assert isinstance(result.exception, SfumatoError)
    assert re.search(r"Nothing (was spent|changed)|nothing was spent", str(result.exception))
    assert not path.exists()


def test_the_path_may_come_from_the_environment(path, monkeypatch):
    monkeypatch.setenv("SFUMATO_LEDGER", str(path))
    assert run_command("grant", "survey", "--mu", 1).exit_code == 0
    assert path.exists()


def test_markup_in_a_name_is_printed_as_text(tmp_path, monkeypatch, capsys):
    Ledger(tmp_path / "ledger.db").grant("[red]people[/]", 1.0)
    for words in (["show"], ["history"], ["history", "[bold]folk[/]"]):
        monkeypatch.setattr(sys, "argv", ["sfumato", "ledger", *words, "--ledger", str(tmp_path / "ledger.db")])
        with pytest.raises(SystemExit):
            main()
    printed = capsys.readouterr()
    assert "[red]people[/]" in printed.out
    assert "[bold]folk[/]" in printed.err
