"""What a study says of units that depend on each other: groups, series, or a known joint law.

In:   the arguments of correlated/3, and the metric pufferfish/2.
Out:  Correlated, and the promise that follows from it.
Not here: why it follows (core/dependence.py, docs/proofs/pufferfish.md), public tables (network/members.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from sfumato.core import Chains, Dependence, Groups, Pufferfish
from sfumato.errors import InputError
from sfumato.lang.term import Compound, ListTerm, Number, Position, Term, Variable, indicator, show, variables

__all__ = ["CLASSES", "Correlated", "correlated", "pufferfish"]

#: The second argument of correlated/3 and the third that goes with it.
CLASSES = {
    "group/0": "correlated(Dataset, group, at_most(K))",
    "group/2": "correlated(Dataset, group(H, lives_in(P, H)), at_most(K))",
    "chain/2": "correlated(Dataset, chain(T, reading(P, T)), memory(M))",
    "known/0": "correlated(Dataset, known, joint([row([0, 0], 0.4), row([1, 1], 0.6)]))",
    "chain/3": "correlated(Dataset, chain(T, reading(P, T), Longest), memory(M))",
}
_BOUNDS = {"group": "at_most/1", "chain": "memory/1", "known": "joint/1"}
Kind = Literal["group", "chain", "known"]
#: A value of each individual, in the order of their identifiers, and the chance of all of them together.
Row = tuple[tuple[str | float, ...], Fraction]
_MOST_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Correlated:
    """correlated(Dataset, Class, Bound): which units of a dataset may depend on each other.

    `goal` says who belongs together (it is None where only the author's word does), `bound` is the largest group or the
    memory of a series, `longest` the length of a series.
    """

    dataset: str
    kind: Kind
    bound: float
    goal: Compound | None = None
    variable: str = ""
    longest: int | None = None
    rows: tuple[Row, ...] = ()
    position: Position | None = field(default=None, compare=False)

    def dependence(self, epsilon: float, delta: float) -> Dependence:
        """What noise must hide together for a promise of (ε, δ)."""
        if self.kind == "group":
            return Groups(int(self.bound))
        if self.kind == "known":
            return Groups(len(self.rows[0][0]))  # until what is published is known (network/known.py)
        return Chains.best(self.bound, epsilon, delta, self.longest)


class _Class(NamedTuple):
    kind: Kind
    goal: Compound | None = None
    variable: str = ""
    longest: int | None = None


def correlated(dataset: str, relation: str, what: Term, bound: Term, position: Position | None) -> Correlated:
    """The declaration, or an InputError that says what is wrong with it. `relation` is the dataset's adjacency."""
    found = _class(what)
    rows = _law(bound) if found.kind == "known" else ()
    value = 0.0 if rows else _bound(found.kind, bound)
    if found.kind != "group" and relation == "add-remove":
        raise InputError(
            "a series has a value at every step and a joint law one of everybody, and under add_remove nobody may know "
            "that they have: leave adjacency(…, "
            "add_remove) out"
        )
    return Correlated(dataset, found.kind, value, found.goal, found.variable, found.longest, rows, position)


def _class(what: Term) -> _Class:
    name = indicator(what)
    if name not in CLASSES or not isinstance(what, Compound):
        raise InputError(f"{show(what)[:60]} is no class of dependences. There are: {'; '.join(CLASSES.values())}")
    kind: Kind = what.functor  # type: ignore[assignment]  # one of CLASSES
    if not what.arguments:
        return _Class(kind)
    variable, goal, *longest = what.arguments
    if not isinstance(variable, Variable) or not isinstance(goal, Compound) or variable not in variables(goal):
        raise InputError(f"{kind} needs a variable and a goal that speaks of it, as in {CLASSES[name]}")
    return _Class(kind, goal, variable.name, _whole(longest[0], "the length of a series") if longest else None)


def _law(bound: Term) -> tuple[Row, ...]:
    """joint([row([value, …], chance), …]), chances above 0 that add up to 1 exactly as they are written."""
    listed = bound.arguments[0] if isinstance(bound, Compound) and indicator(bound) == "joint/1" else None
    if not isinstance(listed, ListTerm) or not 1 < len(listed.items) <= _MOST_ROWS:
        raise InputError(f"a known law is joint([row([0, 0], 0.4), …]), with 2 to {_MOST_ROWS:,} rows")
    rows = tuple(map(_law_row, listed.items))
    values = [values for values, _ in rows]
    if len(set(map(len, values))) != 1 or len(set(values)) < len(rows):
        raise InputError("every row of a joint law has one value of each individual, and no two rows are alike")
    if sum((chance for _, chance in rows), Fraction(0)) != 1:
        raise InputError("the chances of a joint law add up to 1, exactly as they are written")
    return rows


def _law_row(item: Term) -> Row:
    match item:
        case Compound(functor="row", arguments=(ListTerm(items=values), Number(value=chance))) if values and chance > 0:
            return tuple(_value(value) for value in values), Fraction(repr(chance))
    raise InputError(
        f"a row of a joint law is row([value, value], chance) with a chance above 0, not {show(item)[:60]}"
    )


def _value(term: Term) -> str | float:
    if isinstance(term, Number):
        return term.value
    if isinstance(term, Compound) and not term.arguments:
        return term.functor
    raise InputError(f"a value of a joint law is a number or a category, not {show(term)[:60]}")


def _bound(kind: str, bound: Term) -> float:
    if indicator(bound) != _BOUNDS[kind] or not isinstance(bound, Compound):
        wanted = "at_most(K), the most that belong together" if kind == "group" else "memory(M), ln of an odds ratio"
        raise InputError(f"a {kind} needs {wanted}, not {show(bound)[:60]}")
    (value,) = bound.arguments
    if kind == "group":
        return _whole(value, "the most that belong together")
    if not isinstance(value, Number) or not 0 < value.value < float("inf"):
        raise InputError(
            "the memory of a series is a number above 0: ln of the largest odds ratio of one step. A step with a "
            "chance of 0 has none: no memory is long enough for it"
        )
    return float(value.value)


def _whole(term: Term, what: str) -> int:
    if not isinstance(term, Number) or not isinstance(term.value, int) or term.value < 1:
        raise InputError(f"{what} must be a whole number of at least 1, not {show(term)[:60]}")
    return term.value


def pufferfish(dataset: str, known: Correlated | None, values: list[float]) -> Pufferfish:
    """The promise pufferfish(E) or pufferfish(E, D) for what the study says of the dataset."""
    if known is None:
        raise InputError(
            f"pufferfish is a promise about units that depend on each other, and nothing says which units of {dataset} "
            f"do: add correlated({dataset}, group, at_most(4)), or one of {'; '.join(CLASSES.values())}"
        )
    epsilon, delta = values[0], values[1] if len(values) > 1 else 0.0
    Pufferfish(epsilon, delta, Groups(1))  # checks both before a window is looked for
    return Pufferfish(epsilon, delta, known.dependence(epsilon, delta))
