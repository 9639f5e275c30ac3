"""A centre that was killed before anything left it has its budget back; one that is still alive cannot send then."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap

import pytest

from centres.small_rounds import granted_accounts, small_round
from sfumato.centres.node import Charge
from sfumato.centres.register import Register
from sfumato.centres.unsent import give_back_unsent
from sfumato.errors import RefusedError
from sfumato.ledger.ledger import Ledger
from sfumato.run.joining import given_back, taking_part

NAME = "centre 0"


class Living:
    """One call that takes part, step by step; `sent` once its data has left."""

    def __init__(self, agreed, account) -> None:
        self.charge, self.sent, self.refused = Charge(agreed, NAME, account), False, False

    def reserve(self):
        self.charge.reserve()

    def keys(self):
        self._claim("keys")

    def masked(self):
        self._claim("masked")
        self.sent = not self.refused

    def end(self):
        self.charge.settle(None)

    def _claim(self, step):
        try:
            self.charge.register.claim(self.charge.agreed.hash, NAME, step)
        except RefusedError:
            self.refused = True

    @property
    def steps(self):
        return [self.reserve, self.keys, self.masked, self.end]


class Between:
    """A ledger in which others go on between the decision to give back and the release."""

    def __init__(self, ledger, meanwhile) -> None:
        self.ledger, self.meanwhile = ledger, meanwhile

    def __getattr__(self, name):
        return getattr(self.ledger, name)

    def release(self, reservation):
        steps, self.meanwhile = self.meanwhile, []
        for step in steps:
            step()
        self.ledger.release(reservation)


def states(ledger):
    return [ledger.state(one.reservation) for one in ledger.history("patients") if one.action == "reserve"]


ORDERS = [
    (before, during, last)
    for before, during, last in itertools.product(range(5), range(5), range(5))
    if before <= during <= last
]


@pytest.mark.parametrize(("before", "during", "last"), ORDERS)
@pytest.mark.by_day(12)
def test_in_every_order_what_was_sent_is_counted_and_what_was_not_is_free(tmp_path, before, during, last):
    """The living one is at step `before` when its right to send is taken, at `during` when it is released, and dies."""
    agreed, _, _ = small_round(5, 5)
    account = granted_accounts(tmp_path, agreed, names=[NAME])(NAME)
    living = Living(agreed, account)
    for step in living.steps[:before]:
        step()
    book = Between(Ledger(account.ledger.path), living.steps[before:during])
    give_back_unsent(book)
    for step in living.steps[during if not book.meanwhile else before : last]:
        step()
    give_back_unsent(Ledger(account.ledger.path))
    found = states(Ledger(account.ledger.path))
    assert ("released" not in found) if living.sent else set(found) <= {"released"}


def test_a_right_to_send_is_taken_back_once_and_for_ever(tmp_path):
    Ledger(tmp_path / "ledger.db")
    for register in (Register(tmp_path / "ledger.db"), Register(None)):
        assert register.try_withdraw("a round", NAME)
        assert register.try_withdraw("a round", NAME)
        with pytest.raises(RefusedError):
            register.claim("a round", NAME, "masked")
        register.claim("another", NAME, "masked")
        assert not register.try_withdraw("another", NAME)
        assert register.try_withdraw("another", "centre 1")


def test_of_two_centres_with_one_ledger_each_has_its_own_part(tmp_path):
    agreed, _, _ = small_round(5, 5)
    account = granted_accounts(tmp_path, agreed, names=[NAME])(NAME)
    charges = [Charge(agreed, name, account) for name in (NAME, "centre 1")]
    for charge in charges:
        charge.reserve()
    charges[1].register.claim(agreed.hash, "centre 1", "masked")
    assert len(give_back_unsent(account.ledger)) == 1
    assert sorted(states(account.ledger)) == ["released", "reserved"]
    assert not give_back_unsent(account.ledger)


def test_a_living_call_is_spared_and_a_killed_one_is_not(tmp_path):
    """In a process of its own, killed as a machine kills it: its lock ends with it."""
    agreed, _, _ = small_round(5, 5)
    account = granted_accounts(tmp_path, agreed, names=[NAME])(NAME)
    Charge(agreed, NAME, account).reserve()
    program = f"""
        import sys
        from sfumato.ledger.ledger import Ledger
        from sfumato.run.joining import taking_part
        from sfumato.centres import unsent
        from sfumato.run import joining
        joining.give_back_unsent = lambda ledger: []
        with taking_part(Ledger({str(account.ledger.path)!r}), print):
            print("here", flush=True)
            sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "here\n"
        said = []
        assert not given_back(account.ledger)
        with taking_part(account.ledger, said.append):
            assert not said
        assert states(account.ledger) == ["reserved"]
        child.kill()
    with taking_part(account.ledger, said.append):
        assert len(said) == 1
        assert "nothing was spent" in said[0]
    assert states(account.ledger) == ["released"]
