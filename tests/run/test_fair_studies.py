"""Studies whose classifiers have to treat groups alike: planned, run, told with their price, verified; or refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from sfumato import Study, make_plan
from sfumato.errors import PlanError, StudyError
from sfumato.evidence.explain import explain
from sfumato.evidence.recipient import recipient_text
from sfumato.evidence.verify_plan import verify_folder
from sfumato.lang import examine
from sfumato.run.study import run_plan

LENDING = """
source(people, 'people.csv').
column(people, id, person(P)). rows_per_person(people, 1). missing(people, never).
column(people, income, income(P)). column(people, sex, sex(P)). column(people, granted, granted(P)).
random(income(P)) :- person(P). random(sex(P)) :- person(P). random(granted(P)) :- person(P).
range(income(P), 0, 10). range(sex(P), [f, m]). range(granted(P), [no, yes]).
dataset(people, domain(P, person(P))).
privacy_requirement(secrecy(public), people, dp(2.0, 1e-6)).
publish(lending, classifier(granted(P), [income(P)]), secrecy(public)).
fairness_requirement(even, sex(P), demographic_parity(0.1)).
fair_rv(even, lending).
fairness_holds(even, on(rows), 0.95).
"""


def people(rows: int) -> pd.DataFrame:
    chance = np.random.default_rng(4)
    sex = chance.choice(["f", "m"], rows)
    income = np.clip(chance.normal(4.5 + 1.0 * (sex == "m"), 2, rows), 0, 10)
    granted = np.where(income + chance.normal(0, 1, rows) > 5, "yes", "no")
    return pd.DataFrame({"id": [f"p{n}" for n in range(rows)], "income": income, "sex": sex, "granted": granted})


@pytest.mark.paper("002", "§3.5", "run/publish_fair.py")
def test_lending_from_the_study_to_the_verifier(tmp_path):
    people(6000).to_csv(tmp_path / "people.csv", index=False)
    study = tmp_path / "study.pl"
    study.write_text(LENDING)
    plan = make_plan(study, sizes={"people": 6000})
    told = " ".join((explain(plan) + explain(plan, "lawyer")).split())
    assert "demographic parity between values of sex within 0.1" in told
    assert "The price:" in told
    release = run_plan(plan, tmp_path, tmp_path / "ledger.db", out=tmp_path / "out", grant=True)
    checks = verify_folder(tmp_path / "out", study)
    assert all(check.ok for check in checks), [check for check in checks if not check.ok]
    assert "% of all answers are the rule's own" in " ".join(recipient_text(plan, tmp_path / "out").split())
    model = release.model("lending")
    table = people(6000).rename(columns={"income": "income(P)"})
    chances = model.chances(table)
    gap = abs(chances[table["sex"] == "f"].mean() - chances[table["sex"] == "m"].mean())
    assert gap < 0.1 + 0.02
    assert set(model.predict(table)) <= {"no", "yes"}
    (path,) = (tmp_path / "out" / "results").glob("lending*public*.json")
    record = json.loads(path.read_text())
    record["fairness"]["share"] = 1.0
    path.write_text(json.dumps(record))
    assert any("fairness.share" in check.field for check in verify_folder(tmp_path / "out") if not check.ok)


def test_a_plan_of_few_people_says_that_little_is_left():
    population = LENDING.replace("on(rows)", "on(population)").replace("(0.1)", "(0.02)")
    plan = make_plan(population, sizes={"people": 400})
    assert "fair by being nearly constant" in " ".join(explain(plan).split())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("fair_rv(even, lending).", "", "nothing has to satisfy even"),
        ("fair_rv(even, lending).", "fair_rv(even, lendin).", "nothing is published as lendin"),
        ("fair_rv(even, lending).", "fair_rv(eve, lending). fair_rv(even, lending).", "eve is not declared"),
        ("fairness_holds(even, on(rows), 0.95).", "", "of whom even must hold, and how surely"),
        ("demographic_parity(0.1)", "demographic_parity(0)", "only a constant rule has a gap of 0"),
        ("demographic_parity(0.1)", "kindness(0.1)", "no measure of fairness"),
        ("on(rows)", "on(earth)", "on(population) or on(rows)"),
        ("0.95", "95", "confidence lies between"),
        ("even, sex(P)", "even, income(P)", "are not listed"),
        ("fair_rv(even, lending).", "fair_rv(even, lending). fair_rv(even, lending).", "two fairness requirements"),
        ("classifier(granted(P), [income(P)])", "regression(income(P), [granted(P)])", "is no classifier"),
    ],
)
def test_what_means_nothing_is_refused(old, new, said):
    found = " ".join(one.describe() for one in examine(LENDING.replace(old, new))[1] if one.severity == "error")
    assert said in found, found


def test_a_pure_promise_has_no_noise_for_it():
    with pytest.raises(PlanError, match="needs a δ"):
        make_plan(LENDING.replace("dp(2.0, 1e-6)", "dp(2.0)"), sizes={"people": 1000})


def test_three_labels_are_no_yes_and_no():
    with pytest.raises(PlanError, match="has 3 labels"):
        make_plan(LENDING.replace("[no, yes]", "[no, maybe, yes]"), sizes={"people": 1000})


def test_the_builder_says_it_in_one_call(tmp_path):
    table = people(2000)
    columns = {"income": (0, 10), "sex": ["f", "m"], "granted": ["no", "yes"]}
    study = (
        Study("Lending")
        .table("people", table, person="id", columns=columns)
        .promise("public", epsilon=2, delta=1e-6)
        .classifier("granted", ["income"], to="public", name="lending")
        .fair("lending", between="sex", gap=0.1, measure="equal_opportunity", on="rows", confidence=0.9)
    )
    assert "fair_rv(" in study.to_text()
    release = study.plan(size=2000).run(ledger=tmp_path / "ledger.db", grant=True)
    assert 0 < release.model("lending").fairness["share"] <= 1
    with pytest.raises(StudyError, match="asked"):
        study.fair("nothing", between="sex", gap=0.1, on="rows", confidence=0.9)


def test_a_group_that_is_skipped_where_it_is_absent_is_refused():
    """Whoever has no group would be counted in the first one, and the gap would not be the one that is promised."""
    absent = "missing(sex(P), skip). missing(income(P), 5). missing(granted(P), no)."
    text = LENDING.replace("missing(people, never).", absent)
    with pytest.raises(StudyError, match=r"people without sex\(P\) are skipped"):
        make_plan(text)
    make_plan(text.replace("skip", "f"))
