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
from sfumato.plan import settle
from sfumato.run.planning import make_plan

EVERY = [one for name in room.__all__ if isinstance(one := getattr(room, name), type) and issubclass(one, Additive)]
every_noise = pytest.mark.parametrize("noise", EVERY, ids=lambda one: one.__name__)
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
    assert measured(noise, moved) == pytest.approx(np.linalg.norm(moved, norm.order), rel=1e-6)
    other = np.linalg.norm(moved, OTHER[norm].order)
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


STUDY = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 2). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10).
column(t, g, g(P)). random(g(P)) :- p(P). range(g(P), [a, b]).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, {}).
"""
ASKED = (
    "count(n, (p(P), x(P) > 3)). publish(a, n, o(pub)).",
    "mean(n, x(P), p(P), by([g(P)])). publish(a, n, o(pub)).",
    "histogram(n, [g(P), x(P): [2, 5]], p(P)). publish(a, n, o(pub)).",
    "variance(n, x(P), p(P)). publish(a, n, o(pub)).",
    "count(n, (p(P), g(P) = a)). count(m, (p(P), g(P) = b)). publish(a, n, o(pub)). publish(b, m, o(pub)).",
    "range(y(P), private(0.1)). column(t, y, y(P)). random(y(P)) :- p(P). mean(n, y(P), p(P)). publish(a, n, o(pub)).",
)


@pytest.mark.parametrize("promise", ["dp(1)", "dp(1, 0.000001)"])
@pytest.mark.parametrize("asked", ASKED)
def test_no_distance_loses_its_norm_on_the_way_to_the_noise(monkeypatch, promise, asked):
    """Every sensitivity that planning measures noise by says its norm: a factor for rounding does not take it."""
    seen: list[type] = []
    drawn = settle.refinements

    def looked(name, noise, sensitivity, *rest, **named):
        seen.append(type(sensitivity))
        return drawn(name, noise, sensitivity, *rest, **named)

    monkeypatch.setattr(settle, "refinements", looked)
    calibrated = Additive.for_guarantee.__func__

    def watched(kind, promise, sensitivity, *rest, **named):
        seen.append(type(sensitivity))
        return calibrated(kind, promise, sensitivity, *rest, **named)

    monkeypatch.setattr(Additive, "for_guarantee", classmethod(watched))
    make_plan(STUDY.format(promise) + asked, sizes={"d": 1000})
    assert seen
    assert set(seen) <= {L1, L2}
