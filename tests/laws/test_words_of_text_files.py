"""What one person's cell makes of a file of text changes nobody else's word, truth value or group.

pandas writes everybody's 1 as 1.0 where somebody's cell is absent, and everybody's day with a midnight where somebody's
has an hour. Listed as words, everybody else's cells were then in no list; as groups, their published names were others.
"""

from __future__ import annotations

import random
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.core import Categories, Schema
from sfumato.lang import load
from sfumato.network import Network, cells
from sfumato.run.files import TableFile

STUDY = """
source(t, '{place}'). column(t, id, person(P)). missing(t, never). rows_per_person(t, 1).
column(t, v, v(P)). random(v(P)) :- person(P). range(v(P), {domain}).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
{question}(h, v(P), person(P)). publish(h, h, openness(public)).
"""
#: What a column holds, how it may be declared, and what one person may have instead.
COLUMNS: dict[str, tuple[list[Any], list[str], list[Any]]] = {
    "codes": (
        [1, 2, 3],
        ["['1', '2', '3']", "['1', '2' | other]", "fold(['1', '2' | other])", "['1.0', '2' | other]", "text"],
        [None, 2.5],
    ),
    "truth": ([0, 1], ["[false, true]", "['0', '1']", "text"], [None, 0.5]),
    "days": (
        ["2020-01-01", "2020-01-02", "2020-01-03"],
        ["['2020-01-01', '2020-01-02' | other]", "['2020-01-01 00:00:00', '2020-01-02' | other]", "text"],
        [None, "2020-01-01 08:30:00", "2020-01-01 08:30:00.5"],
    ),
    "hours": (
        ["2020-01-01 08:00:00", "2020-01-02 08:00:00", "2020-01-03 20:30:10"],
        ["['2020-01-01 08:00:00', '2020-01-02 08:00:00' | other]", "['2020-01-01 08:00:00.00' | other]", "text"],
        [None, "2020-01-01 08:30:00.5", "2020-01-01 08:30:00.000001"],
    ),
    "large": ([2**53 + 1, 10**17 + 1, 7], ["text"], [None, 2.5]),
    "decimals": ([Decimal("1.5"), Decimal("7")], ["text"], [None, Decimal("1.25"), Decimal("0.001")]),
}


@cache
def network(domain: str) -> Network:
    question = "groups" if domain == "text" else "histogram"
    missing = "missing(v(P), skip)." if domain == "text" else ""
    return Network.from_spec(load(STUDY.format(place="t/", domain=domain, question=question) + missing))


def written(files: list[list[Any]], name: str, folder: Path, kind: str) -> Path:
    folder.mkdir()
    first = 0
    for place, column in enumerate(files):
        moments = name in ("days", "hours")
        made = pd.Series(pd.to_datetime(pd.Series(column), format="ISO8601")) if moments else pd.Series(column)
        frame = pd.DataFrame({"id": [f"p{first + row}" for row in range(len(column))], "v": made})
        first += len(column)
        if kind == "csv":
            frame.to_csv(folder / f"{place}.csv", index=False)
        else:
            frame.to_parquet(folder / f"{place}.parquet")
    return folder


def strangers(seed: int, folder: Path) -> Any:
    """What differs for people whose cell did not change: nothing, or the law is broken."""
    source = random.Random(seed)
    name = source.choice(sorted(COLUMNS))
    cells_, domains, instead = COLUMNS[name]
    # What pandas has lost of whole numbers beyond 2^53 no reader of its text can know; and words are words in Parquet.
    kind = "parquet" if name in ("large", "decimals") else "csv"
    domain = source.choice(domains)
    files = [[source.choice(cells_) for _ in range(source.randint(1, 5))] for _ in range(source.randint(1, 3))]
    files = files[:1] if name == "decimals" else files
    others = [list(column) for column in files]
    place = source.randrange(len(files))
    row = source.randrange(len(files[place]))
    others[place][row] = source.choice(instead)
    who = f"p{sum(map(len, files[:place])) + row}"
    found = []
    for number, one in enumerate((files, others)):
        values = network(domain).evaluate({"t": written(one, name, folder / f"{seed} {number}", kind)})
        found.append({each["id"]: each["v(P)"] for each in values.individuals["people"].to_pylist()})
    return {one: (found[0][one], found[1][one]) for one in found[0] if one != who and found[0][one] != found[1][one]}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.by_day(1)
def test_nobody_elses_word_is_another(tmp_path: Path):
    assert {seed: found for seed in range(24) if (found := strangers(seed, tmp_path))} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_nobody_elses_word_is_another_in_many_files(tmp_path: Path):
    assert {seed: found for seed in range(24, 800) if (found := strangers(seed, tmp_path))} == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_words_taken_by_their_letters_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cells, "text_name", lambda text: text)
    assert any(strangers(seed, tmp_path) for seed in range(24))


#: Lists of a schema, by what a column holds.
SCHEMAS = {
    "codes": [Categories(["1", "2"], unknown="2"), Categories(["1", "2.0", "x"], unknown="x", fold=True)],
    "truth": [Categories(["0", "1"]), Categories(["0.0", "1.0"]), Categories([False, True])],
    "days": [Categories(["2020-01-01", "2020-01-02"]), Categories(["2020-01-01 00:00:00", "x"], unknown="x")],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEMAS)
def test_nobody_elses_word_is_another_where_a_whole_file_is_released(name: str, tmp_path: Path):
    source, (cells_, _, instead) = random.Random(name), COLUMNS[name]
    for number, domain in enumerate(SCHEMAS[name] * 3):
        column = [source.choice(cells_) for _ in range(6)]
        found = []
        for place, one in enumerate((column, [*column[:-1], source.choice(instead)])):
            file = TableFile.open(written([one], name, tmp_path / f"{number} {place}", "csv") / "0.csv")
            (batch,) = file.batches(Schema({"v": domain}), ["v"], 10)
            found.append(domain.place(batch["v"], "v").tolist())
        assert found[0][:-1] == found[1][:-1]


@pytest.mark.filterwarnings("ignore")
def test_a_list_of_both_is_taken_by_its_letters():
    asked = network("['1', '1.0', '2' | other]")
    words = pa.table({"id": list("abcd"), "v": ["1", "1.0", "2.0", "2"]})
    found = asked.evaluate({"t": words}).individuals["people"].sort_by("id")["v(P)"].to_pylist()
    assert found == ["1", "1.0", "other", "2"]


@pytest.mark.filterwarnings("ignore")
def test_a_word_keeps_its_zeros(tmp_path: Path):
    """What no program makes of a whole number is another word."""
    asked = network("['1', '01' | other]")
    parquet.write_table(
        pa.table({"id": list("abcde"), "v": ["1", "01", "01.0", "1.00", "1.0"]}), tmp_path / "t.parquet"
    )
    found = asked.evaluate({"t": tmp_path}).individuals["people"].sort_by("id")["v(P)"].to_pylist()
    assert found == ["1", "01", "other", "other", "1"]


VISITS = """
source(t, 't.csv'). column(t, id, person(P)). column(t, k, visit(K)). missing(t, never). rows_per_person(t, 3).
column(t, v, v(P, K)). random(v(P, {day})) :- person(P). range(v(P, {day}), 0, 100).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
sum(s, v(P, {day}), person(P)). publish(s, s, openness(public)).
"""
#: The same, asked through a relation.
HELD = """
source(t, 't.csv'). column(t, id, person(P)). column(t, k, visit(K)). missing(t, never). rows_per_person(t, 3).
relation(t, had(P, K)). column(t, v, v(P)). random(v(P)) :- person(P). range(v(P), 0, 100).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
sum(s, v(P), (person(P), had(P, {day}))). publish(s, s, openness(public)).
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("odd", [None, "2020-01-01 08:00:00", "2020-01-01 08:00:00.5"])
@pytest.mark.parametrize("day", ["'2020-01-01'", "'2020-01-01 00:00:00'"])
@pytest.mark.parametrize("text", [VISITS, HELD], ids=["visits", "held"])
def test_nobody_elses_visit_is_of_another_day(text: str, day: str, odd: str | None, tmp_path: Path):
    """What a column of identifiers names may be a day, and a study may ask for one."""
    study = Network.from_spec(load(text.format(day=day)))
    found, counted = [], []
    for last in ("2020-01-01", odd):
        for kind in ("csv", "parquet"):
            days = pd.Series(pd.to_datetime(pd.Series(["2020-01-01", "2020-01-02", last]), format="ISO8601"))
            frame = pd.DataFrame({"id": list("xyz"), "k": days, "v": [5.0, 6.0, 7.0]})
            getattr(frame, f"to_{kind}")(tmp_path / f"t.{kind}", index=False)
            values = study.evaluate({"t": tmp_path / f"t.{kind}"})
            rows = values.individuals["people"].sort_by("id").to_pylist()
            found.append([{name: value for name, value in row.items() if name != "id"} for row in rows[:2]])
            counted.append(values.aggregates["s"].count)
    assert found == found[:1] * 4
    assert 5.0 in found[0][0].values()
    # x was there that day and y was not, whatever z did; who is in a sum of visits is everybody.
    assert counted == ([2, 2, 1, 1] if text == HELD else [3, 3, 3, 3])
