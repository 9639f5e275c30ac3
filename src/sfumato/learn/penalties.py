"""Penalties on coefficients beside ½‖f‖²: public convex functions that the privacy theorems allow, as declared objects.

In:   a shape p with its bounds, weights, groups of coefficients.
Out:  SquaredPenalty, HuberPenalty, LogCoshPenalty, ConvexPenalty for penalty=…; PenaltyTerms, what the solver asks.
Not here: minimising (learn/newton.py), the strength (learn/calibration.py), losses (learn/losses.py).
Proof: docs/proofs/objective_perturbation.md, "Other penalties"

Training minimises (1/size) Σ loss + Λ·(½‖f‖² + Σ_g w_g·p(‖f_g‖)) + ⟨tilt, f⟩. The square makes it strongly convex; of
the rest privacy asks that it is convex, has a Lipschitz gradient and does not depend on the data. p(‖·‖) is and has so
where p is convex and p' begins at 0: p'(r)/r and p''(r) lie in [0, `steepness`], proved for each shape here and checked
on the numbers for `ConvexPenalty`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.checks import positive
from sfumato.errors import InputError

__all__ = [
    "NO_PENALTY",
    "ConvexPenalty",
    "HuberPenalty",
    "LogCoshPenalty",
    "Penalty",
    "PenaltyTerms",
    "SquaredPenalty",
]

_MOST_KNOTS = 10_000
#: A gradient that turns faster than this within one unit of length leaves no digits to certify it by; of many
#: coefficients, each with a bend of its own, hardly a step is a whole one (tests/learn/test_penalties.py).
_STEEPEST, _STEEPEST_OF_MANY, _FEW = 1e6, 1e3, 100
#: Units in the last place by which p'(r)/r may err, the additions of the gradient included.
_OWN_ERROR = 40.0


@dataclass(frozen=True, kw_only=True)
class Penalty(ABC):
    """Σ_g weight_g·p(‖f_g‖), p convex on r ≥ 0 with p(0) = p'(0) = 0. Abstract: shapes of your own by ConvexPenalty.

    `groups` are lists of features, numbered as training sees them; without them every feature is a group of its own.
    The coefficients that a feature has for several classes belong together. The constant is in no group. `weights`: one
    number, or one for each group. All of it is public.
    """

    weights: Any = 1.0
    groups: Any = None

    def __post_init__(self) -> None:
        groups = None if self.groups is None else tuple(_feature_numbers(group) for group in _listed(self.groups))
        weights = self.weights.tolist() if isinstance(self.weights, np.ndarray) else self.weights
        several = isinstance(weights, list | tuple)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "weights", tuple(map(_weight, weights)) if several else _weight(weights))
        if several and groups is not None and len(weights) != len(groups):
            raise InputError("There must be one weight for each group of coefficients. Nothing was spent.")

    @property
    @abstractmethod
    def steepness(self) -> float:
        """An upper bound of p'(r)/r and p''(r)."""

    @abstractmethod
    def value(self, lengths: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def pull(self, lengths: np.ndarray) -> np.ndarray:
        """p'(r)/r, and its limit at 0."""

    @abstractmethod
    def curvature(self, lengths: np.ndarray) -> np.ndarray:
        """p''(r); at a kink of p' any number between those of its sides."""


@dataclass(frozen=True)
class SquaredPenalty(Penalty):
    """p(r) = r²/2: with weights a ridge that differs from coefficient to coefficient.

    >>> SquaredPenalty(weights=(1.0, 3.0)).value(np.array([2.0])).tolist()
    [2.0]
    """

    @property
    def steepness(self) -> float:
        return 1.0

    def value(self, lengths: np.ndarray) -> np.ndarray:
        return lengths**2 / 2

    def pull(self, lengths: np.ndarray) -> np.ndarray:
        return np.ones_like(lengths)

    def curvature(self, lengths: np.ndarray) -> np.ndarray:
        return np.ones_like(lengths)


@dataclass(frozen=True)
class HuberPenalty(Penalty):
    """p(r) = r - h/2 with its corner rounded: r²/2h up to h. A smoothed lasso beside ½‖f‖²; with groups a group lasso.

    >>> HuberPenalty(0.5).value(np.array([0.0, 0.5, 1.0])).tolist()
    [0.0, 0.25, 0.75]
    """

    h: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "h", positive(self.h, "h"))

    @property
    def steepness(self) -> float:
        return 1 / self.h

    def value(self, lengths: np.ndarray) -> np.ndarray:
        inside = np.minimum(lengths, self.h)
        return inside**2 / (2 * self.h) + (lengths - inside)

    def pull(self, lengths: np.ndarray) -> np.ndarray:
        return 1 / np.maximum(lengths, self.h)

    def curvature(self, lengths: np.ndarray) -> np.ndarray:
        return np.where(lengths <= self.h, 1 / self.h, 0.0)


@dataclass(frozen=True)
class LogCoshPenalty(Penalty):
    """p(r) = h·ln cosh(r/h): as HuberPenalty, smooth everywhere.

    p' = tanh(r/h) is concave on r ≥ 0 with slope 1/h at 0, so p'(r)/r and p'' are at most 1/h.

    >>> [round(float(one), 6) for one in LogCoshPenalty(0.1).value(np.array([0.0, 1.0]))]
    [0.0, 0.930685]
    """

    h: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "h", positive(self.h, "h"))

    @property
    def steepness(self) -> float:
        return 1 / self.h

    def value(self, lengths: np.ndarray) -> np.ndarray:
        return self.h * (np.logaddexp(lengths / self.h, -lengths / self.h) - math.log(2))

    def pull(self, lengths: np.ndarray) -> np.ndarray:
        safe = np.maximum(lengths, 1e-9 * self.h)  # tanh(t)/t is 1 there to the last digit
        return np.tanh(safe / self.h) / safe

    def curvature(self, lengths: np.ndarray) -> np.ndarray:
        return (1 - np.tanh(lengths / self.h) ** 2) / self.h


@dataclass(frozen=True)
class ConvexPenalty(Penalty):
    """The p with these `slopes` at these `knots`, linear between and constant beyond: all conditions are checked.

    Knots rise from 0; slopes rise from 0 and do not fall. A smoothed lasso that is flat up to 0.1:

    >>> ConvexPenalty((0.0, 0.1, 0.2), (0.0, 0.0, 1.0)).value(np.array([0.1, 0.2, 1.2])).round(9).tolist()
    [0.0, 0.05, 1.05]
    """

    knots: tuple[float, ...]
    slopes: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("knots", "slopes"):
            object.__setattr__(self, name, _numbers(getattr(self, name), name))
        if len(self.knots) != len(self.slopes):
            raise InputError("There must be one slope for each knot. Nothing was spent.")
        if self.knots[0] != 0 or not (np.diff(self.knots) > 0).all():
            raise InputError("knots must rise from 0: a penalty is a function of a length. Nothing was spent.")
        if self.slopes[0] != 0 or not (np.diff(self.slopes) >= 0).all():
            raise InputError(
                "slopes must begin at 0 and not fall from knot to knot: the penalty would have a corner at 0 or not be "
                "convex, and the proof needs both. Round the corner off. Nothing was spent."
            )

    @classmethod
    def from_slope(
        cls, slope: Callable[[np.ndarray], Any], high: float, knots: int = 400, **where: Any
    ) -> ConvexPenalty:
        """The penalty with this slope on [0, high], read at evenly spaced knots; the first slope is set to 0.

        >>> round(ConvexPenalty.from_slope(lambda r: r / np.sqrt(r**2 + 0.01), 5.0, 4000).steepness, 1)
        10.0
        """
        places = np.linspace(0.0, positive(high, "high"), knots)
        found = np.array(slope(places), dtype=np.float64)
        if found.shape != places.shape:
            raise InputError("slope must give one number for each length. Nothing was spent.")
        found[0] = 0.0
        return cls(tuple(places.tolist()), tuple(found.tolist()), **where)

    @property
    def steepness(self) -> float:
        return float((np.diff(self.slopes) / np.diff(self.knots)).max()) * (1 + 1e-12)

    def value(self, lengths: np.ndarray) -> np.ndarray:
        knots, slopes = np.array(self.knots), np.array(self.slopes)
        heights = np.append(0.0, np.cumsum((slopes[1:] + slopes[:-1]) / 2 * np.diff(knots)))
        piece = np.clip(np.searchsorted(knots, lengths, side="right") - 1, 0, len(knots) - 2)
        inside = np.minimum(lengths, knots[piece + 1])
        mean = (np.interp(inside, knots, slopes) + slopes[piece]) / 2
        return heights[piece] + mean * (inside - knots[piece]) + slopes[-1] * (lengths - inside)

    def pull(self, lengths: np.ndarray) -> np.ndarray:
        first = self.slopes[1] / self.knots[1]
        inside = lengths <= self.knots[1]
        return np.where(inside, first, np.interp(lengths, self.knots, self.slopes) / np.where(inside, 1.0, lengths))

    def curvature(self, lengths: np.ndarray) -> np.ndarray:
        pieces = np.append(np.diff(self.slopes) / np.diff(self.knots), 0.0)
        return pieces[np.searchsorted(self.knots, lengths, side="right") - 1]


#: The shapes whose conditions are proved, or checked on their numbers.
_PROVED = (SquaredPenalty, HuberPenalty, LogCoshPenalty, ConvexPenalty)


@dataclass(frozen=True)
class PenaltyTerms:
    """All penalties of a model, for coefficients of `outputs` blocks of `width` numbers: value, gradient, Hessian."""

    terms: tuple[_Term, ...]

    @classmethod
    def of(cls, given: Any, columns: int, width: int, outputs: int = 1) -> PenaltyTerms:
        """The terms of a Penalty, of several, or of none; refuses what does not fit so many columns.

        >>> terms = PenaltyTerms.of(HuberPenalty(0.5, weights=2.0), 2, 3)
        >>> terms.gradient(np.array([0.1, -4.0, 7.0])).tolist()  # the last one is the constant's
        [0.4, -2.0, 0.0]
        """
        listed = () if given is None else tuple(given) if isinstance(given, list | tuple) else (given,)
        if not all(type(one) in _PROVED for one in listed):  # a class of somebody else's may be anything but convex
            raise InputError(
                "penalty must be None, a SquaredPenalty, HuberPenalty, LogCoshPenalty or ConvexPenalty, or a list of "
                "them. Nothing was spent."
            )
        terms = cls(tuple(_Term.of(one, columns, width, outputs) for one in listed))
        most = _STEEPEST if width * outputs <= _FEW else _STEEPEST_OF_MANY
        if not terms.steepness <= most * (1 + 1e-9):
            raise InputError(
                f"The gradient of the penalty turns by up to {terms.steepness:.2g} for each unit of a coefficient, and "
                f"{most:g} is the most that can be solved for {width * outputs} coefficients to the accuracy privacy "
                "rests on. Round its corner over a larger h, or lower its weights. Nothing was spent."
            )
        return terms

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def steepness(self) -> float:
        """A Lipschitz constant of the gradient."""
        return sum(term.steepness for term in self.terms) * (1 + 1e-12)

    @property
    def rounding(self) -> float:
        """How far the computed gradient can be from the exact one, in units in the last place, for a point of norm 1.

        With n coefficients in a group, m groups at a coefficient: lengths err by n/2 + 2 units, p' by the steepness
        times that, sums over groups by m and over terms by their number.
        """
        own = _OWN_ERROR + len(self.terms)
        return sum(term.steepness * (2 * term.largest + term.overlap + own) for term in self.terms)

    def value(self, point: np.ndarray) -> float:
        return float(sum(term.weights @ term.penalty.value(term.lengths(point)) for term in self.terms))

    def gradient(self, point: np.ndarray) -> np.ndarray:
        return sum((term.gradient(point) for term in self.terms), np.zeros_like(point))

    def along(self, point: np.ndarray, direction: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Derivatives in the direction at each point + length·direction."""
        return np.array([self.gradient(point + length * direction) @ direction for length in lengths.tolist()])

    def times(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """The Hessian's product with a vector."""
        return sum((term.times(point, vector) for term in self.terms), np.zeros_like(point))

    def add_hessian(self, point: np.ndarray, matrix: np.ndarray, factor: float) -> None:
        for term in self.terms:
            term.add_hessian(point, matrix, factor)


NO_PENALTY = PenaltyTerms(())


@dataclass(frozen=True)
class _Term:
    """One penalty: entry i of `member` is a place among the coefficients, in the group `group[i]`."""

    penalty: Penalty
    member: np.ndarray
    group: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, penalty: Penalty, columns: int, width: int, outputs: int) -> _Term:
        groups = tuple((column,) for column in range(columns)) if penalty.groups is None else penalty.groups
        if any(column >= columns for group in groups for column in group):
            raise InputError(
                f"A group of the penalty names a feature beyond the {columns} that training sees, counted from 0. "
                "Nothing was spent."
            )
        weights = np.array(penalty.weights if isinstance(penalty.weights, tuple) else [penalty.weights] * len(groups))
        if len(weights) != len(groups):
            raise InputError(f"The penalty has {len(weights)} weights for {len(groups)} features. Nothing was spent.")
        member = [output * width + column for group in groups for output in range(outputs) for column in group]
        sizes = [outputs * len(group) for group in groups]
        return cls(penalty, np.array(member, dtype=int), np.repeat(np.arange(len(groups)), sizes), weights)

    @property
    def largest(self) -> int:
        return int(np.bincount(self.group).max(initial=0))

    @property
    def overlap(self) -> int:
        return int(np.bincount(self.member).max(initial=0))

    @property
    def steepness(self) -> float:
        together = np.bincount(self.member, self.weights[self.group])
        return self.penalty.steepness * float(together.max(initial=0.0))

    def lengths(self, point: np.ndarray) -> np.ndarray:
        return np.sqrt(np.bincount(self.group, point[self.member] ** 2, len(self.weights)))

    def gradient(self, point: np.ndarray) -> np.ndarray:
        pulls = self.weights * self.penalty.pull(self.lengths(point))
        return np.bincount(self.member, pulls[self.group] * point[self.member], point.size)

    def _parts(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A group's Hessian is pull·I + bend·uuᵀ with u = f_g/‖f_g‖: pull, bend, and all u."""
        lengths = self.lengths(point)
        pulls, bends = self.weights * self.penalty.pull(lengths), self.weights * self.penalty.curvature(lengths)
        units = point[self.member] / np.where(lengths > 0, lengths, 1.0)[self.group]
        return pulls, bends - pulls, units

    def times(self, point: np.ndarray, vector: np.ndarray) -> np.ndarray:
        pulls, bends, units = self._parts(point)
        inner = bends * np.bincount(self.group, units * vector[self.member], len(self.weights))
        return np.bincount(self.member, pulls[self.group] * vector[self.member] + inner[self.group] * units, point.size)

    def add_hessian(self, point: np.ndarray, matrix: np.ndarray, factor: float) -> None:
        pulls, bends, units = self._parts(point)
        np.add.at(matrix, (self.member, self.member), factor * pulls[self.group])
        ends = np.append(np.flatnonzero(np.diff(self.group, prepend=-1)), len(self.group))
        for bend, start, end in zip(bends.tolist(), ends[:-1], ends[1:], strict=True):
            places = self.member[start:end]
            matrix[np.ix_(places, places)] += factor * bend * np.outer(units[start:end], units[start:end])


def _listed(groups: Any) -> list[Any]:
    if not isinstance(groups, list | tuple) or not groups:
        raise InputError("groups must be a list of lists of features, counted from 0. Nothing was spent.")
    return list(groups)


def _feature_numbers(group: Any) -> tuple[int, ...]:
    wrong = not isinstance(group, Sequence) or isinstance(group, str) or not group
    if wrong or not all(isinstance(one, int | np.integer) and not isinstance(one, bool) and one >= 0 for one in group):
        raise InputError("A group must be a list of features, counted from 0. Nothing was spent.")
    if len(set(group)) < len(group):
        raise InputError("A group names a feature twice. Nothing was spent.")
    return tuple(map(int, group))


def _weight(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | np.number) or not 0 <= given < math.inf:
        raise InputError("Weights of a penalty must be finite numbers that are not negative. Nothing was spent.")
    return float(given)


def _numbers(values: Any, name: str) -> tuple[float, ...]:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim != 1 or not 2 <= array.size <= _MOST_KNOTS or not np.isfinite(array).all():
        raise InputError(f"{name} must be 2 to {_MOST_KNOTS} finite numbers. Nothing was spent.")
    return tuple(array.tolist())
