"""What a study may write: logic over its own predicates, and nothing that acts on the world.

In:   clauses.
Out:  a problem, with its place, for every construct outside the language; predicates nobody defines.
Not here: the engine, which has no such builtins anyway (lang/engine.py).

Calls are allowed by a list, not refused by one: what is not a builtin below, a predicate of the library or a predicate
the study defines is refused. A goal that is a variable, or is put together at run time, would escape the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sfumato.lang.engine import BUILTINS, LIBRARY
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause, goals
from sfumato.lang.term import Compound, ListTerm, Term, Variable, indicator, show, variables, walk
from sfumato.lang.vocabulary import AGGREGATES, DECLARATIONS, STATEMENT, STATIC, STRUCTURAL

__all__ = ["called", "check_safety", "every_goal", "single_variables"]

_NAME = re.compile(r"[a-z][A-Za-z0-9_]*\Z")
#: Heads that hold goals: what they name is used.
_WITH_GOALS = {"dataset/2", *AGGREGATES}
_CONTROL = {",/2", ";/2", "\\+/1"}

#: Well-known Prolog that this language does without, and what to do instead.
_REFUSED = {
    "!": ("cut", "Write conditions that exclude each other, with \\+ where needed."),
    "->": ("if-then-else", "Write one clause for each case, with \\+ in the second."),
    "*->": ("soft cut", "Write one clause for each case."),
    "-->": ("grammar rules", "Write an ordinary clause with :- ."),
    "::": ("probabilities on clauses", "Declare a random variable and give it a CPF such as bernoulli(0.3)."),
    "@<": ("term order", "Compare numbers with < or names with \\= ."),
    "@>": ("term order", "Compare numbers with > or names with \\= ."),
    "=..": ("building goals", "Write the goal out."),
    ":": ("modules", "Call the predicate by its name."),
}
_ACTING = frozenset(
    [
        "consult",
        "use_module",
        "ensure_loaded",
        "include",
        "load_files",
        "import",
        "module",
        "initialization",
        "halt",
        "abort",
        "assert",
        "asserta",
        "assertz",
        "retract",
        "retractall",
        "abolish",
        "record",
        "recorda",
        "recorded",
        "erase",
        "write",
        "writeln",
        "writenl",
        "print",
        "nl",
        "tab",
        "put",
        "put_char",
        "format",
        "read",
        "read_term",
        "get_char",
        "open",
        "close",
        "see",
        "seen",
        "tell",
        "told",
        "debugprint",
        "error",
        "shell",
        "system",
        "exec",
        "getenv",
        "setenv",
        "cmd_args",
        "python",
        "py_call",
        "pyrun",
        "call",
        "call_nc",
        "once",
        "ignore",
        "forall",
        "apply",
        "catch",
        "throw",
        "try_call",
        "clause",
        "functor",
        "arg",
        "copy_term",
        "setof",
        "bagof",
        "aggregate",
        "subquery",
        "possible",
        "load_external",
        "call_external",
        "sample_uniform1",
        "nocache",
        "db_import",
        "sqlite_load",
        "csv_load",
        "query",
        "evidence",
        "learn",
        "state",
        "dynamic",
        "discontiguous",
        "table",
        "op",
        "set_prolog_flag",
    ]
)


def check_safety(clauses: Iterable[Clause], table_predicates: Iterable[str]) -> Iterator[Problem]:
    """Everything in the clauses that is not part of the language, and calls of predicates nobody defines."""
    clauses = tuple(clauses)
    defined = {indicator(clause.head) for clause in clauses} | set(table_predicates)
    for clause in clauses:
        yield from _head_problems(clause)
        if clause.body is not None:
            yield from _goal_problems(clause, clause.body, defined)
            yield from _single_variables(clause)
    yield from _unused(clauses)


def _used(clauses: tuple[Clause, ...]) -> set[str]:
    """The predicates that some clause calls, or names as a goal."""
    used: set[str] = set()
    for clause in clauses:
        used.update(map(indicator, called(clause.body)))
        if indicator(clause.head) in _WITH_GOALS:
            used.update(map(indicator, walk(clause.head)))
        # What the study lists decides which rows of such a column count.
        if indicator(clause.head) == "column/3" and isinstance(clause.head.arguments[2], Compound):
            used.add(indicator(clause.head.arguments[2]))
    return used


def _unused(clauses: tuple[Clause, ...]) -> Iterator[Problem]:
    """A predicate nobody calls is a misspelled declaration, or one that can go."""
    functors = {other.rpartition("/")[0] for other in DECLARATIONS}
    passed = _used(clauses).union(DECLARATIONS)
    for clause in clauses:
        name = indicator(clause.head)
        if name in passed or not _NAME.match(clause.head.functor):
            continue
        passed.add(name)
        if clause.head.functor not in functors:
            yield _defined_for_nothing(clause, name)


def _defined_for_nothing(clause: Clause, name: str) -> Problem:
    meant = nearest(name, (other for other in DECLARATIONS if other.rpartition("/")[2] == name.rpartition("/")[2]))
    return Problem(
        "error" if meant else "warning",
        "unused-predicate",
        f"{name} is defined here and nothing uses it",
        clause.position,
        clause.text,
        expected=DECLARATIONS[meant] if meant else "",
        nearest=meant,
        way_out="Correct the name if a declaration was meant; otherwise use it or remove it.",
    )


def _problem(clause: Clause, at: Term, code: str, message: str, way_out: str, **more: str | None) -> Problem:
    return Problem("error", code, message, clause.at(at), clause.text, way_out=way_out, **more)  # type: ignore[arg-type]


def _refused(head: Compound) -> tuple[str, str] | None:
    if head.functor in _REFUSED:
        return _REFUSED[head.functor]
    return _REFUSED["::"] if any(indicator(part) == "::/2" for part in head.arguments) else None


_TAKEN = frozenset((*BUILTINS, *_CONTROL))


def _head_problems(clause: Clause) -> Iterator[Problem]:
    head, name = clause.head, indicator(clause.head)
    if name == f"{STATEMENT}/2":
        return
    if name == ":-/1":
        message = "directives are not part of this language: a study states wishes and runs nothing"
        yield _problem(clause, head, "refused", message, "Remove the line.")
    elif refused := _refused(head):
        what, way_out = refused
        yield _problem(clause, head, "refused", f"{what} ({head.functor}) are not part of this language", way_out)
    elif head.functor in (",", ";"):
        message = "a clause has one predicate in front of :-"
        yield _problem(clause, head, "refused", message, "Write one clause for each predicate.")
    elif name in _TAKEN:
        yield _problem(clause, head, "refused", f"{name} is built in and cannot be redefined", "Choose another name.")
    elif not _NAME.match(head.functor):
        message = f"a predicate cannot be called {show(Compound(head.functor))}"
        yield _problem(clause, head, "name", message, "Start with a small letter; use letters, digits and underscores.")
    elif name in STATIC and clause.body is not None:
        yield _problem(
            clause,
            head,
            "conditions",
            f"{name} is a plain statement and takes no conditions",
            "Write it once for each case, without :- .",
            expected=STATIC[name],
        )
    elif name not in DECLARATIONS:
        yield from _near_declaration(clause)


def _near_declaration(clause: Clause) -> Iterator[Problem]:
    """A head that looks like a misspelled declaration, or one with another number of arguments."""
    head = clause.head
    same = sorted(name for name in DECLARATIONS if name.rpartition("/")[0] == head.functor)
    if same:
        yield _problem(
            clause,
            head,
            "arity",
            f"{head.functor} has {len(head.arguments)} arguments here",
            "Give it the arguments shown, or choose another name for a predicate of your own.",
            expected=" or ".join(DECLARATIONS[name] for name in same),
        )


def _goal_problems(clause: Clause, body: Term, defined: set[str]) -> Iterator[Problem]:
    for goal in every_goal(body):
        if isinstance(goal, Variable):
            message = f"the variable {goal.name} stands where a predicate is expected"
            yield _problem(clause, clause.head, "refused", message, "Write the predicate out.")
        elif not isinstance(goal, Compound):
            message = f"{show(goal)[:40]} stands where a predicate is expected"
            yield _problem(clause, clause.head, "refused", message, "Write a predicate, or remove it.")
        elif problem := _call_problem(clause, goal, defined):
            yield problem


def _call_problem(clause: Clause, goal: Compound, defined: set[str]) -> Problem | None:
    name = indicator(goal)
    if name not in AGGREGATES and (name in BUILTINS or name in defined or name in LIBRARY or name in STRUCTURAL):
        return None
    if goal.functor in _REFUSED:
        what, way_out = _REFUSED[goal.functor]
        return _problem(clause, goal, "refused", f"{what} ({goal.functor}) is not part of this language", way_out)
    if goal.functor in _ACTING:
        message = f"{name} is not part of this language: a study cannot read, write, load, or build goals"
        return _problem(clause, goal, "refused", message, "Say it with the study's own predicates and tables.")
    if name in AGGREGATES:
        message = f"{name} declares an aggregate and cannot be called as a condition"
        return _problem(clause, goal, "refused", message, "Declare it in a clause of its own and use its name.")
    return _unknown(clause, goal, defined)


def _unknown(clause: Clause, goal: Compound, defined: set[str]) -> Problem:
    known = defined | BUILTINS | LIBRARY | set(DECLARATIONS)
    same_name = sorted(other for other in known if other.rpartition("/")[0] == goal.functor)
    return _problem(
        clause,
        goal,
        "unknown-predicate",
        f"{indicator(goal)} is called here and defined nowhere",
        "Correct the name, add a fact or clause for it, or feed it from a table with column/3 or relation/2.",
        nearest=same_name[0] if same_name else nearest(indicator(goal), known),
    )


def every_goal(body: Term | None) -> Iterator[Term]:
    """Every goal that may be called, also behind `;`, `\\+` and inside findall."""
    for goal in goals(body):
        if not isinstance(goal, Compound):
            yield goal
        elif indicator(goal) == ";/2" or indicator(goal) == "\\+/1":
            for part in goal.arguments:
                yield from every_goal(part)
        else:
            yield goal
            if indicator(goal) == "findall/3":
                yield from every_goal(goal.arguments[1])


def called(body: Term | None) -> Iterator[Compound]:
    """The goals that call a predicate of the study or of a table."""
    for goal in every_goal(body):
        if isinstance(goal, Compound) and indicator(goal) not in BUILTINS:
            yield goal


def single_variables(clause: Clause) -> list[str]:
    """Variables written once in a clause and not marked with an underscore."""
    counts: dict[str, int] = {}
    for term in (clause.head, clause.body):
        for part in walk(term if term is not None else ListTerm()):
            if isinstance(part, Variable):
                counts[part.name] = counts.get(part.name, 0) + 1
    return [name for name, count in counts.items() if count == 1 and not name.startswith("_")]


def _single_variables(clause: Clause) -> Iterator[Problem]:
    """A variable written once in a clause with conditions is usually a misspelling, or was left unbound."""
    in_head = {variable.name for variable in variables(clause.head)}
    # Where `random(RV)` is an unwritten condition, a head's variable may stand alone.
    bound = clause.head.functor in ("depends", "dp_rv", "personal_rv", "instance_rv", "cpd", STATEMENT, "publish")
    everything = {variable.name for term in (clause.head, clause.body) if term for variable in variables(term)}
    for name in single_variables(clause):
        if name in in_head and (bound or indicator(clause.head) in AGGREGATES):
            continue
        where = "in the head" if name in in_head else "in the conditions"
        yield Problem(
            "warning",
            "single-variable",
            f"{name} is written only once, {where}, so nothing connects it to the rest",
            clause.position,
            clause.text,
            nearest=nearest(name, everything - {name}),
            way_out=f"Correct the name, bind it by a condition, or write _{name} if any value will do.",
        )
