"""On the terminal a day is a day, and a time of day a time, as in the published file."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from sfumato.cli.published import show_release
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

STUDY = """
source(t, 't.csv'). column(t, id, p(P)). column(t, v, v(P)). rows_per_person(t, 1). missing(t, never).
random(v(P)) :- p(P). range(v(P), {low}, {high}).
dataset(people, domain(P, p(P))). privacy_requirement(o(public), people, dp(1000)).
median(q, v(P), p(P)). publish(middle, q, o(public)).
"""


@pytest.mark.parametrize(
    ("low", "high", "cell", "shown"),
    [
        ("date(2020, 1, 1)", "date(2021, 1, 1)", "2020-05-19", "2020-05-19"),
        ("time(0, 0)", "time(23, 59)", "08:30:00", "08:30"),
        ("0", "100000", 18401, "18,401"),
    ],
)
def test_the_terminal_tells_what_the_number_stands_for(low, high, cell, shown):
    frame = pd.DataFrame({"id": np.arange(400), "v": [cell] * 400})
    plan = make_plan(STUDY.format(low=low, high=high), sizes={"people": 400})
    release = run_plan(plan, {"t": frame}, None, random_state=1)
    page = io.StringIO()
    show_release(plan, release, Console(file=page, width=120))
    line = next(line for line in page.getvalue().splitlines() if "middle" in line)
    assert line.count(shown) >= 1
    assert ("18,401" in line) == (shown == "18,401")
