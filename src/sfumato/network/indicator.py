"""Conditions inside expressions: one where they hold, zero where they do not, and how likely they are.

    Expression
    ├── Indicator   1 where a condition holds, otherwise 0
    └── Chance      the probability of a condition given the individual's cells: probability(o(P) >= 4) of a study

In:   conditions (network/condition.py).
Out:  expressions; `rebuilt`, which changes parts of an expression and of the conditions inside it.
Not here: the expectation of an Indicator (network/inference.py), which is what a Chance becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.network.bounds import Bounds
from sfumato.network.condition import Comparison, Complete, Condition, Every, LevelIs, Member, Not, Present, Some
from sfumato.network.expression import Call, Distribution, Expression, Gradient, Level, Lookup, Power, Ranges, Values

__all__ = ["Chance", "Indicator", "flag_keys", "has_chance", "rebuilt", "rebuilt_condition", "settled"]

Change = Callable[[Expression], Expression | None]


@dataclass(frozen=True, slots=True)
class Indicator(Expression):
    """1 where the condition holds, otherwise 0.

    >>> from sfumato.network.expression import Constant, Reference
    >>> adult = Indicator(Comparison(">=", Reference("age(P)"), Constant(18.0)))
    >>> adult.evaluate({"age(P)": np.array([17.0, 18.0])})
    array([0., 1.])
    """

    condition: Condition

    def parts(self) -> tuple[Expression, ...]:
        return _compared(self.condition)

    def references(self) -> frozenset[str]:
        """The nodes it looks at, and the flags of relations and absent cells by their keys."""
        return self.condition.references() | flag_keys(self.condition)

    def evaluate(self, values: Values) -> NDArray[Any]:
        return np.asarray(self.condition.evaluate(values), dtype=np.float64)

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return f"(CASE WHEN {self.condition.to_sql(columns)} THEN 1.0e0 ELSE 0.0e0 END)"

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        jump = Bounds.unbounded("a condition has no slope")
        return Bounds(0.0, 1.0), dict.fromkeys(self.references(), jump)

    def linear(self) -> None:
        return None

    def __str__(self) -> str:
        return f"[{self.condition}]"


@dataclass(frozen=True, slots=True)
class Chance(Expression):
    """The probability of a condition, given the individual's cells. Inference replaces it before it is computed."""

    condition: Condition

    def parts(self) -> tuple[Expression, ...]:
        return _compared(self.condition)

    def references(self) -> frozenset[str]:
        return self.condition.references()

    def evaluate(self, values: Values) -> NDArray[Any]:
        raise TypeError("A probability is computed by inference (network/inference.py).")

    def to_sql(self, columns: Mapping[str, str]) -> str:
        raise TypeError("A probability is computed by inference (network/inference.py).")

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        return Bounds(0.0, 1.0), dict.fromkeys(self.references(), Bounds.unbounded("a probability is not inferred yet"))

    def linear(self) -> None:
        return None

    def __str__(self) -> str:
        return f"probability({self.condition})"


def has_chance(expression: Expression) -> bool:
    """Whether a probability(…) stands in it."""
    return isinstance(expression, Chance) or any(has_chance(part) for part in expression.parts())


def rebuilt(expression: Expression, change: Change) -> Expression:
    """The expression with every part for which `change` has something put in its place, outermost first."""
    found = change(expression)
    if found is not None:
        return found
    match expression:
        case Power(base=base, exponent=exponent):
            return Power(rebuilt(base, change), exponent)
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(rebuilt(part, change) for part in arguments))
        case Distribution(kind=kind, arguments=arguments, levels=levels):
            return Distribution(kind, tuple(rebuilt(part, change) for part in arguments), levels)
        case Lookup(parents=parents, rows=rows):
            return Lookup(parents, tuple((key, rebuilt(part, change)) for key, part in rows))
        case Indicator(condition=condition) | Chance(condition=condition):
            return replace(expression, condition=rebuilt_condition(condition, change))
    return expression


def rebuilt_condition(condition: Condition, change: Change) -> Condition:
    """The condition with the expressions in it changed."""
    match condition:
        case Comparison(operator=operator, left=left, right=right):
            return Comparison(operator, rebuilt(left, change), rebuilt(right, change))
        case Not(part=part):
            return Not(rebuilt_condition(part, change))
        case Every(parts=parts):
            return Every(tuple(rebuilt_condition(part, change) for part in parts))
        case Some(parts=parts):
            return Some(tuple(rebuilt_condition(part, change) for part in parts))
    return condition


def settled(condition: Condition, state: Mapping[str, Level], bind: Callable[[Expression], Expression]) -> Condition:
    """The condition with some variables at known levels; `bind` does the same for the expressions in it."""
    match condition:
        case LevelIs(variable=name, levels=levels) if name in state:
            return always(state[name] in levels)
        case Comparison(operator=operator, left=left, right=right):
            found = Comparison(operator, bind(left), bind(right))
            return found if found.references() else always(bool(found.evaluate({})))
        case Not(part=part):
            return _negated(settled(part, state, bind))
        case Every(parts=parts):
            return _every([settled(part, state, bind) for part in parts])
        case Some(parts=parts):
            return _some([settled(part, state, bind) for part in parts])
    return condition


def always(holds: bool) -> Condition:
    """The condition that holds for everybody, or for nobody."""
    return Every(()) if holds else Some(())


def _negated(inner: Condition) -> Condition:
    return Some(()) if inner == Every(()) else Every(()) if inner == Some(()) else Not(inner)


def _every(parts: Sequence[Condition]) -> Condition:
    return Some(()) if Some(()) in parts else Every(tuple(part for part in parts if part != Every(())))


def _some(parts: Sequence[Condition]) -> Condition:
    return Every(()) if Every(()) in parts else Some(tuple(part for part in parts if part != Some(())))


def flag_keys(condition: Condition) -> frozenset[str]:
    """The columns of flags a condition reads: whether a table relates the individual, whether a cell is there."""
    match condition:
        case Member(key=key) | Present(key=key) | Complete(key=key):
            return frozenset((key,))
        case Not(part=part):
            return flag_keys(part)
        case Every(parts=parts) | Some(parts=parts):
            return frozenset().union(*(flag_keys(part) for part in parts))
    return frozenset()


def _compared(condition: Condition) -> tuple[Expression, ...]:
    """The expressions a condition compares."""
    match condition:
        case Comparison(left=left, right=right):
            return left, right
        case Not(part=part):
            return _compared(part)
        case Every(parts=parts) | Some(parts=parts):
            return tuple(expression for part in parts for expression in _compared(part))
    return ()
