"""Capital letters and blanks make no difference where a list is folded: the same as folding the table in pandas first.

pandas shares no code with core/folding.py or network/folding.py, and tells the same of every road a cell can take.
"""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import Categories, Interval, Ledger, Schema, Study, load
from sfumato.core.folding import BLANKS, folded, letters_of
from sfumato.errors import SchemaError, StudyError, UndeclaredCellWarning
from sfumato.network.folding import sql_listed
from sfumato.release import SyntheticRelease

LISTS = [
    ["no", "yes"],
    ["No", "Yes", "don't know"],
    ["Straße", "Gasse", "ﬁsh"],
    ["ΟΔΟΣ", "İzmir", "Kelvin", "ŉ a"],
    ["north west", "north", "west", "north  east"],
]


BACKWARD: dict[str, list[str]] = {}
for code in range(0x20000):
    if chr(code).casefold() != chr(code):
        BACKWARD.setdefault(chr(code).casefold(), []).append(chr(code))


def dirty(word: str, generator: random.Random) -> str:
    """A word as people write it: other capitals, other letters that fold to the same, other blanks."""
    shapes = [str, str.upper, str.lower, str.title, str.swapcase, str.casefold]
    text = generator.choice(shapes)(word)
    text = "".join(generator.choice([letter, *BACKWARD.get(letter, ())]) for letter in text)
    gaps = ["", " ", "  ", "\t", "\u00a0", "\u3000 ", generator.choice(BLANKS)]
    inside = text.split(" ")
    text = "".join(part + (generator.choice(gaps) or " ") for part in inside[:-1]) + inside[-1]
    return generator.choice(gaps) + text + generator.choice(gaps)


def column(words: list[str], rows: int, seed: int) -> list[str | None]:
    generator = random.Random(seed)
    nothing = ["", " ", "other", words[0][:-1], words[-1] + "s", "ſ", "ss", None]
    return [
        generator.choice(nothing) if generator.random() < 0.1 else dirty(generator.choice(words), generator)
        for _ in range(rows)
    ]


def by_pandas(cells: list[str | None], words: list[str]) -> pd.Series:
    """The listed word of every cell, by pandas' own words; None where there is none."""

    def fold(series: pd.Series) -> pd.Series:
        return series.str.strip().str.replace(r"\s+", " ", regex=True).str.casefold()

    meant = dict(zip(fold(pd.Series(words)), words, strict=True))
    return fold(pd.Series(cells, dtype=object)).map(meant)


@pytest.mark.parametrize("words", LISTS, ids=lambda words: words[0])
@pytest.mark.parametrize("seed", range(4))
def test_sql_schema_and_pandas_fold_alike(words, seed):
    cells = column(words, 500, seed)
    expected = by_pandas(cells, words)
    assert expected.isna().sum() < 150  # the dirt is of the right kind
    assert sum(cell in words for cell in cells) < 350

    found = _asked(f"SELECT {sql_listed('cell', words)}::VARCHAR AS word FROM frame", cells)
    assert found.where(found.notna(), None).tolist() == expected.where(expected.notna(), None).tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndeclaredCellWarning)
        placed = Categories([*words, "?"], unknown="?", null="?", fold=True).place(cells, "cell")
    assert [[*words, "?"][place] for place in placed] == expected.fillna("?").tolist()


def test_no_letter_of_any_script_is_left_out():
    every = {letter for letter in map(chr, range(0x110000)) if letter.casefold() != letter}
    assert set(letters_of(letter.casefold() for letter in every)) == every


def test_the_law_finds_a_rule_that_is_a_little_different():
    """lower() and trim() of SQL are not the rule: the law's own tables tell them apart."""
    words = LISTS[3]
    cells = column(words, 500, 0)
    small = {folded(word): word for word in words}
    found = _asked("SELECT lower(trim(cell)) AS word FROM frame", cells).map(small)
    assert not found.equals(by_pandas(cells, words))


def _asked(query: str, cells: list[str | None]) -> pd.Series:
    with duckdb.connect() as connection:
        connection.register("frame", pd.DataFrame({"cell": cells}))
        return connection.execute(query).df()["word"]


def stored(frame: pd.DataFrame, folder: Path, road: str):
    if road == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return "t.csv"
    if road == "parquet":
        frame.to_parquet(folder / "t.parquet")
        return "t.parquet"
    if road == "duckdb":
        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        return "t.duckdb"
    return {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pl.from_pandas(frame).to_arrow()}[road]


@pytest.mark.parametrize("road", ["csv", "parquet", "duckdb", "pandas", "polars", "arrow"])
def test_a_study_over_a_dirty_table_counts_what_pandas_counts(road, tmp_path):
    words = ["No", "yes", "don't  know"]
    cells = [cell if cell is None else cell.translate({10: 32, 13: 32}) for cell in column(words, 400, 7)]  # CSV: lines
    frame = pd.DataFrame({"id": np.arange(400), "said": cells, "age": np.arange(400) % 90})
    table = stored(frame, tmp_path, road)
    study = (
        Study("Answers")
        .table("t", table, person="id", rows_per_person=1, columns={
            "said": Categories([*words, "other"], unknown="other", fold=True), "age": Interval(0, 90)})
        .promise("public", epsilon=1e6)
        .histogram("said", to="public", name="told")
        .mean("age", by="said", to="public", name="ages")
    )  # fmt: skip
    assert "fold([" in study.to_text()
    if isinstance(table, str):
        study = Study.from_text(study.to_text())
    source = {} if not isinstance(table, str) else {"data": tmp_path}
    release = study.plan(size=400).run(**source, ledger=tmp_path / "ledger.db", grant=True)
    expected = by_pandas(cells, words).fillna("other")
    counts = release["told"].to_pandas().set_index("said")["value"].round().astype(int)
    assert counts.to_dict() == expected.value_counts().to_dict()
    means = release["ages"].to_pandas().set_index("said")["value"]
    assert np.allclose(means, frame["age"].groupby(expected).mean()[means.index], atol=0.01)


def test_synthetic_rows_of_a_dirty_table_are_listed_words():
    words = ["no", "yes"]
    cells = [cell if cell is not None else "yes" for cell in column(words, 2000, 3)]
    schema = Schema({"said": Categories(words, fold=True), "age": Interval(0, 90)})
    assert Schema.from_toml(schema.to_toml()) == schema
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndeclaredCellWarning)
        made = SyntheticRelease(schema, epsilon=1e4, delta=1e-6).release({"said": cells, "age": np.arange(2000) % 90})
    share = (by_pandas(cells, words).fillna("no") == "yes").mean()
    assert set(made.table["said"]) == {"no", "yes"}
    assert abs(np.mean(np.asarray(made.table["said"]) == "yes") - share) < 0.02


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["yes", "Yes"], "one word when folded"),
        (["a b", "a  b"], "one word when folded"),
        ([1, 2], "fold is for words"),
    ],
)
def test_lists_that_collide_and_numbers_are_refused(values, words):
    with pytest.raises(SchemaError, match=words):
        Categories(values, fold=True)
    listed = ", ".join(map(repr, values))
    with pytest.raises(StudyError, match=words):
        load(f"table(t, 't.csv', p(P) = id, [c: fold([{listed}])]).")


def test_bytes_that_are_no_text_are_no_word():
    broken = pa.array([b"\xff", b"YES", b"\xef\xbf\xbd"]).cast(pa.string(), safe=False)
    assert Categories(["\ufffd", "yes", "?"], unknown="?", fold=True).place(broken, "said").tolist() == [2, 1, 0]


def test_the_warning_names_the_line_that_mends_it(tmp_path):
    """Told once, the line written, and nothing is left to tell."""
    frame = pd.DataFrame({"id": np.arange(60), "said": ["Yes ", "no", "NO"] * 20})

    def run(domain: Categories) -> list[str]:
        study = (
            Study("Answers")
            .table("t", frame, person="id", rows_per_person=1, columns={"said": domain})
            .promise("public", epsilon=1e6)
            .histogram("said", to="public", name="told")
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UndeclaredCellWarning)
            study.plan(size=60).run(ledger=Ledger(tmp_path / f"{domain.fold}.db", beside=()), grant=True)
        return [str(one.message) for one in caught if one.category is UndeclaredCellWarning]

    (told,) = run(Categories(["no", "yes"]))
    assert "range(said(P), fold([no, yes]))." in told
    written = told.partition("in Python ")[2].partition("fold=True)")
    assert run(eval(written[0] + written[1])) == []
    with pytest.warns(UndeclaredCellWarning, match="fold=True"):
        Schema({"said": Categories(["no", "yes"], unknown="no")}).encode({"said": frame["said"]})
