"""What is drawn for an aggregate: which sums, how far one individual can move them, how the answer is read off.

In:   the kind of aggregate, the public bounds of one individual's contribution, the adjacency.
Out:  Statistic: dimension, sensitivities, the published value from the noisy sums, its expected error.
Not here: computing the sums from rows (network/), the noise (plan/draw.py).
Proof: docs/proofs/aggregates.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.adjacency import Relation
from sfumato.errors import PlanError

__all__ = ["Statistic", "Sums"]

Numbers = NDArray[np.float64]
Kind = Literal["count", "sum", "mean", "moment2", "histogram"]


@dataclass(frozen=True)
class Sums:
    """The exact sums behind an aggregate: how many rows, the sum (or the vector, or matrix) of what they contribute."""

    count: float
    total: Numbers


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

    @property
    def middle(self) -> float:
        return self.low + self.width / 2

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
                return self.width
            case "mean":
                away = math.hypot(self.width / 2, self.unit)
                return self.rows * (max(self.width, away) if self.replaces else away)
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
                return self.width
            case "mean":
                away = self.width / 2 + self.l1_unit
                return self.rows * (max(self.width, away) if self.replaces else away)
            case "histogram":
                return self.rows * (2.0 if self.replaces else 1.0)
            case "moment2":
                return self._l2() * math.sqrt(self.dimension)

    def _sum_moves(self) -> float:
        if self._fixed_count:
            return self.width
        if self.replaces:
            return self.rows * (max(self.high, 0.0) - min(self.low, 0.0))
        return self.rows * max(abs(self.low), abs(self.high))

    def encode(self, sums: Sums, pure: bool = False) -> Numbers:
        """The numbers that get noise."""
        match self.kind:
            case "count":
                return np.array([sums.count])
            case "mean":
                centred = float(sums.total) - self.middle * sums.count
                unit = self.l1_unit if pure else self.unit
                return np.array([centred] if self._fixed_count else [centred, unit * sums.count])
            case "moment2":
                return _upper(np.asarray(sums.total) / np.outer(self._largest, self._largest))
        return np.atleast_1d(np.asarray(sums.total, dtype=np.float64))

    def decode(self, noisy: Numbers, count: float | None = None, pure: bool = False) -> Numbers:
        """The published value: post-processing. `count` is the public number of contributions, where it is public."""
        match self.kind:
            case "mean":
                drawn = count if self._fixed_count else noisy[1] / (self.l1_unit if pure else self.unit)
                # A count below one says that there is next to nothing to average; the mean then stays in its range.
                mean = self.middle + noisy[0] / max(float(drawn if drawn is not None else 1.0), 1.0)
                return np.array([min(max(mean, self.low), self.high)])
            case "moment2":
                return _full(noisy, len(self.bounds)) * np.outer(self._largest, self._largest)
        return np.asarray(noisy, dtype=np.float64)

    @property
    def _largest(self) -> Numbers:
        return np.array([max(abs(low), abs(high), 1e-300) for low, high in self.bounds])

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
