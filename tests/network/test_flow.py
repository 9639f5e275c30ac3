"""Rows that flow: sums without anybody's values are those of the values, whoever reads the file."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.lang import load
from sfumato.network.crowd import crowd_of
from sfumato.network.network import Network
from sfumato.network.tables import TableRoom, layout_of

STUDY = """source(stays, 'stays.parquet').
column(stays, id, person(P)). rows_per_person(stays, 1).
column(stays, ward, ward(P)). random(ward(P)) :- person(P). range(ward(P), [a, b, c]). missing(ward(P), a).
column(stays, days, days(P)). random(days(P)) :- person(P). range(days(P), 0, 30). missing(days(P), 5).
column(stays, cost, cost(P)). random(cost(P)) :- person(P). range(cost(P), -10, 10). missing(cost(P), skip).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(1)).
mean(m, days(P), person(P)). sum(s, cost(P), person(P), by([ward(P)])). variance(v, days(P), person(P)).
histogram(h, [ward(P), days(P): [5, 10, 20]], person(P)). count(n, (person(P), days(P) > 7)).
marginals(t, [ward(P), days(P): [10, 20]], 1, person(P)).
publish(m, m, openness(public)). publish(s, s, openness(public)). publish(h, h, openness(public)).
publish(n, n, openness(public)). publish(v, v, openness(public)). publish(t, t, openness(public)).
"""


def random_rows(seed: int) -> pa.Table:
    """Some people with several rows or with many, absent cells, words that are not listed, what is no number."""
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(1, 400))
    most = int(rows * generator.choice([0.3, 1, 3, 300]) + 1)
    whose = generator.integers(-most, most, rows) if generator.random() < 0.7 else generator.permutation(rows)
    words = generator.choice(["a", "b", "c", "C ", None], rows, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    cost = np.where(generator.random(rows) < 0.1, np.nan, generator.normal(0, 8, rows))
    days = [None if generator.random() < 0.1 else int(one) for one in generator.integers(-5, 40, rows)]
    ids = pa.array(whose) if generator.random() < 0.5 else pa.array([f"p{one}" for one in whose])
    return pa.table({"id": ids, "ward": pa.array(words, pa.string()), "days": pa.array(days, pa.int64()), "cost": cost})


def same(here, there) -> bool:
    return all(here.aggregates[name].same(there.aggregates[name]) for name in here.aggregates)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 400))])
@pytest.mark.by_day(2)
def test_sums_that_flow_are_the_sums_of_what_is_held(seed, tmp_path):
    network, table = Network.from_spec(load(STUDY)), random_rows(seed)
    parquet.write_table(table, tmp_path / "stays.parquet")
    held = network.evaluate({"stays": table})
    flowing = network.evaluate({"stays": tmp_path / "stays.parquet"}, sums_only=True)
    assert same(held, flowing)
    assert (flowing.individuals, flowing.rows) == ({}, {})
    other = table.set_column(2, "days", pa.array([30 - (one or 0) for one in table["days"].to_pylist()]))
    assert not same(held, network.evaluate({"stays": other}, sums_only=True)) or table.num_rows < 3


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(8)
def test_a_crowd_is_who_has_several_rows(seed):
    table, spec = random_rows(100 + seed), load(STUDY)
    counts = table.to_pandas()["id"].value_counts()
    with TableRoom({"stays": table}, ["stays"]) as room:
        crowd = crowd_of(room, layout_of(spec, "stays"), "id")
        named = {row[0] for row in room.run(f"SELECT who FROM {crowd.table}")} if crowd.table else set()
    several = {str(one) for one in counts.index[counts > 1]}
    assert (crowd.table is None) == (not several)
    assert crowd.table == "" or named == several
    assert crowd.nobodys == bool(table["id"].null_count)


def test_bytes_that_are_no_text_are_read_all_the_same(tmp_path):
    """The engine's own reader fails at them; which reader reads shows nowhere."""
    words = pa.array([b"a", b"\xff\xfe", b"b", None]).view(pa.string())
    table = pa.table({"id": [1, 2, 3, 4], "ward": words, "days": [1, 2, 3, 4], "cost": [1.0, 2.0, 3.0, 4.0]})
    parquet.write_table(table, tmp_path / "stays.parquet")
    network = Network.from_spec(load(STUDY))
    found = network.evaluate({"stays": tmp_path / "stays.parquet"}, sums_only=True)
    assert same(found, network.evaluate({"stays": table}))
    with TableRoom({"stays": tmp_path / "stays.parquet"}, ["stays"]) as room:
        rows = [one for batch in room.batches("SELECT ward FROM t0") for one in batch.column(0).to_pylist()]
    assert rows == ["a", "\ufffdFFFE", "b", None]


def test_a_file_that_lies_about_its_ends_is_clipped(tmp_path):
    """The footer says that no number is beyond 5; the engine must not take a bound of ours for granted."""
    rows = {"id": [1, 2, 3], "ward": ["a", "b", "c"], "days": [1, 2, 10**6], "cost": [1.0, 1e6, float("nan")]}
    parquet.write_table(pa.table(rows), tmp_path / "stays.parquet", compression="none", use_dictionary=False)
    whole = (tmp_path / "stays.parquet").read_bytes()
    size = int.from_bytes(whole[-8:-4], "little")
    body, footer = whole[: -8 - size], whole[-8 - size :]
    for truth, lie in (
        (struct.pack("<q", 10**6), struct.pack("<q", 5)),
        (struct.pack("<d", 1e6), struct.pack("<d", 5)),
    ):
        assert truth in footer
        footer = footer.replace(truth, lie)
    (tmp_path / "lying.parquet").write_bytes(body + footer)
    network = Network.from_spec(load(STUDY))
    told = [network.evaluate({"stays": tmp_path / name}, sums_only=True) for name in ("stays.parquet", "lying.parquet")]
    assert same(*told)
    assert same(told[0], network.evaluate({"stays": pa.table(rows)}))
