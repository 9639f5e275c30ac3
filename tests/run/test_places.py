"""Folders and files may be given as text, wherever a person who writes Python gives one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sfumato import make_plan, run_plan
from sfumato.centres.card import PartyCard
from sfumato.evidence.explain import explain
from sfumato.evidence.recipient import recipient_text
from sfumato.evidence.trace import find_result, study_network, trace_person, trace_result
from sfumato.evidence.verify_plan import verify_folder
from sfumato.run.centre_home import Home, RoundFolder
from sfumato.run.forget import read_forgotten
from sfumato.run.study import read_release, tables_in
from sfumato.run.study_file import run_study

#: The modules whose functions are called by name, from a notebook or a script.
CALLED = (
    *("run.study", "run.study_file", "run.forget", "run.centre_part", "run.centre_home", "run.synthesize"),
    *("run.tables", "run.partition_release", "run.partition_obfuscated", "centres.card", "ledger.ledger"),
    *("evidence.explain", "evidence.trace", "evidence.recipient", "evidence.verify", "evidence.verify_plan"),
    *("network.draw", "lang.load", "plan.plan", "plan.make", "core.certificate", "learn.model_document"),
    *("study.builder", "study.planned", "study.released"),
)
#: What other parts of the library hand a Path to: they are called with what a caller's text became.
INNER = {"assembled", "public_tables", "needs_of_steps", "new_key", "read_key", "client_tls", "server_tls"}
INNER |= {"write_facts", "check_workers", "opened_beside"}

STUDY = """
source(people, 'people.csv'). column(people, id, person(P)). column(people, x, x(P)).
rows_per_person(people, 1). missing(people, never). random(x(P)) :- person(P). range(x(P), 0, 10).
dataset(town, domain(P, person(P))). privacy_requirement(s(pub), town, dp(1)).
sum(total, x(P), person(P)). publish(total, total, s(pub)).
"""


def functions(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    room = import_module(f"sfumato.{module}")
    for name in getattr(room, "__all__", ()):
        found = getattr(room, name)
        members = inspect.getmembers(found, inspect.isroutine) if inspect.isclass(found) else [(name, found)]
        for own, function in members:
            if inspect.isfunction(getattr(function, "__func__", function)) and not own.startswith("_"):
                yield own, function


@pytest.mark.parametrize("module", CALLED)
def test_every_place_may_be_text(module):
    for name, function in functions(module):
        for parameter in inspect.signature(function).parameters.values():
            kind = str(parameter.annotation)
            place = re.search(r"\bPath\b", kind) and name not in INNER
            assert not place or re.search(r"\bstr\b|\bPlace\b", kind), f"{module}.{name}({parameter.name}: {kind})"


def test_text_does_what_a_path_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("id,x\n" + "".join(f"u{number},{number}\n" for number in range(9)))
    Path("study.pl").write_text(STUDY)
    Path("gone.pl").write_text("forget(u1).\n")
    plan = make_plan("study.pl")
    release = run_plan(plan, ".", "ledger.db", out="published", grant=True)
    assert release.folder == Path("published")
    assert read_release("published")["total"] == read_release(Path("published"))["total"]
    assert tables_in(plan, ".") == tables_in(plan, Path())
    checks = verify_folder("published", "study.pl")
    assert checks == verify_folder(Path("published"), Path("study.pl"))
    assert all(check.ok for check in checks)
    for told in (explain, recipient_text):
        assert told(plan, folder="published") == told(plan, folder=Path("published"))
    assert trace_result(plan, "total", folder="published") == trace_result(plan, "total", folder=Path("published"))
    assert trace_person(plan, "u1", "published") == trace_person(plan, "u1", Path("published"))
    assert find_result("total", "published") == (Path("published"), "total", None)
    assert study_network(plan, "study.pl", {}).spec == plan.network.spec
    assert len(read_forgotten("gone.pl")) == 1
    again, _ = run_study("study.pl", ".", "again", "ledger.db", dry_run=True, forgotten="gone.pl")
    assert again.study_digest == plan.study_digest
    assert (tmp_path / "again" / "plan.json").is_file()


def test_a_centre_may_say_by_text_where_it_lives(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.pl").write_text(STUDY + "centre(north). centre(south). colluders(0). absences(0).\n")
    homes = [Home.make(name, name, address="localhost:1") for name in ("north", "south", "board")]
    north, south, board = (PartyCard.read(str(home.card_file)) for home in homes)
    assert Home.open("north", "north").card() == north
    north.write("copy.card")
    assert PartyCard.read("copy.card") == north
    made = RoundFolder.make("study.pl", [north, south], "round", board, {"town": 9})
    assert RoundFolder.read("round").round == made.round
