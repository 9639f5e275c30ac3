"""A study states wishes: whatever it writes, no file is opened, nothing is run, nothing is changed."""

from __future__ import annotations

import builtins
import os
import subprocess

import pytest

from sfumato.lang import examine

ACTS = [
    "consult('evil.pl')",
    "use_module(library(lists))",
    "use_module('evil.py')",
    "assertz(patient(x))",
    "retract(patient(uma))",
    "write(uma)",
    "nl",
    "halt",
    "call(patient(P))",
    "once(patient(P))",
    "open('file', write, S)",
    "shell('ls')",
    "cmd_args(A)",
    "P =.. [patient, uma]",
    "subquery(patient(P), X)",
    "clause(patient(P), B)",
    "db_import('file.db')",
    "forall(patient(P), patient(P))",
]


@pytest.mark.parametrize("goal", ACTS)
@pytest.mark.parametrize("around", ["{}", "\\+ {}", "findall(Q, {}, L)", "(patient(P) ; {})"])
def test_acts_are_refused_by_name_and_place(goal, around):
    text = "patient(uma).\nrandom(age(P)) :- patient(P),\n  " + around.format(goal) + "."
    _, problems = examine(text)
    refused = [problem for problem in problems if problem.code == "refused"]
    assert refused, [problem.describe() for problem in problems]
    assert refused[0].position.line == 3
    assert refused[0].way_out


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a :- b, !.\nb.", "cut"),
        ("a :- (b -> c ; d).\nb. c. d.", "if-then-else"),
        ("0.3::a.", "bernoulli"),
        ("0.3::a; 0.7::b.", "bernoulli"),
        (":- use_module(library(lists)).", "directives"),
        (":- initialization(main).", "directives"),
        ("a --> b.", "grammar"),
        ("a :- X = 1, X.", "variable X"),
        ("a :- findall(X, X, L), b(L). b([]).", "variable X"),
        ("a :- 3.", "3 stands where"),
        ("X = 1.", "="),
        ("a, b :- c. c.", "one predicate"),
        ("findall(X, Y, Z) :- a. a.", "built in"),
        ("'_directive' :- a. a.", "cannot be called"),
        ("a :- mean(m, x, y).", "aggregate"),
    ],
)
def test_unsupported_prolog_is_refused_by_name(text, named):
    _, problems = examine(text)
    errors = [problem for problem in problems if problem.severity == "error"]
    assert any(named in problem.message + problem.way_out for problem in errors), [p.describe() for p in problems]


def test_nothing_is_opened_or_started(monkeypatch, tmp_path):
    """Even when the checks are off and the engine is asked directly, nothing of the world is reachable."""
    from sfumato.lang.engine import EngineError, Program
    from sfumato.lang.reader import read
    from sfumato.lang.term import Compound

    examine("patient(uma).\nrandom(age(P)) :- patient(P).")  # imports are done, and open files from here on are ours
    (tmp_path / "evil.pl").write_text("secret(1).")
    for module, name in ((builtins, "open"), (os, "system"), (os, "popen"), (subprocess, "Popen")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("the world was touched"))
    for goal in ACTS:
        clauses, problems = read(f"p :- {goal.replace('evil.pl', str(tmp_path / 'evil.pl'))}.")
        assert not problems
        program = Program([(clause.head, clause.body) for clause in clauses])
        with pytest.raises(EngineError):
            program.ask(Compound("p"))


def test_no_escape_sequence_reaches_a_terminal():
    _, problems = examine("a :- 'b\x1b[2J\x07'(X).\nc :- '\x1b]0;title\x07'.")
    text = "\n".join(problem.describe() for problem in problems)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_study_cannot_pose_as_a_symbolic_individual():
    _, problems = examine("random(age('$patient_1')).")
    assert [problem.code for problem in problems] == ["syntax"]
