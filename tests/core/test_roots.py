"""Roots by Brent's method: the same as SciPy's, which takes longer to load than a small plan to make."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from sfumato.core import gaussian
from sfumato.core.roots import root_between


def test_the_same_root_as_scipy_over_the_promises_people_make():
    generator = np.random.default_rng(0)
    for _ in range(200):
        epsilon, delta = 10 ** generator.uniform(-4, 2), 10 ** generator.uniform(-15, -0.31)

        def miss(mu: float, epsilon: float = epsilon, delta: float = delta) -> float:
            return gaussian._log_delta(mu, epsilon) - math.log(delta)

        low = high = 1e-3
        while miss(low) > 0:
            low /= 4
        while miss(high) < 0:
            high *= 4
        assert root_between(miss, low, high) == pytest.approx(brentq(miss, low, high, xtol=1e-300, rtol=1e-14), 4e-14)


@pytest.mark.parametrize(
    ("function", "low", "high", "root"),
    [
        (lambda x: x**9, -1.0, 2.0, 0.0),
        (lambda x: math.copysign(1.0, x - 0.3), 0.0, 1.0, 0.3),
        (lambda x: math.exp(x) - 1e-200, -1000.0, 0.0, math.log(1e-200)),
        (lambda x: x - 1.0, 0.0, 1.0, 1.0),
        (lambda x: x, 0.0, 1.0, 0.0),
    ],
)
def test_flat_steep_and_broken_functions(function, low, high, root):
    assert root_between(function, low, high) == pytest.approx(root, rel=1e-13, abs=1e-30)


def test_ends_of_one_sign_are_refused():
    with pytest.raises(ValueError, match="same sign"):
        root_between(lambda x: x * x + 1, -1.0, 1.0)
