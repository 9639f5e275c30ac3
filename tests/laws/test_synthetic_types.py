"""Whatever types the columns of a table have, the invented rows that a study plans are made, within what was planned.

Which columns need bought edges depends on types, and a plan knows the schema alone: what a type makes needless stays
unspent. Tables with whole numbers of few and many values, decimals and words, in frames, Arrow and files.
"""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato import Dates, Study, verify
from sfumato.errors import UnprovedError
from sfumato.release.synthetic import SyntheticRelease
from sfumato.study.tidy import Tidy

KINDS = ("int8", "int64", "Int64", "uint16", "float64", "word")


def column(draw: random.Random, size: int):
    """Cells and their domain."""
    kind, noise = draw.choice(KINDS), np.random.default_rng(draw.getrandbits(32))
    if kind == "word":
        return pd.Series(noise.choice(["no", "yes"], size)), ["no", "yes"]
    low, width = draw.choice((0, 1, 5)), draw.choice((1, 3, 9, 15, 29, 31, 60, 100))
    cells = noise.integers(low, low + width + 1, size)
    return pd.Series(cells).astype(kind), (low, low + width)


def table(seed: int):
    draw = random.Random(seed)
    found = {f"c{place}": column(draw, 300) for place in range(draw.randint(1, 4))}
    frame = pd.DataFrame({name: cells for name, (cells, _) in found.items()})
    return draw, frame, {name: domain for name, (_, domain) in found.items()}


def published(seed: int, folder) -> list[str]:
    draw, frame, columns = table(seed)
    form = draw.choice(("pandas", "arrow", "parquet", "csv"))
    if form == "arrow":
        frame = pa.Table.from_pandas(frame, preserve_index=False)
    elif form == "parquet":
        parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "t.parquet")
    elif form == "csv":
        frame.to_csv(folder / "t.csv", index=False)
    source = str(folder / f"t.{form}") if form in ("parquet", "csv") else frame
    label = draw.choice((None, *columns))
    study = (
        Study("rows")
        .table("t", source, person=None, missing="never", columns=columns)
        .promise("public", epsilon=draw.choice((0.5, 3)), delta=1e-6)
        .synthetic(list(columns), label=label, name="made", to="public")
    )
    release = study.plan(size=300).run(ledger=folder / "ledger.db", grant=True)
    assert all(verify(one).ok for one in release.certificates.values())
    return list(release["made"].to_pandas().columns)


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.by_day(12)
def test_what_is_planned_is_made_whatever_the_types(seed, tmp_path):
    assert published(seed, tmp_path) == list(table(seed)[2])


def test_a_plan_that_does_not_keep_what_edges_cost_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(SyntheticRelease, "with_planned_edges", lambda self: self)
    broken = 0
    for seed in range(40):
        (tmp_path / str(seed)).mkdir()
        try:
            published(seed, tmp_path / str(seed))
        except UnprovedError:
            broken += 1
            break
    assert broken


def days(draw: random.Random, size: int, kind: str) -> pd.DataFrame:
    """The same days as pandas' own, as Python's or as text."""
    noise = np.random.default_rng(draw.getrandbits(32))
    cells = pd.Series(np.datetime64("2020-01-01") + noise.integers(0, 300, size).astype("timedelta64[D]"))
    if kind == "date":
        cells = cells.dt.date
    elif kind == "text":
        cells = cells.dt.strftime("%Y-%m-%d")
    else:
        cells = cells.astype(kind)
    return pd.DataFrame({"day": cells, "g": noise.choice(["a", "b"], size)})


@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[us]", "datetime64[s]", "date", "text"])
def test_days_are_days_of_the_frame_that_is_asked_for(kind):
    frame = days(random.Random(kind), 300, kind)
    columns = {"day": Dates("2020-01-01", "2020-12-31"), "g": ["a", "b"]}
    study = (
        Study("rows")
        .table("t", frame, person=None, missing="never", columns=columns)
        .promise("public", epsilon=3, delta=1e-6)
        .synthetic(["day", "g"], name="made", to="public")
    )
    made = study.plan(size=300).run(ledger=None)["made"]
    found = made.to_pandas()
    assert str(found["day"].dtype) == "datetime64[us]"
    assert found["day"].between("2020-01-01", "2020-12-31").all()
    assert made.to_arrow()["day"].type == pa.date32()
    assert [one.date() for one in found["day"]] == made["day"]
    assert list(pd.concat([frame.astype({"day": "datetime64[us]"}), found]).dtypes) == list(found.dtypes)


def test_a_day_that_is_absent_stays_absent():
    table = Tidy(pa.table({"day": pa.array([18292, None], pa.int32()).cast(pa.date32()), "n": [1, 2]}))
    assert table.to_pandas()["day"].isna().tolist() == [False, True]
