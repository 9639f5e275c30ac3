"""Noise drawn as shares: the sum has the stated law, and fewer shares do not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from sfumato.core import ADD_REMOVE, REPLACE_ONE, GaussianDP, PureDP, SharedGaussianEvent, SharedLaplaceEvent
from sfumato.core.events.centre import LARGEST_CENTRES
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.mechanisms import GaussianShares, polya
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.exact import LazyUniform
from sfumato.mechanisms.shares import draw_share


def geometric_p_value(draws: np.ndarray, scale: float) -> float:
    """Chi-square of draws against P(n) ∝ exp(-|n|/scale), in cells that expect at least 20."""
    q = math.exp(-1 / scale)
    width = max(1, round(scale / 6))
    edge = math.ceil(scale * 4 / width) * width
    edges = np.arange(-edge, edge + 1, width) - 0.5
    below = np.where(edges < 0, q ** np.ceil(-edges) / (1 + q), 1 - q ** (np.floor(edges) + 1) / (1 + q))
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * draws.size
    found = np.bincount(np.searchsorted(edges, draws), minlength=expected.size)
    kept = expected >= 20
    merged = np.append(found[kept], found[~kept].sum()), np.append(expected[kept], expected[~kept].sum())
    few = merged[1] > 1e-9
    return float(stats.chisquare(merged[0][few], merged[1][few] * merged[0].sum() / merged[1][few].sum()).pvalue)


def polya_sum(scale, parts, drawn, size, **options):
    return sum(polya.draw_polya(scale, parts, size, Bits(seed=100 + i), **options) for i in range(drawn))


@pytest.mark.parametrize(("scale", "parts"), [(0.3, 2), (3.7, 1), (3.7, 3), (50.0, 7), (1000.3, 2), (2.0**30 + 0.5, 4)])
@pytest.mark.by_day(2)
def test_polya_shares_sum_to_two_sided_geometric_noise(scale, parts):
    assert geometric_p_value(polya_sum(scale, parts, parts, 60_000), scale) > 1e-4


def test_one_share_less_is_another_law():
    assert geometric_p_value(polya_sum(50.0, 4, 3, 60_000), 50.0) < 1e-10


@pytest.mark.parametrize("factor", [2 / 3, 1.05, 3 / 2])
def test_the_test_sees_a_wrong_scale(factor):
    assert geometric_p_value(polya_sum(50.0 * factor, 3, 3, 60_000), 50.0) < 1e-6


@pytest.mark.slow
def test_the_slow_tail_has_the_same_law():
    """With the border at a half scale most of the noise comes from the exact tail."""
    bits = Bits(seed=5)
    shares = [np.concatenate([polya.draw_polya(20.0, 2, 5, bits, reach=0.5) for _ in range(250)]) for _ in range(2)]
    assert geometric_p_value(shares[0] + shares[1], 20.0) > 1e-4


@pytest.mark.slow
def test_the_exact_acceptance_has_the_same_law(monkeypatch):
    """With a guard that always speaks up every acceptance is decided by rational arithmetic."""
    monkeypatch.setattr(polya, "GUARD", 1e9)
    assert geometric_p_value(polya_sum(5.0, 2, 2, 800), 5.0) > 1e-4


def test_thresholds_of_the_poisson_law():
    rate = Fraction(52, 3)
    thresholds = polya._thresholds(rate)
    known = stats.poisson.cdf(np.arange(thresholds.size), float(rate))
    assert np.allclose(thresholds.astype(float) / 2.0**64, known, atol=1e-13)
    assert int(thresholds[-1]) == 2**64 - 1
    for n in (0, 5, 17, 30):  # a word on the border is decided by further bits, to one side or the other
        decided = {
            polya._poisson_exactly(LazyUniform(Bits(seed=s), int(thresholds[n]), 64), lambda _: (rate, rate))
            for s in range(30)
        }
        assert decided <= {n, n + 1}


def test_rounded_normals_are_not_closed_under_sums_but_nearly():
    """The bound of the proof note holds where the difference can be seen, and is far below 1 at the planned scales."""
    for spread, parts in ((0.35, 2), (0.5, 3), (0.8, 3), (1.0, 4), (1.5, 2)):
        far = 60
        n = np.arange(-far, far + 1)
        one = ndtr((n + 0.5) / spread) - ndtr((n - 0.5) / spread)
        total = one
        for _ in range(parts - 1):
            total = np.convolve(total, one)[far:-far]
        # W = round(N(0, parts·spread²) + parts-1 uniforms): integrate the normal over a sum of uniforms.
        fine = 64
        box = np.full(fine, 1 / fine)
        law = box
        for _ in range(parts - 1):
            law = np.convolve(law, box)
        offsets = (np.arange(law.size) - (law.size - 1) / 2) / fine
        wide = spread * math.sqrt(parts)
        ideal = (np.exp(-0.5 * ((n[:, None] - offsets) / wide) ** 2) / (wide * math.sqrt(2 * math.pi))) @ law
        bound = (parts + 1) * 3 * math.exp(-((spread * math.pi) ** 2) / 2)
        difference = np.abs(total - ideal).max()
        assert difference <= bound + 5e-4 / wide  # the second term is the error of the sum over 64 places
        if spread < 0.4:
            assert difference > 1e-3


def test_gaussian_shares_are_as_wide_as_planned():
    noise = GaussianShares(3.0, 1.0, ADD_REMOVE, 4, honest=5)
    total = sum(draw_share("gaussian", 3.0, noise.grid, 5, 50_000, Bits(seed=s)) for s in range(5)) * noise.grid
    assert stats.kstest(total / 3.0, "norm").pvalue > 1e-4
    fewer = sum(draw_share("gaussian", 3.0, noise.grid, 5, 50_000, Bits(seed=s)) for s in range(4)) * noise.grid
    assert stats.kstest(fewer / 3.0, "norm").pvalue < 1e-6


def test_events_say_who_may_collude():
    event = SharedLaplaceEvent(1.0, 2.0, 2.0**-10, 3, 2, 5, 1, adjacency=REPLACE_ONE)
    assert event.guarantee() == PureDP(event.eps, adjacency=REPLACE_ONE)
    assert event.eps >= (1 + 3 * 2.0**-10) / 2
    assert (event.to_dict()["honest"], event.to_dict()["centres"], event.to_dict()["colluders"]) == (2, 5, 1)
    shared = SharedGaussianEvent(1.0, 2.0, 2.0**-20, 4, 3, 5, 1, adjacency=REPLACE_ONE)
    assert isinstance(shared.guarantee(), GaussianDP)
    assert shared.mu > (1 + 2.0**-19) / 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"honest": 0},
        {"honest": 5, "colluders": 1},
        {"centres": LARGEST_CENTRES + 1},
        {"colluders": -1},
        {"honest": True},
    ],
)
def test_impossible_events_are_refused(wrong):
    fields = {"sensitivity": 1.0, "scale": 2.0, "grid": 2.0**-20, "dimension": 4, "honest": 3, "centres": 5} | wrong
    with pytest.raises(PrivacyParameterError):
        SharedGaussianEvent(**fields, adjacency=REPLACE_ONE)


def test_a_grid_too_coarse_for_the_proof_is_refused():
    with pytest.raises(PrivacyParameterError, match="finer grid"):
        SharedGaussianEvent(1.0, 2.0, 2.0**-9, 4, 2, 2, adjacency=REPLACE_ONE)


@pytest.mark.parametrize(("scale", "parts"), [(0.0, 2), (-1.0, 2), (2.0**60, 2), (1.0, 0)])
def test_impossible_shares_are_refused(scale, parts):
    with pytest.raises(InputError):
        polya.draw_polya(scale, parts, 5, Bits())
