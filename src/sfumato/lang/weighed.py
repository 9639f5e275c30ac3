"""Terms inside the logic engine: ours in ProbLog's clothes, each knowing its size.

In:   our terms, or ProbLog's.
Out:  the other kind; LimitReached where one is too large.
Not here: the engine that uses them (lang/engine.py).

ProbLog shares parts of terms but walks them as if it did not: f(T, T) made sixty times over is sixty objects and a
walk of 2^60. The size as a tree is therefore counted where a term is made, out of the sizes of its parts, and what is
too large is refused there: no term exists that could not be walked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

_recursion_limit = sys.getrecursionlimit()
from problog import logic  # noqa: E402
from problog.util import OrderedSet  # noqa: E402

sys.setrecursionlimit(_recursion_limit)  # ProbLog raises it for the whole process

from sfumato.lang.limits import DEEPEST_ANSWER, LimitReached, Meter  # noqa: E402
from sfumato.lang.term import PARTIAL_LIST, Compound, ListTerm, Number, Term, Text, Variable  # noqa: E402

__all__ = ["LARGEST_TERM", "Exact", "Weighed", "as_list", "from_problog", "to_problog", "weight"]

#: Nodes of a term, counted as a tree.
LARGEST_TERM = 200_000


class Weighed(logic.Term):
    """A term of a study, whose every walk is charged to the meter node by node.

    ProbLog walks a term to compare it, to look for variables, or to make a new one by `with_args` of each node; it
    hashes a node once. Nothing of that happens elsewhere than in the methods here.
    """

    def __init__(self, functor: Any, *args: Any, meter: Meter) -> None:
        super().__init__(functor, *args)
        self.meter = meter
        self.size, ground = 1, True
        for part in args:
            if type(part) is Weighed:
                self.size += part.size
                ground = ground and part._cache_is_ground
            else:
                self.size += 1
                ground = ground and isinstance(part, logic.Constant)
        self._cache_is_ground = ground
        if self.size > LARGEST_TERM:
            raise LimitReached(f"a term in it has more than {LARGEST_TERM} parts")

    def with_args(self, *args: Any, **_: Any) -> Weighed:
        self.meter.charge(1)
        if all(new is old for new, old in zip(args, self.args, strict=True)):
            return self
        return Weighed(self.functor, *args, meter=self.meter)

    def variables(self, exclude_local: bool = False) -> Any:
        if self._cache_is_ground:
            return OrderedSet()
        self.meter.charge(self.size)
        return super().variables(exclude_local)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        self.meter.charge(self.size)
        return super().__eq__(other)

    __hash__ = logic.Term.__hash__


class Exact(logic.Constant):
    """A number as it was written: ProbLog's own constants are rounded to 15 decimals."""

    FLOAT_PRECISION = None  # type: ignore[assignment]


def weight(value: Any) -> int:
    """How many nodes a term has."""
    return value.size if isinstance(value, Weighed) else 1


def as_list(items: Iterable[Any], meter: Meter) -> Any:
    """ProbLog's terms as one of its lists."""
    current = Weighed("[]", meter=meter)
    for item in reversed([*items]):
        meter.charge(1)
        current = Weighed(".", item, current, meter=meter)
    return current


def to_problog(term: Term, meter: Meter) -> Any:
    """Our term as ProbLog has it."""
    match term:
        case Number(value=value):
            return Exact(value)
        case Text(value=value):
            return logic.Constant(f'"{value}"')
        case Variable(name=name):
            return logic.Var(name)
        case ListTerm(items=items):
            return as_list((to_problog(item, meter) for item in items), meter)
    functor = "." if term.functor == PARTIAL_LIST and len(term.arguments) == 2 else term.functor
    return Weighed(functor, *(to_problog(part, meter) for part in term.arguments), meter=meter)


def _leaf_from_problog(value: Any) -> Term:
    if value is None or isinstance(value, int):
        return Variable("_" if value is None else f"_{abs(value)}")
    if isinstance(value, logic.Var):
        return Variable(value.name)
    content: Any = value.value
    return Text(content[1:-1]) if isinstance(content, str) else Number(content)


def from_problog(value: Any, budget: list[int], depth: int = 0) -> Term:
    """ProbLog's term as ours; the budget is how many nodes it may still have."""
    budget[0] -= 1
    if budget[0] < 0:
        raise LimitReached("an answer is too large")
    if depth > DEEPEST_ANSWER:
        raise LimitReached(f"an answer is nested more than {DEEPEST_ANSWER} deep; sum([A, B, C]) is flat")
    if value is None or isinstance(value, int | logic.Var | logic.Constant):
        return _leaf_from_problog(value)
    if value.functor == "." and value.arity == 2:
        return _list_from_problog(value, budget, depth)
    if value.functor == "[]" and value.arity == 0:
        return ListTerm()
    return Compound(str(value.functor), tuple(from_problog(part, budget, depth + 1) for part in value.args))


def _list_from_problog(value: Any, budget: list[int], depth: int) -> Term:
    items = []
    while isinstance(value, logic.Term) and value.functor == "." and value.arity == 2:
        items.append(from_problog(value.args[0], budget, depth + 1))
        value = value.args[1]
    if isinstance(value, logic.Term) and value.functor == "[]":
        return ListTerm(tuple(items))
    current = from_problog(value, budget, depth + 1)
    for item in reversed(items):
        current = Compound(PARTIAL_LIST, (item, current))
    return current
