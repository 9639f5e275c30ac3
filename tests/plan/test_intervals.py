"""Quantiles of combined noise, the body, Fieller's interval: against simulation, mpmath and closed forms."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from sfumato.core import REPLACE_ONE
from sfumato.plan.draw import law_of, refinements
from sfumato.questions.intervals import Figure, NoiseLaw, body, figure_of, ratio_figures, support
from sfumato.questions.mean import Mean
from sfumato.questions.moments import SumsOfProducts


def test_one_laplace_variable_and_one_gaussian():
    assert NoiseLaw(laplace=(3.0,)).half_width == pytest.approx(3 * math.log(20), rel=1e-12)
    assert NoiseLaw(9.0).half_width == pytest.approx(3 * 1.959963984540054, rel=1e-12)
    assert NoiseLaw().half_width == 0.0


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, 0.3), (2.0, 1.0, 0.5), (1.0, 1e-3)])
@pytest.mark.by_day(1)
def test_sums_of_laplace_variables(scales):
    """The tail of a sum of Laplace variables by mpmath's quadrature of the inversion integral."""
    found = NoiseLaw(laplace=scales).half_width

    def inside(height):
        def wave(t):
            return mpmath.sin(t * height) / t * mpmath.fprod(1 / (1 + (b * t) ** 2) for b in scales)

        return 2 / mpmath.pi * mpmath.quadosc(wave, [0, mpmath.inf], omega=height)

    assert float(inside(mpmath.mpf(found))) == pytest.approx(0.95, abs=2e-6)


def test_gaussian_and_laplace_together():
    random = np.random.default_rng(0)
    drawn = random.normal(0, 1.5, 10**6) + random.laplace(0, 1, 10**6)
    assert NoiseLaw(2.25, (1.0,)).half_width == pytest.approx(np.quantile(np.abs(drawn), 0.95), rel=5e-3)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_refinements_are_combined_by_precision(noise):
    draws = refinements("m", noise, 1.0, 1, {"a": 0.5, "b": 1.0, "c": 2.0}, REPLACE_ONE)
    assert len(draws) == 3
    law = law_of(draws)
    assert law.variance == pytest.approx(1 / math.fsum(1 / draw.variance for draw in draws), rel=1e-9)
    random = np.random.default_rng(1)
    kind = random.normal if noise == "gaussian" else random.laplace
    weights = np.array([1 / draw.variance for draw in draws])
    total = sum(w * kind(0, draw.scale, 400_000) for w, draw in zip(weights, draws, strict=True)) / weights.sum()
    assert law.half_width == pytest.approx(np.quantile(np.abs(total), 0.95), rel=0.01)


def test_support_points_have_the_height_of_the_quantile():
    laws = [NoiseLaw(laplace=(1.0,)), NoiseLaw(laplace=(2.0, 0.5)), NoiseLaw(0.5)]
    directions = np.random.default_rng(2).normal(size=(40, 3))
    points = support(laws, directions)
    for direction, point in zip(directions, points, strict=True):
        combined = NoiseLaw()
        for factor, law in zip(direction, laws, strict=True):
            combined = combined.plus(law.times(factor))
        assert direction @ point == pytest.approx(combined.half_width, rel=1e-5)
    # Every point of the body lies below every plane that touches it.
    assert np.all(directions @ points.T <= np.sum(directions * points, axis=1)[:, None] * (1 + 1e-5))


@pytest.mark.parametrize("law", [NoiseLaw(4.0), NoiseLaw(laplace=(1.5,))])
def test_a_ratio_is_inverted_as_fieller_does(law):
    found = figure_of(lambda rows: rows[:, 0] / rows[:, 1], np.array([30.0, 60.0]), [law, law])
    for end in (found.low, found.high):
        residual = law.plus(law.times(end)).half_width
        assert abs(30.0 - end * 60.0) == pytest.approx(residual, rel=1e-4)


def test_linear_functions_are_exact():
    laws = [NoiseLaw(laplace=(1.0,)), NoiseLaw(laplace=(3.0,)), NoiseLaw(2.0), NoiseLaw()]
    factors = np.array([1.0, -0.5, 2.0, 7.0])
    drawn = np.array([5.0, 1.0, -4.0, 2.0])
    found = figure_of(lambda rows: rows @ factors, drawn, laws)
    law = NoiseLaw()
    for factor, own in zip(factors, laws, strict=True):
        law = law.plus(own.times(factor))
    assert found.standard_error == pytest.approx(law.deviation, rel=1e-9)
    assert found.high - found.value == pytest.approx(law.half_width, rel=1e-5)
    assert found.value - found.low == pytest.approx(law.half_width, rel=1e-5)


def test_what_can_be_infinite_is_unbounded():
    found = figure_of(lambda rows: np.full(len(rows), np.inf), np.array([1.0]), [NoiseLaw(1.0)])
    assert (found.low, found.high, found.standard_error) == (-math.inf, math.inf, math.inf)


def test_an_interval_outside_of_the_range_is_taken_around_its_end():
    assert Figure(12.0, 1.0, 11.0, 13.0).within(0, 10) == Figure(10.0, 1.0, 9.0, 10.0)
    assert Figure(9.5, 30.0, 8.5, 10.5).within(0, 10) == Figure(9.5, 5.0, 8.5, 10.0)


def test_the_body_is_the_same_for_everybody():
    laws = [NoiseLaw(laplace=(1.0,))] * 3
    assert np.array_equal(body(laws), body(laws))


def test_a_group_that_may_be_empty_has_its_range():
    question = Mean(values=("x(P)",), ranges=((0.0, 10.0),))
    law = NoiseLaw(100.0)
    (lost,) = question.figures(np.array([3.0, law.half_width * 0.9]), law)
    assert (lost.low, lost.high, lost.standard_error) == (0.0, 10.0, 5.0)
    (found,) = question.figures(np.array([3.0, law.half_width * 40]), law)
    assert 0 < found.low < found.value < found.high < 10


@pytest.mark.parametrize("law", [NoiseLaw(9.0), NoiseLaw(laplace=(2.0,)), NoiseLaw(1.0, (1.5, 0.5))])
def test_many_quotients_at_once_are_each_one_climbed(law):
    generator = np.random.default_rng(2)
    above, below = generator.normal(0, 60, 25), law.half_width * (1.02 + generator.exponential(3.0, 25))
    for top, bottom, fast in zip(above, below, ratio_figures(above, below, law), strict=True):
        slow = figure_of(lambda rows: rows[:, 0] / rows[:, 1], np.array([top, bottom]), (law, law))
        assert fast.value == pytest.approx(slow.value)
        assert fast.standard_error == pytest.approx(slow.standard_error)
        # Climbing stops a little below the top, the more so where the quotient is steep.
        assert fast.low <= slow.low + 1e-4 * (1 + abs(slow.low))
        assert fast.high >= slow.high - 1e-4 * (1 + abs(slow.high))
        if bottom > 2 * law.half_width:
            assert (fast.low, fast.high) == pytest.approx((slow.low, slow.high), rel=2e-3, abs=2e-3)


def test_moments_have_an_error_each():
    question = SumsOfProducts(values=("a(P)", "b(P)"), ranges=((0.0, 80.0), (0.0, 1.0)))
    errors = [figure.standard_error for figure in question.figures(np.zeros(3), NoiseLaw(4.0))]
    assert errors == pytest.approx([2 * 6400, 2 * 80 / math.sqrt(2), 2 * 80 / math.sqrt(2), 2.0])
    assert [error for error, _ in question.predicted(NoiseLaw(4.0), 1.0)] == pytest.approx(errors)
