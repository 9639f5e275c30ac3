"""Ctrl-C between reservation and end: money is given back only if nothing was drawn, and the way on is told."""

from __future__ import annotations

import re
import shlex
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from run.test_staging import PUBLISH, STUDY, TABLE
from sfumato.cli.app import app, main
from sfumato.core import Adjacency
from sfumato.errors import InputError, LedgerError, OverspendError, UnfinishedError
from sfumato.ledger import ledger as books
from sfumato.ledger.ledger import Ledger
from sfumato.plan.make import make_plan
from sfumato.run import study as running
from sfumato.run import tables as releasing
from sfumato.run.interruption import Payment
from sfumato.run.study import run_plan

PERSON = Adjacency("patient", "replace-one")


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.pl").write_text(STUDY + PUBLISH, encoding="utf-8")
    pq.write_table(TABLE["patients"], tmp_path / "patients.parquet")
    return tmp_path


def command(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result, " ".join(f"{result.output} {result.exception or ''}".split())


def run_words(folder, *more):
    places = ("--data", folder, "--out", folder / "out", "--ledger", folder / "l.db")
    return ("run", folder / "study.pl", *places, *more)


def actions(folder):
    return [record.action for record in Ledger(folder / "l.db").history()]


def test_before_any_noise_the_reservation_is_given_back(folder, monkeypatch):
    monkeypatch.setattr(Payment, "begin", interrupt)
    result, said = command(*run_words(folder, "--grant"))
    assert result.exit_code != 0
    assert "before any noise was drawn" in said
    assert actions(folder) == ["grant", "reserve", "release"]
    monkeypatch.undo()
    assert command(*run_words(folder))[0].exit_code == 0


def test_while_noise_is_drawn_it_stays_and_the_way_on_is_complete(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(running, "_drawn_release", interrupt)
        _, said = command(*run_words(folder, "--grant"))
    assert "noise may have been drawn" in said
    assert actions(folder) == ["grant", "reserve"]
    grant, settle = re.findall(r"`(sfumato ledger .*?)`", said)
    _, again = command(*run_words(folder))
    assert "1 reservation(s) of unfinished runs" in again
    assert grant in again  # the refusal names the same command
    assert command(*shlex.split(settle)[1:])[0].exit_code == 0
    assert actions(folder) == ["grant", "reserve", "commit"]
    assert command(*shlex.split(grant)[1:])[0].exit_code == 0
    assert command(*run_words(folder))[0].exit_code == 0


def test_when_complete_it_is_resumed(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(running, "_commit", interrupt)
        _, said = command(*run_words(folder, "--grant"))
    (resume,) = re.findall(r"`(sfumato run .*? --resume)`", said)
    assert "--resume" in command(*run_words(folder))[1]
    assert command(*shlex.split(resume)[1:])[0].exit_code == 0
    assert actions(folder) == ["grant", "reserve", "commit"]
    result, said = command(*run_words(folder))
    assert result.exit_code != 0
    assert "add --resume" in said


def test_from_python_the_interruption_stays_one(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "_drawn_release", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_plan(make_plan(STUDY + PUBLISH), TABLE, tmp_path / "l.db", grant=True)
    assert "stays reserved" in caught.value.__notes__[0]


def test_before_the_reservation_nothing_is_spent(folder, monkeypatch):
    monkeypatch.setattr(running, "_evaluated", interrupt)
    _, said = command(*run_words(folder, "--grant"))
    assert "nothing was spent" in said
    assert actions(folder) == []


def test_the_command_ends_with_the_code_of_an_interruption(folder, monkeypatch, capsys):
    monkeypatch.setattr(running, "_drawn_release", interrupt)
    monkeypatch.setattr(sys, "argv", ["sfumato", *map(str, run_words(folder, "--grant"))])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "noise may have been drawn" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("kept", [True, False])
def test_a_table_release_is_told_the_same(tmp_path, monkeypatch, kept):
    pq.write_table(pa.table({"age": [20.0, 30.0]}), tmp_path / "t.parquet")
    columns = '[columns.age]\nkind = "interval"\nnull = 40\nlow = 0\nhigh = 110\n'
    (tmp_path / "s.toml").write_text(columns, encoding="utf-8")
    monkeypatch.setattr(*((releasing, "_stream", interrupt) if kept else (Payment, "begin", interrupt)))
    places = ("--schema", tmp_path / "s.toml", "--out", tmp_path / "out", "--ledger", tmp_path / "l.db")
    _, said = command("release", tmp_path / "t.parquet", *places, "--epsilon", 1, "--delta", 0.001, "--grant")
    assert ("noise may have been drawn" if kept else "before any noise was drawn") in said
    assert actions(tmp_path) == ["grant", "reserve", *([] if kept else ["release"])]


# ── settling and granting ────────────────────────────────────────────────────────────────────────────────────────────


def test_settling_asks_first_and_frees_nothing(tmp_path):
    book = Ledger(tmp_path / "l.db")
    book.grant("people", 1.0, adjacency=PERSON)
    book.reserve("people", 0.4, adjacency=PERSON, purpose="mean age")
    words = ("ledger", "settle", "people", "--unit", "patient", "--ledger", tmp_path / "l.db")
    _, said = command(*words)
    assert "mean age" in said
    assert "--yes" in said
    assert actions(tmp_path) == ["grant", "reserve"]
    _, said = command(*words, "--yes")
    assert "spent 0.4-DP, left 0.6-DP" in said
    assert "no open reservation" in command(*words, "--yes")[1]
    assert actions(tmp_path) == ["grant", "reserve", "commit"]


@pytest.mark.parametrize("metric", ["dp(0.5)", "dp(0.5, 0.000001)", "gdp(0.5)", "zcdp(0.1)"])
@pytest.mark.by_day(1)
def test_a_refusal_names_the_command_that_works(folder, metric):
    (folder / "study.pl").write_text(STUDY.replace("dp(0.5)", metric) + PUBLISH, encoding="utf-8")
    assert command(*run_words(folder, "--grant"))[0].exit_code == 0
    (folder / "out").rename(folder / "first")
    result, said = command(*run_words(folder))
    assert isinstance(result.exception, OverspendError)
    (grant,) = re.findall(r"`(sfumato ledger raise .*?)`", said)
    assert command(*shlex.split(grant)[1:])[0].exit_code == 0
    assert command(*run_words(folder))[0].exit_code == 0


def test_a_second_unit_is_asked_for(tmp_path):
    book = Ledger(tmp_path / "l.db")
    book.grant("people", 1.0, adjacency=PERSON)
    words = ("ledger", "grant", "people", "--epsilon", 2, "--ledger", tmp_path / "l.db")
    result, said = command(*words)
    assert isinstance(result.exception, LedgerError)
    assert "already has a budget with the unit patient" in said
    assert actions(tmp_path) == ["grant"]
    _, said = command(*words, "--unit", "record")
    assert "also has a budget with the unit patient" in said
    assert [unit for _, unit in Ledger(tmp_path / "l.db").datasets()] == ["patient", "record"]


def test_a_release_of_another_plan_is_still_in_the_way(folder):
    assert command(*run_words(folder, "--grant"))[0].exit_code == 0
    other = make_plan(STUDY.replace("0, 110", "0, 100") + PUBLISH)
    with pytest.raises(InputError, match="not an empty folder"):
        run_plan(other, TABLE, books.Ledger(folder / "l.db"), out=folder / "out")


def test_a_folder_of_parts_is_gone_on_with_by_the_same_command(tmp_path, monkeypatch):
    """Each part has a stream of its own, so what is said is: nothing is drawn twice, or settle."""
    from sfumato.run import partition_release

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(partition_release, "release_partitions", stop)
    (tmp_path / "parts").mkdir()
    pq.write_table(pa.table({"age": [20.0, 30.0]}), tmp_path / "parts" / "a.parquet")
    (tmp_path / "s.toml").write_text('[columns.age]\nkind = "interval"\nnull = 40\nlow = 0\nhigh = 110\n')
    book = tmp_path / "my ledger.db"
    places = {"--schema": tmp_path / "s.toml", "--out": tmp_path / "out", "--ledger": book}
    options = [str(word) for option in places.items() for word in option]
    words = ["release", str(tmp_path / "parts"), "--epsilon", "1", "--delta", "1e-6", *options]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UnfinishedError), result.output
    assert "The same command goes on" in str(result.exception)
    assert f"sfumato ledger settle parts --unit record --ledger '{book}' --yes" in str(result.exception)
