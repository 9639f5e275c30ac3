"""Tables that share variables through a study: check, plan, run on every engine, what the files and texts say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import make_plan, run_plan
from sfumato.errors import PlanError
from sfumato.evidence import verify
from sfumato.plan.told import told_before
from sfumato.run.checking import examine_study
from sfumato.run.engine.study import evaluate_on

COLUMNS = {"region": ("north", "south", "east"), "car": ("no", "yes"), "school": ("a", "b", "c", "d")}
HEAD = "\n".join(
    [
        "source(people, 'people.parquet'). column(people, id, person(P)).",
        "rows_per_person(people, 1). missing(people, never). dataset(population, domain(P, person(P))).",
        "column(people, age, age(P)). random(age(P)) :- person(P). range(age(P), 0, 100).",
        *(
            f"column(people, {name}, {name}(P)). random({name}(P)) :- person(P). range({name}(P), [{', '.join(own)}])."
            for name, own in COLUMNS.items()
        ),
    ]
)
PAIRS = (
    "marginals(pairs, [age(P): [30, 60], region(P), car(P), school(P)], 2, person(P)). publish(all, pairs, o(public))."
)
FAMILY = "\n".join(
    [
        "histogram(both, [region(P), car(P)], person(P)). histogram(cars, car(P), person(P)).",
        "histogram(turned, [school(P), car(P)], person(P)). histogram(old, car(P), (person(P), age(P) > 60)).",
        *(f"publish(all, {name}, o(public))." for name in ("both", "cars", "turned", "old")),
    ]
)


def study(text: str, promise: str = "dp(1.0, 0.000001)", more: str = "") -> str:
    return f"{HEAD}\nprivacy_requirement(o(public), population, {promise}).\n{text}\n{more}"


def people(size: int = 900, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    made = {
        name: generator.choice(levels, size, p=generator.dirichlet(np.ones(len(levels))))
        for name, levels in COLUMNS.items()
    }
    return pd.DataFrame({"id": np.arange(size).astype(str), "age": generator.uniform(-5, 105, size), **made})


def arrow(frame: pd.DataFrame) -> dict[str, pa.Table]:
    return {"people": pa.Table.from_pandas(frame, preserve_index=False)}


def cross_tables(frame: pd.DataFrame) -> list[float]:
    """All pairs in the order of the study, by pandas alone."""
    frame = frame.assign(age=pd.cut(frame["age"].clip(0, 100), [-1, 30, 60, 101], right=False, labels=["0", "1", "2"]))
    order = {"age": ["0", "1", "2"], **{name: list(levels) for name, levels in COLUMNS.items()}}
    found: list[float] = []
    for one, other in itertools.combinations(["age", "region", "car", "school"], 2):
        table = pd.crosstab(frame[one], frame[other]).reindex(index=order[one], columns=order[other], fill_value=0)
        found += [float(value) for value in table.to_numpy().reshape(-1)]
    return found


@pytest.mark.parametrize("promise", ["dp(1000000, 0.000001)", "dp(1000000)", "gdp(1000000)"])
@pytest.mark.parametrize("adjacency", ["", "adjacency(population, add_remove)."])
@pytest.mark.by_day(2)
def test_at_a_generous_promise_the_tables_are_those_of_pandas(promise, adjacency):
    frame = people()
    plan = make_plan(study(PAIRS, promise, adjacency))
    release = run_plan(plan, arrow(frame), None)
    table = release["all"].to_pandas()
    np.testing.assert_allclose(table["value"], cross_tables(frame), atol=1e-2)
    assert all(verify(one, plan=plan.to_dict()).ok for one in release.certificates.values())


@pytest.mark.parametrize("promise", ["dp(1.0, 0.000001)", "dp(1.0)"])
def test_tables_agree_with_each_other_and_with_the_number_of_people(promise):
    release = run_plan(make_plan(study(PAIRS, promise)), arrow(people()), None)
    values = release["all"].to_pandas()["value"].to_numpy()
    sizes, start, tables = (3, 3, 2, 4), 0, {}
    for one, other in itertools.combinations(range(4), 2):
        cells = sizes[one] * sizes[other]
        tables[one, other] = values[start : start + cells].reshape(sizes[one], sizes[other])
        start += cells
    for table in tables.values():
        assert table.sum() == pytest.approx(900)
    np.testing.assert_allclose(tables[0, 1].sum(axis=1), tables[0, 3].sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(tables[0, 2].sum(axis=0), tables[2, 3].sum(axis=1), atol=1e-6)


def test_the_plan_tells_one_line_a_table_and_the_run_keeps_to_it():
    plan = make_plan(study(PAIRS, "dp(0.2, 0.000001)"))
    (seen,) = plan.publication("all").seen
    told = told_before(seen)
    assert [one.label for one in told][:2] == ["age(P) by region(P)", "age(P) by car(P)"]
    assert sum(one.count for one in told) == seen.size == 53
    table = run_plan(plan, arrow(people()), None)["all"].to_pandas()
    errors = [one.standard_error for one in told for _ in range(one.count)]
    np.testing.assert_allclose(table["standard_error"], errors)


def test_engines_count_alike(engine):
    frame = people(400)
    wide = study(PAIRS.replace(", 2,", ", 3,"))
    network = make_plan(wide).network
    here, there = network.evaluate(arrow(frame)), evaluate_on(engine, network, arrow(frame), 3)
    assert here.aggregates["pairs"].same(there.aggregates["pairs"])


def test_many_tables_are_counted_in_one_pass(monkeypatch):
    """A table of everything would be too large: the tables are counted from rows that are alike, grouped once."""
    from sfumato.questions import marginals

    frame = people(500)
    whole = run_plan(make_plan(study(PAIRS)), arrow(frame), None, random_state=1)["all"]
    monkeypatch.setattr(marginals, "_SMALL_TABLE", 1)
    plan = make_plan(study(PAIRS))
    assert len(plan.network.aggregates[0].question.entries()) == 6
    values = plan.network.evaluate(arrow(frame)).aggregates["pairs"]
    np.testing.assert_allclose(plan.network.aggregates[0].question.truth(values), cross_tables(frame))
    assert whole.num_rows == 53


@pytest.mark.parametrize("promise", ["dp(1.0, 0.000001)", "dp(1.0)"])
def test_histograms_under_one_name_are_made_consistent(promise):
    frame, plan = people(), make_plan(study(FAMILY, promise))
    table = run_plan(plan, arrow(frame), None)["all"].to_pandas()
    values = {name: own["value"].to_numpy() for name, own in table.groupby("node")}
    np.testing.assert_allclose(values["both"].reshape(3, 2).sum(axis=0), values["cars"], atol=1e-6)
    np.testing.assert_allclose(values["turned"].reshape(4, 2).sum(axis=0), values["cars"], atol=1e-6)
    assert values["cars"].sum() == pytest.approx(900)
    assert values["old"].sum() != pytest.approx(values["cars"].sum(), abs=1e-6)
    drawn = {draw.node: math.sqrt(draw.variance) for draw in plan.draws}
    for seen in plan.publication("all").seen:
        own = table[table["node"] == seen.node]
        np.testing.assert_allclose(own["standard_error"], seen.standard_error)
        assert (seen.standard_error < 0.95 * drawn[seen.node]) == (seen.node != "old")
    truth = {
        "cars": pd.crosstab(frame["car"], "n").reindex(COLUMNS["car"], fill_value=0).to_numpy().reshape(-1),
        "old": frame[frame["age"] > 60].groupby("car").size().reindex(COLUMNS["car"], fill_value=0).to_numpy(),
    }
    generous = run_plan(make_plan(study(FAMILY, "dp(1000000, 0.000001)")), arrow(frame), None)["all"].to_pandas()
    for name, counts in truth.items():
        np.testing.assert_allclose(generous[generous["node"] == name]["value"], counts, atol=1e-2)


@pytest.mark.parametrize("what", [PAIRS, FAMILY])
def test_counts_are_not_below_zero_where_that_is_asked_for_and_it_is_said(what):
    plan = make_plan(study(what, "dp(0.02, 0.000001)", "nonnegative(all)."))
    table = run_plan(plan, arrow(people()), None)["all"].to_pandas()
    assert table["value"].min() >= 0
    assert table["low"].min() >= 0
    assert any("biased" in sentence for sentence in plan.publication("all").about)
    first = table[table["node"] == table["node"].iloc[0]]["value"]
    assert first.iloc[: 9 if what is PAIRS else 6].sum() == pytest.approx(900)


def test_what_cannot_be_asked_is_said_beforehand():
    for text, word in (
        (PAIRS.replace(", 2,", ", 5,"), "only 4 are listed"),
        (PAIRS.replace(", 2,", ", 0,"), "whole number"),
        (PAIRS.replace("region(P)", "regoin(P)", 1), "regoin(P)"),
        (PAIRS.replace("[30, 60]", "[60, 30]"), "increasing"),
        (PAIRS + " nonnegative(every).", "every"),
        (PAIRS + " mean(m, age(P), person(P)). publish(one, m, o(public)). nonnegative(one).", "table of counts"),
    ):
        _, problems = examine_study(study(text))
        said = " ".join(problem.describe() for problem in problems if problem.severity == "error")
        assert word in said, (text, said)
    with pytest.raises(PlanError, match="only 4 are listed"):
        make_plan(study(PAIRS.replace(", 2,", ", 5,")))
