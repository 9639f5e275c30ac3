"""Folders of releases: what can fail is tried before anything is spent, and what is paid is never removed."""

from __future__ import annotations

import json
import os
import shutil

import pyarrow as pa
import pytest

from sfumato.cli.study import plan_table
from sfumato.errors import InputError, OverspendError, UnfinishedError
from sfumato.evidence.verify_plan import verify_folder
from sfumato.ledger.ledger import Ledger
from sfumato.plan.make import make_plan
from sfumato.run import staging
from sfumato.run import study as running
from sfumato.run.names import file_stems
from sfumato.run.staging import Staging, _place
from sfumato.run.study import read_release, run_plan

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
mean(m, age(P), patient(P)).
"""
PUBLISH = "publish(average, m, openness(public)).\n"
TABLE = {"patients": pa.table({"id": list(range(50)), "age": [float(20 + number) for number in range(50)]})}


@pytest.fixture(scope="module")
def plan():
    return make_plan(STUDY + PUBLISH)


@pytest.fixture
def ledger(tmp_path, plan):
    book = Ledger(tmp_path / "ledger.db")
    book.grant("people", 5.0, adjacency=plan.promises[0].asked.adjacency)
    return book


def spent_nothing(ledger):
    return [record.action for record in ledger.history()] == ["grant"]


# What can fail is tried first


def test_a_place_that_cannot_be_taken_costs_nothing(tmp_path, plan, ledger):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    places = ["link", "dangling", "file", "full", "missing/out", "n" * 300, ".", "..", "full/..", "file/below"]
    for place in places:
        with pytest.raises(InputError, match=r"[Nn]othing was"):
            run_plan(plan, TABLE, ledger, out=tmp_path / place)
    assert spent_nothing(ledger)
    assert (tmp_path / "full" / "mine").read_text() == "mine"


def test_a_rename_that_will_fail_is_found_before_the_reservation(tmp_path, plan, ledger, monkeypatch):
    """As at a mount point: the rehearsal of the last step fails, and nothing was drawn."""

    rename = os.rename

    def busy(old, new):
        if new == tmp_path / "out":
            raise OSError(16, "Device or resource busy")
        rename(old, new)

    monkeypatch.setattr(os, "rename", busy)
    with pytest.raises(InputError, match=r"busy.*Nothing was drawn or spent"):
        run_plan(plan, TABLE, ledger, out=tmp_path / "out")
    assert spent_nothing(ledger)
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith("ledger.db")]


def test_a_full_disk_is_found_before_the_reservation(tmp_path, plan, ledger, monkeypatch):
    monkeypatch.setattr(running, "_room", lambda *_: 1 << 60)
    with pytest.raises(InputError, match="Nothing was drawn or spent"):
        run_plan(plan, TABLE, ledger, out=tmp_path / "out")
    assert spent_nothing(ledger)


def test_an_empty_folder_is_taken_and_given_back_after_a_refusal(tmp_path, plan):
    ledger, out = Ledger(tmp_path / "ledger.db"), tmp_path / "out"
    out.mkdir()
    with pytest.raises(Exception, match="first grant"):
        run_plan(plan, TABLE, ledger, out=out)
    assert out.is_dir()
    run_plan(plan, TABLE, ledger, out=out, grant=True)
    assert (out / "certificate.json").is_file()


# What is paid stays


def test_a_rename_that_fails_after_the_commit_loses_nothing(tmp_path, plan, ledger, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "_show", lambda self: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        with pytest.raises(UnfinishedError, match=r"complete and paid for.*\.partial.*resume=True"):
            run_plan(plan, TABLE, ledger, out=out)
    hidden = _place(out)
    drawn = (hidden / "results" / "average.public.json").read_bytes()
    with pytest.raises(InputError, match="complete result"):
        run_plan(plan, TABLE, ledger, out=out)  # not drawn again, and not removed
    release = run_plan(plan, TABLE, ledger, out=out, resume=True)
    assert (out / "results" / "average.public.json").read_bytes() == drawn
    assert release["average"].to_pylist() == json.loads(drawn)
    assert [record.action for record in ledger.history()] == ["grant", "reserve", "commit"]
    assert not hidden.exists()
    assert not list(out.rglob(".*"))
    assert all(check.ok for check in verify_folder(out))


def test_what_waits_is_published_only_as_it_was_drawn(tmp_path, plan, ledger, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(running, "_commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_plan(plan, TABLE, ledger, out=out)
    path = _place(out) / "results" / "average.public.json"
    text = path.read_text()
    path.write_text(text.replace("average", "avarage").replace("m", "n", 1))
    with pytest.raises(InputError, match="was changed"):
        run_plan(plan, TABLE, ledger, out=out, resume=True)
    path.write_text(text)
    with pytest.raises(InputError, match="Give that ledger"):
        run_plan(plan, TABLE, Ledger(tmp_path / "other.db"), out=out, resume=True)
    ledger.release(ledger.reservation(ledger.history()[-1].reservation))
    with pytest.raises(InputError, match="was released"):
        run_plan(plan, TABLE, ledger, out=out, resume=True)
    assert path.is_file()


def test_only_one_process_makes_a_folder(tmp_path, plan, ledger):
    with (
        Staging.open(tmp_path / "out", "another run", again="try again."),
        pytest.raises(InputError, match="Another process"),
    ):
        run_plan(plan, TABLE, ledger, out=tmp_path / "out")
    assert spent_nothing(ledger)


@pytest.mark.parametrize("name", ["backup", "killed", "old.partial", "00000000.partial"])
def test_folders_of_others_are_left_alone(tmp_path, plan, ledger, name):
    other = tmp_path / f".out.{name}"
    other.mkdir()
    for file in ("plan.json", staging.MARKER):
        (other / file).write_text(json.dumps({"program": "sfumato", "out": str(tmp_path / "x"), "state": "drawing"}))
    run_plan(plan, TABLE, ledger, out=tmp_path / "out")
    assert (other / "plan.json").is_file()


def test_a_strange_folder_in_the_way_is_named_and_kept(tmp_path, plan, ledger):
    hidden = _place(tmp_path / "out")
    hidden.mkdir()
    (hidden / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="not made by sfumato"):
        run_plan(plan, TABLE, ledger, out=tmp_path / "out")
    assert (hidden / "thesis.txt").read_text() == "mine"
    assert spent_nothing(ledger)


# Names


def test_case_long_names_and_other_letters_make_different_files():
    names = [
        ("Total", "public"), ("total", "public"), ("TOTAL", "public"), ("a" * 400, "o"), ("a" * 400 + "b", "o"),
        ("é", "o"), ("e\u0301", "o"), ("è", "o"), ("", "o"), (" ", "o"), ("con", "o"), ("NUL", "o"), ("..", ".."),
        ("a/b", "o"), ("a_b", "o"), ("a.b", "c"), ("a", "b.c"), ("-rf", "o"), ("x\x00", "o"), ("\udc80", "o"),
    ]  # fmt: skip
    stems = file_stems(names)
    assert len({stem.lower() for stem in stems.values()}) == len(names)
    for stem in stems.values():
        assert stem.isascii()
        assert len(stem) < 180
        assert stem.split(".")[0].lower() not in ("con", "nul")
        assert stem[0] not in ".-"
    assert stems["Total", "public"] != "Total.public"
    assert file_stems([("Total", "public")])["Total", "public"] == "Total.public"


@pytest.mark.parametrize(
    "publications",
    [
        f"publish({'a' * 300}, m, openness(public)).\n",
        "publish('Total', m, openness(public)).\npublish(total, m, openness(public)).\n",
        "".join(f"publish('{name}', m, openness(public)).\n" for name in ("über", "con", "a b")),
    ],
)
def test_any_name_is_published_read_back_and_verified(tmp_path, publications):
    plan = make_plan(STUDY + publications)
    out = tmp_path / "out"
    release = run_plan(plan, TABLE, tmp_path / "ledger.db", out=out, grant=True)
    stored = read_release(out)
    for one in release.published:
        assert stored[one.name, one.observer].equals(one.values)
    assert set(stored.certificates) == set(release.certificates)
    assert all(check.ok for check in verify_folder(out))


def test_two_observers_never_share_a_file(tmp_path):
    """Long and odd names of observers and datasets, with promises a million apart."""
    line = "privacy_requirement(openness(public), people, dp(0.5)).\n"
    many = line.replace("public", "'Obs?'").replace("0.5", "0.001") + line.replace("public", "'obs?'").replace(
        "0.5", "9"
    )
    study = STUDY.replace(line, many).replace("people", "p" * 300)
    study += "publish(average, m, openness('Obs?')).\npublish(average, m, openness('obs?')).\n"
    release = run_plan(make_plan(study), TABLE, tmp_path / "ledger.db", out=tmp_path / "out", grant=True)
    stored = read_release(tmp_path / "out")
    for one in release.published:
        assert stored[one.name, one.observer].equals(one.values)
    assert len({path.name.lower() for path in (tmp_path / "out" / "results").glob("*.parquet")}) == 2


def test_markup_in_names_is_text(tmp_path, capsys):
    from rich.console import Console

    plan = make_plan(STUDY + "publish('[red]a[/]', m, openness(public)).\n")
    Console(width=200).print(plan_table(plan))
    assert "[red]a[/]" in capsys.readouterr().out


def test_an_unwritable_folder_costs_nothing(tmp_path, plan, ledger):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(InputError, match="Nothing was drawn or spent"):
        run_plan(plan, TABLE, ledger, out=closed / "out")
    shutil.rmtree(closed)
    assert spent_nothing(ledger)


def test_a_second_run_over_budget_leaves_no_folder(tmp_path, plan):
    ledger = Ledger(tmp_path / "ledger.db")
    run_plan(plan, TABLE, ledger, out=tmp_path / "one", grant=True)
    with pytest.raises(OverspendError):
        run_plan(plan, TABLE, ledger, out=tmp_path / "two", grant=True)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("ledger.db")] == ["one"]
