"""What a person or an observer is handed is what stands in the table about them: however many rows one person has.

Random tables, one to four rows a person; the truth is pandas' own. Nothing is drawn for it.
"""

from __future__ import annotations

import io
import random

import numpy as np
import pandas as pd
import pytest

from sfumato.cli.view import run_view
from sfumato.run.study_file import run_study

STUDY = """source(t, 't.{ending}'). column(t, id, person(P)). rows_per_person(t, {most}). missing(t, never).
column(t, v, v(P)). random(v(P)) :- person(P). range(v(P), 0, 10). dataset(people, domain(P, person(P))).
personal_rv(P, v(P)) :- person(P). observe(doctor, v(P)) :- person(P).
privacy_requirement(o(public), people, dp(1)). mean(m, v(P), person(P)). publish(m, m, o(public)).
"""


def pairs_of(frame):
    return sorted((str(who), float(value)) for who, value in frame.itertuples(index=False))


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))])
@pytest.mark.by_day(1)
def test_everybody_is_handed_their_own_rows(seed, tmp_path):
    draw = random.Random(seed)
    most, ending = draw.randint(1, 4), draw.choice(["parquet", "csv"])
    chance = np.random.default_rng(seed)
    ids = [who for who in draw.sample(range(100), 6) for _ in range(draw.randint(1, most))]
    frame = pd.DataFrame({"id": draw.sample(ids, len(ids)), "v": chance.integers(0, 40, len(ids)) / 4})
    path = tmp_path / f"t.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    study = tmp_path / "study.pl"
    study.write_text(STUDY.format(ending=ending, most=most))
    run_study(study, tmp_path, tmp_path / "out", tmp_path / "sfumato-ledger.db", grant=True)
    person = draw.choice(ids)
    told = run_view(tmp_path / "out", study, tmp_path, str(person), None, None).split("\n\n")[0]
    (line,) = pd.read_csv(io.StringIO(told), dtype=str).to_dict("records")
    own = sorted(frame["v"][frame["id"] == person].clip(0, 10))
    assert sorted(map(float, line["counts_as"].split("; "))) == own
    assert len(line["cell"].split("; ")) == len(own)
    run_view(tmp_path / "out", study, tmp_path, None, "doctor", tmp_path / "seen.csv")
    assert pairs_of(pd.read_csv(tmp_path / "seen.csv")) == pairs_of(frame.assign(v=frame["v"].clip(0, 10)))
