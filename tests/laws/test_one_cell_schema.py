"""One cell of a table under a public schema decides nothing but the centre of its record's noise.

A random schema, a random table, and one record's cells replaced by whatever the format can hold: a release with the
same seed has the same columns, types and rows, publishes all other records unchanged and moves the record's numbers by
no more than their intervals are wide; a file reads the same; an encoding stays in its box and its ball.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from laws.test_one_cell import NUMBERS, OBJECTS, TEXTS, WORDS, _unchecked
from sfumato.core import ApproxDP, Categories, Interval, Schema
from sfumato.core import domain as domain_module
from sfumato.core.domain import Domain
from sfumato.core.tables import as_arrow
from sfumato.errors import SfumatoError, UndeclaredCellWarning
from sfumato.learn.encoder import SchemaEncoder
from sfumato.ledger.ledger import Ledger
from sfumato.release import GaussianRelease, LaplaceRelease
from sfumato.release.table import PreparedTable
from sfumato.run.files import TableFile
from sfumato.run.tables import release_file

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.UndeclaredCellWarning")

FORMATS = ("csv", "parquet", "arrow", "python", "pandas", "objects")
FILES = ("csv", "parquet")
KEYS = {"a": "number", "b": "number", "c": "word", "d": "whole"}


def any_schema(source: random.Random, norm: bool = False) -> Schema:
    null = source.choice((None, 0.5))
    whole = source.choice(({}, {"unknown": 1}, {"null": 2, "unknown": 0}))
    word = source.choice(({}, {"unknown": "y"}, {"null": "x"}, {"null": "y", "unknown": "x"}))
    columns: dict[str, Domain] = {
        "a": Interval(*source.choice(((0, 10), (-1000, 3.5))), null=null),
        "b": Interval(0, 1),
        "c": Categories(["x", "y"], **word),
        "d": Categories([0, 1, 2], **whole),
    }
    return Schema(columns, norm=2.0 if norm else None)


def any_record(source: random.Random) -> list[Any]:
    return [source.uniform(-5, 15), source.uniform(-1, 2), source.choice("xyz"), source.randrange(4)]


def hostile(source: random.Random, kind: str) -> list[Any]:
    if kind == "csv":
        return [source.choice(TEXTS) for _ in KEYS]
    if kind in ("parquet", "arrow"):
        return [source.choice(NUMBERS), source.choice(NUMBERS), source.choice(WORDS), source.choice((None, 7, 2**62))]
    return [source.choice(OBJECTS) for _ in KEYS]


def made(kind: str, rows: list[list[Any]], folder: Path) -> Any:
    if kind == "csv":
        lines = [b",".join(cell if isinstance(cell, bytes) else str(cell).encode() for cell in row) for row in rows]
        (folder / "t.csv").write_bytes(b"a,b,c,d\n" + b"\n".join(lines) + b"\n")
        return folder / "t.csv"
    columns = dict(zip(KEYS, ([row[place] for row in rows] for place in range(len(KEYS))), strict=True))
    if kind == "python":
        return columns
    if kind == "pandas":
        return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    if kind == "objects":
        return {name: _object_array(cells) for name, cells in columns.items()}
    words = [cell.encode() if isinstance(cell, str) else cell for cell in columns["c"]]
    table = pa.table(
        {
            "a": pa.array(columns["a"], pa.float64()),
            "b": pa.array(columns["b"], pa.float32()),
            "c": _unchecked(words),
            "d": pa.array(columns["d"], pa.int64()),
        }
    )
    if kind == "arrow":
        return table
    parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def _object_array(cells: list[Any]) -> np.ndarray:
    array = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        array[place] = cell
    return array


def published(prepared: PreparedTable, schema: Schema, table: Any) -> pa.Table:
    """What a seeded release shows of a table in memory or of a file."""
    try:
        if isinstance(table, Path):
            (batch,) = TableFile.open(table).batches(schema, list(KEYS), 1000)
            return prepared.apply(batch)
        return prepared.apply(as_arrow(table, schema))
    except SfumatoError as error:
        raise AssertionError("a cell made the release fail") from error


def check_releases(seed: int, cases: int, folder: Path, only: str | None = None) -> int:
    source = random.Random(seed)
    schema, kind = any_schema(source), only or FORMATS[seed % len(FORMATS)]
    kinds = (
        LaplaceRelease(schema, epsilon=4.0, random_state=1),
        GaussianRelease(schema, epsilon=4, delta=1e-6, random_state=1),
    )
    releaser = source.choice(kinds).prepare()
    rows = [any_record(source) for _ in range(source.randint(1, 6))]
    before = published(releaser, schema, made(kind, rows, folder))
    for _ in range(cases):
        place = source.randrange(len(rows))
        after = published(
            releaser, schema, made(kind, [*rows[:place], hostile(source, kind), *rows[place + 1 :]], folder)
        )
        check_release(schema, before, after, place)
    return cases


def check_release(schema: Schema, before: pa.Table, after: pa.Table, place: int) -> None:
    assert before.schema == after.schema
    assert before.num_rows == after.num_rows
    for name in before.column_names:
        one, two = before[name].to_pylist(), after[name].to_pylist()
        assert [*one[:place], *one[place + 1 :]] == [*two[:place], *two[place + 1 :]], name
        domain = schema.columns.get(name)
        if isinstance(domain, Interval):
            # Both are rounded to the grid of the noise, which the charge counts in.
            assert abs(one[place] - two[place]) <= domain.width * (1 + 1e-5), name
        elif isinstance(domain, Categories):
            assert two[place] in domain.values, name


def check_encodings(seed: int, cases: int, folder: Path) -> int:
    source = random.Random(seed)
    schema, kind = any_schema(source, norm=True), ("arrow", "python", "pandas", "objects")[seed % 4]
    rows = [any_record(source) for _ in range(source.randint(1, 6))]
    encode = (schema.encode, SchemaEncoder(schema).fit_transform)[seed % 2]
    before = encode(made(kind, rows, folder))
    for _ in range(cases):
        place = source.randrange(len(rows))
        try:
            after = encode(made(kind, [*rows[:place], hostile(source, kind), *rows[place + 1 :]], folder))
        except SfumatoError as error:
            raise AssertionError("a cell made the encoding fail") from error
        assert np.array_equal(np.delete(before, place, axis=0), np.delete(after, place, axis=0))
        assert np.isfinite(after).all()
        assert (np.linalg.norm(after, axis=1) <= 2.0 * (1 + 1e-12)).all()
    return cases


def test_one_cell_of_a_release_moves_its_own_record_alone(tmp_path):
    assert sum(check_releases(seed, 30, tmp_path) for seed in range(12)) == 360


def test_one_cell_of_an_encoding_moves_its_own_row_alone(tmp_path):
    assert sum(check_encodings(seed, 25, tmp_path) for seed in range(16)) == 400


@pytest.mark.slow
def test_many_cells_move_their_own_records_alone(tmp_path):
    assert sum(check_releases(seed, 50, tmp_path) for seed in range(1000, 1300)) == 15_000
    assert sum(check_encodings(seed, 100, tmp_path) for seed in range(1000, 1100)) == 10_000


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.by_day(1)
def test_a_released_folder_looks_the_same_whatever_a_cell_holds(kind, tmp_path):
    """Same files, same text, same charge; the curator alone is told, and only after the release is there."""
    source = random.Random(3)
    schema = Schema({"a": Interval(0, 10), "b": Interval(0, 1), "c": Categories(["x", "y"]), "d": Categories([0, 1])})
    prepared = GaussianRelease(schema, epsilon=4.0, delta=1e-6).prepare()
    rows, found = [[1.0, 0.5, "x", 1]] * 5, []
    for number, changed in enumerate((rows[0], hostile(source, kind), hostile(source, kind))):
        folder = tmp_path / str(number)
        folder.mkdir()
        ledger = Ledger(folder / "ledger.db")
        ledger.grant("people", ApproxDP(9.0, 1e-5))
        release_file(made(kind, [*rows, changed], folder), prepared, folder / "out", ledger, "people")
        readme = (folder / "out" / "README.txt").read_text(encoding="utf-8")
        assert "a: none was declared to be missing; such a cell counts as 5, the middle" in readme
        files = sorted(path.name for path in (folder / "out").iterdir())
        found.append((files, readme, [record.action for record in ledger.history("people")]))
    assert found[0] == found[1] == found[2]


# ── the law finds what it is meant to find ───────────────────────────────────────────────────────────────────────────


def found_by(only: str, folder: Path) -> bool:
    """Whether the law fails. Any other exception is not caught: it would be a fault of the test."""
    for seed in range(12):
        try:
            check_releases(seed, 8, folder, only)
        except AssertionError:
            return True
    return False


@pytest.mark.slow
def test_the_law_finds_a_refusal_because_of_a_cell(monkeypatch, tmp_path):
    def refuse(name: str, *_: str) -> None:
        raise SfumatoError(name)

    assert not found_by("arrow", tmp_path)
    monkeypatch.setattr(domain_module, "tell_missing", refuse)
    assert found_by("arrow", tmp_path)


def test_the_law_finds_types_that_follow_the_cells(monkeypatch, tmp_path):
    """A column of Python objects that is refused or read as one type, whatever its cells make of it."""
    monkeypatch.setattr(domain_module, "untyped_cells", lambda *_: None)
    assert found_by("python", tmp_path)


def test_the_law_finds_numbers_that_are_not_clipped(monkeypatch, tmp_path):
    def unclipped(self: Interval, column: Any, name: str) -> np.ndarray:
        values = np.nan_to_num(self.read(column, name).cast(pa.float64()).to_numpy(), nan=self.middle)
        return np.clip(values, -1e6, 1e6)  # far outside of every interval, and no overflow

    monkeypatch.setattr(Interval, "place", unclipped)
    assert found_by("parquet", tmp_path)


def test_the_law_finds_a_column_that_is_filled_from_the_data(monkeypatch, tmp_path):
    """A missing number replaced by the mean of the others: everybody's cells then move one record, and hers theirs."""
    place = Interval.place

    def filled(self: Interval, column: Any, name: str) -> np.ndarray:
        placed = place(self, column, name)
        return placed - placed.mean() / 2

    monkeypatch.setattr(Interval, "place", filled)
    assert found_by("csv", tmp_path)


def test_the_curator_is_told(tmp_path):
    schema = Schema({"a": Interval(0, 10)})
    with pytest.warns(UndeclaredCellWarning, match="'a' has a missing cell"):
        LaplaceRelease(schema, epsilon=1.0).release({"a": [1.0, "no number"]})
