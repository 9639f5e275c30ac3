"""The protocol in one process: the sum is right up to the planned noise, and nobody learns more than the sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from centres.small_rounds import PATIENT, is_planned_noise, small_round, truth
from sfumato.centres import Requirement, aggregate_in_memory, new_centres
from sfumato.centres.aggregator import Aggregator
from sfumato.centres.masks import mask, pack, pair_key, private_key, public_bytes, unpack
from sfumato.centres.messages import STEPS, Message, write_json
from sfumato.centres.outcome import proves_silence
from sfumato.centres.participant import Participant
from sfumato.core import PureDP
from sfumato.errors import InputError, MessageError, RefusedError, RoundFailedError
from sfumato.evidence import verify


def runs(agreed, keys, cells, count):
    return [aggregate_in_memory(agreed.fresh(), cells, keys) for _ in range(count)]


def residuals(agreed, keys, cells, count):
    everybody = truth(agreed, cells, cells)
    return np.array([found.values - everybody for found in runs(agreed, keys, cells, count)])


def test_the_sum_is_the_central_one_up_to_the_planned_noise():
    """Chi-square over 60 rounds of 5 centres and 10⁴ numbers; each round and all together, and normal in shape."""
    agreed, keys, cells = small_round(5, 10_000)
    errors = residuals(agreed, keys, cells, 60)
    deviation = agreed.scale * np.sqrt(5 / agreed.honest)
    assert is_planned_noise(errors, deviation)
    each = stats.chi2.cdf((errors**2).sum(axis=1) / deviation**2, 10_000)
    assert stats.kstest(each, "uniform").pvalue > 1e-4
    assert stats.kstest(errors.ravel()[:100_000] / deviation, "norm").pvalue > 1e-4
    for wrong in (2 / 3, 0.99, 1.01, 3 / 2):
        assert not is_planned_noise(errors, deviation * wrong)


@pytest.mark.slow
def test_fifty_centres_over_two_hundred_rounds():
    agreed, keys, cells = small_round(50, 10_000)
    errors = residuals(agreed, keys, cells, 200)
    deviation = agreed.scale * np.sqrt(50 / agreed.honest)
    assert is_planned_noise(errors, deviation)
    for wrong in (0.995, 1.005):
        assert not is_planned_noise(errors, deviation * wrong)


@pytest.mark.slow
def test_pure_promises_get_geometric_noise():
    agreed, keys, cells = small_round(4, 60, Requirement(PATIENT, PureDP(1.0)), absences=1, colluders=1)
    assert agreed.law == "laplace"
    errors = residuals(agreed, keys, cells, 60)
    found = aggregate_in_memory(agreed.fresh(), cells, keys)
    assert found.deviation == pytest.approx(agreed.scale * np.sqrt(2 * 4 / 2))
    assert np.var(errors) == pytest.approx(found.deviation**2, rel=0.12)


def test_no_noise_share_is_known_to_the_others():
    """Without one centre's share the rest is not enough noise: what the event promises is what k honest ones give."""
    agreed, _, _ = small_round(5, 10, colluders=1, absences=1)
    assert (agreed.honest, agreed.quorum, agreed.events[0].honest) == (3, 4, 3)
    assert [verify(certificate).ok for certificate in agreed.certificates()] == [True]
    assert "up to 1 may collude" in agreed.certificates()[0].notes[0]


def test_who_knows_fewer_shares_learns_less():
    """The public, one centre, and the coalition of the certificate; a sum with everybody in it hides more."""
    agreed, _, _ = small_round(6, 10, colluders=2, absences=1)
    costs = [agreed.events_for(knowing, 6)[0].mu for knowing in (0, 1, 2)]
    assert costs[0] < costs[1] < costs[2] < agreed.events[0].mu
    assert agreed.events_for(2, 5)[0].mu == pytest.approx(agreed.events[0].mu, rel=1e-12)
    assert agreed.events_for(2, 5)[0].mu >= agreed.events[0].mu
    assert costs[0] == pytest.approx(agreed.events[0].mu * np.sqrt(3 / 6), rel=1e-9)
    for knowing, included in ((3, 6), (0, 4), (0, 7), (-1, 6)):
        with pytest.raises(InputError):
            agreed.events_for(knowing, included)


@pytest.mark.parametrize("coordinator", ["curious", "malicious"])
@pytest.mark.parametrize("step", STEPS)
def test_two_of_five_may_leave_at_any_step(step, coordinator):
    agreed, keys, cells = small_round(5, 400, coordinator=coordinator)
    gone = dict.fromkeys(list(cells)[1:3], step)
    found = aggregate_in_memory(agreed, cells, keys, leaves=gone)
    stayed = set(cells) - (set(gone) if step in STEPS[:3] else set())
    assert set(found.included) == stayed
    assert set(found.absent) == set(gone)
    assert is_planned_noise(found.values - truth(agreed, cells, stayed), found.deviation)
    assert found.deviation == pytest.approx(agreed.scale * np.sqrt(len(stayed) / 3))


@pytest.mark.parametrize("step", STEPS)
def test_three_of_five_are_too_many(step):
    agreed, keys, cells = small_round(5, 40)
    with pytest.raises(RoundFailedError, match="needed") as caught:
        aggregate_in_memory(agreed, cells, keys, leaves=dict.fromkeys(list(cells)[:3], step))
    assert not caught.value.revealed


def test_a_masked_vector_looks_uniform_whatever_is_in_it():
    """Byte counts of what leaves a centre with huge and with no values; the noise alone would not look like this."""
    agreed, keys, cells = small_round(3, 20_000)
    for vector in (np.zeros(20_000, dtype=np.int64), np.full(20_000, agreed.largest_part)):
        members, _ = at_step(agreed, keys, {**cells, "centre 0": vector}, "masked")
        body = members["centre 0"].body
        counts = np.bincount(np.frombuffer(body, dtype=np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-6
    plain = np.bincount(np.frombuffer(pack(cells["centre 0"].view(np.uint64), 8), dtype=np.uint8), minlength=256)
    assert stats.chisquare(plain).pvalue < 1e-6


def at_step(agreed, keys, cells, step):
    """The messages of `step`, and the participants with their coordinator."""
    members = {name: Participant(agreed, name, keys[name], vector) for name, vector in cells.items()}
    coordinator = Aggregator(agreed)
    said: dict[str, Message] = {}
    for now in STEPS[: STEPS.index(step) + 1]:
        if now != STEPS[0]:
            coordinator.advance()
        said = {}
        for name, member in members.items():
            said[name] = {
                "keys": member.keys,
                "shares": lambda member=member: member.shares(coordinator.public_keys()),
                "masked": lambda name=name, member=member: member.masked(coordinator.parcels_for(name)),
                "agreed": lambda member=member: member.agreed(coordinator.included()),
                "unmask": lambda member=member: member.unmask(coordinator.signatures()),
            }[now]()
            if now != step:
                coordinator.accept(said[name])
    return said, (members, coordinator)


def test_a_participant_answers_every_step_once():
    """A second answer could open a second sum over the same noise."""
    agreed, keys, cells = small_round(3, 5)
    _said, (members, coordinator) = at_step(agreed, keys, cells, "unmask")
    member = members["centre 0"]
    with pytest.raises(MessageError, match="out of turn"):
        member.unmask(coordinator.signatures())
    with pytest.raises(MessageError, match="out of turn"):
        member.agreed(coordinator.included())
    with pytest.raises(RefusedError, match="already given"):
        member.refuse()


def test_a_participant_may_sleep_between_the_steps():
    """With its memory written down after every step and read by a new object the round goes on."""
    agreed, keys, cells = small_round(3, 300)
    coordinator = Aggregator(agreed)
    memories: dict[str, bytes] = {}
    for step in STEPS:
        for name in cells:
            member = Participant(agreed, name, keys[name], cells[name])
            if name in memories:
                member.recall(memories[name])
            said = {
                "keys": member.keys,
                "shares": lambda member=member: member.shares(coordinator.public_keys()),
                "masked": lambda member=member, name=name: member.masked(coordinator.parcels_for(name)),
                "agreed": lambda member=member: member.agreed(coordinator.included()),
                "unmask": lambda member=member: member.unmask(coordinator.signatures()),
            }[step]()
            coordinator.accept(said)
            memories[name] = member.memory()
        coordinator.advance()
    errors = coordinator.total() * agreed.grid - truth(agreed, cells, cells)
    assert is_planned_noise(errors, agreed.scale * np.sqrt(3 / agreed.honest))
    done = Participant(agreed, "centre 0", keys["centre 0"], cells["centre 0"])
    done.recall(memories["centre 0"])
    with pytest.raises(MessageError, match="out of turn"):
        done.unmask(coordinator.signatures())


def test_a_participant_that_was_cheated_says_no_more():
    agreed, keys, cells = small_round(3, 5)
    _, (members, coordinator) = at_step(agreed, keys, cells, "keys")
    member = members["centre 0"]
    with pytest.raises(MessageError, match="Too few"):
        member.shares([])
    with pytest.raises(MessageError, match="out of turn"):
        member.shares(coordinator.public_keys())
    assert member.refuse().step == "refuse"


def test_keys_that_a_coordinator_made_up_are_refused():
    agreed, keys, cells = small_round(3, 5)
    said, (members, _) = at_step(agreed, keys, cells, "keys")
    own = write_json([public_bytes(bytes(32 * [7])).hex()] * 2)
    forged = replace(said["centre 1"], body=own)
    with pytest.raises(MessageError, match="signature"):
        members["centre 0"].shares([said["centre 0"], forged, said["centre 2"]])


def test_a_set_that_is_too_small_is_not_signed():
    agreed, keys, cells = small_round(5, 5)
    _, (members, _) = at_step(agreed, keys, cells, "masked")
    with pytest.raises(MessageError, match="Too few centres in the sum"):
        members["centre 0"].agreed(["centre 0", "centre 1"])
    for wrong in (
        ["centre 1", "centre 2", "centre 3"],
        ["centre 1"] * 3 + ["centre 0"],
        ["centre 1", "x", "centre 3", "y"],
    ):
        with pytest.raises(MessageError):
            members["centre 1" if "centre 1" not in wrong else "centre 4"].agreed(wrong)


def test_two_sets_cannot_both_be_opened():
    """A malicious coordinator shows one set to some and another to the rest: neither side unmasks."""
    agreed, keys, cells = small_round(5, 5, coordinator="malicious", absences=1)
    assert 2 * agreed.threshold > 5
    _, (members, _) = at_step(agreed, keys, cells, "masked")
    names = sorted(cells)
    one, other = names, names[:-1]
    signed = {name: members[name].agreed(one if name in names[:2] else other) for name in names[:-1]}
    for name in names[:-1]:
        mine = [message for message in signed.values() if message.body == signed[name].body]
        with pytest.raises(MessageError, match=r"Too few centres agreed|another set"):
            members[name].unmask(mine if name in names[:2] else list(signed.values()))


def test_forged_agreement_opens_nothing():
    agreed, keys, cells = small_round(3, 5, absences=0)
    said, (members, _) = at_step(agreed, keys, cells, "agreed")
    forged = [said["centre 0"], replace(said["centre 1"], signature=bytes(64)), said["centre 2"]]
    with pytest.raises(MessageError, match="signature"):
        members["centre 0"].unmask(forged)
    doubled = [said["centre 1"]] * 3
    with pytest.raises(MessageError, match="Too few"):
        members["centre 1"].unmask(doubled)


def test_unmasking_gives_one_kind_of_share_for_each_centre():
    agreed, keys, cells = small_round(5, 5)
    members = {name: Participant(agreed, name, keys[name], vector) for name, vector in cells.items()}
    coordinator = Aggregator(agreed)
    for step in STEPS[:2]:
        for member in members.values():
            coordinator.accept(member.keys() if step == "keys" else member.shares(coordinator.public_keys()))
        coordinator.advance()
    for name in sorted(members)[:4]:
        coordinator.accept(members[name].masked(coordinator.parcels_for(name)))
    coordinator.advance()
    for name in sorted(members)[:4]:
        coordinator.accept(members[name].agreed(coordinator.included()))
    coordinator.advance()
    for name in sorted(members)[:4]:
        coordinator.accept(members[name].unmask(coordinator.signatures()))
    for inside, absent in coordinator._given.values():
        assert not set(inside) & set(absent)
        assert set(absent) == {"centre 4"}
    assert is_planned_noise(
        coordinator.total() * agreed.grid - truth(agreed, cells, sorted(cells)[:4]),
        agreed.scale * np.sqrt(4 / 3),
    )


@pytest.mark.parametrize("fault", ["step", "round", "sender", "signature", "twice", "stranger"])
def test_a_coordinator_takes_no_message_out_of_place(fault):
    agreed, keys, cells = small_round(3, 5)
    said, (_, coordinator) = at_step(agreed, keys, cells, "shares")
    good, key = said["centre 0"], keys["centre 0"]
    wrong = {
        "step": Message(agreed.hash, "centre 0", "masked", good.body).sign(key),
        "round": Message("0" * 64, "centre 0", "shares", good.body).sign(key),
        "sender": Message(agreed.hash, "centre 1", "shares", good.body).sign(key),
        "signature": replace(good, signature=bytes(64)),
        "twice": good,
        "stranger": Message(agreed.hash, "nobody", "shares", good.body).sign(key),
    }[fault]
    if fault == "twice":
        coordinator.accept(good)
    before = coordinator.present()
    with pytest.raises(MessageError):
        coordinator.accept(wrong)
    assert coordinator.present() == before


def test_one_wrong_share_is_passed_over_and_many_end_the_round():
    agreed, keys, cells = small_round(5, 30)
    said, (_, coordinator) = at_step(agreed, keys, cells, "unmask")
    coordinator.advance() if coordinator.step != "unmask" else None
    for message in said.values():
        coordinator.accept(message)
    spoil(coordinator, ["centre 2"])
    found = coordinator.total() * agreed.grid
    assert is_planned_noise(found - truth(agreed, cells, cells), agreed.scale * np.sqrt(5 / 3))
    spoil(coordinator, ["centre 0", "centre 4"])
    with pytest.raises(RoundFailedError, match="counts as spent") as caught:
        coordinator.total()
    assert caught.value.revealed


def spoil(coordinator, names):
    for name in names:
        inside, absent = coordinator._given[name]
        coordinator._given[name] = {other: share + 1 for other, share in inside.items()}, absent


def test_who_may_not_take_part_is_refused_before_anything_leaves():
    agreed, keys, cells = small_round(3, 5)
    stranger = new_centres(["x"])[1]["x"]
    for name, key, vector in (
        ("nobody", stranger, cells["centre 0"]),
        ("centre 0", stranger, cells["centre 0"]),
        ("centre 0", keys["centre 0"], cells["centre 0"][:-1]),
        ("centre 0", keys["centre 0"], cells["centre 0"].astype(float)),
        ("centre 0", keys["centre 0"], np.full(5, agreed.largest_part + 1)),
    ):
        with pytest.raises(RefusedError, match="Nothing left the centre"):
            Participant(agreed, name, key, vector)


def test_refusals_prove_silence_only_if_enough_are_genuine():
    agreed, keys, cells = small_round(5, 5, coordinator="malicious", colluders=1, absences=1)
    members = {name: Participant(agreed, name, keys[name], vector) for name, vector in cells.items()}
    refusals = [member.refuse() for member in members.values()]
    needed = 5 - agreed.threshold + 1 + 1  # one of them may lie
    assert proves_silence(agreed, refusals[:needed])
    assert not proves_silence(agreed, refusals[: needed - 1])
    assert not proves_silence(agreed, [refusals[0]] * 5)
    with pytest.raises(MessageError):
        proves_silence(agreed, [replace(one, signature=bytes(64)) for one in refusals])


def test_masks_cancel_in_pairs_and_packing_keeps_low_bits():
    first, second = bytes([1] * 32), bytes([2] * 32)
    one = pair_key(private_key(first), public_bytes(second), "mask", "r")
    assert one == pair_key(private_key(second), public_bytes(first), "mask", "r")
    assert one != pair_key(private_key(second), public_bytes(first), "mask", "another round")
    words = mask(one, 100)
    assert np.array_equal(unpack(pack(words, 5), 5, 100), words & np.uint64(2**40 - 1))
    with pytest.raises(MessageError, match="wrong length"):
        unpack(b"123", 5, 1)
    with pytest.raises(MessageError):
        pair_key(private_key(first), bytes(32), "mask", "r")
