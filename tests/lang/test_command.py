"""`sfumato check`: text for people, JSON for editors, an exit code for scripts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.cli.check import plain_check

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_a_good_study_says_what_is_promised():
    code, text = run(str(EXAMPLES / "oncology" / "study.pl"))
    assert code == 0
    assert "0 errors, 1 warning" in text  # of the doctor's δ = 0.03
    assert "weak-promise" in text
    assert "public: (0.1, 0.001)-DP, under replacing one patient" in text


@pytest.mark.parametrize("name", ["oncology/study.pl", "oncology/printed.pl", "nothing/there.pl"])
@pytest.mark.parametrize("words", [[], ["--json"]])
@pytest.mark.by_day(1)
def test_the_short_way_to_a_check_says_the_same(capsys, name, words):
    path = str(EXAMPLES / name)
    fine = plain_check(["check", *words, path])
    assert (0 if fine else 1, capsys.readouterr().out) == run(path, *words)


@pytest.mark.parametrize(
    "arguments", [["check"], ["check", "--help"], ["check", "a", "b"], ["check", "a", "--data", "b"], ["plan", "a"]]
)
def test_other_words_are_read_as_they_always_are(arguments, capsys):
    assert plain_check(arguments) is None
    assert capsys.readouterr().out == ""


def test_warnings_do_not_fail(tmp_path):
    study = tmp_path / "study.pl"
    text = (EXAMPLES / "lending" / "study.pl").read_text(encoding="utf-8")
    study.write_text(text + "fact(1, 2). other(X) :- fact(X, Y).\n", encoding="utf-8")
    code, text = run(str(study))
    assert code == 0
    assert "warning" in text


def test_a_network_in_which_nothing_is_published_cannot_be_planned():
    code, text = run(str(EXAMPLES / "university" / "printed.pl"))
    assert code == 1
    assert "The study publishes nothing" in text


def test_errors_fail_and_name_file_line_and_column():
    code, text = run(str(EXAMPLES / "oncology" / "printed.pl"))
    assert code == 1
    assert "printed.pl:50:5: error: age(uma)" in text
    assert "Nothing was run and nothing was spent" in text


def test_json_holds_the_same_fields():
    code, text = run(str(EXAMPLES / "oncology" / "printed.pl"), "--json")
    record = json.loads(text)
    assert code == 1
    assert record["errors"] == sum(one["severity"] == "error" for one in record["problems"]) > 0
    fields = {"severity", "code", "message", "file", "line", "column", "clause", "expected", "nearest", "way_out"}
    assert all(set(one) == fields for one in record["problems"])


@pytest.mark.parametrize(
    "content", [None, b"\xff\xfe\x00", b"", b"\x00\x00", "random(é(P)) ← x(P).".encode(), b"a" * 2_000_000]
)
def test_any_file_gets_an_answer(tmp_path, content):
    path = tmp_path / "study.pl"
    if content is not None:
        path.write_bytes(content)
    code, text = run(str(path))
    assert code == 1
    assert "Traceback" not in text


def test_a_folder_is_no_study(tmp_path):
    code, text = run(str(tmp_path))
    assert code == 1
    assert "cannot be opened" in text


def test_help_does_not_wait_for_the_logic_engine():
    """`sfumato --help` and `import sfumato` must not load ProbLog."""
    command = "import sys, sfumato.cli.app; sys.exit('problog' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False, timeout=110).returncode == 0
