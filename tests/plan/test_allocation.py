"""Budgets are kept as fractions and split where they help most."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import PrivacyParameterError
from sfumato.plan.allocation import Budget, split_budget


def cost_of(group: frozenset[str], shares: dict[str, dict[str, float]]) -> Fraction:
    names = {name for observer in group & shares.keys() for name in shares[observer]}
    return sum((Fraction(max(shares[o].get(name, 0.0) for o in group & shares.keys())) for name in names), Fraction(0))


def loss(difficulty, shares, power):
    return sum(k / shares[o][b] ** power for o, blocks in difficulty.items() for b, k in blocks.items())


positive = st.floats(1e-3, 1e3)
blocks = st.dictionaries(st.sampled_from("wxyz"), positive, min_size=1)


@given(st.dictionaries(st.sampled_from("abc"), blocks, min_size=1), st.data(), st.sampled_from(["mu²", "epsilon"]))
@settings(max_examples=60, deadline=None)
def test_every_budget_is_kept_exactly(difficulty, data, currency):
    own = {observer: data.draw(st.floats(0.01, 10.0)) for observer in difficulty}
    budgets = [Budget(frozenset({observer}), total) for observer, total in own.items()]
    group = frozenset(difficulty)
    if len(group) > 1:
        budgets.append(Budget(group, max(own.values())))
    shares = split_budget(difficulty, budgets, currency)
    for budget in budgets:
        assert cost_of(budget.observers, shares) <= Fraction(budget.total)
    assert all(share > 0 for parts in shares.values() for share in parts.values())


@pytest.mark.parametrize(("currency", "power"), [("mu²", 1), ("epsilon", 2)])
def test_no_other_split_is_better(currency, power):
    difficulty = {"a": {"x": 4.0, "y": 1.0}, "b": {"y": 2.0, "z": 9.0}}
    budgets = [Budget(frozenset("a"), 0.75), Budget(frozenset("b"), 1.0), Budget(frozenset("ab"), 1.0)]
    shares = split_budget(difficulty, budgets, currency)
    best = loss(difficulty, shares, power)
    generator = np.random.default_rng(1)
    tried = 0
    while tried < 3000:
        other = {o: {b: m * np.exp(generator.normal(0, 0.3)) for b, m in parts.items()} for o, parts in shares.items()}
        factor = min(float(Fraction(b.total) / cost_of(b.observers, other)) for b in budgets)
        other = {o: {b: m * factor for b, m in parts.items()} for o, parts in other.items()}
        assert loss(difficulty, other, power) >= best * (1 - 1e-6)
        tried += 1


def test_a_group_that_shares_a_block_pays_once():
    difficulty = {"doctor": {"mean": 1.0}, "public": {"mean": 1.0}}
    alone = [Budget(frozenset({"doctor"}), 1.0), Budget(frozenset({"public"}), 0.25)]
    together = [*alone, Budget(frozenset({"doctor", "public"}), 1.0)]
    assert split_budget(difficulty, together) == split_budget(difficulty, alone)


@pytest.mark.parametrize("total", [0.0, -1.0, float("nan"), float("inf")])
def test_a_budget_of_nothing_is_refused(total):
    with pytest.raises(PrivacyParameterError, match="Nothing was planned"):
        split_budget({"a": {"x": 1.0}}, [Budget(frozenset("a"), total)])


def test_an_observer_without_budget_is_refused():
    with pytest.raises(PrivacyParameterError, match="privacy_requirement"):
        split_budget({"a": {"x": 1.0}}, [Budget(frozenset("b"), 1.0)])
