"""How far one individual moves an aggregate: never above the claim, and close to it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import PlanError
from sfumato.plan.statistic import Statistic, Sums

KINDS = ("count", "sum", "mean", "moment2", "histogram")


def contribution(statistic: Statistic, rows: list[np.ndarray]) -> Sums:
    """The sums of one individual's rows."""
    count = float(len(rows))
    if statistic.kind == "histogram":
        total = np.zeros(statistic.cells)
        for row in rows:
            total[int(row[0] * statistic.cells) % statistic.cells] += 1
        return Sums(count, total)
    if statistic.kind == "moment2":
        size = len(statistic.bounds)
        return Sums(count, sum((np.outer(row[:size], row[:size]) for row in rows), np.zeros((size, size))))
    return Sums(count, np.asarray(sum(row[0] for row in rows)))


def plus(first: Sums, second: Sums) -> Sums:
    return Sums(first.count + second.count, np.asarray(first.total) + np.asarray(second.total))


def random_rows(statistic: Statistic, generator: np.random.Generator) -> list[np.ndarray]:
    number = 1 if statistic.always else int(generator.integers(0, statistic.rows + 1))
    bounds = statistic.bounds or ((statistic.low, statistic.high),)
    ends = generator.random() < 0.7  # corners are where the maximum is
    corner = generator.integers(0, 2, len(bounds))
    rows = []
    for _ in range(number):
        share = corner if ends else generator.random(len(bounds))
        rows.append(np.array([low + (high - low) * s for (low, high), s in zip(bounds, share, strict=True)]))
    if statistic.kind == "histogram":
        rows = [np.array([generator.random()])] * number if ends else [np.array([generator.random()]) for _ in rows]
    return rows


def examples():
    for kind, relation, always, rows in itertools.product(KINDS, ("replace-one", "add-remove"), (False, True), (1, 3)):
        if always and rows > 1:
            continue
        for low, high in ((-2.0, 5.0), (3.0, 4.0), (-4.0, -1.0)):
            bounds = ((low, high), (-1.0, 2.0)) if kind == "moment2" else ()
            yield Statistic(kind, low, high, rows, relation, always, 4 if kind == "histogram" else 1, bounds)


@pytest.mark.parametrize("statistic", list(examples()), ids=str)
@pytest.mark.parametrize("pure", [False, True])
def test_nobody_moves_it_further_than_claimed(statistic, pure):
    generator = np.random.default_rng(3)
    claimed = statistic.l1 if pure else statistic.l2
    order = 1 if pure else 2
    others = contribution(statistic, random_rows(statistic, generator) or random_rows(statistic, generator))
    largest = 0.0
    for _ in range(500):
        here = contribution(statistic, random_rows(statistic, generator))
        there = contribution(statistic, [] if statistic.relation == "add-remove" else random_rows(statistic, generator))
        moved = statistic.encode(plus(others, here), pure) - statistic.encode(plus(others, there), pure)
        largest = max(largest, float(np.linalg.norm(moved, order)))
    assert largest <= claimed * (1 + 2**-20) + 1e-12
    if statistic.kind not in ("moment2",):
        assert largest >= 0.99 * claimed


@given(st.sampled_from(KINDS), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_without_noise_the_value_is_read_back(kind, seed):
    generator = np.random.default_rng(seed)
    bounds = ((-1.0, 2.0), (0.0, 3.0), (-5.0, -1.0)) if kind == "moment2" else ()
    statistic = Statistic(kind, -1.0, 2.0, 1, "replace-one", False, 4 if kind == "histogram" else 1, bounds)
    rows = [random_rows(statistic, generator) for _ in range(20)]
    sums = contribution(statistic, [row for person in rows for row in person])
    for pure in (False, True):
        value = statistic.decode(statistic.encode(sums, pure), sums.count, pure)
        if kind == "mean":
            wanted = sums.total / sums.count if sums.count else statistic.middle
        else:
            wanted = sums.count if kind == "count" else sums.total
        np.testing.assert_allclose(np.ravel(value), np.ravel(wanted), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "statistic", [e for e in examples() if e.rows == 1 and e.low == -2.0 and not e.is_public], ids=str
)
@pytest.mark.parametrize("pure", [False, True])
def test_predicted_error_is_what_simulation_finds(statistic, pure):
    """Within 5 %, for noise that is small beside the number of contributions."""
    generator = np.random.default_rng(5)
    size, trials = 2000, 1500
    if statistic.kind == "mean":  # the prediction spreads the mean over its range
        means = generator.uniform(statistic.low, statistic.high, trials)
    else:
        means = np.full(trials, statistic.middle)
    variance = (statistic.l1 if pure else statistic.l2) ** 2 / 4
    errors = []
    for mean in means:
        total = np.asarray(mean * size)
        if statistic.kind == "histogram":
            total = np.full(statistic.cells, size / statistic.cells)
        if statistic.kind == "moment2":
            total = np.eye(len(statistic.bounds)) * size
        exact = statistic.encode(Sums(float(size), total), pure)
        noisy = exact + generator.normal(0, math.sqrt(variance), exact.shape)
        truth = statistic.decode(exact, size, pure)
        errors.append(float(np.sum((statistic.decode(noisy, size, pure) - truth) ** 2)))
    assert statistic.error(variance, size, pure) == pytest.approx(np.mean(errors), rel=0.05 + 4 / math.sqrt(trials))


def test_unbounded_contributions_are_refused():
    with pytest.raises(PlanError, match="range"):
        Statistic("sum", 0.0, math.inf)
