"""Box noise as it is drawn: the exact profile of the whole-number weights against the claim, whatever the stiffness."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from sfumato.core import REPLACE_ONE, BoxEvent
from sfumato.core import loss_distribution as losses
from sfumato.core.certificate import Certificate
from sfumato.errors import PrivacyParameterError
from sfumato.evidence import verify
from sfumato.mechanisms import Box
from sfumato.mechanisms import box as sampler

EPSILONS = (0.5, 2.0, 6.0, 10.0, 14.0, 18.0, 25.0, 40.0)


def drawn_delta(noise: Box, epsilon: float) -> float:
    """Σ (w - e^ε w')₊ in whole numbers, e^ε rounded up: a lower bound of the drawn law's δ at the farthest shift."""
    cumulative, _ = sampler._cumulative(noise.half_width, noise.stiffness, noise.grid)
    weights = [int(weight) for weight in np.diff(cumulative, prepend=0)]
    assert min(weights) >= 0
    assert sum(weights) == 1 << 62
    cells = math.floor(noise.sensitivity / noise.grid)
    factor = int(math.exp(epsilon) * 2**40) + 1
    moved = [0] * cells + weights[: max(0, len(weights) - cells)]
    excess = sum(max(0, (here << 40) - factor * there) for here, there in zip(weights, moved, strict=True))
    return excess / 2.0**102


def random_box(rng: random.Random) -> Box:
    half_width = rng.choice([1.5, 3.0, 10.0, 20.0, 40.0]) * rng.uniform(0.9, 1.1)
    strongest = min(1e9, 2000 * half_width**4)
    stiffness = rng.choice([0.0, strongest * 10 ** rng.uniform(-6, -0.01) / half_width**4])
    return Box(half_width, 1.0, REPLACE_ONE, stiffness)


def excesses(noise: Box) -> list[tuple[float, float, float]]:
    claim = noise.guarantee()
    figures = [(epsilon, drawn_delta(noise, epsilon), claim.delta(epsilon)) for epsilon in EPSILONS]
    return [figure for figure in figures if figure[1] > figure[2]]


def check(seeds: range) -> None:
    for seed in seeds:
        noise = random_box(random.Random(seed))
        assert excesses(noise) == [], (seed, noise)
        certificate = Certificate.issue(subject="a value", events=[noise.event()], proofs=["box"])
        assert verify(certificate).failures == (), (seed, noise)


@pytest.mark.paper("000", "Cor 2.7", "mechanisms/box.py")
def test_the_drawn_law_keeps_its_claim_and_both_roads_accept_it():
    check(range(3))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_the_drawn_law_keeps_its_claim_at_length(part):
    check(range(10 * part, 10 * part + 10))


@pytest.mark.slow
def test_a_drawing_error_that_is_not_multiplied_by_e_to_the_epsilon_is_found(monkeypatch):
    stiff = Box(20.0, 1.0, REPLACE_ONE, 600.0)
    honest = sampler._cumulative

    def coarse(half_width, stiffness, grid):  # weights with 40 bits instead of 62: tails are lost
        cumulative, reach = honest(half_width, stiffness, grid)
        return (cumulative >> 22) << 22, reach

    monkeypatch.setattr(sampler, "_cumulative", coarse)
    assert excesses(stiff)
    monkeypatch.setattr(sampler, "_cumulative", honest)
    assert not excesses(stiff)
    losses._valley.cache_clear()
    monkeypatch.setattr(losses, "_BOX_ABSOLUTE", 0.0)
    assert excesses(stiff)
    losses._valley.cache_clear()


def test_boxes_far_wider_than_their_noise_are_refused():
    for stiffness in (1e10, 1e300):
        with pytest.raises(PrivacyParameterError, match="Nothing was spent"):
            BoxEvent(1.0, 20.0, stiffness, adjacency=REPLACE_ONE)
    with pytest.raises(PrivacyParameterError):
        BoxEvent(1.0, 1e100, 1.0, adjacency=REPLACE_ONE)
