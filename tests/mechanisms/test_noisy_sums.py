"""The step that every model from noisy sums takes: what its parts cost together, how long one record's vector is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import ZCDP, ApproxDP, GaussianDP, compose
from sfumato.mechanisms.noisy_sums import clipped, curvature, parts, slopes

LOSSES = st.sampled_from(["logistic", "hinge"])
ANY = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ApproxDP(0.1, 1e-9), GaussianDP(2.0), ZCDP(0.3)], ids=str)
@pytest.mark.parametrize("steps", [1, 6, 14, 200])
@pytest.mark.parametrize("first", [0.05, 0.2, 0.9])
def test_all_parts_together_keep_the_promise_and_nearly_spend_it(guarantee, steps, first):
    products, gradient = parts(guarantee, steps, first)
    assert compose([products, *[gradient] * steps]).implies(guarantee) is True
    more = [GaussianDP(one.mu * (1 + 1e-6)) for one in (products, gradient)]
    assert compose([more[0], *[more[1]] * steps]).implies(guarantee) is not True


@settings(max_examples=200, deadline=None)
@given(
    loss=LOSSES, outputs=st.sampled_from([1, 3]), cells=st.lists(ANY, min_size=6, max_size=6), right=st.integers(0, 2)
)
def test_a_slope_is_finite_and_as_short_as_asked_whatever_the_scores(loss, outputs, cells, right):
    scores = np.array(cells).reshape(-1, outputs)
    wanted = np.zeros_like(scores)
    wanted[:, right % outputs] = 1.0
    found = slopes(loss, scores, wanted)
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1
    for longest in (0.5, 1e-9):
        assert np.linalg.norm(clipped(found, longest), axis=1).max() <= longest * (1 + 1e-12)


@pytest.mark.parametrize(("loss", "outputs"), [("logistic", 1), ("logistic", 3), ("hinge", 1)])
def test_no_slope_changes_faster_than_the_curvature(loss, outputs):
    """By differences along random directions; some come near it."""
    generator, furthest = np.random.default_rng(outputs), 0.0
    wanted = np.eye(outputs)[[0]] if outputs > 1 else np.ones((1, 1))
    for _ in range(2000):
        scores, way = generator.normal(size=(2, 1, outputs))
        way *= 1e-4 / math.sqrt(float((way**2).sum()))
        change = slopes(loss, scores + way, wanted) - slopes(loss, scores - way, wanted)
        furthest = max(furthest, float((change * way).sum()) / (2 * 1e-8))
    assert 0.8 * curvature(loss, outputs) < furthest <= curvature(loss, outputs) * (1 + 1e-6)
