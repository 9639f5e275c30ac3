"""The studio in a real Chromium: write by form, turn ε, see the bars move, publish, read the report."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from accessible import axe_source, complaints, system_browser
from sfumato.studio.app import studio_app
from sfumato.studio.desk import Desk
from sfumato.studio.guard import Guard
from studio.desks import STUDY, make_study

pytestmark = pytest.mark.browser


@pytest.fixture
def served(tmp_path) -> Iterator[tuple[Desk, Guard]]:
    """A studio on a free port, in a thread."""
    import socket

    desk = Desk.open(make_study(tmp_path))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        guard = Guard(listening.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(studio_app(desk, guard), log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield desk, guard
        server.should_exit = True
        thread.join(30)
    desk.close()


@pytest.fixture
def page(served):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=system_browser(), args=["--no-sandbox"])
        context = opened.new_context(viewport={"width": 1400, "height": 1000})
        view = context.new_page()
        view.outside, view.complaints = [], []
        context.on(
            "request",
            lambda one: (
                view.outside.append(one.url)
                if not one.url.startswith(("http://127.0.0.1:", "data:", "file:"))
                else None
            ),
        )
        view.on("console", lambda one: view.complaints.append(one.text) if one.type in ("error", "warning") else None)
        view.on("pageerror", lambda one: view.complaints.append(str(one)))
        yield view
        assert not view.outside
        opened.close()


def opened(page, guard: Guard):
    start = time.perf_counter()
    page.goto(guard.address)
    page.locator("#results .rows li").first.wait_for()
    return time.perf_counter() - start


def test_from_the_form_to_the_report(served, page):
    desk, guard = served
    opened(page, guard)
    assert page.locator(".card").count() == 2
    assert page.locator("#numbers li").count() == len(STUDY.split("\n"))

    before = page.locator(".within strong").first.inner_text()
    slider = page.locator("#slide-1")
    slider.focus()
    for _ in range(40):
        slider.press("ArrowRight")
    page.get_by_text(re.compile("times sharper")).first.wait_for()
    assert page.locator(".within strong").first.inner_text() != before
    assert "dp(1, 1e-6)" not in page.locator("#text").input_value()
    page.locator("#undo").click()

    page.locator("#tab-form").click()
    page.locator("#add-what").select_option("mean")
    page.locator("#add-of").select_option("age(P)")
    page.locator("#add-name").fill("howOld")
    page.locator("#add").click()
    page.locator("#results").get_by_text("howOld", exact=True).first.wait_for()
    assert "publish(howOld" in page.locator("#text").input_value()

    page.locator("#rehearse").click()
    page.locator("#telling-link").wait_for(timeout=60_000)
    page.locator("#telling-close").click()

    page.locator("#publish").click()
    page.locator("#word").fill("publish")
    page.locator("#confirm").click()
    page.get_by_text("A first grant is a person's decision").wait_for(timeout=60_000)
    page.locator("#grant").check()
    page.locator("#confirm").click()
    page.get_by_text("Everything is in").wait_for(timeout=60_000)
    folders = [path for path in desk.study.parent.iterdir() if path.is_dir()]
    assert [(path / "report.html").is_file() for path in folders] == [True]
    with page.context.expect_page() as shown:
        page.locator("#telling-link").click()
    report = shown.value
    report.wait_for_load_state()
    assert "howOld" in report.content()
    refused = ("Failed to load resource", "409")
    assert [one for one in page.complaints if not any(word in one for word in refused)] == []


def test_a_broken_study_is_told_and_can_be_mended(served, page):
    _, guard = served
    opened(page, guard)
    area = page.locator("#text")
    area.fill(STUDY.replace("mean(older", "maen(older"))
    page.locator(".messages .error").first.wait_for()
    assert page.locator("#numbers .error").count() >= 1
    area.fill(STUDY)
    page.locator("#results .rows li").first.wait_for()
    assert page.locator(".messages .error").count() == 0


def test_without_a_mouse(served, page):
    _, guard = served
    opened(page, guard)
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"save", "rehearse", "publish", "tab-text", "text", "slide-1"} <= set(seen)
    page.locator("#tab-text").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#panel-form").is_visible()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1400, "dark"), (820, "light")])
def test_narrow_and_dark(served, page, width, scheme, tmp_path):
    _, guard = served
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    opened(page, guard)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    page.screenshot(path=str(tmp_path / f"studio-{width}-{scheme}.png"), full_page=True)


def test_replanning_is_quick(served, page):
    """From a step of the slider to the painted numbers; a limit that holds on a busy machine too."""
    _, guard = served
    first = opened(page, guard)
    slider = page.locator("#slide-1")
    slider.focus()
    times = []
    for _ in range(8):
        before = page.locator("#results").inner_text()
        start = time.perf_counter()
        slider.press("ArrowRight")
        while page.locator("#results").inner_text() == before:
            assert time.perf_counter() - start < 20
        times.append(time.perf_counter() - start)
    print(f"first page {first:.2f} s, replanning {sorted(times)[4]:.3f} s (median of 8)")


def test_a_foreign_page_is_refused_by_the_browser_and_by_the_studio(served, page, tmp_path):
    _, guard = served
    opened(page, guard)
    foreign = tmp_path / "foreign.html"
    foreign.write_text("<!doctype html><title>foreign</title>", encoding="utf-8")
    other = page.context.new_page()
    other.goto(foreign.as_uri())
    body = (
        "{method: 'POST', mode: 'no-cors', credentials: 'include', headers: {'content-type': 'text/plain'}, body: '{}'}"
    )
    answer = other.evaluate(
        f"fetch('http://127.0.0.1:{guard.port}/do/ask', {body}).then(one => one.type + one.status, error => 'refused')"
    )
    assert answer in ("refused", "opaque0")
    fresh = page.context.browser.new_context().new_page()
    assert fresh.goto(f"http://127.0.0.1:{guard.port}/").status == 401


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(served, page, scheme):
    source = axe_source()
    _, guard = served
    page.emulate_media(color_scheme=scheme)
    opened(page, guard)
    assert complaints(page, source) == []
    page.locator("#tab-form").click()
    assert complaints(page, source) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert complaints(page, source) == []
    page.locator("#publish").click()
    page.locator("#word").wait_for()
    assert complaints(page, source) == []
