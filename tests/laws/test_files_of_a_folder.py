"""One cell that is absent in one file of a folder changes nothing but that cell, whatever type it gave the file.

pandas writes a column of whole numbers as decimals where a cell is absent, and one without any value without a type: in
Parquet by its type, in CSV by the text of everybody's numbers in that file. What a column is comes from the study.
"""

from __future__ import annotations

import math
import random
import uuid
import warnings
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.core import Categories, Interval, Schema
from sfumato.core.tables import told_by_cells
from sfumato.errors import DataError, SchemaError
from sfumato.lang import load
from sfumato.network import Network, agreed, plain
from sfumato.network.stores.far_files import FarFiles
from sfumato.release.synthetic.release import SyntheticRelease
from sfumato.run import partition, synthesize
from sfumato.run.engine.engine import LocalEngine
from sfumato.run.engine.study import evaluate_on
from sfumato.run.files import TableFile
from sfumato.run.partition import PartitionedTable, PartLayout

STUDY = """
source(t, 't/'). column(t, id, person(P)). missing(t, never). rows_per_person(t, 3).
column(t, v, v(P)). column(t, w, w(P)). column(t, c, c(P)). column(t, g, g(P)).
random(v(P)) :- person(P). random(w(P)) :- person(P). random(c(P)) :- person(P). random(g(P)) :- person(P).
range(v(P), 0, 10). range(w(P), 0, 1). range(c(P), [1, 2, 3]). range(g(P), [a, b]).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
sum(s, v(P), person(P)). sum(r, w(P), person(P)). histogram(h, c(P), person(P)). histogram(k, g(P), person(P)).
publish(s, s, openness(public)). publish(r, r, openness(public)).
publish(h, h, openness(public)). publish(k, k, openness(public)).
"""
SCHEMA = Schema({"v": Interval(0, 10), "w": Interval(0, 1), "c": Categories([1, 2, 3]), "g": Categories(["a", "b"])})


@cache
def network() -> Network:
    return Network.from_spec(load(STUDY))


def files_of(source: random.Random, narrow: bool = False) -> list[pd.DataFrame]:
    """People have rows in several files; identifiers may be larger than a decimal can hold, or than Arrow writes
    without an exponent. With `narrow` some decimals have 32 bits."""
    chance = np.random.default_rng(source.randrange(2**32))
    first = source.choice([0, 7, 10**10 - 2, 3 * 10**15, 2**53 + 1])
    bits = [source.choice([np.float32, np.float64]) if narrow else np.float64 for _ in range(4)]
    return [
        pd.DataFrame(
            {
                "id": first + chance.permutation(6)[:rows],
                "v": chance.integers(0, 11, rows),
                "w": chance.random(rows).astype(kind),
                "c": chance.integers(1, 4, rows),
                "g": chance.choice(["a", "b"], rows),
                "more": chance.integers(0, 99, rows),
            }
        )
        for rows, kind in zip((source.randint(1, 6) for _ in range(source.randint(2, 4))), bits, strict=False)
    ]


def by_study(read: Callable[[list[pd.DataFrame], Path], Any]) -> Callable[[list[pd.DataFrame], Path], list[Any]]:
    def found(files: list[pd.DataFrame], folder: Path) -> list[Any]:
        rows = network().evaluate({"t": read(files, folder)}).rows["t"].to_pylist()
        return [(row["id"], *(row[f"{name}(P)"] for name in "vwcg")) for row in rows]

    return found


def as_parquet(files: list[pd.DataFrame], folder: Path) -> Path:
    for place, frame in enumerate(files):
        frame.to_parquet(folder / f"{place}.parquet")
    return folder


def as_csv(files: list[pd.DataFrame], folder: Path) -> Path:
    for place, frame in enumerate(files):
        frame.to_csv(folder / f"{place}.csv", index=False)
    return folder


def far_away(files: list[pd.DataFrame], folder: Path) -> Any:
    fsspec = pytest.importorskip("fsspec")
    place, system = f"folder{uuid.uuid4().hex}", fsspec.filesystem("memory")
    for path in sorted(as_parquet(files, folder).iterdir()):
        system.pipe_file(f"/{place}/t/{path.name}", path.read_bytes())
    return FarFiles(f"memory://{place}").read(["t/"])["t/"]


def as_parts(files: list[pd.DataFrame], folder: Path) -> list[Any]:
    """As workers read them, in blocks that go over the ends of files."""
    columns = list(SCHEMA.columns)
    found = []
    for part in PartitionedTable.open(as_parquet(files, folder)).parts(PartLayout(2, 2)):
        for _, block in part.blocks(columns):
            found += zip(*(SCHEMA.columns[name].place(block[name], name).tolist() for name in columns), strict=True)
    names = [str(one) for frame in files for one in frame["id"]]
    return [(name, *row) for name, row in zip(names, found, strict=True)]


ROADS = {
    "parquet": by_study(as_parquet),
    "csv": by_study(as_csv),
    "far": by_study(far_away),
    "parts": as_parts,
}


def strangers(seed: int, road: str, folder: Path) -> Counter:
    """What differs but for the rows of the person whose cell is absent: nothing, or the law is broken."""
    source = random.Random(seed)
    files = files_of(source, narrow=road != "csv")  # pandas writes 0.1 of 32 bits, and all digits of it in 64
    place, name = source.randrange(len(files)), source.choice(["id", "id", "v", "w", "c", "g", "more"])
    row = source.randrange(len(files[place]))
    who = str(files[place]["id"][row])
    others = [frame.copy() for frame in files]
    cells = [None if at == row else cell for at, cell in enumerate(files[place][name])]
    others[place][name] = pd.Series(cells)  # which type it has, pandas decides
    if road == "parts" and name == "id":  # whose a row is is no part of it
        return Counter()
    found = []
    for number, one in enumerate((files, others)):
        (folder / f"{seed} {number}").mkdir()
        found.append(Counter(row for row in ROADS[road](one, folder / f"{seed} {number}") if row[0] != who))
    merged = files[place]["id"].max() > 2**53 and name == "id"  # in that file pandas has lost the digits
    return Counter() if merged else (found[0] - found[1]) + (found[1] - found[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.by_day(1)
def test_an_absent_cell_of_one_file_changes_that_cell_alone(road: str, tmp_path: Path):
    seeds = range(6)
    assert {seed: found for seed in seeds if (found := strangers(seed, road, tmp_path))} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("road", ROADS)
def test_an_absent_cell_of_one_file_changes_that_cell_alone_in_many_folders(road: str, tmp_path: Path):
    seeds = range(6, 300)
    assert {seed: found for seed in seeds if (found := strangers(seed, road, tmp_path))} == {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [pa.null(), pa.float64(), pa.int64(), pa.float32()], ids=str)
@pytest.mark.parametrize("engine", [None, 2])
def test_one_file_changes_nothing_in_the_others(kind: pa.DataType, engine: int | None, tmp_path: Path):
    """Its type alone made a tenth of everybody's numbers, which in 32 bits are a little more, and others of people."""
    study = load(
        "source(t, 't/'). column(t, id, person(P)). column(t, v, v(P)). rows_per_person(t, 1). missing(v(P), 0). "
        "random(v(P)) :- person(P). range(v(P), 0, 10). dataset(people, domain(P, person(P))). "
        "privacy_requirement(o(public), people, dp(1)). count(n, (person(P), v(P) > 0.1)). publish(n, n, o(public))."
    )
    others = {"id": range(10**10, 10**10 + 40), "v": pa.array([0.1] * 40, pa.float32())}
    parquet.write_table(pa.table(others), tmp_path / "0.parquet")
    parquet.write_table(
        pa.table({"id": pa.array([10.0**10 + 39]), "v": pa.array([None], kind)}), tmp_path / "1.parquet"
    )
    asked, tables = Network.from_spec(study), {"t": tmp_path}
    if engine is None:
        values = asked.evaluate(tables, sums_only=True)
    else:
        values = evaluate_on(LocalEngine(), asked, tables, engine, sums_only=True)
    # Whoever is in both files is one person, of whom one row counts.
    assert int(values.aggregates["n"].units[0][0]) in (39, 40)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", [None, 2])
@pytest.mark.parametrize("above", ["v=7", "g=b", "id=5", "c=1/w=0"])
def test_the_name_of_a_folder_above_is_nobodys_cell(above: str, engine: int | None, tmp_path: Path):
    """The engine took it for everybody's, until one cell that is no text had the files read in another way."""
    files = files_of(random.Random(above))
    found = []
    for where in ("plain", above):
        folder = tmp_path / where / "t"
        folder.mkdir(parents=True)
        as_parquet(files, folder)
        asked, tables = network(), {"t": folder}
        if engine is None:
            values = asked.evaluate(tables, sums_only=True)
        else:
            values = evaluate_on(LocalEngine(), asked, tables, engine, sums_only=True)
        found.append({name: [one.tolist() for one in sums.units] for name, sums in values.aggregates.items()})
    assert found[0] == found[1]


SEVERAL = """
source(t, 't/'). column(t, id, person(P)). missing(t, never). rows_per_person(t, 2).
column(t, v, v(P)). column(t, c, c(P)). random(v(P)) :- person(P). random(c(P)) :- person(P).
range(v(P), 0, 10). range(c(P), [1, 2 | 3]). dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
sum(s, v(P), person(P)). histogram(h, c(P), person(P)).
publish(s, s, openness(public)). publish(h, h, openness(public)).
"""


@pytest.mark.filterwarnings("ignore")
def test_what_is_no_number_is_absent_whatever_type_others_have(tmp_path: Path):
    """A person's NaN was hashed and counted as such until somebody else's cell made whole numbers of another file."""
    source, asked = random.Random(7), Network.from_spec(load(SEVERAL))
    people = [place for place in range(6) for _ in range(5)]
    cells = {name: source.choices([math.nan, None, 0.0, -0.0, 1.0, 2.0], k=len(people)) for name in "vc"}
    nulls = {name: [None if cell is None or math.isnan(cell) else cell for cell in cells[name]] for name in "vc"}
    found = []
    for number, (mine, kind) in enumerate([(cells, pa.float64()), (cells, pa.int64()), (nulls, pa.float64())]):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        typed = {name: pa.array(column, pa.float64()) for name, column in mine.items()}
        parquet.write_table(pa.table({"id": people, **typed}), folder / "0.parquet")
        stranger = {name: pa.array([1], kind) for name in "vc"}
        parquet.write_table(pa.table({"id": [99], **stranger}), folder / "1.parquet")
        rows = asked.evaluate({"t": folder}).rows["t"].to_pylist()
        found.append(Counter((row["id"], row["v(P)"], row["c(P)"]) for row in rows))
    assert found[0] == found[1] == found[2]


@pytest.mark.filterwarnings("ignore")
def test_one_more_word_and_a_longer_number_make_no_other_table(tmp_path: Path):
    """pandas stores places of listed words in 8 bits or 16, and Python's decimals with the digits of the longest."""
    files = [
        pd.DataFrame({"id": range(first, first + number), "g": words, "v": [Decimal(v)] * number})
        for first, number, words, v in ((0, 2, ["a", "b"], "1.50"), (50, 200, [f"a{n}" for n in range(200)], "10.25"))
    ]
    for frame in files:
        frame["g"] = frame["g"].astype("category")
    as_parquet(files, tmp_path)
    assert len({str(parquet.read_schema(path).types) for path in tmp_path.iterdir()}) == 2
    study = load(
        "source(t, 't/'). column(t, id, person(P)). column(t, v, v(P)). column(t, g, g(P)). rows_per_person(t, 1). "
        "missing(t, never). random(v(P)) :- person(P). random(g(P)) :- person(P). range(v(P), 0, 10). "
        "range(g(P), [a, b | other]). dataset(people, domain(P, person(P))). "
        "privacy_requirement(o(public), people, dp(1)). sum(s, v(P), person(P)). histogram(k, g(P), person(P)). "
        "publish(s, s, o(public)). publish(k, k, o(public))."
    )
    asked = Network.from_spec(study)
    for table in (tmp_path, far_away(files, tmp_path)):
        values = asked.evaluate({"t": table}, sums_only=True).aggregates
        assert values["k"].units[0].tolist() == [1, 1, 200]
        grid = values["s"].entries[0].grid
        assert values["s"].units[0][0] * Fraction(grid.step) + 202 * Fraction(grid.offset) == 2 * 1.5 + 200 * 10
    parts = PartitionedTable.open(tmp_path).parts(PartLayout(64, 2))
    found = [cell for part in parts for _, block in part.blocks(["v"]) for cell in block["v"].to_pylist()]
    assert found == [cell for frame in files for cell in frame["v"]]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([pa.array([2.0**24 + 2], pa.float32())], True),
        ([pa.array([2.0**24 - 2], pa.float32())], False),
        ([pa.array([1e17]), pa.array([10**17])], True),
        ([pa.array([1e10]), pa.array([10**17])], False),
        ([pa.array([10**17])], False),
        ([pa.array(["1e17", "2e+x"])], False),
    ],
    ids=["float32 beyond", "float32 within", "both beyond", "both within", "whole", "words"],
)
def test_identifiers_that_may_have_been_others_are_told(cells: list[pa.Array], told: bool, tmp_path: Path):
    """Of a folder of which one file holds them as decimals, and of decimals of 32 bits, nothing was told."""
    study = load(
        "source(t, 't/'). column(t, id, person(P)). column(t, v, v(P)). rows_per_person(t, 1). missing(t, never). "
        "random(v(P)) :- person(P). range(v(P), 0, 10). dataset(people, domain(P, person(P))). "
        "privacy_requirement(o(public), people, dp(1)). sum(s, v(P), person(P)). publish(s, s, o(public))."
    )
    for place, column in enumerate(cells):
        parquet.write_table(pa.table({"id": column, "v": [1] * len(column)}), tmp_path / f"{place}.parquet")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        Network.from_spec(study).evaluate({"t": tmp_path}, sums_only=True)
    assert any("too large to be told" in str(one.message) for one in heard) == told


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_numbers_read_as_decimals_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Identifiers beyond 2^53 of other files would be merged."""

    def rounded(schemas: list[pa.Schema]) -> Any:
        found = agreed.agreed(schemas)
        return found and agreed.Agreed(found.schema, frozenset(), found.differing)

    monkeypatch.setattr(plain, "agreed", rounded)
    broken = False
    for seed in range(12):
        try:
            broken = broken or bool(strangers(seed, "parquet", tmp_path))
        except (DataError, SchemaError):  # the engine meets a whole number that no decimal holds
            broken = True
    assert broken


def kinds_of(files: list[pd.DataFrame], folder: Path) -> list[Any]:
    """The types of what is made of a table: of Arrow's, of one file, of a folder."""
    folder.mkdir()
    declared = [frame[list(SCHEMA.columns)] for frame in files]
    as_parquet(declared, folder)
    release = SyntheticRelease(SCHEMA, 1.0, 1e-6, buy_edges=False, random_state=1)
    made = release.release(pa.Table.from_pandas(pd.concat(declared), preserve_index=False)).table.schema.types
    one = [TableFile.open(path).types(SCHEMA) for path in sorted(folder.iterdir())]
    return [made, one, synthesize._opened(folder, release, "local", lambda rows: None).kinds()]


@pytest.mark.filterwarnings("ignore")
def test_what_is_made_of_a_table_has_the_same_types_whatever_cell_is_absent(tmp_path: Path):
    """Invented ages were whole numbers, and decimals when one age was absent: the type told that cell."""
    for seed in range(6):
        source = random.Random(seed)
        files = files_of(source)
        place, name = source.randrange(len(files)), source.choice(["v", "w", "c"])
        others = [frame.copy() for frame in files]
        others[place][name] = pd.Series([None, *files[place][name][1:]])
        assert kinds_of(files, tmp_path / f"{seed} a") == kinds_of(others, tmp_path / f"{seed} b")


def test_types_that_somebody_stated_are_kept():
    frame = pd.DataFrame({"stated": pd.array([1, 2], dtype="Int64"), "met": [1, 2], "word": ["a", "b"]})
    assert told_by_cells(pa.Table.from_pandas(frame).schema) == {"met"}
    assert told_by_cells(pa.table({"met": [1, 2]}).schema) == frozenset()


def test_words_beside_numbers_are_another_table(tmp_path: Path):
    for place, cells in enumerate(([None], [1, 2], ["x"])):
        parquet.write_table(pa.table({"v": cells}), tmp_path / f"{place}.parquet")
    with pytest.raises(DataError, match=r"2\.parquet has other columns or types"):
        plain.plain_files(sorted(tmp_path.iterdir()))
    with pytest.raises(SchemaError, match=r"2\.parquet has 'v' as string"):
        partition.PartitionedTable.open(tmp_path)
