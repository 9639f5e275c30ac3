"""What a schema says never comes together never does, wherever columns are cut.

Random ranges and categories that rule each other out; numbers of many types, cut by edges that are given, bought, equal
or one for each whole number; data that knows no such rule. No invented row has a combination that is ruled out.
"""

from __future__ import annotations

import decimal
import random
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Categories, Dates, Interval, Schema
from sfumato.errors import SchemaError
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic import bought, release, zeros
from sfumato.release.synthetic.levels import Levels

KINDS = (pa.int64(), pa.int16(), pa.float64(), pa.float32(), pa.decimal128(9, 1), pa.date32())
FIRST = date(2020, 1, 1)


def number(source: random.Random, high: int, kind: pa.DataType) -> Any:
    """A number, or a day, such as a table has it."""
    whole = source.randint(0, high)
    if pa.types.is_date(kind):
        return FIRST + timedelta(days=whole)
    if pa.types.is_integer(kind) or source.random() < 0.5:
        return decimal.Decimal(whole) if pa.types.is_decimal(kind) else whole
    tenths = min(whole + source.randint(0, 9) / 10, high)
    return decimal.Decimal(f"{tenths:.1f}") if pa.types.is_decimal(kind) else tenths


def bound(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value


def column(source: random.Random) -> tuple[Interval, pa.DataType, int]:
    high, kind = source.choice((4, 9, 30, 90)), source.choice(KINDS)
    if pa.types.is_date(kind):
        return Dates(FIRST, FIRST + timedelta(days=high)), kind, high
    inner = sorted({bound(number(source, high, kind)) for _ in range(source.randint(0, 5))} - {0, high})
    twice = [edge for edge in inner if source.random() < 0.3]
    edges = (0, *sorted([*inner, *twice]), high)
    return Interval(0, high, edges=source.choice((None, edges))), kind, high


def any_case(source: random.Random) -> tuple[Schema, dict[str, pa.DataType], dict[str, list[Any]]]:
    """A schema, types, and a table whose rows know nothing of what is ruled out."""
    columns: dict[str, Any] = {"job": Categories(["none", "clerk", "chef"]), "sex": Categories(["f", "m"])}
    kinds = {"job": pa.string(), "sex": pa.string()}
    highs = {}
    for name in ("age", "since"):
        columns[name], kinds[name], highs[name] = column(source)

    def values(name: str) -> list[Any]:
        if name in highs:
            return sorted(bound(number(source, highs[name], kinds[name])) for _ in range(2))
        listed = columns[name].values
        return source.sample(listed, source.randint(1, len(listed) - 1))

    never = []
    for _ in range(source.randint(1, 3)):
        names = {source.choice(("age", "since")), *source.sample(sorted(columns), 2)}
        never.append({name: values(name) for name in sorted(names)[:3]})
    never = [entry for entry in never if len(entry) > 1]
    rows = 600
    table = {name: [source.choice(columns[name].values) for _ in range(rows)] for name in ("job", "sex")}
    table |= {name: [number(source, high, kinds[name]) for _ in range(rows)] for name, high in highs.items()}
    table["age"][::50] = [None] * len(table["age"][::50])
    return Schema(columns, impossible=never), kinds, table


def ruled_out(schema: Schema, made: dict[str, list[Any]]) -> int:
    """Rows with a combination of the schema, read as a person would read it."""

    def has(name: str, value: Any, listed: Any) -> bool:
        if isinstance(schema.columns[name], Categories):
            return value in listed
        if value is None:
            return False
        held = (value - date(1970, 1, 1)).days if isinstance(value, date) else float(value)
        return bool(listed[0] <= held <= listed[1])

    rows = [dict(zip(made, row, strict=True)) for row in zip(*made.values(), strict=True)]
    return sum(
        any(all(has(name, row[name], listed) for name, listed in entry.items()) for entry in schema.impossible)
        for row in rows
    )


def impossible_rows(seed: int) -> int | None:
    """How many of the invented rows cannot be; None where nothing could be."""
    source = random.Random(seed)
    schema, kinds, cells = any_case(source)
    table = pa.table({name: pa.array(cells[name]).cast(kinds[name], safe=False) for name in schema.columns})
    wanted = SyntheticRelease(
        schema,
        source.choice((0.5, 4.0)),
        1e-6,
        label=source.choice((None, "job", "age")),
        plan=source.choice(("pairs", "tree")),
        buy_edges=source.random() < 0.7,
        absent=["age"],
        random_state=seed,
    )
    try:
        wanted.check(kinds)
    except SchemaError:
        return None  # nothing at all is possible
    made = wanted.release(table).table
    assert made.num_rows == 600
    assert made.schema.types == table.schema.types
    return ruled_out(schema, made.to_pydict())


@pytest.mark.parametrize("start", range(0, 400, 16))
@pytest.mark.by_day(1)
def test_what_is_ruled_out_never_comes_together(start):
    assert {impossible_rows(seed) for seed in range(start, start + 16)} <= {0, None}


# ── the law finds what it is for ─────────────────────────────────────────────────────────────────────────────────────


def worst(seeds: int) -> int:
    return max(impossible_rows(seed) or 0 for seed in range(seeds))


def test_the_law_finds_bins_that_are_ruled_out_in_part(monkeypatch):
    """As it was: a bin that lies half within the range was filled as any other."""
    monkeypatch.setattr(release, "kept_possible", lambda made, codes, *rest: (made, codes))
    assert worst(6) > 10


def test_what_lies_in_a_range_has_bins_of_its_own_where_nobody_cuts():
    """Else a bin is shared by those who may and those who may not, and all of it goes to those who may."""
    schema = Schema(
        {"age": Interval(0, 90), "job": Categories(["none", "clerk"])},
        impossible=[{"age": [0, 14], "job": ["clerk"]}],
    )
    generator = np.random.default_rng(0)
    age = generator.integers(0, 91, 8000)
    job = np.where(age <= 14, "none", generator.choice(["none", "clerk"], 8000, p=[0.1, 0.9]))
    for kind in (pa.int64(), pa.float64()):
        table = pa.table({"age": pa.array(age).cast(kind), "job": job})
        made = SyntheticRelease(schema, 4.0, 1e-6, label="job", random_state=3).release(table).table.to_pandas()
        young = made["age"] <= 14
        assert abs(young.mean() - (age <= 14).mean()) < 0.02
        assert (made.loc[young, "job"] == "none").all()


def test_two_ranges_rule_out_a_bin_that_neither_rules_out_alone():
    age = Interval(0, 90, edges=(0, 20, 90))
    schema = Schema(
        {"age": age, "job": Categories(["none", "clerk"])},
        impossible=[{"age": [0, 9], "job": ["clerk"]}, {"age": [10, 19], "job": ["clerk"]}],
    )
    ranges = tuple(entry["age"] for entry in schema.impossible)
    levels = [Levels("age", age, age.edges, kind=pa.int8(), ranges=ranges), Levels("job", schema.columns["job"])]
    assert zeros.impossible_cells(schema, levels)[0, 1].tolist() == [[False, True], [False, False]]
    assert set(bought.fine_levels(levels[0]).edges) >= {10, 20}
