"""Quantiles of a variable: a noisy cumulative table over public places, and where it crosses the wanted shares.

In:   a public range, the wanted quantiles.
Out:  Quantile, Median: how many rows lie in each bin, encoded so that every cumulative count has little noise.
Not here: drawing the quantiles themselves, which is better for few of them (run/publish_quantiles.py).
Proof: docs/proofs/quantiles.md, "Noisy cumulative counts"
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar, final

import numpy as np

from sfumato.core.norms import L1, L2
from sfumato.mechanisms.quantile_grid import QuantileGrid
from sfumato.questions.axis import Axis
from sfumato.questions.cumulative import CountTree, Toeplitz, strategy_of
from sfumato.questions.form import Form
from sfumato.questions.grid import CELL, root_up
from sfumato.questions.intervals import NORMAL_95, Figure, NoiseLaw
from sfumato.questions.moves import Moves
from sfumato.questions.question import Basis, Label, Numbers, Question
from sfumato.questions.sums import Entry, Sums
from sfumato.questions.ways import NOISE, Ways

__all__ = ["LAPLACE_95", "Median", "Quantile", "Quantiles"]

#: Cumulative counts are drawn for at most so many bins, of one group.
_BINS, _FEWEST_BINS = 4096, 256
#: Rows are counted at so many places of all groups together, at least at so many of each.
_PLACES, _FEWEST_PLACES = 1 << 16, 1 << 12
_WAYS = Ways(
    "quantile",
    {"joint": "all quantiles of a variable drawn together", "central": "noise on cumulative counts", **NOISE},
    ("sfumato.run.publish_quantiles",),
    numbers="quantiles",
)
#: The 95 % point of any sum of Laplace variables lies between 1.96 and 2.12 of its deviations.
LAPLACE_95 = 2.1184


def _least_places(groups: int) -> int:
    """At how many places rows of each group are counted at least; at most ten times as many."""
    return max(_PLACES // groups, _FEWEST_PLACES)


@lru_cache(maxsize=64)
def _grid(low: float, high: float, step: float | None, groups: int) -> QuantileGrid | None:
    return QuantileGrid.between(low, high, step, _least_places(groups)) if low < high else None


@lru_cache(maxsize=64)
def _cuts(places: QuantileGrid | None) -> tuple[float, ...]:
    if places is None:
        return ()
    values = places.value_at(np.arange(places.count))
    return tuple(((values[1:] + values[:-1]) / 2).tolist())


def _shown(share: float) -> str:
    """A wanted share as it is written, so that no two look alike."""
    return f"{share:.15g}"


# ── the question ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Quantiles(Question):
    """What `wanted` shares of the rows lie below. The last axis sorts rows by place; those before it are groups.

    `step` is the distance between places where it is not left to the range; it is where there would be too many.
    `listed` are the values that rows have, where a study lists them: others are not published.
    """

    step: float | None = None
    listed: tuple[float, ...] = ()

    of_expectations: ClassVar[bool] = False
    locates: ClassVar[bool] = True
    has_places: ClassVar[bool] = True
    drawn_way: ClassVar[str] = "joint"

    def __post_init__(self) -> None:
        if self.bounded and (not self.axes or self.axes[-1].variable != self.values[0]):
            (low, high), groups = self.ranges[0], math.prod(axis.size for axis in self.axes)
            if self.step is not None and high - low > self.step * 10 * _least_places(groups):
                object.__setattr__(self, "step", None)  # too many places to count rows at, in every group
            cuts = _cuts(_grid(low, high, self.step, groups))
            object.__setattr__(self, "axes", (*self.axes, Axis(self.values[0], (), cuts, low, high)))

    @property
    @abstractmethod
    def wanted(self) -> tuple[float, ...]:
        """The quantiles, increasing."""

    # ── public facts ─────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def places(self) -> QuantileGrid | None:
        """The numbers that may be published."""
        return _grid(*self.ranges[0], self.step, self.parted)

    @property
    def groups(self) -> tuple[Axis, ...]:
        return self.axes[:-1]

    @property
    def parted(self) -> int:
        """How many groups there are."""
        return math.prod(axis.size for axis in self.groups)

    @property
    def width(self) -> float:
        return self.ranges[0][1] - self.ranges[0][0]

    @property
    def is_number(self) -> bool:
        """What is drawn for it are counts, which no formula reads."""
        return False

    def refusal(self) -> str:
        if self.expected:
            return "quantiles are of values that rows have, and these are random. Ask for a variable read from a column"
        if not self.wanted or not all(0 < one < 1 for one in self.wanted):
            return "quantiles are numbers between 0 and 1, such as [0.25, 0.5, 0.9]"
        return "" if self.places is not None else "its range has one value only"

    @property
    def may_be_drawn(self) -> bool:
        from sfumato.questions.joint import JointQuestion  # which knows this class

        return self.bounded and not (self.refusal() or self.is_public or JointQuestion.refused(self))

    # ── bins ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def starts(self) -> np.ndarray:
        """The first place of every bin: bins share the public weight of the places evenly, heavy places are alone."""
        assert self.places is not None
        weights = self.places.weights
        bins = min(max(_BINS // self.parted, _FEWEST_BINS), self.places.count)
        before = self.places.starts[:-1] // (self.places.total // bins + 1)
        heavy = weights * 2 > self.places.total // bins
        new = np.concatenate([[True], (np.diff(before) > 0) | heavy[1:] | heavy[:-1]])
        return np.flatnonzero(new)

    @property
    def bins(self) -> int:
        return self.starts.size

    def strategy(self, pure: bool) -> Toeplitz | CountTree:
        return strategy_of(self.bins, pure)

    # ── what is added up, and how far one individual moves it ────────────────────────────────────────────────────────

    def entries(self) -> tuple[Entry, ...]:
        return (Entry(CELL, (), tuple(range(len(self.axes)))),)

    def find_moves(self) -> Moves:
        """Proof: docs/proofs/quantiles.md. One row is one column of the strategy; with `rows` of them, as many."""
        if not self.bounded or self.places is None:
            return Moves.none() if self.bounded else Moves(L1(math.inf), L2(math.inf))
        longest, apart = self._toeplitz.moves(self.parted > 1)
        levels = len(self._tree.levels)
        certain = self.everybody and self.rows == 1
        square = (apart if certain else max(longest, apart)) if self.replaces else longest
        in_sum = L1(float(self.rows * levels * (2 if self.replaces else 1)))
        return Moves(in_sum, L2(root_up(self.rows**2 * square)), tight=self.rows == 1)

    @property
    def _toeplitz(self) -> Toeplitz:
        return strategy_of(self.bins, False)  # type: ignore[return-value]

    @property
    def _tree(self) -> CountTree:
        return strategy_of(self.bins, True)  # type: ignore[return-value]

    @property
    def drawn(self) -> int:
        """How many numbers are drawn for a group: those of the longer strategy; the other is filled up with 0."""
        return max(self._toeplitz.size, self._tree.size)

    @property
    def dimension(self) -> int:
        return self.parted * self.drawn

    def counts(self, sums: Sums) -> np.ndarray:
        """How many rows lie at each place of each group: private."""
        assert self.places is not None
        return np.array(sums.units[0], dtype=np.int64).reshape(self.parted, self.places.count)

    def read_off(self, sums: Sums) -> dict[str, Sequence[Any]]:
        (counts,) = self.counts(sums)
        return {"count": counts.tolist()}

    def encode(self, sums: Sums, pure: bool = False) -> Numbers:
        way = self.strategy(pure)
        binned = np.add.reduceat(self.counts(sums), self.starts, axis=1)
        found = np.zeros((self.parted, self.drawn))
        found[:, : way.size] = [way.encode(counts) for counts in binned]
        return found.reshape(-1)

    # ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────

    def truth(self, sums: Sums) -> Numbers:
        """What the exact counts of the bins give: the quantile of the rows to within one bin."""
        return np.array([one.value for one in self.figures(self.encode(sums), NoiseLaw())])

    def figures(
        self, noisy: Numbers, law: NoiseLaw, count: float | None = None, pure: bool = False
    ) -> tuple[Figure, ...]:
        way = self.strategy(pure)
        drawn = np.asarray(noisy, dtype=np.float64).reshape(self.parted, -1)[:, : way.size]
        below = [way.cumulative(one) for one in drawn]
        return tuple(self._figure(one, share, way.variances(share), law) for one in below for share in self.wanted)

    def _figure(self, below: Numbers, share: float, variances: Numbers, law: NoiseLaw) -> Figure:
        """Where the cumulative counts cross their share of all rows, and where they can be told from it.

        The ends come from the counts as drawn: missing the quantile needs one of two fixed counts to be far off.
        """
        assert self.places is not None
        reach = law.deviation * (LAPLACE_95 if law.laplace else NORMAL_95) * np.sqrt(variances)
        off = below - share * below[-1]
        off = np.where(np.abs(off) < 1e-7 * max(1.0, abs(below[-1])), 0.0, off)  # what decoding rounds
        smooth = (np.maximum.accumulate(off) + np.minimum.accumulate(off[::-1])[::-1]) / 2
        ends = np.append(self.starts[1:], self.places.count) - 1
        bin_ = min(int(np.searchsorted(smooth, 0.0)), self.bins - 1)
        before = smooth[bin_ - 1] if bin_ else -share * max(below[-1], 0.0)
        part = 1.0 if smooth[bin_] <= before else min(1.0, max(0.0, -before / (smooth[bin_] - before)))
        cell = round(self.starts[bin_] + part * (ends[bin_] - self.starts[bin_]))
        if law.deviation == 0:
            return Figure.exact(self.figure_at(cell, cell, cell, NORMAL_95).value)
        low = self.starts[int(np.argmax(off + reach >= 0))]
        not_above = np.flatnonzero(off - reach <= 0)
        high = ends[min(int(not_above[-1]) + 1, self.bins - 1)] if not_above.size else ends[0]
        return self.figure_at(cell, int(low), int(high), NORMAL_95)

    def figure_at(self, cell: int, low: int, high: int, deviations: float) -> Figure:
        """The number at a place, and what rows between two others can have; `deviations` is half of that interval."""
        assert self.places is not None
        value = float(self.places.value_at(cell))
        first, last = self._held(min(low, cell), max(high, cell))
        if self.listed:  # a quantile of rows is a value that they have
            values = np.array(self.listed)
            value = float(values[np.argmin(np.abs(values - value))])
            inside = values[(values >= first) & (values <= last)]
            first, last = float(min([value, *inside[:1]])), float(max([value, *inside[-1:]]))
            # One value in 95 of 100 draws: in the others it is off by a gap of the list at least.
            gap = float(np.diff(values).min()) if values.size > 1 else 0.0
            return Figure(value, math.hypot((last - first) / (2 * deviations), math.sqrt(0.05) * gap), first, last)
        # An interval of one place is known to within half a step, and no better.
        error = math.hypot((last - first) / (2 * deviations), self.places.step / math.sqrt(12))
        return Figure(value, error, first, last)

    def _held(self, low: int, high: int) -> tuple[float, float]:
        """What rows have that were read at the places from `low` to `high`: they were read at the nearest one.

        Where a study says how far values lie apart they are at the places themselves.
        """
        assert self.places is not None
        if self.step is not None:
            first, last = self.places.value_at(np.array([low, high])).tolist()
            return first, last
        cuts, (least, most) = self.axes[-1].cuts, self.ranges[0]
        return (cuts[low - 1] if low else least), (cuts[high] if high < len(cuts) else most)

    # ── before the run ───────────────────────────────────────────────────────────────────────────────────────────────

    def _deviations(self, pure: bool) -> list[float]:
        """In ranks, for each unit of deviation of the drawn numbers."""
        way = self.strategy(pure)
        return [math.sqrt(float(way.variances(one)[min(int(one * self.bins), self.bins - 1)])) for one in self.wanted]

    def predicted(self, law: NoiseLaw, size: float, pure: bool = False) -> tuple[tuple[float, float], ...]:
        """For rows spread evenly over the range and over the groups."""
        each = self.width * self.parted / max(size, 1.0)
        wide = LAPLACE_95 if law.laplace else NORMAL_95
        ranks = [one * law.deviation * each for one in self._deviations(pure)]
        return tuple((min(one, self.width / 2), min(wide * one, self.width)) for one in ranks) * self.parted

    def error(self, variance: float, size: float, pure: bool = False) -> float:
        each = self.width * self.parted / max(size, 1.0)
        found = [min(one**2 * variance * each**2, self.width**2) for one in self._deviations(pure)]
        return self.parted * math.fsum(found)

    @property
    def ceiling(self) -> float:
        return self.size * self.width**2

    @property
    def basis(self) -> Basis:
        return "drawn"

    def scale(self, size: float, people: float) -> float:
        return max(self.width, 1e-300)

    # ── names and words ──────────────────────────────────────────────────────────────────────────────────────────────

    def labels(self) -> tuple[Label, ...]:
        cells = product(*(axis.cells for axis in self.groups))
        names = [axis.variable for axis in self.groups]
        return tuple(
            {**dict(zip(names, cell, strict=True)), "quantile": _shown(one)} for cell in cells for one in self.wanted
        )

    def parts(self) -> tuple[str, ...]:
        if self.size == 1:
            return ("",)
        return tuple(", ".join(map(str, label.values())) for label in self.labels())

    def words(self) -> str:
        parted = "".join(f", for {axis.words}" for axis in self.groups)
        if self.wanted == (0.5,):
            return f"the median of {self.values[0]} over {self.counted}{parted}"
        listed = ", ".join(map(_shown, self.wanted))
        return f"the quantiles {listed} of {self.values[0]} over {self.counted}{parted}"

    def law_words(self, noise: str, drawn: float, error: float, pure: bool = False) -> str:
        return (
            f"{noise[:1].upper()}{noise[1:]} noise of standard deviation {drawn:.4g} was added to sums of counts from "
            "which the number of rows below every place is read off. A quantile is where these numbers cross its "
            "share; its interval is where they can be told from it, and holds the quantile of the rows in at least 95 "
            "of 100 draws. An interval of one place says that more rows were read there than noise can hide."
        )

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def to_dict(self) -> dict[str, Any]:
        """The places follow from the range."""
        found = super().to_dict()
        return {**found, "axes": found["axes"][:-1] if self.bounded else found["axes"]}


@final
@dataclass(frozen=True, kw_only=True)
class Quantile(Quantiles):
    """Several quantiles of one variable.

    >>> ages = Quantile(values=("age(P)",), ranges=((0.0, 110.0),), numbers=(0.25, 0.75), everybody=True)
    >>> ages.size, round(ages.moves().l2, 2)
    (2, 2.48)
    """

    numbers: tuple[float, ...] = ()

    form: ClassVar[Form] = Form(
        "quantile",
        (("name", "value", "goal", "numbers"), ("name", "value", "goal", "numbers", "groups")),
        "the values below which given shares of the rows lie",
        "quantile",
        _WAYS,
    )

    @property
    def wanted(self) -> tuple[float, ...]:
        return self.numbers


@final
@dataclass(frozen=True, kw_only=True)
class Median(Quantiles):
    """The value below which half of the rows lie.

    >>> Median(values=("age(P)",), ranges=((0.0, 110.0),)).words()
    'the median of age(P) over individuals'
    """

    form: ClassVar[Form] = Form(
        "median",
        (("name", "value", "goal"), ("name", "value", "goal", "groups")),
        "the value below which half of the rows lie",
        "median",
        _WAYS,
    )

    @property
    def wanted(self) -> tuple[float, ...]:
        return (0.5,)
