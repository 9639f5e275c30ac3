"""Groups that a public table names (the region of a postcode) are those that a join would give."""

import numpy as np
import pandas as pd
import pytest

from sfumato import Study

LINES = """
source(places, 'places.csv'). public(places). relation(places, lies(C, R)).
column(places, code, place(C)). column(places, region, area(R)).
random(region(P)) :- person(P). range(region(P), [{regions}]).
depends(region(P), [code(P)], lookup([code(P)], Rows)) :- person(P), findall(row([C], R), lies(C, R), Rows).
mean(m, x(P), person(P), by([region(P)])). count(n, person(P), by([region(P)])).
publish(mean, m, promise(public)). publish(count, n, promise(public)).
"""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.by_day(2)
def test_the_groups_are_those_of_a_join(seed):
    generator = np.random.default_rng(seed)
    codes = generator.choice(9000, int(generator.integers(2, 12)), replace=False)
    listed = codes.tolist() if seed % 2 else [f"c{code}" for code in codes]
    regions = [f"r{number}" for number in range(int(generator.integers(2, 5)))]
    places = pd.DataFrame({"code": listed, "region": generator.choice(regions, len(listed))})
    frame = pd.DataFrame({"code": generator.choice(listed, 300), "x": generator.uniform(0, 1, 300)})
    study = (
        Study("regions")
        .table("t", frame, person=None, missing="never", columns={"code": listed, "x": (0, 1)})
        .promise("public", epsilon=1e6)
        .clauses(LINES.format(regions=", ".join(regions)))
    )
    release = study.plan(size=300, public={"places": places}).run(ledger=None)
    joined = frame.merge(places, on="code").groupby("region")["x"].agg(["mean", "size"])
    for name, column in (("count", "size"), ("mean", "mean")):
        for row in release[name].rows():
            if row["region(P)"] in joined.index:
                assert row["value"] == pytest.approx(joined.loc[row["region(P)"], column], abs=0.01)
            elif name == "count":
                assert row["value"] == pytest.approx(0, abs=0.01)
