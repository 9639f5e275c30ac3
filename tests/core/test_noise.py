"""Noise laws and the Cramér-Rao error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from sfumato.core import BoxNoise, GaussianNoise, Interval, LaplaceNoise, SummedNoise, attacker_error
from sfumato.core.fisher import weighted_error
from sfumato.errors import PrivacyParameterError

LAWS = [GaussianNoise(1.7), LaplaceNoise(0.6), BoxNoise(1.0), BoxNoise(2.0, 3.0), BoxNoise(5.0, 40.0)]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_density_cdf_variance_and_information_agree(law):
    reach = law.half_width if isinstance(law, BoxNoise) else 40.0
    assert quad(law.density, -reach, reach, limit=200, points=[0])[0] == pytest.approx(1, abs=1e-7)
    assert quad(law.density, -reach, 0.3, limit=200, points=[0])[0] == pytest.approx(float(law.cdf(0.3)), abs=1e-7)
    second = quad(lambda n: n * n * float(law.density(n)), -reach, reach, limit=200, points=[0])[0]
    assert second == pytest.approx(law.variance(), rel=1e-6)
    step = 1e-4
    inner = np.linspace(-0.999, 0.999, 20_001) * min(reach, 12.0) + 1e-9
    root = np.sqrt(law.density(np.stack([inner - step, inner + step])))
    information = 4 * np.trapezoid(((root[1] - root[0]) / (2 * step)) ** 2, inner)
    assert information == pytest.approx(law.fisher_information(), rel=5e-3)


@pytest.mark.parametrize("weights", [(1.0,), (0.5, -1.0), (1.0, 1e-3), (0.3, 0.5, -0.7)], ids=str)
@pytest.mark.parametrize("stiffness", [0.0, 30.0, 1e5])
@pytest.mark.by_day(2)
def test_a_sum_of_boxes_is_what_draws_of_boxes_add_up_to(weights, stiffness):
    """Against a quadrature of characteristic functions (Gil-Pelaez), which shares nothing with cells."""
    law, box = SummedNoise(2.0, stiffness, weights), BoxNoise(2.0, stiffness)
    places = np.linspace(-2, 2, 2001)
    density = box.density(places)
    times = (np.arange(600) + 0.5) * 0.1 / math.sqrt(law.variance())
    transform = np.ones_like(times)
    for weight in weights:
        transform *= np.trapezoid(density * np.cos(weight * times[:, None] * places), places)
    for value in np.array([-1.5, -0.4, 0.0, 0.9, 2.2]) * math.sqrt(law.variance()):
        step = times[1] - times[0]
        assert float(law.cdf(value)) == pytest.approx(
            0.5 + float(transform @ (np.sin(value * times) / times)) * step / math.pi, abs=2e-5
        )
        exact = float(transform @ np.cos(value * times)) * step / math.pi
        assert float(law.density(value)) == pytest.approx(exact, abs=2e-5 / math.sqrt(law.variance()))
    if len(weights) == 1:
        assert law.fisher_information() == pytest.approx(box.fisher_information(), rel=5e-3)


@pytest.mark.paper("000", "Cor 2.7", "core/noise.py")
def test_box_noise_is_the_least_informative_of_its_variance():
    """With no stiffness: cos², information π²/b². With much: the Gaussian of variance 1/√stiffness."""
    assert BoxNoise(2.0).fisher_information() == pytest.approx(math.pi**2 / 4)
    assert BoxNoise(2.0).density(0.5) == pytest.approx(math.cos(math.pi / 8) ** 2 / 2)
    assert BoxNoise(10.0, 4.0).variance() == pytest.approx(0.5, rel=1e-6)
    law = BoxNoise(1.5, 7.0)
    cost = law.fisher_information() + 7.0 * law.variance()
    for other in (BoxNoise(1.5), BoxNoise(1.5, 3.0), BoxNoise(1.5, 20.0)):
        assert cost < other.fisher_information() + 7.0 * other.variance()


def test_attacker_error_is_worded_honestly():
    """The Cramér-Rao bound never stands alone on a bounded domain."""
    error = attacker_error(GaussianNoise(math.sqrt(200)), Interval(0, 1))
    assert error.unbiased == pytest.approx(200)
    assert error.constant_guess == 0.25
    assert "unbiased" in str(error)
    assert "guessing the middle" in str(error)
    assert attacker_error(LaplaceNoise(3.0)).unbiased == pytest.approx(9.0)


@pytest.mark.paper("000", "Prop 2.2", "core/noise.py")
def test_weighted_error_follows_the_erratum():
    assert weighted_error(np.array([[1.0]]), np.array([[0.25]])) == 0.25
    with pytest.raises(PrivacyParameterError, match="no bound"):
        weighted_error(np.ones((2, 2)), np.eye(2))
