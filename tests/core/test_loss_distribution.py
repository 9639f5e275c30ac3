"""Loss distributions made in whole arrays are those of dp-accounting, which makes them one number at a time."""

from __future__ import annotations

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as peer

from sfumato.core import REPLACE_ONE, BoxEvent, GaussianEvent, compose
from sfumato.core.certificate import Certificate
from sfumato.core.loss_distribution import grid_step, law_delta, law_epsilon
from sfumato.core.parts import Part
from sfumato.evidence import verify

_THEIRS = {"gaussian": peer.from_gaussian_mechanism, "laplace": peer.from_laplace_mechanism}


@pytest.mark.parametrize("kind", _THEIRS)
@pytest.mark.parametrize(("value", "count"), [(1e-4, 1), (0.003, 7), (0.037, 2), (0.5, 3), (0.71, 1), (3.1, 1)])
@pytest.mark.by_day(2)
def test_the_losses_are_those_of_the_peer(kind, value, count):
    """δ at small, middle and impossible ε; ε at small and large δ: few dots (kept one by one) and many."""
    parts = (Part(kind, value, count=count),)
    theirs = _THEIRS[kind](1 / value, value_discretization_interval=grid_step(parts))
    theirs = theirs.self_compose(count) if count > 1 else theirs
    for epsilon in (share * (count + 3) * value for share in (-0.2, 0.0, 0.01, 0.1, 0.3, 0.9, 1.1)):
        assert law_delta(parts, epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-15)
    for delta in (1e-9, 1e-5, 0.01):
        assert law_epsilon(parts, delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("half_width", [0.1, 0.4, 0.5, 0.5003, 0.502, 0.503, 0.51, 0.53, 0.6])
@pytest.mark.by_day(2)
def test_boxes_that_hide_nothing_are_priced_however_many(half_width):
    """Moved by as much as its whole box a law gives everything away, alone and beside others; both roads say so."""
    box, other = (
        BoxEvent(1.0, half_width, adjacency=REPLACE_ONE),
        BoxEvent(7.0, 7.01 * half_width, adjacency=REPLACE_ONE),
    )
    gaussian = GaussianEvent(1.0, 5.0, adjacency=REPLACE_ONE)
    for events in ([box], [box] * 3, [box, gaussian, box], [box, other], [other, box, box, gaussian]):
        found = compose(events)
        assert found.delta(3.0) == 1.0 if half_width <= 0.5 else 0.9 < found.delta(3.0) <= 1.0
        assert found.epsilon(0.5) == math.inf
        assert verify(Certificate.issue(subject="a value", events=events, proofs=["box", "gaussian"])).failures == ()
