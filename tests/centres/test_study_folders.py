"""A study over centres by its commands' own functions: folders in, folders out; and word for word by the page."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.centres import network
from sfumato.centres.card import PartyCard, client_tls, server_tls
from sfumato.centres.node import Charge
from sfumato.cli.app import app
from sfumato.core import Adjacency, PureDP
from sfumato.errors import InputError, LedgerError, PlanError, RefusedError, RoundFailedError, SfumatoError
from sfumato.evidence.verify import verify
from sfumato.evidence.verify_plan import verify_folder
from sfumato.lang import load
from sfumato.ledger.ledger import Ledger
from sfumato.run.centre_home import COORDINATOR, Home, RoundFolder
from sfumato.run.centre_part import _prepared, coordinate_study, join_study
from sfumato.run.over_centres import study_round

ROOT = Path(__file__).parents[2]
NAMES = ("east", "north", "south", "west")


@pytest.fixture(autouse=True)
def one_second(monkeypatch):
    """A person needs half a minute to think again, a test does not."""
    monkeypatch.setattr(network.Coordination, "second_chance", 1.0)


@pytest.fixture
def here(tmp_path):
    """Four homes, the tables, and the folder of a round."""
    shutil.copytree(ROOT / "examples" / "centres", tmp_path, dirs_exist_ok=True)
    homes = {name: Home.make(tmp_path / name, name) for name in NAMES}
    leader = Home.make(tmp_path / COORDINATOR, COORDINATOR, address="127.0.0.1:0", ledger=False)
    cards = [home.card() for home in homes.values()]
    RoundFolder.make(tmp_path / "study.pl", cards, tmp_path / "round", leader.card(), {})
    return tmp_path


def play(here, names=NAMES, join_seconds=60.0, **options):
    """The coordinator and some centres in threads; what each of them returned or raised, and what it said."""
    found, said = {}, []

    def run(name, action):
        try:
            found[name] = action()
        except SfumatoError as error:
            found[name] = error

    def lead():
        home, shared = Home.open(here / COORDINATOR, COORDINATOR), RoundFolder.read(here / "round")
        return coordinate_study(shared, home, here / "published", join_seconds=join_seconds, tell=said.append)

    leader = threading.Thread(target=run, args=(COORDINATOR, lead))
    leader.start()
    while leader.is_alive() and not said:
        time.sleep(0.02)
    port = re.search(r":(\d+) for", said[0])[1]

    def join(name):
        home, data = Home.open(here / name, name), here / "tables" / name
        shared = RoundFolder.read(here / "round")
        return joined(
            shared, home, data, at=f"127.0.0.1:{port}", verify=lambda one: verify(one).ok,
            **{"grant": True, **options.get(name, {})},
        )  # fmt: skip

    others = [threading.Thread(target=run, args=(name, lambda name=name: join(name))) for name in names]
    for thread in others:
        thread.start()
    for thread in (*others, leader):
        thread.join(120)
        assert not thread.is_alive()
    return found, said


def last_action(here, name):
    return Ledger(here / name / "ledger.db").history("everybody")[-1].action


def test_a_study_over_four_hospitals(here):
    found, said = play(here)
    _, release = found[COORDINATOR]
    assert release["average"]["value"][0].as_py() == pytest.approx(4.35, abs=0.8)
    assert all(found[name]["average"].equals(release["average"]) for name in NAMES)
    assert all(last_action(here, name) == "commit" for name in NAMES)
    assert sum("joined" in text for text in said) == 4
    checks = verify_folder(here / "published", here / "study.pl")
    assert all(check.ok for check in checks), [check for check in checks if not check.ok]


@pytest.mark.slow
def test_who_refuses_is_told_with_the_reason_and_the_others_go_on(here):
    found, said = play(here, west={"grant": False})
    assert isinstance(found["west"], LedgerError)
    assert "--grant" in str(found["west"])
    assert "west refused: no budget was granted yet; it may come again within 1 s" in said
    assert json.loads((here / "published" / "run.json").read_text())["centres"]["absent"] == {
        "west": "refused: no budget was granted yet"
    }
    assert last_action(here, "north") == "commit"


@pytest.mark.slow
def test_who_was_refused_may_come_again_within_the_round(here, monkeypatch):
    """The first time without a grant: all others wait for it, and it is in the sum of the same round."""
    monkeypatch.setattr(network.Coordination, "second_chance", 60.0)
    tried = []

    def join_twice(*given, **options):
        if given[1].name == "west" and not tried:
            tried.append(True)
            with pytest.raises(LedgerError):
                join_study(*given, **{**options, "grant": False})
        return join_study(*given, **options)

    monkeypatch.setitem(globals(), "joined", join_twice)
    found, said = play(here)
    assert any(text.startswith("west refused: no budget was granted yet; it may come again") for text in said)
    assert len(json.loads((here / "published" / "run.json").read_text())["centres"]["included"]) == 4
    assert found["west"]["average"].equals(found["north"]["average"])
    assert last_action(here, "west") == "commit"


@pytest.mark.parametrize(
    ("spoilt", "reason"),
    [
        pytest.param("tables", "its tables are missing or not", marks=pytest.mark.slow),
        ("columns", "its tables are missing or not"),
        pytest.param("plan", "the round is not what it agreed to", marks=pytest.mark.slow),
        ("budget", "its budget does not allow it"),
    ],
)
@pytest.mark.by_day(1)
def test_the_coordinator_hears_the_right_reason(here, monkeypatch, spoilt, reason):
    def join_spoilt(shared, home, data, **options):
        if home.name == "west":
            data, shared = spoil(here, spoilt, shared, data)
        return join_study(shared, home, data, **options)

    monkeypatch.setitem(globals(), "joined", join_spoilt)
    found, said = play(here)
    assert isinstance(found["west"], SfumatoError)
    assert any(text.startswith("west refused:") and reason in text for text in said), said
    assert json.loads((here / "published" / "run.json").read_text())["centres"]["included"] == [
        "east",
        "north",
        "south",
    ]


def spoil(here, what, shared, data):
    match what:
        case "tables":
            return here / "nowhere", shared
        case "columns":
            (data / "patients.csv").write_text("id,age\nw1,30\n")
        case "plan":
            copy = shutil.copytree(shared.folder, here / "other")
            study = copy / "study.pl"
            study.write_text(study.read_text().replace("dp(1, 0.000001)", "dp(3, 0.000001)"))
            return data, dataclasses.replace(shared, folder=copy)
        case "budget":
            Ledger(here / "west" / "ledger.db").grant("everybody", PureDP(1e-3, adjacency=PATIENT))
    return data, shared


joined = join_study
PATIENT = Adjacency("patient", "replace-one")


STEPS = "step(1, publish(average)). step(2, publish(high)). step(2, publish(ages)).\n"


@pytest.mark.slow
def test_a_history_over_hospitals_is_one_account_at_each(here):
    """Step 1, step 2, and step 1 again, which every ledger refuses: its grant was for both, and nothing is left."""
    study = here / "study.pl"
    study.write_text(re.sub(r"(mean|publish)\(.*bySex.*\n", "", study.read_text(), flags=re.IGNORECASE) + STEPS)
    cards = [Home.open(here / name, name).card() for name in NAMES]
    leader = Home.open(here / COORDINATOR, COORDINATOR).card()
    found = {}
    for step in (1, 2, 1):
        for folder in ("round", "published"):
            shutil.rmtree(here / folder, ignore_errors=True)
        RoundFolder.make(study, cards, here / "round", leader, {}, step)
        found, said = play(here)
        if step == 2:
            _, release = found[COORDINATOR]
            assert {one.name for one in release.published} == {"high", "ages"}
    assert all(isinstance(found[name], LedgerError) for name in NAMES)
    assert any("refused: its ledger does not allow it" in text for text in said)
    assert "was released already" in str(found["north"]) or "read again" in str(found["north"])
    with pytest.raises(PlanError, match="--step N"):
        RoundFolder.make(study, cards, here / "other", leader, {})


@pytest.mark.slow
def test_too_many_refusals_end_the_round_at_once(here):
    start = time.monotonic()
    found, _ = play(here, join_seconds=600.0, west={"grant": False}, south={"grant": False})
    assert isinstance(found[COORDINATOR], RoundFailedError)
    assert "south (refused: no budget was granted yet)" in str(found[COORDINATOR])
    assert time.monotonic() - start < 120  # and not the ten minutes of joining
    assert last_action(here, "north") == "release"
    assert not (here / "published").exists()


def test_a_round_that_is_not_its_study_is_refused(here):
    path = here / "round" / "round.json"
    record = json.loads(path.read_text())
    record["round"]["summed"][0]["scale"] *= 0.5
    path.write_text(json.dumps(record))
    with pytest.raises(RefusedError, match="summed"):
        RoundFolder.read(here / "round").plan()
    record["round"]["summed"][0]["scale"] *= 2
    path.write_text(json.dumps(record))
    study = here / "round" / "study.pl"
    study.write_text(study.read_text().replace("dp(1, 0.000001)", "dp(3, 0.000001)"))
    with pytest.raises(RefusedError, match="made for another study"):
        RoundFolder.read(here / "round").plan()


def test_a_plan_with_less_noise_than_the_study_asks_for_is_refused(here):
    """Changed in both files, hashes and all: the centre derives the promises from the study's own words."""
    shared = RoundFolder.read(here / "round")
    honest = shared.plan()
    louder = dataclasses.replace(
        honest, draws=tuple(dataclasses.replace(draw, scale=draw.scale * 0.5) for draw in honest.draws)
    )
    (here / "round" / "plan.json").write_text(louder.to_json())
    agreed = study_round(louder, shared.round.centres)
    record = json.loads((here / "round" / "round.json").read_text())
    (here / "round" / "round.json").write_text(json.dumps({**record, "round": agreed.to_dict()}))
    with pytest.raises(RefusedError, match="does not follow from the study"):
        RoundFolder.read(here / "round").plan()


def test_another_key_or_another_name_is_refused(here):
    shutil.rmtree(here / "west")
    with pytest.raises(RefusedError, match="another key"):
        join_study(RoundFolder.read(here / "round"), Home.make(here / "west", "west"), here / "tables" / "west")
    with pytest.raises(RefusedError, match="no centre of this round"):
        join_study(RoundFolder.read(here / "round"), Home.make(here / "oslo", "oslo"), here / "tables" / "west")
    with pytest.raises(InputError, match="another key"):
        PartyCard(
            "west",
            Home.open(here / "north", "north").card().identity,
            Home.open(here / "west", "west").card().certificate,
        )


def test_a_stranger_without_a_card_hears_nothing(here):
    """Not even the challenge: TLS ends before a word of the protocol, and the round goes on without noticing."""
    shared = RoundFolder.read(here / "round")
    stranger = Home.make(here / "oslo", "oslo")
    server = server_tls(here / COORDINATOR / "key.pem", Home.open(here / COORDINATOR, COORDINATOR).card(), shared.cards)
    heard = []

    async def knock(tls):
        async def welcome(reader, writer):
            writer.write(b"a challenge")
            writer.close()

        listening = await asyncio.start_server(welcome, "127.0.0.1", 0, ssl=server)
        port = listening.sockets[0].getsockname()[1]
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            heard.append(await reader.read())
            writer.close()
        finally:
            listening.close()

    for own, who in ((stranger, shared.coordinator), (Home.open(here / "north", "north"), stranger.card())):
        with suppress(ssl.SSLError, ConnectionError):
            asyncio.run(knock(client_tls(own.key_file, own.card(), who)))
    assert not any(heard)
    heard.clear()
    north = Home.open(here / "north", "north")
    asyncio.run(knock(client_tls(north.key_file, north.card(), shared.coordinator)))
    assert heard == [b"a challenge"]


def test_every_first_mistake_names_the_next_command(here):
    def said(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        return str(done.exception) if done.exception else done.output

    round_folder, tables = here / "round", here / "tables" / "north"
    assert "sfumato coordinate init" in said("centre", "join", here / "tables", "--as", "north", "--data", tables,
                                             "--home", here / "north")  # fmt: skip
    assert "sfumato centre init oslo" in said("centre", "join", round_folder, "--as", "oslo", "--data", tables)
    assert "sfumato run STUDY.pl --centres" in said("centre", "join", round_folder, "--as", "north", "--data", tables,
                                                    "--home", here / "north", "--at", "127.0.0.1:9")  # fmt: skip
    assert "--data" in said("centre", "join", round_folder, "--as", "north", "--data", here / "nowhere",
                            "--home", here / "north")  # fmt: skip
    assert "sfumato centre init NAME" in said("coordinate", "init", here / "study.pl", here / "study.pl")
    assert "north" in said("coordinate", "init", here / "study.pl", here / "west" / "west.card", "--out", here / "r",
                           "--home", here / COORDINATOR)  # fmt: skip
    assert "--centres" in said("run", here / "study.pl", "--out", here / "out")
    assert "sfumato centre join" in said("run", here / "study.pl", "--centres", round_folder, "--out", here / "out",
                                         "--grant")  # fmt: skip
    assert "--step 2" in said("run", here / "study.pl", "--centres", round_folder, "--out", here / "out", "--at", 2)
    assert "sfumato coordinate init" in said("run", here / "study.pl", "--data", tables, "--out", here / "out",
                                             "--ledger", here / "l.db")  # fmt: skip


def test_a_taken_address_names_the_way_out(here):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match="--listen"):
            coordinate_study(
                RoundFolder.read(here / "round"), Home.open(here / COORDINATOR, COORDINATOR), None, listen=listen
            )


@pytest.mark.slow
def test_the_page_word_for_word(tmp_path):
    """The first block of the page, each line as a process of its own: those that wait go on beside each other."""
    page = (ROOT / "docs" / "howto" / "hospitals.md").read_text(encoding="utf-8")
    lines = re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1].splitlines()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    folder, commands = tmp_path / lines[0].removeprefix("cd "), lines[1:]
    assert len(commands) <= 8
    program = Path(sys.executable).with_name("sfumato")
    waiting = []
    own = {**os.environ, "SFUMATO_STATE": str(tmp_path / "state")}
    for command in commands:
        words = [str(program), *shlex.split(command)[1:]]
        if words[1] == "run" or words[1:3] == ["centre", "join"]:
            waiting.append(subprocess.Popen(words, cwd=folder, env=own, stdout=subprocess.PIPE, text=True))
            if words[1] == "run":
                assert "Waiting" in waiting[0].stdout.readline()
            continue
        for process in waiting:
            text, _ = process.communicate(timeout=120)
            assert process.returncode == 0, text
            # The coordinator ends with what was published, and not with what was planned.
            assert process is not waiting[0] or "95 % from" in text, text
        done = subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert len(waiting) == 5
    assert (folder / "published" / "report.html").is_file()


@pytest.mark.parametrize("place", ["no/such/folder", "link", "tables"])
def test_a_place_that_cannot_be_used_is_told_before_anybody_pays(here, place):
    """Whoever collects the sum is told at once, not with a sum in hand that all have paid for; and so is a centre."""
    (here / "link").symlink_to(here / "nowhere")
    home, shared, said = Home.open(here / COORDINATOR, COORDINATOR), RoundFolder.read(here / "round"), []
    with pytest.raises(InputError, match="Nothing was spent"):
        coordinate_study(shared, home, here / place, tell=said.append)
    assert not said  # nobody was waited for
    with pytest.raises(InputError, match="Nothing was spent"):
        join_study(shared, Home.open(here / "west", "west"), here / "tables" / "west", out=here / place, grant=True)
    assert not Ledger(here / "west" / "ledger.db").datasets()


def test_who_takes_part_already_is_told_so_and_not_to_raise_the_budget(here):
    shared, home = RoundFolder.read(here / "round"), Home.open(here / "north", "north")
    book = Ledger(home.ledger_file)
    part = _prepared(shared, home, here / "tables" / "north", book, True, print)
    part.purse.reserve(part.course.round, "first call", [])
    with pytest.raises(RefusedError, match=r"takes part in this study already.*Only if it was killed.*ledger raise"):
        _prepared(shared, home, here / "tables" / "north", book, True, print)


def killed_before_it_sent(here, name="north"):
    """What a process leaves that joined, said its keys, and was killed."""
    shared, home = RoundFolder.read(here / "round"), Home.open(here / name, name)
    part = _prepared(shared, home, here / "tables" / name, Ledger(home.ledger_file), True, print)
    charge = Charge(part.course.round.fresh(), name, part.purse)
    charge.reserve()
    charge.register.claim(charge.agreed.hash, name, "keys")
    assert last_action(here, name) == "reserve"
    return charge


def test_who_was_killed_before_anything_was_sent_joins_again_with_the_same_budget(here):
    killed_before_it_sent(here)
    found, _ = play(here)
    assert all(last_action(here, name) == "commit" for name in NAMES), found
    history = Ledger(here / "north" / "ledger.db").history("everybody")
    assert [one.action for one in history] == ["grant", "reserve", "release", "reserve", "commit"]


@pytest.mark.parametrize("sent", [False, True])
def test_settling_gives_back_what_never_left_and_nothing_else(here, sent):
    charge = killed_before_it_sent(here)
    if sent:
        charge.register.claim(charge.agreed.hash, "north", "masked")
    unit = Ledger(here / "north" / "ledger.db").datasets()[0][1]
    book = str(here / "north" / "ledger.db")
    done = CliRunner().invoke(app, ["ledger", "settle", "everybody", "--unit", unit, "--ledger", book, "--yes"])
    assert done.exit_code == 0
    assert ("given back" in done.output) != sent
    assert last_action(here, "north") == ("commit" if sent else "release")


@pytest.mark.parametrize("cards", [("north", "north"), ("north", "copied"), ("north", "renamed")])
def test_cards_of_one_centre_are_named(here, cards):
    card = here / "north" / "north.card"
    shutil.copy(card, here / "copied.card")
    dataclasses.replace(PartyCard.read(card), name="other").write(here / "renamed.card")
    files = [str(card if name == "north" else here / f"{name}.card") for name in cards]
    done = CliRunner().invoke(app, ["coordinate", "init", str(here / "study.pl"), *files, "--out", str(here / "new")])
    assert "sfumato centre init NAME" in str(done.exception)
    assert "Nothing was made" in str(done.exception)
    assert not (here / "new").exists()


def test_central_noise_needs_somebody_who_is_trusted(here):
    text = (here / "study.pl").read_text()
    name = re.search(r"publish\((\w+),", text)[1]
    with pytest.raises(SfumatoError, match="no party is trusted"):
        load(f"{text}\nprefer({name}, central).")
