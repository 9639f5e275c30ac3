"""Whatever stands in the place of an argument, a study answers in its own words, at the caller's line, or is planned.

Every call with every one of its arguments replaced by odd values, one at a time: no error of Python's own comes.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from sfumato import REPLACE_ONE, ApproxDP, Certificate, Gaussian, Interval, Study, load
from sfumato.errors import SfumatoError

FRAME = pd.DataFrame({"id": np.arange(60), "x": np.arange(60.0), "y": np.arange(60.0) / 2, "c": ["a", "b"] * 30})
TABLE = {
    "person": "id",
    "rows_per_person": 2,
    "missing": None,
    "columns": {"x": (0, 60), "y": (0, 30), "c": ["a", "b"]},
}
PROMISE = {"epsilon": 1.0, "delta": 1e-6}
CALLS = {
    "count": {"by": "c", "where": "x > 3", "weight": 2, "within": 3},
    "sum": {"subject": "x", "by": "c", "where": "x > 3", "weight": 2, "within": 3},
    "mean": {"subject": "x", "by": {"y": [3, 9]}, "where": "c == 'a'", "weight": 2, "within": 3},
    "histogram": {"subject": "x", "edges": [0, 10, 60], "where": "x > 3", "weight": 2},
    "quantiles": {"subject": "x", "numbers": [0.25, 0.5], "by": "c", "within": 1.0},
    "median": {"subject": "x", "by": "c"},
    "variance": {"subject": "x", "by": "c"},
    "correlation": {"subject": ["x", "y"]},
    "marginals": {"subject": ["c", "x"], "k": 2, "edges": {"x": [0, 10, 60]}},
    "derive": {"subject": "z", "formula": "x + y", "low": 0, "high": 90},
}
ODD = {
    **{"None": None, "a word": "ab", "a pair": (0, 1), "pairs": [(0, 40), (30, 105)], "a dict": {"q": 1}, "empty": []},
    **{"true": True, "nan": float("nan"), "infinity": float("inf"), "below": -1, "huge": 10**400, "bytes": b"x"},
    **{"nested": [[[1]]], "an object": object(), "a type": int, "an array": np.arange(3.0)},
    **{"complex": 1j, "falling": [0.9, 0.1], "texts": ["x", "nobody"], "numpy": np.float32(0.5), "a frame": FRAME},
    **{"a set": {1, 2}, "an interval": Interval(0, 1), "a decimal": Decimal("0.5")},
}


def asked(method: str, arguments: dict, table: dict, promise: dict, size) -> None:
    study = Study("Odd").table("t", FRAME, **table).promise("public", **promise)
    given = dict(arguments)
    first = [given.pop("subject")] if "subject" in given else []
    to = {} if method == "derive" else {"to": "public"}
    study = getattr(study, method)(*first, **given, **to)
    if method == "derive":
        study = study.mean("z", to="public")
    study.plan(size=size)


def places() -> list[tuple[str, str, str]]:
    found = [(method, "call", name) for method, arguments in CALLS.items() for name in arguments]
    found += [("mean", "table", name) for name in TABLE] + [("mean", "promise", name) for name in PROMISE]
    return [*found, ("mean", "plan", "size")]


CASES = [(*place, odd) for place in places() for odd in ODD]


def in_words(method: str, of: str, name: str, odd: str) -> None:
    call, table, promise, size = CALLS[method], TABLE, PROMISE, 60
    match of:
        case "call":
            call = {**call, name: ODD[odd]}
        case "table":
            table = {**table, name: ODD[odd]}
        case "promise":
            promise = {**promise, name: ODD[odd]}
        case _:
            size = ODD[odd]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(SfumatoError):
            asked(method, call, table, promise, size)


@pytest.mark.by_day(120)
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_no_error_of_pythons_own_comes_through(case):
    in_words(*case)


def test_an_error_of_pythons_own_is_found(monkeypatch):
    """Planted: the method as it was before errors were told in words."""
    for method in ("ask", "correlation"):
        monkeypatch.setattr(Study, method, getattr(Study, method).__wrapped__)
    with pytest.raises(TypeError):
        in_words("correlation", "call", "subject", "true")


@pytest.mark.parametrize("half", ["\ud800", "a\udc80", "\udfff b"])
@pytest.mark.parametrize("place", ["title", "table", "reader", "name", "subject", "text"])
def test_half_a_character_is_refused_in_words(place, half):
    """A lone surrogate, as os.listdir gives for odd file names, can be written to no file."""
    said = {"title": "t", "table": "t", "reader": "public", "name": "average"} | {place: half}
    frame = pd.DataFrame({"x": [1.0] * 20})

    def planned() -> None:
        if place == "subject":
            noise = Gaussian.for_guarantee(ApproxDP(1.0, 1e-6), 1.0, REPLACE_ONE)
            Certificate.issue(subject=half, events=[noise.event()], proofs=[noise.proof])
        if place == "text":
            load(f"patient('{half}'). random(age(P)) :- patient(P).")
        study = Study(said["title"]).table(said["table"], frame, person=None, missing="never", columns={"x": (0, 9)})
        study = study.promise(said["reader"], epsilon=1, delta=1e-6)
        study.mean("x", name=said["name"], to=said["reader"]).plan(size=20)

    with pytest.raises(SfumatoError) as refused:
        planned()
    str(refused.value).encode("utf-8", "backslashreplace")
