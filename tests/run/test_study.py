"""Running a plan: results near the truth, charged once, complete or absent."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from plan.studies import COLLUDING, EACH, HEAD, MEAN, TWO_OBSERVERS, one
from sfumato.cli.app import app
from sfumato.core import ApproxDP
from sfumato.errors import DataError, InputError, OverspendError, StudyError
from sfumato.evidence import verify
from sfumato.ledger.ledger import Ledger
from sfumato.plan.make import make_plan
from sfumato.run import study as running
from sfumato.run.generate import generated_tables
from sfumato.run.study import read_release, run_plan

PEOPLE = 1500


def people(seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "id": [f"p{number}" for number in range(PEOPLE)],
            "age": generator.uniform(20, 90, PEOPLE),
            "bmi": generator.normal(27, 4, PEOPLE),
        }
    )


@pytest.fixture
def folder(tmp_path):
    parquet.write_table(people(), tmp_path / "patients.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def plan():
    return make_plan(COLLUDING, sizes={"people": PEOPLE})


def test_end_to_end(folder, plan):
    release = run_plan(plan, folder, folder / "ledger.db", out=folder / "out", grant=True)
    ages = people()["age"].to_numpy()
    row = release["average", "public"].to_pylist()[0]
    assert abs(row["value"] - ages.mean()) < 6 * row["standard_error"]
    counts = np.array(release["spread"]["value"])
    true = np.histogram(ages, [0, 20, 40, 60, 80, 110])[0]
    assert np.all(np.abs(counts - true) < 8 * release["spread"]["standard_error"][0].as_py())
    assert release["each"].num_rows == PEOPLE
    assert release["each"].column_names == [
        "id",
        "risk(P)",
        *(f"risk(P) {end}" for end in ("standard_error", "low", "high")),
    ]
    for certificate in release.certificates.values():
        assert verify(certificate, plan=plan.to_dict()).ok
    balance = Ledger(folder / "ledger.db").balance("people", "patient")
    assert balance.spent is not None
    assert balance.reserved is None


def test_the_release_reads_back_from_its_folder(folder, plan):
    release = run_plan(plan, folder, folder / "ledger.db", out=folder / "out", grant=True)
    stored = read_release(folder / "out")
    assert stored.plan_hash == release.plan_hash
    for one_of in release.published:
        assert stored[one_of.name, one_of.observer].equals(one_of.values)
    assert set(stored.certificates) == set(release.certificates)


def test_observers_of_a_shared_draw_see_the_same_noise(folder):
    """The doctor's mean refines the public one; with the public draw alone both would show the same number."""
    study = HEAD + (
        "privacy_requirement(a(doctor), people, gdp(0.3)).\nprivacy_requirement(a(public), people, gdp(0.3)).\n"
        "mean(meanAge, age(P), patient(P)).\npublish(m, meanAge, a(doctor)).\npublish(m, meanAge, a(public)).\n"
    )
    plan = make_plan(study, sizes={"people": PEOPLE})
    assert len(plan.draws) == 1
    release = run_plan(plan, folder, None)
    assert release["m", "doctor"].equals(release["m", "public"])


@pytest.mark.slow
def test_predicted_error_is_met_by_real_runs(folder):
    plan = make_plan(one("dp(1, 0.000001)", MEAN), sizes={"people": PEOPLE})
    truth = people()["age"].to_numpy().mean()
    tables = {"patients": people()}
    errors = [run_plan(plan, tables, None)["average"]["value"][0].as_py() - truth for _ in range(60)]
    predicted = plan.publication("average").error
    assert np.mean(np.square(errors)) == pytest.approx(predicted, rel=5 * math.sqrt(5 / 60))


def test_values_outside_their_range_are_clipped(folder):
    wild = people().set_column(1, "age", pa.array(np.full(PEOPLE, 1e9)))
    release = run_plan(make_plan(one("gdp(3)", MEAN), sizes={"people": PEOPLE}), {"patients": wild}, None)
    assert release["average"]["value"][0].as_py() == pytest.approx(110, abs=2)


def test_a_second_run_is_charged_again(folder, plan):
    ledger = Ledger(folder / "ledger.db")
    ledger.grant("people", ApproxDP(3.0, 1e-5, adjacency=plan.promises[0].asked.adjacency))
    run_plan(plan, folder, ledger, out=folder / "one", grant=True)
    run_plan(plan, folder, ledger, out=folder / "two")
    with pytest.raises(OverspendError, match="nothing was spent"):
        run_plan(plan, folder, ledger, out=folder / "three")
    assert not (folder / "three").exists()


def test_resume_returns_the_stored_release_byte_for_byte(folder, plan):
    run_plan(plan, folder, folder / "ledger.db", out=folder / "out", grant=True)
    before = {path.name: path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()}
    history = len(Ledger(folder / "ledger.db").history())
    again = run_plan(plan, folder, folder / "ledger.db", out=folder / "out", resume=True)
    assert again.plan_hash == plan.hash
    assert before == {path.name: path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()}
    assert len(Ledger(folder / "ledger.db").history()) == history
    other = make_plan(one("gdp(1)", MEAN))
    with pytest.raises(InputError, match="another plan"):
        run_plan(other, folder, folder / "ledger.db", out=folder / "out", resume=True)


def test_a_run_that_was_interrupted_before_it_was_complete_is_a_cost_and_nothing_else(folder, plan, monkeypatch):
    """What was drawn is gone, what it cost stays: with or without `resume` new noise is a new cost."""

    class PowerCutError(Exception):
        pass

    def cut(*_):
        raise PowerCutError

    with monkeypatch.context() as patched:
        patched.setattr(running, "_write", cut)
        with pytest.raises(PowerCutError):
            run_plan(plan, folder, folder / "ledger.db", out=folder / "out", grant=True)
    assert not (folder / "out").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".out")]
    ledger = Ledger(folder / "ledger.db")
    assert ledger.balance("people", "patient").reserved is not None
    for resume in (False, True):
        with pytest.raises(OverspendError):
            run_plan(plan, folder, ledger, out=folder / "out", resume=resume, grant=True)
    ledger.grant("people", ApproxDP(9.0, 1e-5, adjacency=plan.promises[0].asked.adjacency))
    run_plan(plan, folder, ledger, out=folder / "out", resume=True)
    balance = ledger.balance("people", "patient")
    assert balance.reserved is not None
    assert balance.spent is not None
    assert (folder / "out" / "certificate.json").is_file()


def test_missing_tables_and_columns_cost_nothing(folder, plan):
    (folder / "patients.parquet").unlink()
    with pytest.raises(DataError, match="no file"):
        run_plan(plan, folder, folder / "ledger.db", out=folder / "out", grant=True)
    with pytest.raises(InputError, match="bmi"):
        run_plan(plan, {"patients": people().drop(["bmi"])}, folder / "ledger.db", out=folder / "out")
    assert not (folder / "ledger.db").exists() or not Ledger(folder / "ledger.db").history()


def test_a_dry_run_is_the_same_every_time_and_not_for_publication(tmp_path, plan):
    tables = generated_tables(plan.network.spec)
    first = run_plan(plan, tables, None, out=tmp_path / "a", random_state=0)
    second = run_plan(plan, tables, None, out=tmp_path / "b", random_state=0)
    for here, there in zip(first.published, second.published, strict=True):
        assert here.values.equals(there.values)
    assert not first.certificate.publishable


def test_a_source_outside_the_data_folder_is_refused(folder):
    with pytest.raises(StudyError, match="outside the data folder"):
        make_plan(TWO_OBSERVERS.replace("'patients.parquet'", "'../patients.parquet'"), sizes={"people": PEOPLE})
    plan = make_plan(TWO_OBSERVERS, sizes={"people": PEOPLE})
    inner = folder / "inner"
    inner.mkdir()
    (inner / "patients.parquet").symlink_to(folder / "patients.parquet")
    with pytest.raises(InputError, match="outside"):
        run_plan(plan, inner, None)


def test_a_forgotten_person_is_not_read(folder):
    study = one("gdp(5)", "sum(total, age(P), patient(P)).\npublish(t, total, openness(public)).\n")
    tables = {"patients": pa.table({"id": ["uma", "eve"], "age": [100.0, 10.0], "bmi": [20.0, 20.0]})}
    kept = run_plan(make_plan(study + "forget(uma).\n", sizes={"people": 2}), tables, None, random_state=1)
    whole = run_plan(make_plan(study, sizes={"people": 2}), tables, None, random_state=1)
    # The same noise: what is gone is the difference of 100 and the middle of the range, which an absent cell counts as.
    assert whole["t"]["value"][0].as_py() - kept["t"]["value"][0].as_py() == pytest.approx(45.0, abs=0.1)


def test_individual_noise_is_private_by_audit():
    """One value under two neighbouring inputs: no threshold beats the claim, and it comes near it."""
    plan = make_plan(one("gdp(1)", EACH), sizes={"people": 1})
    many = 20_000
    repeated = [
        {"patients": pa.table({"id": list(map(str, range(many))), "age": [age] * many, "bmi": [bmi] * many})}
        for age, bmi in ((0, 10), (110, 60))
    ]
    outputs = [np.sort(run_plan(plan, tables, None)["each"]["risk(P)"].to_numpy()) for tables in repeated]
    thresholds = np.quantile(np.concatenate(outputs), np.linspace(0.01, 0.99, 100))
    below = [np.searchsorted(out, thresholds) / len(out) for out in outputs]
    measured = float(np.max(np.abs(below[0] - below[1])))
    claimed = plan.promises[0].asked.advantage()
    assert measured <= claimed + 0.02
    assert measured >= 0.4 * claimed


def test_what_the_account_cannot_pay_is_refused_before_the_data_is_evaluated(folder, plan, monkeypatch):
    book = folder / "ledger.db"
    run_plan(plan, folder, book, out=folder / "first", grant=True)
    before = len(Ledger(book).history())
    monkeypatch.setattr(running, "_evaluated", lambda *_: pytest.fail("the data was evaluated"))
    with pytest.raises(OverspendError, match="Nothing was run and nothing was spent"):
        run_plan(plan, folder, book, out=folder / "second", grant=True)
    assert len(Ledger(book).history()) == before
    assert not (folder / "second").exists()


def test_who_waits_is_told_what_is_being_done(folder, plan):
    stages = []
    run_plan(plan, folder, folder / "ledger.db", out=folder / "out", grant=True, stage=stages.append)
    assert stages == ["reading the tables", "evaluating the study", "drawing noise", "writing"]


def test_a_dry_run_says_for_how_many_it_plans_and_shows_no_module(tmp_path):
    (tmp_path / "s.pl").write_text(COLLUDING, encoding="utf-8")
    common = ["run", str(tmp_path / "s.pl"), "--data", str(tmp_path), "--dry-run"]
    said = CliRunner().invoke(app, [*common, "--out", str(tmp_path / "one")])
    assert said.exit_code == 0, said.output
    assert "planned for 200 individuals of people" in said.output
    assert "--size people=N" in said.output
    assert ".py" not in said.output
    given = CliRunner().invoke(app, [*common, "--out", str(tmp_path / "two"), "--size", "people=5000"])
    assert "planned for 200" not in given.output


def test_an_assumed_size_says_how_to_give_it_at_the_command_line():
    (assumption,) = [one for one in make_plan(COLLUDING).assumptions if "individuals" in one]
    assert "--size people=N" in assumption
