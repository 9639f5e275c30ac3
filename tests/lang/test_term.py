"""Terms print as text that reads back, and matching is substitution backwards."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.lang.reader import depth, read
from sfumato.lang.term import (
    Compound,
    ListTerm,
    Number,
    Position,
    Term,
    Text,
    Variable,
    is_ground,
    match,
    show,
    substitute,
    variables,
    walk,
)

X, Y = Variable("X"), Variable("Y")
names = st.sampled_from(["age", "uma", "f", "Quoted", "two words", "it's", "a\\b", "[]", "é", "is", "mod"])
leaves: st.SearchStrategy[Term] = st.one_of(
    st.integers(-(2**62), 2**62).map(Number),
    st.floats(allow_nan=False, allow_infinity=False).map(Number),
    st.sampled_from(["X", "Y", "Person", "_Any"]).map(Variable),
    names.filter(lambda name: name not in ("is", "mod", "[]")).map(Compound),
    st.text("abc \"'", max_size=4).map(Text),
)
OPERATORS = ["+", "-", "*", "/", "**", "^", "=", "<", ">=", "=:=", "is", "mod", ":", ",", ";", "//"]


def _compounds(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    return st.one_of(
        st.builds(lambda op, a, b: Compound(op, (a, b)), st.sampled_from(OPERATORS), inner, inner),
        st.builds(lambda op, a: Compound(op, (a,)), st.sampled_from(["-", "\\+"]), inner),
        st.builds(lambda name, items: Compound(name, tuple(items)), names, st.lists(inner, min_size=1, max_size=3)),
        st.lists(inner, max_size=3).map(lambda items: ListTerm(tuple(items))),
    )


terms = st.recursive(leaves, _compounds, max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(terms)
def test_what_is_shown_reads_back(term):
    clauses, problems = read(f"fact({show(term, 999)}).")
    assert not problems, problems[0].describe()
    assert clauses[0].head.arguments == (term,)


def test_parentheses_are_kept_where_they_matter():
    clauses, _ = read("f(a - (b - c), (a - b) - c, (a, b), [(a, b)], -(2), -2, - a * 2, (a :- b)).")
    shown = [show(part, 999) for part in clauses[0].head.arguments]
    assert shown == ["a - (b - c)", "a - b - c", "(a, b)", "[(a, b)]", "-(2)", "-2", "-a * 2", "(a :- b)"]


def test_positions_take_no_part_in_equality():
    assert Compound("a", (X,), Position("f", 1, 1)) == Compound("a", (X,), Position("g", 9, 9))
    assert len({Compound("a", (), Position("f", 1, 1)), Compound("a")}) == 1


@settings(max_examples=200, deadline=None)
@given(terms, leaves.filter(is_ground))
def test_matching_finds_what_was_substituted(pattern, value):
    mapping = {variable.name: value for variable in variables(pattern)}
    filled = substitute(pattern, mapping)
    assert is_ground(filled)
    assert match(pattern, filled) == mapping


@pytest.mark.parametrize(
    ("pattern", "term"),
    [
        (Compound("f", (X, X)), Compound("f", (Number(1), Number(2)))),
        (Compound("f", (X,)), Compound("g", (Number(1),))),
        (Compound("f"), Compound("f", (Number(1),))),
        (ListTerm((X,)), ListTerm((Number(1), Number(2)))),
        (Number(1), Text("1")),
    ],
)
def test_what_does_not_match(pattern, term):
    assert match(pattern, term) is None


def test_the_underscore_matches_twice():
    assert match(Compound("f", (Variable("_"), Variable("_"))), Compound("f", (Number(1), Number(2)))) == {}


def test_walking_needs_no_recursion():
    term: Term = Number(0)
    for _ in range(50_000):
        term = Compound("s", (term,))
    assert sum(1 for _ in walk(term)) == 50_001
    assert depth(term) == 50_001
