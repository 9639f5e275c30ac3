"""The studio answers its own page and nobody else; what it says is the planner's; only Publish reads data."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from sfumato.ledger import Ledger
from sfumato.run.planning import make_plan
from sfumato.studio.app import studio_app
from sfumato.studio.desk import Desk
from sfumato.studio.guard import Guard
from studio.desks import STUDY, make_study

PORT = 8123
OWN = {"origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "same-origin"}


@pytest.fixture
def desk(tmp_path) -> Iterator[Desk]:
    opened = Desk.open(make_study(tmp_path))
    yield opened
    opened.close()


def client_of(desk: Desk, guard: Guard, base: str = f"http://127.0.0.1:{PORT}") -> TestClient:
    return TestClient(studio_app(desk, guard), base_url=base, follow_redirects=False)


@pytest.fixture
def client(desk) -> TestClient:
    guard = Guard(PORT)
    made = client_of(desk, guard)
    assert made.get(f"/?ticket={guard.ticket}").status_code == 303
    return made


def do(client: TestClient, action: str, **asked) -> dict:
    answer = client.post(f"/do/{action}", json=asked, headers=OWN)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_ticket_works_once_and_becomes_a_cookie(desk):
    guard = Guard(PORT)
    ticket = guard.ticket
    first, second = client_of(desk, guard), client_of(desk, guard)
    assert first.get("/").status_code == 401
    assert first.get("/?ticket=wrong").status_code == 401
    answer = first.get(f"/?ticket={ticket}")
    cookie = answer.headers["set-cookie"].lower()
    assert answer.status_code == 303
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert first.get("/").status_code == 200
    assert second.get(f"/?ticket={ticket}").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8123", "127.0.0.1:81", "127.0.0.1", "[::1]:8123", ""]
)
def test_other_hosts_are_refused(client, host):
    assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "cross-site"},
        {"origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "same-site"},
        {"origin": "null"},
        {},
    ],
)
def test_other_pages_cannot_ask_for_anything(client, desk, headers):
    for action in ("plan", "change", "save", "rehearse", "ask", "publish"):
        assert client.post(f"/do/{action}", json={"text": STUDY}, headers=headers).status_code == 403
    assert desk.text_on_disk() == STUDY


def test_only_json_is_read(client):
    answer = client.post("/do/plan", content="text=x", headers={**OWN, "content-type": "text/plain"})
    assert answer.status_code == 415
    for body in ("[]", "{", '{"text": 3}', "null", '{"text": "\\ud800"}'):
        answer = client.post("/do/plan", content=body, headers={**OWN, "content-type": "application/json"})
        assert answer.status_code == 409
    assert client.post("/do/plan", json={"text": "x" * 3_000_000}, headers=OWN).status_code == 409
    assert client.post("/do/format_disk", json={}, headers=OWN).status_code == 404


def test_every_answer_keeps_other_sites_out(client):
    for address in ("/", "/static/studio.js", "/static/none", "/progress", "/report/none"):
        headers = client.get(address).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
    assert "unsafe" not in client.get("/").headers["content-security-policy"]
    assert client.get("/static/../app.py").status_code == 404


def test_the_page_names_no_other_host_and_runs_no_inline_script(client):
    pages = [client.get(address).text for address in ("/", "/static/studio.css", "/static/studio.js")]
    for text in pages:
        assert not re.findall(r"https?://(?!127\.0\.0\.1)[^\s\"')]+", text)
    assert "<script>" not in pages[0]
    assert not re.search(r"\son\w+=", pages[0])


def test_what_the_page_says_is_the_plan(client, desk):
    found = do(client, "plan", text=STUDY)
    plan = make_plan(desk.draft(STUDY).spec)
    text = re.sub(r"<[^>]+>", " ", found["parts"]["results"])
    for planned in plan.publications:
        for seen in planned.seen:
            assert f"±{seen.half_width:.4g}" in text
    assert plan.hash[:12] in text
    assert "Line" not in found["parts"]["messages"]


def test_turning_epsilon_rewrites_the_text_and_moves_the_bars(client):
    before = do(client, "plan", text=STUDY)
    after = do(client, "change", text=STUDY, what="epsilon", name="care(doctor)", value=4)
    assert after["text"] == STUDY.replace("dp(1, 1e-6)", "dp(4, 1e-6)")
    assert "times sharper" in after["parts"]["results"]
    assert "times sharper" not in before["parts"]["results"]
    back = do(client, "change", text=after["text"], what="epsilon", name="care(doctor)", value=1)
    assert back["parts"]["results"] == before["parts"]["results"]


@pytest.mark.parametrize("value", [0, -1, "nan", "inf", None, "1e9", "x"])
def test_an_epsilon_that_is_none_is_refused(client, value):
    answer = client.post(
        "/do/change", json={"text": STUDY, "what": "epsilon", "name": "care(doctor)", "value": value}, headers=OWN
    )
    assert answer.status_code == 409
    assert "Give a number" in answer.json()["error"]


def test_the_form_adds_and_drops(client):
    added = do(
        client, "change", text=STUDY, what="add", name="howOld", what_of="mean", of="age(P)", goal="patient(P)",
        requirement="care(doctor)",
    )  # fmt: skip
    assert "publish(howOld, howOldOf, care(doctor))." in added["text"]
    assert "howOld" in added["parts"]["results"]
    dropped = do(client, "change", text=added["text"], what="drop", name="howOld")
    assert "howOld" not in dropped["parts"]["results"]


def test_broken_texts_are_told_at_their_lines(client, desk):
    broken = STUDY.replace("range(kalium(P), 2, 8).", "").replace("mean(older", "maen(older")
    found = do(client, "plan", text=broken)
    assert [line for line, kind in found["lines"] if kind == "error"]
    assert "error" in found["verdict"]
    assert desk.draft("").plan is None
    assert do(client, "plan", text="")["parts"]
    assert do(client, "plan", text="<script>alert(1)</script>. p :- 'x")["parts"]["messages"].count("<script>") == 0


def test_a_file_that_changed_elsewhere_is_not_overwritten(client, desk):
    desk.study.write_text("% theirs\n", encoding="utf-8")
    assert do(client, "save", text="% mine\n") == {"saved": False, "file": "potassium.pl"}
    assert client.get("/progress").json()["elsewhere"]
    assert desk.text_on_disk() == "% theirs\n"
    assert do(client, "save", text="% mine\n", over=True)["saved"]
    assert desk.text_on_disk() == "% mine\n"


def test_planning_and_rehearsing_open_no_private_table(client, desk):
    (desk.data / "patients.parquet").write_bytes(b"")
    do(client, "plan", text=STUDY)
    found = do(client, "rehearse", text=STUDY)
    page = client.get(found["report"])
    assert page.status_code == 200
    assert "script-src" not in page.headers["content-security-policy"]
    assert not desk.ledger.exists()


def test_publishing_needs_the_plan_that_was_shown_and_the_word(client, desk):
    asked = do(client, "ask", text=STUDY)
    assert asked["first"]
    assert "nothing was granted yet" in " ".join(asked["lines"])

    def refused(**more) -> str:
        answer = client.post("/do/publish", json={"text": STUDY, "grant": True, "word": "publish", **more}, headers=OWN)
        assert answer.status_code == 409
        return answer.json()["error"]

    assert "changed since you were asked" in refused(nonce="made up")
    other = STUDY.replace("dp(1, 1e-6)", "dp(2, 1e-6)")
    assert "changed since you were asked" in refused(nonce=asked["nonce"], text=other)
    assert "changed since you were asked" in refused(nonce=asked["nonce"])  # a nonce is worth one try
    assert "Type the word" in refused(nonce=do(client, "ask", text=STUDY)["nonce"], word="yes")
    assert "first grant" in refused(nonce=do(client, "ask", text=STUDY)["nonce"], grant=False)
    assert not desk.ledger.is_file() or not Ledger(desk.ledger).datasets()
    nonce = do(client, "ask", text=STUDY)["nonce"]
    done = do(client, "publish", text=STUDY, nonce=nonce, word=" Publish ", grant=True)
    assert client.get(done["report"]).status_code == 200
    assert (Path(done["folder"]) / "results").is_dir()
    again = do(client, "ask", text=STUDY)
    assert not again["first"]
    assert "is left of" in " ".join(again["lines"])
    assert "changed since" in refused(nonce=nonce)
    assert "asks for" in refused(nonce=again["nonce"])


def test_what_is_written_between_the_word_and_the_run_is_not_published(client, desk, monkeypatch):
    """Another program saves the study after it was compared and before it is read for the run."""
    saved = desk.save

    def save(text, **options):
        done = saved(text, **options)
        desk.study.write_text(STUDY.replace("dp(0.5, 1e-6)", "dp(0.9, 1e-6)"), encoding="utf-8")
        return done

    monkeypatch.setattr(desk, "save", save)
    nonce = do(client, "ask", text=STUDY)["nonce"]
    asked = {"text": STUDY, "nonce": nonce, "word": "publish", "grant": True}
    answer = client.post("/do/publish", json=asked, headers=OWN)
    assert answer.status_code == 409
    assert "changed after its plan was approved" in answer.json()["error"]
    assert not desk.reports


def test_replanning_ten_questions_takes_little_time(client):
    """A turn of ε, by the processor's own clock: a third of a second is what feels at once."""
    asked = "".join(
        f"mean(m{place}, age(P), (patient(P), kalium(P) > {place})). publish(extra{place}, m{place}, care(doctor)).\n"
        for place in range(6)
    )
    text = STUDY + asked
    assert text.count("publish(") == 10
    do(client, "plan", text=text)
    times = []
    for turn in range(5):
        start = time.process_time()
        do(client, "plan", text=text.replace("dp(1, 1e-6)", f"dp({1.1 + turn / 10:g}, 1e-6)"))
        times.append(time.process_time() - start)
    assert sorted(times)[2] < 0.3
