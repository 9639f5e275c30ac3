"""quantile and median in studies: which way is taken, what is published, what is refused."""

from __future__ import annotations

import copy

import numpy as np
import pyarrow as pa
import pytest

from sfumato import make_plan, run_plan
from sfumato.errors import InputError
from sfumato.evidence import verify
from sfumato.ledger import Ledger
from sfumato.plan.act import Act
from sfumato.plan.plan import Plan
from sfumato.plan.wanted import follows_study
from sfumato.run.checking import examine_study

HEAD = """
source(people, 'people.parquet').
column(people, id, person(P)). missing(people, never).
column(people, a, a(P)).
column(people, g, g(P)).
rows_per_person(people, {rows}).
random(a(P)) :- person(P).
random(g(P)) :- person(P).
range(a(P), 0, 80).
range(g(P), [x, y, z]).
dataset(people, domain(P, person(P))).
"""


def study(metric: str, *lines: str, rows: int = 1) -> str:
    return HEAD.format(rows=rows) + f"privacy_requirement(openness(public), people, {metric}).\n" + "\n".join(lines)


def table(size: int = 3_001, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    group = np.where(random.random(size) < 0.7, "x", "y")
    return pa.table({"id": np.arange(size), "a": 80 * random.beta(1.2, 2.5, size), "g": group})


QUARTS = ("quantile(q, a(P), person(P), [0.25, 0.5, 0.9]).", "publish(quarts, q, openness(public)).")
MIDDLE = ("median(m, a(P), (person(P), g(P) = x)).", "publish(middle, m, openness(public)).")
MEAN = ("mean(n, a(P), person(P)).", "publish(average, n, openness(public)).")

#: Sums enough that the better composition of Gaussian noise pays for all.
SHARES = tuple(f"mean(n{k}, a(P), (person(P), a(P) > {k})). publish(n{k}, n{k}, openness(public))." for k in range(9))


def strategies(plan: Plan) -> dict[str, str]:
    return {planned.name: planned.strategy for planned in plan.publications}


@pytest.mark.parametrize(
    ("metric", "lines", "strategy"),
    [
        ("dp(1)", (*QUARTS, *MEAN), "joint (quantile)"),
        ("dp(1, 0.000001)", QUARTS, "joint (quantile)"),
        ("dp(1, 0.000001)", (*QUARTS, *MEAN), "joint (quantile)"),
        ("dp(1, 0.000001)", (*QUARTS, *MEAN, *SHARES), "central noise (gaussian)"),
        ("dp(1, 0.000001)", (*QUARTS, *MEAN, "forbid(quarts, joint)."), "central noise (gaussian)"),
        ("gdp(0.5)", QUARTS, "central noise (gaussian)"),
        ("dp(1)", (*QUARTS, "forbid(quarts, joint)."), "central noise (laplace)"),
        ("dp(1, 0.000001)", (*QUARTS, "prefer(quarts, [gaussian])."), "central noise (gaussian)"),
        ("dp(1, 0.000001)", (*QUARTS, *MEAN, "prefer(quarts, [joint])."), "joint (quantile)"),
        ("dp(1)", ("quantile(q, a(P), person(P), [0.5], by([g(P)])).", QUARTS[1]), "central noise (laplace)"),
    ],
)
@pytest.mark.by_day(6)
def test_the_way_follows_from_public_facts(metric, lines, strategy):
    plan = make_plan(study(metric, *lines), sizes={"people": 3000})
    assert strategies(plan)["quarts"] == strategy


def test_many_quantiles_with_a_delta_are_read_off_sums():
    """Ninety-nine drawn together have more error than a noisy cumulative table, which has the same for any number."""
    many = ", ".join(f"{k / 100:g}" for k in range(1, 100))
    text = study("dp(1, 0.000001)", f"quantile(q, a(P), person(P), [{many}]).", QUARTS[1])
    assert strategies(make_plan(text, sizes={"people": 3000})) == {"quarts": "central noise (gaussian)"}


@pytest.mark.parametrize("metric", ["dp(1)", "dp(1, 0.000001)", "gdp(0.5)"])
@pytest.mark.parametrize("relation", ["", "adjacency(people, add_remove)."])
@pytest.mark.by_day(2)
def test_a_release_verifies_and_its_numbers_are_near(metric, relation):
    given = table()
    plan = make_plan(study(metric, *QUARTS, *MIDDLE, relation), sizes={"people": 3000})
    release = run_plan(plan, {"people": given}, None, random_state=5)
    assert all(verify(one, plan=plan.to_dict()).ok for one in release.certificates.values())
    frame = given.to_pandas()
    rows = {"quarts": frame["a"], "middle": frame["a"][frame["g"] == "x"]}
    shares = {"quarts": [0.25, 0.5, 0.9], "middle": [0.5]}
    for one in release.published:
        found = one.values.to_pandas()
        assert list(found.columns) == ["node", "part", "quantile", "value", "standard_error", "low", "high"]
        assert np.all(np.diff(found["value"]) >= 0)
        exact = np.quantile(rows[one.name], shares[one.name], method="inverted_cdf")
        assert np.abs(found["value"] - exact).max() < 4
        assert np.all((found["low"] <= found["value"]) & (found["value"] <= found["high"]))


def test_at_a_large_epsilon_it_is_what_pandas_says():
    given = table(501)
    frame = given.to_pandas()
    for relation in ("", "adjacency(people, add_remove)."):
        plan = make_plan(study("dp(1000000)", *QUARTS, *MIDDLE, relation), sizes={"people": 501})
        release = run_plan(plan, {"people": given}, None)
        found = {one.name: one.values["value"].to_numpy() for one in release.published}
        exact = frame["a"].quantile([0.25, 0.5, 0.9], interpolation="nearest").to_numpy()
        assert (
            np.abs(found["quarts"] - exact).max() < 0.2
        )  # neighbouring rows are so far apart, and any place between fits
        assert abs(found["middle"][0] - frame["a"][frame["g"] == "x"].median()) < 0.2


def test_several_rows_of_a_person_are_paid_for():
    visits = (
        HEAD.format(rows=1)
        + """
source(visits, 'visits.parquet').
column(visits, person, person(P)). missing(visits, never).
column(visits, cost, cost(P)).
rows_per_person(visits, 3).
random(cost(P)) :- person(P).
range(cost(P), 0, 100).
privacy_requirement(openness(public), people, dp(1)).
median(c, cost(P), person(P)).
publish(costs, c, openness(public)).
"""
    )
    plan = make_plan(visits, sizes={"people": 2000})
    (act,) = plan.acts
    assert act.events[0].rows == 3
    assert act.events[1].sensitivity == 6.0
    random = np.random.default_rng(1)
    owners = np.repeat(np.arange(2000), random.integers(0, 6, 2000))
    rows = pa.table({"person": owners, "cost": random.uniform(0, 100, owners.size)})
    release = run_plan(plan, {"people": table(2000), "visits": rows}, None, random_state=2)
    assert abs(release.published[0].values["value"][0].as_py() - 50) < 10


def test_groups_are_told_apart():
    given = table()
    plan = make_plan(
        study("dp(3, 0.000001)", "median(q, a(P), person(P), by([g(P)])).", QUARTS[1]), sizes={"people": 3000}
    )
    (published,) = run_plan(plan, {"people": given}, None, random_state=3).published
    found = published.values.to_pandas()
    assert len(found) == 3
    frame = given.to_pandas()
    exact = frame.groupby("g")["a"].median()
    assert np.abs(found["value"].to_numpy()[:2] - exact.to_numpy()).max() < 3
    assert (found["low"][2], found["high"][2]) == (0, 80)  # nobody is in z


TWO = (
    *QUARTS,
    "privacy_requirement(openness(doctor), people, dp(3)).",
    "publish(quarts, q, openness(doctor)).",
)


def test_one_reader_is_booked_at_what_is_drawn_and_not_at_the_promise(tmp_path):
    plan = make_plan(study("dp(1, 0.000001)", *MIDDLE, *MEAN), sizes={"people": 3001})
    ledger = Ledger(tmp_path / "ledger.db")
    release = run_plan(plan, {"people": table()}, ledger, grant=True)
    drawn, booked = release.certificate.guarantee, ledger.balance("people", "person").spent
    assert drawn.epsilon(0.0) < 0.999, "nothing to be saved here: take another study"
    assert booked.stated == (pytest.approx(drawn.epsilon(0.0), rel=1e-9), 0.0)
    assert booked.eps >= drawn.epsilon(0.0) * (1 - 1e-12)


def test_two_observers_who_collude_share_their_noise():
    plan = make_plan(study("dp(1)", *TWO, "collude([public, doctor])."), sizes={"people": 3000})
    assert not plan.acts
    assert {planned.strategy for planned in plan.publications} == {"central noise (laplace)"}


def test_two_observers_who_do_not_are_drawn_for_apart():
    """Each keeps its own promise; the ledger counts both, as if they showed everything to everybody."""
    plan = make_plan(study("dp(1)", *TWO), sizes={"people": 3000})
    assert sorted(act.observers for act in plan.acts) == [("doctor",), ("public",)]
    assert {one.observers: one.kept.implies(one.asked) for one in plan.promises} == {
        ("public",): True,
        ("doctor",): True,
    }
    assert 3.9 < plan.cost("people").epsilon(0.0) <= 4.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("quantile(q, a(P), person(P), [0.25, 1.5]).", "between 0 and 1"),
        ("quantile(q, a(P), person(P), [0, 0.5]).", "between 0 and 1"),
        ("quantile(q, a(P), person(P), []).", "between 0 and 1"),
        ("quantile(q, a(P), person(P), [0.9, 0.1]).", "increasing"),
        ("quantile(q, a(P), person(P), 0.5).", "list of numbers"),
        ("quantile(q, b(P), person(P), [0.5]).", "not a declared random variable"),
        ("quantile(q, g(P), person(P), [0.5]).", "category"),
        ("median(q, [a(P), a(P)], person(P)).", "one variable"),
    ],
)
def test_what_is_no_quantile_is_refused_before_anything_is_spent(line, said):
    _, problems = examine_study(study("dp(1)", line, QUARTS[1]))
    assert any(said in problem.message for problem in problems if problem.severity == "error"), problems
    with pytest.raises(InputError):
        make_plan(study("dp(1)", line, QUARTS[1]))


def test_a_range_that_is_no_range_is_refused():
    text = study("dp(1)", *QUARTS).replace("range(a(P), 0, 80).", "range(a(P), 80, 80).")
    _, problems = examine_study(text)
    assert [problem for problem in problems if problem.severity == "error"]


def test_an_edited_act_is_not_carried_out():
    """A plan in which one individual is said to have fewer rows than the study allows is found out."""
    plan = make_plan(study("dp(1)", *QUARTS), sizes={"people": 3000})
    record = copy.deepcopy(plan.acts[0].to_dict())
    record["parameters"]["question"]["rows"] = 0
    assert follows_study(plan.acts[0], plan.network)
    assert not follows_study(Act.from_dict(record), plan.network)
