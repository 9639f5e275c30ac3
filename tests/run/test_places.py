"""A place is one place however it is written, and a folder is known by its files and by its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.errors import OverspendError
from sfumato.ledger.ledger import Ledger
from sfumato.network.stores.addresses import place_of
from sfumato.run.accounts import files_sources, table_sources
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

STUDY = """source(kept, '{source}'). column(kept, id, person(P)). rows_per_person(kept, 1).
column(kept, age, age(P)). random(age(P)) :- person(P). range(age(P), 0, 110). missing(age(P), 50).
dataset({name}, domain(P, person(P))). privacy_requirement(openness(public), {name}, dp(0.5)).
sum(total, age(P), person(P)). publish(total, total, openness(public)).
"""


def respelled(path: str, generator: np.random.Generator) -> str:
    """The same path with detours that change nothing."""
    detours = ("", "./", "/", "nowhere/../", ".//./")
    parts = path.strip("/").split("/")
    return "/" + "/".join(f"{generator.choice(detours)}{part}" for part in parts)


@pytest.mark.parametrize("seed", range(20))
def test_a_place_has_one_name(seed, tmp_path):
    generator = np.random.default_rng(seed)
    (tmp_path / "nowhere").mkdir()
    path = str(tmp_path / "north" / "stays.parquet")
    spelled = respelled(path, generator).replace("nowhere/../", "")  # a detour by what is no folder leads elsewhere
    assert place_of(f"{generator.choice(['', 'file://', 'local://'])}{spelled}") == place_of(path)
    assert place_of(f"s3://bucket{respelled('/north/stays.parquet', generator)}") == "s3://bucket/north/stays.parquet"
    assert place_of(f"s3://bucket{respelled('/south/stays.parquet', generator)}") != "s3://bucket/north/stays.parquet"


def people(rows: int, first: int) -> pa.Table:
    return pa.table({"id": np.arange(rows) + first, "age": np.arange(rows) % 90})


@pytest.mark.parametrize("spelled", ["fsspec:./kept.parquet", "fsspec:north/../kept.parquet", "kept.parquet"])
def test_another_spelling_of_a_far_place_finds_its_account_though_rows_were_added(spelled, tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_FSSPEC", f"file://{tmp_path}/far")
    (tmp_path / "far" / "north").mkdir(parents=True)
    parquet.write_table(people(50, 700), tmp_path / "far" / "kept.parquet")
    ledger = Ledger(tmp_path / "ledger.db")
    run_plan(make_plan(STUDY.format(source="fsspec:kept.parquet", name="people")), tmp_path, ledger, grant=True)
    parquet.write_table(people(51, 700), tmp_path / "far" / "kept.parquet")
    with pytest.raises(OverspendError):
        run_plan(make_plan(STUDY.format(source=spelled, name="others")), tmp_path / "far", ledger, grant=True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.by_day(1)
def test_a_folder_is_known_by_its_rows_and_each_file_by_its_bytes(seed, tmp_path):
    """As the table of another number of files, as one file, and by a single part of it."""
    generator = np.random.default_rng(seed)
    table, rows = people(200, 700), generator.permutation(200)
    found = []
    for number, name in ((int(generator.integers(65, 80)), "many"), (int(generator.integers(1, 4)), "few")):
        (tmp_path / name).mkdir()
        cuts = np.array_split(rows, number)
        for place, cut in enumerate(cuts):
            parquet.write_table(table.take(cut), tmp_path / name / f"{place:03}.parquet")
        files = sorted(str(path) for path in (tmp_path / name).iterdir())
        found.append((files, set(files_sources(f"file://{tmp_path / name}", files))))
    parquet.write_table(table, tmp_path / "one.parquet")
    whole = set(table_sources(tmp_path / "one.parquet"))
    (many, of_many), (_, of_few) = found
    assert of_many & of_few
    assert of_many & whole
    part = table_sources(many[int(generator.integers(len(many)))])
    assert of_many & set(part)
    parquet.write_table(people(200, 9000), tmp_path / "other.parquet")
    assert not of_many & set(table_sources(tmp_path / "other.parquet"))


def test_marks_of_many_files_are_written_once(tmp_path):
    sources = [f"bytes\0{number}\0" for number in range(70)]
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("people", 1.0, sources=sources)
    size = (tmp_path / "ledger.db").stat().st_size
    for _ in range(5):
        ledger.release(ledger.reserve("people", 0.1, sources=sources))
    assert (tmp_path / "ledger.db").stat().st_size - size < 5 * 70 * 64
    assert ledger.owners(sources[-1:]) == [("people", "record")]
