"""One person moves what synthetic rows are made from by no more than is charged, whatever was drawn before.

A random schema, a random table, and a neighbour of it: one person's rows replaced by others, of whatever bytes, or
added, or taken away. What the noise gave on the first table is given on the second one too, act by act, so that both
walk the same way; then every act reads two vectors, and their distance is at most the sensitivity that its Event says.
The acts of both are the same in number, size and scale: nothing else depends on the data.
"""

from __future__ import annotations

import itertools
import random
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from laws.test_one_cell import OBJECTS
from sfumato import ADD_REMOVE, REPLACE_ONE, Categories, Dates, Interval, Schema, Times
from sfumato.core.events.event import Event
from sfumato.errors import SchemaError
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic import measure, release, walk

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.UndeclaredCellWarning")

Row = tuple[Any, Any, Any, Any]
NAMES = ("a", "b", "c", "d")


def any_release(source: random.Random) -> SyntheticRelease:
    edges = source.choice((None, None, (0, 2, 2, 5, 10)))
    columns = {
        "a": Interval(0, 10, edges=edges, null=source.choice((None, 3))),
        "b": source.choice((Interval(0, 4), Interval(-1000, 3.5), Dates("1999-12-30", "2000-02-01"), Times())),
        "c": Categories(["x", "y", "z"], unknown=source.choice((None, "z"))),
        "d": Categories([0, 1]),
    }
    never = source.choice(((), ({"c": ["x"], "d": [1]},)))
    return SyntheticRelease(
        Schema(columns, impossible=never),
        source.choice((0.2, 2.0, 9.0)),
        1e-6,
        label=source.choice((None, "d", "c", "a")),
        workload=source.choice((None, [["a", "c"]])),
        adjacency=source.choice((REPLACE_ONE, ADD_REMOVE)),
        absent=source.choice(((), ("a", "c"))),
        plan=source.choice((None, "pairs", "tree", "rounds")),
        buy_edges=source.random() < 0.7,
        **source.choice(({}, {"people": "who", "rows_per_person": source.choice((1, 3))})),
        random_state=1,
    )


def any_row(source: random.Random) -> Row:
    moment = source.choice((0, 1, 4, -7, 3.5, date(2000, 1, 5), datetime(2000, 1, 20, 8, 30), "2000-01-09", "08:30"))
    return source.uniform(-5, 15), moment, source.choice("xyzq"), source.choice((0, 1))


def any_rows(source: random.Random, most: int) -> list[Row]:
    return [any_row(source) for _ in range(source.randint(1, most))]


def hostile_rows(source: random.Random, most: int) -> list[Row]:
    return [tuple(source.choice(OBJECTS) for _ in NAMES) for _ in range(source.randint(1, most))]  # type: ignore[misc]


def table_of(people: dict[str, list[Row]], wanted: SyntheticRelease, source: random.Random) -> dict[str, list[Any]]:
    """Rows in any order: which comes first may not matter."""
    rows = [(who, *row) for who, own in people.items() for row in own]
    source.shuffle(rows)
    table: dict[str, list[Any]] = {name: [row[at + 1] for row in rows] for at, name in enumerate(NAMES)}
    return {"who": [row[0] for row in rows], **table} if wanted.people else table


def neighbours(source: random.Random, wanted: SyntheticRelease) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    most = 5 if wanted.people else 1
    first = {f"p{number}": any_rows(source, most) for number in range(source.randint(2, 40))}
    second = dict(first)
    who = source.choice(sorted(first))
    if wanted.adjacency == REPLACE_ONE:
        second[who] = source.choice((any_rows, hostile_rows))(source, most)
    elif source.random() < 0.5:
        del second[who]
    else:
        second["new"] = source.choice((any_rows, hostile_rows))(source, most)
    return table_of(first, wanted, source), table_of(second, wanted, source)


class History:
    """What the noise was given and what it gave; a second walk is given the same."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.given: list[tuple[np.ndarray, Event]] = []
        self.gave: list[np.ndarray] = []
        self.replayed: list[np.ndarray] | None = None
        original = Gaussian.__call__

        def call(noise: Gaussian, values: Any) -> Any:
            place = len(self.given)
            self.given.append((np.array(values, dtype=float), noise.event()))
            if self.replayed is None:
                self.gave.append(original(noise, values))
                return self.gave[-1]
            return self.replayed[place]

        patch.setattr(measure.Gaussian, "__call__", call)

    def again(self) -> list[tuple[np.ndarray, Event]]:
        first, self.given, self.replayed = self.given, [], self.gave
        return first


def farthest(seed: int, patch: pytest.MonkeyPatch) -> float:
    """The largest move of any act over the sensitivity its event states, on one random pair of neighbours."""
    source = random.Random(seed)
    wanted = any_release(source)
    tables = neighbours(source, wanted)
    history = History(patch)
    rows = wanted.release(tables[0]).table
    first = history.again()
    other = wanted.release(tables[1]).table
    second = history.given
    assert {name: values.dtype for name, values in rows.items()} == {name: v.dtype for name, v in other.items()}
    assert [event for _, event in first] == [event for _, event in second]
    if wanted.adjacency == ADD_REMOVE:
        assert len(rows["a"]) == len(other["a"])
    moves = [np.linalg.norm(x - y) / event.sensitivity for (x, event), (y, _) in zip(first, second, strict=True)]
    return float(max(moves))


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.by_day(6)
def test_one_person_moves_every_act_by_no_more_than_is_charged(seed, monkeypatch):
    assert farthest(seed, monkeypatch) <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 2000, 100))
def test_one_person_moves_every_act_by_no_more_than_is_charged_at_length(start):
    largest = 0.0
    for seed in range(start, start + 100):
        with pytest.MonkeyPatch.context() as patch:
            largest = max(largest, farthest(seed, patch))
    assert 0.5 < largest <= 1 + 1e-9


# ── the law finds what it is for ─────────────────────────────────────────────────────────────────────────────────────


def found(plant, seeds=range(60)) -> bool:
    """Whether the law fails on some seed with the defect in place: a move too far, or acts that differ."""
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            try:
                if farthest(seed, patch) > 1 + 1e-9:
                    return True
            except AssertionError:
                return True
    return False


def test_the_law_finds_rows_of_a_person_that_are_not_charged():
    assert found(lambda patch: patch.setattr(measure.Measurer, "_move", property(lambda self: 2**0.5)))


def test_the_law_finds_a_number_of_rows_that_is_told_although_it_is_protected():
    def told(self, look):
        return look.counted.rows

    assert found(lambda patch: patch.setattr(release.SyntheticRelease, "public_rows", told))


def test_the_law_finds_scores_against_what_nobody_published():
    """Expected counts that peek: those of the table itself, halved."""

    def peeking(self, start, model):
        tables = self.measurer.exact.tables
        return {scope: -table.astype(float) for scope, table in tables.items() if len(scope) == 2}

    assert found(lambda patch: patch.setattr(walk.Walk, "_expected", peeking))


# ── the ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rows", [0, 1])
def test_a_protected_number_of_rows_may_be_none_at_all(rows):
    """An empty table and one of a single row must look alike: neither fails."""
    schema = Schema({"a": Interval(0, 10), "c": Categories(["x", "y"])})
    table = pa.table({"a": pa.array([1.0] * rows, pa.float64()), "c": pa.array(["x"] * rows, pa.string())})
    out = SyntheticRelease(schema, 1.0, 1e-6, adjacency=ADD_REMOVE).release(table)
    assert out.table.num_rows >= 1


def test_cells_that_are_all_missing_are_told_to_the_curator_alone():
    schema = Schema({"a": Interval(0, 10, null=0), "c": Categories(["x", "y"], null="y")})
    table = pa.table({"a": pa.array([None] * 500, pa.float64()), "c": pa.array([None] * 500, pa.string())})
    out = SyntheticRelease(schema, 4.0, 1e-6).release(table)
    assert (np.array(out.table["c"].to_pylist()) == "y").mean() > 0.8
    level = SyntheticRelease(schema, 4.0, 1e-6, absent=["a", "c"]).release(table)
    assert level.table["c"].null_count > 400
    assert level.table["a"].null_count > 400


def ruled_out(source: random.Random) -> tuple[Schema, set[tuple[int, ...]]]:
    """Small columns and some impossible combinations of two or three of them; and which rows are left."""
    sizes = [source.randint(2, 3) for _ in range(4)]
    columns = {name: Categories(list(range(size))) for name, size in zip(NAMES, sizes, strict=True)}
    never: list[dict[str, list[int]]] = []
    for _ in range(source.randint(1, 4)):
        places = sorted(source.sample(range(4), source.choice((2, 2, 3))))
        never.append({NAMES[at]: source.sample(range(sizes[at]), source.randint(1, sizes[at])) for at in places})
    left = {
        row
        for row in itertools.product(*map(range, sizes))
        if not any(all(row[NAMES.index(name)] in values for name, values in entry.items()) for entry in never)
    }
    return Schema(columns, impossible=never), left


def impossible_rows(seed: int) -> int | None:
    """How many of the invented rows cannot be, of data that knows no such rule; None where the schema is refused."""
    source = random.Random(seed)
    schema, left = ruled_out(source)
    table = {name: [source.choice(domain.values) for _ in range(3000)] for name, domain in schema.columns.items()}
    label, plan = source.choice((None, "a", "d")), source.choice(("pairs", "tree", "rounds"))
    wanted = SyntheticRelease(schema, source.choice((0.5, 9.0)), 1e-6, label=label, plan=plan, random_state=seed)
    if not left:
        with pytest.raises(SchemaError, match="Nothing was spent"):
            wanted.check()
        return None
    made = wanted.release(table).table
    return sum(row not in left for row in zip(*(made[name] for name in NAMES), strict=True))


def test_no_invented_row_is_impossible():
    """What several combinations rule out together was invented all the same: half of the rows, of data that had it."""
    assert {impossible_rows(seed) for seed in range(40)} <= {0, None}


@pytest.mark.slow
def test_no_invented_row_is_impossible_at_length():
    assert {impossible_rows(seed) for seed in range(40, 600)} <= {0, None}


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("domain", [Categories([0, 1, 2]), Interval(0, 9), Interval(0, 1e-300)])
def test_a_label_alone_and_a_narrow_range_are_invented(domain, adjacency):
    """The first ended in a ValueError after its noise was drawn, the second where its noise was unlucky."""
    cells = [0, 1, 2] * 200 if isinstance(domain, Categories) else list(np.linspace(0, domain.high, 600))
    for seed in range(5):
        alone = SyntheticRelease(
            Schema({"a": domain}), 9.0, 1e-6, label="a", adjacency=adjacency, buy_edges=seed > 2, random_state=seed
        )
        assert len(alone.release({"a": cells}).table["a"]) > 300
