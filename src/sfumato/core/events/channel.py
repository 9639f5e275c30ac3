"""One value sent through a table of whole-number weights: the record, and what it costs exactly.

In:   weights, one row for every input, all rows with the same sum.
Out:  ChannelEvent with its ε, or its δ at a stated ε.
Not here: designing a channel (mechanisms/tailored/noise.py), other acts (core/events/event.py).
Proof: docs/proofs/tailored_noise.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from sfumato.core.checks import positive, round_up
from sfumato.core.events.event import Event
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.errors import PrivacyParameterError

__all__ = ["ChannelEvent", "Weights", "delta_of_weights", "exp_below", "largest_ratio"]

Weights = tuple[tuple[int, ...], ...]

_MOST_CELLS = 4_000_000
#: Beyond so many comparisons of two weights the distance of the rows is not computed.
_MOST_COMPARED = 4_000_000
_LARGEST = 1 << 128
_FRACTION_BITS = 200
#: Weights of 2^128 have no finite ratio beyond e^89: a larger ε finds the same δ and would only cost digits.
_FARTHEST = 700.0


@lru_cache(maxsize=256)
def exp_below(epsilon: float) -> Fraction:
    """floor(e^ε · 2^200)/2^200: a rational just below e^ε; that of e^700 where ε is larger.

    >>> float(exp_below(1.0)) == math.e
    True
    """
    # 62 digits cover 200 bits after the point; `next_minus` covers the rounding of a correctly rounded exp.
    epsilon = min(epsilon, _FARTHEST)
    digits = 80 + math.ceil(epsilon)
    context = Context(prec=digits, rounding=ROUND_FLOOR)
    below = context.exp(Decimal(epsilon)).next_minus(context)
    return Fraction(math.floor(Fraction(below) * (1 << _FRACTION_BITS)), 1 << _FRACTION_BITS)


def largest_ratio(weights: Sequence[Sequence[int]]) -> Fraction | None:
    """The largest ratio of two weights for the same output, exactly; None where one of them is zero.

    >>> largest_ratio([[3, 1], [2, 2]])
    Fraction(2, 1)
    """
    worst = Fraction(1)
    for column in zip(*weights, strict=True):
        most, least = max(column), min(column)
        if least == 0:
            return None
        if most * worst.denominator > worst.numerator * least:
            worst = Fraction(most, least)
    return worst


def delta_of_weights(weights: Sequence[Sequence[int]], epsilon: float) -> Fraction:
    """max over two inputs of Σ_y (w₁ - e^ε w₂)₊ / total, with e^ε rounded down: a bound on δ(ε) within 2^-190.

    >>> float(delta_of_weights([[3, 1], [1, 3]], 0.0))
    0.5
    """
    bound, total = exp_below(epsilon), sum(weights[0])
    top, bottom = bound.numerator, bound.denominator
    rows = _array(weights, total)
    worst = 0
    for other in rows:
        # w₁ > E·w₂ for whole w₁ says w₁ > ⌊E·w₂⌋, so the outputs that count, and the sums over them, are whole numbers.
        floors = [min(total, top * weight // bottom) for weight in other.tolist()]
        counts = rows > np.array(floors, dtype=rows.dtype)
        ours, theirs = np.where(counts, rows, 0).sum(axis=1), np.where(counts, other, 0).sum(axis=1)
        excess = (bottom * int(one) - top * int(two) for one, two in zip(ours, theirs, strict=True))
        worst = max(worst, *excess)
    return Fraction(worst, bottom * total)


def _array(weights: Sequence[Sequence[int]], total: int) -> np.ndarray:
    """Rows of this sum, in words where no difference and no sum overflows."""
    return np.array(weights, dtype=np.int64 if total <= 1 << 62 else object)


def float_above(value: Fraction) -> float:
    """The least float that is not below `value`."""
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < value else nearest


@dataclass(frozen=True)
class ChannelEvent(Event):
    """Output y for input x with probability weights[x][y]/total, drawn exactly; every value of a record is an input.

    With `at` None the promise is the pure ε of the weights. With `at` it is (at, δ), δ computed from the weights.
    A record's presence is public, since it publishes something: the adjacency must replace a record.

    >>> from sfumato.core.adjacency import REPLACE_ONE
    >>> print(ChannelEvent([[3, 1], [1, 3]], adjacency=REPLACE_ONE).guarantee())
    1.09861-DP, under replacing one record
    """

    proof: ClassVar[str] = "tailored_noise"

    weights: Weights = field(repr=False)
    at: float | None = None

    def _check(self) -> None:
        object.__setattr__(self, "weights", _checked(self.weights))
        self._check_presence_is_public()
        if self.at is not None:
            positive(self.at, "at (the ε at which δ is stated)")
            if self.delta >= 1:
                raise PrivacyParameterError("These weights hide nothing: their δ is 1.")
        elif largest_ratio(self.weights) is None:
            raise PrivacyParameterError(
                "Some output is possible for one input and impossible for another: there is no pure ε. Make every "
                "weight of the column positive, or state an ε (at=…) and let δ be computed."
            )

    @property
    def eps(self) -> float:
        """ε: the stated one, or ln of the largest ratio, rounded up."""
        if self.at is not None:
            return self.at
        ratio = largest_ratio(self.weights)
        assert ratio is not None
        # log1p keeps the digits when the two weights are nearly equal; equal rows cost nothing, which is no ε > 0.
        return max(round_up(math.log1p(float(ratio - 1)), 1e-15), 1e-300)

    @property
    def delta(self) -> float:
        """δ at the stated ε, rounded up; zero for a pure promise."""
        return 0.0 if self.at is None else _delta(self.weights, self.at)

    @property
    def answers(self) -> float | None:
        """The chance of an answer of two points that is as bad, by the total variation; None where that is not known.

        Sizes are public: a table of very many weights is held to be two points that always answer.
        """
        if self.at is not None or len(self.weights) ** 2 * len(self.weights[0]) > _MOST_COMPARED:
            return None
        return _answers(self.weights)

    def guarantee(self) -> PureDP | ApproxDP:
        if self.delta == 0:
            return PureDP(self.eps, adjacency=self.adjacency)
        return ApproxDP(self.eps, self.delta, adjacency=self.adjacency)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "ChannelEvent",
            "adjacency": self.adjacency.to_dict(),
            "weights": [list(row) for row in self.weights],
            "at": self.at,
        }


@lru_cache(maxsize=32)
def _answers(weights: Weights) -> float | None:
    """TV·(R + 1)/(R - 1) for the largest ratio R of a column and the farthest two rows; exact, then rounded up."""
    ratio = largest_ratio(weights)
    if ratio is None or ratio == 1:
        return None
    total = sum(weights[0])
    rows = _array(weights, total)
    apart = max(int(np.maximum(rows - row, 0).sum(axis=1).max()) for row in rows)
    return min(1.0, float_above(Fraction(apart, total) * (ratio + 1) / (ratio - 1)))


@lru_cache(maxsize=32)
def _delta(weights: Weights, at: float) -> float:
    return float_above(delta_of_weights(weights, at))


def _checked(weights: Any) -> Weights:
    rows = _rectangle(weights)
    if len(rows) * len(rows[0]) > _MOST_CELLS:
        raise PrivacyParameterError(f"Channels of more than {_MOST_CELLS} weights are not read.")
    if not all(type(weight) is int and 0 <= weight <= _LARGEST for row in rows for weight in row):
        raise PrivacyParameterError("Every weight must be a whole number from 0 to 2^128.")
    totals = set(map(sum, rows))
    if len(totals) != 1 or totals == {0}:
        raise PrivacyParameterError("All rows of weights must have the same sum, greater than 0.")
    if not all(map(any, zip(*rows, strict=True))):
        raise PrivacyParameterError("An output without any weight cannot occur: leave its column out.")
    return rows


def _rectangle(weights: Any) -> tuple[tuple[Any, ...], ...]:
    try:
        rows = tuple(tuple(row) for row in weights)
    except TypeError:
        rows = ()
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise PrivacyParameterError("weights must be rows of whole numbers, all of the same length.")
    return rows
