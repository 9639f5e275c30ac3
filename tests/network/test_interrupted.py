"""Ctrl-C while the engine works is Ctrl-C: no other error, nothing spent, and a note that says so."""

import os
import signal
import threading

import numpy as np
import pytest

from sfumato import Study
from sfumato.errors import DataError
from sfumato.network.tables import TableRoom

#: Enough work to be in the middle of it.
LONG = "SELECT sum(sin(range) * cos(range)) AS s FROM range(20000000)"


@pytest.fixture
def listening():
    """Ctrl-C reaches this process: where tests are shared out among several, each of them is deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("ask", [TableRoom.run, TableRoom.arrow, lambda room, query: list(room.batches(query))])
@pytest.mark.by_day(1)
def test_an_interrupted_query_is_an_interruption(ask, listening):
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))

    def disturbed(room):
        timer.start()
        ask(room, LONG)
        timer.join()  # should the query have been quicker, which is not what is asked here

    with TableRoom({"p": {"id": ["a"]}}, ["p"]) as room, pytest.raises(KeyboardInterrupt):
        disturbed(room)


@pytest.mark.parametrize("said", ["Query interrupted", "something else"])
def test_only_what_the_engine_says_of_ctrl_c_is_taken_for_it(said):
    def fails():
        raise RuntimeError(said)

    with TableRoom({"p": {"id": ["a"]}}, ["p"]) as room, pytest.raises((KeyboardInterrupt, RuntimeError)) as told:
        room._guarded(fails)
    assert told.type is (KeyboardInterrupt if said == "Query interrupted" else RuntimeError)
    with TableRoom({"p": {"id": ["interrupted"]}}, ["p"]) as room, pytest.raises(DataError):
        room.run("SELECT id::INTEGER FROM p")


def test_an_interrupted_reading_says_that_nothing_was_spent(monkeypatch):
    def interrupted(*given, **named):
        raise KeyboardInterrupt

    study = (
        Study("ages")
        .table("people", {"age": np.arange(90.0)}, person=None, columns={"age": (0, 90)}, missing="never")
        .promise("public", epsilon=1)
        .mean("age", to="public")
    )
    plan = study.plan(size=90)
    monkeypatch.setattr("sfumato.run.study._evaluated", interrupted)
    with pytest.raises(KeyboardInterrupt) as told:
        plan.run(ledger=None)
    (note,) = told.value.__notes__
    assert note.endswith("nothing was drawn and nothing was spent.")
