"""No cell decides of which type invented rows are, nor how many acts they cost, whoever chose the type of the column.

pandas takes a column's type from the cells it meets: one absent cell makes decimals of whole numbers (in categories of
its own too), one present cell makes text, dates or truth values of a column that has no type else, one that is longer
makes wider decimals; and so it is in the Arrow tables and Parquet files that it hands over. One cell of one column is
replaced; the noise of the first table is given to the second one, so that both walk the same way, and no act moves by
more than its event says: what others' cells are read as, and which rows of other people count, is as it was.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from laws.test_synthetic import History
from sfumato import Categories, Dates, Interval, Schema, Times
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic import given
from sfumato.run.files import TableFile
from sfumato.run.partition import PartitionedTable
from sfumato.run.synthesize import _Folder

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.UndeclaredCellWarning")

Frame = pd.DataFrame
#: What cells of a column are, what its neighbour may have in the place of one of them, and how else pandas may hold it.
COLUMNS: Mapping[str, tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]] = {
    "few": (Interval(0, 10), (0, 1, 2, 10), (None, 1.5, Decimal("0.25")), ("category",)),
    "many": (Interval(0, 40), (0, 7, 39), (None, 7.25), ("category",)),
    "dose": (Categories([0, 1, 2]), (0, 1, 2), (None, 1.5), ("category",)),
    "price": (
        Interval(0, 99, edges=(0, 0.3, 0.3, 1.7, 1.7, 99)),
        (Decimal("0.3"), Decimal("1.7"), Decimal("2.5")),
        (None, Decimal("12.25"), Decimal("12.125")),
        (),
    ),
    "sure": (Categories([False, True]), (False, True), (None,), ("category",)),
    "share": (Interval(0, 1), (False, True), (None,), ()),
    "word": (Categories(["a", "b"]), ("a", "b"), (None,), ("category",)),
    "day": (Dates("2020-01-01", "2020-12-31"), ("2020-03-01", "2020-04-01"), (None, "soon", date(2020, 5, 1)), ()),
    "born": (Dates("2020-01-01", "2020-12-31"), (date(2020, 3, 1), date(2020, 4, 1)), (None,), ()),
    "hour": (Times(), (time(8, 30), time(9)), (None, "10:30"), ()),
}


def neighbours(source: random.Random) -> tuple[Schema, Frame, Frame]:
    """Two frames that differ in one cell, as pandas makes them of their cells."""
    name = source.choice(sorted(COLUMNS))
    domain, usual, other, ways = COLUMNS[name]
    rows = 12
    # All absent but for one is the case in which nothing but that one cell says what a column is.
    cells = [None] * rows if source.random() < 0.4 else [source.choice(usual) for _ in range(rows)]
    changed = [source.choice(usual if cells[0] is None else other), *cells[1:]]
    way = source.choice((None, *ways))
    whose = source.random() < 0.4

    def frame(held: list[Any]) -> Frame:
        made = pd.DataFrame({name: held, "ill": ["no", "yes"] * (rows // 2)})
        if whose:
            made["who"] = [number // 3 for number in range(rows)]
        return made.astype({name: way}) if way else made

    schema = Schema({name: domain, "ill": Categories(["no", "yes"])})
    return schema, frame(cells), frame(changed)


def by_memory(schema: Schema, frames: tuple[Any, Any]) -> bool:
    """Whether the same acts are drawn of what moved by no more than they say, and rows of the same types come out."""
    people = {"people": "who"} if "who" in _names(frames[0]) else {}
    column = next(iter(schema.columns))
    wanted = SyntheticRelease(schema, 2.0, 1e-6, absent=[column], random_state=1, **people)
    with pytest.MonkeyPatch.context() as patch:
        history = History(patch)
        first = wanted.release(frames[0])
        before = history.again()
        try:
            second = wanted.release(frames[1])
        except IndexError:  # other acts than those that are given again
            return False
        drawn = [[event for _, event in acts] for acts in (before, history.given)]
    near = drawn[0] == drawn[1] and all(
        np.linalg.norm(one - other) <= event.sensitivity * (1 + 1e-9)
        for (one, event), (other, _) in zip(before, history.given, strict=True)
    )
    return bool(near) and _types(first.table) == _types(second.table)


def _names(table: Any) -> list[str]:
    return list(table.schema.names if isinstance(table, pa.Table) else table.columns)


def _types(table: Any) -> list[str]:
    return [str(kind) for kind in (table.schema.types if isinstance(table, pa.Table) else table.dtypes)]


def in_pandas(schema: Schema, frames: tuple[Frame, Frame], folder: Path) -> bool:
    return by_memory(schema, frames)


def in_arrow(schema: Schema, frames: tuple[Frame, Frame], folder: Path) -> bool:
    return by_memory(schema, tuple(pa.Table.from_pandas(frame) for frame in frames))  # type: ignore[arg-type]


def in_a_file(schema: Schema, frames: tuple[Frame, Frame], folder: Path) -> bool:
    found = []
    for frame in frames:
        parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "t.parquet")
        found.append(TableFile.open(folder / "t.parquet").types(schema))
    return found[0] == found[1]


def in_a_folder(schema: Schema, frames: tuple[Frame, Frame], folder: Path) -> bool:
    found = []
    for frame in frames:
        parquet.write_table(
            pa.Table.from_pandas(frame[list(schema.columns)], preserve_index=False), folder / "t.parquet"
        )
        found.append(_Folder(str(folder), PartitionedTable.open(folder), schema, "local", lambda rows: None).kinds())
    return found[0] == found[1]


WAYS: tuple[Callable[[Schema, tuple[Frame, Frame], Path], bool], ...] = (in_pandas, in_arrow, in_a_file, in_a_folder)


def holds(seed: int, folder: Path) -> bool | None:
    """None where pandas itself hands such cells over to nobody."""
    source = random.Random(seed)
    schema, *frames = neighbours(source)
    way = source.choice(WAYS)
    try:
        for frame in frames if way is not in_pandas else ():
            pa.Table.from_pandas(frame)
    except (pa.ArrowException, TypeError, NotImplementedError):
        return None
    return way(schema, (frames[0], frames[1]), folder)


@pytest.mark.parametrize("start", range(0, 1200, 40))
@pytest.mark.by_day(3)
def test_no_cell_decides_a_type(start, tmp_path):
    found = [holds(seed, tmp_path) for seed in range(start, start + 40)]
    assert False not in found
    assert found.count(True) > 20


def test_the_law_finds_a_type_that_is_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(given, "_is_stated", lambda given, name: True)
    assert False in [holds(seed, tmp_path) for seed in range(60)]
