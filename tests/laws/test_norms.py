"""Every noise says in which norm neighbours are measured, and takes no distance in the other one."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato.mechanisms as room
from sfumato.core.adjacency import REPLACE_ONE
from sfumato.core.events.event import AdditiveEvent, GaussianEvent, LaplaceEvent
from sfumato.core.events.together import TogetherEvent
from sfumato.core.norms import L1, L2
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms.additive import Additive

EVERY = [one for name in room.__all__ if isinstance(one := getattr(room, name), type) and issubclass(one, Additive)]
every_noise = pytest.mark.parametrize("noise", EVERY, ids=lambda one: one.__name__)
ORDER = {L1: 1, L2: 2}
OTHER = {L1: L2, L2: L1}


def measured(noise: type[Additive], moved: np.ndarray) -> float:
    """How far apart the densities around 0 and around `moved` are, from two of their ratios alone."""
    made = noise(1.0, 1.0, REPLACE_ONE, len(moved))
    far = np.array([2 * moved, 3 * moved])
    losses = made.log_likelihood(far, moved) - made.log_likelihood(far, np.zeros_like(moved))
    growth = float(losses[1] - losses[0])
    return growth**0.5 if growth > 1e-9 else float(losses[0])


@every_noise
@pytest.mark.parametrize("seed", range(8))
def test_the_stated_norm_is_the_one_the_density_is_measured_by(noise, seed):
    generator = np.random.default_rng(seed)
    moved = generator.normal(size=generator.integers(2, 7))
    norm = noise.event_class.norm
    assert measured(noise, moved) == pytest.approx(np.linalg.norm(moved, ORDER[norm]), rel=1e-6)
    other = np.linalg.norm(moved, ORDER[OTHER[norm]])
    assert measured(noise, moved) != pytest.approx(other, rel=1e-3)  # the law would see a wrong norm


@every_noise
def test_a_distance_of_the_other_norm_is_refused(noise):
    own, other = noise.event_class.norm, OTHER[noise.event_class.norm]
    assert noise(3.0, own(1.5), REPLACE_ONE, 4) == noise(3.0, 1.5, REPLACE_ONE, 4)
    assert type(noise(3.0, own(1.5), REPLACE_ONE, 4).sensitivity) is float
    promise = noise(3.0, 1.5, REPLACE_ONE, 4).guarantee()
    assert noise.for_guarantee(promise, own(1.5), REPLACE_ONE, dimension=4).sensitivity == 1.5
    with pytest.raises(PrivacyParameterError, match=f"{own.__name__} distance.* {other.__name__} distance"):
        noise(3.0, other(1.5), REPLACE_ONE, 4)
    with pytest.raises(PrivacyParameterError, match="Nothing was drawn"):
        noise.for_guarantee(promise, other(1.5), REPLACE_ONE, dimension=4)


@pytest.mark.parametrize(("event", "other"), [(GaussianEvent, L1), (LaplaceEvent, L2)])
def test_records_refuse_it_too(event: type[AdditiveEvent], other):
    with pytest.raises(PrivacyParameterError, match="distance"):
        event(other(1.0), 2.0, adjacency=REPLACE_ONE)


@pytest.mark.parametrize(("law", "other"), [("gaussian", L1), ("laplace", L2)])
def test_sums_priced_together_refuse_it_too(law, other):
    with pytest.raises(PrivacyParameterError, match="distance"):
        TogetherEvent(law, ((other(1.0), 0.0, 2.0, 0.0, 1),), ((0,),), adjacency=REPLACE_ONE)
