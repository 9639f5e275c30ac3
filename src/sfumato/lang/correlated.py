"""What a study says of units that depend on each other: groups, series, or a known joint law.

In:   the arguments of correlated/3, and the metric pufferfish/2.
Out:  Correlated, and the promise that follows from it.
Not here: why it follows (core/dependence.py, docs/proofs/pufferfish.md), public tables (network/members.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from sfumato.core import Chains, Dependence, Groups, Pufferfish
from sfumato.errors import InputError
from sfumato.lang.term import Compound, Number, Position, Term, Variable, indicator, show, variables

__all__ = ["CLASSES", "Correlated", "correlated", "pufferfish"]

#: The second argument of correlated/3 and the third that goes with it.
CLASSES = {
    "group/0": "correlated(Dataset, group, at_most(K))",
    "group/2": "correlated(Dataset, group(H, lives_in(P, H)), at_most(K))",
    "chain/2": "correlated(Dataset, chain(T, reading(P, T)), memory(M))",
    "chain/3": "correlated(Dataset, chain(T, reading(P, T), Longest), memory(M))",
}
_BOUNDS = {"group": "at_most/1", "chain": "memory/1"}


@dataclass(frozen=True, slots=True)
class Correlated:
    """correlated(Dataset, Class, Bound): which units of a dataset may depend on each other.

    `goal` says who belongs together (it is None where only the author's word does), `bound` is the largest group or the
    memory of a series, `longest` the length of a series.
    """

    dataset: str
    kind: Literal["group", "chain"]
    bound: float
    goal: Compound | None = None
    variable: str = ""
    longest: int | None = None
    position: Position | None = field(default=None, compare=False)

    def dependence(self, epsilon: float, delta: float) -> Dependence:
        """What noise must hide together for a promise of (ε, δ)."""
        if self.kind == "group":
            return Groups(int(self.bound))
        return Chains.best(self.bound, epsilon, delta, self.longest)


class _Class(NamedTuple):
    kind: Literal["group", "chain"]
    goal: Compound | None = None
    variable: str = ""
    longest: int | None = None


def correlated(dataset: str, relation: str, what: Term, bound: Term, position: Position | None) -> Correlated:
    """The declaration, or an InputError that says what is wrong with it. `relation` is the dataset's adjacency."""
    found = _class(what)
    value = _bound(found.kind, bound)
    if found.kind == "chain" and relation == "add-remove":
        raise InputError(
            "a series has a value at every step, and under add_remove nobody may know that it has: leave adjacency(…, "
            "add_remove) out"
        )
    return Correlated(dataset, found.kind, value, found.goal, found.variable, found.longest, position)


def _class(what: Term) -> _Class:
    name = indicator(what)
    if name not in CLASSES or not isinstance(what, Compound):
        raise InputError(f"{show(what)[:60]} is no class of dependences. There are: {'; '.join(CLASSES.values())}")
    kind: Literal["group", "chain"] = "group" if what.functor == "group" else "chain"
    if not what.arguments:
        return _Class(kind)
    variable, goal, *longest = what.arguments
    if not isinstance(variable, Variable) or not isinstance(goal, Compound) or variable not in variables(goal):
        raise InputError(f"{kind} needs a variable and a goal that speaks of it, as in {CLASSES[name]}")
    return _Class(kind, goal, variable.name, _whole(longest[0], "the length of a series") if longest else None)


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
