"""How often e^ε is exceeded: against mpmath for Gaussian noise, enumeration for randomised response, simulation."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import REPLACE_ONE, ZCDP, ApproxDP, GaussianDP, LaplaceEvent, NoGuarantee, PureDP, WorstOf, compose
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.odds import loss_tail


@settings(deadline=None, max_examples=60)
@given(st.floats(0.01, 6), st.floats(0.05, 12))
def test_gaussian_noise_to_sixty_digits(mu, epsilon):
    with mpmath.workdps(60):
        exact = mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mpmath.mpf(mu))
    found = loss_tail(GaussianDP(mu), epsilon)
    if exact > 1e-290:
        assert exact <= found <= exact * (1 + 1e-8)


def test_a_usual_promise_is_exceeded_twenty_times_as_often_as_delta_says():
    found = loss_tail(GaussianDP(gaussian_mu(1.0, 1e-6)), 1.0)
    assert f"{found:.1e}" == "2.0e-05"


@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("epsilon", [0.3, 0.75, 1.1, 2.0])
def test_randomised_response_by_enumeration(count, epsilon):
    """Every sequence of answers, its two probabilities, and whether their ratio exceeds e^ε."""
    each = 0.5
    true = math.exp(each) / (1 + math.exp(each))
    exact = 0.0
    for answers in itertools.product((0, 1), repeat=count):
        here = math.prod(true if answer else 1 - true for answer in answers)
        there = math.prod(1 - true if answer else true for answer in answers)
        exact += here if here > math.exp(epsilon) * there * (1 + 1e-12) else 0.0
    found = loss_tail(compose([PureDP(each)] * count), epsilon)
    if epsilon >= each * count:
        assert found == 0.0 == exact
    else:
        assert exact <= found + 1e-9
        assert found <= exact + 0.02 or count == 1


def test_laplace_and_gaussian_acts_by_simulation():
    laplace = LaplaceEvent(1.0, 2.0, 2.0**-30, 1, adjacency=REPLACE_ONE)
    both = compose([laplace, GaussianDP(0.7, adjacency=REPLACE_ONE)])
    random = np.random.default_rng(3)
    z, x = random.laplace(0, 2.0, 2_000_000), random.normal(0, 1, 2_000_000)
    loss = (np.abs(z - 1) - np.abs(z)) / 2.0 + (-(x**2) + (x - 0.7) ** 2) / 2
    for epsilon in (0.5, 1.0, 1.8):
        exact = float(np.mean(loss > epsilon))
        assert loss_tail(both, epsilon) == pytest.approx(exact, rel=0.03)


@settings(deadline=None, max_examples=40)
@given(st.floats(0.05, 3), st.floats(0.05, 6))
def test_the_tail_is_never_below_delta(mu, epsilon):
    """E max(0, 1 - e^(ε-L)) <= P(L > ε); and what is known of the profile alone gives a larger bound."""
    known = GaussianDP(mu)
    assert loss_tail(known, epsilon) >= known.delta(epsilon) * (1 - 1e-9)
    weaker = ApproxDP(epsilon, max(known.delta(epsilon), 1e-300))
    assert loss_tail(weaker, epsilon + 0.7) >= loss_tail(known, epsilon + 0.7) * (1 - 1e-9)


def test_what_a_promise_alone_says():
    assert loss_tail(ApproxDP(1.0, 1e-6), 1.0) > 0.5
    assert loss_tail(ApproxDP(1.0, 1e-6), 1.0 + math.log(2)) == pytest.approx(2e-6, rel=1e-6)
    assert loss_tail(NoGuarantee("none"), 5.0) == 1.0
    assert loss_tail(WorstOf((GaussianDP(0.1), GaussianDP(0.3))), 1.0) == loss_tail(GaussianDP(0.3), 1.0)
    assert loss_tail(ZCDP(0.05), 2.0) >= loss_tail(GaussianDP(math.sqrt(0.1)), 2.0)
