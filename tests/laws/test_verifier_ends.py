"""The verifier answers: no record of a few lines fills its memory or its day, and honest ones at the ends hold."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ApproxDP,
    BoxEvent,
    GaussianEvent,
    NormGammaEvent,
    ObjectivePerturbationEvent,
    Repeated,
    compose,
)
from sfumato.core.certificate import Certificate
from sfumato.core.dependence import Known
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.events.event import Event
from sfumato.core.events.groups import GroupCountsEvent, delta_of_naming
from sfumato.core.events.learning import ObjectiveDP
from sfumato.core.pufferfish import Pufferfish
from sfumato.evidence import verify
from sfumato.evidence.laws import law_of
from sfumato.evidence.losses import Part, event_parts, written
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.group_counts import naming_weights


def refused(events: list[Event | Repeated], **more: object) -> list[str]:
    proofs = sorted({event.proof_id() for event in events} | {"pufferfish"})
    made = Certificate.issue(subject="acts", events=events, proofs=proofs, **more)  # type: ignore[arg-type]
    return [check.field for check in verify(made).failures]


def test_many_training_runs_are_checked_in_little_memory():
    """A record of one line: a transform of all losses at once would have needed 32 GB."""
    event = ObjectivePerturbationEvent("gaussian", 1.0, 0.25, 1e9, 1e6, adjacency=ADD_REMOVE)
    (part,) = event_parts([Repeated(event, 10**6).to_dict()])
    assert 0 < law_of((part,)).delta(0.01) < 1


@pytest.mark.parametrize("runs", [65, 200, 1000])
def test_runs_added_up_by_doubling_cost_what_core_finds(runs: int):
    mu, shift = 0.3 / math.sqrt(runs), 1e-4
    law = law_of((Part("objective", written(mu), shift, runs),))
    for epsilon in (0.5, 1.0, 1.5):
        assert law.delta(epsilon) == pytest.approx(ObjectiveDP(mu, shift, runs).delta(epsilon), rel=1e-2)


def test_acts_that_are_certain_to_fail_are_read():
    naming = GroupCountsEvent(naming_weights(1.0, 1e-2), 1.0, 3, adjacency=REPLACE_ONE)
    channel = ChannelEvent([[3, 5, 2], [2, 6, 2], [1, 1, 8]], 0.1, adjacency=REPLACE_ONE)
    noise = GaussianEvent(1.0, 3.0, adjacency=REPLACE_ONE)
    assert refused([Repeated(naming, 1000), Repeated(channel, 1000), noise]) == []


def test_naming_weights_are_checked_one_by_one_and_once():
    """In steps that grow with the weights, not with their square; and to the number of core, which adds otherwise."""
    source = random.Random(2)
    for size in (2, 5, 40, 20_000):
        weights = tuple(source.randint(1, 1 << 40) for _ in range(size))
        event = GroupCountsEvent(weights, source.uniform(0.1, 2.0), 1, adjacency=ADD_REMOVE)
        (part,) = event_parts([event.to_dict()])
        assert part.delta == pytest.approx(float(delta_of_naming(weights, event.at)), rel=1e-12)


@pytest.mark.parametrize("delta", [1e-8, 1e-6, 1e-5])
@pytest.mark.by_day(1)
def test_a_box_whose_walls_hold_about_a_claimed_delta_verifies(delta: float):
    """Issuer and verifier cut the walls into different cells: one says that no ε is enough, the other that one is."""
    shift = (12 * delta / math.pi**2) ** (1 / 3)  # the mass within a shift of a wall is about π²/12·shift³
    for off in (0.98, 0.985, 0.99, 0.995, 1.0, 1.005):
        box = BoxEvent(1.0, 1 / (shift * off), adjacency=ADD_REMOVE)
        assert refused([box, GaussianEvent(1.0, 500.0, adjacency=ADD_REMOVE)]) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_known_law_is_charged_for_rounding(seed: int):
    """At a small ε the grid is coarse beside how little a secret moves the number."""
    source = random.Random(seed)
    distance, epsilon = source.uniform(0.01, 1.2), 10 ** source.uniform(-4, 0)
    law = [(("0",), Fraction(1, 2)), (("1",), Fraction(1, 2))]
    delta, kind = source.choice([(0.0, Laplace), (1e-6, Gaussian)])
    promise = Pufferfish(epsilon, delta, Known.of(law, (0.0, distance), 1.0), adjacency=REPLACE_ONE)
    noise = kind.for_guarantee(promise, 1.0, REPLACE_ONE, dimension=1)
    if not delta:
        assert (distance + noise.grid) / noise.scale <= epsilon
    assert refused([noise.event()], guarantee=promise) == []


@pytest.mark.parametrize("repeats", [10**3, 10**5, 10**6])
def test_very_many_pure_acts_verify_at_the_delta_they_were_made_for(repeats: int):
    """The binomial law of a million acts by ln Γ: its chances added up to 1 - 10⁻⁹, which counted as given away."""
    event = Repeated(NormGammaEvent(1.0, math.sqrt(repeats), adjacency=REPLACE_ONE), repeats)
    for delta in (1e-6, 1e-9):
        promise = ApproxDP(compose([event]).epsilon(delta) * (1 + 1e-9), delta, adjacency=REPLACE_ONE)
        assert refused([event], guarantee=promise) == []
