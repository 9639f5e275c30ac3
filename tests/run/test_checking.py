"""What `check` passes, `plan` plans: refusals of the planner are said by `check`, with their place and a way out."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.errors import SfumatoError
from sfumato.lang.deadline import LONGEST_PLAN, check_time, planning
from sfumato.plan.individual_part import MOST_SEEN
from sfumato.run.checking import examine_study
from sfumato.run.planning import make_plan

HEAD = """
source(items, 'items.parquet').
column(items, id, item(I)). missing(items, never).
rows_per_person(items, 1).
column(items, x, x(I)).
column(items, z, z(I)).
random(x(I)) :- item(I). random(z(I)) :- item(I).
range(x(I), 0.01, 1). range(z(I), -1, 1).
dataset(all, domain(I, item(I))).
privacy_requirement(openness(public), all, dp(2, 0.00001)).
"""
SEEN = "dp_rv(openness(public), o(I)) :- item(I).\n"
CHAIN = "random(n0(I)) :- item(I). depends(n0(I), [z(I)], 30 * z(I)).\n" + "".join(
    f"random(n{i}(I)) :- item(I). depends(n{i}(I), [n{i - 1}(I)], n{i - 1}(I) * n{i - 1}(I)).\n" for i in range(1, 9)
)
REFUSED = {
    "a root of what may be negative": (
        "random(o(I)) :- item(I). depends(o(I), [z(I)], sqrt(z(I))).\n" + SEEN,
        "o(I): a square root of a value that can be negative",
    ),
    "a sum of it": (
        "random(o(I)) :- item(I). depends(o(I), [z(I)], log(z(I))). sum(s, o(I), item(I)).\n"
        "publish(q, s, openness(public)).\n",
        "bounded contributions",
    ),
    "numbers beyond all scales": (CHAIN + "dp_rv(openness(public), n7(I)) :- item(I).\n", "nothing beyond 1e+100"),
    "numbers beyond all floats": (
        CHAIN + "dp_rv(openness(public), n8(I)) :- item(I).\n",
        "n8(I): a value can be too large for a number",
    ),
    "the mean of a constant": (
        "random(o(I)) :- item(I). depends(o(I), [z(I)], 0.0 * z(I)). mean(m, o(I), (item(I), x(I) > 0.5)).\n"
        "publish(q, m, openness(public)).\n",
        "the same number whatever the data are",
    ),
    "a use that is singular": ("publish(c, channel(z(I), [inverse]), openness(public)).\n", "singular inside"),
    "a mean over nothing": (
        "random(o(I)) :- item(I). depends(o(I), L, mean(L)) :- findall(y(I, K), kind(K), L). kind(K) :- fail.\n"
        "random(y(I, K)) :- item(I), kind(K). depends(y(I, K), [], 1).\n" + SEEN,
        "mean of an empty list",
    ),
    "too many numbers of one individual": (
        f"random(y(I, K)) :- item(I), between(1, {MOST_SEEN + 1}, K). depends(y(I, K), [x(I)], K * x(I)).\n"
        f"dp_rv(openness(public), y(I, K)) :- item(I), between(1, {MOST_SEEN + 1}, K).\n",
        f"no more than {MOST_SEEN} are planned",
    ),
    "central noise forbidden": (
        "mean(m, z(I), (item(I), x(I) > 0.5)). publish(q, m, openness(public)). forbid(q, central).\n",
        "leaves no way",
    ),
    "one variable from two tables": (
        "source(more, 'more.parquet'). column(more, id, item(I)). column(more, x, x(I)). rows_per_person(more, 1).\n"
        "mean(m, x(I), item(I)). publish(q, m, openness(public)).\n",
        "is read from x of items and from x of more",
    ),
    "two individuals in a row": (
        "column(items, owner, owner(O)). dataset(owners, domain(O, owner(O))).\n"
        "privacy_requirement(openness(city), owners, dp(1)). count(c, owner(O)). publish(q, c, openness(city)).\n"
        "mean(m, x(I), item(I)). publish(r, m, openness(public)).\n",
        "belong to several individuals",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.by_day(2)
def test_what_cannot_be_planned_does_not_pass(name):
    more, piece = REFUSED[name]
    with pytest.raises(SfumatoError):
        make_plan(HEAD + more)
    spec, problems = examine_study(HEAD + more)
    assert spec is not None
    errors = [one for one in problems if one.severity == "error"]
    assert any(piece in one.message for one in errors), [one.message for one in errors]
    assert not any("Nothing was" in one.message for one in errors)


def test_nothing_published_is_nothing_to_plan():
    _, problems = examine_study("patient(uma). random(age(P)) :- patient(P).\n")
    assert any("publishes nothing" in one.message for one in problems if one.severity == "error")


PUBLIC = (
    HEAD
    + """
source(kinds, 'kinds.parquet'). column(kinds, kind, kind(K)). public(kinds).
random(y(I, K)) :- item(I), kind(K). depends(y(I, K), [x(I)], x(I) / 2).
random(o(I)) :- item(I).
depends(o(I), L, mean(L)) :- findall(y(I, K), kind(K), L).
mean(m, o(I), item(I)). publish(q, m, openness(public)).
"""
)


def test_public_tables_are_read_where_they_are_and_missed_where_not(tmp_path):
    study = tmp_path / "study.pl"
    study.write_text(PUBLIC)
    code, text = _check(study)
    assert code == 0
    assert "not-checked" in text
    assert "The study can be planned." not in text
    other = tmp_path / "data"
    other.mkdir()
    pq.write_table(pa.table({"kind": ["a", "b"]}), other / "kinds.parquet")
    code, text = _check(study, "--data", str(other))
    assert (code, "The study can be planned." in text) == (0, True)
    pq.write_table(pa.table({"kind": pa.array([], pa.string())}), tmp_path / "kinds.parquet")
    code, text = _check(study)
    assert code == 1
    assert "mean of an empty list" in text


def _check(*arguments) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *map(str, arguments)])
    return result.exit_code, result.output


def test_a_plan_that_takes_too_long_is_stopped_and_the_limit_named(monkeypatch):
    more = "random(o(I)) :- item(I). depends(o(I), [x(I)], exp(x(I))).\n" + SEEN
    with planning(0.0), pytest.raises(SfumatoError, match=f"more than {LONGEST_PLAN:g} s"):
        make_plan(HEAD + more)
    check_time("standing outside")  # no limit is left behind
    make_plan(HEAD + more)


def test_the_limits_are_documented():
    from pathlib import Path

    language = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
    assert f"| a plan | {LONGEST_PLAN:g} s of processor time; {MOST_SEEN} variables of each individual" in language


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/items.parquet", "inside the data folder"),
        ("C:/items.parquet", "inside the data folder"),
        ("~/items.parquet", "inside the data folder"),
        ("../items.parquet", "outside the data folder"),
        ("below/../../items.parquet", "outside the data folder"),
        ("items*.parquet", "several files"),
        ("item?.csv", "several files"),
        ("items.duckdb", "does not say which of its tables"),
        ("items.xlsx", "neither Parquet nor CSV"),
        ("items", "neither Parquet nor CSV"),
    ],
)
def test_a_source_that_no_run_could_read_is_refused(path, why):
    _, problems = examine_study(
        HEAD.replace("items.parquet", path) + "sum(s, x(I), item(I)). publish(q, s, openness(public))."
    )
    assert [problem.code for problem in problems if problem.severity == "error"] == ["source"]
    assert why in problems[0].message


@pytest.mark.parametrize("path", ["items.parquet", "a/b/items.csv", "below/../items.TSV", "äöü 1.CSV"])
def test_a_source_inside_the_data_folder_is_not(path):
    _, problems = examine_study(
        HEAD.replace("items.parquet", path) + "sum(s, x(I), item(I)). publish(q, s, openness(public))."
    )
    assert [problem for problem in problems if problem.severity == "error"] == []


#: Questions that no plan answers, each for a reason of its own, and some that are fine.
UNANSWERED = (
    "mean({name}, root(I), item(I)).",
    "sum({name}, inverse(I), item(I)).",
    "histogram({name}, x(I), item(I), [0, 5, 3]).",
    "histogram({name}, z(I), item(I), [0.5, 0.3, 0.1]).",
)
ANSWERED = ("mean({name}, x(I), item(I)).", "count({name}, item(I)).", "median({name}, z(I), item(I)).")


@pytest.mark.parametrize("seed", range(6))
def test_refusals_of_the_planner_are_told_at_once(seed, tmp_path):
    draw = random.Random(seed)
    bad = draw.sample(UNANSWERED, draw.randint(2, 4))
    asked = draw.sample([*bad, *ANSWERED], len(bad) + len(ANSWERED))
    lines = [
        "random(root(I)) :- item(I). depends(root(I), [z(I)], sqrt(z(I))).",
        "random(inverse(I)) :- item(I). depends(inverse(I), [z(I)], 1 / z(I)).",
        *(line.format(name=f"q{place}") for place, line in enumerate(asked)),
        *(f"publish(p{place}, q{place}, openness(public))." for place in range(len(asked))),
        *(["prefer(p0, nonsense)."] if draw.random() < 0.5 else []),
    ]
    study = tmp_path / "study.pl"
    study.write_text(HEAD + "\n".join(lines), encoding="utf-8")
    _, problems = examine_study(study)
    told = {one.position.line for one in problems if one.severity == "error"}
    above = HEAD.count("\n") + 3
    wishes = {above + 2 * len(asked)} if "prefer" in lines[-1] else set()
    assert told == {above + place for place, line in enumerate(asked) if line in bad} | wishes, problems
    assert {one.position.file for one in problems} == {"study.pl"}
    assert len(problems) == len(bad) + len(wishes)


def test_what_rests_on_a_refused_question_is_not_told_as_a_problem_of_its_own():
    text = HEAD + "histogram(h, x(I), item(I), [0.5, 0.3]).\npublish(p, h, openness(public)). weight(p, 3).\n"
    _, problems = examine_study(text)
    assert [one.code for one in problems] == ["plan"]
