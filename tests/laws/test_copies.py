"""A copy opens no second account: the same rows in another format, order or place are the same data."""

from __future__ import annotations

import datetime
import sqlite3
import unicodedata

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sfumato.errors import LedgerError, OverspendError, UnknownDatasetError
from sfumato.ledger.ledger import Ledger
from sfumato.network.stores.store import located, read_stored
from sfumato.plan.make import make_plan
from sfumato.run.fingerprint import fingerprint, fingerprints
from sfumato.run.study import run_plan

WORDS = ["f", "Mäd chen", 'a "quoted" one', "x,y", "7 up", "007", "nothing", "2020-02-30", "İ", "Åse", "가"]
#: How programs write truth values: PostgreSQL, spreadsheets, R, Python, SQLite, people.
TRUTHS = [("f", "t"), ("FALSE", "TRUE"), ("F", "T"), ("False", "True"), ("0", "1"), ("n", "y"), ("No", "Yes")]
TRUTHS += [("no\t", " YES")]


def random_table(seed: int) -> pa.Table:
    """Identifiers, numbers, words, truth values, days, absent cells; no line breaks, which a CSV file cannot hold."""
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(1, 60))

    def some(values: list) -> list:
        return [None if generator.random() < 0.1 else value for value in values]

    days = [datetime.date(2000, 1, 1) + datetime.timedelta(days=int(d)) for d in generator.integers(0, 9000, rows)]
    columns = {
        "id": pa.array(generator.integers(-(2**40), 2**40, rows)),
        "age": pa.array(some(generator.integers(0, 110, rows).tolist()), pa.int64()),
        "weight": pa.array(some((generator.normal(size=rows) * 10.0 ** generator.integers(-9, 9)).tolist())),
        "short": pa.array(generator.normal(size=rows).astype(np.float32)),
        "word": pa.array(some(generator.choice(WORDS, rows).tolist()), pa.string()),
        "truth": pa.array(some((generator.random(rows) < 0.5).tolist()), pa.bool_()),
        "day": pa.array(some(days), pa.date32()),
        "clock": pa.array(some(generator.integers(0, 86_400_000, rows).tolist()), pa.time32("ms")),
    }
    kept = ["id", "age", *(name for name in list(columns)[2:] if generator.random() < 0.7)]
    return pa.table({name: columns[name] for name in kept})


def copies(table: pa.Table, folder, generator) -> dict[str, object]:
    """The same rows in every way a run can read them."""
    order, zone = generator.permutation(table.num_rows), generator.choice(["", "Z", ".000000", "+00:00"])
    turned = table.take(order).select(list(generator.permutation(table.column_names)))
    parquet.write_table(turned, folder / "other.parquet")
    csv.write_csv(table.take(order), folder / "again.csv")
    (folder / "parts").mkdir()
    cut = int(generator.integers(0, table.num_rows + 1))
    for name, part in (("a", turned.slice(0, cut)), ("b", turned.slice(cut))):
        parquet.write_table(part, folder / "parts" / f"{name}.parquet")
    with duckdb.connect(str(folder / "rows.duckdb")) as database:
        database.register("turned", turned)
        database.execute('CREATE TABLE "kept" AS SELECT * FROM turned')
    with sqlite3.connect(folder / "rows.sqlite") as database:
        cells = {name: turned[name].to_pylist() for name in turned.column_names}
        for name in {"day", "clock"} & set(cells):
            cells[name] = [None if one is None else str(one) for one in cells[name]]
        kinds = {"id": "INTEGER", "age": "INTEGER", "weight": "REAL", "short": "REAL", "truth": "INTEGER"}
        declared = ", ".join(f'"{name}" {kinds.get(name, "TEXT")}' for name in turned.column_names)
        database.execute(f"CREATE TABLE kept ({declared})")
        marks = ", ".join("?" * len(cells))
        database.executemany(f"INSERT INTO kept VALUES ({marks})", zip(*cells.values(), strict=True))
    database.close()
    numbered = turned.to_pandas()
    numbered.to_csv(
        folder / "numbered.csv", index_label="Unnamed: 0"
    )  # pandas numbers rows from 0, R from 1 and writes NA and whole moments
    if "day" in numbered:
        numbered["day"] = [None if day is None else f"{day}T00:00:00{zone}" for day in numbered["day"]]
    numbered.set_axis(range(1, len(numbered) + 1)).to_csv(folder / "of_r.csv", index_label="X", na_rep="NA")
    parquet.write_table(as_words(turned, TRUTHS[generator.integers(len(TRUTHS))]), folder / "words.parquet")
    csv.write_csv(as_words(table, TRUTHS[0]), folder / "copied.csv")
    return {
        "with words for truth values": folder / "words.parquet",
        "copied by PostgreSQL": folder / "copied.csv",
        "decomposed": decomposed(turned),
        "parquet": folder / "other.parquet",
        "csv": folder / "again.csv",
        "numbered": folder / "numbered.csv",
        "of R": folder / "of_r.csv",
        "parts": folder / "parts",
        "duckdb": stored(folder, "rows.duckdb"),
        "sqlite": stored(folder, "rows.sqlite"),
        "arrow": turned,
        "frame": turned.to_pandas(),
        "renamed": turned.rename_columns([f"c{place}" for place in range(turned.num_columns)]),
    }


def as_words(table: pa.Table, words: tuple[str, str]) -> pa.Table:
    """The same with words for truth values."""
    if "truth" not in table.column_names:
        return table
    cells = [None if one is None else words[one] for one in table["truth"].to_pylist()]
    return table.set_column(table.column_names.index("truth"), "truth", pa.array(cells, pa.string()))


def decomposed(table: pa.Table) -> pa.Table:
    """The same with its letters apart from their accents, as some file systems and programs write them."""
    if "word" not in table.column_names:
        return table
    cells = [None if one is None else unicodedata.normalize("NFD", one) for one in table["word"].to_pylist()]
    return table.set_column(table.column_names.index("word"), "word", pa.array(cells, pa.string()))


def stored(folder, file: str):
    """The rows of a database, read as a study reads them."""
    from sfumato.lang import load

    text = STUDY.replace("'kept.parquet'", f"'{file}', kept")
    (source,) = [one for one in load(text).sources if one.table == "kept"]
    return read_stored({"kept": located(source, folder)})["kept"]


STUDY = """source(kept, 'kept.parquet').
column(kept, id, person(P)). rows_per_person(kept, 1).
column(kept, age, age(P)). random(age(P)) :- person(P). range(age(P), 0, 110). missing(age(P), 50).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(0.5)).
sum(total, age(P), person(P)).
publish(total, total, openness(public)).
"""


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 120))])
@pytest.mark.by_day(1)
def test_the_same_rows_are_the_same_data_and_others_are_not(seed, tmp_path):
    table = random_table(seed)
    generator = np.random.default_rng(1000 + seed)
    known = fingerprint(table)
    found = {name: fingerprint(copy) for name, copy in copies(table, tmp_path, generator).items()}
    assert {name: one for name, one in found.items() if one != known} == {}
    changed = table.to_pandas()
    changed.loc[int(generator.integers(0, len(changed))), "id"] += 1
    assert fingerprint(changed) != known
    assert fingerprint(pa.concat_tables([table, table.slice(0, 1)])) != known


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))])
@pytest.mark.by_day(1)
def test_large_tables_are_known_by_their_columns(seed, tmp_path, monkeypatch):
    """The same law for what is looked at column by column, with the limit at no row; and what it must tell apart."""
    monkeypatch.setattr("sfumato.run.fingerprint._MANY", 0)
    table, generator = random_table(seed), np.random.default_rng(1000 + seed)
    known = fingerprint(table)
    found = {name: fingerprint(copy) for name, copy in copies(table, tmp_path, generator).items()}
    assert {name: one for name, one in found.items() if one != known} == {}
    assert fingerprint(pa.concat_tables([table, table.slice(0, 1)])) != known
    other = random_table(seed + 500).slice(0, table.num_rows)
    assert fingerprint(other) != known
    assert fingerprint(table.drop_columns(["age"])) != known or not any(table["age"].to_pylist())


def test_every_word_that_a_column_of_truth_values_reads_is_one_in_a_copy():
    """The words are those that a study reads as such, by whatever the engine takes for one."""
    letters = ["true", "false", "t", "f", "yes", "no", "y", "n", "on", "off", "1", "0", "tr", "wahr", "x"]
    words = [case(one) for one in letters for case in (str.lower, lambda one: f" {one.title()}\t")]
    known = {as_known(truth): str(truth).lower() for truth in (True, False)}
    both = [read_as_truths(words, absent) for absent in ("true", "false")]
    for word, *read in zip(words, *both, strict=True):
        assert known.get(as_known(word)) == (read[0] if read[0] == read[1] else None), word


def read_as_truths(words: list[str], absent: str) -> list[str]:
    """What a study whose ages are truth values reads in these cells; `absent` where one is none."""
    text = STUDY.replace("0, 110). missing(age(P), 50)", f"[false, true]). missing(age(P), {absent})")
    text = text.replace("sum(total, age(P), person(P))", "count(total, (person(P), age(P) = true))")
    table = pa.table({"id": [100 + place for place in range(len(words))], "age": words})  # in the order of their texts
    people = make_plan(text).network.evaluate({"kept": table}).individuals["people"]
    return [str(one) for one in people["age(P)"].to_pylist()]


def as_known(cell) -> str:
    """The fingerprint of a table with this cell, and others that keep it from being taken for a number of rows."""
    return fingerprint({"id": [5, 9, 9], "age": [cell, None, None]})


@pytest.mark.parametrize(
    ("many", "before"),
    [(0, "3 51d19f7ebe16de97f42b0dc250716652"), (1 << 17, "3 4c28fb2101f924e252b8a19e8159bb6a")],
    ids=["by columns", "by rows"],
)
def test_what_a_ledger_knows_by_the_words_of_an_older_version_stays_known(many, before, monkeypatch):
    """Yes and no were letters to it; a table is found by what it was then."""
    monkeypatch.setattr("sfumato.run.fingerprint._MANY", many)
    table = pa.table({"id": [5, 9, 12], "age": [40, 41, 42], "ill": ["yes", "no", "no"], "sex": ["f", "m", "f"]})
    now, then = fingerprints(table)
    truths = pa.array([True, False, False])
    assert now == fingerprint(table.set_column(table.column_names.index("ill"), "ill", truths))
    assert then == before
    assert len(fingerprints({"id": [5, 9, 12], "age": [40, 41, 42]})) == 1


def test_known_bytes_are_not_read_again_for_their_rows(tmp_path, monkeypatch):
    """A second run of one file looks at no row to find its account, and finds it."""
    parquet.write_table(random_table(3), tmp_path / "kept.parquet")
    ledger = Ledger(tmp_path / "ledger.db")
    run_plan(make_plan(STUDY), {"kept": tmp_path / "kept.parquet"}, ledger, grant=True)
    monkeypatch.setattr("sfumato.run.accounts.fingerprints", lambda table: pytest.fail("rows were read"))
    with pytest.raises(OverspendError):
        run_plan(make_plan(STUDY), {"kept": tmp_path / "kept.parquet"}, ledger, grant=True)


@pytest.mark.parametrize("seed", [100])
def test_no_copy_opens_a_second_account(seed, tmp_path):
    """One ledger, a spent budget, and the rows again under another name: every run is refused."""
    table = random_table(seed)
    path = tmp_path / "kept.parquet"
    parquet.write_table(table, path)
    ledger = Ledger(tmp_path / "ledger.db")
    run_plan(make_plan(STUDY), {"kept": path}, ledger, grant=True)
    other = STUDY.replace("people", "folk").replace("person(P)", "one(P)")
    for name, copy in copies(table, tmp_path, np.random.default_rng(seed)).items():
        study = other
        if name == "renamed":
            names = copy.column_names
            back = dict(zip([table.column_names[0], table.column_names[1]], _named(table, copy), strict=True))
            assert set(back.values()) <= set(names)
            for old, new in back.items():
                study = study.replace(f"column(kept, {old},", f"column(kept, {new},")
        with pytest.raises((OverspendError, LedgerError, UnknownDatasetError)):
            run_plan(make_plan(study), {"kept": copy}, ledger, grant=True)
        assert len(ledger.datasets()) == 1, name


def _named(table: pa.Table, renamed: pa.Table) -> list[str]:
    """What identifiers and ages are called in a copy with other names."""
    wanted = [sorted(map(str, table[name].to_pylist())) for name in ("id", "age")]
    return [
        next(name for name in renamed.column_names if sorted(map(str, renamed[name].to_pylist())) == cells)
        for cells in wanted
    ]


def test_one_changed_cell_is_another_table_and_needs_a_person(tmp_path):
    """What cannot be caught is at least not opened by itself."""
    table = pa.table({"id": list(range(30)), "age": [40.0] * 30})
    ledger = Ledger(tmp_path / "ledger.db")
    run_plan(make_plan(STUDY), {"kept": table}, ledger, grant=True)
    changed = pd.DataFrame({"id": range(30), "age": [40.0] * 29 + [41.0]})
    with pytest.raises(UnknownDatasetError, match="person's decision"):
        run_plan(make_plan(STUDY.replace("people", "folk")), {"kept": changed}, ledger)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("fraction", ["", ".25", ".123456"])
@pytest.mark.by_day(2)
def test_a_moment_is_one_however_it_is_written(zone, fraction, tmp_path):
    """A CSV file writes +01:00 where Parquet knows an instant, and another number of digits of a second."""
    moments = pd.to_datetime([f"2020-0{month}-11 10:30:0{month}{fraction}" for month in range(1, 8)]).tz_localize(zone)
    frame = pd.DataFrame({"id": range(7), "seen": moments})
    frame.to_csv(tmp_path / "t.csv", index=False)
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "t.parquet")
    assert fingerprint(tmp_path / "t.csv") == fingerprint(tmp_path / "t.parquet")
    later = frame.assign(seen=moments + pd.Timedelta(hours=1))
    assert fingerprint(pa.Table.from_pandas(later, preserve_index=False)) != fingerprint(tmp_path / "t.parquet")
