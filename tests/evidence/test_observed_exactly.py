"""What an observe or reveal line gives away is said in every register, and nothing is promised about it."""

from __future__ import annotations

import re

import pytest

from plan.studies import HEAD, RISK
from sfumato.evidence.explain import REGISTERS, explain
from sfumato.evidence.recipient import recipient_text
from sfumato.evidence.report import report_html
from sfumato.plan.make import make_plan
from sfumato.plan.plan import Plan

BASE = (
    HEAD
    + RISK
    + (
        "privacy_requirement(openness(public), people, dp(0.5, 0.000001)).\n"
        "privacy_requirement(openness(doctor), people, dp(1.5, 0.000001)).\n"
        "mean(meanRisk, risk(P), patient(P)).\npublish(average, meanRisk, openness(public)).\n"
        "publish(average, meanRisk, openness(doctor)).\n"
    )
)


def texts(lines: str) -> dict[str, str]:
    plan = Plan.from_json(make_plan(BASE + lines, sizes={"people": 200}).to_json())
    found = {word: explain(plan, word) for word in (*REGISTERS, "doctor", "public")}
    found |= {"README": recipient_text(plan), "report": report_html(plan)}
    return {name: re.sub(r"\s+", " ", text) for name, text in found.items()}


@pytest.mark.parametrize("word", ["observe", "reveal"])
@pytest.mark.parametrize("who", ["doctor", "insurer"])
@pytest.mark.by_day(3)
def test_every_register_repeats_it(word, who):
    said = f"{who} learns age(P) exactly"
    for where, text in texts(f"{word}({who}, age(P)) :- patient(P).\n").items():
        assert (said in text) == (where != "public" and (who, where) != ("insurer", "doctor")), where
        assert "so that nobody can tell" not in text, where
        assert said not in text or f"nothing is promised towards {who} about it" in text, where


def test_each_promise_towards_the_observer_says_what_it_leaves_out():
    found = texts("observe(doctor, age(P)) :- patient(P).\n")
    towards = found["subject"].split("· Towards doctor:")[1].split("· Towards")[0]
    assert "But doctor learns age(P) exactly" in towards
    assert "But doctor" not in found["subject"].split("· Towards public:")[1].split("·")[0]
    assert "Not promised: doctor learns age(P)" in found["lawyer"].split("Towards doctor")[1]
    assert "nobody but doctor, who learns something exactly, can tell from it" in found["subject"]


def test_nothing_is_said_where_nothing_is_given_away():
    own = "observe(P, age(P)) :- patient(P).\n"
    constant = "random(price) :- true.\ndepends(price, [], 3).\nobserve(public, price).\n"
    for lines in ("", own, constant):
        for where, text in texts(lines).items():
            assert not re.search(r"learns [^.]* exactly, by an observe", text), (lines, where)
        assert "so that nobody can tell from it" in texts(lines)["subject"]
