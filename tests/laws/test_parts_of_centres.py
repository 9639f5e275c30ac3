"""One cell of one centre's part changes nothing but that cell, for whoever is trusted with the rows of all centres.

pandas writes a column of whole numbers as decimals where one cell is absent, and one without any value without a type.
The parts are put together as the files of a folder are: what comes out of both is compared, and what a person or an
observer is handed is compared with the parts.
"""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

from sfumato.cli.view import run_view
from sfumato.errors import DataError
from sfumato.lang import load
from sfumato.network import Network
from sfumato.run.held_tables import all_tables
from sfumato.run.study_file import run_study

HEAD = """column({t}, id, person(P)). rows_per_person({t}, 2). column({t}, v, v(P)). column({t}, c, c(P)).
"""
BODY = """random(v(P)) :- person(P). random(c(P)) :- person(P). range(v(P), 0, 10). range(c(P), [1, 2, 3]).
missing(v(P), 4). missing(c(P), 3). dataset(people, domain(P, person(P))).
personal_rv(P, v(P)) :- person(P). observe(doctor, v(P)) :- person(P).
privacy_requirement(openness(public), people, dp(2)).
histogram(h, c(P), person(P)). publish(h, h, openness(public)).
"""
TOGETHER = load("source(north, 'all/'). " + HEAD.format(t="north") + BODY)


def over(names, ending):
    sources = "".join(f"source({name}, '{name}{ending}'). {HEAD.format(t=name)}" for name in names)
    held = "".join(f"centre(at_{name}). holds(at_{name}, {name}). " for name in names)
    return sources + held + "trusted(board).\n" + BODY


def parts(draw, names):
    """People, each at one centre; identifiers may be larger than a decimal can hold, and a cell may be absent."""
    chance, number = np.random.default_rng(draw.randrange(2**32)), draw.choice([0, 2**53 + 1])
    found = {}
    for name in names:
        rows = draw.randint(1, 5)
        frame = pd.DataFrame(
            {"id": number + np.arange(rows), "v": chance.integers(0, 11, rows), "c": chance.integers(1, 4, rows)}
        )
        number += rows
        if draw.random() < 0.7:
            column, kind = draw.choice(["v", "c", "id"]), draw.choice([float, object])
            frame[column] = frame[column].astype(kind)
            frame.loc[draw.randrange(rows), column] = None
        found[name] = frame
    return found


def rows_of(network, table):
    rows = network.evaluate({"north": table}).rows["north"].to_pylist()
    return sorted((str(row["id"]), row["v(P)"], str(row["c(P)"])) for row in rows)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 200))])
@pytest.mark.by_day(2)
def test_parts_are_read_as_files_of_a_folder(seed, tmp_path):
    draw = random.Random(seed)
    names, ending = ("north", "south", "west")[: draw.randint(2, 3)], draw.choice([".parquet", ".csv"])
    (tmp_path / "all").mkdir()
    for name, frame in parts(draw, names).items():
        for place in (tmp_path / f"{name}{ending}", tmp_path / "all" / f"{name}{ending}"):
            frame.to_csv(place, index=False) if ending == ".csv" else frame.to_parquet(place)
    spec = load(over(names, ending))
    own = rows_of(Network.from_spec(spec), all_tables(spec, tmp_path)["north"])
    assert own == rows_of(Network.from_spec(TOGETHER), tmp_path / "all")


def test_words_beside_numbers_are_refused_without_quoting_them(tmp_path):
    pd.DataFrame({"id": [1], "v": [2], "c": [3]}).to_parquet(tmp_path / "north.parquet")
    pd.DataFrame({"id": [2], "v": ["sick"], "c": [3]}).to_parquet(tmp_path / "south.parquet")
    spec = load(over(("north", "south"), ".parquet"))
    with pytest.raises(DataError, match="no one table") as told:
        Network.from_spec(spec).evaluate(all_tables(spec, tmp_path))
    assert "sick" not in str(told.value)


def test_everybody_is_handed_their_own_at_whichever_centre_they_are(tmp_path):
    first = {"north": 1, "south": 5}
    frames = {name: pd.DataFrame({"id": [k, k + 1], "v": [k, 9], "c": [1, 2]}) for name, k in first.items()}
    for name, frame in frames.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "study.pl").write_text(over(tuple(frames), ".parquet"))
    run_study(tmp_path / "study.pl", tmp_path, tmp_path / "out", tmp_path / "ledger.db", grant=True)
    for person, value in (("1", "1"), ("5", "5")):
        told = run_view(tmp_path / "out", tmp_path / "study.pl", tmp_path, person, None, None)
        assert f"v(P),{value},{value}.0" in told
    run_view(tmp_path / "out", tmp_path / "study.pl", tmp_path, None, "doctor", tmp_path / "seen.csv")
    assert sorted(pd.read_csv(tmp_path / "seen.csv").iloc[:, 0]) == [1, 2, 5, 6]
