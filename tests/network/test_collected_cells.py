"""`[a, b | other]` says what stands for an unlisted cell: whoever runs the study is not asked to say it again.

Which cells are told of is compared with the cells themselves, counted in plain Python.
"""

import random
import warnings

import pyarrow as pa
import pytest

from sfumato import make_plan
from sfumato.errors import UndeclaredCellWarning
from sfumato.run.study import run_plan

LISTED = ["007", "010", "0100"]
STUDY = """
table(stays, 'stays.parquet', person(P) = id, [code = 'Code': RANGE]).
rows_per_person(stays, 1). missing(stays, never).
dataset(people, domain(P, person(P))).
privacy_requirement(openness(public), people, dp(1)).
histogram(codes, code(P), person(P)).
publish(codes, codes, openness(public)).
"""


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.by_day(6)
def test_only_cells_that_the_list_does_not_speak_of_are_told(seed, tmp_path):
    draw = random.Random(seed)
    absent, unlisted, collected = draw.random() < 0.5, draw.random() < 0.7, draw.random() < 0.7
    pool = [*LISTED, *(["zzz", "099"] if unlisted else []), *([None] if absent else [])]
    cells = [*pool, *draw.choices(pool, k=200)]
    study = STUDY.replace("RANGE", "['007', '010', '0100' | sonst]" if collected else "['007', '010', '0100']")
    table = pa.table({"id": [str(place) for place in range(len(cells))], "Code": pa.array(cells, pa.string())})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_plan(make_plan(study), {"stays": table}, tmp_path / "ledger.db", grant=True)
    told = [str(one.message) for one in caught if issubclass(one.category, UndeclaredCellWarning)]
    assert bool(told) == (absent or (unlisted and not collected)), told
    if told:
        assert ("absent" in told[0]) == absent
        assert ("not in its list" in told[0]) == (unlisted and not collected)
