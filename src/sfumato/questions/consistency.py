"""Plain tables with independent noise made consistent: generalised least squares, at no cost in privacy.

In:   the Workload of wanted tables, tables over the same columns that were drawn and the variance of the noise in each.
Out:  the best linear unbiased tables, which agree wherever they overlap and with a public total; their variances and
      covariances; on request the nearest tables without negative counts.
Not here: tables planned together (questions/residual_strategy.py), the noise (mechanisms/).
Proof: docs/proofs/marginals.md

Residuals do the work: every table that holds a set of columns is an independent measurement of its residual, and the
measurements are weighed by precision. No matrix is ever made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.questions.residual import Subset, Workload, project

__all__ = ["Measured", "NoiseTerm", "nonnegative"]

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseTerm:
    """`count` independent noises, each of which enters a published cell times `factor`, from the table `source`."""

    source: Subset
    factor: float
    count: int


@dataclass(frozen=True)
class Measured:
    """Tables `drawn` with independent noise, of `variances`, from which the tables of the workload are estimated.

    Every wanted table must be part of a drawn one. `total_is_public`: the number of rows is known, and no noise is left
    in it.

    >>> ages = Measured(Workload((5,), ((0,),)), ((0,),), (1.0,), total_is_public=True)
    >>> round(ages.variance((0,)), 3), round(ages.workload.covariance((0,), [0], (0,), [1], ages.spreads), 3)
    (0.8, -0.2)
    """

    workload: Workload
    drawn: tuple[Subset, ...]
    variances: tuple[float, ...]
    total_is_public: bool

    @cached_property
    def spreads(self) -> dict[Subset, float]:
        """The variance of every residual after all tables that hold it were weighed together."""
        found = {part: 1 / math.fsum(self._precisions(part).values()) for part in self.workload.parts}
        return found | ({(): 0.0} if self.total_is_public else {})

    def _precisions(self, part: Subset) -> dict[Subset, float]:
        """Of each table about a residual: summing it up adds the noise of the cells that are summed."""
        return {
            table: 1 / (variance * self.workload.left(table, part))
            for table, variance in zip(self.drawn, self.variances, strict=True)
            if set(part) <= set(table)
        }

    def shares(self, part: Subset) -> dict[Subset, float]:
        """By what each table's residual is multiplied in the estimate; they add up to one."""
        precisions = self._precisions(part)
        total = math.fsum(precisions.values())
        return {table: precision / total for table, precision in precisions.items()}

    def variance(self, table: Subset) -> float:
        """Of every cell of the table."""
        return self.workload.variance(table, self.spreads)

    def estimate(self, noisy: Mapping[Subset, Numbers], total: float | None = None) -> dict[Subset, Numbers]:
        """The wanted tables from the drawn ones; `total` is the number of rows where it is public."""
        residuals: dict[Subset, Numbers] = {}
        for part in self.workload.parts:
            found = np.zeros(self.workload.shape(part))
            for table, share in self.shares(part).items():
                others = tuple(axis for axis, column in enumerate(table) if column not in part)
                found += share * project(np.asarray(noisy[table], dtype=np.float64).sum(axis=others))
            residuals[part] = found
        if self.total_is_public:
            residuals[()] = np.asarray(float(total or 0.0))
        return {table: self.workload.rebuild(table, residuals) for table in self.workload.tables}

    def noise(self, table: Subset) -> tuple[NoiseTerm, ...]:
        """Which noises a cell of the table is left with: the law of its error, where variances do not say all."""
        terms = [term for source in self.drawn for term in self._noise_from(table, source)]
        return tuple(term for term in terms if term.factor)

    def _noise_from(self, table: Subset, source: Subset) -> list[NoiseTerm]:
        """Cells of `source` matter by the columns in which they agree with the published cell."""
        sizes = self.workload.sizes
        shared = tuple(column for column in table if column in source)
        own = {part: self.shares(part)[source] for part in self.workload.parts_of(shared)}
        if self.total_is_public:
            own[()] = 0.0
        outside = self.workload.left(source, shared)
        terms = []
        for agrees in product((True, False), repeat=len(shared)):
            same = dict(zip(shared, agrees, strict=True))
            count = outside * math.prod(1 if same[column] else sizes[column] - 1 for column in shared)
            factor = math.fsum(
                share * math.prod(same[column] - 1 / sizes[column] for column in part) / self.workload.left(table, part)
                for part, share in own.items()
            )
            if count:
                terms.append(NoiseTerm(source, factor, count))
        return terms


def nonnegative(values: Sequence[float] | Numbers, total: float | None = None) -> Numbers:
    """The nearest counts of at least 0; with the given total, where there is one.

    They are biased: counts near zero are pushed up, and where the total is kept the others down.

    >>> nonnegative([5.0, -1.0, 2.0], total=6.0).tolist(), nonnegative([5.0, -1.0]).tolist()
    ([4.5, 0.0, 1.5], [5.0, 0.0])
    """
    values = np.asarray(values, dtype=np.float64)
    if total is None:
        return np.maximum(values, 0.0)
    if total <= 0:
        return np.zeros_like(values)
    ordered = np.sort(values.reshape(-1))[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.maximum(values - level, 0.0)
