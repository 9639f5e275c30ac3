"""Where numbers lie inside their bins: how a tail goes on is seen in the bin before it.

Numbers of a law that falls or rises exponentially, or geometrically, are counted between public edges of which the
last two are far apart, and made again from these counts alone: their mean is the law's.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core import Interval
from sfumato.release.synthetic import inside
from sfumato.release.synthetic.levels import Levels

NUMBERS = 20_000


def far_off(seed: int) -> float:
    """How far the mean of numbers made from counts is off, in standard deviations of the law."""
    generator = np.random.default_rng(seed)
    whole, mirrored = generator.random(2) < 0.5
    high = 60.0
    edges = np.cumsum([0.0, *generator.integers(1, 4, 3), *generator.integers(3, 8, 2)])
    tail = high - edges[-1]
    rate = generator.uniform(2.0, 6.0) / tail
    edges = np.append(edges, high)
    values = np.arange(0.0, high + 1) if whole else np.linspace(0, high, 60_001)
    weights = np.exp(-rate * values)
    if mirrored:
        values, edges = high - values[::-1], high - edges[::-1]
        weights = weights[::-1]
    weights /= weights.sum()
    kind = pa.int16() if whole else pa.float64()
    levels = Levels("wait", Interval(0, high), tuple(edges.tolist()), kind=kind)
    held = np.bincount(levels.codes(pa.chunked_array([values])), weights, minlength=levels.size)
    codes = np.repeat(np.arange(levels.size), np.rint(NUMBERS * held).astype(int)).astype(np.int32)
    made = levels.shaped(NUMBERS * held).values(codes, generator).to_numpy()
    mean = float(weights @ values)
    return abs(float(made.mean()) - mean) / float(np.sqrt(weights @ (values - mean) ** 2))


#: Three standard errors of the mean, and what a smooth curve through the inner bins is off.
NEAR = 3 / np.sqrt(NUMBERS) + 0.01


@pytest.mark.by_day(8)
@pytest.mark.parametrize("seed", range(200))
def test_the_mean_of_numbers_made_from_counts_is_that_of_their_law(seed):
    assert far_off(seed) < NEAR


def test_the_law_finds_tails_that_are_filled_evenly(monkeypatch):
    """Planted: nothing is asked of the bin before."""
    monkeypatch.setattr(inside, "_rate", lambda shares, widths: 0.0)
    assert sum(far_off(seed) > NEAR for seed in range(20)) > 15


@pytest.mark.parametrize("far", [1e-300, 1.0, 1e300])
def test_shapes_of_any_width_rise_from_nothing_to_all(far):
    generator = np.random.default_rng(1)
    for _ in range(200):
        ends = far * np.unique(np.concatenate([[0.0], 10.0 ** generator.uniform(-9, 0, 5), [1.0]]))
        counts = generator.choice([0.0, 1e-12, 1.0, 1e6], len(ends) - 1)
        shape = inside.Inside.smooth(ends, counts)
        assert (np.diff(shape.below) >= 0).all()
        assert shape.below[[0, -1]] == pytest.approx([0, 1], abs=1e-9)
