"""Tables without an identity column: every row is one person."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Ledger, Study, load, make_plan, run_plan
from sfumato.errors import DataError, LedgerError, PlanError, StudyError
from sfumato.lang import examine
from sfumato.network.network import Network

BASE = """
source(t, 't.csv'). each_row(t, person(P)). missing(t, never).
column(t, x, x(P)). random(x(P)) :- person(P). range(x(P), 0, 10).
column(t, c, c(P)). random(c(P)) :- person(P). range(c(P), [a, b]).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(1, 0.000001)).
"""
ASKED = BASE + "mean(m, x(P), (person(P), c(P) = a)). publish(mean, m, openness(public))."


def frame(rows: int = 500, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame({"x": generator.integers(0, 11, rows), "c": generator.choice(["a", "b"], rows)})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.by_day(2)
def test_every_row_counts_once_whatever_its_kind_and_order(seed, tmp_path):
    table = frame(seed=seed)
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    network = Network.from_spec(load(ASKED))
    kinds = [table, pa.Table.from_pandas(table), table.sample(frac=1, random_state=seed), tmp_path / "t.csv"]
    for given in (*kinds, tmp_path / "t.parquet"):
        found = network.evaluate({"t": given}).aggregates["m"]
        counted = table.query("c == 'a'")["x"]
        assert (found.vector[0], found.count) == (counted.sum(), len(counted))


def test_equal_rows_are_different_people():
    network = Network.from_spec(load(BASE + "count(n, person(P)). publish(n, n, openness(public))."))
    same = pd.DataFrame({"x": [1] * 300, "c": ["a"] * 300})
    assert network.evaluate({"t": same}).aggregates["n"].vector[0] == 300


def test_a_column_of_the_same_name_is_not_taken_for_it():
    table = frame(50).assign(**{"$row": 1})
    network = Network.from_spec(load(BASE + "count(n, person(P)). publish(n, n, openness(public))."))
    assert network.evaluate({"t": table}).aggregates["n"].vector[0] == 50


def test_it_is_run_charged_and_said(tmp_path):
    plan = make_plan(ASKED, sizes={"people": 500})
    run_plan(plan, {"t": frame()}, tmp_path / "ledger.db", grant=True)
    assert Ledger(tmp_path / "ledger.db").datasets() == [("people", "person")]
    said = [sentence for one in plan.publications for sentence in one.about]
    assert "Each row of t is one person, by the author's word." in said
    assert not any("all rows together" in sentence for sentence in said)
    # The same rows by an identity column are the same people: they have no second budget.
    named = ASKED.replace("each_row(t, person(P)).", "column(t, id, person(P)). rows_per_person(t, 1).")
    table = frame().iloc[:499]  # other people than above, who have their budget there
    table.to_csv(tmp_path / "t.csv", index=False)
    run_plan(make_plan(ASKED), tmp_path, tmp_path / "second.db", grant=True)
    table.assign(id=range(499)).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(LedgerError):
        run_plan(make_plan(named.replace("people", "others")), tmp_path, tmp_path / "second.db", grant=True)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("column(t, id, person(P)).", "stand in t too"),
        ("column(t, id, visit(V)).", "says who a row of t is about"),
        ("source(u, 'u.csv'). column(u, id, person(P)). rows_per_person(u, 1).", "stand in u too"),
        ("forget(7).", "no forget can name them"),
        ("centre(north).", "no centre"),
        ("rows_per_person(t, 3).", "spoken of twice"),
    ],
)
def test_what_needs_an_identifier_is_refused(lines, words):
    _, problems = examine(f"{ASKED}\n{lines}")
    assert any(words in problem.message for problem in problems), [problem.message for problem in problems]


@pytest.mark.parametrize("what", ["x(P)", "table([x(P), c(P)])", "channel(x(P), [identity])"])
def test_no_row_is_shown_by_its_place(what):
    body = " :- person(P)" if what == "x(P)" else ""
    with pytest.raises((PlanError, StudyError), match="have no identifier"):
        make_plan(BASE + f"publish(rows, {what}, openness(public)){body}.")


def test_workers_are_not_given_rows_without_names():
    with pytest.raises(DataError, match="cannot be dealt out"):
        run_plan(make_plan(ASKED), {"t": frame()}, None, engine="dask")


def test_in_python_it_is_said_by_name(tmp_path):
    study = Study("rows").table("t", frame(), person=None, columns={"x": (0, 10), "c": ["a", "b"]})
    study = study.promise("public", epsilon=50, delta=1e-6).mean("x", by="c", to="public")
    release = study.plan(size=500).run(ledger=tmp_path / "ledger.db", grant=True)
    true = frame().groupby("c")["x"].mean()
    assert release["mean x by c"]["value"] == pytest.approx(list(true), abs=0.3)
    assert len(study.plan().dry_run()["mean x by c"]) == 2
    with pytest.raises(StudyError, match="needs to know whose a row is"):
        Study("x").table("t", frame(), person=None, rows_per_person=2, columns={"x": (0, 10)})
    with pytest.raises(StudyError, match="must say whose they are"):
        study.table("u", frame(), person=None, columns={"y": (0, 10)})
