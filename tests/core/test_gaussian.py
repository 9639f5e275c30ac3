"""The exact Gaussian profile against 80-digit arithmetic."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_scale
from sfumato.errors import PrivacyParameterError

EPSILONS = [1e-4, 1e-3, 0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0]
DELTAS = [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5]


def true_delta(mu, epsilon):
    with mpmath.workdps(80):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("eps", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_mu_is_safe_and_as_large_as_it_can_be(eps, delta):
    mu = gaussian_mu(eps, delta)
    assert true_delta(mu, eps) <= delta
    assert true_delta(mu * (1 + 1e-9), eps) > delta


@pytest.mark.parametrize(("eps", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_epsilon_undoes_mu(eps, delta):
    mu = gaussian_mu(eps, delta)
    found = gaussian_epsilon(mu, delta)
    assert true_delta(mu, found) <= delta
    assert found <= eps * (1 + 1e-8)


@given(mu=st.floats(1e-6, 50), epsilon=st.floats(-20, 200))
def test_delta_is_an_upper_bound_to_ten_digits(mu, epsilon):
    computed, exact = gaussian_delta(mu, epsilon), true_delta(mu, epsilon)
    assert computed >= exact * (1 - mpmath.mpf("1e-15")) or computed == 0
    if exact > 1e-290:
        assert computed <= min(1, exact * (1 + mpmath.mpf("1e-10")))


def test_known_values():
    assert math.isclose(gaussian_scale(1.0, 1e-5, 1.0), 3.7306, rel_tol=1e-4)
    # The classical sqrt(2 ln(1.25/δ))/ε is larger here, and false for large ε.
    assert gaussian_scale(1.0, 1e-5, 1.0) < math.sqrt(2 * math.log(1.25e5))
    assert gaussian_delta(10.0 / math.sqrt(2 * math.log(1.25e5)), 10.0) > 1e-5


@pytest.mark.parametrize("bad", [(0.5, 0.0), (-1.0, 1e-5), (math.nan, 1e-5), (1.0, 1.0), (1.0, -0.1), (math.inf, 0.1)])
def test_bad_parameters(bad):
    with pytest.raises(PrivacyParameterError):
        gaussian_mu(*bad)
