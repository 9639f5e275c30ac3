"""Pairs that are asked for are measured in any case, or refused before anything is drawn.

Random columns, from two levels to thousands, numbers that are cut by bought edges and hold values that stand out;
random labels, plans, promises, and pairs that somebody wants.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato import ADD_REMOVE, REPLACE_ONE, Categories, Interval, Schema
from sfumato.errors import SchemaError
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic import measure, release, walk

ROWS = 3000


def any_case(source: random.Random) -> tuple[SyntheticRelease, pa.Table]:
    columns, table = {}, {}
    generator = np.random.default_rng(source.randint(0, 10**9))
    for name in "abcd"[: source.randint(3, 4)]:
        if source.random() < 0.4:
            columns[name] = Interval(0, 1000)
            peaks = generator.choice(np.arange(50, 1000, 100), ROWS)
            table[name] = np.where(generator.random(ROWS) < 0.7, peaks, generator.uniform(0, 1000, ROWS))
        else:
            levels = [f"v{at}" for at in range(source.choice((2, 5, 300, 3000, 3800)))]
            columns[name] = Categories(levels)
            table[name] = generator.choice(levels, ROWS)
    pairs = [list(pair) for pair in itertools.combinations(columns, 2)]
    wanted = SyntheticRelease(
        Schema(columns),
        source.choice((0.2, 2.0, 20.0)),
        1e-6,
        label=source.choice((None, *columns)),
        workload=source.sample(pairs, source.randint(1, 2)),
        adjacency=source.choice((REPLACE_ONE, ADD_REMOVE)),
        plan=source.choice((None, "pairs")),
        absent=source.sample(sorted(columns), 1),
        random_state=source.randint(0, 10**6),
    )
    return wanted, pa.table(table)


def missed(seed: int, patch: pytest.MonkeyPatch) -> bool | None:
    """Whether a wanted pair was not measured, or was refused after a draw; None if it was refused before."""
    wanted, table = any_case(random.Random(seed))
    draws = []
    original = measure.Measurer._noise
    patch.setattr(measure.Measurer, "_noise", lambda self, *given: draws.append(self.stage) or original(self, *given))
    try:
        made = wanted.release(table)
    except (SchemaError, KeyError):
        return True if draws else None
    assert wanted.workload is not None
    return not {frozenset(pair) for pair in wanted.workload} <= {frozenset(one.columns) for one in made.measured}


@pytest.mark.parametrize("start", range(0, 300, 6))
@pytest.mark.by_day(1)
def test_a_wanted_pair_is_measured_or_refused_beforehand(start):
    for seed in range(start, start + 6):
        with pytest.MonkeyPatch.context() as patch:
            assert not missed(seed, patch)


def found(plant, seeds=range(14)) -> bool:
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            if missed(seed, patch):
                return True
    return False


def test_the_law_finds_a_plan_that_leaves_them_out():
    """As it was: pairs were measured in rounds alone."""
    assert found(lambda patch: patch.setattr(walk.Walk, "_with_wanted", lambda self, scopes, forecast: list(scopes)))


def test_the_law_finds_bins_without_a_bound():
    """As it was: with as many bins as were bought a pair had more cells than are counted."""

    def plant(patch) -> None:
        patch.setattr(release, "_most_bins", lambda *given: 10_000)
        patch.setattr(release.SyntheticRelease, "_fits", lambda self, levels: True)

    assert found(plant, range(45, 60))
