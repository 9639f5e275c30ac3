"""Provenance: which tables and variables a result came from, who paid, and what is told to a person."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.cli.trace import run_report, run_trace
from sfumato.errors import InputError
from sfumato.evidence.trace import find_result, trace_person, trace_result, trace_text
from sfumato.lang import load
from sfumato.plan.make import make_plan
from sfumato.plan.plan import Plan
from sfumato.run.generate import generated_tables
from sfumato.run.planning import make_plan as plan_everything
from sfumato.run.study import run_plan

STUDY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
column(patients, bmi, bmi(P)).
source(treatments, 'treatments.parquet').
column(treatments, patient, patient(P)). missing(treatments, never).
column(treatments, drug, drug(D)).
relation(treatments, treated(P, D)).
rows_per_person(treatments, 2).
drug(d1). drug(d2).
random(age(P)) :- patient(P).
random(bmi(P)) :- patient(P).
random(risk(P)) :- patient(P).
range(age(P), 0, 110).
range(bmi(P), 10, 60).
depends(risk(P), [age(P)], 0.01 * age(P)) :- patient(P).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, gdp(0.2)).
privacy_requirement(openness(doctor), people, gdp(0.5)).
mean(riskBy(D), risk(P), (patient(P), treated(P, D))) :- drug(D).
mean(meanBmi, bmi(P), patient(P)).
publish(risks, riskBy(D), openness(public)) :- drug(D).
publish(weight, meanBmi, openness(doctor)).
publish(weight, meanBmi, openness(public)).
"""


@pytest.fixture(scope="module")
def plan():
    return make_plan(load(STUDY), sizes={"people": 200})


@pytest.fixture(scope="module")
def folder(plan, tmp_path_factory):
    place = tmp_path_factory.mktemp("trace")
    (place / "study.pl").write_text(STUDY)
    run_plan(plan, generated_tables(plan.network.spec), None, out=place / "out", random_state=0)
    return place / "out"


def test_tables_and_columns_are_those_the_result_was_computed_from(plan):
    (trace,) = trace_result(plan, "risks")
    assert {(origin.table, origin.columns) for origin in trace.tables} == {
        ("patients", ("age",)),
        ("treatments", ("patient", "drug")),
    }
    assert "bmi(P)" not in trace.variables
    assert {"risk(P)", "age(P)"} <= set(trace.variables)
    assert trace.requirement == "openness(public)"
    assert set(trace.noisy) == {"riskBy(d1)", "riskBy(d2)"}


def test_each_observer_of_a_publication_paid_by_its_own_requirement(plan):
    doctor, public = sorted(trace_result(plan, "weight"), key=lambda one: one.observer)
    assert (doctor.requirement, public.requirement) == ("openness(doctor)", "openness(public)")
    assert len(doctor.acts) == len(public.acts) + 1, "the doctor sees the public's draw and one more"
    assert [origin.columns for origin in doctor.tables] == [("bmi",)]


def test_a_plan_from_a_file_names_nodes_and_asks_for_the_study(plan):
    (trace,) = trace_result(Plan.from_json(plan.to_json()), "risks")
    assert trace.tables == ()
    assert trace.shown == ("riskBy(d1)", "riskBy(d2)")
    assert "--study" in trace_text(trace)


def test_a_result_is_found_by_its_file(folder):
    place, name, observer = find_result(str(folder / "results" / "risks.public.json"), None)
    assert (place, name, observer) == (folder, "risks", "public")
    with pytest.raises(InputError, match="--folder"):
        find_result("risks", None)
    with pytest.raises(InputError, match="risks"):
        run_trace("riks", folder)


def test_the_command_tells_tables_only_from_the_right_study(folder, tmp_path):
    told = run_trace(str(folder / "results" / "risks.public.parquet"), study=folder.parent / "study.pl")
    assert "table treatments (treatments.parquet), private: patient, drug" in told
    other = tmp_path / "other.pl"
    other.write_text(STUDY.replace("0.01 * age(P)", "0.02 * age(P)"))
    with pytest.raises(InputError, match="not the study"):
        run_trace(str(folder / "results" / "risks.public.parquet"), study=other)


def test_the_whole_folder_at_once(folder):
    told = run_trace(str(folder))
    assert told.count("paid by") == 3


def test_a_person_is_told_numbers_and_nothing_is_opened(plan, folder, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a table was opened")

    monkeypatch.setattr(pa.parquet, "read_table", refuse)
    told = " ".join(run_trace(str(folder), person="uma").split())
    for promise in plan.promises:
        assert str(promise.asked) in told
        assert f"{math.exp(promise.asked.epsilon(1e-6)):.3g}" in told
    cost = plan.cost("people")
    assert cost.describe() in told
    draw = next(d for d in plan.draws if d.node == "riskBy(d1)")
    assert f"{draw.sensitivity / math.sqrt(draw.variance):.3g} standard deviations" in told
    for planned in plan.publications:
        assert planned.name in told
    assert "neither looked up nor told" in told


def test_the_same_is_said_of_everybody(plan, folder):
    """Whether somebody is in the data shows in no word."""
    present, absent = (trace_person(plan, name, folder) for name in ("patient1", "nobody12"))
    assert present.replace("patient1", "X") == absent.replace("nobody12", "X").replace("\n", "\n")


def test_forgetting_is_told_from_the_study(plan):
    spec, forgetting = load(STUDY), load(STUDY + "forget(uma).\n")
    assert "does not say forget(uma)." in " ".join(trace_person(plan, "uma", None, spec).split())
    assert "The study says forget(uma)." in " ".join(trace_person(plan, "uma", None, forgetting).split())
    assert "forget('Uma B')." in trace_person(plan, "Uma B")


def test_the_report_is_written_again_with_its_picture(folder):
    text, complete = run_report(folder, folder.parent / "study.pl", None, None)
    assert complete, text
    assert 'id="network"' in (folder / "report.html").read_text(encoding="utf-8")


def test_the_commands(folder, tmp_path):
    runner = CliRunner()
    assert runner.invoke(app, ["trace", "risks", "--folder", str(folder)]).exit_code == 0
    assert runner.invoke(app, ["report", str(folder)]).exit_code == 0
    (folder / "results" / "index.json").rename(tmp_path / "index.json")
    failed = runner.invoke(app, ["report", str(folder)])
    (tmp_path / "index.json").rename(folder / "results" / "index.json")
    assert failed.exit_code == 1
    assert "not complete" in failed.output
    assert json.loads((folder / "results" / "index.json").read_text())


def test_a_model_names_its_columns_and_what_bounds_it():
    study = STUDY.replace("gdp(0.2)", "dp(4, 0.000001)").replace("gdp(0.5)", "dp(8, 0.000001)") + (
        "publish(line, regression(bmi(P), [age(P)]), openness(doctor)).\n"
    )
    plan = plan_everything(load(study), sizes={"people": 2000})
    (trace,) = trace_result(plan, "line")
    assert [(origin.table, set(origin.columns)) for origin in trace.tables] == [("patients", {"age", "bmi"})]
    (act,) = plan.acts
    assert act.guarantee.describe() in " ".join(trace_text(trace).split())
    told = " ".join(trace_person(plan, "uma").split())
    assert "line for doctor: a summary of all of people" in told
