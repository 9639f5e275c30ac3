"""Whatever a program of the language asks, the engine's work is bounded by the steps it counted, and those by a limit.

The work is counted from outside, by Python's own profiler hook: every call of a function, in whatever library. A walk
that the meter does not see shows up as calls without steps, on a busy machine as on an idle one.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest

from sfumato.lang import weighed
from sfumato.lang.engine import EngineError, Program
from sfumato.lang.limits import LimitReached, Limits, Meter
from sfumato.lang.reader import read
from sfumato.lang.term import Compound, Variable

#: Calls of functions for one step, and once for each program (its clauses are handed over and indexed).
CALLS_OF_A_STEP, CALLS_OF_A_PROGRAM = 150, 60_000
STEPS = 3_000

ATOMS = ("a", "b", "0", "1", "2", "[]")
VARIABLES = ("X", "Y", "Z", "N")
PREDICATES = ("p", "q", "r")


class TooMuch(BaseException):
    """More calls than the law allows."""


def calls_and_steps(text: str) -> tuple[int, int]:
    """What a program did, as Python saw it and as the meter counted it; the count stops where the law is broken."""
    clauses, problems = read(text)
    assert not problems, text
    meter, calls = Meter(Limits(steps=STEPS)), 0

    def seen(_frame: Any, event: str, _what: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls > 4 * (CALLS_OF_A_PROGRAM + CALLS_OF_A_STEP * (STEPS + weighed.LARGEST_TERM)):
            raise TooMuch

    program = Program([(clause.head, clause.body) for clause in clauses], empty=["q/1", "r/1"], meter=meter)
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        program.ask(Compound("p", (Variable("X"),)))
    except (LimitReached, EngineError, TooMuch):
        pass
    finally:
        sys.setprofile(before)
    return calls, meter.steps


def is_bounded(text: str) -> bool:
    calls, steps = calls_and_steps(text)
    return calls <= CALLS_OF_A_PROGRAM + CALLS_OF_A_STEP * steps


def term(chance: random.Random, depth: int = 0) -> str:
    pick = chance.random()
    if depth > 2 or pick < 0.25:
        return chance.choice(ATOMS)
    if pick < 0.65:
        return chance.choice(VARIABLES)
    inner = [term(chance, depth + 1) for _ in range(2)]
    if chance.random() < 0.3:  # the same part twice: terms that double
        inner[1] = inner[0]
    return chance.choice((f"f({inner[0]}, {inner[1]})", f"s({inner[0]})", f"[{inner[0]}|{inner[1]}]"))


def goal(chance: random.Random, depth: int = 0) -> str:
    call = f"{chance.choice(PREDICATES)}({term(chance)})"
    options = [
        call, call, call,
        f"{term(chance)} = {term(chance)}", f"{term(chance)} == {term(chance)}", f"{term(chance)} \\= {term(chance)}",
        "between(0, 9, N)", "M is 1 + 1", f"append(X, Y, {term(chance)})", f"member(X, {term(chance)})",
        f"length({term(chance)}, N)", f"sort({term(chance)}, Y)",
    ]  # fmt: skip
    if depth < 2:
        options += [f"findall(X, {goal(chance, depth + 1)}, Y)", f"\\+ {goal(chance, depth + 1)}"]
    return chance.choice(options)


def program(seed: int) -> str:
    """Three predicates that call each other with terms that grow: most of them have no end."""
    chance = random.Random(seed)
    lines = []
    for _ in range(chance.randint(2, 7)):
        head = f"{chance.choice(PREDICATES)}({term(chance)})"
        goals = ", ".join(goal(chance) for _ in range(chance.randint(0, 3)))
        lines.append(f"{head} :- {goals}." if goals else f"{head}.")
    return "\n".join([*lines, f"p({term(chance)}).", f"p(X) :- {goal(chance)}."]) + "\n"


def check(first: int, number: int) -> int:
    stopped = 0
    for seed in range(first, first + number):
        calls, steps = calls_and_steps(program(seed))
        assert calls <= CALLS_OF_A_PROGRAM + CALLS_OF_A_STEP * steps, f"seed {seed}: {calls} calls in {steps} steps"
        stopped += steps > STEPS
    return stopped


def test_work_is_counted():
    assert check(0, 60) >= 4  # the generator does reach the limit


@pytest.mark.slow
def test_work_is_counted_at_length():
    assert check(10_000, 6_000) >= 400


DOUBLED = "d(0, a). d(N, f(T, T)) :- N > 0, M is N - 1, d(M, T). "
COMPARED = DOUBLED + "p(x) :- d(15, T), d(15, S), T = S, T == S."


@pytest.mark.slow
def test_the_law_sees_a_walk_that_is_not_counted(monkeypatch):
    assert is_bounded(COMPARED)
    monkeypatch.setattr(weighed.Weighed, "with_args", weighed.logic.Term.with_args)
    monkeypatch.setattr(weighed.Weighed, "__init__", _unweighed)
    assert not is_bounded(COMPARED)


def _unweighed(self: Any, functor: Any, *args: Any, **_: Any) -> None:
    weighed.logic.Term.__init__(self, functor, *args)
    self.size, self.meter = 1, Meter(Limits(steps=10**12))
