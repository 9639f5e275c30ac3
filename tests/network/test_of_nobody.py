"""Whoever runs a study is told of rows that name nobody, or several people at once, and nobody else is."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from sfumato import Study
from sfumato.errors import UndeclaredCellWarning

ROWS = 400
NUMBERS = np.arange(ROWS) + 2**53


def told(identifiers) -> list[str]:
    frame = pd.DataFrame({"who": identifiers, "days": np.arange(ROWS) % 14})
    study = Study("rows").table("t", frame, person="who", columns={"days": (0, 14)}, missing="never")
    plan = study.promise("public", epsilon=1).mean("days", to="public").plan(size=ROWS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan.run(ledger=None)
    mine = [one for one in caught if one.category is UndeclaredCellWarning]
    assert all(one.filename == __file__ for one in mine)  # at the line that ran it, not at one of ours
    return [str(one.message) for one in mine]


@pytest.mark.parametrize(
    ("identifiers", "words"),
    [
        (pd.array([None, *NUMBERS[1:]], dtype="Int64"), "0.2 % of its cells are absent; rows that name nobody"),
        (["", " ", *map(str, NUMBERS[2:])], "0.5 % of its cells are blank"),
        (NUMBERS.astype(float), "told from their neighbours"),
    ],
    ids=["absent", "blank", "too large for a decimal number"],
)
def test_identifiers_that_name_nobody_or_several_are_told_of(identifiers, words):
    (sentence,) = told(identifiers)
    assert sentence.startswith("Column 'who' of t: ")
    assert words in sentence
    assert str(2**53) not in sentence  # no cell is quoted


@pytest.mark.parametrize(
    "identifiers", [NUMBERS, NUMBERS.astype(str), np.arange(ROWS).astype(float)], ids=["whole", "text", "decimal"]
)
def test_of_identifiers_that_name_one_each_nothing_is_told(identifiers):
    assert told(identifiers) == []


def test_a_day_that_cannot_be_read_is_told_of_as_a_day():
    frame = pd.DataFrame({"day": ["31.01.2022", *["2022-01-31"] * 399]})
    study = Study("days").table("t", frame, person=None, columns={"day": ("2022-01-01", "2022-12-31")})
    plan = study.promise("public", epsilon=1).mean("day", to="public").plan(size=ROWS)
    with pytest.warns(UndeclaredCellWarning, match=r"no day as ISO 8601 writes it.*count as 2022-07-0"):
        plan.run(ledger=None)
