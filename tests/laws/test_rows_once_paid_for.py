"""What is refused is refused before anything is drawn; what was drawn ends in rows, whatever the noise was.

Whatever lies behind noise (how many bins are bought, how many rows a noisy number tells) may not be more than memory
holds, and every level of a measured table has a name of its own.
"""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato import ADD_REMOVE, Categories, Interval, Schema
from sfumato.errors import PrivacyParameterError
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic import measure, release, wishes
from sfumato.release.synthetic.levels import levels_of

NAMES = ("a", "b", "c")


def held_together(seed: int) -> float:
    """Cells of all columns together after edges were bought, of tables whose values stand out one by one."""
    source, generator = random.Random(seed), np.random.default_rng(seed)
    schema = Schema({name: Interval(0, 100) for name in NAMES})
    values = [np.arange(0, 101, source.choice((7, 8, 11, 25))) for _ in NAMES]
    table = pa.table({name: generator.choice(held, 6000) for name, held in zip(NAMES, values, strict=True)})
    workload = list(itertools.combinations(NAMES, 2))
    wanted = SyntheticRelease(schema, 8.0, 1e-6, workload=workload, plan="pairs", random_state=seed)
    measured = wanted.release(table).measured
    return math.prod(max(one.counts.size for one in measured if one.columns == (name,)) for name in NAMES)


def test_edges_that_are_bought_fit_together_as_even_ones_do(monkeypatch):
    """Six columns of which all pairs are wanted took 4 GB once their edges were bought, and none with even bins."""
    assert max(map(held_together, range(3))) > 5000
    monkeypatch.setattr(wishes, "_MOST_TOGETHER", 5000)  # 16³ even bins are less
    assert max(map(held_together, range(3))) <= 5000


def test_pairs_that_are_wanted_are_counted_whatever_edges_are_bought(monkeypatch):
    """All pairs together may have so many cells; those beyond were not counted, and missing once noise was drawn."""
    monkeypatch.setattr("sfumato.release.synthetic.counts._MOST_IN_ALL", 3 * 16 * 16)
    assert max(map(held_together, range(3))) <= 16**3


@pytest.mark.parametrize("levels", [1, 2])
def test_noise_alone_tells_no_number_of_rows(levels, monkeypatch):
    """In one of ten draws the noise was taken for 10¹² rows, and no memory held them."""
    monkeypatch.setattr(release, "_MOST_OF_NOISE", 1000)
    schema = Schema({"a": Categories([*range(levels)])})
    for seed in range(32):
        wanted = SyntheticRelease(schema, 1e-9, 1e-6, adjacency=ADD_REMOVE, random_state=seed)
        assert len(wanted.release({"a": [0, 0]}).table["a"]) <= 1000


def test_a_number_of_rows_that_stands_above_its_noise_is_made(monkeypatch):
    monkeypatch.setattr(release, "_MOST_OF_NOISE", 10)
    schema = Schema({"a": Categories([0, 1])})
    made = SyntheticRelease(schema, 1.0, 1e-6, adjacency=ADD_REMOVE).release({"a": [0, 1] * 1000}).table
    assert 1900 < len(made["a"]) < 2100


def test_a_promise_that_cannot_be_drawn_is_refused_before_anything_is(monkeypatch):
    drawn: list[float] = []
    original = measure.Measurer._noise
    monkeypatch.setattr(
        measure.Measurer, "_noise", lambda self, *given: drawn.append(given[-1]) or original(self, *given)
    )
    source = random.Random(0)
    for _ in range(40):
        epsilon, delta = 10.0 ** source.uniform(-14, 0), 10.0 ** source.uniform(-300, -1)
        columns = {f"c{at}": Categories(list(range(source.choice((2, 300))))) for at in range(source.randint(1, 4))}
        wanted = SyntheticRelease(Schema(columns), epsilon, delta, rows=10, plan="pairs")
        drawn.clear()
        told = ""
        try:
            wanted.release({name: [0, 1] * 20 for name in columns})
        except PrivacyParameterError as error:
            told = str(error)
        assert not (told and drawn)
        assert not told or "take a larger ε or δ. Nothing was spent" in told


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.by_day(12)
def test_every_level_has_a_name_of_its_own(seed):
    """Two bins were both called "1000000000 to 1000000000", and an absent cell as the category "missing"."""
    source = random.Random(seed)
    low = source.choice((0.0, 1e9, -1e15, 2.5e-9))
    high = low + max(abs(low), 1.0) * 10.0 ** source.uniform(-13, 1)
    cuts = sorted({low + (high - low) * source.random() for _ in range(source.randint(0, 5))} - {low, high})
    edges = source.choice((None, (low, *sorted([*cuts, *cuts[:1]]), high)))
    words = source.sample(["missing", "missing (no cell)", "a", "no cell"], source.randint(1, 3))
    schema = Schema({"a": Interval(low, high, edges=edges), "b": Categories(words)})
    kinds = {"a": source.choice((pa.float64(), pa.int64())), "b": pa.string()}
    for column in levels_of(schema, {}, source.choice(((), ("a", "b"))), kinds):
        assert len(set(column.names)) == column.size
