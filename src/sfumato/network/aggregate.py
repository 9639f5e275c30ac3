"""Numbers about many individuals, and how far one of them can move these numbers.

In:   the values' bounds, the condition, how many rows a person may have.
Out:  AggregateNode with its `contribution`: the proof obligation of every mechanism that publishes it.
Not here: the sums themselves (network/evaluate.py), the noise (mechanisms/).

Every contribution is rounded to a public grid and added up in whole numbers. Floating-point sums depend on the order of
the rows and their true sensitivity exceeds the textbook's (Casacuberta et al. 2022); sums of whole numbers do neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise

from sfumato.core.adjacency import Adjacency
from sfumato.lang.spec import AggregateKind
from sfumato.lang.term import Position, Term
from sfumato.network.bounds import Bounds
from sfumato.network.condition import Condition
from sfumato.network.expression import Level

__all__ = ["AggregateNode", "Contribution", "Grid", "joint"]

#: Whole numbers up to 2^52 are exact as floats, so a contribution loses nothing but its last bits.
_DIGITS = 52


@dataclass(frozen=True, slots=True)
class Grid:
    """Contributions x in whole numbers: `low` <= (x - offset) / step <= `high`, and `step` is a power of two.

    The step is small beside the largest |x - offset|. Where the width of a range is what one individual moves, the
    offset is therefore its middle: a step small beside 10^15 would be large beside a range of width 1 that lies there.

    >>> grid = Grid.of(Bounds(1e15, 1e15 + 1), centred=True)
    >>> grid.offset == 1e15 + 0.5, grid.step < 1e-15, grid.crossing
    (True, True, 1.0)
    """

    offset: float
    step: float
    low: int
    high: int

    @classmethod
    def of(cls, bounds: Bounds, centred: bool = False) -> Grid:
        """The grid of contributions within `bounds`."""
        low, high = Fraction(bounds.low), Fraction(bounds.high)
        offset = float((low + high) / 2) if centred else 0.0
        low, high = low - Fraction(offset), high - Fraction(offset)
        step = _step(_up(max(abs(low), abs(high))))
        return cls(offset, step, math.floor(low / Fraction(step)), math.ceil(high / Fraction(step)))

    @property
    def crossing(self) -> float:
        """How far a contribution moves when it crosses its range, grid included; rounded up."""
        return _up((self.high - self.low) * Fraction(self.step))

    @property
    def reach(self) -> float:
        """The largest |x - offset|, grid included; rounded up."""
        return _up(max(abs(self.low), abs(self.high)) * Fraction(self.step))

    @property
    def edges(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest contribution on the grid, exactly."""
        step, offset = Fraction(self.step), Fraction(self.offset)
        return self.low * step + offset, self.high * step + offset


@dataclass(frozen=True, slots=True)
class Contribution:
    """How far the published vector moves in the L1 and in the L2 norm when one individual changes; rounded up."""

    l1: float
    l2: float
    reason: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AggregateNode:
    """A vector that sums up individuals.

    `values` are the nodes added up, `bounds` their public bounds, `rows` the most rows one person may have, `everybody`
    whether each individual contributes exactly one row whatever the data say, `cuts` or `levels` the bins of a
    histogram. `expected` says that random variables decide who counts, or are multiplied or sorted into bins: then
    every row adds its expected contribution (network/expected.py), a mean of contributions that are possible.
    """

    name: str
    atom: Term
    kind: AggregateKind
    dataset: str
    values: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    condition: Condition
    rows: int = 1
    everybody: bool = False
    cuts: tuple[float, ...] = ()
    levels: tuple[Level, ...] = ()
    row_table: str | None = None
    position: Position | None = field(default=None, compare=False, repr=False)
    expected: bool = False

    level = "aggregate"

    @property
    def parents(self) -> tuple[str, ...]:
        """The nodes of an individual it reads."""
        return tuple(dict.fromkeys((*self.values, *sorted(self.condition.references()))))

    @property
    def labels(self) -> tuple[str, ...]:
        """What each entry of the vector counts."""
        match self.kind:
            case "count":
                return ("count",)
            case "sum":
                return (f"sum of {self.values[0]}",)
            case "mean":
                return (f"sum of {self.values[0]}", "count")
            case "moment2":
                return tuple(f"sum of {a} * {b}" for a, b in combinations_with_replacement(self.values, 2))
        if self.levels:
            return tuple(f"{self.values[0]} = {level}" for level in self.levels)
        ends = ["", *(repr(float(cut)).removesuffix(".0") for cut in self.cuts), ""]  # two cuts are never one text
        return tuple(f"{self.values[0]} in [{a}, {b})" for a, b in pairwise(ends))

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self.labels)

    @property
    def entries(self) -> tuple[Bounds, ...]:
        """What one counted row adds to each entry, before the grid."""
        one = Bounds(1.0, 1.0)
        match self.kind:
            case "count":
                return (one,)
            case "sum":
                return self.bounds
            case "mean":
                return (*self.bounds, one)
            case "moment2":
                pairs = combinations_with_replacement(range(len(self.bounds)), 2)
                return tuple(self.bounds[i].power(2) if i == j else self.bounds[i] * self.bounds[j] for i, j in pairs)
        return (Bounds(0.0, 1.0),) * self.size

    @property
    def grids(self) -> tuple[Grid, ...] | None:
        """The public grid of each entry; None when a value is unbounded.

        A mean is centred, and so is a sum to which everybody contributes: replacing one moves these by the width.
        """
        if not all(entry.bounded for entry in self.entries):
            return None
        # An expected contribution to a count is a probability, which needs a grid of its own.
        one = Grid.of(Bounds(0.0, 1.0)) if self.expected else Grid(0.0, 1.0, 1, 1)
        match self.kind:
            case "mean":
                return Grid.of(self.entries[0], centred=True), one
            case "count":
                return (one,)
            case "histogram":
                return (one if self.expected else Grid(0.0, 1.0, 0, 1),) * self.size
        centred = self.kind == "sum" and self.everybody
        return tuple(Grid.of(entry, centred) for entry in self.entries)

    @property
    def steps(self) -> tuple[float, ...] | None:
        """The step of each entry's grid, a power of two; None when a value is unbounded."""
        return None if self.grids is None else tuple(grid.step for grid in self.grids)

    @property
    def units(self) -> tuple[tuple[int, int], ...]:
        """The least and the greatest whole number of grid steps one counted row adds to each entry."""
        return tuple((grid.low, grid.high) for grid in self.grids or ())

    def contribution(self, adjacency: Adjacency) -> Contribution:
        """The largest change of the vector by one individual, grid included.

        Let a row's entries lie in [a, b], m the most rows, V the corners {0, m·a, m·b} of what a person can add
        (without 0 and with m = 1 if everybody contributes exactly one row). A norm is convex, so its maximum sits at
        corners:

        add-remove:   max over v in V of |v|.
        replace-one:  max over v, w in V of |v - w|.
        count         V = {0, m}: both m.
        sum           V = {0, m·a, m·b}: replace-one m(max(b, 0) - min(a, 0)), or b - a if everybody;
                      add-remove m·max(|a|, |b|).
        mean          the pair (sum, count), V = {0, m(a, 1), m(b, 1)}:
                      replace-one the larger of m(b - a) and m·|(max(|a|, |b|), 1)|, which add-remove is.
        moment2       entries x_i x_j, i <= j, with r_i = max(|a_i|, |b_i|):
                      add-remove L2 m·sqrt(Σ r_i² r_j²), L1 m·Σ r_i r_j; replace-one L2 the smaller of √2 times that
                      (two such vectors have the nonnegative inner product ½(Σ x_i² y_i² + (x·y)²)) and the diagonal
                      of the box of the entries; L1 the smaller of twice that and the box's.
        histogram     m rows leave one bin for another: replace-one L1 2m, L2 √2·m; add-remove m.

        >>> from sfumato.core import ADD_REMOVE, REPLACE_ONE
        >>> from sfumato.lang.term import Compound
        >>> from sfumato.network.condition import Every
        >>> total = AggregateNode("total", Compound("total"), "sum", "people", ("age(P)",), (Bounds(0, 110),), Every())
        >>> total.contribution(REPLACE_ONE)
        Contribution(l1=110.0, l2=110.0, reason=None)
        """
        if self.steps is None:
            reason = next(entry.reason for entry in self.entries if not entry.bounded)
            return Contribution(math.inf, math.inf, reason)
        replaced = adjacency.relation == "replace-one"
        if self.kind == "histogram":
            return _histogram(self.rows, replaced)
        if self.kind == "moment2":
            return self._moment(replaced)
        corners = self._corners()
        moves = [_minus(v, w) for v, w in combinations(corners, 2)] if replaced else corners
        return _largest(moves)

    def _edges(self) -> list[tuple[Fraction, Fraction]]:
        """The entries' ends on the grid, exactly; a row that counts, counts one."""
        edges = [grid.edges for grid in self.grids or ()]
        return [*edges[:-1], (Fraction(1), Fraction(1))] if self.kind in ("count", "mean") else edges

    def _corners(self) -> list[tuple[Fraction, ...]]:
        edges = self._edges()
        ends = [tuple(low for low, _ in edges), tuple(high for _, high in edges)]
        scaled = [tuple(self.rows * entry for entry in end) for end in ends]
        # A count of everybody is public under replace-one; it is charged like any other all the same.
        certain = self.everybody and self.kind != "count"
        return scaled if certain else [tuple(Fraction(0) for _ in edges), *scaled]

    def _moment(self, replaced: bool) -> Contribution:
        edges = self._edges()
        sizes = [self.rows * max(abs(low), abs(high)) for low, high in edges]
        alone = _largest([tuple(sizes)])
        if not replaced:
            return alone
        floor = [
            (low, high) if self.everybody else (min(low, Fraction(0)), max(high, Fraction(0))) for low, high in edges
        ]
        box = _largest([tuple(self.rows * (high - low) for low, high in floor)])
        twice = _root_up(2 * sum((size * size for size in sizes), Fraction(0)))
        return Contribution(min(2 * alone.l1, box.l1), min(twice, box.l2))


def joint(contributions: Iterable[Contribution]) -> Contribution:
    """Several aggregates as one vector: L1 norms add, L2 norms add in squares; rounded up.

    >>> joint([Contribution(3.0, 3.0), Contribution(4.0, 4.0)])
    Contribution(l1=7.0, l2=5.0, reason=None)
    """
    parts = list(contributions)
    reason = next((part.reason for part in parts if part.reason), None)
    if reason is not None or any(math.isinf(part.l1) for part in parts):
        return Contribution(math.inf, math.inf, reason)
    total = sum((Fraction(part.l1) for part in parts), Fraction(0))
    return Contribution(_up(total), _root_up(sum((Fraction(part.l2) ** 2 for part in parts), Fraction(0))))


def trimmed(cuts: Sequence[float], bounds: Bounds) -> tuple[float, ...]:
    """The cuts that split the range: a cut at or beyond an end would make a bin for nobody.

    >>> trimmed([0, 20, 65, 110], Bounds(0, 110))
    (20.0, 65.0)
    """
    return tuple(float(cut) for cut in cuts if bounds.low < cut < bounds.high)


def _step(magnitude: float) -> float:
    if magnitude == 0.0:
        return 1.0
    exponent = math.frexp(magnitude)[1]  # magnitude <= 2^exponent
    return math.ldexp(1.0, max(exponent - _DIGITS, -1000))


def _histogram(rows: int, replaced: bool) -> Contribution:
    if not replaced:
        return Contribution(float(rows), float(rows))
    return Contribution(float(2 * rows), _root_up(Fraction(2 * rows * rows)))


def _minus(v: tuple[Fraction, ...], w: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return tuple(a - b for a, b in zip(v, w, strict=True))


def _largest(moves: Sequence[tuple[Fraction, ...]]) -> Contribution:
    l1 = max(sum((abs(entry) for entry in move), Fraction(0)) for move in moves)
    l2 = max(sum((entry * entry for entry in move), Fraction(0)) for move in moves)
    return Contribution(_up(l1), _root_up(l2))


def _up(exact: Fraction) -> float:
    return Bounds.point(exact).high  # type: ignore[arg-type]  # a Fraction is a number


def _root_up(exact: Fraction) -> float:
    """The least float whose square is not below `exact`, or one step more."""
    root = math.sqrt(_up(exact))
    while Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root
