"""The ledger's laws: never more than granted, never less than drawn, and every refusal says the way out."""

from __future__ import annotations

import os
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    Adjacency,
    ApproxDP,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NoGuarantee,
    PureDP,
    RenyiDP,
    Repeated,
    WorstOf,
    compose,
)
from sfumato.core.events.learning import ObjectiveDP
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import (
    InputError,
    LedgerError,
    OverspendError,
    PrivacyParameterError,
    UnknownDatasetError,
)
from sfumato.ledger import Balance, Ledger, Reservation
from sfumato.ledger import ledger as ledger_module
from sfumato.ledger.store import EntryStore

# Exact sums and what is left


def test_five_fifths_fit_and_a_sixth_does_not(ledger):
    for _ in range(5):
        ledger.commit(ledger.reserve("survey", 0.2))
    with pytest.raises(OverspendError) as caught:
        ledger.reserve("survey", 1e-12)
    assert caught.value.remaining == "nothing"
    assert ledger.balance("survey").spent.epsilon(0.0) == 1.0


def test_overspend_says_everything(ledger):
    ledger.reserve("survey", 0.7)
    with pytest.raises(OverspendError) as caught:
        ledger.reserve("survey", 0.5, purpose="median of income")
    error = caught.value
    assert (error.requested, error.remaining, error.difference) == ("0.5-DP", "0.3-DP", "ε 0.2 too large")
    for words in (
        "median of income: asks for 0.5-DP but survey has 0.3-DP left in ledger.db",
        "replacing one record",
        "Nothing was run and nothing was spent.",
        "sfumato ledger raise survey",
    ):
        assert words in str(error)
    assert [record.action for record in ledger.history()] == ["grant", "reserve"]


GRANTS_AND_COSTS = [
    (PureDP(1.0), [PureDP(0.1)] * 3, PureDP(0.7)),
    (ApproxDP(1.0, 1e-6), [ApproxDP(0.69, 0.0)], ApproxDP(0.31, 1e-6)),
    (ApproxDP(1.0, 1e-6), [ApproxDP(0.2, 1e-7)] * 3, ApproxDP(0.4, 7e-7)),
    (GaussianDP(1.0), [GaussianDP(0.6)], GaussianDP(0.8)),
    (GaussianDP(1.0), [GaussianDP(0.5)], GaussianDP(0.866025)),
    (ZCDP(0.5), [ZCDP(0.1)] * 2, ZCDP(0.3)),
    (RenyiDP(8.0, 1.0), [RenyiDP(8.0, 0.25)], None),
    (ZCDP(0.5), [GaussianDP(0.6)], None),
    (ApproxDP(1.0, 1e-6), [GaussianDP(0.1), ApproxDP(0.2, 1e-7)], None),
    (ApproxDP(1.0, 1e-6), [Repeated(LaplaceEvent(1.0, 100.0, adjacency=REPLACE_ONE), 60)], None),
    (ApproxDP(2.0, 1e-6), [ZCDP(0.01), GaussianEvent(1.0, 10.0, adjacency=REPLACE_ONE)], None),
]


@pytest.mark.parametrize(("grant", "costs", "left"), GRANTS_AND_COSTS, ids=lambda value: str(value)[:30])
def test_what_is_left_can_be_spent_and_hardly_more(path, grant, costs, left):
    """Law: the remaining cost fits as it stands; a tenth more does not."""
    ledger = Ledger(path)
    ledger.grant("survey", grant)
    for cost in costs:
        ledger.commit(ledger.reserve("survey", cost))
    balance = ledger.balance("survey")
    remaining = balance.remaining
    if left is not None:
        assert type(remaining) is type(left)
        assert _fields(remaining) == pytest.approx(_fields(left), rel=1e-8)
    assert remaining is not None
    numbers = {name: value for name, value in remaining.to_dict().items() if name in ("eps", "mu", "rho")}
    more = type(remaining)(**{**_fields(remaining), **{name: 1.1 * value for name, value in numbers.items()}})
    with pytest.raises(OverspendError):
        ledger.reserve("survey", more)
    ledger.reserve("survey", remaining)
    assert balance.delta_left is None or 0 <= balance.delta_left <= grant.delta_


def _fields(guarantee):
    return {name: value for name, value in guarantee.to_dict().items() if name not in ("kind", "adjacency")}


def test_tight_composition_lets_more_in_than_plain_addition(path):
    ledger = Ledger(path)
    ledger.grant("survey", ApproxDP(1.0, 1e-6))
    ledger.reserve("survey", Repeated(LaplaceEvent(1.0, 100.0, adjacency=REPLACE_ONE), 150))  # Σε = 1.5
    assert ledger.balance("survey").remaining is not None


# Reservations that were chosen after seeing earlier results


TINY = 1e-9  # the least ε that can be written: what matters of the act is its δ
CHOOSERS = [
    (ApproxDP(1.0, 0.01), PureDP(0.5), GaussianDP(0.354), ApproxDP(TINY, 0.0099999)),
    (ApproxDP(1.0, 1e-5), GaussianDP(0.2), GaussianDP(0.178), ApproxDP(TINY, 9.98e-6)),
    (GaussianDP(0.5), PureDP(0.3), GaussianDP(0.49), ApproxDP(TINY, 1e-9)),
    (ZCDP(0.125), GaussianDP(0.3), GaussianDP(0.41), ApproxDP(TINY, 1e-9)),
]


@pytest.mark.parametrize(("grant", "first", "one", "other"), CHOOSERS, ids=lambda value: str(value)[:30])
def test_after_the_first_act_not_both_continuations_fit(path, grant, first, one, other):
    """Either list alone may compose to the grant; whoever chooses between them by the first result gets more."""
    ledger = Ledger(path)
    ledger.grant("survey", grant)
    ledger.commit(ledger.reserve("survey", first))
    accepted = []
    for continuation in (one, other):
        try:
            ledger.release(ledger.reserve("survey", continuation))
            accepted.append(continuation)
        except OverspendError:
            pass
    assert len(accepted) < 2


def test_inside_one_reservation_losses_are_composed(path):
    """The same acts, fixed before the first of them is drawn, fit."""
    ledger = Ledger(path)
    ledger.grant("survey", ApproxDP(1.0, 0.01))
    reservation = ledger.reserve("survey", [PureDP(0.5), GaussianDP(0.35)])
    assert isinstance(reservation.charged, ApproxDP)
    assert reservation.cost.delta(reservation.charged.eps) <= reservation.charged.delta_


def test_a_charge_is_fixed_when_it_is_made(path):
    """A larger grant, or another point of view, does not weigh it anew; another currency does."""
    ledger = Ledger(path)
    ledger.grant("survey", ApproxDP(1.0, 1e-6))
    charged = ledger.reserve("survey", GaussianDP(0.1)).charged
    ledger.grant("survey", ApproxDP(2.0, 1e-3))
    assert Ledger(path).balance("survey").reserved == charged.under(REPLACE_ONE)
    ledger.grant("survey", GaussianDP(0.5))
    for book in (ledger, Ledger(path)):
        assert book.balance("survey").reserved == GaussianDP(0.1, adjacency=REPLACE_ONE)
    with pytest.raises(LedgerError, match="something without an amount"):
        ledger.grant("survey", 5.0)


def test_equal_runs_divide_a_grant_without_a_remainder(path):
    """Four plans calibrated to (0.5, 1e-6) spend (2, 4e-6) to the last digit."""
    ledger = Ledger(path)
    ledger.grant("survey", ApproxDP(2.0, 4e-6))
    noise = GaussianDP(gaussian_mu(0.5, 1e-6))
    for _ in range(4):
        ledger.reserve("survey", noise)
    assert ledger.balance("survey").remaining is None


def test_the_promised_point_is_charged_if_the_cost_keeps_it(path):
    ledger = Ledger(path)
    ledger.grant("survey", ApproxDP(0.9, 3e-6))
    noise = GaussianDP(gaussian_mu(0.3, 1e-6))
    assert ledger.reserve("survey", noise, promised=ApproxDP(0.3, 1e-6)).charged == ApproxDP(0.3, 1e-6)
    charged = ledger.reserve("survey", noise, promised=ApproxDP(0.2, 1e-6)).charged  # not kept, so not believed
    assert noise.delta(charged.eps) <= charged.delta_
    assert charged.eps > 0.2


def test_a_model_has_no_plain_amount_of_mu(path):
    ledger = Ledger(path)
    ledger.grant("survey", GaussianDP(5.0))
    with pytest.raises(OverspendError, match="objective perturbation"):
        ledger.reserve("survey", ObjectiveDP(0.2, 0.01))
    ledger.grant("models", ApproxDP(2.0, 1e-6))
    charged = ledger.reserve("models", ObjectiveDP(0.2, 0.01)).charged
    assert ObjectiveDP(0.2, 0.01).delta(charged.eps) <= charged.delta_


def test_reservations_written_before_charges_were_are_weighed_by_the_same_rule(path):
    """An older file: costs that were admitted as one long list now count each for itself."""
    ledger = Ledger(path)
    ledger.grant("survey", ApproxDP(1.0, 0.01))
    written = EntryStore.append

    def old_append(store, seen, draft):
        body = {name: value for name, value in draft.body.items() if name != "charge"}
        return written(store, seen, draft._replace(body=body))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EntryStore, "append", old_append)
        patch.setattr(ledger_module, "fits", lambda charges, grant: True)  # the old rule admitted both
        ledger.reserve("survey", PureDP(0.5))
        ledger.reserve("survey", GaussianDP(0.354))
    read = Ledger(path)
    assert read.balance("survey").remaining is None
    with pytest.raises(OverspendError):
        read.reserve("survey", 1e-6)
    assert [record.action for record in read.history()] == ["grant", "reserve", "reserve"]


def test_underflow_is_not_purity(path):
    """Gaussian noise has no pure ε, however large the grant."""
    ledger = Ledger(path)
    ledger.grant("survey", 1000.0)
    with pytest.raises(OverspendError, match="Gaussian"):
        ledger.reserve("survey", GaussianDP(0.1))


def test_an_undecided_conversion_is_refused_with_that_reason(path):
    ledger = Ledger(path)
    ledger.grant("survey", GaussianDP(1.0))
    with pytest.raises(OverspendError) as caught:
        ledger.reserve("survey", RenyiDP(2.0, 1e-3))
    assert "no known conversion" in caught.value.difference


def test_several_events_are_one_reservation(ledger):
    events = [LaplaceEvent(1.0, 10.0, adjacency=REPLACE_ONE), PureDP(0.2), 0.3]
    reservation = ledger.reserve("survey", events)
    assert reservation.cost.adjacency == REPLACE_ONE
    assert 0.6 <= reservation.cost.epsilon(0.0) < 0.6000001
    assert Ledger(ledger.path).balance("survey").reserved == reservation.charged.under(REPLACE_ONE)


# Life of a reservation


def test_commit_and_release_happen_once(ledger):
    spent, returned = ledger.reserve("survey", 0.5), ledger.reserve("survey", 0.5)
    ledger.commit(spent)
    ledger.release(returned)
    for settle, reservation, words in (
        (ledger.commit, spent, "committed already"),
        (ledger.release, spent, "cannot be taken back"),
        (ledger.release, returned, "released already"),
        (ledger.commit, returned, "do not publish"),
    ):
        with pytest.raises(LedgerError, match=words):
            settle(reservation)
    assert str(ledger.balance("survey")).startswith("survey: granted 1-DP, spent 0.5-DP, left 0.5-DP")


def test_a_reservation_of_another_ledger_is_refused(ledger, tmp_path):
    other = Ledger(tmp_path / "other.db")
    with pytest.raises(LedgerError, match="holds no reservation"):
        other.commit(ledger.reserve("survey", 0.5))


def test_an_error_while_spending_keeps_the_cost(ledger):
    with pytest.raises(KeyboardInterrupt), ledger.spending("survey", 0.4):
        raise KeyboardInterrupt
    balance = ledger.balance("survey")
    assert balance.reserved == PureDP(0.4, adjacency=REPLACE_ONE)
    assert balance.spent is None


def test_a_release_before_the_error_gives_the_cost_back(ledger):
    def fail_early():
        with ledger.spending("survey", 0.4, purpose="mean") as reservation:
            ledger.release(reservation)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_early()
    assert ledger.balance("survey").remaining == PureDP(1.0, adjacency=REPLACE_ONE)


def test_release_without_error_is_left_released(ledger):
    with ledger.spending("survey", 0.4) as reservation:
        ledger.release(reservation)
    assert ledger.balance("survey").remaining == PureDP(1.0, adjacency=REPLACE_ONE)


def test_a_key_finds_its_reservation_again_until_it_is_committed(ledger, path):
    first = ledger.reserve("survey", 0.6, key="run 7")
    assert Ledger(path).reserve("survey", 0.6, key="run 7") == first
    with pytest.raises(LedgerError, match="new key for a new cost"):
        ledger.reserve("survey", 0.5, key="run 7")
    ledger.commit(first)
    with pytest.raises(LedgerError, match="Drawing again is a new cost"):
        ledger.reserve("survey", 0.6, key="run 7")
    assert len(ledger.history()) == 3


def test_a_released_key_is_free_again(ledger):
    ledger.release(ledger.reserve("survey", 0.6, key="run 7"))
    assert ledger.reserve("survey", 0.3, key="run 7").cost == PureDP(0.3, adjacency=REPLACE_ONE)


# Grants and adjacency


def test_granting_again_replaces_the_total_but_not_below_what_counts(ledger):
    ledger.reserve("survey", 0.5)
    ledger.grant("survey", ApproxDP(0.5, 1e-9), note="board")
    with pytest.raises(LedgerError, match=r"0\.5-DP is spent or reserved already"):
        ledger.grant("survey", 0.49)
    assert ledger.balance("survey").granted == ApproxDP(0.5, 1e-9, adjacency=REPLACE_ONE)
    with pytest.raises(LedgerError, match="cannot be carried over"):
        ledger.grant("survey", 5.0, adjacency=ADD_REMOVE)


def test_units_have_grants_of_their_own(ledger):
    person = Adjacency("person", "add-remove")
    ledger.grant("survey", 2.0, adjacency=person)
    with pytest.raises(PrivacyParameterError, match="several units"):
        ledger.reserve("survey", 0.5)
    ledger.reserve("survey", PureDP(0.5, adjacency=person))
    assert ledger.datasets() == [("survey", "record"), ("survey", "person")]
    assert ledger.balance("survey").remaining == PureDP(1.0, adjacency=REPLACE_ONE)
    assert ledger.balance("survey", "person").remaining == PureDP(1.5, adjacency=person)


def test_another_adjacency_is_refused_with_the_reason(ledger):
    with pytest.raises(PrivacyParameterError, match="under adding or removing one record, but survey was granted"):
        ledger.reserve("survey", LaplaceEvent(1.0, 10.0, adjacency=ADD_REMOVE))
    with pytest.raises(PrivacyParameterError, match="the argument says"):
        ledger.reserve("survey", PureDP(0.1, adjacency=ADD_REMOVE), adjacency=REPLACE_ONE)
    with pytest.raises(UnknownDatasetError, match="It has a grant for the unit record"):
        ledger.reserve("survey", 0.1, adjacency=Adjacency("person", "replace-one"))


def test_an_unknown_dataset_names_the_nearest_and_the_way_out(ledger):
    for ask in (lambda name: ledger.reserve(name, 0.1), ledger.balance, ledger.history):
        with pytest.raises(UnknownDatasetError, match=r"Did you mean 'survey'\?.*sfumato ledger grant survye"):
            ask("survye")


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), 0.0, -0.1, True, "0.1", None, [], [0.1, float("nan")]])
def test_a_meaningless_cost_is_refused(ledger, cost):
    with pytest.raises(PrivacyParameterError):
        ledger.reserve("survey", cost)
    with pytest.raises(PrivacyParameterError):
        ledger.grant("survey", cost)
    assert len(ledger.history()) == 1


@pytest.mark.parametrize("name", ["", " survey", "two\nlines", "\ud800", None])
def test_a_dataset_needs_a_readable_name(ledger, name):
    with pytest.raises(InputError):
        ledger.grant(name, 1.0)


def test_what_cannot_be_added_later_is_refused_now(ledger):
    with pytest.raises(PrivacyParameterError, match="incomparable"):
        ledger.reserve("survey", WorstOf((PureDP(0.1), ZCDP(0.1))))
    with pytest.raises(PrivacyParameterError, match="cannot be granted"):
        ledger.grant("survey", NoGuarantee("none"))


def test_no_guarantee_is_recorded_only_when_accepted_and_never_counted(ledger):
    exposed = NoGuarantee("published as in 2016")
    with pytest.raises(PrivacyParameterError, match="accept_no_guarantee=True"):
        ledger.reserve("survey", exposed)
    with pytest.raises(PrivacyParameterError, match="one by one"):
        ledger.reserve("survey", [exposed, PureDP(0.5)], accept_no_guarantee=True)
    ledger.commit(ledger.reserve("survey", exposed, accept_no_guarantee=True))
    ledger.reserve("survey", 1.0)
    assert ledger.balance("survey").without_guarantee == 1
    assert "NO PRIVACY GUARANTEE" in str(ledger.balance("survey"))


# Any sequence of operations


class AnySequence(RuleBasedStateMachine):
    """Reserve, commit, release and regrant in any order, reopening now and then: what counts keeps the grant."""

    @initialize(total=st.sampled_from([PureDP(1.0), GaussianDP(1.0), ZCDP(0.5)]))
    def start(self, total):
        self.folder = Path(os.environ["PYTEST_LEDGER_FOLDER"]) / os.urandom(6).hex()
        self.folder.mkdir()
        self.ledger = Ledger(self.folder / "ledger.db")
        self.ledger.grant("survey", total)
        self.kind, self.counted, self.open = type(total), [], []

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @staticmethod
    def keeps(costs, grant):
        total = compose(costs)
        return total.epsilon(0.0) <= grant.eps if isinstance(grant, PureDP) else total.implies(grant) is True

    @rule(amount=st.integers(1, 60).map(lambda hundredths: hundredths / 100))
    def reserve(self, amount):
        cost = self.kind(amount, adjacency=REPLACE_ONE)
        try:
            self.open.append(self.ledger.reserve("survey", cost))
        except OverspendError:
            assert not self.keeps([*self.counted, cost], self.ledger.balance("survey").granted)
        else:
            self.counted.append(cost)

    @rule(choice=st.randoms(use_true_random=False), commits=st.booleans())
    def settle(self, choice, commits):
        if self.open:
            reservation = self.open.pop(choice.randrange(len(self.open)))
            (self.ledger.commit if commits else self.ledger.release)(reservation)
            if not commits:
                self.counted.remove(reservation.cost)

    @rule(total=st.integers(1, 150).map(lambda hundredths: hundredths / 100))
    def regrant(self, total):
        try:
            self.ledger.grant("survey", self.kind(total))
        except LedgerError:
            assert self.counted

    @rule()
    def reopen(self):
        self.ledger = Ledger(self.folder / "ledger.db")

    @invariant()
    def what_counts_keeps_the_grant(self):
        if hasattr(self, "ledger") and self.counted:
            balance = self.ledger.balance("survey")
            assert self.keeps(self.counted, balance.granted)
            parts = [part for part in (balance.spent, balance.reserved) if part]
            together, one_by_one = compose(parts), compose(self.counted)
            if self.kind is GaussianDP:  # a root of a sum of roots is rounded twice
                assert together.mu == pytest.approx(one_by_one.mu, rel=1e-13)
            elif self.kind is PureDP:
                assert together.epsilon(0.0) == one_by_one.epsilon(0.0)
            else:
                assert together == one_by_one
            if self.kind is PureDP:
                left = Decimal(repr(balance.remaining.eps)) if balance.remaining else Decimal(0)
                exact = sum(Decimal(repr(cost.eps)) for cost in self.counted)
                assert 0 <= Decimal(repr(balance.granted.eps)) - exact - left < Decimal("1e-8")


def test_any_sequence_keeps_the_grant(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_LEDGER_FOLDER", str(tmp_path))
    chosen = settings(
        max_examples=20, stateful_step_count=12, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(AnySequence, settings=chosen)


def test_values_are_frozen(ledger):
    reservation, balance = ledger.reserve("survey", 0.5), ledger.balance("survey")
    assert isinstance(reservation, Reservation)
    assert isinstance(balance, Balance)
    for value in (reservation, balance, ledger.history()[0]):
        with pytest.raises(AttributeError):
            value.dataset = "other"
