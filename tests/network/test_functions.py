"""Probabilities of a Poisson variable, beside fifty digits of mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from sfumato.network.functions import FUNCTIONS

at_least = FUNCTIONS["poisson_at_least"].compute


@pytest.mark.parametrize("count", [0, 1, 2, 5, 13, 34, 64, 65])
def test_tails_keep_their_digits_however_small_they_are(count):
    """Plans are charged 4,096 units in the last place for it (network/rounding.py); a tenth is used, by terms less."""
    generator = np.random.default_rng(count)
    borders, near = [count, count + 1e-9, 499.9, 500.1], generator.uniform(0, 2 * count + 1, 40)
    rates = np.concatenate([borders, 10 ** generator.uniform(-4, 2.9, 40), near])
    found = at_least([np.asarray(float(count)), rates])
    with mpmath.workdps(50):
        for rate, probability in zip(rates.tolist(), found.tolist(), strict=True):
            true = mpmath.gammainc(count, 0, mpmath.mpf(rate), regularized=True) if count else mpmath.mpf(1)
            units = 40 if count <= 64 and rate <= 500 else 400
            assert abs(probability - true) <= units * 2.0**-52 * max(true, mpmath.mpf(10) ** -290)


def test_one_individual_never_changes_anothers_digits():
    """Neither a huge rate nor one that is no number makes the others' probabilities come another way."""
    rates = np.linspace(0.0, 90.0, 50)
    alone = at_least([np.asarray(7.0), rates])
    for other in (np.nan, 1e300, 501.0, 0.0):
        assert np.array_equal(at_least([np.asarray(7.0), np.append(rates, other)])[:-1], alone)
