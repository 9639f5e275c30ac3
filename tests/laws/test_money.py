"""Money: opened results never exceed committed charges, and nothing that was paid is lost.

A state machine over the ledger, `run` and `release`: grants, runs, kills and failures at every step, resumes, and two
processes at once. What it looks at are files and ledger entries alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyarrow import parquet

from sfumato.core import Adjacency
from sfumato.errors import LedgerError
from sfumato.ledger import Ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")

PERSON, RECORD = Adjacency("patient", "replace-one"), Adjacency("record", "replace-one")
ACCOUNTS = {"people": "patient", "rows": "record"}
RESULTS = {"people": "results/total.public.json", "rows": "table.parquet"}
OUTS = ("one", "two")


class Bank:
    """A folder with a table and a ledger, the orders given so far, and everything that was ever seen on its disk."""

    def __init__(self, place: Path, worker) -> None:
        self.folder, self.worker = place, worker
        self.seen: dict[str, set[bytes]] = {name: set() for name in ACCOUNTS}
        table = pa.table({"id": [float(number) for number in range(20)], "age": [50.0] * 20})
        parquet.write_table(table, place / "patients.parquet")
        Ledger(place / "ledger.db")

    def order(self, *orders: dict) -> list[int]:
        full = [{"folder": str(self.folder), "resume": False, **order} for order in orders]
        self.worker.stdin.write(json.dumps(full) + "\n")
        self.worker.stdin.flush()
        codes = json.loads(self.worker.stdout.readline())
        assert set(codes) <= {0, 1, 2, 9}, codes
        self.look()
        return codes

    def grant(self, account: str, total: float) -> None:
        adjacency = PERSON if account == "people" else RECORD
        with suppress(LedgerError):
            Ledger(self.folder / "ledger.db").grant(account, total, adjacency=adjacency)

    def results(self, account: str, *, hidden: bool) -> list[bytes]:
        """What lies in finished folders; with `hidden` also in folders that are not shown yet."""
        found = []
        for folder in self.folder.iterdir():
            path = folder / RESULTS[account]
            if path.is_file() and (hidden or not folder.name.startswith(".")):
                found.append(path.read_bytes())
        return found

    def look(self) -> None:
        for account in ACCOUNTS:
            self.seen[account].update(one for one in self.results(account, hidden=True) if one)

    def check(self) -> None:
        ledger = Ledger(self.folder / "ledger.db")
        granted = {name for name, _ in ledger.datasets()}
        for account in granted:
            actions = Counter(record.action for record in ledger.history(account))
            opened = set(self.results(account, hidden=False))
            kept = set(self.results(account, hidden=True))
            assert len(opened) <= actions["commit"], f"{account}: more was opened than was committed"
            charged = actions["reserve"] - actions["release"]
            assert len(self.seen[account]) <= charged, f"{account}: more was drawn than was reserved"
            assert actions["commit"] <= len(kept), f"{account}: something that was paid is lost"
            balance = ledger.balance(account, ACCOUNTS[account])
            # Both plans promise ε = 0.5; the noise is calibrated to a little less.
            assert charged * 0.499 <= balance.granted.eps, f"{account}: more was reserved than was granted"


def start_worker():
    child = Path(__file__).with_name("money_child.py")
    worker = subprocess.Popen([sys.executable, str(child)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout.readline() == "ready\n"
    return worker


@pytest.fixture(scope="module")
def worker():
    made = start_worker()
    yield made
    made.stdin.close()
    made.wait(timeout=30)
    made.stdout.close()


STEPS = st.integers(1, 80)


def machine(place: Path, worker):
    class Money(RuleBasedStateMachine):
        @initialize()
        def start(self):
            folder = place / os.urandom(6).hex()
            folder.mkdir()
            self.bank = Bank(folder, worker)

        @rule(account=st.sampled_from(sorted(ACCOUNTS)), halves=st.integers(1, 6))
        def grant(self, account, halves):
            self.bank.grant(account, halves * 0.5)

        @rule(out=st.sampled_from(OUTS), steps=STEPS, how=st.sampled_from(["kill", "fail"]), resume=st.booleans())
        def interrupted_run(self, out, steps, how, resume):
            self.bank.order({"what": "run", "out": out, "steps": steps, "how": how, "resume": resume})

        @rule(out=st.sampled_from(OUTS), resume=st.booleans())
        def whole_run(self, out, resume):
            self.bank.order({"what": "run", "out": out, "resume": resume})

        @rule(steps=STEPS, how=st.sampled_from(["kill", "fail"]))
        def interrupted_release(self, steps, how):
            self.bank.order({"what": "release", "out": "table", "steps": steps, "how": how})

        @rule()
        def whole_release(self):
            self.bank.order({"what": "release", "out": "table"})

        @rule(out=st.sampled_from(OUTS), steps=STEPS)
        def two_at_once(self, out, steps):
            self.bank.order({"what": "run", "out": out}, {"what": "run", "out": out, "steps": steps, "resume": True})

        @precondition(lambda self: hasattr(self, "bank"))
        @invariant()
        def money(self):
            self.bank.check()

    return Money


def play(place: Path, worker, examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine(place, worker), settings=chosen)


def test_money(tmp_path, worker):
    play(tmp_path, worker, examples=4, steps=7)


@pytest.mark.slow
def test_money_at_length(tmp_path, worker):
    play(tmp_path, worker, examples=200, steps=20)


def every_step(tmp_path, worker, first=1, **order):
    """Interrupt at every step in turn, each time followed by an attempt that is left alone."""
    for steps in range(first, first + 90):
        folder = tmp_path / f"{steps}{order['how']}"
        folder.mkdir()
        bank = Bank(folder, worker)
        bank.grant("people", 5.0)
        bank.grant("rows", 5.0)
        code = bank.order({"out": "one", "steps": steps, **order})[0]
        bank.check()
        bank.order({"out": "one", **order, "steps": 0, "resume": True})
        bank.check()
        account = "people" if order["what"] == "run" else "rows"
        assert len(bank.results(account, hidden=False)) == 1
        if code == 0:  # it ended before this step
            return
    raise AssertionError("there are more steps than were tried")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "fail"])
@pytest.mark.parametrize("what", ["run", "release"])
def test_an_interruption_at_every_step(tmp_path, worker, what, how):
    every_step(tmp_path, worker, what=what, how=how)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "how", "first", "words"), [("redraw", "kill", 44, "drawn"), ("lose", "fail", 44, "lost")]
)
def test_the_checker_finds_a_planted_relative(tmp_path, worker, plant, how, first, words):
    """Noise drawn again on an old reservation; a paid folder that is removed when its rename fails."""
    with pytest.raises(AssertionError, match=words):
        every_step(tmp_path, worker, first, what="run", how=how, plant=plant)
