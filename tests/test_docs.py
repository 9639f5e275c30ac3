"""The pages: links lead somewhere, every proof is listed, what they show runs as shown."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.lines import invented_people, programs
from sfumato.cli.app import app
from sfumato.lang import examine
from shown import run_shown

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: Pages whose code stands on its own; the others show fragments.
OWN = [page for page in PAGES if page.parent.name == "howto" or page.stem in ("index", "tutorial", "faq", "planning")]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def named(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(DOCS)) for page in pages]


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_no_link_is_broken(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for target in targets:
        if not target.startswith(("https://", "#")):
            assert (page.parent / target.split("#")[0]).resolve().exists(), target


def test_every_page_is_in_the_menu_and_every_proof_in_the_index():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    index = (DOCS / "proofs_index.md").read_text(encoding="utf-8")
    for page in PAGES:
        name = page.relative_to(DOCS).as_posix()
        assert name in (index if name.startswith("proofs/") else menu), name


def test_every_command_named_exists():
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    for page in OWN:
        for command in re.findall(r"(?:^|`|\n)sfumato (\w+)", page.read_text(encoding="utf-8")):
            assert command in known, (page.name, command)


@pytest.mark.parametrize("page", OWN, ids=named(OWN))
def test_every_study_shown_can_be_read(page):
    for text in blocks(page, "prolog"):
        if len(text.splitlines()) > 3:
            assert not [one.describe() for one in examine(text)[1] if one.severity == "error"]


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in OWN if blocks(p, "python")], ids=lambda page: page.stem)
def test_every_python_example_runs(page, tmp_path):
    for text in blocks(page, "python"):
        run = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr


OURS = sorted({program.text for program in programs() if program.ours})


@pytest.mark.parametrize("text", OURS, ids=lambda text: text.strip().splitlines()[-1][:40])
def test_our_side_of_the_pages_for_who_comes_from_elsewhere_runs(text, tmp_path, monkeypatch):
    invented_people(tmp_path, 4000)
    run_shown(text, tmp_path, monkeypatch)


def test_we_need_no_more_lines_than_they_do():
    """Counted as they stand, and none of ours is wider than a line."""
    listed = programs()
    assert {"opendp", "smartnoise", "diffprivlib", "tumult"} <= {program.page for program in listed}
    tasks = {program.task for program in listed}
    assert tasks == {"group means", "two-way table", "median", "synthetic table", "model"}
    shown = (DOCS / "comparison.md").read_text(encoding="utf-8")
    for task in tasks:
        ours, theirs = (
            min(one.lines for one in listed if one.task == task and one.ours is own) for own in (True, False)
        )
        assert ours <= theirs, task
        assert f"| {task} | {ours} | {theirs}" in shown, (task, ours, theirs)
    for theirs in (program for program in listed if not program.ours):
        ours = next(one for one in listed if one.ours and (one.page, one.task) == (theirs.page, theirs.task))
        assert ours.lines <= theirs.lines, (theirs.page, theirs.task)
        assert max(map(len, ours.text.splitlines())) <= 120


def test_the_reference_has_every_public_name(tmp_path):
    """Made when the site is built; a public name without words of its own is found here."""
    spec = importlib.util.spec_from_file_location("reference", DOCS / "hooks" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    text = hook.reference_text()
    for module, _, _ in hook.ROOMS:
        for name in importlib.import_module(module).__all__:
            assert f"### {name}\n" in text, (module, name)
    for method in ("mean", "histogram", "promise", "from_text"):
        assert f"#### Study.{method}\n" in text
    bare = re.findall(r"^### (\w+)\n\n```text\n[^`]*\n```\n\n\n", text, re.MULTILINE)
    assert bare == []
    assert text.count("```") % 2 == 0


def test_the_tutorial_does_what_it_says(tmp_path, monkeypatch):
    """Table, study, plan, rehearsal, run, certificate, and the refusal of a second run."""
    from typer.testing import CliRunner

    page = DOCS / "tutorial.md"
    run_shown(blocks(page, "python")[0], tmp_path, monkeypatch)
    study, out, ledger = tmp_path / "study.pl", tmp_path / "published", tmp_path / "ledger.db"
    study.write_text(blocks(page, "prolog")[0], encoding="utf-8")

    def run(*words: object) -> int:
        return CliRunner().invoke(app, [str(word) for word in words]).exit_code

    assert run("new", tmp_path / "patients.parquet", "-o", tmp_path / "begun.pl") == 0
    assert run("check", tmp_path / "begun.pl") == 1
    assert run("plan", study, "--size", "people=1000") == 0
    assert run("run", study, "--data", tmp_path, "--out", tmp_path / "rehearsal", "--dry-run") == 0
    assert run("run", study, "--data", tmp_path, "--out", out, "--ledger", ledger, "--grant") == 0
    assert run("verify", out / "certificate.json") == 0
    assert run("trace", out / "results" / "ageMean.public.json", "--study", study) == 0
    assert {"report.html", "README.txt", "plan.json", "results"} <= {path.name for path in out.iterdir()}
    assert run("run", study, "--data", tmp_path, "--out", tmp_path / "second", "--ledger", ledger) == 1
    assert not (tmp_path / "second").exists()
