"""Clauses keep their places, and one broken clause hides no other."""

from __future__ import annotations

import pytest

from sfumato.lang.reader import LONGEST_CLAUSE, LONGEST_TEXT, MOST_NESTED, MOST_OPERATORS, goals, read
from sfumato.lang.term import Compound, Number, Position, Text, show, walk


def test_places_are_those_of_the_text():
    text = "% a comment. with a stop\n/* b. */  a(X) :-\n    b(X),\n  \\+ c('d. e').\n"
    (clause,), problems = read(text, "study.pl")
    assert not problems
    assert clause.position == Position("study.pl", 2, 11)
    assert clause.text == "a(X) :-\n    b(X),\n  \\+ c('d. e')."
    places = {show(part): part.position for part in walk(clause.body) if isinstance(part, Compound)}
    assert (places["b(X)"].line, places["b(X)"].column) == (3, 5)
    assert (places["c('d. e')"].line, places["c('d. e')"].column) == (4, 6)


def test_the_arrow_of_logical_bayesian_networks():
    (clause,), problems = read("ranking(S) | grade(S,C) ← takes(S,C), not(absent(S,C)).")
    assert not problems
    assert show(clause.head) == "ranking(S) | grade(S, C)"
    assert [show(goal) for goal in goals(clause.body)] == ["takes(S, C)", "\\+ absent(S, C)"]
    takes = goals(clause.body)[0]
    assert isinstance(takes, Compound)
    assert takes.position.column == 27  # as written: the arrow is one character


def test_an_arrow_inside_quotes_keeps_its_neighbours_readable():
    (clause,), _ = read("a('x') ← b.")
    assert show(clause.head) == "a(x)"


def test_every_broken_clause_is_reported_and_the_others_are_read():
    text = "good(1).\nbad(a b).\ngood(2).\nbad(].\nf(a,,b).\nX :- a.\ngood(3)."
    clauses, problems = read(text)
    assert [show(clause.head) for clause in clauses] == ["good(1)", "good(2)", "good(3)"]
    assert [problem.position.line for problem in problems] == [2, 4, 5, 6]
    assert all(problem.code == "syntax" and problem.way_out and problem.clause for problem in problems)


def test_a_syntax_problem_points_at_its_column():
    _, (problem,) = read("random(age(P)) :-\n   patient(P) drug(D).")
    assert (problem.position.line, problem.position.column) == (2, 15)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("a(1)", "does not end"),
        ("a('x", "never closed"),
        ("/* a", "never closed"),
        ("a({x}).", "braces"),
        ("f(a.", "partner"),
        ("f(1e999).", "too large"),
        (f"f({2**70}).", "too large"),
        ("f().", "argument is missing"),
        ("a :- .", "one side"),
        ("f('$patient_1').", "symbolic individuals"),
        ("f[x].", "followed by a list"),
        ("avg(D, avg<S>) :- s(D, S).", "not part of this language"),
        ("3.", "must start with a predicate"),
    ],
)
def test_what_cannot_be_read_is_explained(text, fragment):
    clauses, problems = read(text)
    assert not clauses
    assert fragment in problems[0].message


@pytest.mark.parametrize(
    "text",
    [
        "a" * (LONGEST_TEXT + 1),
        f"f({'a' * LONGEST_CLAUSE}).",
        "f(" * (MOST_NESTED + 1) + "a" + ")" * (MOST_NESTED + 1) + ".",
        "a :- b = " + "1+" * (MOST_OPERATORS + 1) + "1.",
        "(" * 5000,
        "[" * 50_000 + ".",
        "- " * 300 + "1.",
    ],
)
def test_limits_are_stated(text):
    clauses, problems = read(text)
    assert not clauses
    assert len(problems) == 1


def test_numbers_are_exact():
    """ProbLog rounds its own constants to 15 decimals, which would turn δ = 1e-17 into 0."""
    (clause,), _ = read("dp(0.1234567890123456789, 1e-17).")
    assert clause.head.arguments == (Number(0.1234567890123456789), Number(1e-17))


def test_quotes_and_escapes():
    (clause,), _ = read(r"""f('it\'s', "say \"yes\"", 'a\\b').""")
    assert clause.head.arguments == (Compound("it's"), Text('say "yes"'), Compound("a\\b"))


def test_a_stop_inside_a_number_or_quote_ends_nothing():
    clauses, problems = read("f(1.5). g('a. b'). h(\"c. d\"). i(1.0e5).")
    assert not problems
    assert len(clauses) == 4


def test_powers_bind_stronger_than_products_and_signs():
    """ProbLog's own rank for ^ would read 2*x^2 as (2*x)^2: a silently wrong formula."""
    (clause,), _ = read("f(2 * x ^ 2, 2 * x ** 2, - x ^ 2, - x ** 2, 2 ^ 3 ^ 4, 1 - 2 - 3, 8 / 4 / 2, 2 + 3 * 4).")
    two, three, four, x = Number(2), Number(3), Number(4), Compound("x")

    def op(name, *parts):
        return Compound(name, parts)

    assert clause.head.arguments == (
        op("*", two, op("^", x, two)),
        op("*", two, op("**", x, two)),
        op("-", op("^", x, two)),
        op("-", op("**", x, two)),
        op("^", two, op("^", three, four)),
        op("-", op("-", Number(1), two), three),
        op("/", op("/", Number(8), four), two),
        op("+", two, op("*", three, four)),
    )


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("name", ["it{q}s", "{q}", "a{q}b c{q}d", "Or{q}"])
def test_a_doubled_quote_is_refused_with_the_way_that_is_read(name, quote):
    """What the message says to write is read, and as the name that was meant."""
    doubled, escaped = (name.format(q=written) for written in (quote * 2, f"\\{quote}"))
    clauses, (problem,) = read(f"a({quote}{doubled}{quote}).")
    assert not clauses
    assert "by doubling it" in problem.message
    assert f"\\{quote}" in problem.way_out
    (clause,), problems = read(f"a({quote}{escaped}{quote}).")
    assert not problems
    (found,) = clause.head.arguments
    assert getattr(found, "functor", getattr(found, "value", None)) == name.format(q=quote)
