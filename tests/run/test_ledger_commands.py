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


def test_raise_goes_up_only_and_keeps_unit_and_kind(path):
    run_command(
        "grant", "survey", "--epsilon", 1, "--delta", 0.001, "--unit", "person", "--note", "board", "--ledger", path
    )
    Ledger(path).reserve("survey", ApproxDP(0.8, 0.0), purpose="mean age")
    done = run_command("raise", "survey", "--epsilon", 2, "--note", "board, in May", "--ledger", path)
    assert done.exit_code == 0, done.output
    assert "(2, 0.001)-DP" in done.output
    assert Ledger(path).datasets() == [("survey", "person")]
    for words in (("--epsilon", 1.5), ("--mu", 3), ("--epsilon", 2), ("--epsilon", 3, "--delta", 0.0001)):
        refused = run_command("raise", "survey", *words, "--ledger", path)
        assert isinstance(refused.exception, SfumatoError), words
        assert "Nothing changed" in str(refused.exception)
    unknown = run_command("raise", "surveys", "--epsilon", 9, "--ledger", path)
    assert isinstance(unknown.exception, SfumatoError)
    run_command("grant", "survey", "--epsilon", 1, "--unit", "record", "--ledger", path)
    several = run_command("raise", "survey", "--epsilon", 9, "--ledger", path)
    assert "--unit" in str(several.exception)
    assert run_command("raise", "survey", "--epsilon", 9, "--unit", "record", "--ledger", path).exit_code == 0


def test_who_decided_is_listed_with_what_was_spent_since(path):
    run_command("grant", "survey", "--epsilon", 1, "--note", "board [3]", "--ledger", path)
    for _ in range(2):
        Ledger(path).reserve("survey", ApproxDP(0.2, 0.0), purpose="mean age")
    run_command("raise", "survey", "--epsilon", 2, "--ledger", path)
    shown = run_command("who", "--ledger", path).output
    assert "board [3]" in shown
    assert "not said" in shown
    assert max(map(len, shown.splitlines())) <= 80
    rows = [line for line in shown.splitlines() if re.search(r"\d{4}-\d\d-\d\d", line)]
    assert [line.rstrip(" │").split()[-1] for line in rows] == ["2", "0"]


def test_history_tells_a_raise_from_a_grant(path):
    """Lower, in another currency, for another unit or another dataset is a decision of its own: a grant."""
    for words in (
        ("grant", "survey", "--epsilon", 1),
        ("grant", "visits", "--epsilon", 2),
        ("raise", "survey", "--epsilon", 2),
        ("grant", "survey", "--epsilon", 9, "--unit", "person"),
        ("grant", "survey", "--epsilon", 1.5, "--unit", "record"),
        ("grant", "survey", "--rho", 50, "--unit", "record"),
        ("raise", "survey", "--rho", 60, "--unit", "record"),
    ):
        done = run_command(*words, "--ledger", path)
        assert done.exit_code == 0, done.exception
    Ledger(path).reserve("visits", 0.1)

    def shown(*words: str) -> list[str]:
        lines = run_command("history", *words, "--ledger", path).output.splitlines()
        return [line.split("│")[3].strip() for line in lines if re.search(r"│ +\d+ │", line)]

    assert shown() == ["grant", "grant", "raise", "grant", "grant", "grant", "raise", "reserve"]
    assert shown("survey") == ["grant", "raise", "grant", "grant", "grant", "raise"]
