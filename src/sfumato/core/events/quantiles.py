"""Several quantiles of one variable chosen together: the record, from which its cost can be computed again.

In:   the quantiles, how many rows one individual may have, the temperature.
Out:  QuantilesEvent with its sensitivity and its ε.
Not here: drawing them (mechanisms/joint_quantiles.py), other acts (core/events/event.py).
Proof: docs/proofs/quantiles.md
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from sfumato.core.adjacency import Relation
from sfumato.core.checks import positive, round_up
from sfumato.core.events.event import Event
from sfumato.core.guarantee import PureDP
from sfumato.errors import PrivacyParameterError

__all__ = ["MOST_QUANTILES", "QuantilesEvent", "checked_quantiles", "gaps_of", "quantiles_sensitivity"]

#: Beyond this many noisy sums serve better (docs/proofs/quantiles.md).
MOST_QUANTILES = 200


def gaps_of(quantiles: Iterable[float]) -> tuple[Fraction, ...]:
    """Which share of the rows lies below the first, between two neighbours, and above the last; decimals as written.

    >>> gaps_of((0.25, 0.5))
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    """
    ends = [Fraction(0), *(Fraction(repr(float(one))) for one in quantiles), Fraction(1)]
    return tuple(above - below for below, above in pairwise(ends))


def quantiles_sensitivity(quantiles: Iterable[float], rows: int, relation: Relation) -> Fraction:
    """By how much one individual of at most `rows` rows can move Σ|rows in a gap - its share of all rows|.

    >>> quantiles_sensitivity((0.5,), 1, "replace-one"), quantiles_sensitivity((0.5,), 1, "add-remove")
    (Fraction(2, 1), Fraction(1, 1))
    """
    one = Fraction(2) if relation == "replace-one" else 2 * (1 - min(gaps_of(quantiles)))
    return one * rows


def checked_quantiles(quantiles: Any) -> tuple[float, ...]:
    """Increasing decimals between 0 and 1, or PrivacyParameterError."""
    wrong = "quantiles must be increasing decimals between 0 and 1, for example [0.25, 0.5, 0.9]. Nothing was spent."
    try:
        found = tuple(quantiles)
    except TypeError:
        raise PrivacyParameterError(wrong) from None
    if not found or not all(type(one) is float for one in found):
        raise PrivacyParameterError(wrong)
    if not all(0 < one < 1 for one in found) or any(below >= above for below, above in pairwise(found)):
        raise PrivacyParameterError(wrong)
    if len(found) > MOST_QUANTILES:
        raise PrivacyParameterError(f"More than {MOST_QUANTILES} quantiles are not drawn together. Nothing was spent.")
    return found


@dataclass(frozen=True)
class QuantilesEvent(Event):
    """A place for every quantile, together with probability ∝ public weight · exp(-Σ|rows in a gap - wanted|/scale).

    One individual has at most `rows` rows.

    >>> from sfumato.core.adjacency import REPLACE_ONE
    >>> QuantilesEvent((0.25, 0.5, 0.75), 1, 8.0, adjacency=REPLACE_ONE).eps
    0.5000000000000...
    """

    proof: ClassVar[str] = "quantiles"

    quantiles: tuple[float, ...]
    rows: int
    scale: float

    def _check(self) -> None:
        object.__setattr__(self, "quantiles", checked_quantiles(self.quantiles))
        if type(self.rows) is not int or not 1 <= self.rows <= 1 << 40:
            raise PrivacyParameterError("rows must be a whole number of at least 1: the most rows of one individual.")
        positive(self.scale, "scale")

    @property
    def sensitivity(self) -> Fraction:
        return quantiles_sensitivity(self.quantiles, self.rows, self.adjacency.relation)

    @property
    def eps(self) -> float:
        return round_up(float(2 * self.sensitivity / Fraction(self.scale)), 1e-15)

    def guarantee(self) -> PureDP:
        return PureDP(self.eps, adjacency=self.adjacency)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "quantiles": list(self.quantiles)}
