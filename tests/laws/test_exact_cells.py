"""A number goes to its nearest cell exactly, whatever its type: no conversion to floats moves neighbours apart."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core import REPLACE_ONE, PureDP
from sfumato.errors import DataError
from sfumato.mechanisms import Gaussian, Laplace, NormGamma, PermuteAndFlip
from sfumato.mechanisms.grid import add_cells
from sfumato.mechanisms.mechanism import exact_array
from sfumato.mechanisms.selection import score_gaps

CASES = 400


def whole(rng: random.Random, bits: int) -> int:
    size = rng.randint(1, bits)
    return rng.choice([-1, 1]) * (rng.getrandbits(size) if rng.random() < 0.7 else (1 << size) - rng.randint(0, 3))


def given(rng: random.Random, kind: str):
    """Numbers as somebody may pass them, and what they are exactly."""
    if kind == "int64":
        numbers = [min(max(whole(rng, 63), -(2**63)), 2**63 - 1) for _ in range(6)]
        return np.array(numbers, dtype=np.int64), numbers
    if kind == "uint64":
        numbers = [min(abs(whole(rng, 64)), 2**64 - 1) for _ in range(6)]
        return np.array(numbers, dtype=np.uint64), numbers
    if kind == "list":
        numbers = [whole(rng, 900), 0.5, whole(rng, 60), True]
        return numbers, numbers
    if kind == "decimal":
        numbers = [Decimal(whole(rng, 200)).scaleb(-rng.randint(0, 30)) for _ in range(4)]
        return numbers, numbers
    if kind == "fraction":
        numbers = [Fraction(whole(rng, 200), 1 + abs(whole(rng, 90))) for _ in range(4)]
        return np.array(numbers, dtype=object), numbers
    numbers = [math.ldexp(rng.uniform(-1, 1), rng.randint(-60, 200)) for _ in range(6)]
    return np.array(numbers), numbers


def misplaced(kind: str, cases: int, convert=exact_array) -> int:
    """How many numbers are not published as nearest cell plus noise, by plain rational arithmetic."""
    wrong = 0
    for seed in range(cases):
        rng = random.Random(seed)
        values, numbers = given(rng, kind)
        grid = 2.0 ** rng.randint(-70, 70)
        noise = [rng.choice([0, whole(rng, 20), whole(rng, 52), whole(rng, 60)]) for _ in numbers]
        noisy = add_cells(convert(values), np.array(noise), grid)
        for number, cells, published in zip(numbers, noise, noisy, strict=True):
            place = Fraction(number) / Fraction(grid)
            nearest = {math.floor(place + Fraction(1, 2)), math.ceil(place - Fraction(1, 2))}
            wrong += published not in {float((cell + cells) * Fraction(grid)) for cell in nearest}
    return wrong


@pytest.mark.parametrize("kind", ["int64", "uint64", "list", "decimal", "fraction", "float"])
@pytest.mark.by_day(4)
def test_a_number_is_published_from_its_own_cell(kind):
    assert misplaced(kind, CASES) == 0


@pytest.mark.parametrize("kind", ["int64", "uint64", "list", "decimal", "fraction"])
@pytest.mark.by_day(3)
def test_the_law_finds_a_conversion_to_floats(kind):
    assert misplaced(kind, CASES, lambda values: np.asarray(values, dtype=np.float64)) > 0


@pytest.mark.parametrize(("eps", "sensitivity"), [(0.01, 513), (0.003, 33), (0.003, 1025)])
def test_neighbouring_whole_numbers_stay_neighbours(eps, sensitivity):
    noise = Laplace.for_guarantee(PureDP(eps), float(sensitivity), REPLACE_ONE, dimension=1)
    base = int(0.75 * 2.0**62 * noise.grid)
    back = -np.array([round(Fraction(base) / Fraction(noise.grid))])
    for start in range(base, base + 64):
        low, high = (add_cells(exact_array(np.array([x])), back, noise.grid)[0] for x in (start, start + sensitivity))
        assert high - low <= sensitivity + noise.grid


def test_scores_keep_their_gaps():
    base = 2**61
    assert score_gaps(np.array([base, base + 1, base + 3]), 0.5).tolist() == [6.0, 4.0, 0.0]
    assert score_gaps([Fraction(base), base + 1, 0.5], 0.5).tolist() == [2.0, 0.0, float(2 * base + 1)]


@pytest.mark.parametrize("value", [10**400, [1, 10**400], Decimal("1e400"), [Decimal("1e999999999")], [None, 2]])
def test_numbers_beyond_all_floats_are_refused_in_words(value):
    for made in (Laplace(1.0, 1.0, REPLACE_ONE), Gaussian(1.0, 1.0, REPLACE_ONE), NormGamma(1.0, 1.0, REPLACE_ONE, 2),
                 PermuteAndFlip(1.0, 1.0, REPLACE_ONE)):  # fmt: skip
        with pytest.raises(DataError):
            made(value)


@pytest.mark.parametrize(
    "value", [2**63 - 1, np.int64(2**62 + 1), Decimal("1e-999999999"), np.array(7), Fraction(1, 3)]
)
def test_every_kind_of_single_number_is_taken(value):
    assert isinstance(Laplace(1.0, 1.0, REPLACE_ONE)(value), float)
    assert Laplace(1.0, 1.0, REPLACE_ONE).sample(value, 3).shape == (3,)


def test_what_leaves_the_floats_is_infinite():
    far = np.array([Fraction(10) ** 308, -(Fraction(10) ** 308)], dtype=object)
    assert add_cells(far, np.array([3, -3]), 2.0**1022).tolist() == [math.inf, -math.inf]
