"""Law: a large table is read a fixed number of times, however many shares its rows are done in, and the same are kept.

A share used to be a scan of the whole table: 20,000,000 visits took twice the time a row of 5,000,000.
"""

from __future__ import annotations

import datetime
import decimal
import tempfile

import numpy as np
import pyarrow as pa
import pytest

from network.rows_by_hand import in_order
from sfumato.lang import load
from sfumato.network import Network
from sfumato.network.database import close_idle
from sfumato.network.tables import TableRoom

STUDY = """
source(t, 't.parquet').
column(t, id, person(P)). missing(t, never).
column(t, v, v(P)).
random(v(P)) :- person(P).
range(v(P), 0, 1000).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
sum(s, v(P), person(P)).
count(c, (person(P), v(P) > 500)).
publish(sum, s, openness(public)).
publish(count, c, openness(public)).
"""
RULES = ["1", "2", "2, last(day)", "3, first(day)"]


def visits(generator: np.random.Generator, rows: int) -> pa.Table:
    """Few and many rows of a person, equal rows, rows of nobody, columns of many types, some called as ours are."""
    who = generator.zipf(1.5, rows) % 60
    drawn = generator.integers(0, 5, rows)
    columns: dict[str, pa.Array] = {
        "id": pa.array([None if one == 7 else f"p{one}" for one in who]),
        "v": pa.array(generator.integers(0, 1000, rows) if generator.random() < 0.5 else generator.random(rows) * 1000),
        "day": pa.array([datetime.date(2024, 1, 1 + int(one)) for one in generator.integers(0, 28, rows)]),
        "share": pa.array([None if one == 0 else f"a{one}'" for one in drawn]),
        "$share": pa.array(drawn.astype(np.int8)),
        "float": pa.array(np.where(drawn == 1, np.nan, -0.0 * drawn).astype(np.float32)),
        "large": pa.array([decimal.Decimal(int(one)) * 10**20 for one in drawn], pa.decimal128(38, 5)),
        "when": pa.array(drawn.astype("datetime64[us]")),
        "zone": pa.array(drawn.astype("datetime64[us]"), pa.timestamp("us", "Europe/Vienna")),
        "bytes": pa.array([bytes([one]) for one in drawn]),
        "word": pa.array([f"w{one}" for one in drawn]).dictionary_encode(),
        "yes": pa.array(drawn > 2),
    }
    others = [name for name in columns if name not in ("id", "v", "day")]
    chosen = ["id", "v", "day", *generator.permutation(others)[: generator.integers(0, len(others) + 1)]]
    table = pa.table({name: columns[name] for name in chosen})
    return pa.concat_tables([table, table.slice(0, rows // 4)])


def answers(network: Network, table: pa.Table, key: bytes) -> dict[str, list[int]]:
    found = network.evaluate({"t": table}, {"people": key}, sums_only=True).aggregates
    return {name: [int(unit) for part in sums.units for unit in part] for name, sums in found.items()}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rule", RULES)
def test_the_same_rows_are_kept_in_one_share_and_in_many(rule, seed, monkeypatch, tmp_path):
    close_idle()  # else its folder lies where others are
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    generator = np.random.default_rng([seed, RULES.index(rule)])
    network, table = Network.from_spec(load(STUDY + f"rows_per_person(t, {rule}).")), visits(generator, 300)
    key = generator.bytes(32)
    at_once = answers(network, table, key)
    monkeypatch.setattr("sfumato.network.rows._AT_ONCE", int(generator.integers(20, 120)))
    assert answers(network, table, key) == at_once
    close_idle()
    assert not list(tmp_path.iterdir())


def test_the_rows_of_many_shares_are_those_of_an_independent_hmac(monkeypatch):
    monkeypatch.setattr("sfumato.network.rows._AT_ONCE", 40)
    generator = np.random.default_rng(5)
    table = visits(generator, 200).select(["id", "v"])
    network, key = Network.from_spec(load(STUDY + "rows_per_person(t, 2).")), generator.bytes(32)
    rows = [row for row in table.to_pylist() if row["id"] is not None]
    kept = []
    for who in {row["id"] for row in rows}:
        kept += in_order(who, [row for row in rows if row["id"] == who], key)[:2]
    found = network.evaluate({"t": table}, {"people": key}, sums_only=True).aggregates
    assert int(found["c"].count) == sum(row["v"] > 500 for row in kept)


def heard(patch: pytest.MonkeyPatch) -> list[str]:
    """Every query that is asked from now on."""
    asked: list[str] = []
    for name in ("run", "batches"):
        whole = getattr(TableRoom, name)
        patch.setattr(TableRoom, name, lambda room, query, whole=whole: (asked.append(query), whole(room, query))[1])
    return asked


@pytest.mark.parametrize("rule", ["1", "2"])
def test_how_often_a_table_is_read_does_not_grow_with_its_shares(rule, monkeypatch):
    network = Network.from_spec(load(STUDY + f"rows_per_person(t, {rule})."))
    table = visits(np.random.default_rng(3), 800).select(["id", "v", "day"])
    read = {}
    for at_once in (400, 40):
        with monkeypatch.context() as patch:
            patch.setattr("sfumato.network.rows._AT_ONCE", at_once)
            asked = heard(patch)
            answers(network, table, b"key")
        read[at_once] = sum("FROM t0 " in query or query.endswith("FROM t0") for query in asked)
        assert sum("sha256(" in query for query in asked) >= 600 // at_once  # there were shares
    assert read[40] == read[400]


def test_nothing_stays_behind_where_a_share_fails(monkeypatch, tmp_path):
    close_idle()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = visits(np.random.default_rng(4), 400).select(["id", "v", "day"])
    monkeypatch.setattr("sfumato.network.rows._AT_ONCE", 50)
    run = TableRoom.run

    def failing(room: TableRoom, query: str):
        if query.startswith("INSERT"):
            raise KeyboardInterrupt
        return run(room, query)

    monkeypatch.setattr(TableRoom, "run", failing)
    with pytest.raises(KeyboardInterrupt):
        answers(Network.from_spec(load(STUDY + "rows_per_person(t, 2).")), table, b"key")
    close_idle()
    assert not list(tmp_path.iterdir())
