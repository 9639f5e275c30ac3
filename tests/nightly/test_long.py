"""The long checks: more draws than a change can wait for. `make nightly`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from laws.rows import ROWS
from sfumato.evidence import audit
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.sampling import draw

pytestmark = pytest.mark.slow
LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}


@pytest.mark.parametrize("law", LAWS)
def test_a_hundred_million_draws_have_the_law(law):
    """Fine enough to see a scale that is wrong by two parts in a thousand: 400 of χ² above 401 for Laplace noise."""
    scale = 2.0**21
    edges = np.rint(np.linspace(-5, 5, 401) * scale / 2) + 0.5  # between two cells
    counts = np.zeros(402)
    for _ in range(10):
        counts += np.bincount(np.searchsorted(edges, draw(law, scale, 10_000_000, Bits())), minlength=402)
    chances = np.diff(np.concatenate([[0.0], LAWS[law].cdf(edges * 2 / scale), [1.0]]))
    assert stats.chisquare(counts, chances * 1e8).pvalue > 1e-6
    wrong = np.diff(np.concatenate([[0.0], LAWS[law].cdf(edges * 2 / scale / 1.002), [1.0]]))
    assert stats.chisquare(counts, wrong * 1e8).pvalue < 1e-6


@pytest.mark.parametrize("row", ROWS.values(), ids=[kind.__name__ for kind in ROWS])
def test_two_million_attacks(row):
    result = audit(row.mechanism, row.neighbours, trials=2_000_000, confidence=0.99999, delta=row.audit_delta)
    assert not result.refuted
    assert result.tightness > 0.6
    assert audit(row.scaled(0.7), row.neighbours, trials=2_000_000, claim=row.mechanism.guarantee()).refuted
