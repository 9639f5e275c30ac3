"""Several rows of one person: which are kept, and that nobody else notices."""

from __future__ import annotations

import html
import io
import secrets

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from network.rows_by_hand import in_order
from sfumato.cli.study import show_plan
from sfumato.errors import InputError
from sfumato.evidence.explain import explain
from sfumato.evidence.report import finish_folder
from sfumato.lang import load
from sfumato.network import Network
from sfumato.network.meaning import mean_of
from sfumato.network.tables import TableRoom
from sfumato.plan.make import make_plan
from sfumato.run.study import run_plan

STUDY = """
source(t, 't.parquet').
column(t, id, person(P)). missing(t, never).
column(t, v, v(P)).
random(v(P)) :- person(P).
range(v(P), 0, 10).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(2, 0.000001)).
mean(m, v(P), person(P)).
sum(s, v(P), person(P)).
publish(mean, m, openness(public)).
"""
GENERATOR = np.random.default_rng(7)


def network_of(rule: str) -> Network:
    return Network.from_spec(load(STUDY + rule))


def visits(people: int, rows: int) -> pa.Table:
    who = np.repeat([f"p{number:03d}" for number in range(people)], rows)
    return pa.table({"id": who, "v": GENERATOR.uniform(0, 10, people * rows), "day": np.tile(np.arange(rows), people)})


def mean(network: Network, table: pa.Table, key: bytes | None = None) -> float:
    found = network.evaluate({"t": table}, {"people": key} if key else None).aggregates["m"]
    return found.vector[0] / found.count


@pytest.mark.parametrize("rule", ["rows_per_person(t, 1).", "rows_per_person(t, 1, sample).", "rows_per_person(t, 2)."])
@pytest.mark.by_day(1)
def test_the_kept_rows_are_a_fair_sample(rule):
    """The smallest values were kept: 2.0 for a true mean of 5.0."""
    network, table = network_of(rule), visits(160, 5)
    truth, draws = np.mean(table["v"]), [mean(network, table, secrets.token_bytes(32)) for _ in range(25)]
    spread = np.std(draws) / np.sqrt(len(draws))
    assert abs(np.mean(draws) - truth) < 6 * spread
    assert np.std(draws) > 0.05  # the key does decide


def test_the_order_is_that_of_an_independent_hmac():
    table, network = visits(15, 6), network_of("rows_per_person(t, 1).")
    doubled = pa.concat_tables([table, table.slice(0, 9)])  # equal rows of one person
    for key in (b"k", secrets.token_bytes(32), secrets.token_bytes(100)):
        found = network.evaluate({"t": doubled}, {"people": key}).individuals["people"].to_pylist()
        rows = doubled.to_pylist()
        for one in found:
            first = in_order(one["id"], [row for row in rows if row["id"] == one["id"]], key)[0]
            assert one["v(P)"] == first["v"]


@pytest.mark.parametrize(
    "rule", ["rows_per_person(t, 1).", "rows_per_person(t, 3).", "rows_per_person(t, 2, last(day))."]
)
def test_a_large_table_is_done_in_shares_of_its_people(rule, monkeypatch):
    """No share holds more than about its part of the rows, and the same rows are kept."""
    network, key = network_of(rule), secrets.token_bytes(32)
    table = pa.concat_tables([visits(60, 6), visits(5, 40), visits(100, 1)])
    at_once = network.evaluate({"t": table}, {"people": key}).aggregates
    asked, run = [], TableRoom.run
    monkeypatch.setattr(TableRoom, "run", lambda room, query: (asked.append(query), run(room, query))[1])
    monkeypatch.setattr("sfumato.network.rows._AT_ONCE", 100)
    in_shares = network.evaluate({"t": table}, {"people": key}).aggregates
    assert sum("sha256(" in query for query in asked) == -(-table.num_rows // 100)
    assert {name: list(sums.units) for name, sums in in_shares.items()} == {
        name: list(sums.units) for name, sums in at_once.items()
    }


def test_neither_the_place_in_the_file_nor_other_people_matter():
    network, table = network_of("rows_per_person(t, 3)."), visits(30, 7)
    before = network.evaluate({"t": table}).rows["t"].sort_by([("id", "ascending"), ("v(P)", "ascending")])
    shuffled = table.take(GENERATOR.permutation(table.num_rows))
    crowd = pa.table({"id": ["crowd"] * 5000, "v": GENERATOR.uniform(0, 10, 5000), "day": np.arange(5000)})
    after = network.evaluate({"t": pa.concat_tables([shuffled, crowd])}).rows["t"].to_pylist()
    assert before.to_pylist() == sorted(
        (row for row in after if row["id"] != "crowd"), key=lambda row: (row["id"], row["v(P)"])
    )
    assert sum(row["id"] == "crowd" for row in after) == 3


WRITINGS = {
    "truth values": pa.array,
    "Parquet's words": lambda cells: pa.array([None if cell is None else str(cell).lower() for cell in cells]),
    "pandas' words": lambda cells: pa.array([None if cell is None else str(cell) for cell in cells]),
    "SQLite's numbers": lambda cells: pa.array([None if cell is None else str(int(cell)) for cell in cells]),
    "numbers": lambda cells: pa.array([None if cell is None else int(cell) for cell in cells]),
    "decimals": lambda cells: pa.array([None if cell is None else float(cell) for cell in cells]),
}


@pytest.mark.parametrize("writing", WRITINGS)
def test_however_truth_values_are_written_the_same_rows_are_kept(writing):
    """They stand in a column that nobody asks for; of each person one of eight rows is kept."""
    source = np.random.default_rng(3)
    table, network = visits(20, 8), network_of("rows_per_person(t, 1).")
    cells = [None if place % 7 == 0 else bool(source.integers(2)) for place in range(table.num_rows)]
    written = table.append_column("insured", WRITINGS[writing](cells))
    for one in network.evaluate({"t": written}).individuals["people"].to_pylist():
        mine = [{**row, "insured": cell} for row, cell in zip(table.to_pylist(), cells, strict=True)]
        assert one["v(P)"] == in_order(one["id"], [row for row in mine if row["id"] == one["id"]])[0]["v"]


@pytest.mark.parametrize(("rule", "day"), [("first(day)", 0), ("last(day)", 6)])
def test_first_and_last_follow_a_column(rule, day):
    table = visits(20, 7)
    found = network_of(f"rows_per_person(t, 1, {rule}).").evaluate({"t": table}).column("v(P)")
    wanted = [row["v"] for row in table.to_pylist() if row["day"] == day]
    assert found.tolist() == wanted


@pytest.mark.parametrize(
    ("days", "first", "last"),
    [
        (["9", "10", "", "x"], 0, 1),
        (["2024-02-01", "2023-12-31", None, "2024-01-05"], 1, 0),
        ([float("nan"), 3.0, -1.0, None], 2, 1),
    ],
)
def test_an_order_is_total_whatever_the_cells_hold(days, first, last):
    table = {"id": ["a"] * 4, "v": [1.0, 2.0, 3.0, 4.0], "day": days}
    for rule, place in (("first(day)", first), ("last(day)", last)):
        found = network_of(f"rows_per_person(t, 1, {rule}).").evaluate({"t": table}).column("v(P)")
        assert found.tolist() == [place + 1.0]


def test_equal_days_are_settled_by_the_hash():
    table = visits(25, 4).set_column(2, "day", pa.array([1] * 100))
    found = network_of("rows_per_person(t, 1, first(day)).").evaluate({"t": table}).individuals["people"]
    for one in found.to_pylist():
        mine = [row for row in table.to_pylist() if row["id"] == one["id"]]
        assert one["v(P)"] == in_order(one["id"], mine)[0]["v"]


def test_each_person_counts_once_with_the_mean_of_her_rows():
    table = pa.table({"id": ["a", "a", "a", "b", "c", "c"], "v": [1.0, 50.0, None, 4.0, None, float("nan")]})
    network = network_of("each_person(t, mean).")
    values = network.evaluate({"t": table})
    assert values.column("v(P)").tolist() == [5.5, 4.0, 5.0]  # a: 1 and 10, c: nothing usable
    assert network.node("m").question.rows == 1
    crowd = pa.concat_tables([table, pa.table({"id": ["b"] * 10_000, "v": [4.0] * 10_000})])
    assert network.evaluate({"t": crowd}).aggregates["s"].same(values.aggregates["s"])


def test_a_word_says_what_a_mean_is_the_mean_of():
    capped = network_of("rows_per_person(t, 3).")
    said = [
        mean_of(network, network.node("m"))
        for network in (network_of("each_person(t, mean)."), network_of("rows_per_person(t, 1, last(day))."), capped)
    ]
    assert "with the mean of all her rows of t" in said[0]
    assert "persons, not rows" in said[0]
    assert "the last by day" in said[1]
    assert "at most 3 rows of t count" in said[2]
    assert "rows, no more than the limit" in said[2]
    assert all("No interval can be given for all rows together" in one for one in said)


def test_plan_report_and_explanation_say_which_mean_an_interval_covers(tmp_path):
    plan = make_plan(STUDY + "rows_per_person(t, 1).")
    (sentence,) = [one for one in plan.publications[0].about if one.startswith("This number")]
    assert "persons, not rows: of each person one row of t counts, drawn fairly from hers" in sentence
    console = Console(record=True, width=10_000, file=io.StringIO())
    show_plan(plan, console)
    run_plan(plan, {"t": visits(20, 3)}, None, out=tmp_path / "out", random_state=1)
    finish_folder(plan, tmp_path / "out", None, rehearsal=True)
    page = html.unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    readme = (tmp_path / "out" / "README.txt").read_text(encoding="utf-8")
    for text in (console.export_text(), page, explain(plan), readme):
        assert " ".join(sentence.split()) in " ".join(text.split())


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("rows_per_person(t, 2, smallest).", "which rows are kept"),
        ("rows_per_person(t, 2, first(A, B)).", "which rows are kept"),
        ("each_person(t, median).", "the mean of her rows"),
        ("each_person(t, mean). rows_per_person(t, 2).", "spoken of twice"),
        ("each_person(u, mean).", "the table u has no source"),
        ("rows_per_person(t, 2, first(v)).", "by v.P. itself"),
        ("rows_per_person(t, 1, last(v)).", "a fair sample"),
    ],
)
def test_other_words_are_refused(rule, said):
    with pytest.raises(InputError, match=said):
        load(STUDY + rule)
