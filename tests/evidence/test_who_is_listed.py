"""A row for each individual shows who is in the data: every text says so where there are such rows, and only there."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import make_plan, run_plan
from sfumato.errors import SfumatoError
from sfumato.evidence.explain import REGISTERS, explain
from sfumato.evidence.report import finish_folder
from sfumato.plan.plan import Plan

HEAD = """
source(people, 'people.parquet').
column(people, id, person(P)). missing(people, never). rows_per_person(people, 1).
column(people, a, a(P)). random(a(P)) :- person(P). range(a(P), 0, 10).
column(people, b, b(P)). random(b(P)) :- person(P). range(b(P), 0, 10).
dataset(people, domain(P, person(P))).
privacy_requirement(o(doctor), people, dp(2)).
sum(s, a(P), person(P)).
"""
LISTING = {
    "a number of each": "publish(out, a(P), o(doctor)) :- person(P).",
    "a random answer of each": "random(c(P)) :- person(P). depends(c(P), [a(P)], bernoulli(a(P) / 10)).\n"
    "publish(out, sample(c(P)), o(doctor)) :- person(P).",
    "a channel": "publish(out, channel(a(P), [identity]), o(doctor)) :- person(P).",
}
NOT_LISTING = {
    "a sum": "publish(out, s, o(doctor)).",
    "a table": "publish(out, table([a(P), b(P)]), o(doctor)) :- person(P).",
}
PEOPLE = pa.table({"id": ["Uma Thurman", "Bo"], "a": [1.0, 9.0], "b": [3.0, 4.0]})
SAID = "Who is listed is shown as it is"


def texts(lines: str, folder) -> dict[str, str]:
    plan = make_plan(HEAD + lines, sizes={"people": 2})
    release = run_plan(plan, {"people": PEOPLE}, None, out=folder)
    finish_folder(plan, folder)
    read = Plan.read(folder / "plan.json")
    found = {word: explain(read, word, folder) for word in (*REGISTERS, "doctor")}
    found |= {name: (folder / name).read_text(encoding="utf-8") for name in ("README.txt", "report.html")}
    for path in folder.glob("certificate*.json"):
        found[path.name] = "\n".join(json.loads(path.read_text(encoding="utf-8"))["notes"])
    assert len(found) > len(REGISTERS) + 3
    assert release["out"].num_rows > 0
    return {name: re.sub(r"\s+", " ", text) for name, text in found.items()}


@pytest.mark.parametrize("name", LISTING)
def test_who_is_listed_is_said_everywhere(name, tmp_path):
    found = texts(LISTING[name], tmp_path / "out")
    (path,) = (tmp_path / "out" / "results").glob("out.doctor.parquet")
    assert sorted(pq.read_table(path)["id"].to_pylist()) == ["Bo", "Uma Thurman"]
    for where, text in found.items():
        assert SAID in text, where
    assert "noise was added to everything here before" not in found["README.txt"]
    assert "No noise is in identifiers." in found["README.txt"]


@pytest.mark.parametrize("name", NOT_LISTING)
def test_it_is_not_said_where_nobody_is_listed(name, tmp_path):
    found = texts(NOT_LISTING[name], tmp_path / "out")
    for where, text in found.items():
        assert SAID not in text, where
    assert "identifiers" not in found["README.txt"]
    for path in (tmp_path / "out" / "results").iterdir():
        assert b"Uma Thurman" not in path.read_bytes()


@pytest.mark.parametrize("name", LISTING)
def test_nobody_is_listed_where_presence_is_protected(name):
    text = HEAD + "adjacency(people, add_remove).\n" + LISTING[name]
    with pytest.raises(SfumatoError):
        make_plan(text, sizes={"people": 2})
