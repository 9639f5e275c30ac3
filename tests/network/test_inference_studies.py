"""Expectations of whole studies: what is published is what a statistician would compute from the study's words."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.errors import StudyError
from sfumato.lang import load
from sfumato.network.network import Network
from sfumato.plan.make import make_plan
from sfumato.plan.request import asked_of
from sfumato.run.study import run_plan

X = np.append(np.random.default_rng(4).uniform(0.01, 1, 58), [0.01, 1.0])
TABLES = {"items": pa.table({"id": [f"{k:02d}" for k in range(60)], "x": X})}
HEAD = """
source(items, 'items.parquet').
column(items, id, item(I)).
column(items, x, x(I)).
rows_per_person(items, 1). missing(items, never).
random(x(I)) :- item(I).
range(x(I), 0.01, 1).
random(o(I)) :- item(I). depends(o(I), [x(I)], normal(x(I), 1)).
random(y(I)) :- item(I). depends(y(I), [o(I)], o(I) ** 2).
random(q(I)) :- item(I). depends(q(I), [x(I)], poisson(3 + x(I))).
random(s(I)) :- item(I). depends(s(I), [q(I)], exp(-q(I))).
random(b(I)) :- item(I). depends(b(I), [], bernoulli(0.5)).
random(mx(I)) :- item(I). depends(mx(I), [b(I)], max(b(I), 0.5)).
random(likely(I)) :- item(I). depends(likely(I), [q(I)], probability(q(I) >= 4)).
random(flag(I)) :- item(I). depends(flag(I), [q(I)], bernoulli(probability((q(I) >= 4 ; q(I) < 1)))).
random(mood(I)) :- item(I). depends(mood(I), [x(I)], discrete([low: 1 - x(I), high: x(I)])).
dataset(ds, domain(I, item(I))).
privacy_requirement(p(obs), ds, dp(1000000.0)).
"""
MANY = stats.poisson.sf(3, 3 + X)


def released(what: str, name: str = "out") -> np.ndarray:
    plan = make_plan(HEAD + what)
    return np.asarray(run_plan(plan, TABLES, None, random_state=0)[name]["value"].to_pylist())


@pytest.mark.parametrize(
    ("declared", "truth"),
    [
        ("mean(m, y(I), item(I)).", np.mean(X**2 + 1)),
        ("mean(m, s(I), item(I)).", np.mean(np.exp((3 + X) * (math.exp(-1) - 1)))),
        ("mean(m, mx(I), item(I)).", 0.75),
        ("count(m, (item(I), q(I) >= 4)).", MANY.sum()),
        ("count(m, (item(I), b(I) > 0)).", 30.0),
        ("count(m, (item(I), mood(I) = high)).", X.sum()),
        ("count(m, (item(I), mood(I) = high, x(I) > 0.5)).", X[X > 0.5].sum()),
        ("count(m, (item(I), flag(I) = 1)).", (MANY + stats.poisson.pmf(0, 3 + X)).sum()),
        ("count(m, (item(I), probability(q(I) >= 4) > 0.5)).", (MANY > 0.5).sum()),
        ("mean(m, likely(I), item(I)).", MANY.mean()),
        ("mean(m, x(I), (item(I), q(I) >= 4)).", (X * MANY).sum() / MANY.sum()),
    ],
)
@pytest.mark.by_day(3)
def test_published_numbers_are_expectations(declared, truth):
    assert released(f"{declared} publish(out, m, p(obs)).") == pytest.approx([truth], rel=1e-4, abs=2e-3)


def test_histograms_and_moments_of_random_variables():
    found = released("histogram(h, o(I), item(I), [0, 1, 2]). publish(out, h, p(obs)).")
    cuts = [stats.norm.cdf(cut - X).sum() for cut in (0, 1, 2)]
    assert found == pytest.approx([cuts[0], cuts[1] - cuts[0], cuts[2] - cuts[1], 60 - cuts[2]], abs=1e-3)
    words = released("histogram(h, mood(I), item(I)). publish(out, h, p(obs)).")
    assert words == pytest.approx([60 - X.sum(), X.sum()], abs=1e-3)
    moments = released("moment2(m, [o(I), x(I)], item(I)). publish(out, m, p(obs)).")
    assert moments == pytest.approx([np.sum(X**2 + 1), np.sum(X**2), np.sum(X**2), np.sum(X**2)], rel=1e-4)


def test_a_mean_under_a_random_condition_needs_bounded_values():
    declared = "mean(m, VALUE, (item(I), q(I) >= 4)). publish(out, m, p(obs)).\n"
    with pytest.raises(Exception, match="clip"):
        make_plan(HEAD + declared.replace("VALUE", "q(I)"))
    capped = "random(k(I)) :- item(I). depends(k(I), [q(I)], clip(q(I), 0, 12)).\n"
    counts = np.arange(60)[:, None]
    law = stats.poisson.pmf(counts, 3 + X) * (counts >= 4)
    truth = (np.minimum(counts, 12) * law).sum() / law.sum()
    assert released(capped + declared.replace("VALUE", "k(I)")) == pytest.approx([truth], rel=1e-4)


def test_a_published_probability_is_one_number_per_individual():
    plan = make_plan(HEAD + "publish(out, probability(q(I) >= 4), p(obs)) :- item(I).\n")
    table = run_plan(plan, TABLES, None, random_state=0)["out"]
    assert table.column_names[:2] == ["id", "probability(q(I) >= 4)"]
    assert table.column(1).to_numpy() == pytest.approx(MANY, abs=1e-3)


@pytest.mark.parametrize("inner", ["q(I)", "nobody(I) >= 4", "q(I) + 4"])
def test_a_probability_of_what_is_no_comparison_is_refused(inner):
    with pytest.raises(StudyError):
        load(HEAD + f"random(w(I)) :- item(I). depends(w(I), [q(I)], probability({inner})).\n").check()


# ── one individual moves an expected sum no further than the plan charges ────────────────────────────────────────────

AGGREGATES = {
    "count": "count(m, (item(I), q(I) >= 4, o(I) > 0.5)).",
    "sum": "sum(m, mx(I), (item(I), q(I) >= 4)).",
    "mean": "random(k(I)) :- item(I). depends(k(I), [o(I)], clip(o(I), -1, 4)). mean(m, k(I), (item(I), o(I) > x(I))).",
    "moment2": "moment2(m, [o(I), x(I)], item(I)).",
    "histogram": "histogram(m, o(I), (item(I), q(I) >= 4), [0, 1, 2]).",
}


@pytest.mark.parametrize("kind", AGGREGATES)
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.by_day(2)
def test_neighbours_differ_by_no_more_than_the_sensitivity(kind, adjacency):
    relation = "adjacency(ds, add_remove).\n" if adjacency is ADD_REMOVE else ""
    network = Network.from_spec(load(HEAD + relation + AGGREGATES[kind] + "\npublish(out, m, p(obs)).\n"))
    node = network.node("m")
    question = asked_of(node)
    few = [0.01, 0.2, 0.37, 0.5, 0.99, 1.0]

    def encoded(cells):
        table = pa.table({"id": [f"{k}" for k in range(len(cells))], "x": np.array(cells, dtype=float)})
        value = network.evaluate({"items": table}).aggregates["m"]
        return question.encode(value, pure=True), question.encode(value)

    base = [0.3, 0.8]
    l1 = l2 = 0.0
    vectors = [encoded([*base, one]) for one in few]
    if adjacency is ADD_REMOVE:
        vectors = [encoded(base), *vectors]
        pairs = [(vectors[0], other) for other in vectors[1:]]
    else:
        pairs = [(a, b) for a in vectors for b in vectors]
    for (first, third), (second, fourth) in pairs:
        l1, l2 = max(l1, np.abs(first - second).sum()), max(l2, float(np.linalg.norm(third - fourth)))
    assert l1 <= question.moves().l1
    assert l2 <= question.moves().l2
    assert l2 > 0


def test_rows_groups_and_relations_of_random_variables():
    """Several rows a person, two public structures with two laws, a private relation beside a random condition."""
    study = """
    source(visits, 'v.parquet'). column(visits, who, item(I)). column(visits, w, w(I)). rows_per_person(visits, 3).
    missing(visits, never). missing(items, never).
    source(items, 'i.parquet'). column(items, id, item(I)). column(items, x, x(I)). rows_per_person(items, 1).
    source(sites, 's.parquet'). public(sites). column(sites, who, item(I)). column(sites, site, site(S)).
    relation(sites, at(I, S)).
    source(drugs, 'd.parquet'). column(drugs, who, item(I)). column(drugs, drug, drug(D)). relation(drugs, took(I, D)).
    rows_per_person(drugs, 2). drug(a). drug(b).
    random(x(I)) :- item(I). range(x(I), 0, 1). random(w(I)) :- item(I). range(w(I), 0, 1).
    random(o(I)) :- item(I).
    depends(o(I), [x(I)], normal(x(I), 1)) :- at(I, north).
    depends(o(I), [x(I)], exponential(1 + x(I))) :- at(I, south).
    random(r(I)) :- item(I). depends(r(I), [w(I), x(I)], poisson(w(I) + x(I))).
    dataset(ds, domain(I, item(I))). privacy_requirement(p(obs), ds, dp(1000000.0)).
    count(far, (item(I), o(I) > 0.5)). publish(a, far, p(obs)).
    count(took(D), (item(I), took(I, D), o(I) > 0.5)) :- drug(D). publish(b, took(D), p(obs)) :- drug(D).
    count(often, (item(I), r(I) >= 2)). publish(c, often, p(obs)).
    """
    generator = np.random.default_rng(8)
    ids = [f"{k:02d}" for k in range(40)]
    x, north = generator.uniform(0, 1, 40), generator.random(40) < 0.5
    who, w = np.repeat(np.arange(40), 2), generator.uniform(0, 1, 80)
    took_a = generator.random(40) < 0.6
    tables = {
        "items": pa.table({"id": ids, "x": x}),
        "visits": pa.table({"who": [ids[k] for k in who], "w": w}),
        "sites": pa.table({"who": ids, "site": ["north" if n else "south" for n in north]}),
        "drugs": pa.table({"who": [ids[k] for k in np.flatnonzero(took_a)], "drug": ["a"] * int(took_a.sum())}),
    }
    values = Network.from_spec(load(study), tables).evaluate(tables)
    far = np.where(north, stats.norm.sf(0.5 - x), np.exp(-0.5 * (1 + x)))
    assert values.aggregates["far"].vector == pytest.approx([far.sum()])
    assert values.aggregates["took(a)"].vector == pytest.approx([far[took_a].sum()])
    assert values.aggregates["took(b)"].vector == pytest.approx([0.0])
    assert values.aggregates["often"].vector == pytest.approx([stats.poisson.sf(1, w + x[who]).sum()])
