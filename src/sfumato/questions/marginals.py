"""All tables of K out of some variables, planned together: correlated noise, consistent with each other.

Gaussian noise goes on residual tables with the precisions that make the mean squared error of all cells least
(questions/residual_strategy.py). Where a promise is a pure ε plain tables are drawn, or one table of everything where
that is more exact, and made consistent (questions/consistency.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.norms import L1, L2
from sfumato.questions.consistency import DrawnTables
from sfumato.questions.form import Form
from sfumato.questions.grid import CELL, CHANCE, up
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.moves import Moves
from sfumato.questions.question import Label, Numbers, Question
from sfumato.questions.residual import Subset, Workload, all_tables
from sfumato.questions.residual_strategy import MOST_COLUMNS, ResidualStrategy, exactly, optimal_strategy
from sfumato.questions.sums import Entry, Sums

__all__ = ["Marginals"]

#: More cells are not published at once.
_MOST_CELLS = 1_000_000
#: A table of all variables is counted, and drawn where it is best, up to this size.
_SMALL_TABLE = 1 << 16


@final
@dataclass(frozen=True, kw_only=True)
class Marginals(Question):
    """Counts of the cells of every table of `whole` of the axes; a row is in one cell of each.

    >>> from sfumato.questions.axis import Axis
    >>> axes = tuple(Axis(name, levels=("no", "yes")) for name in ("a(P)", "b(P)", "c(P)"))
    >>> pairs = Marginals(axes=axes, whole=2, everybody=True)
    >>> pairs.size, pairs.labels()[1], pairs.parts()[1]
    (12, {'a(P)': 'no', 'b(P)': 'yes', 'c(P)': ''}, 'a(P) = no, b(P) = yes')
    >>> plain = math.sqrt(3 * 2)  # what a replaced row moves in three separate tables
    >>> round(pairs.predicted(NoiseLaw(pairs.moves().l2 ** 2), 100)[0][0] / plain, 2)  # at the same cost
    0.7
    """

    whole: int = 2

    form: ClassVar[Form] = Form(
        "marginals",
        (("name", "cells", "whole", "goal"),),
        "all tables of K of the variables, consistent with each other",
        "marginals",
    )
    of_expectations: ClassVar[bool] = False

    # ── public facts ─────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def workload(self) -> Workload:
        return Workload(tuple(axis.size for axis in self.axes), all_tables(len(self.axes), self.whole))

    @cached_property
    def strategy(self) -> ResidualStrategy:
        """What is drawn with Gaussian noise."""
        return optimal_strategy(self.workload, self.replaces, self.everybody and self.rows == 1)

    @cached_property
    def plain(self) -> DrawnTables:
        """What is drawn with Laplace noise, each number with variance 1: one table of everything, or every table.

        One row moves every drawn table, so that as many tables need as many times the noise.
        """
        drawn = [self.workload.tables]
        if self._counts_everything:
            drawn.append((self._everything,))
        ways = [DrawnTables(self.workload, one, (1.0,) * len(one), self.has_public_count) for one in drawn]
        return min(ways, key=lambda way: len(way.drawn) ** 2 * self._mean(way))

    def _mean(self, way: DrawnTables) -> float:
        """Of the variances of all cells."""
        cells = self.workload.cells
        return math.fsum(cells(table) * way.variance(table) for table in self.workload.tables) / self.workload.numbers

    @property
    def _counts_everything(self) -> bool:
        """Whether rows are sorted into the cells of one table of all variables; what is expected of rows never is."""
        return not self.expected and self.cells <= _SMALL_TABLE

    @property
    def _everything(self) -> Subset:
        return tuple(range(len(self.axes)))

    @property
    def counts_cells(self) -> bool:
        return True

    @property
    def is_number(self) -> bool:
        return False

    def refusal(self) -> str:
        if self.whole > len(self.axes):
            return f"tables of {self.whole} variables were asked for, and only {len(self.axes)} are listed"
        if self.workload.numbers > _MOST_CELLS:
            tables = len(self.workload.tables)
            return (
                f"its {tables:,} tables have {self.workload.numbers:,} cells, and {_MOST_CELLS:,} are published at "
                "most. Take fewer or coarser variables, or smaller tables"
            )
        return ""

    # ── what is added up, and how far one individual moves it ────────────────────────────────────────────────────────

    def entries(self) -> tuple[Entry, ...]:
        grid = CHANCE if self.expected else CELL
        tables = (self._everything,) if self._counts_everything else self.workload.tables
        return tuple(Entry(grid, (), table) for table in tables)

    def find_moves(self) -> Moves:
        """Proof: docs/proofs/marginals.md"""
        if not self.strategy.drawn:
            return Moves.none()
        tables = len(self.plain.drawn) * (2 if self.replaces else 1)
        tight = len(self.axes) <= MOST_COLUMNS
        return Moves(L1(self.rows * tables), L2(up(self.rows * Fraction(self.strategy.l2))), tight)

    def drawn_size(self, pure: bool) -> int:
        return sum(map(self.workload.cells, self.plain.drawn)) if pure else self.strategy.dimension

    def encode(self, sums: Sums, pure: bool = False) -> Numbers:
        """Exact: whole numbers of a step; fractions where no float holds them."""
        counts, step = self._counted(sums)
        if not pure:
            return self.strategy.encode(counts, step)
        tables = self.workload.added_up(counts, self.plain.drawn)
        return exactly(np.concatenate([tables[table].reshape(-1) for table in self.plain.drawn]), step)

    def _counted(self, sums: Sums) -> tuple[dict[Subset, NDArray[Any]], Fraction]:
        """The tables that were counted in whole numbers of steps, and the step."""
        kind = object if self.expected else np.int64
        counts = {
            entry.axes: np.asarray(units, dtype=kind).reshape(self.workload.shape(entry.axes))
            for entry, units in zip(self.entries(), sums.units, strict=True)
        }
        return counts, Fraction((CHANCE if self.expected else CELL).step)

    # ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────

    def truth(self, sums: Sums) -> Numbers:
        counts, step = self._counted(sums)
        tables = self.workload.added_up(counts, self.workload.tables)
        return np.concatenate([exactly(tables[table].reshape(-1), step) for table in tables]).astype(np.float64)

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        found: list[Figure] = []
        for table, values in self._tables(noisy, count, pure).items():
            own = self._law(table, law, pure)
            found.extend(Figure.around(value, own) for value in values.reshape(-1).tolist())
        return tuple(found)

    def _tables(self, noisy: Numbers, count: float | None, pure: bool) -> dict[Subset, Numbers]:
        if not pure:
            return self.strategy.decode(noisy, count)
        drawn, start = {}, 0
        for table in self.plain.drawn:
            cells = self.workload.cells(table)
            drawn[table] = np.asarray(noisy[start : start + cells]).reshape(self.workload.shape(table))
            start += cells
        return self.plain.estimate(drawn, count)

    def _law(self, table: Subset, law: NoiseLaw, pure: bool) -> NoiseLaw:
        """Of the noise in every cell of a table, when each drawn number carries `law`."""
        if pure:
            return self.plain.law(table, dict.fromkeys(self.plain.drawn, law))
        return law.times(math.sqrt(self._gaussian_variances[table]))

    def _unit_variances(self, pure: bool) -> dict[Subset, float]:
        """Of a cell of every table, for each unit of variance of the drawn numbers."""
        return self._laplace_variances if pure else self._gaussian_variances

    @cached_property
    def _laplace_variances(self) -> dict[Subset, float]:
        return {table: self.plain.variance(table) for table in self.workload.tables}

    @cached_property
    def _gaussian_variances(self) -> dict[Subset, float]:
        return self.strategy.variances(1.0)

    # ── before the run ───────────────────────────────────────────────────────────────────────────────────────────────

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        found: list[tuple[float, float]] = []
        for table in self.workload.tables:
            own = self._law(table, law, pure)
            found.extend([(own.deviation, own.half_width)] * self.workload.cells(table))
        return tuple(found)

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        cells = self.workload.cells
        return variance * math.fsum(cells(table) * own for table, own in self._unit_variances(pure).items())

    def scale(self, size: float, people: float) -> float:
        return people

    # ── names and words ──────────────────────────────────────────────────────────────────────────────────────────────

    def labels(self) -> tuple[Label, ...]:
        """Of a table that a variable is no part of, that variable's cell is empty: all of its values."""
        return tuple(
            {axis.variable: text for axis, text in zip(self.axes, cell, strict=True)}
            for table in self.workload.tables
            for cell in product(*(axis.cells if place in table else ("",) for place, axis in enumerate(self.axes)))
        )

    def parts(self) -> tuple[str, ...]:
        names = [[axis.label(place) for place in range(axis.size)] for axis in self.axes]
        return tuple(", ".join(cell) for table in self.workload.tables for cell in product(*(names[c] for c in table)))

    def tables(self) -> tuple[int, ...]:
        return tuple(map(self.workload.cells, self.workload.tables))

    def alike(self) -> tuple[tuple[str, int], ...]:
        tables = self.workload.tables
        return tuple(
            (" by ".join(self.axes[c].variable for c in table), self.workload.cells(table)) for table in tables
        )

    @cached_property
    def size(self) -> int:
        return self.workload.numbers

    def words(self) -> str:
        listed = ", ".join(axis.words for axis in self.axes)
        return f"the number of {self.counted} in every cell of all tables of {self.whole} of these variables: {listed}"

    def law_words(self, noise: str, drawn: float, error: float, pure: bool = False) -> str:
        public = f" and with the public number of {self.counted}" if self.has_public_count else ""
        where = "tables that were then made consistent" if "aplace" in noise else "their residuals"
        return (
            f"Published = exact + noise. All tables were planned together: {noise} noise was added to {where}. The "
            f"cells of one table have one standard error, {error:.4g} in the least exact table; errors of different "
            f"cells are correlated, and the tables agree with each other{public}. Numbers may be negative or "
            "fractional: that is the noise."
        )
