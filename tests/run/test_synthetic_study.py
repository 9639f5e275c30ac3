"""publish(Name, synthetic([…], for(Label)), Requirement): from a study to rows, through plan, ledger and verifier."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato import Categories, Interval, Ledger, Study
from sfumato.cli.app import app
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import PlanError, SfumatoError, UnprovedError
from sfumato.evidence.explain import explain
from sfumato.plan.plan import Plan
from sfumato.plan.told import told_before
from sfumato.plan.usefulness import verdicts
from sfumato.release.synthetic.measure import Measurer
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

STUDY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
column(patients, drug, drug(P)).
column(patients, ill, ill(P)).
random(age(P)) :- patient(P).
random(drug(P)) :- patient(P).
random(ill(P)) :- patient(P).
range(age(P), 0, 110).
range(drug(P), [a, b, c | other]).
range(ill(P), [no, yes]).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(2.0, 0.000001)).
publish(rows, WHAT, openness(public)).
"""
BOTH = "synthetic([age(P), drug(P), ill(P)], for(ill(P)))"


def study(what: str = BOTH, **changes: str) -> str:
    text = STUDY.replace("WHAT", what)
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def patients(rows: int = 4000) -> pd.DataFrame:
    generator = np.random.default_rng(3)
    age = generator.gamma(9.0, 5.0, rows).clip(0, 110).round(1)
    drug = generator.choice(["a", "b", "z"], rows, p=[0.5, 0.3, 0.2])
    ill = np.where(generator.random(rows) < 0.1 + age / 120 * (drug == "a"), "yes", "no")
    return pd.DataFrame({"id": [f"p{n}" for n in range(rows)], "age": age, "drug": drug, "ill": ill})


def planned(text: str, size: float = 4000) -> Plan:
    return make_plan(text, sizes={"people": size})


def test_no_text_gives_an_invented_value_an_interval():
    plan = planned(study())
    told = [one for publication in plan.publications for seen in publication.seen for one in told_before(seen)]
    assert len(told) == 3
    for one in told:
        assert "shares of its levels about" in one.sentence
        assert one.error == "–"
    texts = [explain(plan, "public"), *(one.sentence for one in told)]
    assert not any("interval: value" in text for text in texts)


@pytest.mark.parametrize(
    "what",
    [
        "synthetic([age(P), drug(P), ill(P)])",
        BOTH,
        "synthetic([age(P), drug(P), ill(P)], for(svm(ill(P))))",
        "synthetic([age(P), drug(P), ill(P)], for(regression(age(P))))",
    ],
)
@pytest.mark.by_day(2)
def test_rows_come_out_of_a_study_and_keep_what_the_table_says(tmp_path, what):
    frame = patients()
    plan = planned(study(what))
    release = run_plan(plan, {"patients": frame}, None, out=tmp_path / "out", random_state=None)
    made = release["rows"].to_pandas()
    assert len(made) == len(frame)
    assert set(made.columns) == {"age", "drug", "ill"}
    shares = made["drug"].value_counts(normalize=True)
    for level, share in {"a": 0.5, "b": 0.3, "other": 0.2}.items():
        assert abs(shares[level] - share) < 0.03
    assert abs(made["age"].mean() - frame["age"].mean()) < 2.0
    for quantile in (0.25, 0.5, 0.75):
        assert abs(made["age"].quantile(quantile) - frame["age"].quantile(quantile)) < 3.0
    measured = release.publication("rows").tables["measured"].to_pandas()
    assert (measured["standard_error"] > 0).all()
    assert all(release.certificates[name].publishable for name in release.certificates)


def test_the_folder_verifies_is_read_back_and_tells_what_the_rows_are(tmp_path):
    frame = patients()
    (tmp_path / "data").mkdir()
    frame.to_parquet(tmp_path / "data" / "patients.parquet", index=False)
    (tmp_path / "study.pl").write_text(study())
    words = ["run", str(tmp_path / "study.pl"), "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    words += ["--size", "people=4000", "--grant", "--ledger", str(tmp_path / "ledger.db")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    results = tmp_path / "out" / "results"
    (entry,) = json.loads((results / "index.json").read_text())
    stem = entry["file"].removesuffix(".parquet")
    assert parquet.read_table(results / f"{stem}.measured.parquet").num_rows > 10
    page = (results / f"{stem}.marginals.html").read_text()
    assert "<svg" in page
    assert "drug" in page
    assert "(P)" not in page
    assert set(parquet.read_table(results / entry["file"]).column_names) == {"age", "drug", "ill"}  # as in the table
    readme = " ".join((tmp_path / "out" / "README.txt").read_text().split())
    assert "rows are invented" in readme
    assert "measured.parquet" in readme
    assert "marginals.html" in readme
    report = (tmp_path / "out" / "report.html").read_text()
    assert "synthetic" in report
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "out"), "--study", str(tmp_path / "study.pl")])
    assert checked.exit_code == 0, checked.output
    (commit,) = [one for one in Ledger(tmp_path / "ledger.db").history() if one.action == "commit"]
    assert commit.dataset == "people"
    measured = results / f"{stem}.measured.parquet"
    table = parquet.read_table(measured).to_pandas()
    table.loc[0, "count"] += 1
    table.to_parquet(measured, index=False)
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "out")]).exit_code == 1


def test_three_ways_are_weighed_and_wishes_are_heard():
    (publication,) = planned(study()).publications
    names = {other.strategy for other in publication.alternatives}
    assert names == {"pairs", "tree", "rounds"}
    assert "total variation about" in publication.seen[0].note
    (wished,) = planned(study() + "prefer(rows, [pairs]).").publications
    assert wished.strategy == "pairs (synthetic)"
    (other,) = planned(study() + "forbid(rows, rounds). forbid(rows, tree).").publications
    assert other.strategy == "pairs (synthetic)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (study("synthetic([age(P), drug(P)], for(ill(P)))"), "no column of it"),
        (study("synthetic([age(P), age(P)])"), "twice"),
        (study(**{"dp(2.0, 0.000001)": "dp(2.0)"}), "needs a δ"),
        (study() + "adjacency(people, add_remove).", "add_remove"),
        (study("synthetic(age(P))"), "synthetic"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_spent(text, words):
    with pytest.raises(SfumatoError, match=words):
        planned(text)


def test_where_noise_drowns_everything_the_plan_says_so():
    (publication,) = planned(study(**{"dp(2.0,": "dp(0.001,"}), size=50).publications
    assert "unknown, up to 1" in publication.seen[0].note


def test_certificates_say_nothing_of_what_was_chosen(tmp_path):
    """Two tables of other dependences: other pairs are measured, and plan, events, certificates' notes are the same."""
    found = []
    for seed in (1, 2):
        frame = patients()
        frame["drug"] = np.random.default_rng(seed).permutation(frame["drug"]) if seed == 2 else frame["drug"]
        plan = planned(study())
        release = run_plan(plan, {"patients": frame}, None, out=tmp_path / f"out{seed}")
        whole = release.certificates["people"]
        found.append((plan.hash, [event.to_dict() for event in whole.events], whole.notes))
    assert found[0] == found[1]


def test_a_part_that_draws_more_than_its_event_is_not_published(tmp_path, monkeypatch):
    original = Measurer._noise

    def more(self, sensitivity, dimension, share):
        noise = original(self, sensitivity, dimension, share)
        self.stages[self.stage] *= 2
        return noise

    monkeypatch.setattr(Measurer, "_noise", more)
    with pytest.raises(UnprovedError, match="not what was planned"):
        run_plan(planned(study()), {"patients": patients()}, None, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


VISITS = """
source(visits, 'visits.parquet').
column(visits, id, patient(P)). rows_per_person(visits, 3). missing(visits, never).
column(visits, cost, cost(P)).
column(visits, ward, ward(P)).
random(cost(P)) :- patient(P).
random(ward(P)) :- patient(P).
range(cost(P), 0, 100).
range(ward(P), [x, y]).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(4.0, 0.000001)).
publish(rows, synthetic([cost(P), ward(P)]), openness(public)).
"""


def test_several_rows_a_person_are_charged(tmp_path):
    """Three rows of one person move a table three times as far: σ ≥ 3√2/μ for every act."""
    generator = np.random.default_rng(0)
    people = np.repeat(np.arange(1500), 4)
    frame = pd.DataFrame(
        {
            "id": [f"p{n}" for n in people],
            "cost": generator.uniform(0, 100, len(people)),
            "ward": generator.choice(["x", "y"], len(people), p=[0.8, 0.2]),
        }
    )
    plan = planned(VISITS, 1500)
    (act,) = plan.acts
    assert act.parameters["rows"] == 3
    release = run_plan(plan, {"visits": frame}, None, out=tmp_path / "out")
    made = release["rows"].to_pandas()
    assert abs(len(made) - 4500) < 600
    assert abs((made["ward"] == "x").mean() - 0.8) < 0.05
    drawn = release.certificates["people"].events
    assert all(event.sensitivity >= 3 * np.sqrt(2) for event in drawn)
    errors = release.publication("rows").tables["measured"]["standard_error"].to_numpy()
    mu = gaussian_mu(4.0, 1e-6)
    assert errors.min() >= 3 * np.sqrt(2) / mu
    cheaper = dataclasses.replace(act, parameters={**act.parameters, "rows": 1})
    edited = dataclasses.replace(plan, acts=(cheaper,))
    with pytest.raises((SfumatoError, PlanError)):
        run_plan(edited, {"visits": frame}, None, out=tmp_path / "edited")


def test_a_rehearsal_and_an_explanation_need_no_data(tmp_path):
    (tmp_path / "study.pl").write_text(study())
    words = ["run", str(tmp_path / "study.pl"), "--dry-run", "--data", str(tmp_path), "--out", str(tmp_path / "dry")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    for register in ("LAWYER", "ANALYST"):
        said = CliRunner().invoke(app, ["explain", str(tmp_path / "dry"), "--for", register])
        assert said.exit_code == 0, said.output
        assert "rows" in said.output
    shown = CliRunner().invoke(app, ["plan", str(tmp_path / "study.pl"), "--size", "people=4000"])
    assert shown.exit_code == 0, shown.output
    assert "total variation about" in " ".join(shown.output.split())


def test_a_table_whose_noise_is_wider_than_its_columns_is_told_before_anything_is_spent():
    narrow = planned(study("table([age(P), drug(P), ill(P)])", **{"dp(2.0,": "dp(0.2,"}))
    (said,) = verdicts(narrow)
    assert "times the column's width" in said
    assert "synthetic" in said
    assert "total variation about" in narrow.publications[0].reason
    assert not verdicts(planned(study("table([age(P), drug(P), ill(P)])", **{"dp(2.0,": "dp(20.0,"})))


def test_the_same_from_python():
    asked = (
        Study("Patients")
        .table(
            "patients",
            patients(),
            person="id",
            columns={
                "age": Interval(0, 110),
                "drug": Categories(["a", "b", "c", "other"], unknown="other"),
                "ill": Categories(["no", "yes"]),
            },
        )
        .promise("public", epsilon=2.0, delta=1e-6)
        .synthetic(["age", "drug", "ill"], label="ill", to="public", name="rows")
    )
    assert "synthetic([" in asked.to_text()
    assert "for(" in asked.to_text()
    assert "rows" in str(asked.plan(size=4000))


def test_days_and_times_come_out_of_a_study_as_such(tmp_path):
    text = study("synthetic([age(P), drug(P), ill(P)])").replace("range(age(P), 0, 110)", "range(age(P), DAYS)")
    text = text.replace("DAYS", "date(2020, 1, 1), date(2020, 12, 31)").replace(
        "range(drug(P), [a, b, c | other])", "range(drug(P), time(0, 0), time(23, 59))"
    )
    frame = patients(2000)
    generator = np.random.default_rng(1)
    frame["age"] = (np.datetime64("2020-01-01") + generator.integers(0, 366, 2000)).astype(str)
    frame["drug"] = [f"{hour:02d}:30" for hour in generator.integers(8, 12, 2000)]
    made = run_plan(planned(text, 2000), {"patients": frame}, None, out=tmp_path / "out", random_state=None)["rows"]
    kinds = {field.name: str(field.type) for field in made.schema}
    assert kinds == {"age": "date32[day]", "drug": "time32[s]", "ill": "string"}
    days, hours = made["age"].to_pylist(), made["drug"].to_pylist()
    assert min(days).year == max(days).year == 2020
    assert np.mean([8 <= hour.hour < 13 for hour in hours]) > 0.9


@pytest.mark.parametrize("rows_per_person", [1, 2])
@pytest.mark.by_day(1)
def test_whole_numbers_are_invented_where_somebody_states_them(tmp_path, rows_per_person):
    """Arrow, Parquet, polars and pandas' Int64 state a type; plain pandas takes it from cells, so it tells nothing."""
    generator = np.random.default_rng(5)
    hours = np.where(generator.random(4000) < 0.5, 40, generator.integers(1, 100, 4000))
    frame = pd.DataFrame({"who": np.arange(4000), "hours": hours, "ill": generator.choice(["no", "yes"], 4000)})
    stated = pa.table({name: pa.array(frame[name]) for name in frame})
    parquet.write_table(stated, tmp_path / "stated.parquet")
    frame.to_parquet(tmp_path / "pandas.parquet")

    def invented(data, **domain) -> pd.Series:
        columns = {"hours": Interval(1, 100, **domain), "ill": ["no", "yes"]}
        asked = Study("rows").table("t", data, person="who", rows_per_person=rows_per_person, columns=columns)
        asked = asked.promise("p", epsilon=8, delta=1e-4).synthetic(["hours", "ill"], to="p", name="rows")
        return asked.plan(size=4000).run(ledger=None)["rows"].to_pandas()["hours"]

    for data in (stated, tmp_path / "stated.parquet", frame.astype({"hours": "Int64"}), pl.from_arrow(stated)):
        made = invented(data)
        assert made.dtype == "int64"
        assert abs((made == 40).mean() - (hours == 40).mean()) < 0.05
    for data in (frame, tmp_path / "pandas.parquet"):
        assert invented(data).dtype == "float64"
    assert invented(stated, null=40.5).dtype == "float64"  # the place of an absent cell lies between two numbers
    assert invented(stated, null=40).dtype == "int64"


def test_whole_numbers_beyond_those_that_a_decimal_holds_come_out_rounded(tmp_path):
    """No type that a file states makes an act fail that is reserved already."""
    text = study("synthetic([age(P), ill(P)])").replace("range(age(P), 0, 110)", "range(age(P), 0, 9007199254740994)")
    frame = patients(300).astype({"age": "int64"})
    table = pa.Table.from_pandas(frame.assign(age=frame["age"] + 2**52), preserve_index=False)
    table = table.replace_schema_metadata(None)
    made = run_plan(planned(text, 300), {"patients": table}, None, out=tmp_path / "out")["rows"].to_pandas()
    assert len(made) == 300
