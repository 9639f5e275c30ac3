"""The recipes of docs/architecture.md, followed: what is one file there is one file here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.centres.small_rounds import granted_accounts, last_action, small_round
from tests.laws.question_rows import EXAMPLES
from tests.laws.test_conductor import KEYS, NAMES, round_of
from tests.laws.test_questions import wrong_moves
from tests.recipes.questions.total import TwofoldTotal
from tests.recipes.transports.letters import Desk, conduct

HERE = Path(__file__).parent
#: The fixture's one line of the law table.
ROW = {TwofoldTotal: [TwofoldTotal(values=("x(P)",), ranges=((-1.0, 3.0),), rows=2)]}


def followed(folder: Path, *engines: str) -> dict:
    return told_by("tests.recipes.follow", str(folder), *engines)


def told_by(module: str, *words: str) -> dict:
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1], check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def check(found: dict) -> None:
    assert found["planned"] == ["twice"]
    assert found["failures"] == []
    assert all(value == pytest.approx(found["truth"], abs=1) for value in found["values"].values())
    assert "twice the sum of age" in found["explained"]
    assert found["vocabulary"]
    assert "twofold(" in found["text"]
    assert "twice the sum of a variable" in found["help"].lower()
    assert found["round trip"]


def test_a_question_is_one_file_and_an_engine_one_class(tmp_path):
    found = followed(tmp_path)
    check(found)
    assert set(found["values"]) == {"local", "backward"}


@pytest.mark.slow
def test_a_question_of_one_file_runs_on_dask(tmp_path):
    found = followed(tmp_path, "dask")
    check(found)
    assert "dask" in found["values"]


def test_the_law_table_takes_its_one_line():
    ((kind, examples),) = ROW.items()
    assert kind not in EXAMPLES
    assert all(wrong_moves(one) == [] for one in examples)


def test_a_mechanism_is_a_class_an_event_a_note_and_two_lines():
    """Every law of mechanisms holds for it; without its row, without its rule, or turning too seldom it is found."""
    found = told_by("tests.recipes.follow_mechanism")
    assert found["discovered"]
    assert found["failures"] == []
    assert "has no row" in found["without a row"]
    assert "test_certificate_verifies" in found["without a rule"]
    assert found["a twin that turns less often than it says"]


def test_a_law_of_noise_is_three_files_a_note_and_two_lines(tmp_path):
    """It is preferred by a study, planned, drawn, charged, verified and explained; unasked for, or where several
    centres draw, the others are taken. Without the verifier's rule nothing verifies."""
    found = told_by("tests.recipes.follow_law", str(tmp_path))
    assert found["planned"] == ["huber"]
    assert found["unasked"] == found["over centres"] == ["laplace"]
    assert found["failures"] == found["laws"] == []
    assert any("An event of kind 'HuberEvent' cannot be verified" in one for one in found["without a rule"])
    assert found["read again"]
    assert "the study prefers huber" in found["explained"]
    assert found["off by"] < 6  # by more less than once in 10^7
    assert found["quantiles"] < 0.01
    assert found["variance"] == pytest.approx(1, abs=0.03)


def test_a_kind_of_publication_is_one_file_and_whoever_publishes_it(tmp_path):
    """It is checked, planned, run, verified, explained, told and a method of `Study`; what fits nothing is refused."""
    found = told_by("tests.recipes.follow_kind", str(tmp_path))
    assert found["checked"] == found["failures"] == []
    assert found["planned"] == [["liked", "favourite", "flips"]]
    assert found["round trip"]
    assert found["published"] == [{"fruit(P)": "plum"}]  # by another value less than once in 10^21
    assert "liked is the value of fruit that most individuals have" in found["explained"]
    assert "It keeps 0.996094-DP, under replacing one person." in found["readme"]
    assert "liked for public: a summary of all of population" in found["traced"]
    assert "publish('favourite fruit', favourite(fruit(P)), promise(public))." in found["text"]
    assert found["help"] == "The value that most people have."
    assert found["from Python"].keys() == {"fruit"}
    assert "not a favourite" in found["way"]
    assert "There are flips (a value drawn by permute-and-flip)" in found["way"]
    assert "a favourite, which has no interval" in found["aim"]
    assert "did you mean: fruit/1" in found["variable"]
    assert "Write favourite(rv(P))." in found["shape"]
    assert "age(P) has no listed values" in found["number"]
    assert "unknown-variable" in found["unknown"]


@pytest.mark.parametrize("silent", [None, "keys", "parcels", "signatures"])
def test_a_transport_is_one_file(tmp_path, silent):
    """Letters in a folder: the sum is exactly that of whoever sent its own, and whoever fell silent before is named."""
    agreed = round_of(masked=True, absences=1)
    cells = {name: np.array([3**place, -place, 7]) for place, name in enumerate(NAMES)}
    desks = [Desk(tmp_path, agreed, name, KEYS[name], cells[name]) for name in NAMES]

    def come_by():
        for desk in desks:
            letter = tmp_path / f"to {desk.name}"
            asked = json.loads(letter.read_text())["head"]["kind"] if letter.exists() else None
            if desk.name != "south" or asked != silent:
                desk.look()
            letter.unlink(missing_ok=True)

    found = conduct(agreed, tmp_path, come_by)
    there = [name for name in NAMES if name != "south" or silent in (None, "signatures")]
    assert sorted(found.included) == sorted(there)
    assert found.values.tolist() == sum(cells[name] for name in there).tolist()
    assert ("south" in found.absent) == (silent is not None)


def test_a_transport_carries_refusals_and_charges(tmp_path):
    """A centre without a budget says so over the letters; the others pay once."""
    agreed, keys, cells = small_round(5, 40)
    poor, *others = agreed.places
    opens = granted_accounts(tmp_path, agreed, names=others)
    desks = [Desk(tmp_path, agreed, name, keys[name], cells[name], opens(name)) for name in agreed.places]
    found = conduct(agreed.fresh(), tmp_path, lambda: [desk.look() for desk in desks])
    assert sorted(found.included) == sorted(others)
    assert "no budget was granted yet" in found.absent[poor]
    assert [desk.settled for desk in desks] == ["", *["commit"] * 4]
    assert {last_action(tmp_path, name) for name in others} == {"commit"}
