"""Listed whole numbers are told apart, or refused: those up to 2⁵³ are counted exactly, those beyond are words.

From 2⁵³ on a decimal number no longer tells a whole number from the next, and cells are read as such: of [2⁵³, 2⁵³ + 1]
all were counted as the first.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from sfumato import Categories, Study
from sfumato.errors import SfumatoError, StudyError
from sfumato.lang.load import examine
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

STUDY = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1).
column(t, k, k(P)). random(k(P)) :- p(P). range(k(P), {listed}). missing(k(P), never).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(60)).
histogram(h, k(P), p(P)). publish(a, h, o(pub)).
"""
LIMIT = 2**53


def counted(listed: str, column: pa.Array) -> list[float]:
    table = pa.table({"id": list(range(len(column))), "k": column})
    release = run_plan(make_plan(STUDY.format(listed=listed)), {"t": table}, None, random_state=1)
    return release["a"]["value"].to_pylist()


def neighbours(seed: int) -> tuple[int, int]:
    """Two whole numbers next to each other, anywhere up to 2⁶⁴ and at the limit itself."""
    source = random.Random(seed)
    near = [LIMIT + place for place in range(-2, 2)]
    size = source.choice((*near, 2 ** source.randint(3, 62), 3 * 2 ** source.randint(2, 60)))
    first = source.choice((-1, 1)) * size
    return min(first, first + 1), max(first, first + 1)


@pytest.mark.by_day(12)
@pytest.mark.parametrize("seed", range(60))
def test_neighbours_are_told_apart_or_refused(seed):
    pair = neighbours(seed)
    listed = f"[{pair[0]}, {pair[1]}]"
    if max(map(abs, pair)) < LIMIT:
        assert counted(listed, pa.array([pair[0]] * 10 + [pair[1]] * 90)) == pytest.approx([10, 90], abs=2)
        return
    found = [one for one in examine(STUDY.format(listed=listed))[1] if one.severity == "error"]
    assert "told from the next" in found[0].message
    words = f"['{pair[0]}', '{pair[1]}']"  # the way out that it tells
    assert counted(words, pa.array([str(pair[0])] * 10 + [str(pair[1])] * 90)) == pytest.approx([10, 90], abs=2)


@pytest.mark.parametrize("listed", [f"[1, {LIMIT} | 0]", f"[0 | {LIMIT}]", f"[{-LIMIT}]"])
def test_every_place_of_a_list_is_looked_at(listed):
    with pytest.raises(StudyError, match="told from the next"):
        make_plan(STUDY.format(listed=listed))


def test_a_study_in_python_is_told_too():
    study = Study("Codes").table(
        "t", pa.table({"k": [LIMIT, LIMIT + 1]}), person=None, columns={"k": Categories([LIMIT, LIMIT + 1])}
    )
    with pytest.raises(SfumatoError, match="told from the next"):
        study.promise("public", epsilon=1).histogram("k", to="public").plan()
