"""Which rows of a person count does not hang on how other people's cells have them written.

pandas writes 7 as 7.0 where a cell of the file is absent, a day with a midnight where somebody's has an hour, and a
column of lists without a type where none is left. Rows that are equal, and rows that `first` and `last` find equal,
were told apart by it: a stranger's cell decided which of a person's rows count.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.lang import load
from sfumato.network import Network, rows

STUDY = """
source(t, 't/'). column(t, id, person(P)). missing(t, never). rows_per_person(t, {rule}).
column(t, v, v(P)). random(v(P)) :- person(P). range(v(P), 0, 100).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
sum(s, v(P), person(P)). publish(s, s, openness(public)).
"""
RULES = ["2", "3", "1, first(x)", "2, last(x)"]
#: What may stand in a column, and what one person may have there instead.
CELLS: dict[str, tuple[list[Any], list[Any]]] = {
    "whole": ([0, 1, 2], [None, 0.5, "word"]),
    "large": ([2**53 - 1, 2**53 - 2], [None]),
    "truth": ([True, False], [None, "word"]),
    "days": (["2020-01-01", "2020-01-02"], [None, "2020-01-01 08:30:00"]),
    "lists": ([None], [["a", "b"], [1]]),
}


@cache
def network(rule: str) -> Network:
    return Network.from_spec(load(STUDY.format(rule=rule)))


def made(source: random.Random) -> tuple[list[pd.DataFrame], list[pd.DataFrame], str, str]:
    """Files in which people have equal rows, the same with one cell of a stranger's changed, and how they are kept."""
    name = source.choice(sorted(CELLS))
    cells, instead = CELLS[name]
    files = []
    for _ in range(source.randint(1, 3)):
        people = [f"p{source.randrange(4)}" for _ in range(source.randint(3, 10))]
        column = [source.choice(cells) for _ in people]
        values = [source.choice([1, 2, 40]) for _ in people]
        files.append(pd.DataFrame({"id": [*people, "z"], "v": [*values, 3], "x": pd.Series([*column, cells[0]])}))
    place, others = source.randrange(len(files)), [frame.copy() for frame in files]
    others[place]["x"] = pd.Series([*files[place]["x"].iloc[:-1], source.choice(instead)])
    if name == "days":
        for frame in (*files, *others):
            frame["x"] = pd.to_datetime(frame["x"], format="ISO8601")
    return files, others, source.choice(RULES[: 2 if name == "lists" else 4]), name


def kept(files: list[pd.DataFrame], rule: str, folder: Path, text: bool) -> Counter:
    """Of everybody but the stranger."""
    folder.mkdir()
    for place, frame in enumerate(files):
        if text:
            frame.to_csv(folder / f"{place}.csv", index=False)
        else:
            frame.to_parquet(folder / f"{place}.parquet")
    found = network(rule).evaluate({"t": folder})
    table = found.rows["t"] if "t" in found.rows else found.individuals["people"]
    return Counter((row["id"], row["v(P)"]) for row in table.to_pylist() if row["id"] != "z")


def strangers(seed: int, folder: Path) -> Counter:
    """What differs for people whose data did not change: nothing, or the law is broken."""
    source = random.Random(seed)
    files, others, rule, name = made(source)
    # Words beside numbers are another table in Parquet, and a list is no cell of a text file.
    words = any(frame["x"].map(lambda cell: isinstance(cell, str)).any() for frame in others)
    text = name != "lists" and (words or source.random() < 0.7)
    if name == "lists":
        files, others = files[:1], others[:1]
    one, two = (kept(each, rule, folder / f"{seed} {at}", text) for at, each in enumerate((files, others)))
    return (one - two) + (two - one)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.by_day(1)
def test_a_strangers_cell_chooses_nobodys_rows(tmp_path: Path):
    assert {seed: found for seed in range(24) if (found := strangers(seed, tmp_path))} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_strangers_cell_chooses_nobodys_rows_in_many_folders(tmp_path: Path):
    assert {seed: found for seed in range(24, 600) if (found := strangers(seed, tmp_path))} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_order_by_letters_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As days without an hour stand before days with midnight."""
    monkeypatch.setattr(rows, "_moment", lambda text: text)
    assert any(strangers(seed, tmp_path) for seed in range(100))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_list_that_is_left_out_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rows, "_unread", lambda room, layout, only: [])
    assert any(strangers(seed, tmp_path) for seed in range(100))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["arrow", "csv", "polars", "objects"])
def test_a_time_of_day_is_one_however_its_fraction_is_written(form: str, tmp_path: Path):
    chance = np.random.default_rng(11)
    hours = [(datetime(2020, 1, 1) + timedelta(seconds=one / 2)).time() for one in chance.integers(0, 9, 80).tolist()]
    table = pa.table(
        {"id": chance.integers(0, 9, 80), "v": chance.integers(0, 99, 80), "x": pa.array(hours, pa.time64("us"))}
    )
    asked = network("2")

    def found(given: Any) -> Counter:
        return Counter((row["id"], row["v(P)"]) for row in asked.evaluate({"t": given}).rows["t"].to_pylist())

    frame = table.to_pandas()
    parquet.write_table(table, tmp_path / "t.parquet")
    if form == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    elif form == "polars":  # with as many digits as it keeps
        frame["x"] = [time.isoformat(one, "microseconds") + "000" for one in hours]
        frame.to_csv(tmp_path / "t.csv", index=False)
    given = {"arrow": table, "objects": frame}.get(form, tmp_path / "t.csv")
    assert found(given) == found(tmp_path / "t.parquet")
