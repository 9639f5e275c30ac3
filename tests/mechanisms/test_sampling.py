"""The sampler: exact tables, exact fallback, the right law, and no trace of the value in the low bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.core import REPLACE_ONE, GaussianDP, PureDP
from sfumato.errors import InputError
from sfumato.mechanisms import Box, Gaussian, Laplace, NormGamma, norm_gamma, sampling
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.exact import LazyUniform, bernoulli, exp_enclosure, exponential
from sfumato.mechanisms.grid import add_cells, on_grid
from sfumato.mechanisms.laplace_shares import LaplaceShares
from sfumato.mechanisms.sampling import SLOTS, _Chunk, draw, draw_reals, table_for
from sfumato.mechanisms.selection import score_gaps

LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}
SCALES = [64.0, 1000.3, 2.0**21, 3e9, 2.0**40 + 12345, 2.0**48]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.by_day(6)
def test_the_table_covers_the_density_exactly(law, scale):
    """In rational arithmetic: no bin is lower than the density, no sure acceptance is a wrong one, the tail fits."""
    table = table_for(law, scale)
    unit, width = Fraction(table.unit), 1 << table.width_bits
    assert int(table.count.sum()) + 1 <= SLOTS
    assert np.array_equal(np.bincount(table.bin_of_slot, minlength=table.bins + 2)[: table.bins], table.count)
    for number in range(table.bins):
        left, right = Fraction(number * width), Fraction((number + 1) * width)
        room = unit * int(table.count[number])
        assert exp_enclosure(*table.exponent(left, left), 40)[1] <= room
        assert Fraction(int(table.fast[number]), SLOTS) * room <= exp_enclosure(*table.exponent(right, right), 40)[0]
    start = Fraction(table.start_of_tail)
    share = exp_enclosure(*table.exponent(start, start), 40)[1] * table.tail_decay / table.tail_room
    assert share <= Fraction(table.tail_limit, SLOTS) < 1
    assert tuple(table.fast[table.bins :]) == (0, 0)


def cell_chances(law, scale, edges):
    """P[noise in cell groups]: a draw k means the real lies within half a cell of k."""
    return np.diff(np.concatenate([[0.0], LAWS[law].cdf((edges - 0.5) * 2 / scale), [1.0]]))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [64.0, 2.0**21, 2.0**45])
@pytest.mark.by_day(2)
def test_draws_have_the_law(law, scale):
    """Chi-square over 120 groups of cells, and the same test refuses a scale that is 1 % off."""
    draws = draw(law, scale, 2_000_000, Bits())
    edges = np.unique(np.rint(np.linspace(-4, 4, 120) * scale / 2))
    counts = np.histogram(draws, bins=np.concatenate([[-np.inf], edges - 0.5, [np.inf]]))[0]
    right = stats.chisquare(counts, cell_chances(law, scale, edges) * draws.size).pvalue
    wrong = stats.chisquare(counts, cell_chances(law, scale * 1.01, edges) * draws.size).pvalue
    assert right > 1e-6
    assert wrong < 1e-6


@pytest.mark.parametrize("law", LAWS)
def test_exact_fallback_decides_alike(law, monkeypatch):
    """With the guard blown up every open case goes through exact arithmetic: same seed, same draws."""
    fast = draw(law, 2.0**21, 4_000, Bits(seed=5))
    calls = []
    exactly = _Chunk._accept_exactly
    monkeypatch.setattr(_Chunk, "_accept_exactly", lambda *given: calls.append(1) or exactly(*given))
    monkeypatch.setattr(sampling, "GUARD", 1e9)
    slow = draw(law, 2.0**21, 4_000, Bits(seed=5))
    assert len(calls) > 50
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize("law", LAWS)
def test_the_tail_has_the_law(law):
    """Beyond the bins: forced tail cases follow the law conditioned on the tail."""
    scale = 2.0**21
    table = table_for(law, scale)
    bits = Bits()
    chunk = _Chunk(table, 1500, bits)
    chunk.uniform = bits.below(table.tail_limit + 1, 1500)
    kept = np.array([chunk._accept_in_tail(number) for number in range(1500)])
    assert kept.mean() > 0.3
    reals = chunk.whole[kept] / scale
    start = table.start_of_tail / scale
    assert reals.min() >= start

    def conditional(x):
        return 1 - LAWS[law].sf(x) / LAWS[law].sf(start)

    assert stats.kstest(reals, conditional).pvalue > 1e-6


def test_the_exact_path_sees_what_a_double_cannot():
    """Two numbers that agree to 64 bits are equal as doubles, lie inside the guard, and are told apart exactly."""
    exponent = Fraction(-3, 7)
    low, high = exp_enclosure(exponent, exponent, 60)
    middle = (low + high) / 2
    just_below = int(middle * (1 << 64))
    answers = {
        bernoulli(LazyUniform(Bits(seed), just_below - 1, 64), lambda n: exp_enclosure(exponent, exponent, n))
        for seed in range(4)
    }
    assert answers == {True}
    # A double has 53 bits and cannot tell the two numbers apart: the case lies inside the guard.
    assert float(Fraction(just_below, 1 << 64)) == float(middle)
    assert abs(just_below * 2.0**-64 - math.exp(-3 / 7)) <= sampling.GUARD * math.exp(-3 / 7)


def test_exact_exponential_has_the_law():
    values = []
    bits = Bits()
    for _ in range(1500):
        whole, rest = exponential(bits)
        values.append(whole + float(rest.enclosure(64)[0]))
    assert stats.kstest(values, "expon").pvalue > 1e-6


@pytest.mark.parametrize("law", LAWS)
def test_reals_are_refinable(law):
    reals = draw_reals(law, 2.0**30, 5_000, Bits())
    assert stats.kstest(reals.approximate() / 2.0**30, LAWS[law].cdf).pvalue > 1e-6
    for index in range(20):
        coarse, fine = reals.enclosure(index, 64), reals.enclosure(index, 200)
        assert coarse[0] <= fine[0] <= fine[1] <= coarse[1]
        assert fine[1] - fine[0] <= Fraction(1, 1 << 200)
        assert abs(abs(reals.approximate()[index]) - float(fine[0])) <= 2.0**-50 * float(fine[1]) + 2.0**-60


def test_norm_gamma_exact_rounding_decides_alike(monkeypatch):
    mechanism = NormGamma(1.0, 1.0, REPLACE_ONE, 3, random_state=8)
    fast = mechanism.sample(np.zeros(3), 40)
    monkeypatch.setattr(norm_gamma, "_GUARD", 1.0)
    assert np.array_equal(mechanism.sample(np.zeros(3), 40), fast)


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 7.3, 1e12])
def test_outputs_live_on_the_grid_whatever_the_value(kind, scale):
    """The low bits say nothing: every output is a whole multiple of a power of two that ignores the data."""
    mechanism = kind(scale, scale / 3, REPLACE_ONE)
    grid = mechanism.grid
    assert math.frexp(grid)[0] == 0.5
    for value in (0.0, math.pi * scale, -1e6 * scale, 1e-300):
        outputs = mechanism.sample(value, 200) / grid
        assert np.array_equal(outputs, np.rint(outputs))


def test_huge_values_are_themselves_and_nothing_fails():
    """A failure that depends on the value would be an output that depends on it; a clipped value would be wrong."""
    values = np.array([1e308, -1e308, 2.0**80, 1.3])
    assert on_grid(values, 2.0**-30)[:3].tolist() == values[:3].tolist()
    for mechanism in (Gaussian(1.0, 1.0, REPLACE_ONE), Laplace(1.0, 1.0, REPLACE_ONE), Box(9.0, 1.0, REPLACE_ONE)):
        noisy = mechanism([1e308, -1e308, 2.0**80])
        assert noisy.tolist() == [1e308, -1e308, 2.0**80]  # a unit of noise is less than their last digit


@pytest.mark.parametrize("people", [1e8, 1e11, 1e15])
def test_large_counts_come_out(people):
    """Also with a grid that is fine because nobody said how many numbers a unit can change."""
    for mechanism in (
        Laplace.for_guarantee(PureDP(1.0), 1.0, REPLACE_ONE),
        Laplace.for_guarantee(PureDP(1e12), 1.0, REPLACE_ONE),
        Gaussian.for_guarantee(GaussianDP(1.0), 1.0, REPLACE_ONE),
        NormGamma.for_guarantee(PureDP(1.0), 1.0, REPLACE_ONE),
        LaplaceShares(1.0, 1.0, REPLACE_ONE, honest=3),
    ):
        assert abs(mechanism(people) - people) < 60


@given(
    st.lists(st.tuples(st.floats(-1e308, 1e308), st.integers(-(2**62), 2**62)), min_size=1, max_size=8),
    st.integers(-300, 60),
)
@settings(max_examples=300, deadline=None)
def test_a_sum_of_value_and_noise_is_rounded_once(pairs, power):
    """Against fractions: what is published depends on the exact number of cells alone."""
    grid = 2.0**power
    values, cells = np.array([v for v, _ in pairs]), np.array([c for _, c in pairs])
    for value, cell, noisy in zip(values, cells, add_cells(values, cells, grid), strict=True):
        nearest = round(Fraction(float(value)) / Fraction(grid))  # half to even, as rint
        assert noisy == float((nearest + int(cell)) * Fraction(grid))


def test_scores_beyond_the_cells_keep_their_order():
    grid = 2.0**-20
    assert score_gaps([1e20, 2e20, 2e20 - 2.0**16], grid).tolist() == [2.0**62, 0.0, 2.0**36]


def test_scales_outside_the_table_are_refused():
    for scale in (1.0, 2.0**50):
        with pytest.raises(InputError):
            table_for("gaussian", scale)


def test_bits_never_repeat_and_below_is_uniform():
    first, second = Bits().words(1000), Bits().words(1000)
    assert not np.intersect1d(first, second).size
    assert len(np.unique(Bits().words(1 << 18))) == 1 << 18  # across the buffer's edge
    draws = Bits().below(7, 70_000)
    assert stats.chisquare(np.bincount(draws, minlength=7)).pvalue > 1e-6
    assert Bits().below(1, 3).tolist() == [0, 0, 0]
    with pytest.raises(InputError):
        Bits(seed="not a number")  # type: ignore[arg-type]


def test_many_values_need_a_dimension(monkeypatch):
    from sfumato.mechanisms import grid

    monkeypatch.setattr(grid, "ANY_DIMENSION", 10)
    with pytest.raises(InputError, match="dimension"):
        Gaussian(1.0, 1.0, REPLACE_ONE)(np.zeros(11))
    assert Gaussian(1.0, 1.0, REPLACE_ONE, dimension=2)(np.zeros(11)).shape == (11,)
