"""Guarantees: the views agree with each other, and `implies` with the views."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    Adjacency,
    ApproxDP,
    GaussianDP,
    NoGuarantee,
    PureDP,
    RenyiDP,
    compose,
    guarantee_from_dict,
)
from sfumato.errors import CertificateError, PrivacyParameterError

sizes = st.floats(1e-3, 8.0)
exact = st.one_of(
    st.builds(PureDP, sizes),
    st.builds(ApproxDP, sizes, st.floats(1e-12, 0.2)),
    st.builds(GaussianDP, sizes),
)
guarantees = st.one_of(exact, st.builds(ZCDP, sizes), st.builds(RenyiDP, st.floats(1.1, 60), sizes))


@given(guarantees, st.floats(1e-9, 0.5))
@settings(deadline=None)
def test_epsilon_and_delta_undo_each_other(guarantee, delta):
    epsilon = guarantee.epsilon(delta)
    if math.isfinite(epsilon):
        assert guarantee.delta(epsilon) <= delta * (1 + 1e-6)


@given(guarantees)
@settings(deadline=None, max_examples=30)
def test_profile_falls_and_advantage_is_its_start(guarantee):
    values = [guarantee.delta(epsilon) for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0, 9.0)]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(values))
    assert guarantee.advantage() == values[0] <= 1


@given(guarantees, st.floats(0.0, 3.0))
@settings(deadline=None, max_examples=40)
def test_tradeoff_respects_the_profile(guarantee, epsilon):
    """The curve is a convex falling lower bound: 1 - f(α) <= e^ε α + δ(ε) fails for no α."""
    alphas = np.linspace(0, 1, 41)
    curve = guarantee.tradeoff(alphas)
    assert np.all(np.diff(curve) <= 1e-12)
    assert np.all(np.diff(curve, 2) >= -1e-9)
    assert np.all(curve <= 1 - alphas + 1e-12)
    if isinstance(guarantee, PureDP | ApproxDP | GaussianDP):
        assert np.all(1 - curve <= np.exp(epsilon) * alphas + guarantee.delta(epsilon) + 1e-9)
        assert guarantee.advantage() >= np.max(1 - alphas - curve) - 1e-9


@given(exact, exact)
@settings(deadline=None)
def test_implies_agrees_with_the_tradeoff_curves(first, second):
    """Decided answers are right: `True` puts the curve above everywhere, `False` below somewhere."""
    alphas = np.concatenate([np.geomspace(1e-13, 0.5, 400), 1 - np.geomspace(0.5, 1e-13, 400)])
    lower = np.min(first.tradeoff(alphas) - second.tradeoff(alphas))
    answer = first.implies(second)
    if answer is True:
        assert lower >= -1e-7
    elif answer is False:
        zero_gap = first.tradeoff(0.0) < second.tradeoff(0.0)
        assert lower <= 1e-7 or zero_gap
    else:
        raise AssertionError("exact guarantees are always comparable")


@given(guarantees)
def test_implies_itself_and_nothing_stronger(guarantee):
    assert guarantee.implies(guarantee) is True
    assert guarantee.implies(NoGuarantee("nothing asked")) is True
    assert NoGuarantee("nothing").implies(guarantee) is False
    assert guarantee.implies(PureDP(1e-5)) is not True


def test_implies_is_three_valued():
    assert GaussianDP(1.0).implies(ZCDP(0.5)) is True
    assert GaussianDP(1.0).implies(RenyiDP(4.0, 2.0)) is True
    assert ZCDP(0.5).implies(PureDP(100.0)) is False
    assert ZCDP(0.5).implies(GaussianDP(1.0)) is None
    assert PureDP(1.0).implies(ZCDP(0.5)) is True
    assert PureDP(1.0).implies(ZCDP(0.47)) is None
    assert PureDP(1.0).implies(ZCDP(0.4)) is False
    assert RenyiDP(8.0, 0.5).implies(RenyiDP(4.0, 0.5)) is True
    assert RenyiDP(8.0, 0.5).implies(RenyiDP(16.0, 9.0)) is False
    one, other = PureDP(1.0, adjacency=REPLACE_ONE), PureDP(2.0, adjacency=ADD_REMOVE)
    assert one.implies(other) is None
    assert PureDP(1.0).implies(other) is True


@given(guarantees)
def test_records_round_trip(guarantee):
    for adjacency in (None, REPLACE_ONE, Adjacency("household", "add-remove")):
        given_one = guarantee.under(adjacency)
        assert guarantee_from_dict(given_one.to_dict()) == given_one
    several = compose([guarantee, PureDP(0.3), PureDP(0.3)])
    assert guarantee_from_dict(several.to_dict()) == several


@pytest.mark.parametrize(
    "record", [{}, {"kind": "PureDP"}, {"kind": "Magic"}, {"kind": "PureDP", "eps": "x"}, {"kind": 3}]
)
def test_broken_records_are_certificate_errors(record):
    with pytest.raises(CertificateError):
        guarantee_from_dict(record)


def test_the_adjacency_is_always_said():
    assert "not stated" in str(PureDP(1.0))
    assert "replacing one record" in str(ApproxDP(1.0, 1e-6, adjacency=REPLACE_ONE))
    assert "adding or removing one person" in str(GaussianDP(1.0, adjacency=Adjacency("person", "add-remove")))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, None, "1", True])
def test_bad_parameters(bad):
    for make in (PureDP, GaussianDP, ZCDP, lambda value: ApproxDP(value, 1e-6), lambda value: RenyiDP(2.0, value)):
        with pytest.raises(PrivacyParameterError):
            make(bad)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 1.5, math.nan])
def test_bad_deltas(delta):
    with pytest.raises(PrivacyParameterError):
        ApproxDP(1.0, delta)
    with pytest.raises(PrivacyParameterError):
        GaussianDP(1.0).epsilon(delta)


def test_bad_orders_and_relations():
    for alpha in (1.0, 0.5, math.inf):
        with pytest.raises(PrivacyParameterError):
            RenyiDP(alpha, 1.0)
    with pytest.raises(PrivacyParameterError):
        Adjacency("record", "swap")  # type: ignore[arg-type]
    with pytest.raises(PrivacyParameterError):
        Adjacency(" ", "replace-one")
    with pytest.raises(PrivacyParameterError):
        NoGuarantee("")
