"""From the terms of a study to expressions.

In:   a CPF as the logic engine left it, and which terms are random variables.
Out:  Expression.
Not here: what an expression means (network/expression.py), goals of aggregates (network/goals.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sfumato.core.tables import nearest
from sfumato.lang.term import Compound, ListTerm, Number, Position, Term, Text, Variable, show
from sfumato.network.condition import Comparison, Condition, Every, LevelIs, Not, Operator, Some
from sfumato.network.expression import Call, Constant, Distribution, Expression, Level, Lookup, Power, Reference
from sfumato.network.functions import FUNCTIONS, INFERRED
from sfumato.network.indicator import Chance
from sfumato.network.refusal import refusal

__all__ = ["OPERATORS", "Naming", "conjuncts", "expression_of", "level_of"]

#: The node a term stands for, or None when it is no random variable.
Naming = Callable[[Term], str | None]

#: How comparisons are written in a study.
OPERATORS: dict[str, Operator] = {
    "<": "<",
    "=<": "<=",
    ">": ">",
    ">=": ">=",
    "=": "=",
    "==": "=",
    "=:=": "=",
    "\\=": "!=",
    "\\==": "!=",
    "=\\=": "!=",
}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_LAWS = {"bernoulli": 1, "normal": 2, "poisson": 1, "exponential": 1, "uniform": 2}
_LISTS = {"sum", "mean", "max", "min"}
_LARGEST_EXPONENT = 64
_DEEPEST = 200
_WORDS = sorted({*FUNCTIONS, *_LAWS, "discrete", "lookup", "probability"} - INFERRED)


def expression_of(term: Term, naming: Naming, position: Position | None = None) -> Expression:
    """The expression a CPF writes down.

    >>> age = Compound("age", (Compound("uma"),))
    >>> cpf = Compound("bernoulli", (Compound("*", (Number(0.01), age)),))
    >>> print(expression_of(cpf, lambda term: "age(P)" if term == age else None))
    bernoulli((0.01 * age(P)))
    """
    return _Converter(naming, position).convert(term, 0)


def level_of(term: Term, position: Position | None = None) -> Level:
    """A category as it stands in a study: an atom, a string or a number."""
    match term:
        case Number(value=value):
            return value
        case Text(value=value):
            return value
        case Compound(functor=functor, arguments=()):
            return functor
        case Compound(functor="-", arguments=(Number(value=value),)):
            return -value
    raise refusal(position, f"{show(term)} is not a category.", "Write an atom, a string or a number.")


def conjuncts(term: Term) -> tuple[Term, ...]:
    """The literals of a conjunction, from left to right.

    >>> [str(part) for part in conjuncts(Compound(",", (Compound("a"), Compound(",", (Compound("b"), Compound("c"))))))]
    ['a', 'b', 'c']
    """
    if isinstance(term, Compound) and term.functor == "," and len(term.arguments) == 2:
        return (*conjuncts(term.arguments[0]), *conjuncts(term.arguments[1]))
    return () if term == Compound("true") else (term,)


class _Converter:
    def __init__(self, naming: Naming, position: Position | None) -> None:
        self.naming = naming
        self.position = position

    def convert(self, term: Term, depth: int) -> Expression:
        if depth > _DEEPEST:
            raise refusal(
                self.position, f"The expression is nested deeper than {_DEEPEST}.", "Use intermediate variables."
            )
        if isinstance(term, Compound) and term.functor == "probability" and len(term.arguments) == 1:
            return Chance(self._condition(term.arguments[0], depth + 1))
        name = self.naming(term)
        if name is not None:
            return Reference(name)
        match term:
            case Number(value=value):
                return self._constant(value)
            case Variable(name=free):
                raise self._no(f"The variable {free} is unbound.", "Bind it in the body of the clause.")
            case Compound(functor=functor, arguments=()) if functor in _CONSTANTS:
                return Constant(_CONSTANTS[functor])
            case Compound():
                return self._compound(term, depth + 1)
        raise self._no(f"{show(term)} is not a number.", "Write an expression of random variables and numbers.")

    def _compound(self, term: Compound, depth: int) -> Expression:
        functor, arguments = term.functor, term.arguments
        if functor in ("**", "^") and len(arguments) == 2:
            return self._power(*arguments, depth)
        if functor in ("-", "+") and len(arguments) == 1:
            return self._signed(functor, arguments[0], depth)
        if functor in _LAWS:
            return self._law(term, depth)
        if functor == "discrete":
            return self._discrete(term, depth)
        if functor == "lookup":
            return self._lookup(term, depth)
        return self._call(term, depth)

    def _signed(self, sign: str, term: Term, depth: int) -> Expression:
        inner = self.convert(term, depth)
        if sign == "+":
            return inner
        return Constant(-inner.value) if isinstance(inner, Constant) else Call("negate", (inner,))

    def _of_nothing(self, function: str) -> Expression:
        if function != "sum":
            raise self._no(f"{function} of an empty list.", "Give the case without parents a clause of its own.")
        return Constant(0.0)

    def _call(self, term: Compound, depth: int) -> Expression:
        parts: Sequence[Term] = term.arguments
        if term.functor in _LISTS and len(parts) == 1 and isinstance(parts[0], ListTerm):
            parts = parts[0].items
            if not parts:
                return self._of_nothing(term.functor)
        function = FUNCTIONS.get(term.functor) if term.functor not in INFERRED else None
        if function is None:
            raise self._no(
                f"{show(term)} is neither a declared random variable nor a function{nearest(term.functor, _WORDS)}.",
                f"Declare it with random/1, or use one of {', '.join(_WORDS)}.",
            )
        if not function.accepts(len(parts)):
            raise self._no(f"{term.functor} does not take {len(parts)} argument(s).", "See the language reference.")
        return Call(term.functor, tuple(self.convert(part, depth) for part in parts))

    def _power(self, base: Term, exponent: Term, depth: int) -> Expression:
        written = self.convert(exponent, depth)
        value = written.value if isinstance(written, Constant) else math.nan
        if not (float(value).is_integer() and abs(value) <= _LARGEST_EXPONENT):
            raise self._no(
                f"An exponent must be a whole number between -{_LARGEST_EXPONENT} and {_LARGEST_EXPONENT}.",
                "Write X ** Y as exp(Y * log(X)).",
            )
        return Power(self.convert(base, depth), int(value))

    def _law(self, term: Compound, depth: int) -> Expression:
        if len(term.arguments) != _LAWS[term.functor]:
            raise self._no(f"{term.functor} takes {_LAWS[term.functor]} argument(s).", "See the language reference.")
        arguments = tuple(self.convert(part, depth) for part in term.arguments)
        return Distribution(term.functor, arguments)  # type: ignore[arg-type]  # the names are those of _LAWS

    def _discrete(self, term: Compound, depth: int) -> Expression:
        listed = term.arguments[0] if len(term.arguments) == 1 else None
        if not isinstance(listed, ListTerm) or not listed.items:
            raise self._no("discrete takes a list.", "Write discrete([Level: Probability, …]).")
        levels: list[Level] = []
        parts: list[Expression] = []
        for item in listed.items:
            if not (isinstance(item, Compound) and item.functor == ":" and len(item.arguments) == 2):
                raise self._no(f"{show(item)} is not Level: Probability.", "Write discrete([Level: Probability, …]).")
            levels.append(level_of(item.arguments[0], self.position))
            parts.append(self.convert(item.arguments[1], depth))
        if len(set(levels)) < len(levels):
            raise self._no("discrete lists a level twice.", "Add their probabilities.")
        self._check_total(parts)
        return Distribution("discrete", tuple(parts), tuple(levels))

    def _check_total(self, parts: Sequence[Expression]) -> None:
        values = [part.value for part in parts if isinstance(part, Constant)]
        total = math.fsum(values)
        wrong = any(not 0.0 <= value <= 1.0 for value in values) or total > 1.0 + 1e-9
        if wrong or (len(values) == len(parts) and abs(total - 1.0) > 1e-9):
            raise self._no(f"The probabilities add up to {total:g}.", "They must lie in [0, 1] and add up to one.")

    def _lookup(self, term: Compound, depth: int) -> Expression:
        match term.arguments:
            case (ListTerm(items=parents), ListTerm(items=rows)) if parents and rows:
                names = tuple(self._parent(parent) for parent in parents)
                return Lookup(names, tuple(self._row(row, len(names), depth) for row in rows))
        raise self._no("lookup takes two lists.", "Write lookup([Parent, …], [row([Level, …], CPF), …]).")

    def _condition(self, term: Term, depth: int) -> Condition:
        """What stands inside probability(…)."""
        match term:
            case Compound(functor=",", arguments=(left, right)):
                return Every((self._condition(left, depth), self._condition(right, depth)))
            case Compound(functor=";", arguments=(left, right)):
                return Some((self._condition(left, depth), self._condition(right, depth)))
            case Compound(functor="\\+" | "not", arguments=(inner,)):
                return Not(self._condition(inner, depth))
            case Compound(functor=functor, arguments=(left, right)) if functor in OPERATORS:
                return self._comparison(OPERATORS[functor], left, right, depth)
        raise self._no(f"{show(term)} is not a comparison.", "Write probability(o(P) >= 4), or sex(P) = f inside it.")

    def _comparison(self, operator: Operator, left: Term, right: Term, depth: int) -> Condition:
        for variable, constant in ((left, right), (right, left)):
            name = self.naming(variable)
            if name is not None and self._is_word(constant):
                if operator not in ("=", "!="):
                    raise self._no(f"{name} is a category and has no order.", "Compare it with = or \\=.")
                found = LevelIs(name, (level_of(constant, self.position),))
                return found if operator == "=" else Not(found)
        return Comparison(operator, self.convert(left, depth), self.convert(right, depth))

    def _is_word(self, term: Term) -> bool:
        lone = isinstance(term, Compound) and not term.arguments and term.functor not in _CONSTANTS
        return isinstance(term, Text) or (lone and self.naming(term) is None)

    def _parent(self, term: Term) -> str:
        name = self.naming(term)
        if name is None:
            raise self._no(f"{show(term)} in lookup is not a declared random variable.", "Declare it with random/1.")
        return name

    def _row(self, term: Term, width: int, depth: int) -> tuple[tuple[Level, ...], Expression]:
        match term:
            case Compound(functor="row", arguments=(ListTerm(items=levels), cpf)) if len(levels) == width:
                return tuple(level_of(level, self.position) for level in levels), self._row_law(cpf, depth)
        raise self._no(f"{show(term)} is not a row of {width} level(s).", "Write row([Level, …], CPF).")

    def _row_law(self, cpf: Term, depth: int) -> Expression:
        """A lone category in a row is the law that always gives it."""
        if self._is_word(cpf):
            return Distribution("discrete", (Constant(1.0),), (level_of(cpf, self.position),))
        return self.convert(cpf, depth)

    def _constant(self, value: float) -> Constant:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._no("A number is too large.", "Write a number that fits into a float.")
        return Constant(number)

    def _no(self, finding: str, way_out: str) -> Exception:
        return refusal(self.position, finding, way_out)
