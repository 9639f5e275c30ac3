"""Naming groups and counting them: every neighbouring pair of sizes in fractions, the paper's formula, intervals."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ApproxDP, GaussianDP, PureDP
from sfumato.core.events.groups import GroupCountsEvent, delta_of_naming
from sfumato.errors import InputError
from sfumato.evidence import Certificate, verify
from sfumato.evidence.losses import event_parts
from sfumato.mechanisms import GroupCounts
from sfumato.mechanisms.group_counts import naming_weights

PROMISES = [(1.0, 1e-6), (0.1, 1e-6), (3.0, 1e-9), (0.5, 0.01), (1e-2, 1e-5)]


def law_of(weights: tuple[int, ...], size: int) -> dict[int | None, Fraction]:
    """What is published of a group of so many people: n - I, or None."""
    total, law = sum(weights), defaultdict(Fraction)
    for place, weight in enumerate(weights, 1):
        law[size - place if place <= size else None] += Fraction(weight, total)
    return law


def excess(one: dict, other: dict, growth: Fraction) -> Fraction:
    return sum((max(Fraction(0), chance - growth * other.get(seen, 0)) for seen, chance in one.items()), Fraction(0))


def growth_of(epsilon: float) -> Fraction:
    getcontext().prec = 60
    return Fraction(Decimal(epsilon).exp())


def worst(weights: tuple[int, ...], epsilon: float) -> float:
    laws = [law_of(weights, size) for size in range(len(weights) + 3)]
    growth = growth_of(epsilon)
    return float(max(max(excess(a, b, growth), excess(b, a, growth)) for a, b in pairwise(laws)))


def some_weights(seed: int) -> tuple[int, ...]:
    rng = random.Random(seed)
    return tuple(rng.randint(1, 30) for _ in range(rng.randint(1, 9)))


@pytest.mark.parametrize("seed", range(60))
def test_delta_is_what_all_sizes_give(seed):
    weights, epsilon = some_weights(seed), random.Random(seed).uniform(0.05, 3.0)
    assert float(delta_of_naming(weights, epsilon)) == pytest.approx(worst(weights, epsilon), rel=1e-12)
    event = GroupCountsEvent(weights, epsilon, 1, adjacency=ADD_REMOVE) if worst(weights, epsilon) < 1 else None
    if event is not None:
        (part,) = event_parts([event.to_dict()])
        assert part.delta == pytest.approx(event.delta, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_the_best_weights_keep_their_delta(epsilon, delta):
    found = float(delta_of_naming(naming_weights(epsilon, delta), epsilon))
    assert delta * (1 - 1e-6) <= found <= delta


def test_one_step_too_many_is_found():
    weights = naming_weights(1.0, 1e-6)
    for place in range(len(weights)):
        spoiled = list(weights)
        spoiled[place] = 2 * spoiled[place]
        assert float(delta_of_naming(spoiled, 1.0)) > 1e-6 or place == len(weights) - 1
    assert worst((*weights[1:], 1), 1.0) > 1.5e-6


def closed_form(epsilon: float, delta: float, size: int) -> float:
    """Desfontaines et al. 2022, Thm 1."""
    growth = math.exp(epsilon)
    first = 1 + math.floor(math.log((growth + 2 * delta - 1) / ((growth + 1) * delta)) / epsilon)
    early = lambda n: math.expm1(n * epsilon) / (growth - 1) * delta  # noqa: E731
    second = first + math.floor(math.log1p((growth - 1) / delta * (1 - early(first))) / epsilon)
    if size <= first:
        return early(size)
    if size <= second:
        left = math.exp(-(size - first) * epsilon)
        return (1 - left) * (1 + delta / (growth - 1)) + left * early(first)
    return 1.0


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_no_rule_names_more(epsilon, delta):
    made = GroupCounts.for_guarantee(ApproxDP(epsilon, delta), 1, ADD_REMOVE)
    best = [closed_form(epsilon, delta, size) for size in range(len(made.weights) + 1)]
    assert np.abs(made.chances - best).max() < 1e-6


def test_replacing_moves_two_groups():
    """Two groups of all small sizes, one losing and one gaining a person: within the (ε, δ) of the whole."""
    made = GroupCounts.for_guarantee(ApproxDP(3.0, 0.02), 1, REPLACE_ONE)
    assert made.event().moved == 2
    growth, size = growth_of(made.event().eps), len(made.weights)
    laws = [law_of(made.weights, n) for n in range(size + 3)]
    found = Fraction(0)
    for a in range(size + 2):
        for b in range(size + 2):
            one = {(x, y): p * q for x, p in laws[a + 1].items() for y, q in laws[b].items()}
            other = {(x, y): p * q for x, p in laws[a].items() for y, q in laws[b + 1].items()}
            found = max(found, excess(one, other, growth))
    assert 0.3 * 0.02 < float(found) <= made.event().delta <= 0.02


@pytest.mark.parametrize("groups", [1, 2, 3, 64, 65, 200])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_every_promise_in_reach_is_kept(groups, adjacency):
    for epsilon in (0.05, 1.0, 10.0, 100.0, 1e6):
        for delta in (0.5, 1e-3, 1e-9):
            made = GroupCounts.for_guarantee(ApproxDP(epsilon * groups, delta), groups, adjacency)
            assert made.guarantee().implies(ApproxDP(epsilon * groups, delta)) is True


@pytest.mark.parametrize("groups", [1, 2, 3, 64, 65, 200])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_both_roads_charge_the_same_for_several_groups(groups, adjacency):
    made = GroupCounts.for_guarantee(ApproxDP(4.0, 1e-4), groups, adjacency)
    certificate = Certificate.issue(
        subject="groups", events=[made.event()], proofs=["partition_selection"], guarantee=ApproxDP(4.0, 1e-4)
    )
    assert verify(certificate).failures == ()
    assert made.event().delta >= 1e-4 * 0.999


@pytest.mark.parametrize("size", [1, 8, 12, 14, 20, 35, 1000])
def test_intervals_cover_given_that_a_group_is_named(size):
    """Exactly, by the law itself."""
    made = GroupCounts.for_guarantee(ApproxDP(0.7, 1e-3), 1, ADD_REMOVE)
    law = {seen + made.centre: float(p) for seen, p in law_of(made.weights, size).items() if seen is not None}
    seen = np.array(sorted(law))
    low, high = made.interval(seen)
    named = sum(law.values())
    inside = sum(law[int(v)] for v, a, b in zip(seen, low, high, strict=True) if a <= size <= b)
    assert inside / named >= 0.95
    assert np.all(low >= 1)


def test_counts_are_near_and_absent_groups_stay_absent():
    made = GroupCounts.for_guarantee(ApproxDP(1.0, 1e-6), 1, ADD_REMOVE)
    named = made(np.concatenate([np.zeros(5000), np.full(5000, 1), np.full(5000, 100)]))
    assert not named[:5000].any()
    assert np.count_nonzero(named[5000:10_000]) <= 3
    assert abs(named[10_000:].mean() - 100) < 0.2
    assert named[10_000:].std() == pytest.approx(math.sqrt(made.error()), rel=0.1)


@pytest.mark.parametrize("wrong", [PureDP(1.0), GaussianDP(1.0), ApproxDP(1.0, 0.0), ApproxDP(1.0, 1e-19)])
def test_what_cannot_be_promised_is_refused(wrong):
    with pytest.raises(InputError, match=r"[Nn]othing was"):
        GroupCounts.for_guarantee(wrong, 1, ADD_REMOVE)


@pytest.mark.parametrize("wrong", [[-1], [0.5]])
def test_counts_are_whole_numbers(wrong):
    with pytest.raises(InputError, match="Nothing was drawn"):
        GroupCounts.for_guarantee(ApproxDP(1.0, 1e-6), 1, ADD_REMOVE)(wrong)
