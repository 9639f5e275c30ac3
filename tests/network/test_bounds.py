"""Interval arithmetic holds the true value and the computed one, to the last bit."""

from __future__ import annotations

import math
import random
import sys
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import Categories, Interval
from sfumato.network import Bounds, as_bounds

finite = st.floats(-1e8, 1e8, allow_subnormal=False)


@st.composite
def bounds_with_point(draw):
    a, b = sorted((draw(finite), draw(finite)))
    share = draw(st.floats(0, 1))
    return Bounds(a, b), min(max(a + share * (b - a), a), b)


def holds(bounds, exact):
    above = math.isinf(bounds.high) or exact <= Fraction(bounds.high)
    return above and (math.isinf(bounds.low) or Fraction(bounds.low) <= exact)


@settings(deadline=None)
@given(bounds_with_point(), bounds_with_point())
def test_arithmetic_encloses_the_exact_and_the_rounded_result(first, second):
    (a, x), (b, y) = first, second
    for name, exact, computed in (
        ("+", Fraction(x) + Fraction(y), x + y),
        ("-", Fraction(x) - Fraction(y), x - y),
        ("*", Fraction(x) * Fraction(y), x * y),
    ):
        found = {"+": a + b, "-": a - b, "*": a * b}[name]
        assert holds(found, exact)
        assert computed in found
    if y != 0 and 0.0 not in b:
        found = a / b
        assert holds(found, Fraction(x) / Fraction(y))
        assert x / y in found
    assert found.low <= found.high


@settings(deadline=None)
@given(bounds_with_point(), st.sampled_from(["exp", "log", "sqrt", "tan", "tanh"]))
def test_functions_enclose_the_exact_and_the_computed_result(pair, name):
    bounds, x = pair
    found = getattr(bounds, name)()
    if not found.bounded:
        assert found.reason
        return
    with mpmath.workdps(60):
        exact = getattr(mpmath, name)(mpmath.mpf(x))
        assert mpmath.mpf(found.low) <= exact <= mpmath.mpf(found.high)
    assert getattr(math, name)(x) in found


@settings(deadline=None)
@given(bounds_with_point(), st.integers(-3, 5))
def test_whole_powers(pair, exponent):
    bounds, x = pair
    found = bounds.power(exponent)
    if found.bounded and (x or exponent >= 0):
        assert holds(found, Fraction(x) ** exponent)


def test_results_that_are_exact_stay_exact():
    assert Bounds(1, 2) + Bounds(3, 4) == Bounds(4, 6)
    assert Bounds(0, 110) * Bounds(2, 2) == Bounds(0, 220)
    assert Bounds(1, 2) / Bounds(4, 8) == Bounds(0.125, 0.5)


def test_rounding_goes_outwards_by_at_most_one_step():
    """0.1 + 0.2 is no float: an enclosure that rounds to nearest would lie."""
    total = Bounds.point(0.1) + Bounds.point(0.2)
    exact = Fraction(0.1) + Fraction(0.2)
    assert Fraction(total.low) < exact < Fraction(total.high)
    assert math.nextafter(total.low, math.inf) == total.high


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (Bounds(0, 1).log(), "logarithm"),
        (Bounds(-1, 1).reciprocal(), "denominator"),
        (Bounds(0, 0) / Bounds(-1, 1), "denominator"),
        (Bounds(1, 2).tan(), "pole"),
        (Bounds(0, 1e9).tan(), "pole"),
        (Bounds(-1, 1).sqrt(), "negative"),
        (Bounds(0, 1000).exp(), "too large"),
        (Bounds(0, 0) * Bounds(0, 1000).exp(), "too large"),
        (as_bounds(Categories(("f", "m"))), "category"),
        (as_bounds(None), "range"),
    ],
)
def test_what_cannot_be_bounded_says_why(found, word):
    assert not found.bounded
    assert word in found.reason
    assert found.interval() is None


def test_tangent_between_poles_is_bounded():
    found = Bounds(-1.5, 1.5).tan()
    assert found.bounded
    assert math.tan(1.5) in found
    assert not Bounds(1.5, 1.6).tan().bounded


def test_domains_become_bounds_and_back():
    assert as_bounds(Interval(0, 110)) == Bounds(0, 110)
    assert as_bounds(Categories((False, True))) == Bounds(0, 1)
    assert Bounds(0, 110).interval() == Interval(0, 110)
    assert 3.0 in as_bounds(Bounds.point(3.0).interval())


def _wild(generator: random.Random) -> float:
    kind = generator.random()
    if kind < 0.2:
        return generator.choice([0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, -5e-324, 1.7e308, -1.7e308, 2.3e-308])
    return generator.uniform(-1, 1) * 10.0 ** (generator.randint(-308, 308) if kind < 0.4 else 1)


def test_sums_products_and_quotients_are_the_tightest_floats_around_the_exact_ones():
    """Fractions share nothing with the whole-number arithmetic of the product."""
    generator = random.Random(5)

    def around(exact: list[Fraction]) -> tuple[Fraction, Fraction]:
        return min(exact), max(exact)

    for _ in range(3000):
        x, y = (Bounds(*sorted((_wild(generator), _wild(generator)))) for _ in range(2))
        pairs = [(Fraction(a), Fraction(b)) for a in (x.low, x.high) for b in (y.low, y.high)]
        checked = [(x + y, around([a + b for a, b in pairs])), (x * y, around([a * b for a, b in pairs]))]
        if 0.0 not in y:
            checked.append((x / y, around([a / b for a, b in pairs])))
        for found, (low, high) in checked:
            if found.bounded:
                assert Fraction(found.low) <= low
                assert Fraction(found.high) >= high
                assert found.low == sys.float_info.max or Fraction(math.nextafter(found.low, math.inf)) > low
                assert found.high == -sys.float_info.max or Fraction(math.nextafter(found.high, -math.inf)) < high
            else:
                assert max(abs(low), abs(high)) > Fraction(sys.float_info.max)
