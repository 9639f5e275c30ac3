"""What is said of absent cells of a table is what would be said of each of its variables."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

from sfumato.run.checking import examine_study
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

COLUMNS = ("x", "y", "g")


def study(rules: list[str]) -> str:
    return "\n".join(
        [
            "table(t, 't.csv', p(P) = id, [x: 0..100, y: 0..10, g: [a, b]]). rows_per_person(t, 2).",
            *rules,
            "dataset(d, domain(P, p(P))). privacy_requirement(o(public), d, dp(1000000, 0.000001)).",
            "mean(m, x(P), p(P)). mean(n, y(P), p(P), by([g(P)])). count(c, (p(P), x(P) > 50)).",
            "publish(pm, m, o(public)). publish(pn, n, o(public)). publish(pc, c, o(public)).",
        ]
    )


def frame(seed: int, size: int = 600) -> pd.DataFrame:
    source = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "id": source.permutation(np.repeat(np.arange(size // 2), 2)),
            "x": source.uniform(0, 100, size),
            "y": source.uniform(0, 10, size),
            "g": source.choice(["a", "b", "elsewhere"], size),
        }
    )
    for column in COLUMNS:
        found.loc[source.random(size) < 0.2, column] = None
    return found


def published(rules: list[str], seed: int) -> dict[str, list[float]]:
    plan = make_plan(study(rules), sizes={"d": 300})
    release = run_plan(plan, {"t": frame(seed)}, None, random_state=seed)
    return {one.name: one.values["value"].to_pylist() for one in release.published}


@pytest.mark.parametrize("seed", range(6))
def test_a_table_is_said_like_each_of_its_variables(seed):
    """Also beside a word about one of them, which goes first; the truth by plain pandas."""
    source = random.Random(seed)
    own = ["missing(x(P), 50)."] if source.random() < 0.5 else []
    rest = COLUMNS[1:] if own else COLUMNS
    whole = published([*own, "missing(t, skip)."], seed)
    assert whole == published([*own, *(f"missing({name}(P), skip)." for name in rest)], seed)
    rows = frame(seed)
    x = rows["x"].fillna(50) if own else rows["x"].dropna()
    assert whole["pm"][0] == pytest.approx(x.mean(), abs=1e-3)
    assert whole["pc"][0] == pytest.approx((x > 50).sum(), abs=1e-2)
    means = rows[rows["g"].isin(["a", "b"])].groupby("g")["y"].mean()
    assert whole["pn"] == pytest.approx(means.tolist(), abs=1e-3)


@pytest.mark.parametrize("rule", ["missing(t, 5).", "missing(t, sometimes)."])
def test_no_value_stands_for_all_cells_of_a_table(rule):
    _, problems = examine_study(study([rule]))
    assert [one for one in problems if one.severity == "error"]
