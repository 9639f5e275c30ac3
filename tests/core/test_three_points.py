"""Channels that keep an ε and a distance in total variation, composed: against every output written out.

Every pair of inputs and every sequence of outputs is enumerated in fractions, which shares no code with core.
"""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import REPLACE_ONE, PureDP, compose
from sfumato.core.certificate import Certificate
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.events.event import GaussianEvent, LaplaceEvent, RandomizedResponseEvent, Repeated
from sfumato.core.loss_distribution import law_delta
from sfumato.core.parts import Part
from sfumato.evidence.losses import Part as OwnPart
from sfumato.evidence.losses import alike
from sfumato.evidence.verify import verify

TOTAL = 60


@st.composite
def weights(draw):
    """A channel of up to four inputs and outputs, every weight positive."""
    inputs, outputs = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    rows = []
    for _ in range(inputs):
        cuts = sorted(draw(st.sets(st.integers(1, TOTAL - 1), min_size=outputs - 1, max_size=outputs - 1)))
        rows.append(tuple(int(step) for step in np.diff([0, *cuts, TOTAL])))
    return tuple(rows)


def true_delta(channels, epsilon: float) -> float:
    """The worst δ(ε) over the two values of one record, each sent through all channels."""
    factor, worst = Fraction(math.exp(epsilon)), Fraction(0)
    for before in itertools.product(*(range(len(one)) for one in channels)):
        for after in itertools.product(*(range(len(one)) for one in channels)):
            total = Fraction(0)
            for outputs in itertools.product(*(range(len(one[0])) for one in channels)):
                p = math.prod(one[x][y] for one, x, y in zip(channels, before, outputs, strict=True))
                q = math.prod(one[x][y] for one, x, y in zip(channels, after, outputs, strict=True))
                total += max(Fraction(0), p - factor * q)
            worst = max(worst, total / TOTAL ** len(channels))
    return float(worst)


@pytest.mark.paper("002", "§5.3, composition", "core/parts.py")
@settings(max_examples=25, deadline=None)
@given(weights(), weights(), st.floats(0.0, 2.0))
def test_no_composition_is_worse_than_stated(one, other, epsilon):
    if any(len(set(rows)) == 1 for rows in (one, other)):
        return
    together = compose([ChannelEvent(rows, adjacency=REPLACE_ONE) for rows in (one, other)])
    assert true_delta([one, other], epsilon) <= together.delta(epsilon) * (1 + 1e-9)


def test_a_chance_that_is_too_small_is_found():
    """The planted relative: a tenth fewer answers than the total variation asks for."""
    rows = ((40, 10, 10), (10, 40, 10))
    event = ChannelEvent(rows, adjacency=REPLACE_ONE)
    honest = Part("three-point", event.eps, event.answers, 2)
    planted = Part("three-point", event.eps, 0.9 * event.answers, 2)
    true = true_delta([rows, rows], 0.5)
    assert law_delta((planted,), 0.5) < true <= law_delta((honest,), 0.5) * (1 + 1e-9)


@pytest.mark.parametrize("categories", [2, 3, 10])
@pytest.mark.parametrize("times", [1, 2, 7, 300])
def test_randomised_response_is_exact(categories, times):
    """δ(ε) of so many answers by the trinomial law itself, in plain floating point."""
    event = RandomizedResponseEvent(categories, 5, 3, adjacency=REPLACE_ONE)
    composed = compose([Repeated(event, times)])
    total = 5 + 3 * (categories - 1)
    law = np.ones(1)
    for _ in range(times):
        law = np.convolve(law, [3 / total, 1 - 8 / total, 5 / total])
    losses = math.log(5 / 3) * np.arange(-times, times + 1)
    for share in (0.0, 0.1, 0.4):
        epsilon = share * times * math.log(5 / 3) / math.sqrt(times)
        true = float(np.sum(law * np.maximum(0, -np.expm1(epsilon - losses))))
        assert true * (1 - 1e-9) <= composed.delta(epsilon)
        if times > 1:  # alone, what is stated is the ε
            assert composed.delta(epsilon) <= true * 1.02 + 1e-6


def test_many_categories_cost_less_together_than_their_epsilons():
    event = RandomizedResponseEvent(10, 3, 1, adjacency=REPLACE_ONE)
    assert compose([Repeated(event, 20)]).epsilon(1e-6) < 0.75 * compose([PureDP(event.eps)] * 20).epsilon(1e-6)


@pytest.mark.parametrize("others", [(), (GaussianEvent(1.0, 4.0, adjacency=REPLACE_ONE),)])
def test_both_roads_agree(others):
    rows = ((40, 10, 10), (10, 40, 10), (20, 20, 20))
    events = [Repeated(ChannelEvent(rows, adjacency=REPLACE_ONE), 3), *others]
    events.append(RandomizedResponseEvent(7, 3, 1, adjacency=REPLACE_ONE))
    proofs = sorted({event.proof_id() for event in events})
    certificate = Certificate.issue(subject="channels", events=events, proofs=proofs)
    assert verify(certificate).ok
    parts = json.loads(certificate.to_json())["composed"]["parts"]
    assert [kind for kind, *_ in parts if kind == "three-point"]


def test_a_certificate_that_counts_on_no_silence_still_verifies(monkeypatch):
    """Certificates once stated two points for every channel."""
    event = RandomizedResponseEvent(7, 3, 1, adjacency=REPLACE_ONE)
    laplace = LaplaceEvent(1.0, 2.0, adjacency=REPLACE_ONE)
    with monkeypatch.context() as once:
        once.setattr(RandomizedResponseEvent, "answers", None)
        old = Certificate.issue(
            subject="old", events=[event, event, laplace], proofs=["laplace", "randomized_response"]
        ).to_json()
    assert "three-point" not in old
    assert verify(old).ok


def near(epsilon: float, units: int, parts: int, chance: np.random.Generator) -> ChannelEvent:
    """A channel of 2^62 units whose ratio is e^ε but for `units`, and that answers with a chance of its own."""
    whole = 1 << 62
    silent = int(chance.integers(0, whole // 2)) if parts == 3 else 0
    less = int((whole - silent) / (1 + math.exp(epsilon))) - units
    more = whole - silent - less
    rows = [[more, less], [less, more]] if parts == 2 else [[more, less, silent], [less, more, silent]]
    return ChannelEvent(rows, adjacency=REPLACE_ONE)


@pytest.mark.slow
def test_channels_that_differ_in_the_last_digits_verify():
    """Floats order them by their chances, all digits by their ratios: an honest certificate was refused."""
    chance, refused = np.random.default_rng(3), []
    for _ in range(8):
        epsilon = float(chance.uniform(0.1, 3))
        acts = [near(epsilon, *map(int, chance.integers((0, 2), (200, 4))), chance) for _ in range(3)]
        certificate = Certificate.issue(subject="x", events=acts, proofs=["tailored_noise"])
        if not verify(certificate).ok:
            refused.append([act.eps for act in acts])
    assert refused == []


def test_many_channels_do_not_lower_each_others_chances():
    """Laws that agree but for rounding are one, with the largest of their numbers."""
    chain = [OwnPart("three-point", 1 + place * Decimal("1e-25"), 0.5 * (1 - 5e-13) ** place) for place in range(1000)]
    merged = alike(chain)
    assert sum(one.times for one in merged) == 1000
    assert math.fsum(one.delta * one.times for one in merged) >= math.fsum(one.delta for one in chain)
