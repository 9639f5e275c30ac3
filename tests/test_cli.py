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
