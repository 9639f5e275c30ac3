"""holds/2: one table a centre is one table of the study."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import SchemaError, StudyError
from sfumato.lang import load
from sfumato.plan.make import make_plan
from sfumato.run.study import run_plan

STUDY = """
source(pa, 'a.parquet'). source(pb, 'b.parquet').
column(pa, id, patient(P)). column(pa, kalium, kalium(P)).
column(pb, id, patient(Q)). column(pb, kalium, kalium(Q)).
rows_per_person(pb, 1). missing(pa, never). missing(pb, never).
centre(a). centre(b). holds(a, pa). holds(b, pb).
random(kalium(P)) :- patient(P). range(kalium(P), 2, 8).
dataset(pats, domain(P, patient(P))).
privacy_requirement(pp(x), pats, dp(1.0, 1e-5)).
mean(m, kalium(P), patient(P)).
publish(mm, m, pp(x)).
"""


def test_the_parts_are_one_table():
    spec = load(STUDY)
    assert [source.table for source in spec.sources] == ["pa"]
    assert {(part.table, part.centre, part.source.path) for part in spec.parts} == {
        ("pa", "a", "a.parquet"),
        ("pa", "b", "b.parquet"),
    }
    assert {column.table for column in spec.columns} == {"pa"}
    assert {one.table for one in spec.holds} == {"pa"}


def test_a_trusted_party_reads_all_parts(tmp_path):
    values = np.random.default_rng(0).uniform(2, 8, 400)
    for name, start in (("a", 0), ("b", 200)):
        rows = {"id": np.arange(start, start + 200), "kalium": values[start : start + 200]}
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    plan = make_plan(STUDY.replace("dp(1.0, 1e-5)", "dp(1000)") + "trusted(registry).\n")
    found = run_plan(plan, tmp_path, None, random_state=0)
    assert found["mm"]["value"][0].as_py() == pytest.approx(values.mean(), abs=1e-3)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("column(pb, kalium, kalium(Q)).", "", "b holds no table with the columns of pa"),
        ("rows_per_person(pb, 1).", "rows_per_person(pb, 1). rows_per_person(pa, 2).", "treat several rows"),
        ("holds(b, pb).", "holds(b, pb). source(pc, 'c.parquet'). holds(b, pc). column(pc, id, patient(P)). "
         "column(pc, kalium, kalium(P)).", "of the same columns"),
        ("missing(pb, never).", "", "absent or unreadable"),
        ("missing(pb, never).", "missing(pb, skip).", "absent or unreadable"),
        ("centre(b).", "", "not declared"),
        ("centre(b).", "centre(b). public(pa).", "part of a table that centres hold is public: pa"),
        ("centre(b).", "centre(b). public(pb).", r"Take public\(pb\)\. out"),
        ("centre(b).", "public(pb). centre(b). public(pa).", "holds line"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(old, new, said):
    with pytest.raises(StudyError, match=said):
        load(STUDY.replace(old, new))


@pytest.mark.parametrize("bad", ["colluders(-1).", "absences(0.5).", "trusted(X).", "colluders(few)."])
def test_what_centres_may_do_is_a_number(bad):
    with pytest.raises(StudyError):
        load(STUDY + bad)


@pytest.mark.parametrize("held", ["holds(a, t). holds(b, t).", ""])
def test_people_whom_only_a_public_table_names_are_not_counted_at_every_centre(held):
    text = f"""
    source(t, 't.csv'). public(t). column(t, id, patient(P)). column(t, kalium, kalium(P)). rows_per_person(t, 1).
    missing(t, never). centre(a). centre(b). {held} random(kalium(P)) :- patient(P). range(kalium(P), 2, 8).
    dataset(pats, domain(P, patient(P))). privacy_requirement(pp(x), pats, dp(1.0, 1e-5)).
    mean(m, kalium(P), patient(P)). publish(mm, m, pp(x)).
    """
    with pytest.raises(SchemaError, match="every centre would count all of them"):
        make_plan(text, {"t": pa.table({"id": ["1"], "kalium": [3.0]})})
