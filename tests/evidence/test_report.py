"""The report: one file, whole, closed, escaped, with the plan's numbers and without a result."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pytest

from evidence.pages import Page
from plan.studies import COLLUDING, EACH, HEAD, MEAN, one
from sfumato.errors import InputError
from sfumato.evidence.figures import told_of
from sfumato.evidence.frontier import frontier_of
from sfumato.evidence.rehearsal import realised_errors
from sfumato.evidence.report import finish_folder, missing_from, report_html, write_report
from sfumato.evidence.report_facts import noise_labels
from sfumato.ledger.ledger import Ledger
from sfumato.plan.draw import combined_variance
from sfumato.plan.make import make_plan
from sfumato.plan.plan import Plan
from sfumato.run.generate import generated_tables
from sfumato.run.planning import make_plan as plan_everything
from sfumato.run.study import run_plan

SIZES = {"people": 200}
PEOPLE = (
    HEAD + "column(patients, ill, ill(P)).\nrandom(ill(P)) :- patient(P).\nrange(ill(P), [no, yes]).\n"
    "privacy_requirement(openness(public), people, {}).\n"
)


@pytest.fixture(scope="module")
def plan():
    return make_plan(COLLUDING, sizes=SIZES)


@pytest.fixture(scope="module")
def folder(plan, tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    run_plan(plan, generated_tables(plan.network.spec), place / "ledger.db", out=place / "out", grant=True)
    assert finish_folder(plan, place / "out", place / "ledger.db") == ()
    return place / "out"


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_every_tag_is_closed_and_nothing_comes_from_elsewhere(page, folder):
    assert page.mistakes == []
    assert not {"script", "iframe", "link", "img", "object", "embed"} & set(page.tags)
    assert not page.values("src")
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert "@import" not in text


def test_no_link_is_broken(page, folder):
    names = set(page.values("id"))
    targets = page.values("href")
    assert [target for target in targets if target.startswith("results/")]
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in names, target
        else:
            assert (folder / unquote(target)).is_file(), target


def test_it_fits_a_phone(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert 'name="viewport" content="width=device-width' in text
    assert "prefers-color-scheme: dark" in text
    style = text[text.index("<style>") : text.index("</style>")]
    # What is wider than a phone stands in a box of its own that scrolls.
    assert re.findall(r"(?<![-\w])width: *[\d.]+(?:px|rem|em)", style) == []
    assert text.count("<table") == len(re.findall(r'<div class="scroll[^>]*><table', text))


def test_all_numbers_of_the_plan_are_there(plan, page, folder):
    words = page.text
    for planned in plan.publications:
        assert planned.name in words
        assert f"{planned.error:.4g}" in words
        for told in told_of(planned, folder):
            assert told.within in words
            assert told.error in words
            assert told.name in words
        for other in planned.alternatives:
            assert other.error is None or f"{other.error:.4g}" in words
            assert other.strategy in words
    for draw in plan.draws:
        assert f"{draw.scale:.4g}" in words
    for promise in plan.promises:
        assert promise.asked.describe() in words
        assert promise.kept.describe() in words
        assert f"{math.ceil(10 * (50 + 50 * promise.asked.advantage()) - 1e-9) / 10:.1f} %" in words
    assert plan.hash in words
    assert plan.study_digest in words
    for observer in ("doctor", "public"):
        assert f"What {observer} sees" in words


def test_the_ledger_is_told(page, folder):
    balance = Ledger(folder.parent / "ledger.db").balance("people", "patient")
    assert "granted" in page.text
    assert str(balance.adjacency) in page.text
    assert "No ledger was given" not in page.text


def test_it_holds_no_result(folder):
    """The public's page must not tell the doctor's numbers, so it tells nobody's."""
    told = (folder / "report.html").read_text(encoding="utf-8") + (folder / "README.txt").read_text(encoding="utf-8")
    values = [row["value"] for path in (folder / "results").glob("*.*.json") for row in json.loads(path.read_text())]
    assert len(values) > 5
    # Short strings of digits meet by chance; six and more do not.
    written = {f"{value:.{digits}g}" for value in values for digits in (6, 8, 17)}
    numbers = set(re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", told))
    assert not {text for text in written if len(re.sub(r"\D", "", text)) >= 6} & numbers
    assert not list(folder.glob(".*"))


def test_a_name_cannot_become_a_tag(tmp_path):
    hostile = "'a $\\\\frac$<img src=x onerror=alert(1)>&\"'"
    study = one(
        "dp(0.5, 0.000001)", f"mean(meanAge, age(P), patient(P)).\npublish({hostile}, meanAge, openness(public)).\n"
    )
    text = report_html(make_plan(study, sizes=SIZES))
    parsed = Page(text)
    assert parsed.mistakes == []
    assert "img" not in parsed.tags
    assert "<img src=x" not in text
    assert "<img src=x onerror=alert(1)>" in parsed.text


def test_a_plan_alone_has_a_page_too(plan):
    parsed = Page(report_html(plan))
    assert "Planned, not run" in parsed.text
    assert parsed.mistakes == []
    bare = Page(report_html(Plan.from_json(plan.to_json())))
    assert bare.mistakes == []
    assert "network" not in bare.values("id")
    assert "network" in parsed.values("id")


def test_the_picture_says_where_noise_goes(plan, page):
    labels = noise_labels(plan)
    for observer, node in labels:
        own = tuple(draw for draw in plan.draws if draw.node == node and observer in draw.observers)
        assert labels[observer, node] == f"noise σ = {math.sqrt(combined_variance(own)):.3g}"
        assert labels[observer, node] in page.text
    assert {node for _, node in labels} == {draw.node for draw in plan.draws}
    assert any(len([d for d in plan.draws if d.node == node and who in d.observers]) > 1 for who, node in labels)


def test_a_dry_run_says_so(tmp_path, plan):
    run_plan(plan, generated_tables(plan.network.spec), None, out=tmp_path / "out", random_state=0)
    assert finish_folder(plan, tmp_path / "out") == ()
    assert "Not for publication" in Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text
    assert "A DRY RUN" in (tmp_path / "out" / "README.txt").read_text(encoding="utf-8")


def test_a_rehearsal_compares_predicted_with_realised_errors(tmp_path, plan):
    """Invented people: the truth is public, and the errors are of the predicted size. A real run tells none."""
    tables = generated_tables(plan.network.spec)
    release = run_plan(plan, tables, None, out=tmp_path / "out", random_state=0)
    realised = realised_errors(plan, release, plan.network, {})
    assert {(p.name, p.observer, seen.node) for p in plan.publications for seen in p.seen} == set(realised)
    ages = np.asarray(tables["patients"]["age"])
    shown = release["average", "public"]["value"][0].as_py()
    assert realised["average", "public", "meanAge"] == pytest.approx(abs(shown - ages.mean()), abs=1e-6)
    predicted = {(p.name, p.observer, s.node): math.sqrt(s.error / s.size) for p in plan.publications for s in p.seen}
    assert all(error < 5 * predicted[key] for key, error in realised.items())
    each = realised["each", "doctor", "risk(P)"]
    assert each == pytest.approx(predicted["each", "doctor", "risk(P)"], rel=0.5), "200 people, one draw each"
    finish_folder(plan, tmp_path / "out", rehearsal=True)
    assert f"±{each:.4g} here" in Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text
    finish_folder(plan, tmp_path / "out")
    assert "invented people)" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_real_run_tells_no_realised_error(folder, plan, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    finish_folder(plan, tmp_path / "copy", rehearsal=True)
    assert "root mean square" not in (tmp_path / "copy" / "report.html").read_text(encoding="utf-8")


def test_an_incomplete_folder_is_named(tmp_path, plan):
    run_plan(plan, generated_tables(plan.network.spec), None, out=tmp_path / "out", random_state=0)
    finish_folder(plan, tmp_path / "out")
    certificate = sorted((tmp_path / "out").glob("certificate*.json"))[0]
    record = json.loads(certificate.read_text())
    record["guarantee"] = json.loads(certificate.read_text().replace("0.5", "0.4"))["guarantee"] | {"x": 1}
    certificate.write_text(json.dumps(record))
    gone = next((tmp_path / "out" / "results").glob("spread*.parquet"))
    gone.unlink()
    (tmp_path / "out" / "run.json").unlink()
    missing = finish_folder(plan, tmp_path / "out")
    assert f"{certificate.name} does not hold" in missing
    assert "the result spread for public is missing" in missing
    assert "run.json is missing" in missing
    assert "Do not publish" in Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text
    other = make_plan(one("dp(0.5, 0.000001)", MEAN), sizes=SIZES)
    assert "plan.json is another plan" in missing_from(other, tmp_path / "out")


def test_a_folder_that_is_not_there_is_refused(tmp_path, plan):
    with pytest.raises(InputError, match="not the folder"):
        finish_folder(plan, tmp_path / "nowhere")


def test_the_page_is_the_same_every_time(plan, tmp_path):
    first, second = (write_report(plan, None, tmp_path / name) for name in ("a.html", "b.html"))
    assert first.read_bytes() == second.read_bytes()


def test_an_exact_observation_is_a_finding_on_the_page():
    study = one("dp(0.5, 0.000001)", MEAN + "observe(public, age(P)) :- patient(P).\n")
    parsed = Page(report_html(make_plan(study, sizes=SIZES)))
    assert "findings" in parsed.values("id")
    assert "public learns age(P) exactly" in parsed.text


def test_the_frontier_of_a_sum_is_what_the_planner_would_find():
    """At every ε of the curve a new plan has the error the curve tells, to the rounding of noise scales."""
    plan = make_plan(one("dp(0.5, 0.000001)", MEAN), sizes=SIZES)
    curve = frontier_of(plan, plan.publication("average"))
    assert curve is not None
    assert curve.chosen == (0.5, plan.publication("average").error)
    for epsilon, error in curve.points[::3]:
        again = make_plan(one(f"dp({epsilon!r}, 0.000001)", MEAN), sizes=SIZES)
        assert error == pytest.approx(again.publication("average").error, rel=1e-3)


def test_the_frontier_of_individuals_stops_where_noise_fills_the_range():
    plan = make_plan(one("dp(1.0, 0.000001)", EACH), sizes=SIZES)
    planned = plan.publication("each")
    curve = frontier_of(plan, planned)
    assert curve is not None
    at_chosen = min(curve.points, key=lambda point: abs(point[0] - 1.0))[1]
    assert at_chosen == pytest.approx(planned.error, rel=1e-6)
    assert curve.points[0][1] < 64 * planned.error / 4, "1/ε² from the chosen point would be far beyond the range"
    assert all(first[1] > second[1] for first, second in pairwise(curve.points))
    epsilon, error = curve.points[-1]
    again = make_plan(one(f"dp({epsilon!r}, 0.000001)", EACH), sizes=SIZES).publication("each")
    assert again.error <= 1.01 * error, "the curve keeps the strategy; a new plan may find a better one, never a worse"
    assert frontier_of(Plan.from_json(plan.to_json()), planned) is None, "without a network nothing can be simulated"


def test_what_is_public_has_no_curve_and_an_exact_error():
    study = HEAD + (
        "privacy_requirement(a(public), people, dp(0.5, 0.000001)).\ncount(everybody, patient(P)).\n"
        "publish(number, everybody, a(public)).\n" + MEAN.replace("openness(public)", "a(public)")
    )
    plan = make_plan(study, sizes=SIZES)
    assert frontier_of(plan, plan.publication("number")) is None
    assert "0: it is public and exact" in Page(report_html(plan)).text


def test_tables_and_models_have_the_planners_curve():
    study = PEOPLE.format("dp(8, 0.000001)") + (
        "publish(triage, classifier(ill(P), [age(P), bmi(P)]), openness(public)).\n"
        "publish(open, table([age(P), bmi(P)]), openness(public)).\n"
    )
    plan = plan_everything(study, sizes={"people": 2000})
    for name in ("triage", "open"):
        curve = frontier_of(plan, plan.publication(name))
        settled = next(one for one in plan.frontier if one.publication == name)
        assert curve is not None
        assert curve.points == settled.points
        assert curve.chosen == settled.points[settled.chosen]
    parsed = Page(report_html(plan))
    assert parsed.mistakes == []
    assert parsed.tags.count("polyline") == 2
    assert all(act.guarantee.describe() in parsed.text for act in plan.acts)


@pytest.mark.parametrize("metric", ["dp(1.0)", "gdp(0.5)", "zcdp(0.1)", "renyi_dp(4, 0.5)"])
def test_every_kind_of_promise_has_a_curve(metric):
    plan = make_plan(one(metric, MEAN), sizes=SIZES)
    curve = frontier_of(plan, plan.publication("average"))
    assert curve is not None
    assert all(math.isfinite(x) and math.isfinite(y) for x, y in curve.points)
    assert Page(report_html(plan)).mistakes == []


@pytest.mark.browser
def test_in_a_browser(folder, page):
    """Opened by a real browser: no console message, the main numbers in the document it shows."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        pytest.skip(
            "no Chromium here: install it, on Debian by `apt-get install chromium`, and run `make browser` again"
        )
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--v=0",
        "--window-size=390,844",
    ]
    shown = subprocess.run(
        [browser, *options, "--dump-dom", (folder / "report.html").resolve().as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in shown.stderr
    assert Page(shown.stdout).text == page.text


def test_the_page_is_the_same_whatever_the_tables_hold(tmp_path):
    """The number of people is public under replacing one; nothing else of a table reaches the page."""
    plan = make_plan(one("dp(0.5, 0.000001)", MEAN), sizes=SIZES)
    patients = generated_tables(plan.network.spec)["patients"]
    assert isinstance(patients, pa.Table)
    pages = {}
    for start, rows in ((0, 90), (100, 90), (0, 3)):
        out = tmp_path / f"out{start}of{rows}"
        run_plan(plan, {"patients": patients.slice(start, rows)}, None, out=out, random_state=0)
        finish_folder(plan, out)
        pages[start, rows] = (out / "report.html").read_text(encoding="utf-8")
    assert patients.num_rows >= 190
    assert pages[0, 90] == pages[100, 90]
    assert Page(pages[0, 3]).mistakes == []
