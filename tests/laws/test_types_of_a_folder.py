"""One cell that gives a file moments in other units, or decimals with more digits, makes no other table of it.

pandas keeps moments in seconds where there is none, and in the units that the finest cell needs; Arrow gives Python's
decimals the digits of the longest; and words have two types, by the version of the program that wrote the file.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato import Dates
from sfumato.core import Categories, Interval, Schema
from sfumato.errors import DataError, SchemaError
from sfumato.lang import load
from sfumato.network import Network, plain
from sfumato.network.stores.far_files import FarFiles
from sfumato.run.partition import PartitionedTable, PartLayout

STUDY = """
source(t, 't/'). column(t, id, person(P)). missing(t, never). rows_per_person(t, 2).
column(t, d, d(P)). column(t, v, v(P)). column(t, g, g(P)).
random(d(P)) :- person(P). random(v(P)) :- person(P). random(g(P)) :- person(P).
range(d(P), date(1990, 1, 1), date(2030, 1, 1)). range(v(P), 0, 10). range(g(P), [a, b | other]).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
sum(s, v(P), person(P)). mean(m, d(P), person(P)). histogram(h, g(P), person(P)).
publish(s, s, openness(public)). publish(m, m, openness(public)). publish(h, h, openness(public)).
"""
SCHEMA = Schema(
    {
        "d": Dates("1990-01-01", "2030-01-01"),
        "v": Interval(0, 10),
        "g": Categories(["a", "b", "other"], unknown="other"),
    }
)
MOMENTS = ["2020-01-01", "2019-12-31 23:59:59.5", "2000-02-29 12:00"]
INSTEAD: dict[str, list[Any]] = {
    "d": [None, pd.Timestamp("2020-01-01 00:00:00.123456789"), pd.Timestamp("1990-01-01").as_unit("s")],
    "v": [None, Decimal("1.5"), Decimal("1." + "1" * 25), Decimal("1e20"), Decimal("1e40")],
    "g": [None, "object"],
}
WORDS = [
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
]


@cache
def network() -> Network:
    return Network.from_spec(load(STUDY))


def table_of(rows: list[dict[str, Any]], words: pa.DataType) -> pa.Table:
    """As pandas and Arrow type it, by its cells."""
    cells = {name: [row[name] for row in rows] for name in ("id", "d", "v", "g")}
    units = [cell.unit for cell in cells["d"] if cell is not None] or ["s"]
    moments = pd.Series(cells["d"], dtype=f"datetime64[{max(units, key=['s', 'ms', 'us', 'ns'].index)}]")
    if pa.types.is_dictionary(words):
        listed = pa.array(cells["g"], words.value_type).dictionary_encode().cast(words)
    else:
        listed = pa.array(cells["g"], words)
    return pa.table({"id": cells["id"], "d": pa.array(moments, from_pandas=True), "v": cells["v"], "g": listed})


def made(source: random.Random) -> tuple[list[pa.Table], list[pa.Table], str]:
    """Files of a table, the same with one cell changed, and whose cell that is."""
    words = [source.choice(WORDS) for _ in range(source.randint(1, 4))]
    files = [
        [
            {
                "id": f"p{source.randrange(6)}",
                "d": pd.Timestamp(source.choice(MOMENTS)).as_unit("us"),
                "v": Decimal(source.randint(100, 999)) / 100,
                "g": source.choice(["a", "b"]),
            }
            for _ in range(source.randint(1, 5))
        ]
        for _ in words
    ]
    place, name = source.randrange(len(files)), source.choice(sorted(INSTEAD))
    others = [[dict(row) for row in rows] for rows in files]
    changed = source.choice(others[place])
    changed[name] = source.choice(INSTEAD[name])
    for rows in (files[place], others[place]):
        rows[others[place].index(changed)]["id"] = "z"
    return *([table_of(*one) for one in zip(all_, words, strict=True)] for all_ in (files, others)), "z"


def by_study(folder: Path) -> Counter:
    return _counted(network().evaluate({"t": folder}).rows["t"])


def from_far(folder: Path) -> Counter:
    fsspec = pytest.importorskip("fsspec")
    place, system = f"folder{uuid.uuid4().hex}", fsspec.filesystem("memory")
    for path in sorted(folder.iterdir()):
        system.pipe_file(f"/{place}/t/{path.name}", path.read_bytes())
    return _counted(network().evaluate({"t": FarFiles(f"memory://{place}").read(["t/"])["t/"]}).rows["t"])


def in_parts(folder: Path) -> Counter:
    found: Counter = Counter()
    for part in PartitionedTable.open(folder).parts(PartLayout(2, 2)):
        for _, block in part.blocks(["id", *SCHEMA.columns]):
            placed = [SCHEMA.columns[name].place(block[name], name).tolist() for name in SCHEMA.columns]
            found.update(zip(block["id"].to_pylist(), *placed, strict=True))
    return found


def _counted(table: pa.Table) -> Counter:
    return Counter((row["id"], row["d(P)"], row["v(P)"], row["g(P)"]) for row in table.to_pylist())


ROADS = {"study": by_study, "far": from_far, "parts": in_parts}


def strangers(seed: int, road: str, folder: Path) -> Any:
    """What differs but for the rows of the person whose cell is another: nothing, or the law is broken."""
    *tables, who = made(random.Random(seed))
    found = []
    for number, files in enumerate(tables):
        within = folder / f"{road} {seed} {number}"
        within.mkdir()
        for place, table in enumerate(files):
            parquet.write_table(table, within / f"{place}.parquet")
        try:
            found.append(ROADS[road](within))
        except (DataError, SchemaError) as error:
            return str(error)
    others = (Counter({row: count for row, count in one.items() if row[0] != who}) for one in found)
    one, two = others
    return (one - two) + (two - one)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.by_day(1)
def test_one_cell_makes_no_other_table(road: str, tmp_path: Path):
    assert {seed: found for seed in range(12) if (found := strangers(seed, road, tmp_path))} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("road", ROADS)
def test_one_cell_makes_no_other_table_of_many(road: str, tmp_path: Path):
    assert {seed: found for seed in range(12, 300) if (found := strangers(seed, road, tmp_path))} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_moments_taken_in_one_unit_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Thousandths of a second for millionths."""
    monkeypatch.setattr(plain, "_of_any_unit", lambda name, beside: plain._moment(name, pa.timestamp("us")))
    assert any(strangers(seed, "study", tmp_path) for seed in range(60))
