"""Rounds, whatever a coordinator does: nobody contributes twice, and every sum that can be opened is paid for.

A hostile coordinator offers rounds again, asks twice at once, breaks off anywhere, lies about the end, or proves it;
the centres answer over either transport and are killed before or after any write to their disks. What left the centres
is counted here, what they hold as paid is read from the ledger's file with plain SQL.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from sfumato.centres import ClippedSums, Requirement, new_centres, plan_round
from sfumato.centres.aggregator import Aggregator
from sfumato.centres.flower import Institution, respond
from sfumato.centres.messages import DECLINE, STEPS, Message, write_json
from sfumato.centres.node import Charge, Offer, RoundAccount, Seat
from sfumato.centres.outcome import Outcome
from sfumato.centres.register import Register
from sfumato.centres.unsent import give_back_unsent
from sfumato.centres.wire import Frame
from sfumato.core import Adjacency, ApproxDP
from sfumato.errors import MessageError, RefusedError, RoundFailedError, SfumatoError
from sfumato.ledger.ledger import Ledger

NAMES = ("north", "south", "west")
PATIENT = Adjacency("patient", "add-remove")
MEMBERS, KEYS = new_centres(NAMES)
AGREED = plan_round(
    "a law",
    MEMBERS,
    ClippedSums(2, 1.0, 1),
    [Requirement(PATIENT, ApproxDP(1.0, 1e-6))],
    most_patients=10,
    colluders=0,
    absences=1,
    coordinator="malicious",
)
ROUNDS = (AGREED.fresh(), AGREED.fresh())
#: Every write waits for the disk; in memory the law sees more of them in the same time.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
#: What a coordinator asks for, step by step.
ASKED = ("round", "keys", "parcels", "included", "signatures", "refuse")
ENDINGS = ("silence", "opened", "a lie", "proof")


class KilledError(BaseException):
    """The process is gone; nothing catches this."""


class Disk:
    """Counts the writes of a centre and kills it before or after one of them."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.after = False

    def around(self, write, *arguments, **options):
        dies = self.left == 0
        if self.left is not None:
            self.left -= 1
        if dies and not self.after:
            raise KilledError
        found = write(*arguments, **options)
        if dies:
            raise KilledError
        return found


class Direct:
    """A centre as the socket client plays it."""

    def __init__(self, own: Institution) -> None:
        self.own, self.seat = own, None

    def say(self, kind, body):
        if kind != "round":
            return None if self.seat is None else self.seat.answer(kind, body)
        own = self.own
        offer = Offer.from_bytes(body)
        self.seat, first = Seat.take(offer, own.approved, own.name, own.key, own.cells, own.account, own.verify)
        return first

    def end(self, outcome):
        if self.seat is not None:
            self.seat.settle(outcome)

    def twice(self, kind, body):
        """Another process of the centre is offered the round at the same time."""
        return Direct(self.own).say("round", body) if kind == "round" else None

    def late(self, kind, body):
        return self.twice(kind, body)


class Flower:
    """A centre as the Flower app plays it: its state is handed around, and may be an old one."""

    def __init__(self, own: Institution) -> None:
        self.own, self.state, self.old = own, {}, {}

    def say(self, kind, body):
        self.old = dict(self.state)
        return self._message(respond(self.own, Frame({"kind": kind}, body), self.state, self._keep))

    def _keep(self, record):
        self.state = dict(record)

    def end(self, outcome):
        if self.state and outcome is not None:
            respond(self.own, Frame({"kind": "outcome"}, write_json(outcome.to_dict())), self.state, self._keep)

    def twice(self, kind, body):
        """Flower runs a second message on the memory that the first one used."""
        return self._message(respond(self.own, Frame({"kind": kind}, body), self.old, lambda record: None))

    def late(self, kind, body):
        return self._message(respond(self.own, Frame({"kind": kind}, body), self.before, lambda record: None))

    @staticmethod
    def _message(frame):
        head, body = frame
        found = Message.from_dict({**head, "body": ""})
        if found.step == DECLINE:  # a word that nothing was said; it may be said again
            raise RefusedError(body.decode())
        return Message(found.round_hash, found.sender, found.step, body, found.signature)


class Rounds(RuleBasedStateMachine):
    @initialize()
    def open_ledgers(self):
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.said = Counter()
        self.opened = []
        self.accounts = {}
        for name in NAMES:
            ledger = Ledger(Path(self.folder.name) / f"{name}.db")
            ledger.grant("patients", ApproxDP(20.0, 1e-4), adjacency=PATIENT)
            self.accounts[name] = RoundAccount(ledger, "patients")

    @rule(
        which=st.sampled_from(ROUNDS),
        voice=st.sampled_from([Direct, Flower]),
        stop=st.sampled_from([*STEPS, "the end"]),
        ending=st.sampled_from(ENDINGS),
        asks_twice=st.booleans(),
        order=st.permutations(NAMES),
        killed=st.none() | st.tuples(st.sampled_from(NAMES), st.integers(0, 9), st.booleans()),
        anew=st.none() | st.tuples(st.sampled_from(NAMES), st.sampled_from(ASKED)),
    )
    def offer(self, which, voice, stop, ending, asks_twice, order, killed, anew):
        """One attempt of the coordinator, from an offer to wherever it breaks off; a centre may join anew meanwhile."""
        self.asks_twice, self.late, self.anew = asks_twice, {}, anew
        self.voices = {name: voice(self.institution(name)) for name in order}
        if killed is not None:
            disk = self.voices[killed[0]].own.account.ledger.disk
            disk.left, disk.after = killed[1], killed[2]
        aggregator, included = Aggregator(which), []
        with suppress(RoundFailedError):
            included = self.conduct(aggregator, stop)
        outcome = {
            "silence": None,
            "opened": Outcome(True, "", (0.0, 0.0), tuple(included)),
            "a lie": Outcome(False, "nothing happened"),
            "proof": None,
        }[ending]
        if ending == "proof":
            refusals = [self.ask(name, "refuse", b"") for name in list(self.voices)]
            outcome = Outcome(False, "", None, (), tuple(one for one in refusals if one is not None))
        for name in list(self.voices):
            self.quietly(name, lambda name=name: self.end(name, outcome))

    def end(self, name, outcome):
        """The centre settles; a request on its way may still reach a process of it that knows nothing of the end."""
        voice, late = self.voices[name], self.late.get(name)
        voice.before = dict(getattr(voice, "state", {}))
        voice.end(outcome)
        if self.asks_twice and late is not None:
            message = self.quietly(name, lambda: voice.late(*late), ends=False)
            if message is not None:
                self.leaves(message)

    def institution(self, name):
        account = self.accounts[name]
        book = Book(account.ledger)
        return Institution(AGREED, name, KEYS[name], np.array([1, 2]), RoundAccount(book, "patients"))

    def conduct(self, aggregator, stop):
        offer = Offer.of(aggregator.round).to_bytes()
        steps = [
            lambda name: ("round", offer),
            lambda name: ("keys", write_json([one.to_dict() for one in aggregator.public_keys()])),
            lambda name: ("parcels", write_json(aggregator.parcels_for(name))),
            lambda name: ("included", write_json(aggregator.included())),
            lambda name: ("signatures", write_json([one.to_dict() for one in aggregator.signatures()])),
        ]
        for step, request in zip(STEPS, steps, strict=True):
            if step == stop:
                self.late = {name: request(name) for name in self.voices}
                return []
            for name in list(self.voices):
                message = self.ask(name, *request(name))
                try:
                    if message is not None:
                        aggregator.accept(message)
                except MessageError:
                    self.voices.pop(name, None)
            aggregator.advance()
        aggregator.total()
        self.opened.append((aggregator.round.hash, tuple(aggregator.included())))
        return aggregator.included()

    @rule(name=st.sampled_from(NAMES))
    def join_anew(self, name):
        """What a process that was killed reserved is free again, unless the step in which data leaves was taken."""
        ledger = self.accounts[name].ledger
        give_back_unsent(ledger)
        for round_hash in [one.hash for one in ROUNDS if counted(ledger.path, one.hash)]:
            assert took(ledger.path, round_hash) == {"masked"}, "nothing left, and it stays reserved"

    def ask(self, name, kind, body):
        """What leaves the centre; None where it refuses or died."""
        if (name, kind) == self.anew:
            give_back_unsent(self.accounts[name].ledger)
        message = self.quietly(name, lambda: self.voices[name].say(kind, body))
        if message is not None:
            self.leaves(message)
            if self.asks_twice:
                second = self.quietly(name, lambda: self.voices[name].twice(kind, body), ends=False)
                if second is not None:
                    self.leaves(second)
        return message

    def leaves(self, message):
        self.said[message.round_hash, message.sender, message.step] += 1

    def quietly(self, name, act, ends=True):
        try:
            return act()
        except (SfumatoError, KilledError) as error:
            if ends or isinstance(error, KilledError):
                gone = self.voices.pop(name, None)
                if gone is not None and isinstance(error, SfumatoError):
                    gone.end(None)  # what the clients do when they leave
            return None

    @invariant()
    def nobody_says_a_step_twice(self):
        assert all(times == 1 for times in getattr(self, "said", {}).values()), "a step was answered twice"

    @invariant()
    def whoever_refuses_never_unmasks(self):
        said = getattr(self, "said", {})
        both = [key for key in said if key[2] == "refuse" and (*key[:2], "unmask") in said]
        assert not both, "a centre refused and unmasked"

    @invariant()
    def every_opened_sum_is_paid_for(self):
        for one in getattr(self, "opened", []):
            assert self.opened.count(one) == 1, "a round was opened twice"
            for name in one[1]:
                assert counted(self.accounts[name].ledger.path, one[0]) >= 1, "an opened sum is not paid for"

    @invariant()
    def what_left_and_was_not_refused_by_all_stays_counted(self):
        said = getattr(self, "said", {})
        for hash_, name, step in list(said):
            if step == "masked" and sum((hash_, other, "refuse") in said for other in NAMES) < 2:
                assert counted(self.accounts[name].ledger.path, hash_) >= 1, "data left and nothing is reserved"

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()


class Book:
    """A ledger whose writes a Disk may interrupt."""

    def __init__(self, ledger) -> None:
        self.ledger, self.path, self.disk = ledger, ledger.path, Disk()

    def reserve(self, *arguments, **options):
        return self.disk.around(self.ledger.reserve, *arguments, **options)

    def commit(self, reservation):
        self.disk.around(self.ledger.commit, reservation)

    def release(self, reservation):
        self.disk.around(self.ledger.release, reservation)

    def state(self, identity):
        return self.ledger.state(identity)


def counted(path, round_hash):
    """Reservations for this round that were never given back, read without the product's code."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT action, reservation, body FROM entries").fetchall()
    connection.close()
    given_back = {identity for action, identity, _ in rows if action == "release"}
    keys = [
        json.loads(body)["key"] for action, identity, body in rows if action == "reserve" and identity not in given_back
    ]
    return sum(str(key).startswith(round_hash) for key in keys)


def took(path, round_hash):
    """Whether data may have left in this round, and whether it was seen to that it never does; in plain SQL too."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT step FROM rounds WHERE round = ?", (round_hash,)).fetchall()
    connection.close()
    return {step for (step,) in rows} & {"masked", "withdrawn"}


def check(monkeypatch, examples, steps, phases=tuple(Phase)):
    """The law; a centre's records of what it said are writes that may be interrupted as well."""
    claim, withdraw, making = Register.try_claim, Register.try_withdraw, Charge.register.fget

    def register(charge):
        found = making(charge)
        found.disk = getattr(charge.account.ledger, "disk", Disk()) if charge.account else Disk()
        return found

    monkeypatch.setattr(Charge, "register", property(register))
    plain = Disk()  # of a process that comes anew, and is not killed

    def around(write):
        return lambda self, *key: getattr(self, "disk", plain).around(write, self, *key)

    monkeypatch.setattr(Register, "try_claim", around(claim))
    monkeypatch.setattr(Register, "try_withdraw", around(withdraw))
    run_state_machine_as_test(
        Rounds,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            derandomize=True,
            report_multiple_bugs=False,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_rounds(monkeypatch):
    check(monkeypatch, 20, 5)


@pytest.mark.slow
def test_rounds_at_length(monkeypatch):
    check(monkeypatch, 400, 12)


def forgets_what_was_said(self, round_hash, centre, step):
    return True


def shares_the_reservation(self):
    book = self.account.ledger
    for event in self.agreed.events:
        self._open.append(book.reserve(self.account.dataset, event, key=self.agreed.hash))


def looks_and_leaves_the_step_free(self, outcome):
    sent = self.register.holds(self.agreed.hash, self.name, "masked")
    return "open" if sent else "release"


def looks_whether_it_left(self, round_hash, centre):
    return not self.holds(round_hash, centre, "masked")


def believes_everybody(self, outcome):
    return "release" if outcome is not None and not outcome.revealed else "open"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "defect", "examples"),
    [
        (Register, "try_claim", forgets_what_was_said, 60),
        (Register, "try_withdraw", looks_whether_it_left, 100),
        (Charge, "_word", believes_everybody, 60),
        (Charge, "_word", lambda self, outcome: "release", 60),
        # One attempt in 45 on a round that nobody took part in yet: Flower, broken off before the sums, asked twice,
        # ended with a word. An example has two such rounds, so 400 of them miss it with probability e^-18.
        pytest.param(Charge, "_word", looks_and_leaves_the_step_free, 400, marks=pytest.mark.slow),
    ],
    ids=[
        "forgets what was said",
        "gives back what may still leave",
        "believes a malicious coordinator",
        "always releases",
        "leaves the step free",
    ],
)
def test_the_law_finds_planted_relatives(where, name, defect, examples, monkeypatch):
    monkeypatch.setattr(where, name, defect)
    if name == "try_claim":
        monkeypatch.setattr(Charge, "reserve", shares_the_reservation)
    with pytest.raises(AssertionError):
        check(monkeypatch, examples, 5, phases=(Phase.generate,))
