"""Promises to whole centres, and observers inside one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from called import called
from lang.test_held import STUDY
from sfumato.core import ZCDP, ApproxDP, GaussianDP, PureDP
from sfumato.core.one_of_several import for_one_of
from sfumato.errors import InputError, PlanError, RefusedError, StudyError
from sfumato.evidence.verify_plan import verify_folder
from sfumato.lang import load
from sfumato.lang.inside import at_home
from sfumato.plan.make import make_plan
from sfumato.run.centre_part import _own_values
from sfumato.run.held_tables import check_sizes
from sfumato.run.over_centres import sharing_of
from sfumato.run.study_file import run_study

UNITS = STUDY.replace("privacy_requirement(pp(x), pats,", "privacy_requirement(pp(x), hospitals,")
UNITS += "dataset(hospitals, domain(C, centre(C))). persons_per_centre(pats, 50).\n"
INSIDE = STUDY + "privacy_requirement(own(researcher), pats, dp(2.0, 1e-5)). inside(researcher).\n"
INSIDE += "publish(ours, m, own(researcher)).\n"


@settings(max_examples=50, deadline=None)
@given(size=st.floats(1e-3, 5.0), most=st.integers(1, 10**6), delta=st.floats(1e-12, 0.1))
def test_a_group_of_so_many_keeps_the_promise(size, most, delta):
    """By each measure's own rule for groups: ε and μ are multiplied, ρ by the square; and nothing is given away."""
    assert PureDP(for_one_of(PureDP(size), most).eps * most).implies(PureDP(size))
    assert GaussianDP(for_one_of(GaussianDP(size), most).mu * most).implies(GaussianDP(size))
    assert ZCDP(for_one_of(ZCDP(size), most).rho * most**2).implies(ZCDP(size))
    together = GaussianDP(for_one_of(ApproxDP(size, delta), most).mu * most)
    assert together.implies(ApproxDP(size, delta))
    assert not GaussianDP(together.mu * 1.001).implies(ApproxDP(size, delta))


def test_a_requirement_on_centres_is_one_on_their_people():
    spec = load(UNITS)
    assert [dataset.name for dataset in spec.datasets] == ["pats"]
    assert spec.requirements[0].guarantee == for_one_of(ApproxDP(1.0, 1e-5), 50).under(spec.datasets[0].adjacency)
    plan, alone = make_plan(UNITS, sizes={"pats": 100}), make_plan(STUDY, sizes={"pats": 100})
    assert plan.draws[0].scale > 40 * alone.draws[0].scale
    assert any("whole centres: (1, 1e-05)-DP" in text for text in plan.assumptions)


def test_nobody_promises_a_centre_what_he_cannot_check():
    """A party with all rows cannot tell whose they are; a centre with more people than was said stays away."""
    assert sharing_of(make_plan(UNITS + "trusted(registry).\n")) is not None
    check_sizes(load(UNITS), {"pats": 50})
    with pytest.raises(RefusedError, match="more than 50"):
        check_sizes(load(UNITS), {"pats": 51})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("persons_per_centre(pats, 50).", "", "how many of pats"),
        ("persons_per_centre(pats, 50).", "persons_per_centre(pats, 0).", "at least one"),
        ("persons_per_centre", "adjacency(pats, add_remove). persons_per_centre", "one is replaced"),
        ("dp(1.0, 1e-5)", "renyi_dp(2, 1)", r"dp\(…\), gdp"),
    ],
)
def test_what_is_missing_for_a_promise_to_centres_is_said(old, new, said):
    with pytest.raises(StudyError, match=said):
        load(UNITS.replace(old, new))


def test_inside_and_outside_are_two_releases_with_promises_of_their_own(tmp_path):
    assert [one.name for one in make_plan(INSIDE).publications] == ["mm"]
    home = make_plan(at_home(load(INSIDE), "b"))
    assert [(one.name, one.observer) for one in home.publications] == [("ours", "researcher")]
    assert sharing_of(home) is None
    values = np.random.default_rng(0).uniform(2, 8, 200)
    pq.write_table(pa.table({"id": np.arange(200), "kalium": values}), tmp_path / "b.parquet")
    (tmp_path / "study.pl").write_text(INSIDE)
    _, release = run_study(
        tmp_path / "study.pl", tmp_path, tmp_path / "out", tmp_path / "l.db", grant=True, inside="b"
    )  # fmt: skip
    assert release["ours"]["value"][0].as_py() == pytest.approx(values.mean(), abs=0.5)
    assert all(check.ok for check in verify_folder(tmp_path / "out", tmp_path / "study.pl"))


def test_a_plan_says_what_those_inside_see_and_where_it_is_planned(tmp_path):
    assert any("what researcher may see inside a centre" in text for text in make_plan(INSIDE).assumptions)
    assert not any("inside a centre" in text for text in make_plan(STUDY).assumptions)
    (tmp_path / "study.pl").write_text(INSIDE)
    told = called("plan", tmp_path / "study.pl", "--inside", "b").stdout
    assert "ours" in told
    assert "--inside b" in " ".join(told.split())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("inside(researcher)", "inside(reseacher)", "no requirement speaks"),
        ("inside(researcher).", "inside(researcher). collude([researcher, x]).", "may not collude"),
        ("own(researcher)", "own", "no requirement speaks|everyone"),
        ("centre(b).", "", "two centres|not declared"),
    ],
)
def test_what_inside_cannot_mean_is_refused(old, new, said):
    with pytest.raises(StudyError, match=said):
        load(INSIDE.replace(old, new))


def test_a_home_is_one_of_the_centres():
    with pytest.raises(InputError, match="no centre oslo"):
        at_home(load(INSIDE), "oslo")
    with pytest.raises(InputError, match="inside"):
        at_home(load(STUDY), "a")
    with pytest.raises(PlanError, match="publishes nothing"):
        make_plan(INSIDE.replace("inside(researcher).", "inside(researcher). inside(x)."))


GROUP = """
source(g, 'g.parquet'). public(g). column(g, id, p(P)). column(g, kind, kind(K)). relation(g, in(P, K)).
dataset(people, domain(P, (p(P), in(P, vip)))). sum(s, x(P), (p(P), in(P, vip))).
"""
THINGS = """
source(who, 'w.parquet'). public(who). column(who, id, p(V)). column(who, patient, patient(P)).
relation(who, seen(V, P)). dataset(people, domain(P, patient(P))).
instance_rv(people, P, x(V)) :- seen(V, P). sum(s, x(V), p(V)).
"""
EVERYBODY = "dataset(people, domain(P, p(P))). sum(s, x(P), p(P)).\n"
WHOLE = """
centre(north). centre(south). dataset(hospitals, domain(C, centre(C))). persons_per_centre(people, 2).
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10).
privacy_requirement(hh(public), hospitals, gdp(1)). publish(o, s, hh(public)).
"""


@pytest.mark.parametrize("who", [EVERYBODY, GROUP, THINGS], ids=["everybody", "a group", "owners"])
def test_a_centre_with_more_than_was_said_stays_away_or_the_study_is_refused(who):
    """As it was: of a public group and of owners nobody was counted, and a centre of 50 took part for one of 2."""
    ids = [f"u{number}" for number in range(50)]
    tables = {
        "t": pa.table({"id": ids, "x": [1.0] * 50}),
        "g": pa.table({"id": ids, "kind": ["vip"] * 50}),
        "who": pa.table({"id": ids, "patient": [f"p{number // 2}" for number in range(50)]}),
    }
    with pytest.raises((RefusedError, StudyError), match=r"more than 2|persons_per_centre\(people, 2\)"):
        _own_values(make_plan(load(WHOLE + who), tables), tables, b"0" * 32)
