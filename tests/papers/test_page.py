"""One page for all studies: every figure and table has an id, absent data are said, claims and pictures are there."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from papers import catalogue, page
from papers.catalogue import STUDIES
from papers.study import Study, StudyResult, Verdict
from sfumato.cli.app import app
from sfumato.errors import DataError


def plain(_settings):
    verdicts = (
        Verdict("a < b", True, "2 < 3"),
        Verdict("b < a", False, "3 > 2"),
        Verdict("c", None, "?", of="sfumato"),
    )
    return StudyResult(("x", "y"), tuple((place, place / 3) for place in range(30)), verdicts, lambda figure: None)


def absent(_settings):
    raise DataError("nothing.parquet is not here.")


@pytest.fixture
def two(monkeypatch):
    studies = {"one": Study("one", "A < title", "Paper, Fig. 1", plain), "two": Study("two", "T", "Paper", absent)}
    monkeypatch.setattr(page, "STUDIES", studies)
    monkeypatch.setattr(catalogue, "STUDIES", studies)


def test_all_studies_are_on_one_page(two, tmp_path):
    console = Console(width=120, file=io.StringIO())
    written = page.reproduce_all(tmp_path / "out", quick=True, console=console)
    text = written.read_text(encoding="utf-8")
    assert "A &lt; title" in text
    assert text.count("<li class=") == 3
    assert "(ours) c" in text
    assert "src='one.png'" in text
    assert (written.parent / "one.png").exists()
    assert "18 further rows" in text
    assert "nothing.parquet is not here" in text
    assert "rough" in text


def test_the_command_takes_a_study_or_all(two, tmp_path):
    run = CliRunner().invoke(app, ["reproduce", "--all", "--quick", "--out", str(tmp_path)])
    assert run.exit_code == 0
    assert (tmp_path / "index.html").exists()
    assert CliRunner().invoke(app, ["reproduce", "one", "--all"]).exit_code != 0


def test_every_figure_and_table_with_numbers_has_an_id():
    """Captions are listed by hand from the five documents; what is a drawing is on the page as such."""
    wanted = {
        "farokhi": [*range(1, 8)],
        "chaudhuri": ["Table 1", "Table 2", "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 5"],
        "park": ["Fig. 1.1", "Fig. 5.1", "Fig. 5.2", "Fig. 7.1", "Fig. 7.2", "Table 7.1", "Table 7.2", "Table 7.3"],
        "basu": [f"5.{number}" for number in range(1, 16)],
    }
    references = {
        author: " ; ".join(s.reference for s in STUDIES.values() if s.id.startswith(author)) for author in wanted
    }
    numbers = {
        int(n)
        for found in re.findall(r"Figs? ?\.? ?([0-9, ]+)", references["farokhi"].replace(".", ""))
        for n in re.findall(r"\d+", found)
    }
    assert numbers >= set(wanted["farokhi"])
    for author in ("chaudhuri", "park"):
        assert all(name in references[author] for name in wanted[author]), author
    assert "Figs 5.9-5.15" in references["basu"]
    assert all(f"Fig. 5.{number}" in references["basu"] for number in range(1, 9))
    assert Path(page.__file__).exists()
    assert set(page.WITHOUT_NUMBERS) == {"Basu", "Chaudhuri, Monteleoni & Sarwate"}
