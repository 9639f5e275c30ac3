"""The commands as a person meets them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from called import called


def sfumato(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "sfumato", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "out"
    run = sfumato("demo", "--out", folder)
    assert run.returncode == 0, run.stderr
    return folder, run.stdout


def test_demo_tells_the_whole_story(demo):
    folder, text = demo
    for word in ("plan", "ledger", "hospitals", "verify", "audit", "replacing one patient", "refuted", "report.html"):
        assert word in text
    assert {path.name for path in folder.iterdir()} >= {"study.pl", "ledger.db", "release"}
    assert {path.name for path in (folder / "release").iterdir()} >= {"certificate.json", "plan.json", "report.html"}


def test_verify_says_yes_and_no(demo, tmp_path):
    folder, _ = demo
    good = folder / "release" / "certificate.json"
    assert sfumato("verify", good).returncode == 0
    record = json.loads(good.read_text())
    record["claims"]["pairs"][0]["epsilon"] *= 0.9
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(record))
    run = called("verify", bad)
    assert run.returncode == 1
    assert "claims.pairs[0].epsilon" in run.stdout.replace("\n", "")
    assert called("verify", "--quiet", bad).stdout == ""
    assert called("verify", tmp_path / "absent.json").returncode == 1


def test_errors_are_one_readable_message(tmp_path):
    run = sfumato("calibrate", "--epsilon", "-1", "--sensitivity", "1")
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert "epsilon must be greater than 0" in run.stderr
    run = called("ledger", "show", "--ledger", tmp_path / "none" / "x.db")
    assert run.returncode == 1
    assert "Traceback" not in run.stderr


def test_calibrate_and_version():
    run = called("calibrate", "--epsilon", "1", "--delta", "1e-5", "--sensitivity", "1")
    assert "3.73" in run.stdout
    assert sfumato("--version").stdout.startswith("sfumato ")


def test_a_warning_at_the_terminal_is_a_plain_line(tmp_path):
    """No line of a library's code is shown, and none of its files."""
    (tmp_path / "stays.csv").write_text("id,code\n1,a\n2,\n3,b\n", encoding="utf-8")
    (tmp_path / "study.pl").write_text(
        "table(stays, 'stays.csv', person(P) = id, [code: [a, b]]).\n"
        "rows_per_person(stays, 1). missing(stays, never).\n"
        "dataset(people, domain(P, person(P))).\nprivacy_requirement(openness(public), people, dp(1)).\n"
        "histogram(h, code(P), person(P)).\npublish(codes, h, openness(public)).\n",
        encoding="utf-8",
    )
    words = ["run", "study.pl", "--data", ".", "--ledger", "l.db", "--grant", "--out", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "Column 'code'" in line)
    assert line.startswith("warning: Column 'code' of stays: ")
    assert ".py" not in done.stderr
