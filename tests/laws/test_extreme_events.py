"""Extreme but readable events are priced by both roads in seconds, without a crash, and honest ones verify."""

from __future__ import annotations

import json
import math
import random
import time

import pytest

from sfumato.core import REPLACE_ONE, ApproxDP, BoxEvent, GaussianDP, PureDP, Repeated, compose
from sfumato.core.certificate import Certificate
from sfumato.core.events.channel import ChannelEvent, delta_of_weights
from sfumato.evidence import verify

SECONDS = 60.0


def leaking(chance: float, at: float = 0.5) -> ChannelEvent:
    total = 1 << 40
    leak = int(total * chance)
    return ChannelEvent([[total - leak, leak, 0], [total - leak, 0, leak]], at=at, adjacency=REPLACE_ONE)


def events(rng: random.Random):
    kind = rng.choice(["box", "far", "failing"])
    if kind == "box":
        return BoxEvent(10 ** rng.uniform(-300, -1), 1.0, rng.choice([0.0, 100.0]), adjacency=REPLACE_ONE)
    if kind == "far":
        return leaking(10 ** rng.uniform(-9, -1), 10 ** rng.uniform(0, 300))
    return Repeated(leaking(rng.uniform(0.05, 0.95)), rng.choice([1, 2, 20, 200]))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(1)
def test_extreme_events_end_soon_and_verify(seed):
    event = events(random.Random(seed))
    start = time.process_time()
    certificate = Certificate.issue(subject="s", events=[event], proofs=[event.proof_id()])
    assert verify(certificate).failures == ()
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize("change", [{"at": 1e6}, {"at": 1e300}])
def test_an_edited_channel_does_not_keep_the_verifier_busy(change):
    record = json.loads(Certificate.issue(subject="s", events=[leaking(0.01)], proofs=["tailored_noise"]).to_json())
    record["events"][0] |= change
    start = time.process_time()
    assert not verify(json.dumps(record)).ok
    assert time.process_time() - start < SECONDS


def test_far_epsilons_find_the_delta_of_the_zeros():
    weights = [[2**127, 2**127, 0], [2**128 - 2, 1, 1]]
    assert delta_of_weights(weights, 90.0) == delta_of_weights(weights, 1e6) == delta_of_weights(weights, 699.0)


@pytest.mark.parametrize("chance", [0.3, 0.9, 1 - 1e-6])
@pytest.mark.parametrize("count", [1, 10, 30, 60, 110, 1000])
@pytest.mark.parametrize("other", [PureDP(0.3), GaussianDP(0.1), ApproxDP(2.0, 1e-6)])
@pytest.mark.by_day(11)
def test_acts_that_are_bound_to_fail_promise_nothing(chance, count, other):
    total = compose([ApproxDP(1.0, chance)] * count + [other])
    fails = -math.expm1(count * math.log1p(-chance))
    for epsilon in (0.0, 1.0, 50.0):
        assert fails * (1 - 1e-9) <= total.delta(epsilon) <= 1.0
    assert total.epsilon(1e-6) == math.inf
    assert fails * (1 - 1e-9) <= total.advantage() <= 1.0
    assert total.implies(ApproxDP(1.0, 0.01)) is not True
    assert str(total)
