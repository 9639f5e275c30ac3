"""Expectations without a closed form: public quasi-random points, the same for every individual.

In:   an expression of random numbers, their laws given the individual's cells.
Out:  Expectation: its value for every row, bounds that hold for what is computed, an estimate of the error left.
Not here: what has a closed form (network/moments.py), what needs points at all (network/inference.py).
Proof: docs/proofs/expectations.md

The points are those of Sobol's sequence with Joe and Kuo's direction numbers, moved to the middle of their cells: no
seed, no dependence on data or on the version of a library's generator. One random count alone is summed over its
values instead. Rows are taken in blocks, and a row's value depends on that row alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.network.bounds import Bounds
from sfumato.network.discrete import level_probability
from sfumato.network.expression import Distribution, Expression, Gradient, Level, Ranges, Values

__all__ = ["POINTS", "Atom", "Expectation", "terms_for"]

Numbers = NDArray[np.float64]
#: How many points: a power of two, as Sobol's sequence wants it.
POINTS = 1024
#: Randomisations by which the error is estimated.
_SHIFTS = 8
#: Numbers held at once for one intermediate value.
_BLOCK = 1 << 20
#: A count is summed over its values up to so many.
_MOST_TERMS = 2048
_LARGEST_RATE = 500.0


@dataclass(frozen=True, slots=True)
class Atom:
    """One random number: its name in expressions, its law given the cells and the atoms before it.

    `levels` lists the values of a finite one, whose law may be a table of cases.
    """

    name: str
    law: Expression
    levels: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation(Expression):
    """The mean of `body` over its atoms (each after those its law refers to), clipped to `low` and `high`.

    `terms` is the number of values of a single count that are summed, 0 where points are used.

    >>> from sfumato.network.expression import Call, Constant, Reference
    >>> noise = Atom("o", Distribution("normal", (Reference("x"), Constant(1.0))))
    >>> found = Expectation(Call("tanh", (Reference("o"),)), (noise,), -1.0, 1.0)
    >>> [round(float(value), 4) + 0.0 for value in found.evaluate({"x": np.array([0.0, 1.0])})]
    [0.0, 0.5504]
    """

    body: Expression
    atoms: tuple[Atom, ...]
    low: float
    high: float
    terms: int = 0
    reason: str | None = field(default=None, compare=False, repr=False)

    @property
    def in_sql(self) -> bool:
        return False

    def parts(self) -> tuple[Expression, ...]:
        return (self.body, *(atom.law for atom in self.atoms))

    def references(self) -> frozenset[str]:
        own = {atom.name for atom in self.atoms}
        return frozenset().union(*(part.references() for part in self.parts())) - own

    def enclose(self, ranges: Ranges) -> tuple[Bounds, Gradient]:
        jump = Bounds.unbounded("an expectation by points has no proved slope")
        return Bounds(self.low, self.high, self.reason), dict.fromkeys(self.references(), jump)

    def linear(self) -> None:
        return None

    def to_sql(self, columns: Mapping[str, str]) -> str:
        raise TypeError("The engine has no expectations; numpy computes them.")

    def evaluate(self, values: Values) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            found = self._mean(values, _points(len(self.atoms)))
            return np.fmin(np.maximum(found, self.low), self.high)

    def error(self, values: Values) -> NDArray[Any]:
        """An estimate of |computed - true|: three times the spread of randomly shifted sets of the same points."""
        if self.terms:
            return np.zeros(np.broadcast_shapes(*(np.shape(values[name]) for name in self.references())))
        generator = np.random.Generator(np.random.PCG64(20))
        plain, found = _points(len(self.atoms)), []
        with np.errstate(all="ignore"):
            centre = self._mean(values, plain)
            for _ in range(_SHIFTS):
                moved = (plain + generator.random((1, len(self.atoms)))) % 1.0
                found.append(self._mean(values, np.clip(moved, 2.0**-40, 1 - 2.0**-40)) - centre)
        return 3 * np.sqrt(np.mean(np.square(found), axis=0))

    def _mean(self, values: Values, points: Numbers) -> NDArray[Any]:
        names = sorted(self.references())
        columns = np.broadcast_arrays(*(np.asarray(values[name]) for name in names)) if names else []
        shape = columns[0].shape if columns else ()
        flat = [column.reshape(-1) for column in columns]
        rows = max(1, _BLOCK // (self.terms or len(points)))
        size = int(math.prod(shape))
        parts = []
        for start in range(0, size, rows):
            block = {name: column[start : start + rows, None] for name, column in zip(names, flat, strict=True)}
            count = min(rows, size - start)
            parts.append(self._summed(block, count) if self.terms else self._averaged(block, points, count))
        return np.concatenate(parts).reshape(shape) if parts else np.empty(shape)

    def _averaged(self, values: dict[str, Any], points: Numbers, rows: int) -> Numbers:
        known = dict(values)
        for atom, uniform in zip(self.atoms, points.T, strict=True):
            known[atom.name] = _quantile(atom, known, uniform[None, :])
        found = np.broadcast_to(self.body.evaluate(known), (rows, len(points)))
        return np.ascontiguousarray(found).mean(axis=1)

    def _summed(self, values: dict[str, Any], rows: int) -> Numbers:
        """Σ P(n) · body(n) over the values of one count."""
        from scipy.special import gammaln

        (atom,) = self.atoms
        assert isinstance(atom.law, Distribution)
        counts = np.arange(self.terms, dtype=np.float64)[None, :]
        rate = np.maximum(atom.law.arguments[0].evaluate(values), 0.0)
        # log(0) is no trouble: at rate zero only the count zero is possible.
        logs = np.where(counts > 0, counts * np.log(rate), 0.0) - rate - gammaln(counts + 1)
        found = self.body.evaluate(values | {atom.name: counts}) * np.exp(logs)
        return np.ascontiguousarray(np.broadcast_to(found, (rows, self.terms))).sum(axis=1)


def terms_for(rate: Bounds) -> int:
    """How many values of a count cover all but 10^-15 of its law; 0 if they are too many or nobody knows."""
    if not rate.bounded:
        return 0
    most = max(rate.high, 0.0)
    terms = math.ceil(most + 9 * math.sqrt(most) + 40)  # Chernoff: P(x >= r + 9√r + 40) < 10^-15 for all r
    return terms if terms <= _MOST_TERMS else 0


@lru_cache(maxsize=32)
def _points(dimension: int) -> Numbers:
    """The first points of Sobol's sequence, in the middle of their cells."""
    from scipy.stats.qmc import Sobol  # loading it takes as long as a plan, and few studies need it

    made = Sobol(dimension, scramble=False).random(POINTS) + 0.5 / POINTS
    made.setflags(write=False)
    return made


def _quantile(atom: Atom, values: Mapping[str, Any], uniform: Numbers) -> NDArray[Any]:
    """The value of an atom at every point: the inverse of its distribution function."""
    law = atom.law
    if atom.levels:
        return _finite_quantile(atom, values, uniform)
    assert isinstance(law, Distribution)
    arguments = [part.evaluate(values) for part in law.arguments]
    match law.kind:
        case "normal":
            from scipy.special import ndtri

            return arguments[0] + arguments[1] * ndtri(uniform)
        case "exponential":
            return -np.log1p(-uniform) / arguments[0]
        case "uniform":
            return arguments[0] + (arguments[1] - arguments[0]) * uniform
    return _poisson_quantile(np.maximum(arguments[0], 0.0), uniform)


def _poisson_quantile(rate: NDArray[Any], uniform: Numbers) -> NDArray[Any]:
    """How many values of the distribution function lie below the point, added up from P(0) = e^-rate."""
    if np.max(rate, initial=0.0) > _LARGEST_RATE:
        return _large_poisson_quantile(rate, uniform)
    chance = np.exp(-rate)
    reached, found = chance, np.zeros(np.broadcast_shapes(rate.shape, uniform.shape))
    for count in range(1, _MOST_TERMS):
        above = uniform > reached
        if not above.any():
            break
        found += above
        chance = chance * rate / count
        reached = reached + chance
    return found


def _large_poisson_quantile(rate: NDArray[Any], uniform: Numbers) -> NDArray[Any]:
    """The same where e^-rate is no number any more; a hundred times slower."""
    from scipy.special import pdtr, pdtrik

    guess = np.ceil(pdtrik(uniform, rate))
    below = np.maximum(guess - 1, 0)
    return np.where(rate > 0, np.where(pdtr(below, rate) >= uniform, below, guess), 0.0)


def _finite_quantile(atom: Atom, values: Mapping[str, Any], uniform: Numbers) -> NDArray[Any]:
    reached: Any = 0.0
    chances = [np.maximum(level_probability(atom.law, level).evaluate(values), 0.0) for level in atom.levels]
    scaled = uniform * sum(chances)
    place: Any = 0
    for chance in chances[:-1]:
        reached = reached + chance
        place = place + (scaled > reached)
    return np.asarray(atom.levels)[place]
