"""Whatever somebody wishes of synthetic rows is done, or refused before anything is drawn."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import ADD_REMOVE, Categories, Interval, Schema
from sfumato.errors import SchemaError, SfumatoError
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic import measure

ROWS = 80
COLUMNS = {"x": Interval(0, 10), "a": Categories(["1", "2"]), "b": Categories(["u", "v"])}
ODD: dict[str, tuple[Any, ...]] = {
    "plan": ("tre", "", "pairs", "tree", "rounds", "Pairs"),
    "rows": (True, 0, -1, 2.0, "5", np.int64(5), np.uint8(7), 10**400, 7),
    "rows_per_person": (True, 0, 2.0, 10**400, 10**9, np.int32(2)),
    "random_state": ("5", True, 1.5, np.int64(5), -5, -(10**9), 10**40),
    "edges_share": (1.0, 1.5, 0.0, 0, -0.1, float("nan"), "0.1", True, 0.999, np.float64(0.05)),
    "workload": ("ab", ["ab"], [["a"]], [["a", "a"]], [["a", "b"]], [("x", "b")], {"a": "b"}, [["a", "c"]], []),
    "absent": ("x", "a", ["x"], ("a", "b"), {"b"}, ["y"], {"x": 1}),
    "whole": ("x", ["x"], ("a",), ["y"], {"x"}, {"x": 1}, 5),
    "edges": ("x", [], {"x": "01"}, {"x": [0, 10]}, {"x": [0, None, 10]}, {"a": [0, 1]}, {"x": (0, 5, 5, 10)}),
    "label": ("y", "", "a", "x"),
}


def spent_for_nothing(names: tuple[str, ...], wishes: dict[str, Any], patch: pytest.MonkeyPatch) -> str:
    """What was drawn before it failed; nothing, one hopes."""
    drawn = []
    original = measure.Measurer._noise
    patch.setattr(measure.Measurer, "_noise", lambda self, *given: drawn.append(self.stage) or original(self, *given))
    table = pa.table({"x": np.linspace(0, 10, ROWS), "a": ["1", "2"] * (ROWS // 2), "b": ["u", "v"] * (ROWS // 2)})
    table = table.select(names)
    people = {"people": "id"} if "rows_per_person" in wishes else {}
    if people:
        table = table.append_column("id", pa.array([f"p{at % 40}" for at in range(ROWS)]))
    try:
        wanted = SyntheticRelease(
            Schema({name: COLUMNS[name] for name in names}), 2.0, 1e-6, **{"random_state": 1, **people, **wishes}
        )
        made = wanted.release(table)
    except SfumatoError as error:
        return f"{drawn}: {error}" if drawn or "Nothing was spent" not in str(error) else ""
    if wishes.get("plan") not in (None, made.forecast.plan.name):
        return "another plan was followed"
    if made.table.num_rows != wishes.get("rows", made.table.num_rows):
        return "another number of rows was made"
    return "a seed may be published" if made.certificate.publishable else ""


@pytest.mark.parametrize("names", [("x",), ("x", "a", "b")], ids=len)
@pytest.mark.parametrize("first", ODD)
@pytest.mark.by_day(3)
def test_a_wish_is_done_or_refused_beforehand(names, first, monkeypatch):
    for value in ODD[first]:
        assert spent_for_nothing(names, {first: value}, monkeypatch) == "", (first, value)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(ODD, 2)))
def test_two_wishes_are_done_or_refused_beforehand(first, second):
    for one, other in itertools.product(ODD[first], ODD[second]):
        with pytest.MonkeyPatch.context() as patch:
            assert spent_for_nothing(("x", "a", "b"), {first: one, second: other}, patch) == "", (one, other)


def test_noise_that_tells_of_very_many_rows_makes_no_more_than_memory_holds():
    """The number of rows is protected, and is drowned in noise like everything else."""
    wanted = SyntheticRelease(Schema(COLUMNS), 1e-7, 1e-9, adjacency=ADD_REMOVE, random_state=2)
    table = {"x": [1.0] * 50, "a": ["1"] * 50, "b": ["u"] * 50}
    assert len(wanted.release(table).table["x"]) <= 1_000_000


def test_what_is_expected_of_one_column_speaks_of_no_two():
    (alone,) = SyntheticRelease(Schema({"x": COLUMNS["x"]}), 2.0, 1e-6).expected(5000)
    assert "for two" not in str(alone)
    assert alone.two_way == alone.one_way
    assert all("for two" in str(one) for one in SyntheticRelease(Schema(COLUMNS), 2.0, 1e-6).expected(5000))


@pytest.mark.parametrize(
    "wish", [{"workload": "ab"}, {"workload": ["ab"]}, {"absent": "x"}, {"absent": "ab"}], ids=repr
)
def test_a_text_is_no_list_of_letters(wish):
    with pytest.raises(SchemaError, match="Nothing was spent"):
        SyntheticRelease(Schema(COLUMNS), 2.0, 1e-6, **wish).check()


@pytest.mark.parametrize("never", [True, False])
def test_what_no_memory_holds_together_is_refused_beforehand(never):
    """Each pair is small; the model's table over all of them, beside the label, has 4 · 10^8 cells."""
    levels = [str(level) for level in range(250)]
    columns = {name: Categories(levels) for name in "abc"} | {"y": Categories(levels[:25])}
    pairs = [[*pair] for pair in itertools.combinations("abc", 2)]
    entries = [{name: ["0"] for name in pair} for pair in pairs] if never else []
    wanted = SyntheticRelease(Schema(columns, impossible=entries), 2.0, 1e-6, "y", workload=None if never else pairs)
    with pytest.raises(SchemaError, match=r"4e\+08 cells.*Nothing was spent"):
        wanted.check()
