"""Arithmetic on known numbers, for `is` and comparisons in conditions.

In:   a term without variables.
Out:  an int or a float.
Not here: conditional probability functions, which stay symbolic (network/expression.py).

Integers beyond 64 bits and results that are no numbers are refused: 9**9**9 would otherwise keep a computer busy
for years.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sfumato.lang.term import Compound, Number, Term, Variable, show

__all__ = ["ARITHMETIC", "NotANumber", "evaluate"]


class NotANumber(Exception):
    """An arithmetic term that has no value."""


def _power(base: float, exponent: float) -> float:
    if isinstance(base, int) and isinstance(exponent, int) and 0 <= exponent <= 64 and abs(base) < 2**63:
        return base**exponent
    value = float(base) ** float(exponent)
    if isinstance(value, complex):
        raise ValueError("a root of a negative number")
    return value


_FUNCTIONS: dict[tuple[str, int], Callable[..., Any]] = {
    ("+", 2): lambda a, b: a + b,
    ("-", 2): lambda a, b: a - b,
    ("*", 2): lambda a, b: a * b,
    ("/", 2): lambda a, b: a / b,
    ("//", 2): lambda a, b: a // b,
    ("mod", 2): lambda a, b: a % b,
    ("**", 2): _power,
    ("^", 2): _power,
    ("min", 2): min,
    ("max", 2): max,
    ("-", 1): lambda a: -a,
    ("+", 1): lambda a: a,
    ("abs", 1): abs,
    ("sqrt", 1): math.sqrt,
    ("exp", 1): math.exp,
    ("log", 1): math.log,
    ("round", 1): round,
    ("floor", 1): math.floor,
    ("ceiling", 1): math.ceil,
    ("pi", 0): lambda: math.pi,
    ("e", 0): lambda: math.e,
}

#: functor/arity of everything `is` can compute.
ARITHMETIC = frozenset(f"{name}/{arity}" for name, arity in _FUNCTIONS)


def _is_too_large(value: object) -> bool:
    if isinstance(value, int):
        return abs(value) >= 2**63
    return isinstance(value, float) and not math.isfinite(value)


def evaluate(term: Term) -> int | float:
    """The number a term stands for.

    >>> evaluate(Compound("+", (Number(1), Compound("*", (Number(2), Number(3))))))
    7
    """
    if isinstance(term, Number):
        return term.value
    if isinstance(term, Variable):
        raise NotANumber("arithmetic needs known numbers, and a variable is still unbound")
    if not isinstance(term, Compound):
        raise NotANumber("arithmetic needs numbers, not text or lists")
    function = _FUNCTIONS.get((term.functor, len(term.arguments)))
    if function is None:
        raise NotANumber(f"{show(term)[:60]} is not a number or an arithmetic function")
    values = [evaluate(part) for part in term.arguments]
    try:
        value = function(*values)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        raise NotANumber(f"{term.functor} has no value here") from None
    if _is_too_large(value):
        raise NotANumber(f"the result of {term.functor} is too large")
    return value
