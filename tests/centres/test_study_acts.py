"""Tables and models of a study over four hospitals, over sockets: every stage a round, paid for once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from centres.test_study_folders import COORDINATOR, NAMES, last_action, play
from sfumato.centres.network import Coordination
from sfumato.errors import RoundFailedError
from sfumato.evidence.verify_plan import verify_folder
from sfumato.ledger.ledger import Ledger
from sfumato.run import centre_part
from sfumato.run.centre_home import Home, RoundFolder

ROOT = Path(__file__).parents[2]
ACTS = """
publish(line, regression(kalium(P), [age(P), sex(P)]), care(public)).
publish(grouped, classifier(sex(P), [age(P), kalium(P)]), care(public)). prefer(grouped, [logistic_steps]).
publish(rows, synthetic([age(P), sex(P)], for(sex(P))), care(public)).
"""


@pytest.fixture
def here(tmp_path):
    shutil.copytree(ROOT / "examples" / "centres", tmp_path, dirs_exist_ok=True)
    study = tmp_path / "study.pl"
    text = study.read_text().split("mean(meanKalium")[0] + "count(everyone, patient(P)). " + ACTS
    study.write_text(text.replace("missing(kalium(P), skip)", "missing(kalium(P), 4)"))
    homes = {name: Home.make(tmp_path / name, name) for name in NAMES}
    leader = Home.make(tmp_path / COORDINATOR, COORDINATOR, address="127.0.0.1:0", ledger=False)
    RoundFolder.make(study, [home.card() for home in homes.values()], tmp_path / "round", leader.card(), {})
    return tmp_path


def test_models_and_rows_of_everybody(here):
    found, said = play(here)
    print(*said, *(one for one in found.values() if isinstance(one, Exception)), sep="\n")  # shown where this fails
    assert [one for one in found.values() if isinstance(one, Exception)] == [], said
    _, release = found[COORDINATOR]
    assert release["rows"].num_rows == 1000
    for name in NAMES:
        for one in ("line", "grouped", "rows"):
            assert found[name][one].equals(release[one])
    table = {"age(P)": np.array([30.0, 70.0]), "sex(P)": np.array(["f", "m"])}
    assert np.all(np.abs(release.model("line").predict(table) - 5) < 4)
    assert all(check.ok for check in verify_folder(here / "published", here / "study.pl"))
    record = json.loads((here / "published" / "run.json").read_text())["centres"]
    assert [one["included"] for one in record["later"]] == [list(NAMES)] * len(record["later"])
    assert sum(text.startswith("round ") for text in said) == len(record["later"])
    for name in NAMES:
        entries = Ledger(here / name / "ledger.db").history("everybody")
        assert [entry.action for entry in entries].count("reserve") == 1
        assert entries[-1].action == "commit"


@pytest.mark.slow
def test_who_leaves_between_rounds_pays_once_and_the_others_finish(here, monkeypatch):
    whole = centre_part._one_more

    async def leaving(course, taken, purse):
        if purse.ledger.path.parent.name == "west" and len(course.opened) == 2:
            raise RoundFailedError("west: the lights went out", revealed=True)
        await whole(course, taken, purse)

    monkeypatch.setattr(centre_part, "_one_more", leaving)
    found, _ = play(here)
    _, release = found[COORDINATOR]
    assert release["rows"].num_rows == 1000
    assert isinstance(found["west"], RoundFailedError)
    assert all(check.ok for check in verify_folder(here / "published", here / "study.pl"))
    record = json.loads((here / "published" / "run.json").read_text())["centres"]
    assert "west" in record["included"]
    assert [list(one["absent"]) for one in record["later"]] == [[]] + [["west"]] * (len(record["later"]) - 1)
    assert last_action(here, "west") == "commit"
    entries = Ledger(here / "west" / "ledger.db").history("everybody")
    assert [entry.action for entry in entries].count("reserve") == 1


@pytest.mark.slow
def test_a_round_that_fails_unopened_is_begun_again(here, monkeypatch):
    """The coordinator forgets a step of the second round once: nobody pays twice and everybody gets the model."""
    forgotten = []
    asked = Coordination._exchange

    async def forgetful(self, frames):
        kinds = {frame.head["kind"] for frame in frames.values()}
        if self.round.stage == 1 and "keys" in kinds and not forgotten:
            forgotten.append(self.round.stage)
            return {}
        return await asked(self, frames)

    monkeypatch.setattr(Coordination, "_exchange", forgetful)
    found, said = play(here)
    assert forgotten
    assert any("begun again" in text for text in said)
    _, release = found[COORDINATOR]
    assert all(found[name]["line"].equals(release["line"]) for name in NAMES)
    assert all(
        [entry.action for entry in Ledger(here / name / "ledger.db").history("everybody")].count("reserve") == 1
        for name in NAMES
    )


@pytest.mark.slow
def test_a_later_round_that_never_succeeds_says_who_stays_charged(here, monkeypatch):
    """The coordinator forgets a step of the second round every time: the first was opened, and paid for all."""
    asked = Coordination._exchange

    async def forgetful(self, frames):
        kinds = {frame.head["kind"] for frame in frames.values()}
        return {} if self.round.stage == 1 and "keys" in kinds else await asked(self, frames)

    monkeypatch.setattr(Coordination, "_exchange", forgetful)
    found, _ = play(here)
    told = str(found[COORDINATOR])
    assert isinstance(found[COORDINATOR], RoundFailedError)
    assert "stays charged" in told
    assert "nothing was published" in told
    assert "never joined" not in told
    assert all(last_action(here, name) == "commit" for name in NAMES)
