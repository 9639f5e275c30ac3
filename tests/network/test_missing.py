"""Cells that are absent or not listed: never in silence, and never a reason to fail."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.errors import InputError
from sfumato.lang import load
from sfumato.network import Network

STUDY = """
source(t, 't.parquet').
column(t, id, person(P)). rows_per_person(t, 1).
column(t, v, v(P)).
column(t, c, c(P)).
random(v(P)) :- person(P).
random(c(P)) :- person(P).
random(w(P)) :- person(P).
depends(w(P), [v(P)], 2 * v(P)).
range(v(P), 0, 100).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(5, 0.000001)).
mean(m, w(P), person(P)).
histogram(h, c(P), person(P)).
count(k, (person(P), v(P) > 10)).
publish(m, m, openness(public)).
publish(h, h, openness(public)).
publish(k, k, openness(public)).
"""
TABLE = pa.table(
    {"id": list("abcdef"), "v": [20.0, None, 40.0, float("nan"), 5.0, 60.0], "c": ["x", "y", "x", "z", None, "y"]}
)


def found(text: str) -> dict[str, list[float]]:
    values = Network.from_spec(load(STUDY + text)).evaluate({"t": TABLE})
    return {name: value.vector.tolist() for name, value in values.aggregates.items()}


def test_a_value_stands_for_absent_and_unlisted_cells():
    sums = found("missing(v(P), 7). range(c(P), [x, y]). missing(c(P), y).")
    assert sums["m"] == [2 * (20 + 7 + 40 + 7 + 5 + 60)]
    assert sums["h"] == [2, 4]
    assert sums["k"] == [3]


def test_skipped_people_take_no_part_in_what_reads_the_cell():
    text = "missing(v(P), skip). range(c(P), [x, y]). missing(c(P), skip)."
    sums = found(text)
    assert sums["m"] == [2 * (20 + 40 + 5 + 60), 4]
    assert sums["h"] == [2, 2]
    assert sums["k"] == [3]
    network = Network.from_spec(load(STUDY + text))
    # Who is left out is private, so the number of contributions is too: as for any condition.
    assert not network.node("m").question.everybody
    assert network.node("m").question.moves().l2 > 199


def test_a_list_may_end_in_other():
    sums = found("missing(v(P), 7). range(c(P), [x, y | other]).")
    assert sums["h"] == [2, 2, 2]
    assert (
        Network.from_spec(load(STUDY + "missing(v(P), 7). range(c(P), [x, y | other]).")).node("h").question.size == 3
    )


def test_a_promise_that_nothing_is_absent():
    sums = found("missing(t, never). range(c(P), [x, y]).")
    assert sums["m"] == [2 * (20 + 50 + 40 + 50 + 5 + 60)]
    assert sums["h"] == [4, 2]


def test_rows_of_a_person_are_skipped_one_by_one():
    text = STUDY.replace("rows_per_person(t, 1)", "rows_per_person(t, 5)")
    network = Network.from_spec(load(text + "missing(v(P), skip). range(c(P), [x, y | other])."))
    table = pa.table({"id": ["a", "a", "b"], "v": [None, 3.0, 50.0], "c": ["x", "x", "y"]})
    assert network.evaluate({"t": table}).aggregates["m"].vector.tolist() == [106.0, 2.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("missing(v(P), 7). missing(v(P), skip). range(c(P), [x]).", "spoken of twice"),
        ("missing(v(P), 700). range(c(P), [x]).", "in its declared range"),
        ("missing(u, never). range(c(P), [x]).", "u is neither a table"),
        ("missing(v(P), 7). range(c(P), [x | 3]).", "mixture"),
    ],
)
def test_other_words_are_refused(text, said):
    with pytest.raises(InputError, match=said):
        load(STUDY + text)
