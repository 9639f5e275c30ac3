"""Every figure of a release is the same wherever it is told: results, README.txt, report.html, explain and trace."""

from __future__ import annotations

import html
import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from laws.test_pages_tell_no_result import random_study
from sfumato import make_plan, run_plan
from sfumato.evidence import trace as tracing
from sfumato.evidence.explain import explain
from sfumato.evidence.figures import told_of
from sfumato.evidence.report import finish_folder
from sfumato.evidence.trace import trace_result, trace_text
from sfumato.plan.plan import Plan

Stated = Counter[tuple[str, str]]
_IN_TEXT = re.compile(r"standard error (\S+); 95 % interval: value (unbounded|±\S+?|−\S+ to \+\S+?)\.(?:\s|$)")
_IN_PAGE = re.compile(r'data-head="standard error">([^<]*)</td><td[^>]*data-head="95 of 100 within">([^<]*)</td>')


def in_text(text: str) -> Stated:
    """(standard error, interval) of every line of a text."""
    return Counter(_IN_TEXT.findall(" ".join(text.split())))


def released(seed: int, folder: Path) -> Plan:
    size = random.Random(seed).choice([3, 50])
    rng = np.random.default_rng(seed)
    table = pa.table({"id": np.arange(size), "a": rng.uniform(0, 10, size), "b": rng.uniform(-1, 1, size)})
    plan = make_plan(random_study(seed))
    run_plan(plan, {"people": table}, None, out=folder, random_state=seed)
    assert finish_folder(plan, folder) == ()
    return plan


def published_errors(folder: Path, observer: str) -> set[str]:
    """The standard errors in an observer's files of aggregates, in four digits."""
    index = json.loads((folder / "results" / "index.json").read_text(encoding="utf-8"))
    own = [folder / "results" / one["file"] for one in index if one["observer"] == observer]
    rows = [
        row for path in own if (beside := path.with_suffix(".json")).is_file() for row in json.loads(beside.read_text())
    ]
    errors = (row["standard_error"] for row in rows)
    return {"unbounded" if error is None else f"{error:.4g}" for error in errors}


def check_figures(seed: int, folder: Path) -> None:
    plan = released(seed, folder)
    readme = in_text((folder / "README.txt").read_text(encoding="utf-8"))
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    assert sum(readme.values()) >= len(plan.publications)
    assert in_text(explain(plan, "analyst", folder)) == readme, seed
    assert Counter(_IN_PAGE.findall(page)) == readme, seed
    for observer in {planned.observer for planned in plan.publications}:
        own = in_text(explain(plan, observer, folder))
        mine = [planned.name for planned in plan.publications if planned.observer == observer]
        traced = (trace_text(one) for name in mine for one in trace_result(plan, name, observer, None, folder))
        assert in_text("\n".join(traced)) == own, (seed, observer)
        assert published_errors(folder, observer) <= {error for error, _ in own}, (seed, observer)


@pytest.mark.parametrize("seed", [40, 41, 43, 327])
@pytest.mark.by_day(1)
def test_every_figure_agrees(seed, tmp_path):
    check_figures(seed, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 380))
def test_every_figure_agrees_nightly(seed, tmp_path):
    check_figures(seed, tmp_path / "out")


def test_a_text_with_figures_of_its_own_is_found(tmp_path, monkeypatch):
    def wider(planned, folder, own=False):
        return tuple(one.times(1.01) for one in told_of(planned, folder, own=own))

    monkeypatch.setattr(tracing, "told_of", wider)
    with pytest.raises(AssertionError):
        check_figures(40, tmp_path / "out")
