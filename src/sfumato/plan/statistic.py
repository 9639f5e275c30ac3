"""What is drawn for an aggregate: which sums, how far one individual can move them, how the answer is read off.

In:   the kind of aggregate, the public bounds of one individual's contribution, the adjacency.
Out:  Statistic: dimension, sensitivities, the published values from the noisy sums with their errors and intervals.
Not here: computing the sums from rows (network/), the noise (plan/draw.py), its quantiles (plan/intervals.py).
Proof: docs/proofs/aggregates.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.adjacency import Relation
from sfumato.errors import PlanError
from sfumato.network.aggregate import AggregateNode, Grid
from sfumato.network.bounds import Bounds
from sfumato.network.network import Network
from sfumato.plan.intervals import Figure, NoiseLaw, figure_of

__all__ = ["Statistic", "Sums", "part_labels", "statistic_of"]

Numbers = NDArray[np.float64]
Kind = Literal["count", "sum", "mean", "moment2", "histogram"]

#: Products of four numbers outside this range leave the floats.
_SMALLEST, _LARGEST = 1e-60, 1e60


@dataclass(frozen=True)
class Sums:
    """The exact sums behind an aggregate: how many rows, the sum (or the vector, or matrix) of what they contribute.

    `count` is a fraction where rows count by a probability. The total of a sum or of a mean is a fraction where private
    data are summed up: a float of it is rounded by a part of the total, and one individual may move it by less.
    """

    count: float | Fraction
    total: Any


@dataclass(frozen=True)
class Statistic:
    """An aggregate of contributions in [low, high], at most `rows` of them per individual.

    `always`: every individual contributes exactly one row (no condition), so that replacing one moves no count and the
    number of contributions is public. `bounds` holds one (low, high) per attribute for "moment2".

    >>> ages = Statistic("mean", 0.0, 110.0, relation="replace-one", always=True)
    >>> ages.dimension, ages.l2
    (1, 110.0)
    >>> Statistic("histogram", cells=5, relation="replace-one").l2 == math.nextafter(math.sqrt(2), 2)
    True
    """

    kind: Kind
    low: float = 0.0
    high: float = 1.0
    rows: int = 1
    relation: Relation = "replace-one"
    always: bool = False
    cells: int = 1
    bounds: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        ends = (self.low, self.high, *(end for pair in self.bounds for end in pair))
        if not all(math.isfinite(end) for end in ends) or self.low > self.high:
            raise PlanError(
                f"A {self.kind} needs bounded contributions: declare range(...) for what is aggregated, or guard the "
                "expression with clip(X, Low, High). Nothing was planned and nothing was spent."
            )
        sizes = [max(abs(low), abs(high)) for low, high in self.bounds]
        if any(size and not _SMALLEST <= size <= _LARGEST for size in sizes):
            raise PlanError(
                f"Second moments need values between {_SMALLEST:g} and {_LARGEST:g} in size. Measure them in another "
                "unit. Nothing was planned and nothing was spent."
            )

    @property
    def replaces(self) -> bool:
        return self.relation == "replace-one"

    @property
    def is_public(self) -> bool:
        """Nobody can move it: the number of individuals under replace-one, or a sum of constants."""
        return self.l2 == 0.0

    @property
    def width(self) -> float:
        return self.high - self.low

    @cached_property
    def _grid(self) -> Grid:
        """The whole numbers in which contributions are added up (network/aggregate.py)."""
        return Grid.of(Bounds(self.low, self.high), centred=self._centred)

    @property
    def _centred(self) -> bool:
        """Whether x - middle is what is summed up and drawn: where the width is what one individual moves."""
        return self.kind == "mean" or (self.kind == "sum" and self.always)

    @property
    def middle(self) -> float:
        return float((Fraction(self.low) + Fraction(self.high)) / 2)

    @property
    def dimension(self) -> int:
        match self.kind:
            case "mean":
                return 1 if self._fixed_count else 2
            case "histogram":
                return self.cells
            case "moment2":
                return len(self.bounds) * (len(self.bounds) + 1) // 2
        return 1

    @property
    def _fixed_count(self) -> bool:
        return self.always and self.replaces and self.rows == 1

    @property
    def has_public_count(self) -> bool:
        """How many contributions there are is known to everybody."""
        return self._fixed_count

    @property
    def unit(self) -> float:
        """By what a count is multiplied when it is drawn together with a sum, so that both need the same noise.

        Under replace-one this is as large as costs nothing: an individual that leaves moves (sum, unit·count) by no
        more than one that crosses the range. Under add/remove it minimises the error of a mean spread over its range.
        """
        if self.replaces:
            return self.width * math.sqrt(0.75)
        return self.width * 48**-0.25

    @property
    def l1_unit(self) -> float:
        return self.width / 2 if self.replaces else self.width * 24 ** (-1 / 3)

    @property
    def l2(self) -> float:
        return self._rounded(self._l2())

    @property
    def l1(self) -> float:
        return self._rounded(self._l1())

    @staticmethod
    def _rounded(value: float) -> float:
        return value if value == 0 or value == round(value) else math.nextafter(value, math.inf)

    def _l2(self) -> float:
        match self.kind:
            case "count":
                return 0.0 if self._fixed_count else float(self.rows)
            case "sum":
                return self._sum_moves()
            case "mean" if self._fixed_count:
                return self._grid.crossing
            case "mean":
                away = math.hypot(self._grid.reach, self.unit)
                return self.rows * (max(self._grid.crossing, away) if self.replaces else away)
            case "histogram":
                return self.rows * (math.sqrt(2) if self.replaces else 1.0)
            case "moment2":
                # In units of each attribute's largest absolute value a row's matrix has norm at most the dimension.
                return self.rows * len(self.bounds) * (math.sqrt(2) if self.replaces else 1.0)

    def _l1(self) -> float:
        match self.kind:
            case "count" | "sum":
                return self._l2()
            case "mean" if self._fixed_count:
                return self._grid.crossing
            case "mean":
                away = self._grid.reach + self.l1_unit
                return self.rows * (max(self._grid.crossing, away) if self.replaces else away)
            case "histogram":
                return self.rows * (2.0 if self.replaces else 1.0)
            case "moment2":
                return self._l2() * math.sqrt(self.dimension)

    def _sum_moves(self) -> float:
        if self._fixed_count:
            return self._grid.crossing
        low, high = self._grid.edges
        moves = max(high, 0) - min(low, 0) if self.replaces else max(abs(low), abs(high))
        return Bounds.point(self.rows * moves).high  # type: ignore[arg-type]  # a Fraction is a number

    def encode(self, sums: Sums, pure: bool = False) -> Numbers:
        """The numbers that get noise."""
        match self.kind:
            case "count":
                return np.array([sums.count])
            case "mean":
                unit = self.l1_unit if pure else self.unit
                centred = self._moved(sums)
                return np.array([centred] if self._fixed_count else [centred, unit * float(sums.count)])
            case "sum" if self._fixed_count:
                return np.array([self._moved(sums)])
            case "sum":
                return np.atleast_1d(np.float64(sums.total))
            case "moment2":
                return _upper(np.asarray(sums.total) / np.outer(self._largest, self._largest))
        return np.atleast_1d(np.asarray(sums.total, dtype=np.float64))

    def _moved(self, sums: Sums) -> float:
        """Σ (x - middle), computed exactly and rounded once: by a part of itself, not of n·max|x|."""
        return float(_exactly(sums.total) - Fraction(self.middle) * Fraction(sums.count))

    def decode(self, noisy: Numbers, count: float | None = None, pure: bool = False) -> Numbers:
        """The published value: post-processing. `count` is the public number of contributions, where it is public."""
        match self.kind:
            case "mean":
                drawn = count if self._fixed_count else noisy[1] / (self.l1_unit if pure else self.unit)
                # A count below one says that there is next to nothing to average; the mean then stays in its range.
                mean = self.middle + noisy[0] / max(float(drawn if drawn is not None else 1.0), 1.0)
                return np.array([min(max(mean, self.low), self.high)])
            case "sum" if self._fixed_count:
                if count is None:
                    raise PlanError("A sum to which everybody contributes is read with the public number of them.")
                return np.asarray(noisy, dtype=np.float64) + self.middle * count
            case "moment2":
                return _full(noisy, len(self.bounds)) * np.outer(self._largest, self._largest)
        return np.asarray(noisy, dtype=np.float64)

    @property
    def first_reads(self) -> int:
        """How many of the drawn numbers the first published one is read off."""
        return self.dimension if self.kind == "mean" else 1

    def is_open(self, noisy: Numbers, law: NoiseLaw) -> bool:
        """Whether this is a mean whose drawn count cannot be told from 0: nothing is known of it but the range."""
        return self.kind == "mean" and not self._fixed_count and float(noisy[1]) <= law.half_width

    def first(self, rows: Numbers, count: float | None = None, pure: bool = False, is_open: bool = False) -> Numbers:
        """The first published number for every row of drawn ones: what a formula takes of it."""
        match self.kind:
            case "mean" if self._fixed_count:
                means = self.middle + rows[:, 0] / max(float(count if count is not None else 1.0), 1.0)
                return np.clip(means, self.low, self.high)
            case "mean":
                drawn = rows[:, 1] / (self.l1_unit if pure else self.unit)
                # Where the count is known to be more than 0 the ratio itself is taken, whose interval is exact.
                means = self.middle + rows[:, 0] / (np.maximum(drawn, 1.0) if is_open else drawn)
                return np.clip(means, self.low, self.high)
            case "sum" if self._fixed_count:
                return rows[:, 0] + self.middle * float(count if count is not None else 0.0)
            case "moment2":
                return rows[:, 0] * self._largest[0] ** 2
        return np.asarray(rows[:, 0], dtype=np.float64)

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        """Every published number with its own error and interval, when each drawn number carries noise of `law`.

        Of a mean with a drawn count both follow from that count; where it cannot be told from 0 nothing is known but
        the range.

        >>> counts = Statistic("histogram", cells=2).figures(np.array([40.0, 7.0]), NoiseLaw(4.0))
        >>> [(figure.value, figure.standard_error, round(figure.low, 2)) for figure in counts]
        [(40.0, 2.0, 36.08), (7.0, 2.0, 3.08)]
        """
        values = np.ravel(self.decode(noisy, count, pure))
        match self.kind:
            case "mean" if self._fixed_count:
                size = max(float(count if count is not None else 1.0), 1.0)
                free = self.middle + float(noisy[0]) / size
                return (Figure.around(free, law.times(1 / size)).within(self.low, self.high),)
            case "mean":
                return (self._ratio(np.asarray(noisy, dtype=np.float64), law, pure),)
            case "moment2":
                laws = [law.times(factor) for factor in np.ravel(self._moment_factors)]
                return tuple(Figure.around(float(value), own) for value, own in zip(values, laws, strict=True))
        return tuple(Figure.around(float(value), law) for value in values)

    def _ratio(self, noisy: Numbers, law: NoiseLaw, pure: bool) -> Figure:
        unit = self.l1_unit if pure else self.unit
        if self.is_open(noisy, law):
            return Figure(float(self.decode(noisy, None, pure)[0]), self.width / 2, self.low, self.high)
        found = figure_of(lambda rows: self.middle + unit * rows[:, 0] / rows[:, 1], noisy, (law, law))
        return found.within(self.low, self.high)

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        """(standard error, half width of the interval) of every published number, for `size` contributions.

        Exact for everything but a mean with a drawn count, whose own value is taken as spread over its range.
        """
        match self.kind:
            case "mean":
                if not self._fixed_count:
                    law = law.plus(law.times(self.width / math.sqrt(12) / (self.l1_unit if pure else self.unit)))
                own = law.times(1 / max(size, 1.0))
                return ((min(own.deviation, self.width / 2), min(own.half_width, self.width)),)
            case "moment2":
                factors = [float(factor) for factor in np.ravel(self._moment_factors)]
                return tuple((factor * law.deviation, factor * law.half_width) for factor in factors)
        return ((law.deviation, law.half_width),) * self.published_size

    @property
    def _moment_factors(self) -> Numbers:
        """By what the noise of a drawn number is multiplied in each entry of the matrix of second moments."""
        return np.outer(self._largest, self._largest) * np.sqrt(_weights(len(self.bounds)))

    @property
    def _largest(self) -> Numbers:
        return np.array([max(abs(low), abs(high)) or 1.0 for low, high in self.bounds])

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        """Expected squared error of the published value, all numbers together, when each drawn number has `variance`.

        `size` is the number of contributions; it matters for a mean only, whose own value is taken as spread over its
        range. Exact for everything but a mean with a noisy count, where it is the first-order expansion.
        """
        match self.kind:
            case "mean":
                per_count = 0.0 if self._fixed_count else variance / (self.l1_unit if pure else self.unit) ** 2
                return min((variance + self.width**2 / 12 * per_count) / max(size, 1.0) ** 2, self.width**2)
            case "moment2":
                return variance * float(
                    np.sum(np.outer(self._largest, self._largest) ** 2 * _weights(len(self.bounds)))
                )
        return variance * self.dimension

    def influence(self, size: float, pure: bool = False) -> float:
        """Expected squared error for each unit of variance."""
        return self.error(1.0, size, pure) if self.kind != "mean" else self.error(1e-12, size, pure) * 1e12

    @property
    def published_size(self) -> int:
        return len(self.bounds) ** 2 if self.kind == "moment2" else (1 if self.kind == "mean" else self.dimension)


def _exactly(total: Any) -> Fraction:
    return total if isinstance(total, Fraction) else Fraction(float(total))


def _upper(matrix: Numbers) -> Numbers:
    """The upper triangle, off-diagonal entries times √2: its Euclidean norm is the matrix's Frobenius norm."""
    rows, columns = np.triu_indices(len(matrix))
    return matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2))


def _full(vector: Numbers, size: int) -> Numbers:
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, math.sqrt(2))
    return matrix + np.triu(matrix, 1).T


def _weights(size: int) -> Numbers:
    """Variance of each entry of the full matrix for unit variance of the drawn numbers."""
    return np.where(np.eye(size) > 0, 1.0, 0.5)


def part_labels(node: AggregateNode) -> tuple[str, ...]:
    """What each published number of an aggregate is called, in order; one empty name where there is one number."""
    if node.kind == "moment2":
        return tuple(f"{first} * {second}" for first in node.values for second in node.values)
    return tuple(node.labels) if node.kind == "histogram" and len(node.labels) > 1 else ("",)


def statistic_of(node: AggregateNode, network: Network) -> Statistic:
    """What is drawn for a node of the network."""
    adjacency = network.spec.dataset(node.dataset).adjacency
    low, high = (node.bounds[0].low, node.bounds[0].high) if node.bounds else (0.0, 1.0)
    if node.kind in ("count", "histogram"):
        low, high = 0.0, 1.0
    elif not all(bound.bounded for bound in node.bounds):
        reason = next(bound.reason for bound in node.bounds if not bound.bounded)
        place = f"{node.position.file}:{node.position.line} " if node.position else ""
        raise PlanError(
            f"{place}{node.name}: a {node.kind} needs bounded contributions, and {reason}. Declare range(...) for what "
            "is aggregated, or guard the expression with clip(X, Low, High). Nothing was planned and nothing was spent."
        )
    return Statistic(
        node.kind,
        low,
        high,
        node.rows,
        adjacency.relation,
        node.everybody,
        node.size,
        tuple((bound.low, bound.high) for bound in node.bounds) if node.kind == "moment2" else (),
    )
