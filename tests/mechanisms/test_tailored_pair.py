"""One channel for two attributes: never worse than two side by side, better where they go together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import Interval
from sfumato.errors import InputError, SfumatoError
from sfumato.evidence import Certificate, verify
from sfumato.mechanisms import TailoredPair
from sfumato.mechanisms.tailored.solver import optimal_channel

DOMAINS = (Interval(0, 1), Interval(-5, 5))


def side_by_side(pair: TailoredPair, share: float) -> float:
    """The cost of two best channels of share·ε and (1 - share)·ε, each designed alone, as one channel of the pair."""
    rows, columns = pair.bins
    law = np.array(pair.prior).reshape(rows, columns)
    law = law / law.sum()
    total = 0.0
    for axis, part in ((0, share), (1, 1 - share)):
        places = np.unique(pair.inputs[:, axis])
        own = law.sum(axis=1 - axis)
        fine = np.linspace(places[0], places[-1], (12 // (len(places) - 1)) * (len(places) - 1) + 1)
        spread = own @ (places - own @ places) ** 2
        costs = own[:, None] * (fine[None, :] - places[:, None]) ** 2 / spread
        total += optimal_channel(costs, part * pair.epsilon).value
    return total


@pytest.mark.paper("002", "§5.7, joint", "mechanisms/tailored/pair.py")
@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(0.01, 1.0), min_size=9, max_size=9), st.floats(0.2, 4.0), st.floats(0.1, 0.9))
def test_never_worse_than_two_channels_side_by_side(shares, epsilon, share):
    pair = TailoredPair(DOMAINS, epsilon, prior=np.reshape(shares, (3, 3)), bins=(3, 3), bias="none")
    assert pair.cost() <= side_by_side(pair, share) * (1 + 1e-4)


def test_better_where_the_attributes_go_together():
    together = np.eye(3) + 0.01
    pair = TailoredPair(DOMAINS, 2.0, prior=together, bins=(3, 3), bias="none")
    assert pair.cost() < 0.75 * min(side_by_side(pair, share) for share in np.linspace(0.05, 0.95, 19))


def test_how_the_two_go_together_is_estimated():
    """The mean of a product, which no two channels side by side were designed for, within five standard errors."""
    pair = TailoredPair(DOMAINS, 3.0, bins=(3, 3), random_state=4)
    rng = np.random.default_rng(0)
    people = pair.inputs[rng.choice(9, 40_000, p=[0.2, 0.1, 0, 0.1, 0.2, 0.1, 0, 0.1, 0.2])]
    found = pair.estimate(pair(people), lambda first, second: first * second)
    assert found.bias < 1e-6
    assert abs(found.value - np.mean(people[:, 0] * people[:, 1])) < 5 * found.standard_error


def test_what_it_costs_is_certified():
    pair = TailoredPair(DOMAINS, 1.0, bins=(3, 4), uses=("identity", "square"))
    assert pair.guarantee().epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    certificate = Certificate.issue(subject="two attributes", events=[pair.event()], proofs=[pair.proof])
    assert verify(certificate).ok


@pytest.mark.parametrize(
    "wrong",
    [{"bins": (40, 40)}, {"bins": (3, 1)}, {"prior": np.ones((2, 2)), "bins": (3, 3)}, {"bias": "unbiased"},
     {"uses": ("identity",)}, {"uses": ("log", "log")}, {"epsilon": 0.0}, {"domains": (Interval(0, 1),)}],
)  # fmt: skip
def test_bad_wishes_are_refused(wrong):
    with pytest.raises(SfumatoError):
        TailoredPair(**{"domains": DOMAINS, "epsilon": 1.0, **wrong})


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], 1.0, [[math.nan, 1.0]]])
def test_values_are_pairs_of_numbers(values):
    with pytest.raises(InputError):
        TailoredPair(DOMAINS, 1.0, bins=(2, 2))(values)
