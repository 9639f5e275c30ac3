"""Report and page to sign, read by axe-core in Chromium: light, dark, on a phone."""

from __future__ import annotations

import pytest

from accessible import axe_source, complaints, system_browser
from plan.studies import COLLUDING
from sfumato.evidence.report import lawyer_html, report_html
from sfumato.plan.make import make_plan

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=system_browser(), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def texts():
    plan = make_plan(COLLUDING + "decided_by(openness(public), 'Data board').\n", sizes={"people": 200})
    return {"report": report_html(plan), "lawyer": lawyer_html(plan)}


@pytest.mark.parametrize("name", ["report", "lawyer"])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (390, "light")])
def test_nothing_serious_is_found(browser, texts, tmp_path, name, width, scheme):
    source = axe_source()
    (tmp_path / "page.html").write_text(texts[name], encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints(page, source) == []
    context.close()


def test_a_page_that_cannot_be_read_is_found(browser, texts):
    """The relative: grey on grey, a table that scrolls and cannot be reached."""
    source = axe_source()
    page = browser.new_context().new_page()
    page.set_content(texts["lawyer"].replace("--ink: #22252a", "--ink: #dddddd"))
    assert any(one.startswith("color-contrast") for one in complaints(page, source))


def test_on_paper_every_section_is_open(browser, texts):
    page = browser.new_context().new_page()
    page.set_content(texts["report"])
    closed = page.locator("details:not([open]) > *:not(summary)")
    assert closed.count() > 0
    assert not any(one.is_visible() for one in closed.all())
    page.emulate_media(media="print")
    assert all(one.bounding_box()["height"] > 0 for one in closed.all())
