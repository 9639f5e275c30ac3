"""A column of another type than its domain is refused before anything is spent, with what to write instead."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato import Categories, Interval, Study
from sfumato.errors import SchemaError

CASES = {
    "numbers in text": (["1,5", "2,5"], (0, 9), [r"holds text", r"to_numeric", r'TRY_CAST\("a b" AS DOUBLE\)']),
    "yes and no as 1 and 0": ([0, 1], bool, [r"holds whole numbers", r"\[0, 1\]"]),
    "numbers as words": ([1, 2], ["1", "2"], [r"holds whole numbers.*declares words", r"List whole numbers"]),
    "truth values as words": ([True, False], ["no", "yes"], [r"holds truth values", r"bool in Python"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_column_of_another_type_says_what_to_write(case):
    cells, domain, sentences = CASES[case]
    table = pa.table({"a b": pa.array(cells * 50)})
    study = Study("types").table("t", table, person=None, columns={"a b": domain}, missing="never")
    study = study.promise("public", epsilon=1)
    asked = study.mean("a b", to="public") if domain == (0, 9) else study.histogram("a b", to="public")
    with pytest.raises(SchemaError) as refused:
        asked.plan(size=100).run(ledger=None)
    for sentence in (*sentences, "Nothing was spent"):
        assert refused.match(sentence)
    assert not {"VARCHAR", "BIGINT"} & set(str(refused.value).replace(",", " ").split())


def test_what_is_advised_works():
    table = pa.table({"a b": pa.array([0, 1] * 50)})
    study = Study("types").table("t", table, person=None, columns={"a b": Categories([0, 1])}, missing="never")
    assert study.promise("p", epsilon=1).histogram("a b", to="p").plan(size=100).run(ledger=None)["histogram a b"]


def test_a_code_for_absent_cells_is_no_place_for_them():
    with pytest.raises(SchemaError, match=r"-99, is made absent before"):
        Interval(0, 110, null=-99)
