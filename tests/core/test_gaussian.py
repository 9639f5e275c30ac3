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


HUGE = [(1e3, 1e-5), (1e6, 1e-9), (1e9, 1e-5), (1e12, 1e-5), (1e20, 0.3), (1e100, 1e-5), (1e300, 1e-5)]


@pytest.mark.parametrize(("eps", "delta"), HUGE)
def test_huge_epsilons_have_an_answer(eps, delta):
    """z = ε/μ - μ/2 is the difference of two huge numbers, and e^ε is no float any more."""

    def exact(mu, epsilon):  # e^ε Φ(-z-μ) = φ(z) R(z+μ) ≤ φ(z)/(z+μ), which is nothing beside Φ(-z) for such μ
        with mpmath.workdps(700):
            z = mpmath.mpf(epsilon) / mpmath.mpf(mu) - mpmath.mpf(mu) / 2
        with mpmath.workdps(40):
            return mpmath.ncdf(-z), mpmath.npdf(z) / mpmath.mpf(mu)

    mu = gaussian_mu(eps, delta)
    assert exact(mu, eps)[0] - exact(mu, eps)[1] <= delta
    assert 0.7 <= mu / eps * (mu / 2) <= 1.3
    above, hidden = exact(mu * (1 + 1e-6), eps)
    assert above > delta or hidden > 1e-3 * delta
    found = gaussian_epsilon(mu, delta)
    assert found <= eps * (1 + 1e-8)
    assert gaussian_delta(mu, found) <= delta


@given(mu=st.floats(8, 1e4), share=st.floats(0.0, 3.0))
def test_delta_is_an_upper_bound_for_large_mu(mu, share):
    epsilon = share * mu * mu / 2
    with mpmath.workdps(60):
        z = mpmath.mpf(epsilon) / mpmath.mpf(mu) - mpmath.mpf(mu) / 2
        top = mpmath.erfc((z + mpmath.mpf(mu)) / mpmath.sqrt(2))
        exact = mpmath.ncdf(-z) - mpmath.exp(mpmath.mpf(epsilon)) * top / 2
    computed = gaussian_delta(mu, epsilon)
    assert computed >= exact * (1 - mpmath.mpf("1e-15")) or exact < 1e-300
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
