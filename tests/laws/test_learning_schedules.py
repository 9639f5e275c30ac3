"""Rounds of learning under any schedule: drops, repeats, old offers, outcomes that never arrive, in any order.

Whatever happens, every round ends; a centre whose rows may be in an opened sum has paid for it, once; one whose rows
cannot be has got its reservation back where it was told so; no step is answered twice; and what was learned costs no
more than was promised.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from sfumato.centres import Requirement, Series, new_centres
from sfumato.centres.conductor import Conductor
from sfumato.centres.node import Charge, Offer, Seat
from sfumato.core import Adjacency, ApproxDP, Categories, Interval, Schema, compose
from sfumato.errors import CentreError, RefusedError, RoundFailedError

NAMES = ("east", "north", "south", "west")
MEMBERS, KEYS = new_centres(NAMES)
SCHEMA = Schema({"age": Interval(0, 100), "ill": Categories(["no", "yes"])})
PROMISE = Requirement(Adjacency("patient", "replace-one"), ApproxDP(1.0, 1e-6))
TABLES = {
    name: {"age": [20.0 * place, 90.0 - place, 50.0], "ill": ["no", "yes", "yes"]} for place, name in enumerate(NAMES)
}
DEEDS = (*["answer"] * 30, "nothing", "repeat", "asked twice")


class Money:
    """A ledger that keeps nothing on disk: what became of every reservation."""

    path = None

    def __init__(self) -> None:
        self.states: dict[str, str] = {}

    @property
    def ledger(self):
        return self

    def reserve(self, agreed, key, made):
        assert key not in self.states
        self.states[key] = "reserve"
        made.append(key)

    def commit(self, key):
        assert self.states[key] == "reserve"
        self.states[key] = "commit"

    def release(self, key):
        assert self.states[key] == "reserve"
        self.states[key] = "release"

    def counted(self, round_hash):
        """How many reservations for a round are spent, or may be."""
        return sum(state != "release" for key, state in self.states.items() if key.startswith(round_hash))


class Learning(RuleBasedStateMachine):
    @initialize(absences=st.integers(0, 1), malicious=st.booleans())
    def begin(self, absences, malicious):
        self.series = Series(
            subject="a law", centres=MEMBERS, schema=SCHEMA, target="ill", label="yes", requirement=PROMISE,
            most_patients=50, steps=2, absences=absences, coordinator="malicious" if malicious else "curious",
        )  # fmt: skip
        self.state = self.series.start()
        self.money = {name: Money() for name in NAMES}
        self.offers: list[Offer] = []
        self.sums: list[tuple[str, tuple[str, ...]]] = []
        self.tried: set[str] = set()

    @rule(
        deeds=st.fixed_dictionaries({name: st.lists(st.sampled_from(DEEDS), min_size=7, max_size=7) for name in NAMES}),
        order=st.permutations(NAMES),
        away=st.sampled_from([(), (), (), ("west",), ("east", "north")]),
        untold=st.sampled_from([(), (), ("north",), NAMES]),
    )
    def attempt(self, deeds, order, away, untold):
        """One round of what is learned next, from offers to farewells."""
        if self.series.is_over(self.state):
            return
        agreed = self.series.round(self.state)
        offer = Offer.of(agreed)
        self.offers.append(offer)
        conductor, seats, said = Conductor(agreed), {}, {}
        for name in order:
            if name not in away:
                seats[name], said[name] = self.take(offer, name)
                conductor.admit(name, said[name])
        self.tried.add(agreed.hash)
        conductor.begin()
        places = iter(range(7))
        while asked := conductor.questions():
            place = next(places)
            conductor.answered(
                {
                    name: answer
                    for name in order
                    if name in asked
                    and (answer := self.answer(seats[name], said, deeds[name][place], asked[name])) is not None
                }
            )
        self.settle(conductor, seats, untold)

    def take(self, offer, name):
        approved = self.series.approves(self.state, offer.round)
        cells = approved.statistic.cells(TABLES[name], approved.grid, approved.most_patients)
        return Seat.take(offer, approved, name, KEYS[name], cells, self.money[name], None)

    def answer(self, seat, said, deed, frame):
        name = seat.member.name
        if deed == "nothing":
            return None
        if deed == "repeat":
            return said[name]
        try:
            found = said[name] = seat.answer(frame.head["kind"], frame.body)
        except CentreError as error:
            return str(error)
        if deed == "asked twice":
            with pytest.raises((CentreError, ValueError)):
                seat.answer(frame.head["kind"], frame.body)
        return found

    def settle(self, conductor, seats, untold):
        outcome, agreed = conductor.outcome, conductor.round
        opened = outcome.values is not None
        for name, seat in seats.items():
            told = name in conductor.members and name not in untold
            word = seat.settle(outcome if told else None)
            if told and not outcome.revealed and agreed.coordinator == "curious":
                assert word == "release"
            if opened and name in conductor.result().included:
                assert word != "release"
        if opened:
            found = conductor.result()
            self.sums.append((agreed.hash, found.included))
            self.state = self.series.moved(self.state, found)
        else:
            with pytest.raises(RoundFailedError):
                conductor.result()
        self.check()

    @rule(place=st.integers(0, 9), name=st.sampled_from(NAMES))
    def an_old_offer_comes_again(self, place, name):
        """Whoever has answered a round refuses it for ever, and nothing is reserved for it."""
        if not self.offers:
            return
        offer = self.offers[place % len(self.offers)]
        before = dict(self.money[name].states)
        if not any(key.startswith(offer.round.hash) for key in before):
            return  # it was away then, and may still answer
        # As a centre that would agree to it, word for word.
        cells = offer.round.statistic.cells(TABLES[name], offer.round.grid, offer.round.most_patients)
        with pytest.raises(RefusedError):
            Seat.take(offer, offer.round, name, KEYS[name], cells, self.money[name], None)
        assert {key: one for key, one in self.money[name].states.items() if one != "release"} == {
            key: one for key, one in before.items() if one != "release"
        }

    def check(self):
        for round_hash, included in self.sums:
            for name in included:
                assert self.money[name].counted(round_hash) == 1
        for name in NAMES:
            for round_hash in self.tried:
                assert self.money[name].counted(round_hash) <= 1
        if self.state.events:
            assert compose(self.state.events).implies(PROMISE.guarantee) is True
        assert np.all(np.isfinite(self.state.weights))

    def teardown(self):
        if hasattr(self, "series") and self.series.is_over(self.state):
            assert self.series.result(self.state).certificate.guarantee.implies(PROMISE.guarantee) is True


def search(examples):
    machine = settings(
        max_examples=examples, stateful_step_count=7, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate,), derandomize=True,
    )  # fmt: skip
    run_state_machine_as_test(Learning, settings=machine)


def test_any_schedule_of_learning_is_paid_once():
    search(12)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_any_schedule_of_learning_at_length():
    search(300)


def test_the_law_finds_a_centre_that_takes_back_what_was_opened(monkeypatch):
    """Planted: whoever is not told how a round ended takes its reservation back."""
    monkeypatch.setattr(Charge, "_word", lambda self, outcome: "release" if outcome is None else "commit")
    with pytest.raises(AssertionError):
        search(200)


def test_the_law_finds_a_seat_that_answers_twice(monkeypatch):
    monkeypatch.setattr(Seat, "_claim", lambda self, step: None)
    monkeypatch.setattr(Seat, "has_taken", lambda self, step: False)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        search(200)
