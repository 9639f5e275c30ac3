"""One release, one set of figures: results, README.txt, report.html, explain, plan and trace tell the same errors."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from evidence.pages import Page
from sfumato import make_plan, run_plan
from sfumato.cli.study import show_plan
from sfumato.evidence.explain import explain
from sfumato.evidence.report import finish_folder
from sfumato.evidence.trace import trace_result, trace_text
from sfumato.plan.plan import Plan

PEOPLE = 400
HEAD = """
source(people, 'people.parquet').
column(people, id, person(P)). missing(people, never).
column(people, a, a(P)).
column(people, b, b(P)).
rows_per_person(people, 1).
random(a(P)) :- person(P).
random(b(P)) :- person(P).
range(a(P), 0, 80).
range(b(P), -1, 1).
dataset(people, domain(P, person(P))).
count(old, (person(P), a(P) > 40)).
sum(total, a(P), person(P)).
mean(average, a(P), person(P)).
mean(few, b(P), (person(P), a(P) > 60)).
histogram(ages, a(P), person(P), [0, 20, 40, 60, 80]).
moment2(moments, [a(P), b(P)], person(P)).
random(ratio).
depends(ratio, [total, old], total / old).
"""
NAMES = ("old", "total", "average", "few", "ages", "moments", "ratio")
#: What follows from the noise and from public numbers alone.
KNOWN = ("old", "total", "average", "ages", "moments")


def study(*observers: str, metric: str = "dp(4, 0.000001)") -> str:
    promises = "".join(f"privacy_requirement(openness({who}), people, {metric}).\n" for who in observers)
    shown = "".join(f"publish({name}Out, {name}, openness({who})).\n" for name in NAMES for who in observers)
    return HEAD + promises + shown


def people() -> pa.Table:
    random = np.random.default_rng(0)
    return pa.table({
        "id": np.arange(PEOPLE),
        "a": 80 * random.beta(2, 2, PEOPLE),
        "b": random.uniform(-1, 1, PEOPLE),
    })  # fmt: skip


def released(text: str, folder: Path) -> Plan:
    plan = make_plan(text, sizes={"people": PEOPLE})
    run_plan(plan, {"people": people()}, folder.parent / "ledger.db", out=folder, grant=True)
    assert not [lack for lack in finish_folder(plan, folder) if "could not be written" in lack]
    return plan


def figures(folder: Path, publication: str, observer: str) -> list[tuple[str, float, float, float]]:
    """(node and part, standard error, reach below, reach above) of the Parquet file; the JSON file says the same."""
    (path,) = (folder / "results").glob(f"{publication}Out.{observer}.parquet")
    rows = pq.read_table(path).to_pylist()
    names = list(rows[0])  # between them one column a variable
    assert [*names[:2], *names[-4:]] == ["node", "part", "value", "standard_error", "low", "high"]
    assert json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) == rows
    return [(r["part"], r["standard_error"], r["value"] - r["low"], r["high"] - r["value"]) for r in rows]


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def page(folder: Path) -> str:
    return Page((folder / "report.html").read_text(encoding="utf-8")).text


def interval(below: float, above: float) -> str:
    first, second = f"{below:.4g}", f"{above:.4g}"
    return f"±{first}" if first == second else f"−{first} to +{second}"


def row_of(text: str, name: str, part: str) -> str:
    """What a text says after naming a number."""
    label = f"{name}, {part}" if part else name
    at = text.find(label)
    assert at >= 0, label
    return text[at : at + 260]


@pytest.mark.parametrize("metric", ["dp(4, 0.000001)", "dp(4)"])
@pytest.mark.by_day(1)
def test_every_text_tells_the_errors_of_the_results(tmp_path, metric):
    folder = tmp_path / "out"
    plan = released(study("public", metric=metric), folder)
    readme = squeezed((folder / "README.txt").read_text(encoding="utf-8"))
    for name in NAMES:
        traces = trace_result(plan, f"{name}Out", "public", None, folder)
        traced = squeezed("".join(trace_text(trace) for trace in traces))
        texts = {"trace": traced.split(f"shows {name}")[1]}
        texts["explain"] = squeezed(explain(plan, "public", folder)).split(f" {name}Out:")[1]
        if name in KNOWN:
            texts["README"] = readme.split(f"{name}Out, for public")[1]
            shown_to = page(folder).split("sees, and could still learn", 1)[1].split(f" {name}Out ")[1]
            texts["report"] = shown_to.split("realised error", 1)[1]
            texts["explain to all"] = squeezed(explain(plan, "analyst", folder)).split(f" {name}Out:")[1]
            texts["explain beforehand"] = squeezed(explain(plan)).split(f" {name}Out:")[1]
        for part, error, below, above in figures(folder, name, "public"):
            cut = name == "average" and below != pytest.approx(above)  # ends at the end of its range
            shown = part if name == "moments" else ""
            for where, text in texts.items():
                said = row_of(text, name, shown)
                assert f"{error:.4g}" in said, (where, name, part)
                assert cut or interval(below, above) in said, (where, name, part)


def test_the_plan_says_the_same_beforehand(tmp_path):
    folder = tmp_path / "out"
    plan = released(study("public"), folder)
    console = Console(width=400, record=True, file=io.StringIO())
    show_plan(plan, console)
    printed = console.export_text()
    for name in KNOWN:
        for _, error, below, above in figures(folder, name, "public"):
            assert f"{error:.4g}" in printed
            assert name == "average" or interval(below, above) in printed
    line = next(one for one in printed.splitlines() if one.startswith("few") and "qualify" in one)
    assert re.search(r"±[\d.e-]+ if all 400 qualify, ±[\d.e-]+ if 40 do", line)


@pytest.mark.parametrize("observers", [("doctor",), ("public", "doctor")])
@pytest.mark.by_day(1)
def test_what_was_drawn_for_an_observer_is_told_to_nobody_else(tmp_path, observers):
    """The error of a filtered mean tells the noisy size of its group: a result of that observer, and of no page."""
    folder = tmp_path / "out"
    plan = released(study(*observers), folder)
    told = page(folder) + squeezed((folder / "README.txt").read_text(encoding="utf-8"))
    told += squeezed(explain(plan, "analyst", folder) + explain(plan, "subject", folder))
    for observer in observers:
        for name in ("few", "ratio"):
            for _, error, below, above in figures(folder, name, observer):
                assert f"standard error {error:.4g};" not in told
                assert below == above or interval(below, above) not in told
                (trace,) = trace_result(plan, f"{name}Out", observer, None, folder)
                assert f"{error:.4g}" in trace_text(trace)
                assert f"{error:.4g}" in squeezed(explain(plan, observer, folder))
    assert "standard_error, low and high are in its file" in told
    assert re.search(r"±[\d.e-]+ if all 400 qualify, ±[\d.e-]+ if 40 do", told)


def test_an_unbounded_end_is_null_in_json(tmp_path):
    folder = tmp_path / "out"
    text = study("public", metric="dp(0.0001)")
    plan = make_plan(text, sizes={"people": PEOPLE})
    run_plan(plan, {"people": people()}, None, out=folder, random_state=1)
    (row,) = json.loads((folder / "results" / "ratioOut.public.json").read_text(encoding="utf-8"))
    assert (row["low"], row["high"], row["standard_error"]) == (None, None, None)
    assert pq.read_table(folder / "results" / "ratioOut.public.parquet").to_pylist()[0]["high"] == np.inf
