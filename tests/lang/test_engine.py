"""The engine does logic as written, exactly, within its limits, and nothing else."""

from __future__ import annotations

import sys

import pytest

from sfumato.lang.arithmetic import NotANumber, evaluate
from sfumato.lang.engine import BUILTINS, EngineError, Program
from sfumato.lang.limits import LimitReached, Limits, Meter
from sfumato.lang.reader import read
from sfumato.lang.term import Compound, Number, Variable, show

FACTS = """
a(3). a(1). a(2). a(1). w(x, 1). w(y, 1). w(z, 0.5). tiny(1e-17).
all(L) :- findall(X, a(X), L).
weights(L) :- findall(W, w(_, W), L).
below(L) :- findall(X - M, (a(X), findall(Y, (a(Y), Y < X), M)), L).
none(L) :- findall(X, (a(X), X > 100), L).
joined(L) :- append([q], [r, s], L).
parts(X-Y) :- append(X, Y, [1, 2]).
total(S) :- findall(X, a(X), L), sum_list(L, S).
largest(M) :- findall(X, a(X), L), max_list(L, M).
unweighted(X) :- a(X), \\+ w(_, X).
either(X) :- (a(X) ; w(X, _)).
open(f(Y, Z, Y)).
symbolic(exp(-(b + 2) * 3)).
path(X, Y) :- path(X, Z), edge(Z, Y).
path(X, Y) :- edge(X, Y).
edge(1, 2). edge(2, 3). edge(3, 1).
reached(X) :- path(1, X).
nth(X) :- nth1(2, [a, b, c], X).
upside(L) :- reverse([1, 2, 3], L).
"""


def program(text: str, **limits) -> Program:
    clauses, problems = read(text)
    assert not problems
    return Program([(clause.head, clause.body) for clause in clauses], meter=Meter(Limits(**limits)))


def ask(text: str, predicate: str, **limits) -> list[str]:
    answers = program(text, **limits).ask(Compound(predicate, (Variable("X"),)))
    return [show(answer["X"], 999) for answer in answers]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("a", ["3", "1", "2"]),  # in the order of the text, each once
        ("all", ["[3, 1, 2]"]),
        ("weights", ["[1, 1, 0.5]"]),  # two solutions with the same weight stay two
        ("below", ["[3 - [1, 2], 1 - [], 2 - [1]]"]),
        ("none", ["[]"]),
        ("joined", ["[q, r, s]"]),
        ("parts", ["[] - [1, 2]", "[1] - [2]", "[1, 2] - []"]),
        ("total", ["6"]),
        ("largest", ["3"]),
        ("unweighted", ["3", "2"]),
        ("either", ["3", "1", "2", "x", "y", "z"]),
        ("symbolic", ["exp(-(b + 2) * 3)"]),
        ("reached", ["2", "3", "1"]),  # left recursion ends
        ("nth", ["b"]),
        ("upside", ["[3, 2, 1]"]),
        ("tiny", ["1e-17"]),
    ],
)
def test_answers(predicate, expected):
    found = ask(FACTS, predicate)
    assert sorted(found) == sorted(expected) if predicate == "reached" else found == expected


def test_open_variables_stay_open_and_equal_ones_equal():
    (answer,) = program(FACTS).ask(Compound("open", (Variable("X"),)))
    value = answer["X"]
    assert isinstance(value, Compound)
    assert value.arguments[0] == value.arguments[2] != value.arguments[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p(X) :- X is Y + 1.", "unbound"),
        ("p(X) :- X is 1 / 0.", "no value"),
        ("p(X) :- X is 9 ** 60 * 9 ** 60.", "too large"),
        ("p(X) :- X is (9 ** 60) ** (9 ** 60).", "too large"),
        ("p(X) :- X is foo + 1.", "not a number"),
        ("p(x) :- \\+ q. q :- \\+ r. r :- q.", "Negative cycle"),
        ("p(X) :- between(1, 1000000000, X).", "limited"),
        ("p(L) :- length(L, 3).", "list"),
        ("p(X) :- X = f(X).", "Infinite"),
    ],
)
def test_what_has_no_answer_is_said_and_the_program_lives_on(text, reason):
    made = program(text + " fine(1).")
    with pytest.raises(EngineError, match=reason):
        made.ask(Compound("p", (Variable("X"),)))
    assert made.ask(Compound("fine", (Variable("X"),))) == [{"X": Number(1)}]


@pytest.mark.parametrize(
    "text",
    [
        "p(X) :- p(s(X)).",
        "p(z). p(s(X)) :- p(X).",
        "p(X) :- q(f(X, X)). q(X) :- p(X).",
        "b(0). b(1). p(A-B-C-D-E-F-G-H-I-J-K-L) :- " + ", ".join(f"b({v})" for v in "ABCDEFGHIJKL") + ".",
    ],
)
@pytest.mark.by_day(1)
def test_endless_programs_stop_at_a_stated_limit(text):
    with pytest.raises(LimitReached, match="100000 steps") as stopped:
        ask(text, "p", steps=100_000)
    assert stopped.value.predicate in {"p", "q", "b"}


@pytest.mark.parametrize(
    ("limits", "text", "reason"),
    [
        ({"steps": 50}, "p(X) :- p(s(X)).", "50 steps"),
        ({"depth": 20}, "p(X) :- p(s(X)).", "20 deep"),
        ({"answers": 3}, "p(1). p(2). p(3). p(4).", "3 answers"),
        ({"term_size": 5}, "p([1, 2, 3, 4, 5, 6]).", "too large"),
    ],
)
def test_each_limit(limits, text, reason):
    with pytest.raises(LimitReached, match=reason):
        ask(text, "p", **limits)


def test_answers_are_shallow_enough_for_recursion():
    text = "s(0, y). s(N, y + T) :- N > 0, M is N - 1, s(M, T). p(T) :- s(300, T)."
    with pytest.raises(LimitReached, match="nested"):
        ask(text, "p")


#: A term of 2^60 nodes made of 60 objects: whoever walks it never comes back.
DOUBLED = "d(0, a). d(N, f(T, T)) :- N > 0, M is N - 1, d(M, T). "


@pytest.mark.parametrize(
    "text",
    [
        DOUBLED + "p(x) :- d(60, T), d(60, S), T = S.",
        DOUBLED + "p(x) :- d(60, T), d(60, S), T == S.",
        DOUBLED + "p(T) :- d(60, T).",
        DOUBLED + "p(x) :- findall(T, d(60, T), L), sort(L, M), length(M, 1).",
        "d(0, X, X). d(N, X, T) :- N > 0, M is N - 1, d(M, f(X, X), T). p(x) :- d(60, Y, T), d(60, Z, S), T = S.",
    ],
)
@pytest.mark.by_day(1)
def test_a_term_too_large_to_walk_is_refused_where_it_is_made(text):
    with pytest.raises(LimitReached, match=r"200000 parts|600000 steps") as stopped:
        ask(text, "p")
    assert stopped.value.predicate == "d"


def test_terms_that_double_inside_one_unification_are_refused():
    """The textbook's exponential unification: forty equations between small terms."""
    names = range(1, 41)
    left = ", ".join([f"X{i}" for i in names] + [f"Y{i}" for i in names] + ["X40"])
    right = ", ".join([f"g(X{i - 1}, X{i - 1})" for i in names] + [f"g(Y{i - 1}, Y{i - 1})" for i in names] + ["Y40"])
    with pytest.raises(LimitReached, match=r"200000 parts|steps"):
        ask(f"p(x) :- f({left}) = f({right}).", "p")


def test_long_lists_of_ground_terms_cost_what_they_take():
    """A thousand rows joined: nothing grows, so nothing is refused."""
    text = "a(0, []). a(N, [N|T]) :- N > 0, M is N - 1, a(M, T). p(S) :- a(1000, L), sum_list(L, S)."
    assert ask(text, "p") == ["500500"]


def test_several_programs_share_one_meter():
    meter = Meter(Limits(steps=500))
    clauses, _ = read("p(1).")

    def ask_often() -> None:
        for _ in range(500):
            program = Program([(clause.head, clause.body) for clause in clauses], meter=meter)
            program.ask(Compound("p", (Variable("X"),)))

    with pytest.raises(LimitReached):
        ask_often()
    assert meter.spent


def test_the_recursion_limit_is_as_it_was():
    before = sys.getrecursionlimit()
    ask(FACTS, "all")
    with pytest.raises(LimitReached):
        ask("p(X) :- p(s(X)).", "p", steps=200)
    assert sys.getrecursionlimit() == before < 10_000


def test_only_logic_is_built_in():
    """What the engine knows is the list in the documentation and two names ProbLog finds by number."""
    from sfumato.lang.engine import _Engine

    known = set(_Engine(Meter(Limits())).get_builtins())
    assert known == set(BUILTINS) | {"all/3", "all_or_none/3"}
    assert not known & {"consult/1", "use_module/1", "write/1", "call/1", "assertz/1", "nb_setval/2", "cmd_args/1"}


def test_special_names_of_problog_are_ordinary_here():
    assert ask("query(1). query(2). evidence(x, true). p(X) :- query(X).", "p") == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "value"), [("2 + 3 * 4", 14), ("2 ** 10", 1024), ("7 mod 3", 1), ("min(2, 1.5)", 1.5)]
)
def test_arithmetic(text, value):
    (clause,), _ = read(f"f({text}).")
    assert evaluate(clause.head.arguments[0]) == value


def test_arithmetic_is_bounded():
    (clause,), _ = read("f(9 ** 19).")
    assert evaluate(clause.head.arguments[0]) == 9**19
    (clause,), _ = read("f(9 ** 21).")
    with pytest.raises(NotANumber):
        evaluate(clause.head.arguments[0])
