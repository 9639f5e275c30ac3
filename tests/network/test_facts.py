"""What is known of a column saves work and changes no sum: all sums are those of plain Python, to the unit."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato.lang import load
from sfumato.network import facts
from sfumato.network.network import Network
from sfumato.questions.grid import Grid

ENDS = [(0, 100, 50), (-3, 4, 0), (0.1, 0.7, 0.3), (-1e15, 1e15, 7), (1e9, 1e9 + 1, 1e9), (0, 2**31, 1), (-0.5, 0.5, 0)]
KINDS = [pa.float64(), pa.float32(), pa.int64(), pa.int16(), pa.bool_(), pa.uint64()]
WORDS = ["a", "b", "c"]
STUDY = """
source(t, 't.parquet'). column(t, who, p(P)). rows_per_person(t, 1).
column(t, w, w(P)). random(w(P)) :- p(P). range(w(P), [a, b, c]). missing(w(P), b).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), {low!r}, {high!r}). missing(x(P), {missing!r}).
dataset(d, domain(P, p(P))). privacy_requirement(r(pub), d, dp(1)).
mean(m, x(P), p(P)). publish(m, m, r(pub)).
sum(s, x(P), p(P), by([w(P)])). publish(s, s, r(pub)).
histogram(h, [x(P): [{cut!r}], w(P)], p(P)). publish(h, h, r(pub)).
count(c, (p(P), x(P) > {cut!r})). publish(c, c, r(pub)).
"""


def cells(rng: random.Random, kind: pa.DataType, low: float, high: float, size: int) -> list:
    if pa.types.is_boolean(kind):
        return [rng.choice([True, False, None]) for _ in range(size)]
    if pa.types.is_integer(kind):
        least, most = (
            (0, 2**64 - 1) if kind == pa.uint64() else (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
        )
        near = [int(min(max(end + move, least), most)) for end in (low, high) for move in (-1, 0, 1)]
        return [rng.choice([None, least, most, *near, rng.randint(max(least, -100), 100)]) for _ in range(size)]
    odd = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, low, high, math.nextafter(high, math.inf), -0.0]
    return [rng.choice(odd) if rng.random() < 0.3 else rng.uniform(low, high) for _ in range(size)]


def column(cells: list, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_floating(kind):
        return pa.array(cells, kind)
    return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64()).cast(kind, safe=False)


def whose(rng: random.Random, size: int) -> list:
    """Identifiers in order, out of order, as text; sometimes of nobody."""
    found = list(range(size))
    match rng.randrange(4):
        case 1:
            rng.shuffle(found)
        case 2:
            found = [f"n{one}" for one in found]
        case 3:
            found = [None if rng.random() < 0.2 else one for one in found]
    return found


def placed(cell: float | None, low: float, high: float, missing: float) -> float:
    if cell is None or math.isnan(cell):
        return float(missing)
    return float(min(max(float(cell), low), high))


def steps(value: float, grid: Grid) -> int:
    return min(max(round((value - grid.offset) / grid.step), grid.low), grid.high)


def wrong(seed: int) -> list[str]:
    """Which sums of a random table are not those of plain Python."""
    rng = random.Random(seed)
    (low, high, missing), kind = rng.choice(ENDS), rng.choice(KINDS)
    cut, size = low + (high - low) / 4, rng.choice([1, 30])
    x = column(cells(rng, kind, low, high, size), kind)
    w = [rng.choice([*WORDS, "A", None]) for _ in range(size)]
    who = whose(rng, size)
    network = Network.from_spec(load(STUDY.format(low=low, high=high, missing=missing, cut=cut)))
    table = pa.table({"who": pa.array(who), "w": pa.array(w, pa.string()), "x": x})
    found = network.evaluate({"t": table}, sums_only=True).aggregates
    people = [
        (placed(value, low, high, missing), word if word in WORDS else "b")
        for one, value, word in zip(who, x.to_pylist(), w, strict=True)
        if one is not None
    ]
    grids = {node.name: node.question.entries()[0].grid for node in network.aggregates}
    expected = {
        "m": [sum(steps(value, grids["m"]) for value, _ in people)],
        "s": [sum(steps(value, grids["s"]) for value, word in people if word == one) for one in WORDS],
        "h": [sum((v >= cut) == side and word == one for v, word in people) for side in (False, True) for one in WORDS],
        "c": [sum(value > cut for value, _ in people)],
    }  # fmt: skip
    given = {name: [int(unit) for unit in sums.units[0]] for name, sums in found.items()}
    return [f"{name} of {kind} in [{low}, {high}]" for name in expected if given[name] != expected[name]]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.by_day(6)
def test_sums_are_those_of_plain_python(seed):
    assert wrong(seed) == []


@pytest.mark.slow
def test_sums_of_many_tables():
    assert [seed for seed in range(1000, 2000) if wrong(seed)] == []


def test_a_fact_that_is_false_is_found(monkeypatch):
    """Fractions taken for whole numbers, a clip left out, an absent word that stands for another."""
    true = facts.known_of
    monkeypatch.setattr("sfumato.network.evaluate.known_of", lambda node, kind: _whole(true(node, kind)))
    assert any(wrong(seed) for seed in range(20))
    monkeypatch.setattr("sfumato.network.evaluate.known_of", true)
    monkeypatch.setattr("sfumato.network.evaluate.absent_word", lambda node: "a")
    assert any(wrong(seed) for seed in range(20))


def _whole(known: facts.KnownColumn | None) -> facts.KnownColumn | None:
    return None if known is None else facts.KnownColumn(known.low, known.high, True)


def test_more_rows_than_floats_can_add_up_are_added_up_in_whole_numbers(monkeypatch):
    monkeypatch.setattr(facts.KnownColumn, "most_rows", lambda self: 3)
    assert [seed for seed in range(6) if wrong(seed)] == []


def test_ends_beyond_what_a_float_holds_are_not_known_to_be_whole():
    assert not facts.KnownColumn(0.0, 2.0**60, True).adds_up(Grid.of(0.0, 2.0**60))
    assert facts.KnownColumn(0.0, 1.0, False).inside(Grid.of(0.0, 1.0))
    assert not facts.KnownColumn(0.0, 1.0 + np.spacing(1.0), False).inside(Grid.of(0.0, 1.0))
