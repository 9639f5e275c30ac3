"""groups/3: texts that nobody listed are named where enough people have them, and are used for nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import make_plan, run_plan
from sfumato.errors import InputError, PlanError
from sfumato.evidence import verify
from sfumato.run.checking import examine_study

HEAD = """
source(people, 'people.parquet').
column(people, id, person(P)).
column(people, a, a(P)). missing(a(P), 40).
column(people, city, city(P)). missing(city(P), {missing}).
rows_per_person(people, {rows}).
random(a(P)) :- person(P).
random(city(P)) :- person(P).
range(a(P), 0, 80).
range(city(P), text).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, {metric}).
"""
ASKED = ("groups(g, city(P), (person(P), a(P) > 10)).", "publish(cities, g, openness(public)).")


def study(*lines: str, metric: str = "dp(1, 0.000001)", missing: str = "skip", rows: int = 1) -> str:
    return HEAD.format(metric=metric, missing=missing, rows=rows) + "\n".join(lines)


def table(size: int = 4000) -> pa.Table:
    random = np.random.default_rng(3)
    names = np.array([f"town {k}" for k in range(5000)])
    city = names[np.minimum(random.zipf(1.6, size), 4999)].astype(object)
    city[random.random(size) < 0.05] = None
    return pa.table({"id": np.arange(size), "a": random.uniform(0, 80, size), "city": pa.array(city.tolist())})


def published(text: str, given: pa.Table, seed: int | None = 1):
    plan = make_plan(text, sizes={"people": 4000})
    release = run_plan(plan, {"people": given}, None, random_state=seed)
    assert all(verify(one, plan=plan.to_dict()).ok for one in release.certificates.values())
    return plan, release.published[0].values.to_pandas()


@pytest.mark.parametrize("relation", ["", "adjacency(people, add_remove)."])
def test_large_groups_are_named_with_counts_near_the_truth(relation):
    given = table()
    plan, found = published(study(*ASKED, relation), given)
    frame = given.to_pandas()
    exact = frame[(frame["a"] > 10) & frame["city"].notna()].groupby("city").size()
    assert list(found.columns) == ["node", "part", "city", "value", "standard_error", "low", "high"]
    assert found["city"].is_monotonic_increasing
    assert set(found["city"]) <= set(exact.index)
    assert set(exact[exact > 200].index) <= set(found["city"])
    truth = exact[found["city"]].to_numpy()
    assert np.mean((found["low"] <= truth) & (truth <= found["high"])) > 0.8
    assert np.abs(found["value"] - truth).max() < 60
    assert np.all(found["value"] == found["value"].round())
    assert plan.acts[0].strategy == "named"


def test_at_a_large_epsilon_it_is_what_pandas_says():
    given = table()
    _, found = published(study(*ASKED, metric="dp(1000000, 0.001)"), given, None)
    frame = given.to_pandas()
    exact = frame[(frame["a"] > 10) & frame["city"].notna()].groupby("city").size()
    off = np.abs(found["value"] - exact[found["city"]].to_numpy())  # with a chance of δ a group is off by one
    assert off.max() <= 1
    assert np.mean(off == 0) > 0.95
    assert set(exact[exact > 2].index) <= set(found["city"])


def test_one_person_counts_once_in_a_group_and_pays_for_all_of_hers():
    text = study(*ASKED, rows=3).replace("(person(P), a(P) > 10)", "person(P)")
    random = np.random.default_rng(0)
    rows = {"id": np.repeat(np.arange(500), 3), "a": random.uniform(0, 80, 1500), "city": ["one", "one", "two"] * 500}
    plan, found = published(text, pa.table(rows))
    (event,) = plan.acts[0].events
    assert (event.groups, event.moved) == (3, 6)
    assert np.abs(found["value"] - 500).max() < 100
    assert set(found["city"]) == {"one", "two"}


def test_who_has_no_value_is_in_no_group_or_in_the_one_that_is_said():
    given = table()
    _, skipped = published(study(*ASKED), given)
    _, said = published(study(*ASKED, missing="nowhere"), given)
    assert "nowhere" not in set(skipped["city"])
    assert "nowhere" in set(said["city"])


def test_of_nobody_no_group_is_named():
    empty = pa.table(
        {"id": pa.array([], pa.int64()), "a": pa.array([], pa.float64()), "city": pa.array([], pa.string())}
    )
    _, found = published(study(*ASKED, "adjacency(people, add_remove)."), empty)
    assert len(found) == 0
    assert "city" in found.columns


def test_the_plan_says_what_absence_means():
    """By the author's word there is none; one that is there all the same is in no group, and nothing fails."""
    text = study(*ASKED).replace("missing(city(P), skip).", "missing(people, never).")
    plan = make_plan(text, sizes={"people": 4000})
    about = " ".join(plan.publications[0].about)
    assert "one would be in no group" in about
    assert "None" not in about
    assert run_plan(plan, {"people": table()}, None, random_state=1).published[0].values.num_rows > 2


def test_rare_names_stay_unsaid():
    """Four thousand people with a name of their own: at δ = 10⁻⁶ next to none of them is seen."""
    own = pa.table({"id": np.arange(4000), "a": np.full(4000, 40.0), "city": [f"own {k}" for k in range(4000)]})
    _, found = published(study(*ASKED), own)
    assert len(found) <= 1


@pytest.mark.parametrize(
    "line",
    [
        "mean(m, city(P), person(P)).",
        "histogram(m, city(P), person(P)).",
        "count(m, (person(P), city(P) = berlin)).",
        "mean(m, a(P), person(P), by([city(P)])).",
        "quantile(m, city(P), person(P), [0.5]).",
        "random(b(P)) :- person(P). depends(b(P), [city(P)], city(P) * 2). mean(m, b(P), person(P)).",
        "groups(m, city(P), (person(P), city(P) = berlin)).",
    ],
)
def test_a_text_is_used_for_nothing_else(line):
    text = study(line, "publish(it, m, openness(public)).")
    _, problems = examine_study(text)
    assert any(problem.code == "text" for problem in problems), [problem.message for problem in problems]
    with pytest.raises(InputError):
        make_plan(text)


def test_the_text_itself_is_not_published():
    _, problems = examine_study(study("publish(it, city(P), openness(public)) :- person(P)."))
    assert any(problem.code == "text" for problem in problems)


def test_what_has_a_public_list_needs_no_search():
    text = study(*ASKED).replace("range(city(P), text).", "range(city(P), [berlin, paris | other]).")
    _, problems = examine_study(text)
    assert any("nothing to find out" in problem.message for problem in problems)


def test_a_promise_without_delta_names_nobody():
    with pytest.raises(PlanError, match="State dp"):
        make_plan(study(*ASKED, metric="dp(1)"))


def test_two_lists_under_one_name_are_refused():
    text = study(
        "drug(d1). drug(d2).",
        "groups(g(D), city(P), person(P)) :- drug(D).",
        "publish(cities, g(D), openness(public)) :- drug(D).",
    )
    with pytest.raises(PlanError, match="Give each its own name"):
        make_plan(text)
