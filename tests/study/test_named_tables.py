"""A run that is given tables by names tells of a name that the study does not have, and of a table that is missing."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import Study
from sfumato.errors import DataError

ROWS = {"id": [1, 2, 3], "x": [0.1, 0.2, 0.3], "y": [0.1, 0.2, 0.3]}
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "columns": dict}
NAMES = ("visits", "stays")


def planned(tables: int):
    study = Study("named")
    for name, column in list(zip(NAMES, "xy", strict=True))[:tables]:
        study = study.table(name, person="id", columns={column: (0, 1)}, missing="never")
    return study.promise("public", epsilon=1).mean("x", to="public").plan(size=3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tables", [1, 2])
def test_a_mistyped_table_is_told_with_the_nearest(kind, tables):
    table = KINDS[kind](ROWS)
    plan = planned(tables)
    for wrong in ("visit", "vists", "visitss"):
        given = {wrong: table, **({"stays": table} if tables == 2 else {})}
        with pytest.raises(DataError) as refused:
            plan.run(given, ledger=None)
        said = str(refused.value)
        assert f"no table {wrong!r} (did you mean 'visits'?)" in said
        assert "The rows of visits are missing." in said
        assert "nothing was spent" in said
    if tables == 2:
        with pytest.raises(DataError, match=r"^The rows of stays are missing\."):
            plan.run({"visits": table}, ledger=None)


def test_columns_by_name_are_the_one_table():
    for columns in (ROWS, dict(pd.DataFrame(ROWS)), {name: pa.array(cells) for name, cells in ROWS.items()}):
        assert len(planned(1).run(columns, ledger=None)["mean x"]) == 1
