"""A budget belongs to the data: no new word, copy, link or folder opens a second account."""

from __future__ import annotations

import os
import re
import shlex
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.core import Adjacency, ApproxDP, Interval, Schema
from sfumato.errors import DataError, LedgerError, OverspendError, PrivacyParameterError, UnknownDatasetError
from sfumato.ledger.ledger import Ledger
from sfumato.plan.make import make_plan
from sfumato.release import LaplaceRelease, SyntheticRelease
from sfumato.run.accounts import default_ledger, table_sources
from sfumato.run.partition_release import release_partitions
from sfumato.run.study import run_plan
from sfumato.run.synthesize import synthesize_file
from sfumato.run.tables import release_file

STUDY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). missing(patients, never).
column(patients, age, age(P)).
random(age(P)) :- patient(P).
range(age(P), 0, 110).
rows_per_person(patients, 1).
missing(age(P), 50).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(0.5)).
sum(total, age(P), patient(P)).
publish(total, total, openness(public)).
"""


def table(rows=40):
    return pa.table({"id": list(range(rows)), "age": [50.0] * rows})


@pytest.fixture
def folder(tmp_path):
    """A table whose budget is spent to the last."""
    parquet.write_table(table(), tmp_path / "patients.parquet")
    run_plan(make_plan(STUDY), tmp_path, tmp_path / "ledger.db", grant=True)
    return tmp_path


def refused(folder, study=STUDY, data=None, ledger="ledger.db"):
    book = Ledger(folder / ledger)
    before = len(book.history())
    with pytest.raises(OverspendError):
        run_plan(make_plan(study), folder if data is None else data, book, grant=True)
    assert len(book.history()) == before
    assert len(book.datasets()) == 1


def test_other_words_for_the_same_thing(folder):
    """The dataset, the source, the unit and the variable by other names."""
    for old, new in (("people", "folk"), ("patient", "person"), ("total", "whole")):
        refused(folder, re.sub(rf"\b{old}\b", new, STUDY))
    other = STUDY.replace("patients,", "again,")
    refused(folder, other, {"again": folder / "patients.parquet"})


def test_a_copy_a_link_and_another_folder(folder, monkeypatch):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(folder / "patients.parquet", elsewhere / "patients.parquet")
    refused(folder, data=elsewhere)
    (elsewhere / "patients.parquet").unlink()
    (elsewhere / "link.parquet").symlink_to(folder / "patients.parquet")
    refused(folder, data={"patients": elsewhere / "link.parquet"})
    os.link(folder / "patients.parquet", elsewhere / "hard.parquet")
    refused(folder, data={"patients": str(elsewhere / "hard.parquet")})
    monkeypatch.chdir(elsewhere)
    refused(folder, data={"patients": "../patients.parquet"})


def test_rows_that_were_added_or_changed_in_place(folder):
    parquet.write_table(table(41), folder / "patients.parquet")
    refused(folder)


def test_a_table_in_memory_by_its_content(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    run_plan(make_plan(STUDY), {"patients": table()}, ledger, grant=True)
    same = pa.concat_tables([table().slice(0, 7), table().slice(7)])
    for data in (same, table().to_pandas(), same.to_reader()):
        refused(tmp_path, STUDY.replace("people", "folk"), {"patients": data})
    other = table(41)
    run_plan(make_plan(STUDY.replace("people", "folk")), {"patients": other}, ledger, grant=True)
    assert len(ledger.datasets()) == 2


def test_two_datasets_over_one_table_are_refused(folder):
    """One file under two source names: whoever is in one is in the other."""
    second = re.sub(r"\bpatients\b", "again", STUDY.replace("openness", "other"))
    for old, new in (("people", "folk"), ("patient", "person"), ("age", "years"), ("total", "whole")):
        second = re.sub(rf"\b{old}\b", new, second)
    second = second.replace("column(again, years, ", "column(again, age, ")
    plan = make_plan(STUDY + second)
    for ledger in (Ledger(folder / "ledger.db"), Ledger(folder / "new.db")):
        before = len(ledger.history())
        with pytest.raises(DataError, match="read from one table"):
            run_plan(plan, dict.fromkeys(("patients", "again"), folder / "patients.parquet"), ledger, grant=True)
        assert len(ledger.history()) == before


def test_another_identity_column_needs_a_decision_of_its_own(folder):
    """Doctors and patients of one table may have budgets of their own, if a person says that both may be spent."""
    both = table().append_column("doctor", pa.array([number % 5 for number in range(40)]))
    parquet.write_table(both, folder / "patients.parquet")
    study = STUDY.replace("column(patients, id", "column(patients, doctor").replace("people", "doctors")
    ledger = Ledger(folder / "ledger.db")
    before = len(ledger.history())
    with pytest.raises(LedgerError, match=r"spent 0\.5-DP.*--beside people") as refusal:
        run_plan(make_plan(study), folder, ledger, grant=True)
    assert len(ledger.history()) == before
    command = shlex.split(re.search(r"`sfumato (.*)`", str(refusal.value)).group(1))
    assert CliRunner().invoke(app, command).exit_code == 0
    run_plan(make_plan(study), folder, ledger)
    assert [str(ledger.balance(*one).spent) for one in ledger.datasets()] == ["0.5-DP, under replacing one patient"] * 2
    with pytest.raises(OverspendError):
        run_plan(make_plan(study), folder, ledger, grant=True)


def test_two_identity_columns_of_one_file_in_one_study_are_refused(tmp_path):
    """Whoever is in the file is in both datasets: one promise each would be two for the same rows."""
    study = """
    source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1).
    source(u, 't.parquet'). column(u, mail, q(Q)). rows_per_person(u, 1).
    column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10). missing(x(P), 0).
    column(u, x, y(Q)). random(y(Q)) :- q(Q). range(y(Q), 0, 10). missing(y(Q), 0).
    dataset(d, domain(P, p(P))). dataset(e, domain(Q, q(Q))).
    privacy_requirement(o(pub), d, dp(1)). privacy_requirement(w(pub), e, dp(1)).
    sum(s, x(P), p(P)). sum(r, y(Q), q(Q)). publish(a, s, o(pub)). publish(b, r, w(pub)).
    """
    parquet.write_table(
        pa.table({"id": [1, 2, 3], "mail": ["a", "b", "c"], "x": [1.0, 5.0, 9.0]}), tmp_path / "t.parquet"
    )
    ledger = Ledger(tmp_path / "ledger.db")
    for book in (ledger, None):
        with pytest.raises(DataError, match="read from one table"):
            run_plan(make_plan(study), tmp_path, book, grant=True)
    assert ledger.datasets() == []


def test_one_file_is_not_public_and_private(tmp_path):
    study = """
    source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1).
    source(u, 't.parquet'). public(u). column(u, id, p(P)). column(u, x, z(P)).
    random(z(P)) :- p(P). range(z(P), 0, 10). missing(z(P), 0).
    dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)).
    sum(r, z(P), p(P)). publish(b, r, o(pub)).
    """
    parquet.write_table(pa.table({"id": [1, 2, 3], "x": [1.0, 5.0, 9.0]}), tmp_path / "t.parquet")
    plan = make_plan(study, {"u": tmp_path / "t.parquet"})
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(DataError, match="only u is declared public"):
        run_plan(plan, tmp_path, ledger, grant=True)
    assert ledger.datasets() == []


@pytest.mark.parametrize("same", ["itself", "copy", "other format"])
def test_what_has_a_budget_cannot_be_declared_public(folder, same):
    """Its cells would be published as they are: the ledger knows that they are private."""
    register = folder / "register.csv"
    if same == "itself":
        register = folder / "patients.parquet"
    elif same == "copy":
        register = shutil.copy(register.with_name("patients.parquet"), folder / "register.parquet")
    else:
        csv.write_csv(table(), register)
    parquet.write_table(pa.table({"id": [1, 2], "cost": [1.0, 2.0]}), folder / "visits.parquet")
    study = f"""
    source(register, '{os.path.basename(register)}'). public(register). column(register, id, p(P)).
    column(register, age, age(P)). random(age(P)) :- p(P). range(age(P), 0, 110). missing(age(P), 50).
    source(visits, 'visits.parquet'). column(visits, id, p(P)). column(visits, cost, cost(P)).
    rows_per_person(visits, 1). random(cost(P)) :- p(P). range(cost(P), 0, 9). missing(cost(P), 0).
    dataset(visitors, domain(P, p(P))). privacy_requirement(o(pub), visitors, dp(1)).
    publish(ages, age(P), o(pub)) :- p(P). sum(s, cost(P), p(P)). publish(costs, s, o(pub)).
    """
    plan = make_plan(study, {"register": register})
    ledger = Ledger(folder / "ledger.db")
    before = len(ledger.history())
    with pytest.raises(LedgerError, match="register is declared public, and is private"):
        run_plan(plan, folder, ledger, grant=True)
    elsewhere = Ledger(folder / "other.db", beside=[folder / "ledger.db"])
    with pytest.raises(UnknownDatasetError, match="has its budget in"):
        run_plan(plan, folder, elsewhere, grant=True)
    assert (len(ledger.history()), elsewhere.datasets()) == (before, [])


# Every two ways to count the rows of one file, the file being the same, a copy or a link.


def _by_column(column):
    def publish(place, ledger):
        study = STUDY.replace("column(patients, id", f"column(patients, {column}").replace("people", f"by_{column}")
        run_plan(make_plan(study), {"patients": place}, ledger, grant=True)

    return publish


def _whole(place, ledger):
    schema = Schema({name: Interval(0, 110) for name in ("id", "age", "mail")})
    prepared = LaplaceRelease(schema, epsilon=0.5).prepare()
    release_file(place, prepared, ledger.path.parent / f"out{len(ledger.history())}", ledger, "whole", grant=True)


WAYS = {"id": _by_column("id"), "mail": _by_column("mail"), "whole": _whole}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("same", ["itself", "copy", "link"])
@pytest.mark.by_day(5)
def test_no_second_way_to_count_the_rows_opens_a_second_account(tmp_path, first, second, same):
    place, other = tmp_path / "patients.parquet", tmp_path / "other.parquet"
    parquet.write_table(table().append_column("mail", pa.array(range(40))), place)
    ledger = Ledger(tmp_path / "ledger.db")
    WAYS[first](place, ledger)
    if same == "copy":
        shutil.copy(place, other)
    elif same == "link":
        os.symlink(place, other)
    before = len(ledger.history())
    with pytest.raises(OverspendError if first == second else LedgerError):
        WAYS[second](place if same == "itself" else other, ledger)
    assert len(ledger.history()) == before
    assert len(ledger.datasets()) == 1


def test_synthetic_rows_of_one_file_are_counted_by_one_column(tmp_path):
    """A person has three visits: an account for persons does not pay for visits, whichever comes first."""
    visits = pa.table({"id": [n // 3 for n in range(60)], "visit": list(range(60)), "age": [50.0] * 60})
    parquet.write_table(visits, tmp_path / "visits.parquet")
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("visits", ApproxDP(100.0, 1e-3), adjacency=Adjacency("person", "replace-one"))

    def synthesized(people, number):
        schema = Schema({name: Interval(0, 110) for name in ("id", "visit", "age") if name != people})
        release = SyntheticRelease(schema, 1.0, 1e-6, people=people, buy_edges=False)
        synthesize_file(tmp_path / "visits.parquet", release, tmp_path / f"out{number}", ledger, "visits")

    synthesized("id", 1)
    synthesized("id", 2)
    before = len(ledger.history())
    with pytest.raises(LedgerError, match="another column"):
        synthesized("visit", 3)
    assert len(ledger.history()) == before
    study = STUDY.replace("patients", "visits").replace("dp(0.5)", "dp(0.5, 1e-6)")
    run_plan(make_plan(study), tmp_path, ledger)  # the same people, by another word
    assert ledger.balance("visits", "person").spent.eps == pytest.approx(2.5, rel=1e-6)


@pytest.mark.parametrize("command", ["run", "release", "synthesize"])
def test_a_command_that_is_stopped_has_its_ledger_known(tmp_path, monkeypatch, command):
    """Whatever happens after the reservation, the next command with another ledger finds this one."""
    parquet.write_table(table(), tmp_path / "patients.parquet")
    (tmp_path / "s.pl").write_text(STUDY)
    (tmp_path / "s.toml").write_text(Schema({"id": Interval(0, 110), "age": Interval(0, 110)}).to_toml())
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    whole = ["--schema", tmp_path / "s.toml", "--epsilon", 1, "--delta", 1e-6]
    arguments = {
        "run": [tmp_path / "s.pl", "--data", tmp_path],
        "release": [tmp_path / "patients.parquet", *whole],
        "synthesize": [tmp_path / "patients.parquet", *whole],
    }[command]

    def stopped(*_):
        raise KeyboardInterrupt

    def called(ledger, out):
        named = [command, *arguments, "--ledger", tmp_path / ledger, "--out", tmp_path / out, "--grant"]
        return CliRunner().invoke(app, list(map(str, named)))

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "commit", stopped)
        assert called("first.db", "one").exit_code != 0
    assert Ledger(tmp_path / "first.db").datasets() != []
    refusal = called("second.db", "two")
    assert isinstance(refusal.exception, UnknownDatasetError), refusal.output
    assert "first.db" in str(refusal.exception)


def test_another_relation_does_not_add(folder):
    study = STUDY.replace("people", "folk").replace("dataset(", "adjacency(folk, add_remove).\ndataset(")
    with pytest.raises(PrivacyParameterError, match="do not add"):
        run_plan(make_plan(study), folder, Ledger(folder / "ledger.db"), grant=True)


def test_data_of_two_accounts_is_charged_to_both(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    first, second = table(), table(60)
    run_plan(make_plan(STUDY), {"patients": first}, ledger, grant=True)
    run_plan(make_plan(STUDY.replace("people", "folk")), {"patients": second}, ledger, grant=True)
    person = ledger.balance("people", "patient").adjacency
    sources = [*table_sources(first, "id"), *table_sources(second, "id")]
    assert sorted(ledger.owners(sources)) == [("folk", "patient"), ("people", "patient")]
    with pytest.raises(LedgerError, match="budget belongs to the data"):
        ledger.grant("third", 1.0, adjacency=person, sources=sources)


@pytest.fixture
def rows(tmp_path):
    parquet.write_table(pa.table({"age": np.arange(100.0)}), tmp_path / "people.parquet")
    return tmp_path, LaplaceRelease(Schema({"age": Interval(0, 110)}), epsilon=1.0).prepare()


def test_a_released_table_keeps_its_account(rows):
    folder, prepared = rows
    ledger = Ledger(folder / "ledger.db")
    release_file(folder / "people.parquet", prepared, folder / "one", ledger, "people", grant=True)
    (folder / "parts").mkdir()
    shutil.copy(folder / "people.parquet", folder / "parts" / "0.parquet")
    with pytest.raises(OverspendError):
        release_file(folder / "people.parquet", prepared, folder / "two", ledger, "other", grant=True)
    with pytest.raises(OverspendError):
        release_file(folder / "parts" / "0.parquet", prepared, folder / "two", ledger, "other", grant=True)
    with pytest.raises(OverspendError):
        release_partitions(folder / "parts", prepared, folder / "two", ledger, "other", grant=True)
    assert ledger.datasets() == [("people", "record")]


def test_sources_are_kept_as_keyed_hashes(folder):
    bytes_of_ledger = (folder / "ledger.db").read_bytes()
    assert str(folder).encode() not in bytes_of_ledger
    for source in table_sources(folder / "patients.parquet", "id"):
        assert source.split("\0")[1].encode() not in bytes_of_ledger


# The first grant is a person's act


def test_without_a_grant_nothing_runs_and_the_message_has_the_command(tmp_path):
    parquet.write_table(table(), tmp_path / "patients.parquet")
    (tmp_path / "s.pl").write_text(STUDY)
    words = ["run", str(tmp_path / "s.pl"), "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    refusal = CliRunner().invoke(app, words)
    assert isinstance(refusal.exception, UnknownDatasetError)
    message = str(refusal.exception)
    assert "nothing was spent" in message
    assert not (tmp_path / "out").exists()
    command = re.search(r"`sfumato (ledger grant .*?)`", message).group(1)
    assert f"--ledger {(tmp_path / 'sfumato-ledger.db').resolve()}" in command
    granted = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
    assert granted.exit_code == 0, granted.output
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert f"ledger: {(tmp_path / 'sfumato-ledger.db').resolve()}" in done.output.replace("\n", "")
    assert Ledger(tmp_path / "sfumato-ledger.db").balance("people", "patient").remaining is None


def test_a_person_at_the_terminal_is_asked(tmp_path):
    asked = []

    def answer(question):
        asked.append(question)
        return len(asked) > 1

    plan = make_plan(STUDY)
    with pytest.raises(UnknownDatasetError):
        run_plan(plan, {"patients": table()}, tmp_path / "ledger.db", grant=answer)
    run_plan(plan, {"patients": table()}, tmp_path / "ledger.db", grant=answer)
    assert "0.5-DP under replacing one patient" in asked[0]


def test_the_default_ledger_lies_beside_the_real_data(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    csv.write_csv(table(), tmp_path / "data" / "patients.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "data" / "patients.csv")
    monkeypatch.chdir(tmp_path)
    expected = (tmp_path / "data" / "sfumato-ledger.db").resolve()
    for data in ("data", "data/patients.csv", "link.csv", tmp_path / "data"):
        assert default_ledger(data) == expected
    with pytest.raises(ValueError, match="--ledger"):
        default_ledger("s3://bucket/table")


def test_a_copy_in_another_folder_has_its_budget_where_it_was_granted(tmp_path, monkeypatch):
    """Another default ledger is no second account: the command knows which ledgers this user has charged."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        parquet.write_table(table(), tmp_path / name / "patients.parquet")
        (tmp_path / name / "s.pl").write_text(STUDY)

    def run(name, *more):
        monkeypatch.chdir(tmp_path / name)
        return CliRunner().invoke(app, ["run", "s.pl", "--data", ".", "--out", "out", "--grant", *more])

    assert run("here").exit_code == 0
    for more in ((), ("--ledger", "other.db")):
        refusal = run("there", *more)
        assert isinstance(refusal.exception, UnknownDatasetError)
        assert str(tmp_path / "here" / "sfumato-ledger.db") in str(refusal.exception)
    shared = str(tmp_path / "here" / "sfumato-ledger.db")
    assert isinstance(run("there", "--ledger", shared).exception, OverspendError)


def test_another_path_in_python_opens_no_second_account(tmp_path):
    """As at the command line; who says beside=() has decided that a ledger stands alone."""
    run_plan(make_plan(STUDY), {"patients": table()}, tmp_path / "one.db", grant=True)
    for again in (tmp_path / "two.db", str(tmp_path / "two.db"), Ledger(tmp_path / "two.db")):
        with pytest.raises(UnknownDatasetError, match=r"one\.db"):
            run_plan(make_plan(STUDY), {"patients": table()}, again, grant=True)
    run_plan(make_plan(STUDY), {"patients": table()}, Ledger(tmp_path / "trial.db", beside=()), grant=True)
