"""Edges that are bought: noise alone makes no bin.

Numbers lie in the lower part of an interval, wherever that ends; the fine cells above are empty, and their counts are
noise. However many there are, they are no bins of their own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Interval
from sfumato.release.synthetic import bought
from sfumato.release.synthetic.levels import Levels


def bins_of_nothing(seed: int) -> int:
    """How many edges lie among the empty cells, beside the first, where the last number's bin may end."""
    generator = np.random.default_rng(seed)
    kind = (pa.int32(), pa.float64())[seed % 2]
    fine = bought.fine_levels(Levels("stay", Interval(0, 100), kind=kind))
    end = int(generator.integers(10, fine.listed // 2))
    deviation = float(generator.uniform(2, 60))
    exact = np.zeros(fine.listed)
    exact[:end] = generator.uniform(20, 400, end)
    made = bought.with_bought_edges(fine, exact + generator.normal(0, deviation, fine.listed), deviation, 40)
    return max(0, sum(fine.edges[end] < edge < 100 for edge in made.edges) - 1)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("start", range(0, 1000, 100))
def test_noise_on_empty_cells_makes_no_bin(start):
    """Four standard errors of all that is gathered are passed by noise alone in few of a thousand columns."""
    assert sum(bins_of_nothing(seed) for seed in range(start, start + 100)) <= 3


def test_the_law_finds_noise_that_adds_up(monkeypatch):
    """As it was: of every count what lies above zero."""
    cut = bought._cut
    monkeypatch.setattr(
        bought, "_cut", lambda begins, counts, wanted, deviation: cut(begins, np.maximum(counts, 0), wanted, 0.0)
    )
    assert sum(bins_of_nothing(seed) for seed in range(100)) > 50
