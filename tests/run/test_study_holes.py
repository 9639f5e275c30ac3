"""Attacks on studies that once worked; each stays closed."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from plan.studies import EACH, HEAD, MEAN, one
from sfumato.core import REPLACE_ONE, Interval, PureDP, compose
from sfumato.errors import DataError, InputError, LedgerError, PlanError, StudyError
from sfumato.learn.table import checked_labels, declared_classes
from sfumato.ledger.ledger import Ledger
from sfumato.mechanisms import TailoredNoise
from sfumato.mechanisms.tailored.grid import PrivateQuantiles
from sfumato.plan.make import make_plan
from sfumato.run.partition import PartitionedTable
from sfumato.run.run_key import RunKey, binding
from sfumato.run.staging import MARKER, _place
from sfumato.run.study import run_plan

PEOPLE = {"patients": pa.table({"id": ["a", "b"], "age": [30.0, 50.0], "bmi": [20.0, 25.0]})}
NURSES = """
source(nurses, 'nurses.parquet').
column(nurses, id, nurse(N)). rows_per_person(nurses, 1). missing(nurses, never).
column(nurses, pay, pay(N)).
random(pay(N)) :- nurse(N).
range(pay(N), 0, 10).
dataset(staff, domain(N, nurse(N))).
privacy_requirement(staffPrivacy(public), staff, dp(1)).
"""
SECRET = HEAD + "adjacency(people, add_remove).\nprivacy_requirement(peoplePrivacy(public), people, dp(1)).\n"
COUNT = "count(old, (patient(P), age(P) > 40)).\n"


def test_an_observer_of_two_datasets_sees_the_right_people():
    study = (
        SECRET
        + NURSES
        + COUNT
        + ("publish(older, old, peoplePrivacy(public)).\npublish(pays, pay(N), staffPrivacy(public)) :- nurse(N).\n")
    )
    tables = {**PEOPLE, "nurses": pa.table({"id": ["n1", "n2"], "pay": [1.0, 2.0]})}
    release = run_plan(make_plan(study), tables, None)
    assert release["pays"]["id"].to_pylist() == ["n1", "n2"]


def test_one_name_for_two_publications_is_refused():
    study = (
        SECRET
        + NURSES
        + COUNT
        + ("publish(q, old, peoplePrivacy(public)).\npublish(q, pay(N), staffPrivacy(public)) :- nurse(N).\n")
    )
    with pytest.raises(PlanError, match="two publications called q"):
        make_plan(study)


def test_one_value_per_person_needs_one_row_per_person():
    study = HEAD + (
        "source(visits, 'visits.parquet').\ncolumn(visits, who, patient(P)).\ncolumn(visits, cost, cost(P)).\n"
        "missing(visits, never).\nrows_per_person(visits, 50).\nrandom(cost(P)) :- patient(P).\nrange(cost(P), 0, 1).\n"
        "privacy_requirement(open(public), people, dp(1)).\npublish(costs, cost(P), open(public)) :- patient(P).\n"
    )
    with pytest.raises(PlanError, match="several rows"):
        make_plan(study)


def test_what_everyone_sees_counts_against_every_observer():
    study = (
        HEAD
        + COUNT
        + (
            "privacy_requirement(openness, people, dp(1)).\nprivacy_requirement(careful(doctor), people, dp(0.1)).\n"
            "mean(meanAge, age(P), patient(P)).\npublish(average, meanAge, openness).\n"
            "publish(older, old, careful(doctor)).\n"
        )
    )
    plan = make_plan(study)
    seen = compose([draw.event() for draw in plan.draws if set(draw.observers) & {"doctor", "everyone"}])
    assert seen.epsilon(0.0) <= 0.1 * (1 + 1e-9)


def test_two_datasets_of_the_same_people_are_refused():
    study = (
        HEAD
        + COUNT
        + (
            "dataset(again, domain(P, patient(P))).\nprivacy_requirement(a(public), people, dp(0.5)).\n"
            "privacy_requirement(b(public), again, dp(0.5)).\npublish(one, old, a(public)).\n"
            "publish(two, age(P), b(public)) :- patient(P).\n"
        )
    )
    with pytest.raises(StudyError, match="same individuals"):
        make_plan(study)


@pytest.mark.parametrize("body", [EACH, MEAN])
def test_an_edited_plan_is_not_run(body, tmp_path):
    plan = make_plan(one("dp(1)", body))
    ledger = Ledger(tmp_path / "ledger.db")
    for forged in (
        dataclasses.replace(plan, draws=()),
        dataclasses.replace(plan, draws=tuple(dataclasses.replace(d, scale=d.scale / 9) for d in plan.draws)),
        dataclasses.replace(
            plan, draws=tuple(dataclasses.replace(d, sensitivity=1e-3, scale=1e-3) for d in plan.draws)
        ),
    ):
        with pytest.raises(InputError):
            run_plan(forged, PEOPLE, ledger)
    assert not ledger.history()


def test_a_killed_runs_hidden_folder_does_not_stay_and_other_folders_do(tmp_path):
    plan = make_plan(one("dp(1)", MEAN))
    others = [tmp_path / name for name in (".out.backup", ".out.killed", ".out")]
    for other in others:
        other.mkdir()
        (other / "plan.json").write_text("{}")
    killed = _place(tmp_path / "out")
    killed.mkdir()
    (killed / MARKER).write_text(
        json.dumps({"program": "sfumato", "out": str(tmp_path / "out"), "run": plan.hash, "state": "drawing"})
    )
    (killed / "plan.json").write_text("{}")
    run_plan(plan, PEOPLE, tmp_path / "ledger.db", out=tmp_path / "out", grant=True)
    assert not killed.exists()
    assert all((other / "plan.json").is_file() for other in others)


def test_a_run_without_a_ledger_says_so_and_a_dry_run_is_no_release(tmp_path):
    plan = make_plan(one("dp(1)", MEAN))
    run_plan(plan, PEOPLE, None, out=tmp_path / "free")
    assert "no ledger was charged" in json.loads((tmp_path / "free" / "run.json").read_text())["steps"]
    run_plan(plan, PEOPLE, None, out=tmp_path / "dry", random_state=1)
    with pytest.raises(InputError, match="dry run"):
        run_plan(plan, PEOPLE, tmp_path / "ledger.db", out=tmp_path / "dry", resume=True)


def test_a_variable_read_from_two_tables_is_refused():
    study = one("dp(1)", MEAN) + (
        "source(more, 'more.parquet').\ncolumn(more, id, patient(P)).\ncolumn(more, age, age(P)).\n"
        "rows_per_person(more, 1).\n"
    )
    with pytest.raises(InputError, match="is read from age of patients and from age of more"):
        make_plan(study)


def test_a_plan_that_promises_less_than_its_study_is_not_run(tmp_path):
    plan = make_plan(one("dp(1)", MEAN))
    louder = tuple(dataclasses.replace(draw, scale=draw.scale / 1000) for draw in plan.draws)
    looser = tuple(dataclasses.replace(promise, asked=PureDP(1e4)) for promise in plan.promises)
    for promises in ((), looser):
        forged = dataclasses.replace(plan, draws=louder, promises=promises)
        with pytest.raises(PlanError, match="does not follow"):
            run_plan(forged, PEOPLE, None, out=tmp_path / "out")


def test_one_file_under_two_names_is_refused(tmp_path):
    parquet.write_table(PEOPLE["patients"], tmp_path / "a.parquet")
    (tmp_path / "latest.parquet").symlink_to(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="twice"):
        PartitionedTable.open(str(tmp_path))


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_a_key_that_others_may_know_is_not_used(tmp_path, mode):
    bound = binding("plan", "input")
    with RunKey.open(tmp_path / "ledger.db", bound) as key:
        path = key.path
    path.chmod(mode)
    with pytest.raises(LedgerError, match="open to others"):
        RunKey.open(tmp_path / "ledger.db", bound)


def test_a_channel_file_keeps_the_cost_of_its_bins(tmp_path):
    values = np.linspace(0, 1, 500)
    bins = PrivateQuantiles.draw(values, Interval(0, 1), 4, 2.0, REPLACE_ONE)
    channel = TailoredNoise(Interval(0, 1), 1.0, bins=4, binning=bins)
    channel.write(tmp_path / "channel.json")
    assert TailoredNoise.read(tmp_path / "channel.json").events() == channel.events()


def test_labels_that_occur_raise_no_warning():
    levels = [f"c{number}" for number in range(40)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checked_labels(np.array(levels), 40, declared_classes(levels))
