"""Φ⁻¹ and exp(x²) erfc(x) are ours; fifty digits of mpmath say what it should be."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from sfumato.core.special import erfcx, legendre_rule, ndtri


def quantile(probability: float) -> mpmath.mpf:
    """Newton's steps on the smaller tail, from zero: its logarithm is concave, so none of them overshoots."""
    exact = mpmath.mpf(probability)
    tail, x = min(exact, 1 - exact), mpmath.mpf(0)
    for _ in range(200):
        below = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        step = below * mpmath.log(below / tail) / mpmath.npdf(x)
        x -= step
        if abs(step) < mpmath.mpf(10) ** -25:
            break
    return x if exact <= 0.5 else -x


def worst(function, probabilities: np.ndarray) -> float:
    with mpmath.workdps(50):
        true = [quantile(float(p)) for p in probabilities]
        return max(float(abs(mpmath.mpf(float(f)) / t - 1)) for f, t in zip(function(probabilities), true, strict=True))


@pytest.fixture(scope="module")
def probabilities() -> np.ndarray:
    generator = np.random.default_rng(3)
    near_one = 1 - 10.0 ** -generator.uniform(0.5, 15.5, 40)
    borders = [0.075, 0.925, np.nextafter(0.075, 0), np.exp(-25.0), 5e-324, 1 - 2**-53]
    return np.concatenate([generator.random(60), 10.0 ** -generator.uniform(0, 307, 60), near_one, borders])


def test_quantiles_are_right_to_the_last_digits(probabilities):
    """Eight roundings of relative 2^-53: two polynomials' last steps, the division, the root and its logarithm."""
    assert worst(ndtri, probabilities) < 8 * 2.0**-53


def test_a_wrong_digit_is_found(probabilities):
    assert worst(lambda p: ndtri(p) * (1 + 2e-15), probabilities) > 8 * 2.0**-53


def test_the_ends_shapes_and_types_are_as_in_scipy():
    from scipy import special

    odd = np.array([[0.0, 1.0, -0.1], [1.1, np.nan, 0.5]])
    assert np.array_equal(ndtri(odd), special.ndtri(odd), equal_nan=True)
    assert isinstance(ndtri(0.2), float)
    assert ndtri(np.empty((0, 3))).shape == (0, 3)
    assert np.array_equal(ndtri(np.linspace(0, 1, 10_001))[5_000:], ndtri(np.linspace(0, 1, 10_001)[5_000:]))


def test_the_scaled_complement_of_erf_is_right_to_the_last_digits():
    """Few numbers come from the C library's erfc, many from scipy; four roundings of 2^-52 each are allowed."""
    generator = np.random.default_rng(4)
    borders = [-26.6, -1 / 16, 0.0, 1e-300, 25.999999, 26.0, 26.000001, 27.3, 1e8, 1e300]
    points = np.concatenate([generator.uniform(-26.5, 27.0, 50), borders])
    with mpmath.workdps(60):
        true = [mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(mpmath.mpf(x)) for x in points[:-2].tolist()]
        true += [1 / (mpmath.mpf(x) * mpmath.sqrt(mpmath.pi)) for x in points[-2:].tolist()]
        for found in (erfcx(points), [erfcx(x) for x in points.tolist()]):
            assert max(float(abs(mpmath.mpf(float(f)) / t - 1)) for f, t in zip(found, true, strict=True)) < 2.0**-50
    assert erfcx(np.tile(points, 2)) == pytest.approx(np.tile(erfcx(points), 2), rel=1e-13)
    assert np.array_equal(erfcx(np.array([np.inf, -np.inf, np.nan])), [0.0, np.inf, np.nan], equal_nan=True)
    assert erfcx(-26.65) == np.inf


@pytest.mark.parametrize("count", [1, 2, 3, 24, 48, 65])
def test_the_rule_of_legendre_integrates_what_it_should(count):
    """Every power up to 2n - 1 exactly, and the next one not."""
    nodes, weights = legendre_rule(count)
    for power in range(2 * count):
        true = 2 / (power + 1) if power % 2 == 0 else 0.0
        assert abs(np.sum(weights * nodes**power) - true) <= 8 * count * 2.0**-52
    if count <= 3:  # beyond, what it misses is below the last digit
        assert abs(np.sum(weights * nodes ** (2 * count)) - 2 / (2 * count + 1)) > 0.001
