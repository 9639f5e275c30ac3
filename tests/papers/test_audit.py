"""docs/papers.md is what the marked tests say, and they name what exists."""

from __future__ import annotations

from papers.audit import ROOT, SECTIONS, WORKS, Evidence, evidence, page, rows
from papers.catalogue import STUDIES


def test_the_page_is_up_to_date():
    written = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert written == page(), "run `python -m papers.audit`"


def test_every_mark_names_a_section_and_a_file():
    for one in evidence():
        assert (one.work, one.section) in SECTIONS, one
        assert one.work in WORKS
        place = "papers" if one.code.startswith("papers/") else "src/sfumato"
        assert (ROOT / place / one.code.removeprefix("papers/")).exists(), one


def test_what_no_test_names_is_answered_no():
    """And one open point turns a whole row to partial."""
    assert {row.verdict for row in rows([])} == {"no"}
    whole = Evidence("003", "Alg 1", "learn/base.py", "t")
    part = Evidence("003", "Alg 1", "learn/base.py", "u", missing="speed")
    verdicts = [
        next(row for row in rows(found) if row.section == "Alg 1").verdict for found in ([whole], [whole, part])
    ]
    assert verdicts == ["yes", "partial: speed"]


def test_studies_are_named_by_their_ids():
    assert all(study.id == name for name, study in STUDIES.items())
