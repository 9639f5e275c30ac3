"""Who pays: a centre is charged exactly when its data may have become part of an opened sum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from centres.small_rounds import granted_accounts, last_action, small_round
from sfumato.centres.node import Charge, check_agreement
from sfumato.centres.outcome import Outcome
from sfumato.centres.participant import Participant
from sfumato.errors import MessageError, OverspendError, RefusedError


def charge(tmp_path, sent, **options):
    agreed, keys, cells = small_round(5, 5, **options)
    one = Charge(agreed, "centre 0", granted_accounts(tmp_path, agreed, names=["centre 0"])("centre 0"))
    one.reserve()
    if sent:
        one.register.claim(agreed.hash, "centre 0", "masked")
    refusals = [Participant(agreed, name, keys[name], vector).refuse() for name, vector in cells.items()]
    return one, refusals


@pytest.mark.parametrize(
    ("sent", "outcome", "word"),
    [
        (False, None, "release"),
        (False, Outcome(False), "release"),
        (True, None, "open"),
        (True, Outcome(True, "", (1.0,), ("centre 0", "centre 1", "centre 2")), "commit"),
        (True, Outcome(True, "", (1.0,), ("centre 1", "centre 2", "centre 3")), "release"),
        (True, Outcome(False, "too few"), "release"),
    ],
)
def test_a_coordinator_that_follows_the_protocol_is_believed(sent, outcome, word, tmp_path):
    one, _ = charge(tmp_path, sent)
    assert one.settle(outcome) == word
    assert last_action(tmp_path, "centre 0") == {"open": "reserve"}.get(word, word)


@pytest.mark.parametrize(("refusing", "word"), [(0, "open"), (2, "open"), (3, "release"), (5, "release")])
def test_a_malicious_coordinator_must_prove_that_nothing_was_opened(refusing, word, tmp_path):
    one, refusals = charge(tmp_path, True, coordinator="malicious")
    assert one.settle(Outcome(False, "", None, (), tuple(refusals[:refusing]))) == word


def test_forged_refusals_prove_nothing(tmp_path):
    one, refusals = charge(tmp_path, True, coordinator="malicious")
    forged = tuple(replace(message, signature=bytes(64)) for message in refusals)
    assert one.settle(Outcome(False, "", None, (), forged)) == "open"


def test_a_malicious_coordinator_cannot_say_that_a_centre_was_left_out(tmp_path):
    one, _ = charge(tmp_path, True, coordinator="malicious")
    assert one.settle(Outcome(True, "", (1.0,), ("centre 1",))) == "commit"


def test_a_cost_that_does_not_fit_is_refused_and_nothing_stays_reserved(tmp_path):
    agreed, _, _ = small_round(5, 5)
    one = Charge(agreed, "centre 0", granted_accounts(tmp_path, agreed, 0.5, ["centre 0"])("centre 0"))
    with pytest.raises(OverspendError):
        one.reserve()
    assert last_action(tmp_path, "centre 0") == "grant"


def test_the_offer_must_be_what_was_approved():
    agreed, _, _ = small_round(5, 5)
    texts = [certificate.to_json() for certificate in agreed.certificates()]
    check_agreement(agreed, replace(agreed, nonce=""), texts)
    with pytest.raises(RefusedError, match="fresh number"):
        check_agreement(replace(agreed, nonce=""), agreed, texts)
    for changed in ({"scale": agreed.scale * 1.5}, {"step_seconds": 1.0}, {"absences": 1}):
        with pytest.raises(RefusedError, match="differs"):
            check_agreement(replace(agreed, **changed), agreed, texts)
    louder = replace(agreed, scale=agreed.scale * 2)
    for wrong in ([], ["{}"], [certificate.to_json() for certificate in louder.certificates()]):
        with pytest.raises(RefusedError):
            check_agreement(agreed, agreed, wrong)


def test_an_outcome_survives_writing_and_doubt_counts_as_revealed(tmp_path):
    _, refusals = charge(tmp_path, True)
    outcome = Outcome(False, "x", None, (), tuple(refusals))
    assert Outcome.from_dict(outcome.to_dict()) == outcome
    assert Outcome.from_dict({**outcome.to_dict(), "revealed": "no"}).revealed
    with pytest.raises(MessageError):
        Outcome.from_dict({"revealed": False})
