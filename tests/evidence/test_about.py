"""What a study says of itself, on every page: title, purpose, who decided, what is read; the page to sign."""

from __future__ import annotations

import re

import pytest

from evidence.pages import Page
from plan.studies import HEAD, MEAN, one
from sfumato import Interval, Study, load, make_plan
from sfumato.cli.pages import print_page, write_lawyer_page
from sfumato.errors import InputError, StudyError
from sfumato.evidence.explain import explain
from sfumato.evidence.odds import one_in
from sfumato.evidence.report import lawyer_html, report_html
from sfumato.plan.about import weak_promises
from sfumato.plan.plan import Plan

TOLD = (
    "about(title, 'Ages <of> patients'). about(purpose, 'Plan the beds of 2027').\n"
    "decided_by(openness(public), 'Data board, 3 May').\n"
)
METRIC = "dp(0.5, 0.000001)"


def pages(study: str, people: int = 2000) -> tuple[Plan, dict[str, Page]]:
    plan = make_plan(study, sizes={"people": people})
    stored = Plan.from_json(plan.to_json())
    return plan, {"report": Page(report_html(stored)), "lawyer": Page(lawyer_html(stored))}


def test_title_purpose_and_who_decided_are_on_every_page():
    plan, found = pages(one(METRIC, MEAN) + TOLD)
    for page in found.values():
        assert page.mistakes == []
        for words in (
            "Ages <of> patients",
            "Plan the beds of 2027",
            "Data board, 3 May",
            "one in a million",
            "0 to 110",
        ):
            assert words in page.text
    told = " ".join(explain(plan, "LAWYER").split())
    assert "Data board, 3 May" in told
    assert "one in a million" in told
    assert "not say who decided" not in told
    bare = pages(one(METRIC, MEAN))[1]
    assert "does not say who decided" in bare["report"].text
    assert "not said" in bare["lawyer"].text


def test_what_is_said_changes_no_number():
    first, second = (make_plan(text, sizes={"people": 2000}) for text in (one(METRIC, MEAN), one(METRIC, MEAN) + TOLD))
    assert first.draws == second.draws
    assert first.publications[0].seen == second.publications[0].seen


def test_only_columns_that_are_read_are_listed():
    """bmi is declared and asked for nowhere."""
    assert "bmi" in HEAD
    plan, found = pages(one(METRIC, MEAN))
    assert [column for _, column, _, _ in plan.extras["about"]["columns"]] == ["age"]
    assert "how many is not told" in found["report"].text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("decided_by(openness(pubic), 'me').", "openness(public)"),
        ("about(author, 'me').", "title"),
        ("about(title, 'a'). about(title, 'b').", "two texts"),
        ("about(title, [a]).", "quoted"),
    ],
)
def test_what_cannot_be_meant_is_refused(line, says):
    with pytest.raises(StudyError, match=re.escape(says)):
        load(one(METRIC, MEAN) + line + "\n")


@pytest.mark.parametrize(
    ("metric", "people", "word"),
    [("dp(11, 0.000001)", 1000, "e^11"), ("dp(1, 0.0011)", 1000, "1 over the number"), ("dp(1, 0.0009)", 1000, "")],
)
def test_weak_promises_are_warned_of_everywhere(metric, people, word):
    plan, found = pages(one(metric, MEAN), people)
    assert len(weak_promises(plan)) == bool(word)
    for text in (found["report"].text, found["lawyer"].text, explain(plan, "LAWYER")):
        assert ("Warning:" in text) == bool(word)
        assert word in text


def test_a_study_in_python_says_it_too():
    study = (
        Study("It's about stays", purpose="Beds,\nand nurses")
        .table("stays", "stays.parquet", person="id", missing="never", columns={"days": Interval(1, 14)})
        .promise("public", epsilon=1, delta=1e-6, decided_by="The board's chair")
        .mean("days", to="public")
    )
    again = Study.from_text(study.to_text())
    assert (again.title, again.purpose) == ("It's about stays", "Beds, and nurses")
    text = study.plan(size=100).explain("LAWYER")
    assert "decided by The board's chair" in " ".join(text.split())
    assert "promise to x is weak" in str(study.promise("x", epsilon=20).mean("days", to="x").plan(size=100))


def test_the_page_to_sign_holds_the_same_figures(tmp_path):
    plan, found = pages(one(METRIC, MEAN) + TOLD)
    (seen,) = plan.publications[0].seen
    for page in found.values():
        assert f"±{seen.half_width:.4g}" in page.text
    assert found["lawyer"].text.count("name, date") == 2
    assert not {"script", "link", "img"} & set(found["lawyer"].tags)
    target = tmp_path / "page.html"
    assert "lines to sign" in write_lawyer_page(plan, "lawyer", tmp_path / "plan.json", target, None, None)
    assert Page(target.read_text(encoding="utf-8")).mistakes == []
    with pytest.raises(InputError, match="LAWYER"):
        write_lawyer_page(plan, "public", tmp_path / "plan.json", target, None, None)


def test_every_table_has_a_caption_and_every_head_a_scope():
    for page in pages(one(METRIC, MEAN) + TOLD)[1].values():
        assert page.tags.count("caption") == page.tags.count("table") > 2
        assert len(page.values("scope")) == page.tags.count("th")


def test_without_a_browser_a_page_can_be_printed_by_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="any browser"):
        print_page(tmp_path / "page.html", tmp_path / "page.pdf")


def test_one_in_never_says_less_than_the_probability():
    for chance in (1e-6, 1e-5, 3e-7, 1 / 7, 0.099, 9.99e-4, 1e-12, 1.5e-10):
        words = one_in(chance)
        if words.startswith("one in"):
            number = (
                words.removeprefix("one in ").replace("a million", "1e6").replace("a billion", "1e9").replace(",", "")
            )
            value, *unit = number.split()
            many = float(value) * {"million": 1e6, "billion": 1e9}.get(unit[0] if unit else "", 1.0)
            assert 1 / many >= chance * (1 - 1e-9)
            assert 1 / many <= 1.12 * chance
