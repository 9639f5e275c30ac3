"""Composition: however it is written, in whatever order, it costs the same; and what it costs is an upper bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    ApproxDP,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NoGuarantee,
    Partition,
    PureDP,
    RandomizedResponseEvent,
    RenyiDP,
    Repeated,
    WorstOf,
    compose,
    parallel,
)
from sfumato.core.compose import add_exactly
from sfumato.core.odds import loss_tail
from sfumato.core.renyi import epsilon_from_curve
from sfumato.errors import PrivacyParameterError

events = st.one_of(
    st.builds(lambda s: GaussianEvent(1.0, s, adjacency=REPLACE_ONE), st.floats(2, 20)),
    st.builds(lambda s: LaplaceEvent(1.0, s, adjacency=REPLACE_ONE), st.floats(2, 20)),
    st.builds(lambda s: LaplaceEvent(1.0, s, 0.0, 5, adjacency=REPLACE_ONE), st.floats(2, 20)),
    st.builds(lambda k: RandomizedResponseEvent(3, k, 100, adjacency=REPLACE_ONE), st.integers(105, 180)),
)


@given(st.lists(events, min_size=1, max_size=4), st.randoms())
@settings(deadline=None, max_examples=25)
def test_order_grouping_and_counting_do_not_matter(acts, shuffler):
    written_out = [act for act in acts for _ in range(3)]
    shuffled = list(written_out)
    shuffler.shuffle(shuffled)
    total = compose(written_out)
    assert compose(shuffled) == total
    assert compose([Repeated(act, 3) for act in acts]) == total
    nested = compose([compose(written_out[:2]), *written_out[2:]])
    assert nested.epsilon(1e-6) == pytest.approx(total.epsilon(1e-6), rel=1e-3)


@pytest.mark.paper("002", "§2.7", "core/compose.py")
@given(st.lists(events, min_size=2, max_size=4))
@settings(deadline=None, max_examples=10)
def test_renyi_is_never_below_the_loss_distribution(acts):
    total = compose(acts * 4)
    for delta in (1e-3, 1e-6):
        assert epsilon_from_curve(np.vectorize(total.rdp), delta) >= total.epsilon(delta) - 1e-9


@given(st.lists(events, min_size=1, max_size=3), events)
@settings(deadline=None, max_examples=20)
def test_more_acts_cost_more(acts, extra):
    assert compose([*acts, extra]).epsilon(1e-6) >= compose(acts).epsilon(1e-6) * (1 - 1e-6)


@pytest.mark.parametrize(("eps", "count"), [(0.1, 1), (0.1, 30), (0.02, 300), (1.0, 8)])
def test_repeated_response_agrees_with_the_binomial_sum(eps, count):
    """k-fold randomised response by direct summation: exact, and what a forgotten count would get wrong."""
    keep = 1 / (1 + math.exp(-eps))
    wins = np.arange(count + 1)
    here, there = binom.pmf(wins, count, keep), binom.pmf(wins, count, 1 - keep)
    total = compose([PureDP(eps)] * count)
    for epsilon in (0.0, eps, eps * math.sqrt(count)):
        exact = np.maximum(here - math.exp(epsilon) * there, 0).sum()
        assert exact <= total.delta(epsilon) + 1e-12
        assert total.delta(epsilon) <= exact * 1.02 + 1e-6


def test_gaussian_composition_is_exact():
    acts = [GaussianEvent(1.0, 4.0, adjacency=ADD_REMOVE)] * 16
    total = compose(acts)
    assert isinstance(total, GaussianDP)
    assert 1 <= total.mu <= 1 + 1e-12
    assert total.adjacency == ADD_REMOVE
    mixed = compose([*acts, PureDP(1e-3)])
    assert mixed.epsilon(1e-5) >= GaussianDP(1.0).epsilon(1e-5)
    assert mixed.epsilon(1e-5) <= GaussianDP(1.0).epsilon(1e-5) + 2e-3


def test_plain_sums_are_decimal():
    assert compose([PureDP(0.2)] * 5).epsilon(0.0) == 1.0
    assert add_exactly([0.1] * 10) == 1.0
    assert compose([ApproxDP(0.1, 1e-6)] * 3).delta(0.3) <= 3e-6
    assert compose([ZCDP(0.1), ZCDP(0.2)]) == ZCDP(0.3)


def test_no_guarantee_absorbs_and_single_items_stay():
    assert isinstance(compose([PureDP(1.0), NoGuarantee("raw labels")]), NoGuarantee)
    assert compose([PureDP(1.0)]) == PureDP(1.0)
    rdp = compose([RenyiDP(4.0, 0.5), GaussianDP(1.0)])
    assert rdp.rdp(4.0) == pytest.approx(2.5)
    assert math.isinf(rdp.rdp(5.0))


def test_different_adjacencies_do_not_add():
    with pytest.raises(PrivacyParameterError, match="different adjacencies"):
        compose([PureDP(1.0, adjacency=REPLACE_ONE), PureDP(1.0, adjacency=ADD_REMOVE)])
    with pytest.raises(PrivacyParameterError):
        compose([])


def test_parallel_needs_a_public_partition():
    by_row = Partition("position", "first half and second half by row number")
    by_region = Partition("attribute", "region as written in the record")
    costs = [PureDP(1.0, adjacency=REPLACE_ONE), PureDP(0.4, adjacency=REPLACE_ONE)]
    assert parallel(costs, by_row).epsilon(0.0) == 1.0
    with pytest.raises(PrivacyParameterError, match="add-remove"):
        parallel(costs, by_region)  # a replaced record may leave one region and enter another: sizes change
    stated = [c.under(ADD_REMOVE) for c in costs]
    assert parallel(stated, by_region).epsilon(0.0) == 1.0
    both = parallel(stated, by_region, REPLACE_ONE)
    assert both.epsilon(0.0) == 2.0  # inside the first region: one person out, another in
    assert both.adjacency == REPLACE_ONE
    counts = parallel(stated, by_region, REPLACE_ONE, inside=[PureDP(1e-9, adjacency=REPLACE_ONE)] * 2)
    assert counts.epsilon(0.0) == 1.4  # counts do not change when a person changes inside a region
    with pytest.raises(PrivacyParameterError, match="add-remove"):
        parallel(stated, by_row)  # a removed row shifts all later ones to other parts
    mixed = parallel([PureDP(0.5), GaussianDP(0.4)], by_row, REPLACE_ONE)
    assert isinstance(mixed, WorstOf)
    assert mixed.delta(0.2) == max(PureDP(0.5).delta(0.2), GaussianDP(0.4).delta(0.2))
    with pytest.raises(PrivacyParameterError):
        parallel(costs, "by cluster")  # type: ignore[arg-type]
    with pytest.raises(PrivacyParameterError):
        Partition("cluster", "k-means")  # type: ignore[arg-type]
    with pytest.raises(PrivacyParameterError):
        compose([mixed, PureDP(0.1)])


@pytest.mark.parametrize("eps", [1e4, 1e6, 1e9, 1e12])
def test_huge_promises_are_added_up(eps):
    """Where a loss distribution would need steps larger than one, simpler bounds answer: never an overflow."""
    laplace = compose([LaplaceEvent(1.0, 1 / eps, adjacency=REPLACE_ONE).guarantee()] * 2)
    assert laplace.epsilon(0.0) <= 2 * eps * (1 + 1e-9)
    assert laplace.epsilon(1e-6) <= 2 * eps * (1 + 1e-9)
    mixed = compose([laplace, GaussianDP(1e-3 * eps)])
    assert 2 * eps - 50 <= mixed.epsilon(1e-6) < math.inf
    assert mixed.delta(10 * eps**2) <= 1e-6
    assert loss_tail(mixed, 10 * eps**2) <= 1e-6
