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
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.residual import Subset, Workload, project

__all__ = ["DrawnTables", "NoiseTerm", "nonnegative", "nonnegative_figures"]

Numbers = NDArray[np.float64]

#: So many Laplace variables of a sum keep their own law.
_OWN_LAW = 12
#: They are looked for in the drawn tables that share most columns with the published one.
_NEAREST = 60


@dataclass(frozen=True)
class NoiseTerm:
    """`count` independent noises, each of which enters a published cell times `factor`, from the table `source`."""

    source: Subset
    factor: float
    count: int


@dataclass(frozen=True)
class DrawnTables:
    """Tables `drawn` with independent noise, of `variances`, from which the tables of the workload are estimated.

    Every wanted table must be part of a drawn one. `total_is_public`: the number of rows is known, and no noise is left
    in it.

    >>> ages = DrawnTables(Workload((5,), ((0,),)), ((0,),), (1.0,), total_is_public=True)
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

    @cached_property
    def shares(self) -> dict[Subset, dict[Subset, float]]:
        """By what each table's residual is multiplied in the estimate of a residual; they add up to one."""
        found = {}
        for part in self.workload.parts:
            precisions = self._precisions(part)
            total = math.fsum(precisions.values())
            found[part] = {table: precision / total for table, precision in precisions.items()}
        return found

    def variance(self, table: Subset) -> float:
        """Of every cell of the table."""
        return self.workload.variance(table, self.spreads)

    def estimate(self, noisy: Mapping[Subset, Numbers], total: float | None = None) -> dict[Subset, Numbers]:
        """The wanted tables from the drawn ones; `total` is the number of rows where it is public."""
        residuals: dict[Subset, Numbers] = {}
        for part in self.workload.parts:
            found = np.zeros(self.workload.shape(part))
            for table, share in self.shares[part].items():
                others = tuple(axis for axis, column in enumerate(table) if column not in part)
                found += share * project(np.asarray(noisy[table], dtype=np.float64).sum(axis=others))
            residuals[part] = found
        if self.total_is_public:
            residuals[()] = np.asarray(float(total or 0.0))
        return {table: self.workload.rebuild(table, residuals) for table in self.workload.tables}

    def noise(self, table: Subset, sources: Sequence[Subset] | None = None) -> tuple[NoiseTerm, ...]:
        """Which noises a cell of the table is left with, those of some drawn tables or of all."""
        sources = self.drawn if sources is None else sources
        terms = [term for source in sources for term in self._noise_from(table, source)]
        return tuple(term for term in terms if term.factor)

    def law(self, table: Subset, laws: Mapping[Subset, NoiseLaw]) -> NoiseLaw:
        """Of the noise in every cell of a table, when the drawn tables carry these laws.

        `variances` need to be right up to a common factor. Of Laplace variables those that weigh most keep their law;
        the many others, each a small part of the whole, count as Gaussian.
        """
        first, variance = self.drawn[0], self.variances[0]
        total = self.variance(table) * laws[first].variance / variance
        if not any(law.laplace for law in laws.values()):
            return NoiseLaw(total)
        near = sorted(self.drawn, key=lambda source: -len(set(source) & set(table)))[:_NEAREST]
        terms = sorted(self.noise(table, near), key=lambda term: -abs(term.factor) * laws[term.source].deviation)
        own = list(islice((laws[one.source].times(one.factor) for one in terms for _ in range(one.count)), _OWN_LAW))
        found = NoiseLaw(max(total - math.fsum(law.variance for law in own), 0.0))
        for law in own:
            found = found.plus(law)
        return found

    def _noise_from(self, table: Subset, source: Subset) -> list[NoiseTerm]:
        """Cells of `source` matter by the columns in which they agree with the published cell."""
        sizes = self.workload.sizes
        shared = tuple(column for column in table if column in source)
        own = {part: self.shares[part][source] for part in self.workload.parts_of(shared)}
        if self.total_is_public:
            own[()] = 0.0
        outside = self.workload.left(source, shared)
        terms = []
        for agrees in product((True, False), repeat=len(shared)):
            same = dict(zip(shared, agrees, strict=True))
            count = outside * math.prod(1 if same[column] else sizes[column] - 1 for column in shared)
            if count:
                terms.append(NoiseTerm(source, self._factor(table, same, own), count))
        return terms

    def _factor(self, table: Subset, same: dict[int, bool], own: dict[Subset, float]) -> float:
        sizes = self.workload.sizes
        return math.fsum(
            share * math.prod(same[column] - 1 / sizes[column] for column in part) / self.workload.left(table, part)
            for part, share in own.items()
        )


def nonnegative(values: Sequence[float] | Numbers, total: float) -> Numbers:
    """The nearest counts of at least 0 with the given total.

    They are biased: counts near zero are pushed up, and the others down.

    >>> nonnegative([5.0, -1.0, 2.0], total=6.0).tolist()
    [4.5, 0.0, 1.5]
    """
    values = np.asarray(values, dtype=np.float64)
    if total <= 0:
        return np.zeros_like(values)
    ordered = np.sort(values.reshape(-1))[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.maximum(values - level, 0.0)


def nonnegative_figures(figures: Sequence[Figure], tables: Sequence[int]) -> tuple[Figure, ...]:
    """Every table of so many figures moved to the nearest one without negative counts that has the same total.

    The interval stays that of the unbiased number, cut at 0: the exact count is never below, so it holds it as often.
    The standard error is that of the unbiased number; the moved one has none of its own.
    """
    found: list[Figure] = []
    for size in tables:
        own = figures[len(found) : len(found) + size]
        moved = nonnegative([one.value for one in own], math.fsum(one.value for one in own)).tolist()
        found += [
            Figure(value, one.standard_error, max(one.low, 0.0), max(one.high, 0.0))
            for value, one in zip(moved, own, strict=True)
        ]
    return tuple(found)
