"""A slider or a form changes one clause of a study and leaves every other character where it was."""

from __future__ import annotations

import random

import pytest

from sfumato.errors import InputError
from sfumato.lang.reader import read
from sfumato.studio.edit import AskedForm, add_publication, drop_publication, set_delta, set_epsilon, set_weight

HEAD = """% A comment with dp(9) and publish(a, b, c). in it
source(t, 'odd. name.csv').   /* publish(no, no, no). */
privacy_requirement(open(public), people, dp(1, 1e-6)). % dp(7)
privacy_requirement( care('Dr. No') , people , dp( 2.5 ) ).
mean(m, age(P), person(P)). count(c, person(P)).
publish(average, m, open(public)).  publish(many, c, open(public)).
publish(both(X), c, open(public)) :- group(X).
weight(average, 3).
"""


def test_epsilon_and_delta_are_changed_in_place():
    changed = set_epsilon(HEAD, "open(public)", 0.25)
    assert changed == HEAD.replace("dp(1, 1e-6)", "dp(0.25, 1e-6)")
    assert set_epsilon(HEAD, "care('Dr. No')", 3.0) == HEAD.replace("dp( 2.5 )", "dp(3)")
    assert set_delta(HEAD, "open(public)", 0) == HEAD.replace("dp(1, 1e-6)", "dp(1)")
    assert set_delta(HEAD, "care('Dr. No')", 1e-9) == HEAD.replace("dp( 2.5 )", "dp(2.5, 1e-09)")


def test_weights_come_and_go():
    assert set_weight(HEAD, "average", 1) == HEAD.replace("weight(average, 3).\n", "")
    assert set_weight(HEAD, "average", 0.5) == HEAD.replace("weight(average, 3)", "weight(average, 0.5)")
    assert set_weight(HEAD, "many", 2) == f"{HEAD}weight(many, 2).\n"
    assert set_weight(HEAD, "many", 1) == HEAD


def test_a_publication_is_dropped_with_its_weight_and_no_other():
    left = drop_publication(HEAD, "average")
    assert "publish(average" not in left
    assert "weight(average" not in left
    assert "publish(many, c, open(public))." in left
    assert left.startswith(HEAD[: HEAD.index("publish(average, m")])


def test_a_publication_is_added_at_the_end():
    more = add_publication(HEAD, AskedForm("howMany", "count", "", "person(P)", "open(public)"))
    assert more == f"{HEAD}count(howManyOf, person(P)).\npublish(howMany, howManyOf, open(public)).\n"
    for name in ("average", "Capital", "a b", "", "x). evil(1"):
        with pytest.raises(InputError):
            add_publication(HEAD, AskedForm(name, "count", "", "person(P)", "open(public)"))


@pytest.mark.parametrize("name", ["nobody", "open", ""])
def test_what_is_not_there_is_said(name):
    with pytest.raises(InputError, match="no privacy_requirement"):
        set_epsilon(HEAD, name, 1.0)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.by_day(12)
def test_random_changes_touch_one_clause(seed):
    """Whatever is changed, all clauses but those that are named read as before."""
    source = random.Random(seed)
    before = [clause.text for clause in read(HEAD)[0]]
    text, touched = HEAD, set()
    for _ in range(6):
        match source.randrange(4):
            case 0:
                text, mark = set_epsilon(text, "open(public)", source.uniform(0.01, 9)), "privacy_requirement(open"
            case 1:
                text, mark = set_weight(text, "average", source.choice((1, 2, 0.5))), "weight(average"
            case 2:
                text, mark = set_delta(text, "open(public)", source.choice((0, 1e-7))), "privacy_requirement(open"
            case _:
                text, mark = drop_publication(text, "many"), "publish(many"
        touched.add(mark)
    after = [clause.text for clause in read(text)[0]]
    assert not read(text)[1]
    kept = [clause for clause in before if not any(clause.startswith(mark) for mark in touched)]
    assert [clause for clause in after if not any(clause.startswith(mark) for mark in touched)] == kept
