"""The engine does logic as written, exactly, within its limits, and nothing else."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress

import pytest

from sfumato.lang.arithmetic import NotANumber, evaluate
from sfumato.lang.engine import BUILTINS, EngineError, Program
from sfumato.lang.limits import LimitReached, Limits, TimeGuard
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
    return Program([(clause.head, clause.body) for clause in clauses], limits=Limits(**limits))


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
def test_endless_programs_stop_at_a_stated_limit(text):
    with pytest.raises(LimitReached) as stopped, TimeGuard(30.0):  # the engine's own limit is the one under test
        ask(text, "p", seconds=0.5)
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
        ask(text, "p", seconds=30.0)


def test_a_single_endless_step_is_interrupted():
    """Two terms of size 2^30 are compared inside one step: only the guard can end it."""
    text = "d(0, a). d(N, f(T, T)) :- N > 0, M is N - 1, d(M, T). p(x) :- d(30, T), d(30, S), T = S."
    begun = time.monotonic()
    with pytest.raises(LimitReached), TimeGuard(0.5):
        ask(text, "p", seconds=60.0)
    assert time.monotonic() - begun < 5


def forever() -> None:
    while True:
        pass


def test_the_guard_leaves_nothing_behind():
    before = threading.active_count()
    for _ in range(5):
        with pytest.raises(LimitReached), TimeGuard(0.01):
            forever()
        with TimeGuard(5.0):
            pass
    time.sleep(0.05)
    assert threading.active_count() <= before + 1
    # CPython's evaluation loop is not left on its slow path: a loop takes as long as before.
    assert sum(range(1000)) == 499500


def test_an_interruption_sent_while_another_is_handled_is_not_left_pending():
    """The step counter stops a program, and the guard's time is over before the block is left."""
    for _ in range(3):
        with pytest.raises(LimitReached), TimeGuard(0.02):
            stop_slowly()
        assert sum(1 for _ in range(10_000)) == 10_000  # a second one would come up here


def stop_slowly() -> None:
    try:
        raise LimitReached("first")
    finally:
        time.sleep(0.1)  # one long step: the guard's exception is sent during it and waits


def test_an_interruption_lost_in_a_finaliser_is_sent_again():
    class Deaf:
        def __del__(self) -> None:
            with suppress(LimitReached):
                forever()

    def work() -> None:
        Deaf()
        forever()

    with pytest.raises(LimitReached), TimeGuard(0.05):
        work()


def test_the_guard_works_in_another_thread():
    caught = []

    def work() -> None:
        try:
            with TimeGuard(0.05):
                forever()
        except LimitReached:
            caught.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert caught == [True]


def test_the_recursion_limit_is_as_it_was():
    before = sys.getrecursionlimit()
    ask(FACTS, "all")
    with pytest.raises(LimitReached):
        ask("p(X) :- p(s(X)).", "p", steps=200)
    assert sys.getrecursionlimit() == before < 10_000


def test_only_logic_is_built_in():
    """What the engine knows is the list in the documentation and two names ProbLog finds by number."""
    from sfumato.lang.engine import _Engine, _Watch

    known = set(_Engine(_Watch(Limits())).get_builtins())
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
