"""Columns of whole numbers: every number that is made lies in the level it was made for, under that level's name.

Random public edges, some of which stand twice (a bin for exactly that value), and every whole number of the interval.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Interval, Schema
from sfumato.errors import SchemaError
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic.levels import Levels


def any_levels(generator: np.random.Generator) -> Levels:
    low, high = (int(end) for end in np.cumsum(generator.integers([-50, 1], [50, 60])))
    inner = generator.integers(low, high + 1, generator.integers(0, 8))
    edges = np.unique([low, high, *inner])
    twice = generator.random(len(edges)) < 0.4
    edges = np.repeat(edges, 1 + twice)
    kind = (pa.int16(), pa.int64())[int(generator.integers(2))]
    return Levels("dose", Interval(low, high), tuple(edges.astype(float).tolist()), kind=kind)


def wrong(levels: Levels, generator: np.random.Generator) -> str:
    """What is wrong with what is made of these levels; nothing, one hopes."""
    values = np.arange(levels.domain.low, levels.domain.high + 1).astype(int)
    codes = levels.codes(pa.chunked_array([values]))
    held = np.bincount(codes, minlength=levels.size)
    wanted = np.repeat(np.flatnonzero(held), 30).astype(np.int32)
    made = levels.shaped(held.astype(float)).values(wanted, generator)
    if (levels.codes(pa.chunked_array([made])) != wanted).any():
        return "a number lies in another level"
    for at in np.flatnonzero(held):
        first, last = values[codes == at][[0, -1]]
        if levels.names[at] != (f"{first}" if first == last else f"{first} to {last}"):
            return "a level has a wrong name"
    return ""


def test_whole_numbers_lie_in_the_level_they_are_made_for():
    generator = np.random.default_rng(0)
    assert {wrong(any_levels(generator), generator) for _ in range(150)} == {""}


def test_the_law_finds_a_bin_that_begins_with_the_value_before_it(monkeypatch):
    """As it was: an edge that stands twice was the first of the next bin too, and a level was called "5 to 4"."""

    def as_it_was(self):
        edges = np.array(self.edges)
        return np.append(np.ceil(edges[:-1]), np.floor(edges[-1]) + 1)

    monkeypatch.setattr(Levels, "ends", as_it_was)
    generator = np.random.default_rng(0)
    assert {wrong(any_levels(generator), generator) for _ in range(40)} >= {"a number lies in another level"}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("beyond", [0, 1, 8, 2**60])
def test_whole_numbers_come_out_as_they_are_or_are_refused(sign, beyond):
    """From 2^53 on half of them are no floating-point numbers, and were counted as their neighbours without a word."""
    nearest = sign * (2**53 - 8)
    ends = sorted((nearest, nearest + sign * (7 + beyond)))
    wanted = SyntheticRelease(Schema({"key": Interval(*ends)}), 20.0, 1e-6, buy_edges=False)
    table = pa.table({"key": pa.array([nearest + sign] * 300, pa.int64())})
    if beyond == 0:
        assert (np.array(wanted.release(table).table["key"].to_pylist()) == nearest + sign).mean() > 0.9
    else:
        with pytest.raises(SchemaError, match=r"beyond 2\^53.*float64.*Nothing was spent"):
            wanted.release(table)
    decimal = pa.table({"key": table["key"].cast(pa.float64())})
    assert wanted.release(decimal).table.num_rows == 300
