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


@given(st.dictionaries(st.sampled_from("abc"), blocks, min_size=1), st.data(), st.sampled_from([1, 2]))
@settings(max_examples=60, deadline=None)
def test_every_budget_is_kept_exactly(difficulty, data, power):
    own = {observer: data.draw(st.floats(0.01, 10.0)) for observer in difficulty}
    budgets = [Budget(frozenset({observer}), total) for observer, total in own.items()]
    group = frozenset(difficulty)
    if len(group) > 1:
        budgets.append(Budget(group, max(own.values())))
    shares = split_budget(difficulty, budgets, power)
    for budget in budgets:
        assert cost_of(budget.observers, shares) <= Fraction(budget.total)
    assert all(share > 0 for parts in shares.values() for share in parts.values())


@pytest.mark.parametrize("power", [1, 2])
def test_no_other_split_is_better(power):
    difficulty = {"a": {"x": 4.0, "y": 1.0}, "b": {"y": 2.0, "z": 9.0}}
    budgets = [Budget(frozenset("a"), 0.75), Budget(frozenset("b"), 1.0), Budget(frozenset("ab"), 1.0)]
    shares = split_budget(difficulty, budgets, power)
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


def far_apart(seed: int) -> tuple[dict[str, dict[str, float]], list[Budget], str, dict[str, dict[str, float]]]:
    """Colluding observers whose budgets and difficulties differ by many powers of ten, some of them with limits."""
    chance = np.random.default_rng(seed)
    observers = list("abc")[: int(chance.integers(2, 4))]
    sizes = 10 ** chance.uniform(-8, 8, int(chance.integers(1, 8)))
    difficulty = {
        one: {
            f"b{place}": float(size * 10 ** chance.uniform(-1, 1))
            for place, size in enumerate(sizes)
            if place == 0 or chance.random() < 0.7
        }
        for one in observers
    }
    totals = {one: float(10 ** chance.uniform(-3, 6)) for one in observers}
    budgets = [Budget(frozenset({one}), total) for one, total in totals.items()]
    budgets.append(Budget(frozenset(observers), max(totals.values())))
    limits = {
        one: {name: float(10 ** chance.uniform(-6, 6)) for name in blocks if chance.random() < 0.5}
        for one, blocks in difficulty.items()
    }
    return difficulty, budgets, 1 + seed % 2, limits if chance.random() < 0.5 else {}


def test_budgets_of_any_size_are_split():
    """A feasible split always exists, whatever the solver makes of the numbers."""
    for seed in range(80):
        difficulty, budgets, power, limits = far_apart(seed)
        shares = split_budget(difficulty, budgets, power, limits)
        least = min(budget.total for budget in budgets) / sum(map(len, difficulty.values()))
        assert all(share >= 0.19 * least for parts in shares.values() for share in parts.values()), seed
        assert all(cost_of(budget.observers, shares) <= Fraction(budget.total) for budget in budgets), seed


@pytest.mark.parametrize("answer", [np.nan, np.inf, -1.0, 0.0, 1e300])
def test_a_solver_that_fails_refuses_no_study(monkeypatch, answer):
    """Whatever numbers the solver stops at, the budgets are kept and every block has its part."""
    import clarabel

    class Stopped:
        def __init__(self, _quadratic, objective, *_rest):
            self.x = [answer] * len(objective)

        def solve(self):
            return self

    difficulty = {"a": {"x": 4.0, "y": 1.0}, "b": {"y": 2.0, "z": 9.0}}
    budgets = [Budget(frozenset("a"), 0.75), Budget(frozenset("b"), 1.0), Budget(frozenset("ab"), 1.0)]
    honest = loss(difficulty, split_budget(difficulty, budgets), 1)
    monkeypatch.setattr(clarabel, "DefaultSolver", Stopped)
    shares = split_budget(difficulty, budgets)
    assert all(cost_of(budget.observers, shares) <= Fraction(budget.total) for budget in budgets)
    assert honest <= loss(difficulty, shares, 1) <= 3 * honest
