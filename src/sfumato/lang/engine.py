"""The logic engine: ProbLog, told only what a study may ask, and stopped at stated limits.

In:   clauses made of our terms; queries.
Out:  answers as our terms, in the order of the clauses, each once.
Not here: which clauses are asked and why (lang/ground.py), which predicates a study may call (lang/safety.py).

A program can only do logic: this engine is built with the short list of builtins below and nothing that reads, writes,
loads or asserts exists in it. Predicates of the study carry a prefix inside the engine, so none of ProbLog's special
names can be met by accident. Every step is counted by a Meter; after an exception the engine is thrown away.

ProbLog's own `findall` enumerates proofs of uncertain facts (exponential when nested) and its numbers are rounded to
15 decimals (δ = 1e-16 would become 0): both are replaced here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

_recursion_limit = sys.getrecursionlimit()
from problog import logic  # noqa: E402
from problog.clausedb import ClauseDB  # noqa: E402
from problog.engine_builtin import (  # noqa: E402
    StructSort,
    _builtin_atom,
    _builtin_eq,
    _builtin_fail,
    _builtin_ground,
    _builtin_integer,
    _builtin_neq,
    _builtin_nonvar,
    _builtin_notsame,
    _builtin_number,
    _builtin_same,
    _builtin_true,
    _builtin_var,
    list_elements,
)
from problog.engine_stack import BooleanBuiltIn, MessageFIFO, SimpleBuiltIn, StackBasedEngine  # noqa: E402
from problog.engine_unify import UnifyError, unify_value  # noqa: E402
from problog.errors import ProbLogError  # noqa: E402
from problog.formula import LogicFormula  # noqa: E402

sys.setrecursionlimit(_recursion_limit)  # ProbLog raises it for the whole process

from sfumato.lang.arithmetic import NotANumber, evaluate  # noqa: E402
from sfumato.lang.limits import LimitReached, Limits, Meter  # noqa: E402
from sfumato.lang.term import Compound, ListTerm, Term, Variable, substitute, walk  # noqa: E402
from sfumato.lang.weighed import LARGEST_TERM, Exact, as_list, from_problog, to_problog, weight  # noqa: E402

__all__ = ["BUILTINS", "LIBRARY", "EngineError", "Program"]

#: What a study may call and the engine itself answers.
BUILTINS = frozenset(
    [
        "true/0",
        "fail/0",
        "false/0",
        "=/2",
        "\\=/2",
        "==/2",
        "\\==/2",
        "is/2",
        "</2",
        ">/2",
        "=</2",
        ">=/2",
        "=:=/2",
        "=\\=/2",
        "findall/3",
        "length/2",
        "between/3",
        "sort/2",
        "var/1",
        "nonvar/1",
        "atom/1",
        "number/1",
        "integer/1",
        "ground/1",
    ]
)

#: What a study may call and these clauses answer, unless the study defines the predicate itself.
LIBRARY_TEXT = """
append([], List, List).
append([First|Rest], List, [First|Joined]) :- append(Rest, List, Joined).
member(Item, [Item|_]).
member(Item, [_|Rest]) :- member(Item, Rest).
memberchk(Item, List) :- member(Item, List).
reverse(List, Reversed) :- reverse_onto(List, [], Reversed).
reverse_onto([], Reversed, Reversed).
reverse_onto([First|Rest], Done, Reversed) :- reverse_onto(Rest, [First|Done], Reversed).
last([Item], Item).
last([_|Rest], Item) :- last(Rest, Item).
nth0(Index, List, Item) :- nth_from(List, 0, Index, Item).
nth1(Index, List, Item) :- nth_from(List, 1, Index, Item).
nth_from([Item|_], Index, Index, Item).
nth_from([_|Rest], Before, Index, Item) :- Next is Before + 1, nth_from(Rest, Next, Index, Item).
sum_list(List, Sum) :- sum_list_from(List, 0, Sum).
sum_list_from([], Sum, Sum).
sum_list_from([First|Rest], Before, Sum) :- Next is Before + First, sum_list_from(Rest, Next, Sum).
max_list([Item], Item).
max_list([First|Rest], Largest) :- max_list(Rest, Other), Largest is max(First, Other).
min_list([Item], Item).
min_list([First|Rest], Least) :- min_list(Rest, Other), Least is min(First, Other).
"""
LIBRARY = frozenset(
    [
        "append/3",
        "member/2",
        "memberchk/2",
        "reverse/2",
        "last/2",
        "nth0/3",
        "nth1/3",
        "sum_list/2",
        "max_list/2",
        "min_list/2",
    ]
)

_PREFIX = "p_"
_LARGEST_RANGE = 100_000
_LARGEST_SUM = 10_000
#: Handing over a clause takes as long as so many steps.
_STEPS_OF_A_CLAUSE = 20


class EngineError(Exception):
    """A query the engine cannot answer: an unbound variable in arithmetic, a negative cycle."""


class Program:
    """Clauses ready to be asked.

    >>> from sfumato.lang.reader import read
    >>> clauses, _ = read("parent(ann, bob). parent(bob, eve). old(X) :- parent(X, Y), parent(Y, _).")
    >>> program = Program((clause.head, clause.body) for clause in clauses)
    >>> [str(answer["X"]) for answer in program.ask(Compound("old", (Variable("X"),)))]
    ['ann']
    """

    def __init__(
        self, clauses: Iterable[tuple[Compound, Term | None]], empty: Iterable[str] = (), meter: Meter | None = None
    ) -> None:
        self._meter = meter or Meter(Limits())
        self._clauses = [*clauses]
        defined = {_indicator(head) for head, _ in self._clauses}
        if any(_uses_library(body) for _, body in self._clauses):
            self._clauses += [(head, body) for head, body in _library() if _indicator(head) not in defined]
        # A table without rows still defines its predicate: a clause that fails.
        for name in set(empty) - defined:
            functor, _, arity = name.rpartition("/")
            arguments = tuple(Variable(f"A{i}") for i in range(int(arity)))
            self._clauses.append((Compound(functor, arguments), Compound("fail")))
        self._engine: _Engine | None = None
        self._database: Any = None
        self._target: Any = None

    def ask(self, query: Compound) -> list[dict[str, Term]]:
        """Every answer as a value for each variable of the query; unbound ones are Variables.

        Raises LimitReached or EngineError; the program stays usable.
        """
        names = list(dict.fromkeys(part.name for part in _query_variables(query)))
        recursion = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(max(recursion, 5_000))
            if self._engine is None:
                self._prepare()
            goal = logic.Term(_PREFIX + query.functor, *(to_problog(part, self._meter) for part in query.arguments))
            _, results = self._engine._ground(  # type: ignore[union-attr]
                self._database, goal, self._target, silent_fail=False, assume_prepared=True
            )
            return self._answers(names, results)
        except LimitReached as limit:
            tried, self._engine = self._tried(), None
            raise LimitReached(limit.reason, tried) from None
        except (ProbLogError, RecursionError, NotANumber) as error:
            tried, self._engine = self._tried(), None
            if isinstance(error, RecursionError):
                raise LimitReached("its terms are nested too deeply", tried) from None
            raise EngineError(_reason(error)) from None
        except Exception as error:  # ProbLog leaves its own errors as assertion, type and index errors here and there
            self._engine = None
            raise EngineError(f"the logic engine cannot answer it ({type(error).__name__})") from None
        finally:
            sys.setrecursionlimit(recursion)

    def _tried(self) -> str | None:
        return self._engine.predicate if self._engine else None

    def _prepare(self) -> None:
        self._engine = _Engine(self._meter)
        self._database = _Database(builtins=self._engine.get_builtins())
        self._database.engine = self._engine
        self._target = LogicFormula()
        for head, body in self._clauses:
            self._meter.charge(_STEPS_OF_A_CLAUSE)
            self._database += _clause(head, body, self._meter)

    def _answers(self, names: Sequence[str], results: Any) -> list[dict[str, Term]]:
        limits = self._meter.limits
        if len(results) > limits.answers:
            raise LimitReached(f"it has more than {limits.answers} answers")
        found = []
        for arguments, _ in results:
            self._meter.charge(sum(map(weight, arguments)))
            budget = [limits.term_size]
            values = [from_problog(value, budget) for value in arguments]
            found.append(_bound(names, values))
        return found


def _indicator(head: Compound) -> str:
    return f"{head.functor}/{len(head.arguments)}"


def _query_variables(query: Compound) -> list[Variable]:
    return [part for part in query.arguments if isinstance(part, Variable)]


def _bound(names: Sequence[str], values: Sequence[Term]) -> dict[str, Term]:
    """Variables the answer leaves open get back a name the query knows, the same one where two were made equal."""
    given = dict(zip(names, values, strict=True))
    rename: dict[str, Term] = {}
    for name, value in given.items():
        if isinstance(value, Variable) and value.name not in rename:
            rename[value.name] = Variable(name)
    return {name: substitute(value, rename) for name, value in given.items()}


def _reason(error: Exception) -> str:
    """What ProbLog says, without the places and internal names in it."""
    text = str(error).split(" at ")[0].replace(_PREFIX, "").rstrip(".")
    return text or type(error).__name__


def _uses_library(body: Term | None) -> bool:
    parts = walk(body) if body is not None else ()
    return any(isinstance(part, Compound) and _indicator(part) in LIBRARY for part in parts)


_LIBRARY_CLAUSES: list[tuple[Compound, Term | None]] = []


def _library() -> list[tuple[Compound, Term | None]]:
    if not _LIBRARY_CLAUSES:
        from sfumato.lang.reader import read

        clauses, _ = read(LIBRARY_TEXT, "library")
        _LIBRARY_CLAUSES.extend((clause.head, clause.body) for clause in clauses)
    return _LIBRARY_CLAUSES


# --- clauses as ProbLog has them ---------------------------------------------------------------------------------


def _clause(head: Compound, body: Term | None, meter: Meter) -> Any:
    made = logic.Term(_PREFIX + head.functor, *(to_problog(part, meter) for part in head.arguments))
    return made if body is None else logic.Clause(made, _goal(body, meter))


def _goal(goal: Term, meter: Meter) -> Any:
    """A goal with the study's predicates prefixed; only And, Or and Not are structure to ProbLog."""
    if not isinstance(goal, Compound):
        raise EngineError("a goal must be a predicate")
    match goal.functor, len(goal.arguments):
        case ",", 2:
            return logic.And(_goal(goal.arguments[0], meter), _goal(goal.arguments[1], meter))
        case ";", 2:
            return logic.Or(_goal(goal.arguments[0], meter), _goal(goal.arguments[1], meter))
        case "\\+", 1:
            return logic.Not("\\+", _goal(goal.arguments[0], meter))
        case "findall", 3:
            pattern, inner, result = goal.arguments
            return logic.Term("findall", to_problog(pattern, meter), _goal(inner, meter), to_problog(result, meter))
    if _indicator(goal) in BUILTINS:
        return to_problog(goal, meter)
    return logic.Term(_PREFIX + goal.functor, *(to_problog(part, meter) for part in goal.arguments))


# --- ProbLog, held on a leash ------------------------------------------------------------------------------------


class _Database(ClauseDB):
    """Clauses without ProbLog's library, which would be read from disk for every findall."""

    def _load_builtin_module(self) -> None:
        return None

    def extend(self) -> _Database:
        child = _Database(parent=self, builtins=self.engine.get_builtins() if self.engine else None)
        child.engine = self.engine
        return child


class _Engine(StackBasedEngine):
    """ProbLog's engine with our builtins alone; whatever it does is charged before it is done.

    All its work is messages taken from a queue, lists of terms made for a call or an answer, walks over terms
    (lang/weighed.py) and over a cycle: each is counted where it happens.
    """

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        #: What is being tried.
        self.predicate: str | None = None
        super().__init__()

    def load_builtins(self) -> None:
        # ProbLog knows the first eight by their number.
        boolean, simple = BooleanBuiltIn, SimpleBuiltIn
        self.add_builtin("true", 0, boolean(_builtin_true))
        self.add_builtin("fail", 0, boolean(_builtin_fail))
        self.add_builtin("false", 0, boolean(_builtin_fail))
        self.add_builtin("=", 2, simple(_builtin_eq))
        self.add_builtin("\\=", 2, boolean(_builtin_neq))
        self.add_builtin("findall", 3, simple(_findall))
        self.add_builtin("all", 3, boolean(_builtin_fail))
        self.add_builtin("all_or_none", 3, boolean(_builtin_fail))
        self.add_builtin("==", 2, boolean(_builtin_same))
        self.add_builtin("\\==", 2, boolean(_builtin_notsame))
        self.add_builtin("is", 2, simple(_is))
        for name, holds in _COMPARISONS.items():
            self.add_builtin(name, 2, boolean(_comparison(holds)))
        self.add_builtin("length", 2, simple(_length))
        self.add_builtin("between", 3, simple(_between))
        self.add_builtin("sort", 2, simple(_sort))
        for name, test in _TESTS.items():
            self.add_builtin(name, 1, boolean(test))

    def eval(self, node_id: int, **context: Any) -> Any:
        self.meter.charge(1)
        if node_id >= 0:
            name = getattr(context["database"].get_node(node_id), "functor", None)
            if isinstance(name, str) and name.startswith(_PREFIX) and "$" not in name:
                self.predicate = name.removeprefix(_PREFIX)
        if self.pointer > self.meter.limits.depth:
            raise LimitReached(f"it recurses more than {self.meter.limits.depth} deep")
        return super().eval(node_id, **context)

    def init_message_stack(self) -> _Messages:
        return _Messages(self, self.meter)

    def create_context(self, content: Any, define: Any = None, parent: Any = None, state: Any = None) -> Any:
        self.meter.charge(1 + len(content))
        return super().create_context(content, define, parent, state)

    def _clone_context(self, context: Any, parent: Any = None, state: Any = None) -> Any:
        self.meter.charge(1 + len(context))
        return super()._clone_context(context, parent, state)

    def _fix_context(self, context: Any) -> Any:
        self.meter.charge(1 + len(context))
        return super()._fix_context(context)

    def find_cycle(self, child: Any, parent: Any, force: bool = False) -> Any:
        # The path up to the parent, which is then told of all the answers each node on it already has.
        current = child
        while current is not None and current != parent:
            node = self.stack[current]
            waiting, known = len(getattr(node, "siblings", ())), len(getattr(node, "results", ()))
            self.meter.charge(1 + known * (1 + waiting**2))
            current = node.parent
        return super().find_cycle(child, parent, force)


class _Messages(MessageFIFO):
    """The engine's queue; a message taken from it is a step."""

    def __init__(self, engine: _Engine, meter: Meter) -> None:
        super().__init__(engine)
        self._meter = meter

    def pop(self) -> Any:
        self._meter.charge(1)
        return super().pop()


# --- builtins ----------------------------------------------------------------------------------------------------


def _findall(pattern: Any, goal: Any, result: Any, database: Any = None, engine: Any = None, **rest: Any) -> Any:
    """Every solution of the goal once, in order, as one list: everything here is certain, so there is one list."""
    for name in ("target", "callback", "context", "transform"):
        rest.pop(name, None)
    extended = database.extend()
    head = logic.Term(engine.get_non_cache_functor(), pattern, *goal.variables())
    extended += logic.Clause(head, goal)
    opened = head.apply(_Open())
    answers = engine.call(opened, subcall=True, database=extended, target=LogicFormula(), **rest)
    try:
        return [(pattern, goal, unify_value(result, as_list((values[0] for values, _ in answers), engine.meter), {}))]
    except UnifyError:
        return []


class _Open:
    """Every variable as an unbound place of a call."""

    def __getitem__(self, _: Any) -> None:
        return None


def _is(left: Any, right: Any, engine: Any = None, **_: Any) -> Any:
    try:
        value = Exact(_number(right, engine))
        return [(unify_value(left, value, {}), right)]
    except UnifyError:
        return []


def _comparison(holds: Any) -> Any:
    def compare(left: Any, right: Any, engine: Any = None, **_: Any) -> bool:
        return holds(_number(left, engine), _number(right, engine))

    return compare


def _number(value: Any, engine: Any) -> int | float:
    engine.meter.charge(weight(value))
    return evaluate(from_problog(value, [_LARGEST_SUM]))


_COMPARISONS = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "=<": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "=:=": lambda a, b: a == b,
    "=\\=": lambda a, b: a != b,
}
_TESTS = {
    "var": _builtin_var,
    "nonvar": _builtin_nonvar,
    "atom": _builtin_atom,
    "number": _builtin_number,
    "integer": _builtin_integer,
    "ground": _builtin_ground,
}


def _length(items: Any, number: Any, engine: Any = None, **_: Any) -> Any:
    engine.meter.charge(weight(items))
    value = from_problog(items, [_LARGEST_RANGE])
    if not isinstance(value, ListTerm):
        raise NotANumber("length/2 needs a list whose end is known")
    try:
        return [(items, unify_value(number, Exact(len(value.items)), {}))]
    except UnifyError:
        return []


def _sort(items: Any, ordered: Any, engine: Any = None, **_: Any) -> Any:
    engine.meter.charge(weight(items) * weight(items).bit_length())  # so many comparisons of its parts
    if not isinstance(from_problog(items, [LARGEST_TERM]), ListTerm):
        raise NotANumber("sort/2 needs a list whose end is known")
    elements, _end = list_elements(items)
    try:
        return [(items, unify_value(ordered, as_list(sorted(set(elements), key=StructSort), engine.meter), {}))]
    except UnifyError:
        return []


def _between(low: Any, high: Any, value: Any, engine: Any = None, **_: Any) -> Any:
    first, last = _number(low, engine), _number(high, engine)
    if not isinstance(first, int) or not isinstance(last, int):
        raise NotANumber("between/3 needs two integers")
    if last - first > _LARGEST_RANGE:
        raise NotANumber(f"between/3 is limited to {_LARGEST_RANGE} numbers")
    if isinstance(value, logic.Constant):
        return [(low, high, value)] if isinstance(value.value, int) and first <= value.value <= last else []
    engine.meter.charge(max(0, last - first))
    return [(low, high, Exact(number)) for number in range(first, last + 1)]
