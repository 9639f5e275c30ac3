"""Every example: checked, rehearsed, run on its table, its folder complete, its numbers near the truth."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.evidence import verify
from sfumato.lang import examine

ROOT = Path(__file__).parents[2] / "examples"
STUDIES = sorted(ROOT.glob("*/study.pl"))


def named(study: Path) -> str:
    return study.parent.name


def run(study: Path, out: Path, *more: str) -> str:
    words = ["run", str(study), "--data", str(study.parent), "--out", str(out), *more]
    words += ["--at", "1"] if "step(1" in study.read_text(encoding="utf-8") else []  # of a history, its first release
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "the folder is complete" in done.output
    return done.output


def test_the_five_are_there():
    assert {"oncology", "hospitals", "census", "lending", "sensors"} <= {named(study) for study in STUDIES}


@pytest.mark.parametrize("study", STUDIES, ids=named)
def test_it_can_be_planned(study):
    assert not [one.describe() for one in examine(study)[1] if one.severity == "error"]


@pytest.mark.parametrize("study", STUDIES, ids=named)
def test_it_can_be_rehearsed(study, tmp_path):
    assert "nothing" in run(study, tmp_path / "out", "--dry-run")
    certificates = sorted((tmp_path / "out").glob("certificate*.json"))
    assert certificates
    assert all(json.loads(path.read_text())["publishable"] is False for path in certificates)


@pytest.mark.slow
@pytest.mark.parametrize("study", [study for study in STUDIES if named(study) != "centres"], ids=named)
def test_it_runs_on_its_own_table(study, tmp_path):
    run(study, tmp_path / "out", "--grant", "--ledger", str(tmp_path / "ledger.db"))
    assert all(verify(path).ok for path in (tmp_path / "out").glob("certificate*.json"))
    index = json.loads((tmp_path / "out" / "results" / "index.json").read_text())
    assert all((tmp_path / "out" / "results" / entry["file"]).is_file() for entry in index)


def test_the_hospitals_figures_are_near_the_truth(tmp_path):
    """Within six standard errors: a wrong table, column or hospital would be far outside."""
    study = ROOT / "hospitals" / "study.pl"
    run(study, tmp_path / "out", "--grant", "--ledger", str(tmp_path / "ledger.db"), "--size", "everybody=1600")
    table = pq.read_table(study.parent / "patients.parquet").to_pandas()
    exact = {f"kaliumIn({name})": part["kalium"].mean() for name, part in table.groupby("hospital")}
    exact |= {"meanKalium": table["kalium"].mean()}
    high = table[table["kalium"] > 5.5].groupby("hospital").size()
    exact |= {f"highIn({name})": float(high.get(name, 0)) for name in ("north", "south", "west")}
    seen = set()
    for path in (tmp_path / "out" / "results").glob("*.*.json"):
        for row in json.loads(path.read_text()):
            if row["node"] in exact:
                seen.add(row["node"])
                assert abs(row["value"] - exact[row["node"]]) < 6 * row["standard_error"] + 0.01
    assert seen == set(exact)
