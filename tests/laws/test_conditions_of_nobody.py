"""A condition that nobody can fulfil, by the public ranges alone, is refused before anything is planned; every other is
planned.

The conditions are drawn at random and decided by trying all that a row can hold: the ends of ranges, the numbers that
are compared with, and numbers between them. What stands for an absent cell is in the range or the list, so it adds
nothing; what is left out by `skip` fulfils nothing.
"""

from __future__ import annotations

import itertools
import operator
import random

import pyarrow as pa
import pytest

from sfumato.errors import PlanError
from sfumato.run.checking import examine_study
from sfumato.run.planning import make_plan

HEAD = """
    table(t, 't.csv', p(P) = id, [x: 0..10, k: [1, 3], g: [a, b]]). rows_per_person(t, 1). {missing}
    dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, gdp(1)). publish(q, c, o(pub)).
"""
ABSENT = ("missing(t, never).", "missing(t, skip).", "missing(x(P), 4). missing(k(P), 3). missing(g(P), b).")
WORDS = {"<": operator.lt, "=<": operator.le, ">": operator.gt, ">=": operator.ge, "=:=": operator.eq}
NUMBERS = (-1, 0, 1, 2, 3, 4, 10, 11)
ROWS = [
    {"x": x, "k": k, "g": g}
    for x, k, g in itertools.product([0, 10, *(n + part for n in range(10) for part in (0, 0.5))], (1, 3), "ab")
]


def drawn(source: random.Random, depth: int = 2):
    """(how a study writes it, its truth for a row)."""
    kind = source.choice(("test", "test", "word", "and", "and", "or", "not") if depth else ("test", "word"))
    if kind == "test":
        name, word, number = source.choice("xk"), source.choice(list(WORDS)), source.choice(NUMBERS)
        return f"{name}(P) {word} {number}", lambda row: WORDS[word](row[name], number)
    if kind == "word":
        level, same = source.choice("ab"), source.random() < 0.5
        word = "=" if same else "\\="
        return f"g(P) {word} {level}", lambda row: (row["g"] == level) == same
    one, first = drawn(source, depth - 1)
    if kind == "not":
        return f"\\+ ({one})", lambda row: not first(row)
    other, second = drawn(source, depth - 1)
    if kind == "and":
        return f"({one}, {other})", lambda row: first(row) and second(row)
    return f"({one} ; {other})", lambda row: first(row) or second(row)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("missing", ABSENT)
@pytest.mark.parametrize("start", range(0, 300, 30))
def test_what_nobody_can_fulfil_is_refused_and_nothing_else(start, missing):
    for seed in range(start, start + 30):
        written, holds = drawn(random.Random(seed))
        text = HEAD.format(missing=missing) + f"count(c, (p(P), {written}))."
        if any(map(holds, ROWS)):
            make_plan(text)
            continue
        with pytest.raises(PlanError, match=r"nobody.*Nothing was planned and nothing was spent\."):
            make_plan(text)


FORMULAS = """
    random(h(P)) :- p(P). depends(h(P), [x(P)], x(P) / 2).
    random(s(P)) :- p(P). depends(s(P), [x(P)], bernoulli(x(P) / 20)).
    random(w(P)) :- p(P). depends(w(P), [x(P)], discrete([low: 0.4, high: 0.6])).
"""


@pytest.mark.parametrize(
    ("condition", "possible"),
    [
        ("h(P) > 5.1", False),
        ("h(P) >= 5", True),
        ("s(P) =:= 2", False),
        ("s(P) =:= 1", True),
        ("w(P) = low, w(P) = high", False),
        ("w(P) = low", True),
        ("x(P) > h(P) + 20", False),
        ("x(P) > h(P) + 2", True),
        ("h(P) * h(P) < 0", False),
        ("x(P) > 9, h(P) < 1", True),  # nobody either, but not by the ranges alone
    ],
)
def test_what_is_computed_is_decided_by_its_bounds(condition, possible):
    text = HEAD.format(missing=ABSENT[2]) + FORMULAS + f"count(c, (p(P), {condition}))."
    if possible:
        assert make_plan(text).publications
        return
    with pytest.raises(PlanError, match="nobody"):
        make_plan(text)


@pytest.mark.parametrize(
    "question", ["mean(c, x(P), {goal}).", "median(c, x(P), {goal}).", "histogram(c, g(P), {goal})."]
)
def test_check_tells_it_of_every_question_at_its_line(question):
    text = HEAD.format(missing=ABSENT[0]) + question.format(goal="(p(P), x(P) > 200)")
    _, problems = examine_study(text)
    (found,) = [one for one in problems if one.severity == "error"]
    assert found.position.line == 4
    assert "x(P) > 200" in found.message
    assert "between 0 and 10" in found.message


def test_parts_that_exclude_each_other_are_named():
    text = HEAD.format(missing=ABSENT[0]) + "count(c, (p(P), x(P) > 5, g(P) = a, x(P) < 4))."
    with pytest.raises(PlanError, match=r"x\(P\) > 5 and .*x\(P\) < 4"):
        make_plan(text)


def test_another_formula_in_another_public_group_counts_too():
    """Of some people the formula reaches it, of others not."""
    text = (
        HEAD.format(missing=ABSENT[2])
        + """
        source(v, 'v.csv'). column(v, id, p(P)). column(v, w, ward(W)). relation(v, in(P, W)). public(v).
        random(h(P)) :- p(P).
        depends(h(P), [x(P)], x(P) / 2) :- p(P), not in(P, south).
        depends(h(P), [x(P)], x(P) * 2) :- p(P), in(P, south).
        count(c, (p(P), h(P) > LEAST)).
    """
    )
    wards = {"v": pa.table({"id": list(range(20)), "w": ["north", "south"] * 10})}
    assert make_plan(text.replace("LEAST", "15"), wards).publications
    with pytest.raises(PlanError, match="nobody"):
        make_plan(text.replace("LEAST", "21"), wards)
