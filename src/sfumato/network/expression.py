"""Expressions: what a random variable is, given its parents, as a typed tree.

    Expression (abstract)
    ├── Constant      a number
    ├── Reference     another variable of the network, by the name of its node
    ├── Power         an expression times itself, a fixed number of times
    ├── Call          a function of expressions (network/functions.py)
    ├── Distribution  a law whose parameters are expressions; as a number it is its expectation
    └── Lookup        one expression per combination of the parents' levels

In:   terms of a study (network/convert.py makes trees of them).
Out:  values (numpy), SQL, sound intervals of values and of slopes, the coefficients when linear.
Not here: laws over categories and their exact inference (network/discrete.py).

A law stands for its expectation and a reference for the value (of a random variable: the expectation) of its node. That
is right where an expression is linear in what is random; network/inference.py rewrites every other one before it comes
to be evaluated (thesis §4.5.2.1, eq. 4.2, puts means into functions everywhere, which is an approximation).
Intervals and slopes are enclosures over whole ranges, never a linearisation at a point: they may be used as a proof.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Domain, Scalar
from sfumato.network.bounds import Bounds, as_bounds, hull
from sfumato.network.functions import FUNCTIONS, sql_number

__all__ = [
    "Call",
    "Constant",
    "Distribution",
    "DistributionKind",
    "Expression",
    "Gradient",
    "Level",
    "Lookup",
    "Power",
    "Ranges",
    "Reference",
    "Values",
    "sql_level",
    "sql_name",
]

Ranges = Mapping[str, Domain | Bounds | None]
Values = Mapping[str, NDArray[Any]]
Level = Scalar | float
DistributionKind = Literal["bernoulli", "normal", "poisson", "exponential", "uniform", "discrete"]
Gradient = dict[str, Bounds]
#: What every variable is multiplied by in a sum, and what is added to it.
Coefficients = tuple[dict[str, float], float]

_ZERO = Bounds(0.0, 0.0)


class Expression(ABC):
    """A number computed from the variables it refers to."""

    __slots__ = ()

    @abstractmethod
    def references(self) -> frozenset[str]:
        """The names of the nodes it needs."""

    @abstractmethod
    def evaluate(self, values: Values) -> NDArray[Any]:
        """Its value for every row; `values` maps the name of a node to its column."""

    @abstractmethod
    def to_sql(self, columns: Mapping[str, str]) -> str:
        """The same in DuckDB's SQL; `columns` maps the name of a node to a column's name, which is quoted here."""

    @property
    def in_sql(self) -> bool:
        """Whether the engine knows all its functions; if not, numpy computes it."""
        return all(part.in_sql for part in self.parts())

    def parts(self) -> tuple[Expression, ...]:
        """The expressions it is made of."""
        return ()

    @abstractmethod
    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        """Bounds of the value, and of the slope along every reference, for all values in `ranges`."""

    @abstractmethod
    def linear(self) -> Coefficients | None:
        """Coefficients and constant when it is a sum of multiples of its references, otherwise None."""

    def interval(self, ranges: Ranges) -> Bounds:
        """Where the value lies when every reference lies in its range.

        >>> (Constant(2.0) * Reference("age(P)")).interval({"age(P)": Bounds(0, 110)})
        Bounds(low=0.0, high=220.0)
        """
        return self.enclose(ranges)[0]

    def gradient_intervals(self, ranges: Ranges) -> dict[str, Bounds]:
        """For every reference an interval that holds the slope (where there is a corner: every slope) in all of
        `ranges`.

        |f(x) - f(y)| <= Σ_j magnitude_j |x_j - y_j| for x, y in a box of ranges: the mean value theorem along the
        segment, with Clarke's generalised gradient at the corners of max, min, abs and clip.

        >>> Call("tanh", (Constant(50.0) * Reference("x"),)).gradient_intervals({"x": Bounds(0, 1)})["x"].high
        50.0
        """
        return self.enclose(ranges)[1]

    def change(self, moves: Mapping[str, float | None], ranges: Ranges) -> float:
        """How far the value can move when reference j moves by at most `moves[j]` and all others stay. Rounded up.

        None says that nothing is known of the move but the range (a category becomes another one). The smaller of the
        width of the interval and Σ_j magnitude_j · move_j; infinite when neither is bounded.

        >>> expression = Call("exp", (Call("negate", (Reference("x"),)),))
        >>> round(expression.change({"x": 0.1}, {"x": Bounds(0, 10)}), 6)
        0.1
        """
        value, slopes = self.enclose(ranges)
        total = Bounds(0.0, 0.0)
        for name, move in moves.items():
            if name in slopes and move != 0.0:
                step = as_bounds(ranges.get(name)).width if move is None else move
                if not (math.isfinite(step) and slopes[name].bounded):
                    return value.width
                total = total + Bounds(0.0, slopes[name].magnitude) * Bounds(0.0, step)
        return min(total.high, value.width)

    def __add__(self, other: Expression) -> Expression:
        return Call("+", (self, other))

    def __sub__(self, other: Expression) -> Expression:
        return Call("-", (self, other))

    def __mul__(self, other: Expression) -> Expression:
        return Call("*", (self, other))

    def __truediv__(self, other: Expression) -> Expression:
        return Call("/", (self, other))


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A number."""

    value: float

    def references(self) -> frozenset[str]:
        return frozenset()

    def evaluate(self, values: Values) -> NDArray[Any]:
        return np.asarray(float(self.value))

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return sql_number(self.value)

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        return Bounds.point(self.value), {}

    def linear(self) -> Coefficients:
        return {}, float(self.value)

    def __str__(self) -> str:
        return f"{self.value:g}"


@dataclass(frozen=True, slots=True)
class Reference(Expression):
    """The value of another node."""

    variable: str

    def references(self) -> frozenset[str]:
        return frozenset((self.variable,))

    def evaluate(self, values: Values) -> NDArray[Any]:
        return np.asarray(values[self.variable], dtype=np.float64)

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return f"{sql_name(columns[self.variable])}::DOUBLE"

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        return as_bounds(ranges.get(self.variable)), {self.variable: Bounds(1.0, 1.0)}

    def linear(self) -> Coefficients:
        return {self.variable: 1.0}, 0.0

    def __str__(self) -> str:
        return self.variable


@dataclass(frozen=True, slots=True)
class Power(Expression):
    """base · base · …, `exponent` times.

    >>> Power(Reference("x"), 2).interval({"x": Bounds(-1, 2)}).low
    0.0
    """

    base: Expression
    exponent: int

    def references(self) -> frozenset[str]:
        return self.base.references()

    def parts(self) -> tuple[Expression, ...]:
        return (self.base,)

    def evaluate(self, values: Values) -> NDArray[Any]:
        base = self.base.evaluate(values)
        with np.errstate(all="ignore"):  # what is too large is infinite, as in every function
            return base ** float(self.exponent)

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return f"pow({self.base.to_sql(columns)}, {sql_number(self.exponent)})"

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        value, slopes = self.base.enclose(ranges)
        steepness = Bounds.point(self.exponent) * value.power(self.exponent - 1) if self.exponent else _ZERO
        return _library(value.power(self.exponent)), {name: steepness * slope for name, slope in slopes.items()}

    def linear(self) -> Coefficients | None:
        if self.exponent == 1:
            return self.base.linear()
        below = self.base.linear()
        if below is None or below[0]:
            return None
        value = float(Power(Constant(below[1]), self.exponent).evaluate({}))
        return ({}, value) if math.isfinite(value) else None

    def __str__(self) -> str:
        return f"({self.base}) ** {self.exponent}"


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function of FUNCTIONS and its arguments."""

    function: str
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS or not FUNCTIONS[self.function].accepts(len(self.arguments)):
            raise ValueError(f"Call: {self.function} does not take {len(self.arguments)} argument(s).")

    @property
    def in_sql(self) -> bool:
        return FUNCTIONS[self.function].sql is not None and all(part.in_sql for part in self.arguments)

    def parts(self) -> tuple[Expression, ...]:
        return self.arguments

    def references(self) -> frozenset[str]:
        return frozenset().union(*(part.references() for part in self.arguments))

    def evaluate(self, values: Values) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            return FUNCTIONS[self.function].compute([part.evaluate(values) for part in self.arguments])

    def to_sql(self, columns: Mapping[str, str]) -> str:
        written = FUNCTIONS[self.function].sql
        if written is None:
            raise TypeError(f"The engine has no {self.function}; numpy computes it.")
        return written([part.to_sql(columns) for part in self.arguments])

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        if self.function == "*" and self.arguments[0] == self.arguments[1]:
            return Power(self.arguments[0], 2).enclose(ranges)  # x·x is never negative, which [a,b]·[a,b] cannot know
        function, parts = FUNCTIONS[self.function], [part.enclose(ranges) for part in self.arguments]
        bounds = [value for value, _ in parts]
        slopes, gradients = function.slopes(bounds), [gradient for _, gradient in parts]
        combined = _chosen(slopes, gradients) if function.selects else _chained(slopes, gradients)
        return function.bounds(bounds), combined

    def linear(self) -> Coefficients | None:
        return _linear_call(self.function, [part.linear() for part in self.arguments])

    def __str__(self) -> str:
        if self.function in ("+", "-", "*", "/"):
            return f"({self.arguments[0]} {self.function} {self.arguments[1]})"
        name = "-" if self.function == "negate" else self.function
        return f"{name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Distribution(Expression):
    """A law. As a number it is its expectation: bernoulli(p) p, normal(m, s) m, poisson(l) l, exponential(w) 1/w,
    uniform(a, b) (a+b)/2, discrete Σ level · probability.

    `levels` belongs to discrete laws, whose arguments are the levels' probabilities.

    >>> print(Distribution("exponential", (Constant(4.0),)).evaluate({}))
    0.25
    """

    kind: DistributionKind
    arguments: tuple[Expression, ...]
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(DistributionKind) or (self.kind == "discrete") != bool(self.levels):
            raise ValueError(f"Distribution: {self.kind} is not a law that can be written so.")

    @property
    def categorical(self) -> bool:
        """Its levels are words: it has probabilities and no expectation."""
        return any(isinstance(level, str) for level in self.levels)

    def expectation(self) -> Expression:
        """Its mean as an expression of its parameters."""
        match self.kind:
            case "exponential":
                return Constant(1.0) / self.arguments[0]
            case "uniform":
                return Call("mean", self.arguments)
            case "discrete":
                terms = (Constant(float(v)) * p for v, p in zip(self.levels, self.arguments, strict=True))
                return Call("sum", tuple(terms))
        return self.arguments[0]

    def parts(self) -> tuple[Expression, ...]:
        return self.arguments

    def references(self) -> frozenset[str]:
        return frozenset().union(*(part.references() for part in self.arguments))

    def evaluate(self, values: Values) -> NDArray[Any]:
        return self.expectation().evaluate(values)

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return self.expectation().to_sql(columns)

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        return self.expectation().enclose(ranges)

    def linear(self) -> Coefficients | None:
        return self.expectation().linear()

    def __str__(self) -> str:
        if self.levels:
            pairs = zip(self.levels, self.arguments, strict=True)
            return f"discrete([{', '.join(f'{level}: {part}' for level, part in pairs)}])"
        return f"{self.kind}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Lookup(Expression):
    """One expression for each combination of levels of observed parents; the first row that fits counts.

    >>> table = Lookup(("sex(P)",), ((("f",), Constant(1.0)), (("m",), Constant(3.0))))
    >>> table.evaluate({"sex(P)": np.array(["m", "f"])})
    array([3., 1.])
    """

    parents: tuple[str, ...]
    rows: tuple[tuple[tuple[Level, ...], Expression], ...]

    def parts(self) -> tuple[Expression, ...]:
        return tuple(part for _, part in self.rows)

    def references(self) -> frozenset[str]:
        return frozenset(self.parents).union(*(part.references() for _, part in self.rows))

    def evaluate(self, values: Values) -> NDArray[Any]:
        columns = [np.asarray(values[name]) for name in self.parents]
        fits = [np.logical_and.reduce([c == v for c, v in zip(columns, key, strict=True)]) for key, _ in self.rows]
        # Rows may be wider than their parents: a drawn number has one value for each point.
        return np.select(fits, [np.asarray(part.evaluate(values)) for _, part in self.rows], default=np.nan)

    def to_sql(self, columns: Mapping[str, str]) -> str:
        names = [sql_name(columns[name]) for name in self.parents]
        cases = []
        for key, part in self.rows:
            fits = " AND ".join(f"{name} = {sql_level(level)}" for name, level in zip(names, key, strict=True))
            cases.append(f"WHEN {fits} THEN {part.to_sql(columns)}")
        return f"(CASE {' '.join(cases)} ELSE 'nan'::DOUBLE END)"

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        parts = [part.enclose(ranges) for _, part in self.rows]
        names = set().union(*(gradient for _, gradient in parts))
        gradient = {name: hull(part.get(name, _ZERO) for _, part in parts) for name in names}
        jump = Bounds.unbounded("a table of cases has no slope along its own parents")
        return hull(value for value, _ in parts), gradient | dict.fromkeys(self.parents, jump)

    def linear(self) -> None:
        return None

    def __str__(self) -> str:
        rows = ", ".join(f"{'/'.join(map(str, key))} → {part}" for key, part in self.rows)
        return f"lookup([{', '.join(self.parents)}], {rows})"


def sql_name(name: str) -> str:
    """An identifier in quotes.

    >>> print(sql_name('age"; DROP'))
    "age""; DROP"
    """
    return '"' + name.replace('"', '""') + '"'


def sql_level(level: Level) -> str:
    """A category as a literal."""
    if isinstance(level, str):
        return "'" + level.replace("'", "''") + "'"
    if isinstance(level, bool):
        return "TRUE" if level else "FALSE"
    return str(level) if isinstance(level, int) else sql_number(level)


def _library(bounds: Bounds) -> Bounds:
    """pow of a C library may miss the exact product by a few steps."""
    if not bounds.bounded:
        return bounds
    slack = Bounds(-4.0 * math.ulp(bounds.magnitude), 4.0 * math.ulp(bounds.magnitude))
    widened = bounds + slack
    return Bounds(0.0 if bounds.low == 0.0 else widened.low, widened.high, bounds.reason)


def _chained(slopes: Sequence[Bounds], gradients: Sequence[Gradient]) -> Gradient:
    """The chain rule, interval by interval."""
    total: Gradient = {}
    for slope, gradient in zip(slopes, gradients, strict=True):
        for name, inner in gradient.items():
            part = slope * inner
            total[name] = total[name] + part if name in total else part
    return total


def _chosen(choices: Sequence[Bounds], gradients: Sequence[Gradient]) -> Gradient:
    """The gradient of one of several arguments, nobody knows which: the hull over those that are possible."""
    possible = [gradient for choice, gradient in zip(choices, gradients, strict=True) if not choice.is_zero]
    names = set().union(*possible)
    return {name: hull(gradient.get(name, _ZERO) for gradient in possible) for name in sorted(names)}


#: What the arguments of a linear function are multiplied by, given their number.
_FACTORS: dict[str, Callable[[int], list[float]]] = {
    "+": lambda count: [1.0] * count,
    "sum": lambda count: [1.0] * count,
    "mean": lambda count: [1.0 / count] * count,
    "-": lambda count: [1.0, -1.0],
    "negate": lambda count: [-1.0],
}


def _linear_call(function: str, parts: Sequence[Coefficients | None]) -> Coefficients | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if not any(coefficients for coefficients, _ in known):
        value = FUNCTIONS[function].compute([np.asarray(constant) for _, constant in known])
        return ({}, float(value)) if np.isfinite(value) else None
    if function in _FACTORS:
        return combined(known, _FACTORS[function](len(known)))
    return _scaled_linear(function, known)


def _scaled_linear(function: str, known: Sequence[Coefficients]) -> Coefficients | None:
    """A product or a quotient of which one part alone varies."""
    match function:
        case "*" if not known[0][0]:
            return combined(known[1:], [known[0][1]])
        case "*" if not known[1][0]:
            return combined(known[:1], [known[1][1]])
        case "/" if not known[1][0] and known[1][1] != 0.0:
            return combined(known[:1], [1.0 / known[1][1]])
        case "max" | "min" if len(known) == 1:
            return known[0]
    return None


def combined(parts: Sequence[Coefficients], factors: Sequence[float]) -> Coefficients:
    """The sum of linear forms (coefficients, constant), each times its factor."""
    total: dict[str, float] = {}
    constant = 0.0
    for (coefficients, offset), factor in zip(parts, factors, strict=True):
        constant += factor * offset
        for name, value in coefficients.items():
            total[name] = total.get(name, 0.0) + factor * value
    return total, constant
