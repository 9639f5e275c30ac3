"""What cannot be asked is told with a way out, before anything is opened or spent."""

from __future__ import annotations

import pytest

from sfumato.errors import SfumatoError
from sfumato.lang import load
from sfumato.ledger.ledger import Ledger
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), {ends}).
column(t, g, g(P)). random(g(P)) :- p(P). range(g(P), {levels}).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)).
"""
FINE = {"ends": "0, 10", "levels": "[a, b]"}
BAD = {
    "a variable nobody declared": ("mean(m, y(P), p(P)).", {}, "y(P)"),
    "a group nobody declared": ("mean(m, x(P), p(P), by([h(P)])).", {}, "h(P)"),
    "a condition on a variable nobody declared": ("count(m, (p(P), y(P) > 3)).", {}, "y(P)"),
    "edges that fall": ("histogram(m, x(P), p(P), [5, 3]).", {}, "increasing"),
    "an edge twice": ("histogram(m, [x(P): [3, 3]], p(P)).", {}, "increasing"),
    "edges that are words": ("histogram(m, x(P), p(P), [low, high]).", {}, "increasing numbers"),
    "edges of a list": ("histogram(m, g(P), p(P), [1, 2]).", {}, "g(P)"),
    "no edges of a number": ("histogram(m, x(P), p(P)).", {}, "cut points"),
    "edges beyond the range": ("histogram(m, x(P), p(P), [20, 30]).", {}, "No cut point splits it"),
    "groups cut beyond the range": ("mean(m, x(P), p(P), by([x(P): [-3]])).", {}, "No cut point splits it"),
    "groups that overlap": ("mean(m, x(P), p(P), by([g(P), g(P)])).", {}, "listed twice"),
    "quantiles in groups of their own variable": (
        "median(m, x(P), p(P), by([x(P): [5]])).",
        {},
        "in groups of x(P) itself",
    ),
    "quantiles in groups of their own variable and another": (
        "quantile(m, x(P), p(P), [0.5], by([x(P): [5], g(P)])).",
        {},
        "in groups of x(P) itself",
    ),
    "groups cut twice": ("mean(m, x(P), p(P), by([x(P): [2], x(P): [5]])).", {}, "listed twice"),
    "groups by numbers without cut points": ("mean(m, x(P), p(P), by([x(P)])).", {}, "cut points"),
    "the quantile 0": ("quantile(m, x(P), p(P), [0]).", {}, "between 0 and 1"),
    "the quantile 1": ("quantile(m, x(P), p(P), [0.5, 1]).", {}, "between 0 and 1"),
    "a quantile above 1": ("quantile(m, x(P), p(P), [50]).", {}, "between 0 and 1"),
    "quantiles that fall": ("quantile(m, x(P), p(P), [0.5, 0.25]).", {}, "increasing"),
    "no quantiles": ("quantile(m, x(P), p(P), []).", {}, "quantile"),
    "a range that ends before it begins": ("mean(m, x(P), p(P)).", {"ends": "10, 0"}, "below"),
    "a range of one number": ("mean(m, x(P), p(P)).", {"ends": "3, 3"}, "below"),
    "a range of words": ("mean(m, x(P), p(P)).", {"ends": "low, high"}, "number"),
    "a range that is no list": ("histogram(m, g(P), p(P)).", {"levels": "anything"}, "list"),
    "a category twice": ("histogram(m, g(P), p(P)).", {"levels": "[a, a]"}, "more than once"),
    "the mean of words": ("mean(m, g(P), p(P)).", {}, "category"),
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_told_and_nothing_is_spent(name, tmp_path):
    body, changes, said = BAD[name]
    ledger = Ledger(tmp_path / "ledger.db")
    text = HEAD.format(**{**FINE, **changes}) + f"{body} publish(a, m, o(pub))."
    with pytest.raises(SfumatoError) as told:
        run_plan(make_plan(text), {"t": tmp_path / "there is none.parquet"}, ledger, grant=True)
    message = str(told.value)
    assert said in message, message
    assert "othing was" in message
    assert not ledger.datasets()


@pytest.mark.parametrize(
    "body", ["histogram(m, x(P), p(P), [-5, 2, 20]).", "mean(m, x(P), p(P), by([x(P): [-5, 2, 20]]))."]
)
def test_edges_that_are_left_out_are_named(body):
    told = load(HEAD.format(**FINE) + f"{body} publish(a, m, o(pub)).").problems
    assert [one.code for one in told] == ["cut-points"]
    assert "-5, 20" in told[0].message


@pytest.mark.parametrize("cells", ["x(P), p(P), [2, 5]", "[x(P): [2, 5]], p(P)"])
def test_cut_points_need_no_bounds(cells, tmp_path):
    """Sorted by cut points at the end or beside the variable: both without a public range."""
    text = HEAD.format(**{**FINE, "ends": "private(0.1)"}) + f"histogram(m, {cells}). publish(a, m, o(pub))."
    plan = make_plan(text, sizes={"d": 90})
    frame = {"id": list(range(90)), "x": [1.0, 3.0, 1e6] * 30, "g": ["a"] * 90}
    found = run_plan(plan, {"t": frame}, None, random_state=0)["a"]
    assert found["value"].to_pylist() == pytest.approx([30, 30, 30], abs=20)
