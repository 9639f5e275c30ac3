"""How exactly each residual table is drawn, so that all wanted tables are as exact as one budget allows.

In:   a Workload, the relation between neighbours, weights of the tables.
Out:  Strategy: the numbers that get noise of one scale, whole multiples of a public step; how far one row moves them;
      the variance left in every residual.
Not here: the split of a budget over questions (plan/), the noise (mechanisms/), the tables (questions/residual.py).
Proof: docs/proofs/marginals.md

Precisions u = 1/σ² of the residuals minimise Σ importance/u while no pair of neighbours is told apart by more than
one unit of μ². Adding or removing a row costs Σ u·norm whatever the row is, which has a closed form. What replacing a
row costs depends on the set S of columns in which the two rows differ; all sets at once are one transform of m·2^m
steps, and weights on the sets are raised where the cost is largest until the value is within a two-thousandth of the
bound that any weights give.

Everything is made of sums, products, quotients and square roots in a fixed order: the same plan on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.questions.residual import Subset, Workload, project, without_means

__all__ = ["MOST_COLUMNS", "ResidualStrategy", "exactly", "optimal_strategy"]

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Factors are whole numbers of a step, at least 2^12 unless a step were below 2^-30: rounding them shows nowhere.
_DIGITS, _FINEST = 12, 30
_ONE = Fraction(1)
#: Whole numbers up to here are exact as floats.
_EXACT = 2**53
#: Beyond so many columns every residual is charged its own worst neighbour: the sets of columns are too many.
MOST_COLUMNS = 20
#: The mean squared error is within this part of the least possible one, or so many steps were taken.
_GAP = 5e-4
_STEPS = 400
_SQUARINGS = 6
_ROUNDING = 2.0**-52


def exactly(whole: NDArray[Any], step: Fraction) -> NDArray[Any]:
    """Whole numbers of a step that is a power of two: floats where those hold them all, else fractions.

    >>> exactly(np.array([3, -1]), Fraction(1, 4)).tolist(), exactly(np.array([2**60 + 1]), Fraction(1, 4)).tolist()
    ([0.75, -0.25], [Fraction(1152921504606846977, 4)])
    """
    if max(abs(int(whole.min(initial=0))), abs(int(whole.max(initial=0)))) < _EXACT:
        return whole.astype(np.float64) * float(step)
    return np.array([int(one) * step for one in whole], dtype=object)


@dataclass(frozen=True)
class ResidualStrategy:
    """Residual A is drawn as factor_A · cells_A · (P_A table_A), whole numbers of steps, each with noise of one scale.

    `replaces`: neighbours differ by one replaced row, else by one added or removed. `everybody`: each individual has
    exactly one row, so that under replacement the total is public and not drawn. `factors` holds one whole number per
    residual that is drawn; a step is 2^-`digits`.

    >>> strategy = optimal_strategy(Workload((2, 3), ((0, 1),)), replaces=True, everybody=True)
    >>> strategy.drawn, strategy.dimension
    (((0,), (1,), (0, 1)), 11)
    >>> round(strategy.variances(strategy.l2**2)[0, 1], 3)  # of a cell at μ = 1
    1.667
    """

    workload: Workload
    replaces: bool
    everybody: bool
    factors: tuple[int, ...]
    digits: int

    @cached_property
    def drawn(self) -> tuple[Subset, ...]:
        return drawn_parts(self.workload, self.total_is_public)

    @property
    def total_is_public(self) -> bool:
        return self.replaces and self.everybody

    @property
    def dimension(self) -> int:
        """How many numbers get noise: all cells of a residual, though it has fewer free ones (see the proof)."""
        return sum(self.workload.cells(part) for part in self.drawn)

    @cached_property
    def l2(self) -> float:
        """How far one row moves the vector in L2, never below the truth."""
        lengths = {
            part: factor**2 * math.prod(n * (n - 1) for n in self.workload.shape(part))
            for part, factor in zip(self.drawn, self.factors, strict=True)
        }
        squared = _cost(self.workload, lengths, self.replaces, self.everybody)
        return math.ldexp(math.nextafter(math.sqrt(squared), math.inf), -self.digits) if squared else 0.0

    def encode(self, counts: Mapping[Subset, Whole], step: Fraction = _ONE) -> NDArray[Any]:
        """The numbers that get noise, exactly, of the tables' counts in whole numbers of `step`."""
        return exactly(self.whole(counts), step / 2**self.digits)

    def whole(self, counts: Mapping[Subset, Whole]) -> Whole:
        """The numbers that get noise in whole numbers of steps."""
        summed = self.workload.added_up(counts, ((), *self.drawn))
        largest = max((f * self.workload.cells(p) for p, f in zip(self.drawn, self.factors, strict=True)), default=1)
        kind = np.int64 if int(summed[()]) * largest < 2**62 else object  # no matter how many rows there are
        pieces = [
            factor * without_means(summed[part].astype(kind)).reshape(-1)
            for part, factor in zip(self.drawn, self.factors, strict=True)
        ]
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)

    def decode(self, noisy: Numbers, total: float | None = None) -> dict[Subset, Numbers]:
        """The wanted tables from the noisy numbers; `total` is the number of rows where it is public."""
        residuals: dict[Subset, Numbers] = {}
        start = 0
        for part, unit in self._units.items():
            cells = self.workload.cells(part)
            own = np.asarray(noisy[start : start + cells], dtype=np.float64).reshape(self.workload.shape(part))
            residuals[part], start = project(own / unit), start + cells
        if self.total_is_public:
            residuals[()] = np.asarray(float(total or 0.0))
        return {table: self.workload.rebuild(table, residuals) for table in self.workload.tables}

    @cached_property
    def _units(self) -> dict[Subset, float]:
        """What one row is in the numbers drawn for each residual."""
        return {
            part: math.ldexp(factor * self.workload.cells(part), -self.digits)
            for part, factor in zip(self.drawn, self.factors, strict=True)
        }

    def spreads(self, variance: float) -> dict[Subset, float]:
        """The variance of every residual when each drawn number has noise of `variance`; a public one has none."""
        found = dict.fromkeys(self.workload.parts, 0.0)
        return found | {part: variance / unit**2 for part, unit in self._units.items()}

    def variances(self, variance: float) -> dict[Subset, float]:
        """Of a cell of every wanted table, when each drawn number has noise of `variance`."""
        spreads = self.spreads(variance)
        return {table: self.workload.variance(table, spreads) for table in self.workload.tables}


def drawn_parts(workload: Workload, total_is_public: bool) -> tuple[Subset, ...]:
    return tuple(part for part in workload.parts if part or not total_is_public)


def optimal_strategy(
    workload: Workload, replaces: bool, everybody: bool, weights: Sequence[float] | None = None
) -> ResidualStrategy:
    """The strategy with the least mean squared error of all cells for what one row can move.

    `weights` multiply the cells of a table; left out, every cell counts once.
    """
    public = replaces and everybody
    parts = drawn_parts(workload, public)
    importance = workload.importance(weights)
    precisions = _replaced(workload, importance) if replaces else _added(workload, importance)
    if replaces and not everybody:
        # Who leaves moves the other residuals by at most half the square of who is replaced: the total gets the rest.
        others = math.fsum(value * workload.norm(part) for part, value in precisions.items())
        precisions[()] = 1 - others
    roots = {part: math.sqrt(precisions[part]) for part in parts}
    smallest = min((roots[part] / workload.cells(part) for part in parts), default=1.0)
    digits = min(max(_DIGITS + 1 - math.frexp(smallest)[1], 0), _FINEST)
    factors = tuple(max(1, round(math.ldexp(roots[part] / workload.cells(part), digits))) for part in parts)
    return ResidualStrategy(workload, replaces, everybody, factors, digits)


def _added(workload: Workload, importance: Mapping[Subset, float]) -> dict[Subset, float]:
    """u = √(importance/norm) / Σ √(importance·norm): the closed form of Cauchy and Schwarz."""
    norms = {part: workload.norm(part) for part in workload.parts}
    total = math.fsum(math.sqrt(importance[part] * norms[part]) for part in workload.parts)
    return {part: math.sqrt(importance[part] / norms[part]) / total for part in workload.parts}


def _replaced(workload: Workload, importance: Mapping[Subset, float]) -> dict[Subset, float]:
    parts = [part for part in workload.parts if part]
    if not parts:
        return {}
    if len(_columns(workload)) > MOST_COLUMNS:
        worst = {part: _own_worst(workload, part) for part in parts}
        total = math.fsum(math.sqrt(importance[part] * worst[part]) for part in parts)
        return {part: math.sqrt(importance[part] / worst[part]) / total for part in parts}
    return _balanced(workload, parts, np.array([importance[part] for part in parts]))


def _balanced(workload: Workload, parts: list[Subset], importance: Numbers) -> dict[Subset, float]:
    """min Σ importance/u with cost(S) ≤ 1 for all S: weights on S climb (Σ √(importance·price))², which no u undercuts.

    A step multiplies the weights by a power of the costs, a lower one after each step that did not climb.
    """
    transform = _Transform(workload, parts)
    norms = np.array([workload.norm(part) for part in parts])
    weights = np.full(transform.size, 1 / (transform.size - 1))
    weights[0] = 0.0
    best, least, bound, squarings = np.zeros(0), math.inf, 0.0, _SQUARINGS
    kept, slopes = weights, weights
    for step in range(_STEPS):
        prices = 2 * norms * (1 - transform.of_sets(weights))
        reached = math.fsum(np.sqrt(importance * prices).tolist()) ** 2
        precisions = np.sqrt(importance / prices)
        costs = transform.costs(precisions * norms)
        largest = costs.max()
        value = math.fsum((importance / precisions).tolist()) * float(largest)
        if value < least:
            best, least = precisions / largest, value
        if reached >= bound:
            bound, kept, slopes = reached, weights, costs / largest
            squarings = min(squarings + (step % 4 == 0), 8)
        else:
            squarings = max(squarings - 1, 0)
        if least <= bound * (1 + _GAP):
            break
        factor = slopes
        for _ in range(squarings):
            factor = factor * factor
        weights = kept * factor
        weights = weights / _total(weights)
    return dict(zip(parts, map(float, best), strict=True))


def _total(values: Numbers) -> float:
    """The sum of 2^m numbers, in an order that no library decides."""
    while values.size > 1:
        half = values.size // 2
        values = values[:half] + values[half:]
    return float(values[0])


@dataclass(frozen=True)
class _Transform:
    """Sums over parts A, for every set S of columns, of g_A ∏ over A∩S of -1/(n - 1); it is its own transpose."""

    workload: Workload
    parts: list[Subset]

    @cached_property
    def columns(self) -> tuple[int, ...]:
        return _columns(self.workload)

    @property
    def size(self) -> int:
        return 1 << len(self.columns)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        bit = {column: 1 << place for place, column in enumerate(self.columns)}
        return np.array([sum(bit[column] for column in part) for part in self.parts], dtype=np.int64)

    def _applied(self, values: Numbers) -> Numbers:
        values = values.copy()
        for place, column in enumerate(self.columns):
            pairs = values.reshape(-1, 2, 1 << place)
            without, inside = pairs[:, 0].copy(), pairs[:, 1].copy()
            pairs[:, 0] = without + inside
            pairs[:, 1] = without - inside / (self.workload.sizes[column] - 1)
        return values

    def of_sets(self, weights: Numbers) -> Numbers:
        """For every part the mean over S of ∏ over A∩S of -1/(n - 1)."""
        return self._applied(weights)[self.places]

    def costs(self, lengths: Numbers) -> Numbers:
        """For every S the squared move 2 Σ length_A (1 - ∏ over A∩S of -1/(n - 1))."""
        values = np.zeros(self.size)
        values[self.places] = lengths
        summed = self._applied(values)
        return 2 * (summed[0] - summed)


def _columns(workload: Workload) -> tuple[int, ...]:
    return tuple(sorted({column for part in workload.parts for column in part}))


def _own_worst(workload: Workload, part: Subset) -> float:
    """The largest squared move of one residual alone: 2 norm (1 + 1/(n - 1)), n its shortest column."""
    return 2 * workload.norm(part) * (1 + 1 / (min(workload.shape(part)) - 1))


def _cost_of_replacing(workload: Workload, lengths: Mapping[Subset, int]) -> float:
    parts = [part for part in lengths if part]
    if len(_columns(workload)) > MOST_COLUMNS:
        return math.fsum(float(lengths[part]) * 2 * (1 + 1 / (min(workload.shape(part)) - 1)) for part in parts)
    if not parts:
        return 0.0
    return float(_Transform(workload, parts).costs(np.array([float(lengths[part]) for part in parts])).max())


def _cost(workload: Workload, lengths: Mapping[Subset, int], replaces: bool, everybody: bool) -> float:
    """The largest squared move of residuals whose row vectors have the given squared lengths; rounded up.

    Every cost is a sum of the lengths with factors of at most 2, made in at most 2m + 2 rounded steps.
    """
    total = math.fsum(float(length) for length in lengths.values())
    moves = [total] if not (replaces and everybody) else []
    if replaces:
        moves.append(_cost_of_replacing(workload, lengths))
    steps = 4 * (2 * len(_columns(workload)) + 4)
    return max(moves, default=0.0) + steps * _ROUNDING * total
