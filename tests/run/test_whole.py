"""whole(Name): whole numbers where they are asked for, with intervals that still hold; truth values as they come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Categories, Interval, Study
from sfumato.errors import PlanError, StudyError
from sfumato.questions.intervals import Figure
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan
from sfumato.run.view import tidy_rows, tidy_table, whole_numbers

HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10).
column(t, g, g(P)). random(g(P)) :- p(P). range(g(P), [a, b, c]).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp({epsilon})).
"""
QUESTIONS = """
histogram(h, [g(P)], p(P)). publish(n1, h, o(pub)).
sum(s, x(P), (p(P), g(P) = a)). publish(n2, s, o(pub)).
mean(m, x(P), p(P)). publish(n3, m, o(pub)).
"""
ROUNDED = "whole(n1). whole(n2). whole(n3).\n"


def table(size: int = 300) -> pa.Table:
    generator = np.random.default_rng(0)
    return pa.table({"id": range(size), "x": generator.integers(0, 11, size), "g": generator.choice(list("abc"), size)})


def runs(epsilon: float, body: str, seeds: range):
    plan = make_plan(HEAD.format(epsilon=epsilon) + QUESTIONS + body, sizes={"d": 300})
    for seed in seeds:
        release = run_plan(plan, {"t": table()}, None, random_state=100 * seed)
        yield [row for one in release.published for row in one.values.to_pylist()]


def test_they_are_the_same_numbers_rounded_outwards():
    (plain,), (rounded,) = (list(runs(0.5, body, range(1))) for body in ("", ROUNDED))
    for free, whole in zip(plain, rounded, strict=True):
        assert (whole["value"], whole["low"], whole["high"]) == (
            round(free["value"]), np.floor(free["low"]), np.ceil(free["high"]),
        )  # fmt: skip
        assert all(isinstance(whole[name], int) for name in ("value", "low", "high"))
        assert whole["standard_error"] == pytest.approx(np.hypot(free["standard_error"], 12**-0.5))


def test_the_intervals_still_hold():
    """Whatever the interval was, what it held it still holds, and infinite ends stay infinite."""
    generator = np.random.default_rng(1)
    values = generator.normal(0, 10.0 ** generator.integers(-3, 6, 500))
    below, above = generator.exponential(10.0 ** generator.integers(-3, 4, 500)), generator.exponential(5, 500)
    figures = [Figure(v, a, v - a, v + b) for v, a, b in zip(values, below, above, strict=True)]
    figures.append(Figure(0.0, 1.0, -np.inf, np.inf))
    free = tidy_table(tidy_rows("m", [""] * 501, [{}] * 501, figures))
    whole = whole_numbers(free)
    assert np.all(whole["low"].to_numpy() <= free["low"].to_numpy())
    assert np.all(whole["high"].to_numpy() >= free["high"].to_numpy())
    assert np.all(whole["high"].to_numpy()[:-1] - whole["low"].to_numpy()[:-1] <= below + above + 2)
    assert np.all(np.abs(whole["value"].to_numpy() - free["value"].to_numpy()) <= 0.5)


def test_the_plan_says_so_and_what_cannot_be_rounded_is_refused():
    plan = make_plan(HEAD.format(epsilon=1) + QUESTIONS + ROUNDED)
    assert any("rounded to whole ones" in sentence for sentence in plan.publication("n1").about)
    with pytest.raises(PlanError, match="only numbers about many individuals"):
        make_plan(HEAD.format(epsilon=1) + "publish(e, x(P), o(pub)) :- p(P). whole(e).")
    with pytest.raises(StudyError, match="nothing is published under the name"):
        make_plan(HEAD.format(epsilon=1) + QUESTIONS + "whole(n4).")


def test_in_python_with_truth_values():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": range(2000), "smoker": generator.random(2000) < 0.3, "kids": generator.integers(0, 6, 2000)}
    )
    columns = {"smoker": Categories([False, True]), "kids": Interval(0, 5)}
    study = (
        Study("Homes").table("homes", frame, person="id", columns=columns).promise("public", epsilon=50)
        .histogram("smoker", to="public", name="h", whole=True)
        .sum("kids", where="smoker == True", to="public", name="s", whole=True)
        .mean("kids", by="smoker", to="public", name="m")
    )  # fmt: skip
    release = study.plan(size=2000).run(ledger=None)
    assert np.abs(np.array(release["h"]["value"]) - [(~frame.smoker).sum(), frame.smoker.sum()]).max() <= 3
    assert abs(release["s"]["value"][0] - frame.kids[frame.smoker].sum()) <= 20
    assert isinstance(release["s"]["value"][0], int)
    assert release["m"]["value"] == pytest.approx(frame.groupby("smoker").kids.mean().tolist(), abs=0.1)
