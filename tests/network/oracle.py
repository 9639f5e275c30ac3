"""Studies for the tests, and a second opinion: every individual grounded and computed by itself, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sfumato.lang import Compound, ListTerm, Number, Spec, Term, Text, show
from sfumato.lang.term import match

FUNCTIONS = {
    "exp": math.exp,
    "log": lambda x: math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "tan": math.tan,
    "tanh": math.tanh,
    "abs": abs,
}
LAWS = {
    "bernoulli": lambda p: p,
    "normal": lambda m, s: m,
    "poisson": lambda rate: rate,
    "exponential": lambda rate: divided(1.0, rate),
    "uniform": lambda a, b: (a + b) / 2,
}


def divided(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def number(term: Term, values: Mapping[str, Any]) -> float:
    """The value of a CPF, straight from its term: no expression tree, no numpy, no SQL."""
    name = show(term)
    if name in values:
        return values[name]
    if isinstance(term, Number):
        return float(term.value)
    assert isinstance(term, Compound), name
    functor, arguments = term.functor, term.arguments
    if functor in ("sum", "mean", "max", "min"):
        (items,) = arguments if isinstance(arguments[0], ListTerm) else (ListTerm(arguments),)
        parts = [number(item, values) for item in items.items]
        return {"sum": sum, "max": max, "min": min, "mean": lambda p: sum(p) / len(p)}[functor](parts)
    if functor == "lookup":
        parents, rows = arguments
        wanted = [values[show(parent)] for parent in parents.items]
        for row in rows.items:
            levels, law = row.arguments
            if [plain(level) for level in levels.items] == wanted:
                return number(law, values)
        raise AssertionError("no row fits")
    parts = [number(part, values) for part in arguments]
    if functor in LAWS:
        return LAWS[functor](*parts)
    if functor in FUNCTIONS:
        return FUNCTIONS[functor](*parts)
    if functor == "clip":
        return min(max(parts[0], parts[1]), parts[2])
    if len(parts) == 1:
        return -parts[0]
    a, b = parts
    return {"+": a + b, "-": a - b, "*": a * b}[functor] if functor != "/" else divided(a, b)


def plain(term: Term) -> Any:
    if isinstance(term, (Number, Text)):
        return term.value
    assert isinstance(term, Compound)
    return term.functor


def by_hand(spec: Spec, facts: list[Term], cells: Mapping[str, Any]) -> dict[str, Any]:
    """All variables of one grounding; `cells` are those with a column, placed into their range already.

    Every combination of the bernoulli variables is computed by itself and weighted by its probability. Other laws stand
    for their mean, which is right as long as nothing but a linear function depends on them.
    """
    grounding = spec.ground(facts)
    laws = {show(d.child): d for d in grounding.dependencies}
    names = {show(v) for v in grounding.variables}
    given = {name: value for name, value in cells.items() if name in names}
    total: dict[str, Any] = {}
    for chance, values in worlds(spec, laws, given, sorted(names - set(given))):
        for name, value in values.items():
            total[name] = value if isinstance(value, str) or name in given else total.get(name, 0.0) + chance * value
    return total


def worlds(spec: Spec, laws: Mapping[str, Any], values: dict[str, Any], waiting: list[str]):
    """(probability, all values) for every way the bernoulli variables can fall."""
    ready = [name for name in waiting if all(show(parent) in values for parent in laws[name].parents)]
    if not waiting:
        yield 1.0, values
        return
    name, cpf = ready[0], laws[ready[0]].cpf
    left = [other for other in waiting if other != name]
    if isinstance(cpf, Compound) and cpf.functor == "bernoulli":
        chance = number(cpf.arguments[0], values)
        for value, weight in ((0.0, 1 - chance), (1.0, chance)):
            for inner, found in worlds(spec, laws, {**values, name: value}, left):
                yield weight * inner, found
        return
    value = clipped(spec, laws[name].child, number(cpf, values))
    yield from worlds(spec, laws, {**values, name: value}, left)


def clipped(spec: Spec, atom: Term, value: float) -> float:
    for entry in spec.ranges:
        if match(entry.atom_pattern, atom) is not None and not math.isnan(value):
            return min(max(value, entry.domain.low), entry.domain.high)  # type: ignore[union-attr]
    return value
