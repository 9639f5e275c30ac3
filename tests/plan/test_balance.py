"""One budget over several publications: each counts once, none pays more than a fifth for the others."""

from __future__ import annotations

import math
import random

import pytest

from sfumato import make_plan
from sfumato.plan.portions import FAIR

STUDY = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 100).
column(t, a, a(P)). random(a(P)) :- p(P). range(a(P), [{twelve}]).
column(t, b, b(P)). random(b(P)) :- p(P). range(b(P), [{forty}]).
dataset(d, domain(P, p(P))). privacy_requirement(o(public), d, {promise}).
{asked}
"""
ASKED = {
    "average": "mean(m, x(P), p(P)). publish(average, m, o(public)).",
    "small": "histogram(s, a(P), p(P)). publish(small, s, o(public)).",
    "large": "histogram(w, b(P), p(P)). publish(large, w, o(public)).",
}


def study(promise: str, *names: str, more: str = "") -> str:
    levels = {"twelve": ", ".join(map(str, range(12))), "forty": ", ".join(map(str, range(48)))}
    return STUDY.format(promise=promise, asked="\n".join([*(ASKED[name] for name in names), more]), **levels)


def errors(text: str) -> dict[str, float]:
    plan = make_plan(text, sizes={"d": 1000})
    return {one.name: one.seen[0].standard_error for one in plan.publications}


@pytest.mark.parametrize(
    ("whole", "third", "more"),
    [
        ("dp(1)", "dp(0.3333333333)", ""),
        ("dp(1, 0.000001)", "dp(0.3333333333)", ""),
        ("gdp(0.2367)", f"gdp({0.2367 / math.sqrt(3):.12f})", "forbid(average, laplace)."),
    ],
)
def test_no_publication_pays_more_than_a_fifth_for_the_others(whole, third, more):
    """A table of 48 cells made a mean beside it twice as noisy as an even split does."""
    together = errors(study(whole, *ASKED, more=more))
    even = {name: errors(study(third, name))[name] for name in ASKED}
    scales = {"average": 100.0, "small": 1000.0, "large": 1000.0}
    for name in ASKED:
        assert together[name] <= FAIR * even[name] * (1 + 1e-6), name
    loss, split = (sum((found[name] / scales[name]) ** 2 for name in ASKED) for found in (together, even))
    assert loss <= split


def test_what_weighs_more_gets_more():
    plain, heavy = errors(study("dp(1)", *ASKED)), errors(study("dp(1)", *ASKED, more="weight(average, 27)."))
    assert heavy["average"] < 0.75 * plain["average"]
    assert heavy["small"] > plain["small"]


def test_more_cells_weigh_no_more():
    """The number of cells of a table does not change what its neighbour gets."""
    small, large = (errors(study("dp(1)", "average", name))["average"] for name in ("small", "large"))
    assert small == pytest.approx(large)


MODELS = {
    "rows": "publish(rows, synthetic([a(P), x(P)]), o(public)) :- p(P).",
    "line": "publish(line, regression(x(P), [a(P)]), o(public)) :- p(P).",
}


@pytest.mark.parametrize("models", [("rows",), ("line",), ("rows", "line")])
@pytest.mark.parametrize("names", [("small",), ("average", "small"), ("average", "small", "large")])
@pytest.mark.by_day(2)
def test_nor_for_models_and_invented_rows(models, names):
    """Beside invented rows a table of counts once had a twentieth of the budget."""
    more = "\n".join(MODELS[name] for name in models)
    together = errors(study("dp(1, 0.000001)", *names, more=more))
    count = len(models) + len(names)
    even = {name: errors(study(f"dp({1 / count:.9f}, {1e-6 / count:.15f})", name))[name] for name in names}
    for name in names:
        # A 256th is held back where acts are composed.
        assert together[name] <= FAIR * even[name] * 256 / 255 * 1.02, name


QUANTILES = {
    "half": "median(h, x(P), p(P)). publish(half, h, o(public)).",
    "part": "median(t, x(P), (p(P), a(P) = 1)). publish(part, t, o(public)).",
    "nine": "quantile(n, x(P), p(P), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]). publish(nine, n, o(public)).",
}


def family(seed: int) -> tuple[float, float, list[str], list[str]]:
    """ε, δ, statistics and quantiles under one promise."""
    chance = random.Random(seed)
    names = chance.sample(sorted(ASKED), chance.randint(1, 3))
    located = chance.sample(sorted(QUANTILES), chance.randint(1, 2))
    return chance.choice([0.1, 1.0, 4.0]), chance.choice([1e-9, 1e-6, 1e-3]), names, located


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(2)
def test_nor_for_quantiles(seed):
    """Drawn or read off sums: the better way for all, and none beyond 1.2 times its even split."""
    epsilon, delta, names, located = family(seed)
    lines = "\n".join(QUANTILES[name] for name in located)
    together = errors(study(f"dp({epsilon}, {delta:.9f})", *names, more=lines))
    count = len(names) + len(located)
    for name in (*names, *located):
        own = [name] if name in ASKED else []
        promise = f"dp({epsilon / count:.12f}, {delta / count:.15f})"
        even = errors(study(promise, *own, more=QUANTILES.get(name, "")))[name]
        assert together[name] <= FAIR * even * 256 / 255 * 1.02, name


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.by_day(2)
def test_both_ways_are_compared_and_told(seed):
    """What is taken has no larger loss than what the study's own words would bind it to, or the other is unfair."""
    epsilon, delta, names, located = family(seed)
    lines = [QUANTILES[name] for name in located]
    promise = f"dp({epsilon}, {delta:.9f})"
    taken = make_plan(study(promise, *names, more="\n".join(lines)), sizes={"d": 1000})
    losses = []
    for word in ("prefer({}, [joint]).", "forbid({}, joint)."):
        bound = study(promise, *names, more="\n".join([*lines, *map(word.format, located)]))
        losses.append(sum(curve.points[curve.chosen][1] for curve in make_plan(bound, sizes={"d": 1000}).frontier))
    loss = sum(curve.points[curve.chosen][1] for curve in taken.frontier)
    assert any(loss == pytest.approx(one) for one in losses)
    told = [
        one for planned in taken.publications for one in planned.alternatives if one.strategy.startswith(located[0])
    ]
    assert len(told) == len(taken.publications)
    assert loss == pytest.approx(min(losses)) or all("even split" in one.reason for one in told)
